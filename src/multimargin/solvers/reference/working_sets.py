"""The solvers of the literature that choose a few variables, in plain NumPy beside the papers; see algorithms.py.

HL02 section III takes q variables of a machine with a box, IGEL two of a binary machine with an exact bias.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from multimargin._typing import FloatArray, IntArray
from multimargin.problems.problem import DualProblem, Loss
from multimargin.solvers.reference.algorithms import (
    CURVATURE_FLOOR,
    DenseDual,
    ReferenceSolution,
    densify,
    snap,
    two_variable_step,
    violations,
)

INNER_TOL = 1e-13  # of the largest gradient: the optimum of a working set, but for rounding
INNER_STEPS = 10_000
PAIR_CHOICES = ("most-violating-pair", "maximum-gain")


def working_set(g: FloatArray, a: FloatArray, cap: FloatArray, q: int) -> IntArray:
    """Return q variables: half of them free ones with the largest v, the others with the smallest v: HL02 section III.

    Our g is minus the gradient of HL02's f. Of equal ones the first are taken, and none is taken twice.
    """
    free = (a > 0) & (a < cap)
    v = np.where(a == 0, np.minimum(-g, 0), np.where(a == cap, -np.maximum(-g, 0), -np.abs(g)))
    from_above = [n for n in np.argsort(-v, kind="stable") if free[n]][: q // 2]
    from_below = [n for n in np.argsort(v, kind="stable") if n not in from_above][: q - len(from_above)]
    return np.array(sorted(from_above + from_below), dtype=np.int64)


def working_set_step(dual: DenseDual, g: FloatArray, a: FloatArray, q: int) -> FloatArray:
    """Move q variables to their joint optimum, the others fixed: HL02 (12)."""
    cap = dual.cap[dual.example]
    B = working_set(g, a, cap, q)
    Q = dual.Q[np.ix_(B, B)]
    few = replace(dual, example=dual.example[B], component=dual.component[B], v=g[B] + Q @ a[B], Q=Q)
    moved = a.copy()
    for _ in range(INNER_STEPS):
        slope = few.gradient(moved[B])
        uphill = np.where(moved[B] < cap[B], slope, 0.0), np.where(moved[B] > 0, -slope, 0.0)
        if np.max(uphill) <= INNER_TOL * np.abs(g).max():
            break
        moved[B] = snap(few, two_variable_step(few, slope, moved[B]))
    return snap(dual, moved)


def solve_by_working_sets(
    problem: DualProblem, q: int = 10, tol: float = 1e-6, max_iter: int = 100_000, start: FloatArray | None = None
) -> ReferenceSolution:
    """Solve a problem with a box, q variables at a time, from ``start`` (n_examples, n_components) or from zero."""
    dual = densify(problem)
    if dual.simplex:
        raise ValueError(f"The machine {problem.machine.name!r} has a simplex; use solve_reference.")
    a = np.zeros(len(dual.v)) if start is None else dual.flatten(start)
    n_steps = 0
    while (found := max(violations(dual, dual.gradient(a), a))) > tol and n_steps < max_iter:
        a = working_set_step(dual, dual.gradient(a), a, q)
        n_steps += 1
    amounts = np.zeros((problem.n_examples, problem.n_components))
    amounts[dual.example, dual.component] = a
    return ReferenceSolution(amounts, n_steps, found <= tol)


@dataclass(frozen=True, eq=False)
class BinaryDual:
    """Maximise sum a - (ya)'K(ya)/2 under 0 <= a <= cap and y'a = 0; K holds the squared hinge's curvature."""

    K: FloatArray
    y: FloatArray
    cap: FloatArray

    @classmethod
    def of(cls, K: FloatArray, y: FloatArray, C: FloatArray, loss: Loss) -> BinaryDual:
        if loss is Loss.SQUARED_HINGE:
            return cls(K + np.diag(0.5 / C), y, np.full(len(C), np.inf))
        return cls(K, y, C)

    def slopes(self, a: FloatArray) -> FloatArray:
        """Return y_k g_k: how the dual grows with y_k a_k."""
        slopes: FloatArray = self.y - self.K @ (self.y * a)
        return slopes

    def may_rise(self, a: FloatArray) -> IntArray:
        """Return I_up: those whose y_k a_k may grow."""
        return np.flatnonzero(np.where(self.y > 0, a < self.cap, a > 0))

    def may_fall(self, a: FloatArray) -> IntArray:
        """Return I_down."""
        return np.flatnonzero(np.where(self.y > 0, a > 0, a < self.cap))

    def curvature(self, i: int, j: int) -> float:
        return max(float(self.K[i, i] + self.K[j, j] - 2 * self.K[i, j]), CURVATURE_FLOOR)


def choose_pair(dual: BinaryDual, a: FloatArray, choice: str) -> tuple[int, int, float]:
    """Return the two variables to move and how much the most violating pair violates: IGEL, working set selection."""
    slope, up, down = dual.slopes(a), dual.may_rise(a), dual.may_fall(a)
    i, lowest = int(up[np.argmax(slope[up])]), int(down[np.argmin(slope[down])])
    violation = float(slope[i] - slope[lowest])
    if choice == "most-violating-pair":
        return i, lowest, violation
    gains = [max(0.0, slope[i] - slope[j]) ** 2 / dual.curvature(i, int(j)) for j in down]
    return i, int(down[np.argmax(gains)]), violation


def solve_by_pairs(
    dual: BinaryDual, choice: str, tol: float = 1e-6, max_iter: int = 100_000, start: FloatArray | None = None
) -> ReferenceSolution:
    """Solve a binary problem with an exact bias by pairs of variables, from a feasible point or from zero: IGEL."""
    if choice not in PAIR_CHOICES:
        raise ValueError(f"choice={choice!r} is not allowed; choose one of {', '.join(map(repr, PAIR_CHOICES))}.")
    a = np.zeros(len(dual.y)) if start is None else start.copy()
    n_steps = 0
    while True:
        i, j, violation = choose_pair(dual, a, choice)
        if violation <= tol or n_steps >= max_iter:
            return ReferenceSolution(a, n_steps, violation <= tol)
        slope = dual.slopes(a)
        room_i = dual.cap[i] - a[i] if dual.y[i] > 0 else a[i]
        room_j = a[j] if dual.y[j] > 0 else dual.cap[j] - a[j]
        step = min((slope[i] - slope[j]) / dual.curvature(i, j), room_i, room_j)
        for k, direction, room in ((i, 1.0, room_i), (j, -1.0, room_j)):
            end = dual.cap[k] if direction * dual.y[k] > 0 else 0.0
            a[k] = end if step == room else a[k] + direction * dual.y[k] * step
        n_steps += 1
