"""Certificates recomputed from public attributes in 80 bits (np.longdouble), kernel values included."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from multimargin.kernels.spec import KernelSpec
from multimargin.models.linear_model import LinearModel
from multimargin.models.pair_model import PairModel
from multimargin.problems.coupling import coefficients, component_mask
from multimargin.problems.machines import Bound
from multimargin.problems.problem import Bias, DualProblem, Loss
from multimargin.problems.recovery import recover_amounts
from multimargin.problems.schemes import pair_problems
from multimargin.problems.training_set import TrainingSet

LONG = np.longdouble
EPS = np.finfo(np.float64).eps


@dataclass(frozen=True)
class Numbers:
    """Objectives and violation; ``noise`` is what one rounding of each term changes a score by in float64."""

    primal: float
    dual: float
    violation: float
    noise: float
    objective_noise: float
    primal_noise: float  # what the noise of scores may cost at C_i each

    @property
    def relative_gap(self) -> float:
        return (self.primal - self.dual) / max(abs(self.primal), abs(self.dual), 1e-300)


def gram(kernel: KernelSpec, X: Any) -> np.ndarray:
    """The kernel matrix from differences and products in 80 bits."""
    x = np.asarray(X.toarray() if sparse.issparse(X) else X).astype(LONG)
    if kernel.name in ("rbf", "laplacian"):
        difference = x[:, None, :] - x[None, :, :]
        distance = (difference**2 if kernel.name == "rbf" else np.abs(difference)).sum(axis=2)
        return np.asarray(np.exp(-LONG(kernel.gamma) * distance) + LONG(kernel.offset))
    products = (x[:, None, :] * x[None, :, :]).sum(axis=2)
    if kernel.name == "poly":
        products = (LONG(kernel.gamma) * products + LONG(kernel.coef0)) ** kernel.degree
    elif kernel.name == "sigmoid":
        products = np.tanh(LONG(kernel.gamma) * products + LONG(kernel.coef0))
    return np.asarray(products + LONG(kernel.offset))


def recompute(model: Any, X: Any, y: Any, sample_weight: Any = None) -> list[Numbers]:
    """Return the numbers of the machine, or of every pair of classes."""
    spec = model._spec
    data = TrainingSet.from_arrays(X, np.asarray(y), C=spec.C, sample_weight=sample_weight)
    C = data.C * model.class_weight_[data.y]
    kernel = spec.kernel
    linear = isinstance(model._model, LinearModel)
    if spec.bias is Bias.REGULARIZED and not linear:
        kernel = kernel.with_offset(kernel.offset + 1.0)
    with np.errstate(all="ignore"):
        K = gram(kernel, data.X)
        if not spec.scheme:
            return [_machine(model, data, C, K)]
        return [_pair(model, index, binary, C, K) for index, binary in enumerate(pair_problems(data))]


def _machine(model: Any, data: TrainingSet, C: np.ndarray, K: np.ndarray) -> Numbers:
    spec = model._spec
    problem = DualProblem(data, spec.machine, spec.kernel, spec.loss, spec.bias)
    source = model._dual if isinstance(model._model, LinearModel) else model._model
    beta = np.zeros((data.X.shape[0], data.n_classes))
    beta[source.support] = source.beta
    beta = beta[data.rows]
    exact = spec.bias is Bias.EXACT
    bias = model._model.intercept.astype(LONG) if exact else np.zeros(data.n_classes, dtype=LONG)
    K = K[np.ix_(data.rows, data.rows)]
    scores = K @ beta.astype(LONG)
    a = recover_amounts(problem, beta, np.asarray(scores + bias, dtype=np.float64)).astype(LONG)
    table = spec.machine.table(data.n_classes)
    mask = component_mask(spec.machine, data.y, data.n_classes)
    f, rows = scores + bias, np.arange(len(data.y))[:, None]
    m = table.value1[data.y] * f[rows, table.class1[data.y]]
    m = m + table.value2[data.y] * f[rows, np.maximum(table.class2[data.y], 0)]
    t = np.where(mask, table.target[data.y], 0.0)
    shortfall = np.where(mask, t - m, LONG(0))
    simplex, squared = spec.machine.bound is Bound.SIMPLEX, spec.loss is Loss.SQUARED_HINGE
    norm = float(np.sum(beta.astype(LONG) * scores))
    slack = np.maximum(shortfall, LONG(0))
    slack = slack.max(axis=1, keepdims=True) if simplex else slack
    used = a.sum(axis=1, keepdims=True) if simplex else a
    hard = bool(np.isinf(C).any())
    charge = 0.0 if hard else float(np.sum(C[:, None] * (slack**2 if squared else slack)))
    penalty = float(np.sum(used**2 / (4 * C[:, None]))) if squared else 0.0
    gradient = shortfall - used / (2 * C[:, None]) if squared else shortfall
    cap = np.full(len(C), np.inf) if squared else C
    again = coefficients(spec.machine, np.asarray(a, dtype=np.float64), data.y, data.n_classes)
    off = np.abs(again - beta).max(initial=0.0) > 1e-9 * max(float(np.abs(beta).max(initial=0.0)), 1e-300)
    off = off or bool((a < 0).any() or (used > cap[:, None] * (1 + 1e-9)).any())
    size = np.abs(K) @ np.abs(beta)
    return Numbers(
        0.5 * norm + charge,
        float(np.sum(t * a)) - 0.5 * norm - penalty,
        np.inf if off or not np.isfinite(f).all() else _violation(gradient, a, cap, mask, simplex),
        float(EPS * size.max(initial=0.0)),
        float(EPS * np.sum(np.abs(beta) * size)),
        float(EPS * np.sum(np.where(np.isfinite(C), C, 0.0)[:, None] * size)),
    )


def _violation(g: np.ndarray, a: np.ndarray, cap: np.ndarray, mask: np.ndarray, simplex: bool) -> float:
    if not simplex:
        rise = np.where(mask & (a < cap[:, None]), g, 0.0).max(initial=0.0)
        return float(max(rise, -np.where(a > 0, g, 0.0).min(initial=0.0)))
    top = np.where(mask, g, 0.0).max(axis=1, initial=0.0)
    low = np.where(a > 0, g, np.inf).min(axis=1, initial=np.inf)
    slack = a.sum(axis=1) < cap * (1 - 1e-12)
    return float(np.maximum(0.0, top - np.minimum(low, np.where(slack, 0.0, np.inf))).max())


def _pair(model: Any, index: int, binary: Any, C: np.ndarray, K: np.ndarray) -> Numbers:
    spec, own = model._spec, model._model
    n_rows = K.shape[0]
    by_row = np.zeros(n_rows)
    if isinstance(own, PairModel):
        positions, values = own.pair_beta(index)
        by_row[own.support[positions]] = values
    else:
        by_row[model._dual.support] = model._dual.column(index)
    beta, K = by_row[binary.rows], K[np.ix_(binary.rows, binary.rows)]
    sign = np.where(np.arange(len(beta)) < binary.n_positive, 1.0, -1.0)
    C = np.concatenate([C[binary.positive], C[binary.negative]])
    a = sign * beta
    scores = K @ beta.astype(LONG)
    b = LONG(own.intercept[index]) if spec.bias is Bias.EXACT else LONG(0)
    squared = spec.loss is Loss.SQUARED_HINGE
    near = 1e-12 * (C if np.isfinite(C).all() else 0.0)
    a = np.where(np.abs(a) <= np.minimum(near, 1e-12 * np.abs(a).max(initial=0.0)), 0.0, a)
    a = a if squared else np.where(np.abs(C - a) <= near, C, a)
    slack = np.maximum(LONG(0), 1 - sign * (scores + b))
    norm = float(np.sum(beta.astype(LONG) * scores))
    charge = 0.0 if np.isinf(C).any() else float(np.sum(C * (slack**2 if squared else slack)))
    penalty = float(np.sum(a.astype(LONG) ** 2 / (4 * C))) if squared else 0.0
    g = 1 - sign * (scores + b) - (a / (2 * C) if squared else 0.0)
    cap = np.full(len(C), np.inf) if squared else C
    off = bool((a < 0).any() or (a > cap * (1 + 1e-9)).any())
    if spec.bias is Bias.EXACT:
        off = off or abs(float(beta.astype(LONG).sum())) > 1e-8 * float(np.abs(beta).sum())
    size = np.abs(K) @ np.abs(beta)
    mask = np.ones((len(a), 1), dtype=np.bool_)
    found = _violation(g[:, None], a[:, None], cap, mask, False) if np.isfinite(scores + b).all() else np.inf
    return Numbers(
        0.5 * norm + charge,
        float(a.sum()) - 0.5 * norm - penalty,
        np.inf if off else found,
        float(EPS * size.max(initial=0.0)),
        float(EPS * np.sum(np.abs(beta) * size)),
        float(EPS * np.sum(np.where(np.isfinite(C), C, 0.0) * size)),
    )
