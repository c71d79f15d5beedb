"""ASVM, the active set method of MM00 for the linear binary machine with squared hinge loss (KCSL04 (5.2)).

On the face of the positive variables the minimum is one linear system of n_features + 1 unknowns. Where it has negative
entries they go to 0, so that the face shrinks; where it has none, the variables with negative gradient come in. No face
is minimised twice, so that the method ends after finitely many iterations.
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


def solve_asvm(
    problem: SquaredHinge,
    options: SolverOptions,
    start: ArrayLike | None = None,
    watch: Watch[FloatArray] | None = None,
    *,
    tol_times_C: bool = False,
) -> LinearSolution:
    """Solve the linear binary machine with squared hinge loss and a regularised bias by ASVM.

    Solves   KCSL04 (5.2) until (C.3), with 0 counted on both sides, and with it the KKT violation, is at most
             ``options.tol``; with ``tol_times_C`` that times the smallest C (appendix D).
    Given    ``SquaredHinge.of(X, y, C)``; of ``options`` tol and limits count; a start, which is clipped at 0.
    Returns  a LinearSolution, feasible whatever ended the solve; one iteration is one linear system.
    See      MM00.
    """
    return drive(Task.of(problem, options, start, tol_times_C=tol_times_C), _ActiveSet, watch)


class _ActiveSet:
    """Where ASVM stands: a and the gradient there, replaced together."""

    def __init__(self, problem: SquaredHinge, start: FloatArray | None) -> None:
        self.problem = problem
        a = np.zeros(problem.n_examples) if start is None else start
        self.point = (a, problem.gradient(a))
        self.untouched = start is None
        self.at_minimum = not a.any()  # of the face of the positive variables; 0 is that of the empty face
        self.faces: set[int] = set()

    @property
    def amounts(self) -> FloatArray:
        return self.point[0]

    def is_done(self, tol: float) -> bool:
        a, gradient = self.point
        return stopping_gap(gradient, a > 0) <= tol

    def advance(self) -> bool:
        problem = self.problem
        if self.untouched:
            self.untouched = False
            # MM00 begins with the unconstrained minimum; it is a guess, and 0 may be better.
            guess = np.maximum(problem.inverse()(np.ones(problem.n_examples)), 0.0)
            if self._move_if_lower(guess):
                return True
        if self.at_minimum and not self._leave_face():
            return False
        members = self.amounts > 0
        minimum = problem.inverse(members)(np.ones(problem.n_examples))
        if (minimum >= 0).all():
            face = hash(members.tobytes())
            if face in self.faces:  # only rounding leads back to a face
                return False
            self.faces.add(face)
            self.at_minimum = True
            self.point = (minimum, problem.gradient(minimum))
        elif not self._move_if_lower(np.maximum(minimum, 0.0)):
            self._move_to(_first_bound(self.amounts, minimum))
        return True

    def _move_if_lower(self, a: FloatArray) -> bool:
        """Go to a where f is lower there; f is quadratic, so that its change is a mean of two slopes."""
        before, slope = self.point
        gradient = self.problem.gradient(a)
        if 0.5 * float((a - before) @ (slope + gradient)) >= 0:
            return False
        self.at_minimum = False
        self.point = (a, gradient)
        return True

    def _move_to(self, a: FloatArray) -> None:
        self.at_minimum = False
        self.point = (a, self.problem.gradient(a))

    def _leave_face(self) -> bool:
        """Step along the projected gradient, as far as f falls: the variables that violate become positive."""
        a, gradient = self.point
        direction = np.maximum(a - gradient, 0.0) - a
        slope = float(gradient @ direction)
        bend = float(direction @ (self.problem.gradient(direction) + 1.0))
        if slope >= 0 or bend <= 0:
            return False
        self._move_to(np.maximum(a + min(1.0, -slope / bend) * direction, 0.0))
        return True


def _first_bound(a: FloatArray, goal: FloatArray) -> FloatArray:
    """Return the point of the way from a > 0 to the goal, where the first variable reaches 0."""
    falling = np.flatnonzero(goal < 0)
    shares = a[falling] / (a[falling] - goal[falling])
    share = shares.min()
    moved = a + share * (goal - a)
    moved[falling[shares == share]] = 0.0
    result: FloatArray = np.maximum(moved, 0.0)
    return result
