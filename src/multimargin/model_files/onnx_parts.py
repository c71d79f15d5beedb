"""Kernels, votes and probabilities as ONNX operators: the formulas of store.py, voting.py and calibration.py."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from multimargin._typing import FloatArray
from multimargin.base.matrices import dense, is_sparse
from multimargin.kernels.spec import KernelSpec
from multimargin.kernels.table import KERNELS
from multimargin.model_files.onnx_graph import LARGEST_FILE, Graph
from multimargin.models.calibration import (
    BinaryCalibrator,
    Curve,
    Isotonic,
    OneVsRestCalibrator,
    PairCalibrator,
    Sigmoid,
)
from multimargin.models.coupling_probabilities import SMALLEST
from multimargin.models.kernel_model import KernelModel
from multimargin.models.linear_model import LinearModel
from multimargin.models.pair_model import PairModel
from multimargin.problems.schemes import DAG, pair_list


def raw_scores(graph: Graph, model: KernelModel | PairModel | LinearModel, X: str) -> str:
    """Return the scores of all classes or, of a model of pairs, of all pairs."""
    if isinstance(model, LinearModel):
        return graph.add(graph.product(X, model.coef.T), model.intercept)
    weights = _pair_weights(model) if isinstance(model, PairModel) else model.beta
    if not len(model.support):
        n_rows = graph.op("Gather", graph.op("Shape", X), graph.constant(np.array([0])))
        shape = graph.op("Concat", n_rows, graph.constant(np.array([len(model.intercept)])), axis=0)
        return graph.op("Expand", graph.constant(model.intercept[None]), shape)
    return graph.add(graph.product(_kernel_values(graph, model, X), weights), model.intercept)


def _pair_weights(model: PairModel) -> FloatArray:
    weights = np.zeros((len(model.support), len(model.intercept)))
    for pair in range(len(model.intercept)):
        positions, beta = model.pair_beta(pair)
        weights[positions, pair] = beta
    return weights


def _kernel_values(graph: Graph, model: KernelModel | PairModel, X: str) -> str:
    kernel: KernelSpec = model.kernel
    if kernel.name == "precomputed":
        return graph.columns(X, model.support)
    rows, entry = _dense(model.support_vectors), KERNELS[kernel.name]
    scale, shift = entry.scale(kernel), entry.shift(kernel)
    if entry.form == "dot":
        # The scale goes into the matrix: onnxruntime would fuse a factor on a product as a single-precision number.
        z = graph.product(X, rows.T if scale == 1.0 else scale * rows.T)
    elif entry.form == "squared_difference":
        z = graph.multiply(_squared_distances(graph, X, rows), scale)
    else:
        apart = graph.op("Sub", graph.op("Unsqueeze", X, graph.constant(np.array([1]))), graph.constant(rows[None]))
        distance = graph.op("ReduceSum", graph.op("Abs", apart), graph.constant(np.array([2])), keepdims=0)
        z = graph.multiply(distance, scale)
    values = entry.onnx(graph, graph.add(z, shift) if shift else z, kernel)
    return graph.add(values, kernel.offset) if kernel.offset else values


def _squared_distances(graph: Graph, X: str, rows: FloatArray) -> str:
    """Return |x - z|^2 from products; the origin is moved to the mean of the rows to limit cancellation."""
    center = rows.mean(axis=0)
    x, z = graph.add(X, -center), rows - center
    squares = graph.sums(graph.op("Mul", x, x), 1)
    distance = graph.op("Add", graph.add(graph.product(x, -2 * z.T), (z**2).sum(axis=1)), squares)
    return graph.op("Max", distance, graph.constant(np.array(0.0)))


def _dense(rows: Any) -> FloatArray:
    if not is_sparse(rows):
        return np.asarray(rows, dtype=np.float64)
    if 8 * rows.shape[0] * rows.shape[1] > LARGEST_FILE:
        raise ValueError(
            f"The sparse support vectors of shape {rows.shape} would have more than 2 GB as a dense matrix, the only "
            "one that ONNX can multiply by; use save_model instead."
        )
    return dense(rows)


def pair_codes(graph: Graph, D: str, n_classes: int, scheme: str, order: Sequence[int] | None = None) -> str:
    """Return the predicted codes, by votes or the DAG."""
    if scheme == DAG:
        return _walk(graph, D, n_classes)[0]
    if order is None:
        return graph.largest(_votes(graph, graph.op("Greater", D, graph.constant(np.array(0.0))), n_classes))
    codes = np.asarray(order)
    first, second = codes[np.triu_indices(n_classes, k=1)[0]], codes[np.triu_indices(n_classes, k=1)[1]]
    low, high = np.minimum(first, second), np.maximum(first, second)
    turned = graph.columns(D, low * (2 * n_classes - low - 1) // 2 + high - low - 1)
    turned = graph.multiply(turned, np.where(first < second, 1.0, -1.0))
    return graph.op("Gather", graph.constant(codes.astype(np.int64)), pair_codes(graph, turned, n_classes, scheme))


def pair_decision(graph: Graph, D: str, n_classes: int, scheme: str) -> str:
    """Return one score per class: votes, or the DAG's rounds, with a bounded confidence."""
    total = graph.product(D, _signs(n_classes))
    scale = graph.add(graph.multiply(graph.op("Abs", total), 3.0), 3.0)
    if scheme == DAG:
        counts = _walk(graph, D, n_classes)[1]
    else:
        at_least = graph.op("Not", graph.op("Less", D, graph.constant(np.array(0.0))))
        counts = _votes(graph, at_least, n_classes)
    return graph.op("Add", counts, graph.op("Div", total, scale))


def _signs(n_classes: int) -> FloatArray:
    signs = np.zeros((n_classes * (n_classes - 1) // 2, n_classes))
    for pair, (i, j) in enumerate(pair_list(n_classes)):
        signs[pair, i], signs[pair, j] = 1.0, -1.0
    return signs


def _votes(graph: Graph, for_first: str, n_classes: int) -> str:
    return graph.add(graph.product(graph.as_double(for_first), _signs(n_classes)), np.arange(float(n_classes)))


def _walk(graph: Graph, D: str, n_classes: int) -> tuple[str, str]:
    """Return the winner of each row, and the round that drops each class: models/voting.py's walk, round by round."""
    one, all_codes = graph.constant(np.array([1])), np.arange(n_classes)
    first = graph.as_integer(graph.multiply(graph.columns(D, [0]), 0.0))  # a column of zeros
    last = graph.add(first, np.array(n_classes - 1))
    rounds = graph.add(graph.as_double(graph.add(first, np.zeros(n_classes, dtype=np.int64))), n_classes - 1.0)
    for number in range(n_classes - 1):
        before = graph.op("Mul", first, graph.add(graph.multiply(first, np.array(-1)), np.array(2 * n_classes - 1)))
        before = graph.op("Div", before, graph.constant(np.array(2)))
        column = graph.add(graph.op("Sub", graph.op("Add", before, last), first), np.array(-1))
        score = graph.op("GatherElements", D, column, axis=1)
        keeps = graph.op("Greater", score, graph.constant(np.array(0.0)))
        dropped = graph.as_double(
            graph.op("Equal", graph.op("Where", keeps, last, first), graph.constant(all_codes[None, :]))
        )
        rounds = graph.op("Sub", rounds, graph.multiply(dropped, float(n_classes - 1 - number)))
        step = graph.as_integer(keeps)
        last = graph.op("Sub", last, step)
        first = graph.op("Add", first, graph.op("Sub", one, step))
    return graph.op("Squeeze", first, one), rounds


def probabilities(graph: Graph, calibrator: Any, scores: str) -> str:
    """Return the probabilities of all classes, of scores as ``Calibrator.probabilities`` takes them."""
    if isinstance(calibrator, BinaryCalibrator):
        wide = graph.op("Unsqueeze", scores, graph.constant(np.array([1])))
        positive = _curve(graph, calibrator.curve, wide)
        negative = graph.op("Sub", graph.constant(np.array(1.0)), positive)
        return graph.op("Concat", negative, positive, axis=1)
    curves = calibrator.curves
    each = [_curve(graph, curve, graph.columns(scores, [place])) for place, curve in enumerate(curves)]
    raw = graph.op("Concat", *each, axis=1)
    if isinstance(calibrator, PairCalibrator):
        return _coupled(graph, raw, len(curves))
    assert isinstance(calibrator, OneVsRestCalibrator)
    total = graph.sums(raw, 1)
    nothing = graph.op("Equal", total, graph.constant(np.array(0.0)))
    safe = graph.op("Where", nothing, graph.constant(np.array(1.0)), total)
    uniform = graph.constant(np.full((1, len(curves)), 1 / len(curves)))
    return graph.op("Where", nothing, uniform, graph.op("Div", raw, safe))


def _curve(graph: Graph, curve: Curve, score: str) -> str:
    """Return the probabilities of a column of scores."""
    if isinstance(curve, Sigmoid):
        return graph.op("Sigmoid", graph.add(graph.multiply(score, curve.slope), curve.offset))
    assert isinstance(curve, Isotonic)
    knots, values = np.array(curve.knots), np.array(curve.values)
    if len(knots) == 1:
        return graph.add(graph.multiply(score, 0.0), values[0])
    # The share of each interval between two knots that lies below the score, times the rise of the curve there.
    shares = graph.op("Div", graph.add(score, -knots[:-1]), graph.constant(np.diff(knots)))
    shares = _within(graph, shares, 0.0, 1.0)
    return _within(graph, graph.add(graph.product(shares, np.diff(values)[:, None]), values[0]), 0.0, 1.0)


def _within(graph: Graph, values: str, low: float, high: float) -> str:
    return graph.op("Min", graph.op("Max", values, graph.constant(np.array(low))), graph.constant(np.array(high)))


def _coupled(graph: Graph, r: str, n_pairs: int) -> str:
    """Return the distributions of pairwise coupling, WLW04: p minimises p'Qp over e'p = 1.

    Q + ee' has the same minimiser and is positive definite, so that p is (Q + ee')^-1 e up to its sum, and elimination
    needs no pivoting.
    """
    d = (1 + math.isqrt(1 + 8 * n_pairs)) // 2
    first = _within(graph, r, SMALLEST, 1 - SMALLEST)
    place, shift = np.zeros((n_pairs, d * d)), np.zeros(d * d)
    for pair, (i, j) in enumerate(pair_list(d)):
        place[pair, i * d + j], place[pair, j * d + i], shift[i * d + j] = -1.0, 1.0, 1.0
    flat = graph.add(graph.product(first, place), shift)  # r_ji at (i, j)
    opposed = graph.op("Reshape", flat, graph.constant(np.array([-1, d, d])))
    crossed = graph.op("Mul", opposed, graph.op("Transpose", opposed, perm=[0, 2, 1]))
    diagonal = graph.multiply(graph.sums(graph.op("Mul", opposed, opposed), 2), np.eye(d))
    system = graph.add(graph.op("Sub", diagonal, crossed), 1.0)
    right = graph.add(graph.multiply(graph.op("Gather", system, graph.constant(np.array([0])), axis=2), 0.0), 1.0)
    rows = graph.op("Concat", system, right, axis=2)
    for k in range(d):
        here = graph.constant(np.array([k]))
        own = graph.op("Gather", rows, here, axis=1)
        own = graph.op("Div", own, graph.op("Gather", own, here, axis=2))
        others = graph.op("Sub", rows, graph.op("Mul", graph.op("Gather", rows, here, axis=2), own))
        rows = graph.op("Where", graph.constant((np.arange(d) == k)[None, :, None]), own, others)
    last = graph.op("Gather", rows, graph.constant(np.array([d])), axis=2)
    solution = graph.op("Squeeze", last, graph.constant(np.array([2])))
    return graph.op("Div", solution, graph.sums(solution, 1))
