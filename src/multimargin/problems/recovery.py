"""The dual variables of a model that keeps only its coefficients.

Per example: the feasible a with Pi nu' a = beta and the largest sum t a. For every published machine a is unique,
except along one direction (ats, rm, atm) that changes no score. Where the dual does not change along it either
(rm), and for the squared hinge, the point with the smaller KKT violation is taken, given the scores.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import linprog

from multimargin._typing import FloatArray
from multimargin.problems.coupling import coefficients, margins
from multimargin.problems.machines import Bound
from multimargin.problems.problem import Bias, DualProblem, Loss
from multimargin.problems.zero_sums import is_balanced

# A variable within this share of C_i of a bound counts as at it.
BOUND_TOLERANCE = 1e-12
# Allowed rounding between coefficients and feasible dual variables, as a share of C_i or of sum_p a_ip.
FEASIBILITY_TOLERANCE = 1e-10
# The same for sum_i beta_ic, which an exact bias makes zero, as a share of sum_i |beta_ic|; and for sum_c b_c.
SUMS_TOLERANCE = 1e-9


def recover_amounts(problem: DualProblem, beta: FloatArray, scores: FloatArray | None = None) -> FloatArray:
    """Return a, shape (n_examples, n_components), from beta and scores, both (n_examples, n_classes)."""
    gradient = np.zeros((problem.n_examples, problem.n_components))
    if scores is not None:
        gradient = problem.targets - margins(problem.machine, scores, problem.data.y)
    amounts = np.zeros((problem.n_examples, problem.n_components))
    for y in range(problem.n_classes):
        members = np.flatnonzero(problem.data.y == y)
        if problem.structure.structured:
            amounts[members] = _recover_structured(problem, beta[members], gradient[members], members, y)
        else:
            amounts[members] = _recover_unstructured(problem, beta[members], gradient[members], members, y)
    return _snap(problem, amounts)


def _recover_structured(
    problem: DualProblem, beta: FloatArray, gradient: FloatArray, members: np.ndarray, y: int
) -> FloatArray:
    table, structure = problem.machine.table(problem.n_classes), problem.structure
    n = int(table.n_components[y])
    private, value = structure.private_class[y, :n], structure.private_value[y, :n]
    # beta_c = (raw coefficient of class c) - shift, and the private class of a component holds value * a alone
    a = np.zeros((len(beta), problem.n_components))
    a[:, :n] = beta[:, private] / value
    per_shift = 1.0 / value  # what a unit of shift adds to each a
    _class1, value1, class2, value2 = table.of_class(y)
    row_sum = value1 + np.where(class2 >= 0, value2, 0.0)
    if not (problem.machine.sum_to_zero and np.any(row_sum != 0)):
        return a
    untouched = np.setdiff1d(np.arange(problem.n_classes), private)
    if len(untouched):  # a class without a component has raw coefficient 0
        shift = -beta[:, untouched].mean(axis=1)
    else:
        shift = _best_shift(_Line(problem, a[:, :n], per_shift, members, y), gradient[:, :n])
    a[:, :n] += shift[:, None] * per_shift
    return a


class _Line:
    """The points a + shift * direction of the examples of one class, and how far they are feasible."""

    def __init__(self, problem: DualProblem, a: FloatArray, direction: FloatArray, members: np.ndarray, y: int) -> None:
        self.problem, self.a, self.direction = problem, a, direction
        C = problem.data.C[members]
        self.C = np.where(np.isfinite(C), C, 0.0)  # 0 for the hard margin: nothing bounds it, nothing is charged
        self.cap = problem.cap[members]
        self.simplex = problem.machine.bound is Bound.SIMPLEX
        self.target_slope = float(problem.machine.table(problem.n_classes).target[y, : a.shape[1]] @ direction)
        self.sum_slope = float(direction.sum())
        rising, moving = direction > 0, direction != 0
        with np.errstate(divide="ignore", invalid="ignore"):
            at_zero, at_cap = -a / direction, (self.cap[:, None] - a) / direction
        self.lowest = np.where(rising, at_zero, at_cap).max(axis=1, where=moving, initial=-np.inf)
        self.highest = np.where(rising, at_cap, at_zero).min(axis=1, where=moving, initial=np.inf)
        if self.simplex and self.sum_slope != 0:
            room = (self.cap - a.sum(axis=1)) / self.sum_slope
            if self.sum_slope > 0:
                self.highest = np.minimum(self.highest, room)
            else:
                self.lowest = np.maximum(self.lowest, room)

    def near(self, a: FloatArray) -> FloatArray:
        """Distance to a bound below which a variable counts as at it: at most that of ``_snap``.

        Otherwise the violation would be computed for a variable at its bound that is not moved there in the end.
        """
        sums = np.abs(a).sum(axis=1)
        return _near_zero(self.C[:, None], sums[:, None], sums[:, None])

    def end_violations(self, gradient: FloatArray, at_lowest: bool) -> FloatArray:
        """The largest |gradient|, except of components at the bound they push against at this end of the line."""
        shift = self.lowest if at_lowest else self.highest
        a = self.a + shift[:, None] * self.direction
        near = self.near(a)
        at_zero, at_cap = a <= near, a >= self.cap[:, None] - near
        cost = np.where(at_zero, np.maximum(gradient, 0), np.where(at_cap, np.maximum(-gradient, 0), np.abs(gradient)))
        return np.asarray(cost.max(axis=1))


def _best_shift(line: _Line, gradient: FloatArray) -> FloatArray:
    """The shift that leaves a feasible and is best for the dual, one scalar per example."""
    bend = 0.0
    if line.problem.loss is Loss.SQUARED_HINGE and (line.C > 0).all():
        bend = line.sum_slope**2 if line.simplex else float(line.direction @ line.direction)
    if bend > 0:  # a parabola: minus a^2/(4C) each, or minus (sum a)^2/(4C)
        pull = line.sum_slope * line.a.sum(axis=1) if line.simplex else line.a @ line.direction
        peak = (2 * line.C * line.target_slope - pull) / bend
        if gradient.any():  # all zero: the scores are not known
            return _least_violating(line, peak, gradient)
    elif abs(line.target_slope) > 1e-12:
        peak = np.sign(line.target_slope) * np.inf
    else:
        better = line.end_violations(gradient, True) <= line.end_violations(gradient, False)
        peak = np.where(better, -np.inf, np.inf)
    feasible = np.maximum(line.lowest, np.minimum(peak, line.highest))
    shift: FloatArray = np.where(np.isfinite(feasible), feasible, line.lowest)
    return shift


def _least_violating(line: _Line, peak: FloatArray, gradient: FloatArray) -> FloatArray:
    """The shift of the smallest KKT violation for the squared hinge, which subtracts a / (2C) from the gradient.

    Inside the line that is where the largest and smallest gradient have equal size; at its ends a component may drop
    out. The point of the largest dual alone can have a larger violation than the trained one.
    """
    C, a = line.C[:, None], line.a
    if line.simplex:
        vanish = (2 * C * gradient - a.sum(axis=1, keepdims=True)) / line.sum_slope
    else:
        moving = line.direction != 0
        vanish = (2 * C * gradient - a)[:, moving] / line.direction[moving]
    evenly = (vanish.max(axis=1) + vanish.min(axis=1)) / 2
    best, least = np.zeros(len(peak)), np.full(len(peak), np.inf)
    for wanted in (peak, evenly, line.lowest, line.highest):
        shift = np.maximum(line.lowest, np.minimum(wanted, line.highest))
        finite = np.isfinite(shift)
        a = line.a + np.where(finite, shift, 0.0)[:, None] * line.direction
        g = gradient - (a.sum(axis=1, keepdims=True) if line.simplex else a) / (2 * C)
        held = a > line.near(a)
        rise, fall = g.max(axis=1, initial=0.0), -np.where(held, g, 0.0).min(axis=1, initial=0.0)
        found = rise + fall if line.simplex else np.maximum(rise, fall)
        better = finite & (found < least)
        best, least = np.where(better, shift, best), np.where(better, found, least)
    return best


def _recover_unstructured(
    problem: DualProblem, beta: FloatArray, gradient: FloatArray, members: np.ndarray, y: int
) -> FloatArray:
    """For a user-defined machine without the usual structure: a point, the best of a line, or a linear program each.

    The program leaves out what the squared hinge charges, so that it can miss the best a of such a machine.
    """
    table = problem.machine.table(problem.n_classes)
    n = int(table.n_components[y])
    nu = table.dense()[y, :n]
    projected = nu - nu.mean(axis=1, keepdims=True) if problem.machine.sum_to_zero else nu
    a = np.zeros((len(beta), problem.n_components))
    free = n - int(np.linalg.matrix_rank(projected))
    if free <= 1:
        a[:, :n] = beta @ np.linalg.pinv(projected)
        if free == 1:
            direction = np.linalg.svd(projected.T)[2][-1]  # the one that changes no coefficient
            direction[np.abs(direction) < 1e-12] = 0.0
            shift = _best_shift(_Line(problem, a[:, :n], direction, members, y), gradient[:, :n])
            a[:, :n] += shift[:, None] * direction
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


def _near_zero(C: FloatArray, sums: FloatArray, largest: FloatArray | float) -> FloatArray:
    """Largest rounding error of a variable that is zero, from C and the sums of its example's variables.

    ``largest`` bounds the share of C, because C may be much larger than all variables of the model.
    """
    return np.asarray(BOUND_TOLERANCE * np.minimum(C, largest) + 4 * np.finfo(float).eps * sums)


def _snap(problem: DualProblem, amounts: FloatArray) -> FloatArray:
    """Move variables within rounding of a bound onto the bound; sums of beta round at the level of their terms."""
    C, cap = problem.data.C[:, None], problem.cap[:, None]
    C = np.where(np.isfinite(C), C, 0.0)  # the hard margin has no upper bound to be close to
    sums = np.abs(amounts).sum(axis=1, keepdims=True)
    rounding = BOUND_TOLERANCE * C + 4 * np.finfo(float).eps * sums
    near_zero = _near_zero(C, sums, sums.max(initial=0.0))
    snapped = np.where(np.abs(amounts) <= near_zero, 0.0, amounts)
    if problem.machine.bound is Bound.BOX:
        return np.where(np.abs(snapped - cap) <= rounding, cap, snapped)
    total = snapped.sum(axis=1, keepdims=True)
    # Before small variables became 0, because that may change the sum by more than rounding.
    full = (np.abs(amounts.sum(axis=1, keepdims=True) - cap) <= rounding) & (total > 0.0)
    return np.where(full, snapped * np.divide(cap, total, out=np.ones_like(total), where=full), snapped)


def is_feasible(problem: DualProblem, amounts: FloatArray, beta: FloatArray, bias: FloatArray | None = None) -> bool:
    """Return whether the dual variables give these coefficients and keep within their bounds, and b is the machine's.

    Where scores sum to zero, so does b: the primal of any other may be below the optimum.
    """
    C = np.where(np.isfinite(problem.data.C), problem.data.C, 0.0)
    allowed = FEASIBILITY_TOLERANCE * (C + np.abs(amounts).sum(axis=1))[:, None]
    used = amounts.sum(axis=1, keepdims=True) if problem.machine.bound is Bound.SIMPLEX else amounts
    if problem.bias is Bias.EXACT and not is_balanced(beta, SUMS_TOLERANCE):
        return False
    if bias is not None and problem.machine.sum_to_zero and abs(bias.sum()) > SUMS_TOLERANCE * np.abs(bias).sum():
        return False
    within = (amounts >= -allowed).all() and (used <= problem.cap[:, None] + allowed).all()
    if not (np.isfinite(amounts).all() and np.isfinite(beta).all()):
        return False
    again = coefficients(problem.machine, amounts, problem.data.y, problem.n_classes)
    return bool(within and (np.abs(again - beta) <= allowed).all())
