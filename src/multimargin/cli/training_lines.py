"""The lines that svm-train prints after training; scripts parse them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from multimargin import Certificate
from multimargin.models.pair_model import PairModel

AT_BOUND = 1 - 1e-12
MOST_LABELS = 8
WITH_GAMMA = ("rbf", "poly", "sigmoid", "laplacian")


def lines_of(model: Any, y: np.ndarray) -> Iterator[str]:
    """Yield LIBSVM's lines for each pair of classes, or those of the one problem, and our certificate."""
    expansion = getattr(model, "_model", None)
    if isinstance(expansion, PairModel) and len(model.certificate_.parts or (1,)) == len(expansion.intercept):
        yield from _pairs(model, expansion, y)
    else:
        yield from _optimum(model.certificate_)
    yield f"Total nSV = {len(model.support_)}"
    yield f"certificate: {model.certificate_}"


def summary_of(model: Any, y: np.ndarray, scale: str | None) -> Iterator[str]:
    """Yield what a person wants to know of a fit."""
    kernel = "by weights" if not hasattr(model, "kernel") else f"{model.kernel} kernel"
    gamma = f", gamma={model._gamma:.6g}" if getattr(model, "kernel", None) in WITH_GAMMA else ""
    certificate = model.certificate_
    facts = {
        "machine": f"{model.multi_class}, {kernel}, C={model.C:g}{gamma}{f', scale={scale}' if scale else ''}",
        "rows": f"{len(y)} with {model.n_features_in_} columns",
        "classes": f"{len(model.classes_)}: {_named(model.classes_)}",
        "support vectors": str(len(model.support_)),
        "certificate": str(certificate),
        "seconds": f"{certificate.seconds:.2f}",
    }
    for name, value in facts.items():
        yield f"{name:<15}  {value}"


def _named(labels: np.ndarray) -> str:
    shown = [str(label) for label in labels[:MOST_LABELS].tolist()]
    return ", ".join([*shown, *(["..."] if len(labels) > MOST_LABELS else [])])


def _optimum(certificate: Certificate) -> Iterator[str]:
    yield f"optimization finished, #iter = {certificate.n_iter}"
    yield f"obj = {-certificate.dual:.6f}"


def _pairs(model: Any, expansion: PairModel, y: np.ndarray) -> Iterator[str]:
    """The pairs in LIBSVM's order, which is that of the labels' first appearance."""
    order = labels_in_order(y, model.classes_)
    cost = float(model.C) * model.class_weight_
    counts = np.array([np.count_nonzero(y == label) for label in model.classes_])
    position = {pair: number for number, pair in enumerate(_sorted_pairs(len(order)))}
    certificates = model.certificate_.parts or (model.certificate_,)
    for p, first in enumerate(order):
        for second in order[p + 1 :]:
            pair = position[min(first, second), max(first, second)]
            _, beta = expansion.pair_beta(pair)
            intercept = float(expansion.intercept[pair]) * (1 if first < second else -1)
            used = np.abs(beta[beta != 0])
            # A coefficient's sign is that of its class within the pair.
            bounds = np.where(beta[beta != 0] > 0, cost[min(first, second)], cost[max(first, second)])
            yield f"optimization finished, #iter = {certificates[pair].n_iter}"
            if cost[first] == cost[second]:
                yield f"nu = {used.sum() / (cost[first] * (counts[first] + counts[second])):.6f}"
            yield f"obj = {-certificates[pair].dual:.6f}, rho = {-intercept:.6f}"
            yield f"nSV = {len(used)}, nBSV = {int((used >= AT_BOUND * bounds).sum())}"


def _sorted_pairs(n_classes: int) -> list[tuple[int, int]]:
    return [(i, j) for i in range(n_classes) for j in range(i + 1, n_classes)]


def labels_in_order(y: np.ndarray, classes: np.ndarray) -> list[int]:
    """Return the numbers of the classes by their first row; of two labels -1 and 1 the positive one is first."""
    codes = np.searchsorted(classes, y)
    first_rows = [int(np.argmax(codes == code)) for code in range(len(classes))]
    if classes.tolist() == [-1, 1]:
        return [1, 0]
    return [int(code) for code in np.argsort(first_rows, kind="stable")]
