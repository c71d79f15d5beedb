"""Where the margins of a fitted machine lie, and which of its support vectors are at their bound.

Reads models and training data only.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from multimargin._typing import FloatArray
from multimargin.estimators.svc import DATA
from multimargin.fitting.parameters import check_array
from multimargin.models.kernel_model import KernelModel
from multimargin.models.linear_model import LinearModel
from multimargin.models.pair_model import PairModel
from multimargin.problems.machines import Bound
from multimargin.problems.problem import DualProblem, Loss
from multimargin.problems.recovery import recover_amounts
from multimargin.problems.schemes import pair_list, pair_problems
from multimargin.problems.training_set import TrainingSet

# A variable within this share of C_i of its bound counts as at it, as in certificates.
AT_BOUND = 1e-12


def has_margins(model: Any) -> bool:
    """Return whether a fitted estimator is one whose margins are known here."""
    return hasattr(model, "_spec") and isinstance(getattr(model, "_model", None), KernelModel | PairModel | LinearModel)


def margin_excess(model: Any, X: ArrayLike) -> FloatArray:
    """Return by how much the worst margin of each class exceeds its target, shape (n_points, n_classes).

    Column y at x is min_p m_yp(f(x)) - t_yp: where it is 0 or more, an example of class y at x would cost nothing. Of
    "ovo" and "dag" the margins of class y are its scores in the pairs that it takes part in, with target 1.
    """
    points, machine, d = model._points(X), model._spec.machine, len(model.classes_)
    excess = np.full((points.shape[0], d), np.inf)
    if model._spec.scheme:
        fitted = model._model
        scores = fitted.pair_scores(points) if isinstance(fitted, PairModel) else fitted.raw_scores(points)
        for (i, j), score in zip(pair_list(d), scores.T, strict=True):
            excess[:, i] = np.minimum(excess[:, i], score - 1.0)
            excess[:, j] = np.minimum(excess[:, j], -score - 1.0)
        return excess
    scores, table = model._model.scores(points), machine.table(d)
    for y in range(d):
        class1, value1, class2, value2 = table.of_class(y)
        margins = scores[:, class1] * value1 + scores[:, np.maximum(class2, 0)] * value2
        excess[:, y] = (margins - table.target[y, : len(class1)]).min(axis=1)
    return excess


def bounded_support(model: Any, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> np.ndarray:
    """Return which of ``model.support_`` are bounded, shape (n_SV,): a dual variable, or their sum, is at C_i.

    The others are free: none of their margins is short of its target. With the squared hinge nothing is bounded.
    """
    spec, rows = model._spec, np.asarray(model.support_)
    checked = check_array(X, **DATA)
    data = TrainingSet.from_arrays(checked, np.asarray(y), C=spec.C, sample_weight=sample_weight)
    data = replace(data, C=data.C * model.class_weight_[data.y])
    if spec.loss is Loss.SQUARED_HINGE:
        return np.zeros(len(rows), dtype=bool)
    bounded = np.zeros(checked.shape[0], dtype=bool)
    if spec.scheme:
        _mark_pairs(model, data, bounded)
    else:
        _mark_machine(model, data, bounded)
    return np.asarray(bounded[rows])


def _mark_pairs(model: Any, data: TrainingSet, bounded: np.ndarray) -> None:
    fitted = model._model
    for index, problem in enumerate(pair_problems(data)):
        beta = np.zeros(len(bounded))
        if isinstance(fitted, PairModel):
            positions, values = fitted.pair_beta(index)
            beta[fitted.support[positions]] = values
        else:
            beta[model._dual.support] = model._dual.column(index)
        bounded[problem.rows] |= np.abs(beta[problem.rows]) >= problem.C * (1 - AT_BOUND)


def _mark_machine(model: Any, data: TrainingSet, bounded: np.ndarray) -> None:
    fitted, spec = model._model, model._spec
    linear = isinstance(fitted, LinearModel)
    beta = np.zeros((len(bounded), data.n_classes))
    beta[model.support_] = model._dual.beta if linear else fitted.beta
    problem = DualProblem(data, spec.machine, spec.kernel, spec.loss, spec.bias)
    amounts = recover_amounts(problem, beta[data.rows], fitted.scores(data.X[data.rows]))
    largest = amounts.sum(axis=1) if spec.machine.bound is Bound.SIMPLEX else amounts.max(axis=1)
    bounded[data.rows] = largest >= data.C * (1 - AT_BOUND)
