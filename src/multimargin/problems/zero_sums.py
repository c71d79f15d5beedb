"""Projection of dual variables onto coefficients that sum to zero in every class: feasibility with an exact bias.

A variable is an edge of a flow on the classes, and zero sums mean that the flow is conserved. In general no single
variable and no pair can restore that. The nearest feasible point is a projection with one multiplier for each class.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from multimargin._typing import BoolArray, FloatArray
from multimargin.problems.coupling import coefficients, places_of_classes
from multimargin.problems.machines import Bound, ComponentTable
from multimargin.problems.problem import DualProblem
from multimargin.problems.separate_sums import ACCEPTED, NEGLIGIBLE, TINY, Groups, balance_groups

# After this many projections without halving the sums, rounding is assumed to dominate; Newton's method needs few.
STUCK = 40


@dataclass
class Account:
    """Cost of balancing: one projection is a NumPy pass over all variables."""

    projections: int = 0


@dataclass(frozen=True, eq=False)
class Movable:
    """Which variables (n_examples, n_components) may change, and in which examples (simplex) their sum must stay."""

    variables: BoolArray
    keep_sum: BoolArray


def imbalance(problem: DualProblem, amounts: FloatArray) -> tuple[FloatArray, float]:
    """Return sum_i beta_ic, shape (n_classes,), and the largest sum_i |beta_ic|."""
    beta = coefficients(problem.machine, amounts, problem.data.y, problem.n_classes)
    return beta.sum(axis=0), _mass(beta)


def is_balanced(beta: FloatArray, share: float) -> bool:
    """Whether the sums of coefficients (n_examples, n_classes) are zero, to a share of what they are sums of."""
    return bool(np.abs(beta.sum(axis=0)).max() <= share * _mass(beta))


def _mass(beta: FloatArray) -> float:
    return float(np.abs(beta).sum(axis=0).max())


def movable_support(amounts: FloatArray) -> Movable:
    """Every variable above zero: the sums can always be balanced, at worst by a = 0, without new support vectors."""
    return Movable(amounts > 0, np.zeros(len(amounts), dtype=np.bool_))


def movable_without_harm(problem: DualProblem, amounts: FloatArray, gradient: FloatArray, tol: float) -> Movable:
    """Variables whose change violates no KKT condition by more than ``tol``: free ones, and those of no gradient."""
    cap = problem.cap[:, None]
    if problem.machine.bound is Bound.BOX:
        free = (amounts > 0) & (amounts < cap)
        return Movable(problem.mask & (free | (np.abs(gradient) <= tol)), np.zeros(len(amounts), dtype=np.bool_))
    # The slack is one more component, of gradient 0: HL02 (21).
    top = np.where(problem.mask, gradient, 0.0).max(axis=1, initial=0.0)
    full = amounts.sum(axis=1) >= problem.cap * (1 - 1e-12)
    return Movable(problem.mask & ((amounts > 0) | (top[:, None] - gradient <= tol)), full & (top > tol))


def balance(
    problem: DualProblem,
    amounts: FloatArray,
    movable: Movable,
    max_steps: int = 50,
    account: Account | None = None,
) -> FloatArray | None:
    r"""Return the nearest amounts within the bounds with sum_i beta_ic = 0, or None where there are none.

    Solves   min :math:`\frac12 \sum (a' - a)^2 / C` under the bounds and the sums, over the movable variables.
    Given    amounts within the bounds.
    Returns  a' = P(a + C nu lambda), P the projection onto the bounds, by Newton's method on the multipliers lambda:
             the sums of beta(a') are the gradient of a convex, piecewise quadratic function of them.
             Where each variable is about one class alone, each sum by itself: separate_sums.py.
    """
    account = Account() if account is None else account
    if _is_separate(problem):
        account.projections += 1
        return _balance_columns(problem, amounts, movable)
    projection = _Projection(problem, amounts, movable, account)
    multipliers = np.zeros(problem.n_classes)
    point = projection.at(multipliers)
    best, since_best = np.inf, 0  # the sums that were last halved, and the projections since
    for _ in range(max_steps):
        size = float(np.abs(point.sums).max())
        if size <= 0.5 * best:
            best, since_best = size, projection.account.projections
        elif projection.account.projections - since_best > STUCK:
            break
        if size <= NEGLIGIBLE * point.mass:
            return point.amounts
        if not movable.variables.any():
            break
        direction = -np.linalg.solve(point.curvature() + projection.floor * np.eye(problem.n_classes), point.sums)
        share, slope = 1.0, float(point.sums @ direction)
        for _ in range(50):
            found = projection.at(multipliers + share * direction)
            if found.value <= point.value + 1e-4 * share * slope or np.abs(found.sums).max() < 0.5 * size:
                break
            share /= 2
        else:
            break
        multipliers, point = multipliers + share * direction, found
    return point.amounts if np.abs(point.sums).max() <= ACCEPTED * point.mass else None


def _is_separate(problem: DualProblem) -> bool:
    """Whether every example has one variable for each class, which is in the sum of no other class."""
    machine, table = problem.machine, problem.machine.table(problem.n_classes)
    if machine.sum_to_zero or machine.bound is not Bound.BOX:
        return False
    return places_of_classes(machine, problem.n_classes) is not None and bool((np.abs(table.value1) == 1.0).all())


def _balance_columns(problem: DualProblem, amounts: FloatArray, movable: Movable) -> FloatArray | None:
    table, y, n = problem.machine.table(problem.n_classes), problem.data.y, problem.n_examples
    places = places_of_classes(problem.machine, problem.n_classes)
    assert places is not None
    own = places[y]

    def by_class(values: np.ndarray) -> np.ndarray:
        return np.take_along_axis(values, own, axis=1).T.ravel()

    C, n_classes = problem.data.C, problem.n_classes
    groups = Groups(
        by_class(table.value1[y]),
        np.tile(np.where(np.isfinite(C), C, 1.0), n_classes),
        np.tile(problem.cap, n_classes),
        n * np.arange(n_classes),
    )
    found, balanced = balance_groups(groups, by_class(amounts), by_class(movable.variables))
    if not balanced.all():
        return None
    result = np.empty_like(amounts)
    np.put_along_axis(result, own, found.reshape(n_classes, n).T, axis=1)
    return result


@dataclass(frozen=True, eq=False)
class _Point:
    """The projection for given multipliers: a', its sums and their mass, the function and how to get its curvature."""

    amounts: FloatArray
    sums: FloatArray
    mass: float
    value: float
    curvature: Callable[[], FloatArray]  # expensive, and not needed at the last point


class _Projection:
    """a'(lambda) = P(a + C nu lambda), and the convex function whose gradient is sum_i beta_i(a')."""

    def __init__(self, problem: DualProblem, amounts: FloatArray, movable: Movable, account: Account) -> None:
        self.problem, self.start, self.movable, self.account = problem, amounts, movable, account
        self.table = problem.machine.table(problem.n_classes)
        self.y = problem.data.y
        C = problem.data.C
        self.weight = np.where(np.isfinite(C), C, 1.0)  # so that a doubled weight is a repeated row

    @cached_property
    def floor(self) -> float:
        """Added to curvatures so that they are not singular."""
        whole = self._curvature(self.movable.variables)
        return max(1e-9 * float(np.abs(np.diag(whole)).max()), float(np.finfo(float).tiny))

    def at(self, multipliers: FloatArray) -> _Point:
        self.account.projections += 1
        if self.problem.machine.sum_to_zero:
            multipliers = multipliers - multipliers.mean()
        step = self.weight[:, None] * self.table.margins(multipliers)[self.y]
        wanted = np.where(self.movable.variables, self.start + step, self.start)
        if self.problem.machine.bound is Bound.BOX:
            amounts = np.clip(wanted, 0.0, self.problem.cap[:, None])
            inside, tight = self.movable.variables & (wanted == amounts), None
        else:
            amounts, inside, tight = self._onto_simplex(wanted)
        amounts[amounts <= TINY * self.weight[:, None]] = 0.0
        beta = coefficients(self.problem.machine, amounts, self.y, self.problem.n_classes)
        sums = beta.sum(axis=0)
        distance = float(np.sum((amounts - self.start) ** 2 / self.weight[:, None]))

        def curvature() -> FloatArray:
            whole = self._curvature(inside)
            return whole if tight is None else whole - self._held_by_sum(inside, tight)

        return _Point(amounts, sums, _mass(beta), float(multipliers @ sums) - 0.5 * distance, curvature)

    def _onto_simplex(self, wanted: FloatArray) -> tuple[FloatArray, BoolArray, BoolArray]:
        """The nearest amounts, which of them are free, and in which examples their sum is held."""
        movable = self.movable.variables
        room = self.problem.cap - np.where(movable, 0.0, self.start).sum(axis=1)
        values = np.where(movable, wanted, -np.inf)
        ordered = -np.sort(-values, axis=1)
        counted = np.arange(1, values.shape[1] + 1)
        with np.errstate(invalid="ignore"):
            levels = (np.cumsum(ordered, axis=1) - np.where(np.isfinite(room), room, 0.0)[:, None]) / counted
            # The last entry that stays above the level it would set together with those before it.
            above = np.isfinite(ordered) & (ordered > levels)
        last = np.where(above.any(axis=1), above.shape[1] - 1 - np.argmax(above[:, ::-1], axis=1), 0)
        level = levels[np.arange(len(values)), last]
        tight = movable.any(axis=1) & np.isfinite(room) & ((level > 0) | self.movable.keep_sum)
        level = np.where(tight, level, 0.0)[:, None]
        amounts = np.where(movable, np.maximum(wanted - level, 0.0), self.start)
        return amounts, movable & (wanted > level), tight

    def _curvature(self, inside: BoolArray) -> FloatArray:
        """sum C_i nu nu' over the variables inside, a class and component at a time."""
        weight = np.zeros(self.table.class1.shape)
        for p in range(self.problem.n_components):
            weight[:, p] = np.bincount(self.y, weights=self.weight * inside[:, p], minlength=len(weight))
        return self._projected(_weighted_products(self.table, weight))

    def _held_by_sum(self, inside: BoolArray, tight: BoolArray) -> FloatArray:
        """Reduction of the curvature by a fixed sum: C_i (sum_p nu)(sum_p nu)' / n over the n variables inside."""
        count = inside.sum(axis=1)
        held = tight & (count > 0)
        total = coefficients(self.problem.machine, inside.astype(np.float64), self.y, self.problem.n_classes)[held]
        result: FloatArray = (total * (self.weight[held] / count[held])[:, None]).T @ total
        return result

    def _projected(self, matrix: FloatArray) -> FloatArray:
        if not self.problem.machine.sum_to_zero:
            return matrix
        matrix = matrix - matrix.mean(axis=0)
        return np.asarray(matrix - matrix.mean(axis=1, keepdims=True))


def _weighted_products(table: ComponentTable, weight: FloatArray) -> FloatArray:
    """sum_yp weight_yp nu_yp nu_yp', from the one or two entries of each row of nu."""
    d = table.n_classes
    two = table.class2 >= 0
    first, second = table.class1[two], table.class2[two]
    diagonal = np.bincount(table.class1.ravel(), (weight * table.value1**2).ravel(), minlength=d)
    diagonal += np.bincount(second, (weight * table.value2**2)[two], minlength=d)
    both = (weight * table.value1 * table.value2)[two]
    once = np.bincount(first * d + second, both, minlength=d * d).reshape(d, d)
    result: FloatArray = np.asarray(once + once.T, dtype=np.float64)
    result[np.arange(d), np.arange(d)] += diagonal
    return result
