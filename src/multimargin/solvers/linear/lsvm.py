"""LSVM, the Lagrangian iteration of MM01 for the linear binary machine with squared hinge loss (KCSL04 (5.2)).

With Q = HH' + D the optimum is the fixed point of Q a = e + ((Q a - e) - s a)_+ for every s > 0. Iterating that
converges linearly while s is below twice the smallest eigenvalue of Q, from any start. MM01 takes s = 1.9/nu, here
1.9/(2C). One C per example is the same in variables scaled by sqrt(2C), where D is the identity: s = 1.9/(2C_i).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from multimargin._typing import FloatArray
from multimargin.solvers.linear.squared_hinge import (
    LinearSolution,
    SquaredHinge,
    Task,
    drive,
    stopping_gap,
)
from multimargin.solvers.monitor import Watch
from multimargin.solvers.options import SolverOptions

STEP = 1.9  # of 1/(2C); every value below 2 converges
SMALL = 0.01  # of tol: amounts closer to 0 count as 0 in KCSL04's rule for LSVM
PATIENCE = 100  # iterations whose steps do not become shorter, which only rounding explains


def solve_lsvm(
    problem: SquaredHinge,
    options: SolverOptions,
    start: ArrayLike | None = None,
    watch: Watch[FloatArray] | None = None,
    *,
    tol_times_C: bool = False,
) -> LinearSolution:
    """Solve the linear binary machine with squared hinge loss and a regularised bias by LSVM.

    Solves   KCSL04 (5.2) until the rule of appendix C for LSVM, with 0 counted on both sides, and the KKT violation of
             the clipped point are at most ``options.tol``; with ``tol_times_C`` that times the smallest C (appendix D).
    Given    ``SquaredHinge.of(X, y, C)``; of ``options`` tol and limits count; a start, which is clipped at 0.
    Returns  a LinearSolution at the last iterate clipped at 0, on which all reported numbers are computed; LSVM's own
             iterates may have small negative entries. One iteration is one multiplication by the inverse of Q.
    See      MM01.
    """
    return drive(Task.of(problem, options, start, tol_times_C=tol_times_C), _Lagrangian, watch)


class _Lagrangian:
    """Where LSVM stands: u and Q u, replaced together."""

    def __init__(self, problem: SquaredHinge, start: FloatArray | None) -> None:
        self.problem = problem
        self.step = STEP / (2 * problem.C)
        self.inverse = problem.inverse()
        image = np.ones(problem.n_examples) if start is None else problem.gradient(start) + 1.0
        self.point = (self.inverse(image) if start is None else start, image)
        self.shortest, self.impatience = np.inf, 0

    @property
    def amounts(self) -> FloatArray:
        """u without its negative entries and those that the iteration drives to 0, however small they are by now."""
        u, image = self.point
        return np.where(image - 1.0 > self.step * u, 0.0, np.maximum(u, 0.0))

    def is_done(self, tol: float) -> bool:
        u, image = self.point
        small = SMALL * tol
        if u.min() < -small or stopping_gap(image - 1.0, u > small) > tol:
            return False
        return self.problem.judge(self.amounts).violation <= tol

    def advance(self) -> bool:
        u, image = self.point
        following = 1.0 + np.maximum(image - 1.0 - self.step * u, 0.0)
        # In the norm in which the iteration contracts every step is shorter than the one before.
        length = float(np.linalg.norm((following - image) * np.sqrt(2 * self.problem.C)))
        self.impatience = 0 if length < self.shortest else self.impatience + 1
        self.shortest = min(self.shortest, length)
        if length == 0 or self.impatience >= PATIENCE:
            return False
        self.point = (self.inverse(following), following)
        return True
