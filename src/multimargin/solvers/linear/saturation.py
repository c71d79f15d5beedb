"""Proof that the weights of a linear machine stay the same for every larger C (KCSL04 Theorem 3).

For large C the dual variables are a linear function a(C) = A C + B, and w is constant. Weights that are optimal at some
C are optimal at every larger one if such a rate A exists: 0 <= A_i <= 1 (times the example's weight), 1 where the
margin is short of its target, 0 where it is beyond it, anything between on the target, with sum_i A_i y_i x_i = 0, so
that no weight changes. Then a + (C' - C) A is feasible and meets the same KKT conditions for every C' >= C. A linear
program finds A or shows that there is none.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from multimargin._typing import FloatArray, IntArray
from multimargin.problems.coupling import component_mask, margins
from multimargin.problems.machines import Bound, Machine
from multimargin.problems.problem import Bias, Loss
from multimargin.problems.schemes import pair_problems
from multimargin.problems.training_set import TrainingSet

# Nonzero entries of the program's matrix; one with more would take longer than the path.
MOST_ENTRIES = 5_000_000
# What may be left of sum_i A_i y_i x_i, relative to the sum of the absolute values of its terms.
ZERO_SUM = 1e-8


@dataclass(frozen=True, eq=False)
class LinearKind:
    """What defines a linear machine beside its data; ``pairs`` says whether it has a function for each pair."""

    machine: Machine
    pairs: bool
    loss: Loss
    bias: Bias
    offset: float  # the constant that the kernel adds


@dataclass(frozen=True, eq=False)
class _Rates:
    """The unknown rates A: each belongs to an example and moves the weights by A nu_c x_i for each function c."""

    example: IntArray
    nu: FloatArray  # (n_rates, n_functions)
    low: FloatArray
    high: FloatArray
    sums: tuple[FloatArray, FloatArray] | None = None  # bounds of the sums by example, for a simplex

    def at(self, chosen: IntArray) -> _Rates:
        return _Rates(self.example[chosen], self.nu[chosen], self.low[chosen], self.high[chosen], self.sums)


def weights_are_final(data: TrainingSet, coef: FloatArray, intercept: FloatArray, kind: LinearKind, tol: float) -> bool:
    """Return whether weights that are optimal are proved to stay so for every larger C.

    ``data`` has C = 1, so that its C are the examples' weights; ``coef`` and ``intercept`` have a row for each class or
    pair. A margin within ``tol`` counts as on its target, as in the certificate.
    """
    if kind.loss is not Loss.HINGE:  # a = 2 C xi: the weights approach a limit and do not reach it
        return False
    X = _with_constant(data, kind)
    scores = np.asarray(data.X @ coef.T) + intercept
    if not kind.pairs:
        return _rate_exists(X[data.rows], _rates_of_machine(kind.machine, data, scores[data.rows], tol))
    return all(
        _rate_exists(X[pair.rows], _rates_of_pair(scores[pair.rows, k], pair.n_positive, pair.C, tol))
        for k, pair in enumerate(pair_problems(data))
    )


def _with_constant(data: TrainingSet, kind: LinearKind) -> sparse.csr_array:
    """Return the rows of X with a constant feature: the sums of an exact bias, or the weight of a regularised one."""
    X = sparse.csr_array(data.X, dtype=np.float64)
    constant = 1.0 if kind.bias is Bias.EXACT else float(np.sqrt(kind.offset))
    if constant == 0.0:
        return X
    return sparse.csr_array(sparse.hstack([X, np.full((X.shape[0], 1), constant)]))


def _bounds(gradient: FloatArray, weight: FloatArray, tol: float) -> tuple[FloatArray, FloatArray]:
    """Return bounds of A: the example's weight where a margin is short of its target, 0 where it is beyond it."""
    return np.where(gradient > tol, weight, 0.0), np.where(gradient < -tol, 0.0, weight)


def _rates_of_pair(scores: FloatArray, n_positive: int, weight: FloatArray, tol: float) -> _Rates:
    signs = np.where(np.arange(len(scores)) < n_positive, 1.0, -1.0)
    return _Rates(np.arange(len(scores)), signs[:, None], *_bounds(1.0 - signs * scores, weight, tol))


def _rates_of_machine(machine: Machine, data: TrainingSet, scores: FloatArray, tol: float) -> _Rates:
    y, weight, n_classes = data.y, data.C, data.n_classes
    table, mask = machine.table(n_classes), component_mask(machine, data.y, n_classes)
    gradient = np.where(mask, table.target[y] - margins(machine, scores, y), -np.inf)
    by_component = np.broadcast_to(weight[:, None], gradient.shape)
    sums = None
    if machine.bound is Bound.BOX:
        low, high = _bounds(gradient, by_component, tol)
    else:  # only the largest shortfall of an example is charged
        largest = gradient.max(axis=1)
        low, high = np.zeros_like(gradient), np.where(gradient >= largest[:, None] - tol, by_component, 0.0)
        sums = _bounds(largest, weight, tol)
    nu = machine.table(n_classes).dense()
    if machine.sum_to_zero:
        nu = nu - nu.mean(axis=2, keepdims=True)
    example, component = np.nonzero(mask & (high > 0.0))
    return _Rates(example, nu[y[example], component], low[example, component], high[example, component], sums)


def _rate_exists(X: sparse.csr_array, rates: _Rates) -> bool:
    """Return whether some A within its bounds has sum_k A_k nu_k x_k = 0."""
    size = np.maximum(abs(X).max(axis=0).toarray().ravel(), np.finfo(float).tiny)
    X = sparse.csr_array(X @ sparse.diags_array(1.0 / size))  # features of any unit alike
    open_, fixed = rates.at(np.flatnonzero(rates.low < rates.high)), rates.at(np.flatnonzero(rates.low == rates.high))
    entries = len(open_.example) * rates.nu.shape[1] * X.nnz / max(1, X.shape[0])
    if entries > MOST_ENTRIES:
        return False
    given = _moved(X, fixed).T @ fixed.low
    terms = abs(_moved(X, fixed)).T @ fixed.low
    if not len(open_.example):
        return bool((np.abs(given) <= ZERO_SUM * max(terms.max(initial=0.0), 1e-300)).all())
    moved = _moved(X, open_)
    upper, limits = _limits_of_sums(open_, X.shape[0])
    found = linprog(
        np.zeros(len(open_.example)),
        A_ub=upper,
        b_ub=limits,
        A_eq=moved.T,
        b_eq=-given,
        bounds=np.column_stack([open_.low, open_.high]),
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10},
    )
    if found.x is None or found.status != 0:
        return False
    left = np.abs(moved.T @ found.x + given)
    return bool((left <= ZERO_SUM * (abs(moved).T @ found.x + terms).max(initial=0.0)).all())


def _moved(X: sparse.csr_array, rates: _Rates) -> sparse.csr_array:
    """Return what a unit of each rate adds to all weights, (n_rates, n_functions n_features)."""
    rows = X[rates.example]
    parts = [sparse.diags_array(rates.nu[:, c]) @ rows for c in range(rates.nu.shape[1])]
    return sparse.csr_array(sparse.hstack(parts))


def _limits_of_sums(rates: _Rates, n_examples: int) -> tuple[sparse.csr_array | None, FloatArray | None]:
    """Return the sums of each example's rates, and minus them, with their upper limits."""
    if rates.sums is None:
        return None, None
    n = len(rates.example)
    member = sparse.csr_array((np.ones(n), (rates.example, np.arange(n))), shape=(n_examples, n))
    low, high = rates.sums
    return sparse.csr_array(sparse.vstack([member, -member])), np.concatenate([high, -low])
