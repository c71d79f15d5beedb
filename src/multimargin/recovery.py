"""The dual variables of a model that keeps only its coefficients.

Per example: the feasible a with Pi nu' a = beta and the largest sum t a. For every published machine a is unique,
but for one direction (ats, rm, atm), along which no score changes.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import linprog

from multimargin.machines import Bound, FloatArray
from multimargin.problem import DualProblem, Loss

# A variable within this share of C_i of a bound counts as at it.
BOUND_TOLERANCE = 1e-12


def recover_amounts(problem: DualProblem, beta: FloatArray) -> FloatArray:
    """Return a, shape (n_examples, n_components), from beta (n_examples, n_classes)."""
    amounts = np.zeros((problem.n_examples, problem.n_components))
    for y in range(problem.n_classes):
        members = np.flatnonzero(problem.data.y == y)
        if problem.structure.structured:
            amounts[members] = _recover_structured(problem, beta[members], members, y)
        else:
            amounts[members] = _recover_by_programming(problem, beta[members], members, y)
    return _snap(problem, amounts)


def _recover_structured(problem: DualProblem, beta: FloatArray, members: np.ndarray, y: int) -> FloatArray:
    table, structure = problem.machine.table(problem.n_classes), problem.structure
    n = int(table.n_components[y])
    private, value = structure.private_class[y, :n], structure.private_value[y, :n]
    # beta_c = (raw coefficient of class c) - shift, and the private class of a component holds value * a alone
    a = np.zeros((len(beta), problem.n_components))
    a[:, :n] = beta[:, private] / value
    per_shift = 1.0 / value  # what a unit of shift adds to each a
    class1, value1, class2, value2 = table.of_class(y)
    row_sum = value1 + np.where(class2 >= 0, value2, 0.0)
    if not (problem.machine.sum_to_zero and np.any(row_sum != 0)):
        return a
    untouched = np.setdiff1d(np.arange(problem.n_classes), private)
    if len(untouched):  # a class without a component has raw coefficient 0
        shift = -beta[:, untouched].mean(axis=1)
    else:
        shift = _best_shift(problem, a[:, :n], per_shift, members, y)
    a[:, :n] += shift[:, None] * per_shift
    return a


def _best_shift(
    problem: DualProblem, a: FloatArray, per_shift: FloatArray, members: np.ndarray, y: int
) -> FloatArray:
    """The shift that leaves a feasible and is best for the dual, one scalar per example."""
    cap = problem.cap[members][:, None]
    with np.errstate(invalid="ignore"):
        at_zero, at_cap = -a / per_shift, (cap - a) / per_shift
    lowest = np.where(per_shift > 0, at_zero, at_cap).max(axis=1)
    highest = np.where(per_shift > 0, at_cap, at_zero).min(axis=1)
    slope_of_sum = float(per_shift.sum())
    if problem.machine.bound is Bound.SIMPLEX and slope_of_sum != 0:
        room = (problem.cap[members] - a.sum(axis=1)) / slope_of_sum
        if slope_of_sum > 0:
            highest = np.minimum(highest, room)
        else:
            lowest = np.maximum(lowest, room)
    target = problem.machine.table(problem.n_classes).target[y, : a.shape[1]]
    slope = float(target @ per_shift)
    C = problem.data.C[members]
    if problem.loss is Loss.SQUARED_HINGE:  # a parabola: minus a^2/(4C) each, or minus (sum a)^2/(4C)
        if problem.machine.bound is Bound.SIMPLEX:
            bend, pull = np.full(len(a), slope_of_sum**2), slope_of_sum * a.sum(axis=1)
        else:
            bend, pull = np.full(len(a), float(per_shift @ per_shift)), a @ per_shift
        with np.errstate(divide="ignore", invalid="ignore"):
            best = np.where(bend > 0, (2 * C * slope - pull) / bend, np.sign(slope) * np.inf)
    else:
        best = np.full(len(a), np.sign(slope) * np.inf if abs(slope) > 1e-12 else 0.0)
    feasible = np.maximum(lowest, np.minimum(best, highest))
    return np.where(np.isfinite(feasible), feasible, lowest)


def _recover_by_programming(
    problem: DualProblem, beta: FloatArray, members: np.ndarray, y: int
) -> FloatArray:
    """For a machine of a user's own without the usual form: least squares, or a linear program each."""
    table = problem.machine.table(problem.n_classes)
    n = int(table.n_components[y])
    nu = table.dense()[y, :n]
    projected = nu - nu.mean(axis=1, keepdims=True) if problem.machine.sum_to_zero else nu
    a = np.zeros((len(beta), problem.n_components))
    if np.linalg.matrix_rank(projected) == n:
        a[:, :n] = beta @ np.linalg.pinv(projected)
        return a
    simplex = problem.machine.bound is Bound.SIMPLEX
    for row, example in enumerate(members):
        cap = float(problem.cap[example])
        found = linprog(
            -table.target[y, :n],
            A_ub=np.ones((1, n)) if simplex and np.isfinite(cap) else None,
            b_ub=[cap] if simplex and np.isfinite(cap) else None,
            A_eq=projected.T,
            b_eq=beta[row],
            bounds=(0, None if simplex or not np.isfinite(cap) else cap),
        )
        if found.status == 0:
            a[row, :n] = found.x
        else:
            a[row, :n] = np.linalg.lstsq(projected.T, beta[row], rcond=None)[0]
    return a


def _snap(problem: DualProblem, amounts: FloatArray) -> FloatArray:
    """Put what is within rounding of a bound on the bound; sums of beta round at the level of their terms."""
    C, cap = problem.data.C[:, None], problem.cap[:, None]
    C = np.where(np.isfinite(C), C, 0.0)  # the hard margin has no upper bound to be close to
    rounding = BOUND_TOLERANCE * C + 4 * np.finfo(float).eps * np.abs(amounts).sum(axis=1, keepdims=True)
    snapped = np.where(np.abs(amounts) <= rounding, 0.0, amounts)
    if problem.machine.bound is Bound.BOX:
        snapped = np.where(np.abs(snapped - cap) <= rounding, cap, snapped)
    return snapped
