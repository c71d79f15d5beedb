"""The multiplier method with a semismooth Newton method inside: linear machines at a cost that does not grow with C.

Coordinate steps on the dual need a number of passes that grows like C. The proximal point method on the dual,

    max_a  D(a) - sum_i |a_i - a_k,i|^2 / (2 sigma_i),

has the primal problem min_W phi(W), convex with a continuous, piecewise linear gradient W - X' beta(a(W)); a(W) is a
projection of each example's variables. Newton's method solves it in some five to ten steps, each a linear
system of the weights to which only examples with free variables contribute (systems.py). sigma grows from one such
problem to the next, and a handful of them reach any tolerance, whatever C. An exact bias is regularised about its last
value, which is the same method for the constraint sum_i beta_i = 0.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from multimargin._typing import FloatArray
from multimargin.base.resources import n_threads
from multimargin.solvers.linear.systems import Equations, scale_of, score_metric
from multimargin.solvers.linear.task import LinearTask
from multimargin.solvers.report import StopReason

# sigma_i = width * C_i: a margin short by 1 / width takes a variable from 0 to C. In the first problem no variable is
# at its bound where all scores are zero, so that its first step is a least squares fit of all margins.
FIRST_WIDTH = 0.5  # in units of 1 / target
GROWTH = 4.0
MOST_WIDTH = 1e12
MAX_OUTER = 60
MAX_NEWTON = 60
# An inner problem that took no more Newton steps than this is followed by a wider one.
EASY = 20
# One that took so few and left twice the violation, though a small one, while b stood still, shows rounding.
ROUNDED_STEPS, ROUNDED_VIOLATION = 2, 0.1
# An inner problem is solved to this share of the distance that its multipliers went.
INNER_SHARE = 0.1
# Damping by a share of sum_i sigma_i x_i x_i', the curvature if all examples were free: a bound on changes of scores.
LEAST_DAMPING, MOST_DAMPING = 1e-6, 1.0
SHORT, LONG = 0.1, 0.5
# An exact bias may go rho times the sum of its coefficients away from its last value; it has arrived when it went no
# further than this share of tol.
FIRST_RHO, MOST_RHO = 10.0, 1e10
SHIFT_SHARE = 0.1


@dataclass(frozen=True, eq=False)
class NewtonResult:
    """The last point: a, weights (n_weights, n_columns) = X' beta(a) but for an exact bias, which is its last row."""

    amounts: FloatArray
    weights: FloatArray
    violation: float
    n_newton: int
    stop_reason: StopReason


# Called after each Newton step with the number of steps and the last violation; a reason stops the method.
Stop = Callable[[int, float], StopReason | None]


class MultiplierMethod:
    """One run; ``weights`` and ``amounts`` are its current point."""

    def __init__(
        self,
        task: LinearTask,
        amounts: FloatArray | None = None,
        bias: FloatArray | None = None,
        given: FloatArray | None = None,
        width: float = 1.0,
    ) -> None:
        self.task = task
        self.given = 0.0 if given is None else given  # what examples that rest add to the weights
        shape = (task.n_examples, task.table.class1.shape[1])
        self.amounts = np.zeros(shape) if amounts is None else amounts.copy()
        self.weights = self.given + task.gather(task.coefficients(self.amounts))
        self.center = np.zeros(task.n_columns) if bias is None else bias.copy()
        if task.free_bias:
            self.weights[-1] = self.center
        self.rho = FIRST_RHO
        self.width = self.first_width * width
        self.most_width = MOST_WIDTH
        self.damping = 0.0
        self.n_newton = 0
        self.violation = self.shift = np.inf

    def run(self, tol: float, stop: Stop) -> NewtonResult:
        reason = StopReason.STALLED
        for _ in range(MAX_OUTER):
            before, last = self.n_newton, (self.violation, self.shift)
            ended, solved = self._minimize(stop)
            if ended is None and not solved:  # too little of it is smooth: a narrower problem from the same multipliers
                self.width /= GROWTH**2
                continue
            self.violation, self.shift = self._take_multipliers()
            good = self.violation <= tol and self.shift <= self._negligible_shift(tol)
            if ended is not None or good:
                reason = StopReason.CONVERGED if good else ended or reason
                break
            if self.n_newton - before <= EASY:
                self._widen(tol, last, self.n_newton - before)
        return NewtonResult(self.amounts, self.weights, self.violation, self.n_newton, reason)

    def _widen(self, tol: float, last: tuple[float, float], steps: int) -> None:
        """Prepare the next problem after one that was easy: wider, unless progress is fast as it is.

        A wide step turns the rounding of scores into sigma times as much of a dual variable, and of sums into rho times
        as much of b: where that has made the violation larger, the width has been too large.
        """
        violation, shift = (0.0 if np.isinf(value) else value for value in last)
        if self.shift > max(shift / GROWTH, self._negligible_shift(tol)):
            self.rho = min(MOST_RHO, GROWTH * self.rho)
        worse = 2 * violation <= self.violation < ROUNDED_VIOLATION and self.shift <= SHIFT_SHARE * self.violation
        rounded = worse and steps <= ROUNDED_STEPS
        self.most_width = max(self.first_width, self.width / GROWTH**2) if rounded else 2 * self.most_width
        if self.violation > max(violation / GROWTH, tol):
            self.width = GROWTH * self.width
        self.width = min(self.most_width, self.width)

    def _negligible_shift(self, tol: float) -> float:
        """Return what b may still move: the sums left, shift / rho, go off examples, by |x|^2 in their scores."""
        return SHIFT_SHARE * tol * min(1.0, self.rho / max(self.task.largest_square, 1e-300))

    @property
    def first_width(self) -> float:
        return FIRST_WIDTH / float(self.task.table.target.max())

    @property
    def relative_width(self) -> float:
        """Of the last problem, in units of the first."""
        return self.width / self.first_width

    @cached_property
    def metric(self) -> FloatArray:
        return score_metric(self.task, scale_of(self.task))

    def _regularization(self) -> FloatArray:
        regularization = np.ones(self.task.n_weights)
        if self.task.free_bias:
            regularization[-1] = 1.0 / self.rho
        return regularization

    def _slope(self, weights: FloatArray, regularization: FloatArray) -> FloatArray:
        slope = regularization[:, None] * weights - self.given
        if self.task.free_bias:
            slope[-1] -= self.center / self.rho
        return slope

    def _minimize(self, stop: Stop) -> tuple[StopReason | None, bool]:
        """Newton's method on phi; a reason to stop, if there is one, and whether it got there."""
        task, regularization = self.task, self._regularization()
        scores = task.scores(self.weights)
        for _ in range(MAX_NEWTON):
            point, beta, moved = task.passes.step(scores, self.amounts, self.width, n_threads())
            gradient = self._slope(self.weights, regularization) - task.gather(beta)
            if self._good_enough(gradient, regularization, moved):
                return None, True
            self.n_newton += 1
            reason = stop(self.n_newton, self.violation)
            if reason is not None:
                return reason, False
            damping = self.damping * self.width * self.metric if self.damping else None
            direction = Equations(task, point, self.width, regularization, damping).solve(-gradient)
            direction = task.centred(direction)
            change = task.scores(direction)
            length = self._length(scores, change, direction, regularization)
            if length == 0.0:  # as far as rounding lets it come
                return None, True
            self._adapt_damping(length)
            self.weights = task.centred(self.weights + length * direction)
            scores = scores + length * change
        return None, False

    def _adapt_damping(self, length: float) -> None:
        """More of it after a step that had to be cut short, less after one that had not."""
        if length < SHORT:
            self.damping = min(MOST_DAMPING, max(LEAST_DAMPING, 10 * self.damping))
        elif length > LONG:
            self.damping = 0.25 * self.damping if self.damping > LEAST_DAMPING else 0.0

    def _good_enough(self, gradient: FloatArray, regularization: FloatArray, moved: float) -> bool:
        """Return whether what is left of phi, by its strong convexity, is a share of the proximal distance."""
        left = float(np.sum(gradient**2 / regularization[:, None]))
        if self.task.free_bias:
            moved += float(np.sum((self.weights[-1] - self.center) ** 2)) / self.rho
        return left <= max(INNER_SHARE**2 * moved, 1e-24)

    def _length(
        self, scores: FloatArray, change: FloatArray, direction: FloatArray, regularization: FloatArray
    ) -> float:
        """Return how far to go: where phi's slope has nearly vanished."""
        linear = float(np.vdot(self._slope(self.weights, regularization), direction))
        square = float(np.sum(regularization[:, None] * direction**2))
        line = (scores, np.ascontiguousarray(change), self.amounts)
        return self.task.passes.length(line, self.width, linear, square, n_threads())

    def _take_multipliers(self) -> tuple[float, float]:
        """a <- a(W), the center of b <- b; the true violation there, and how far b went."""
        task = self.task
        self.amounts, beta, _ = task.passes.step(task.scores(self.weights), self.amounts, self.width, n_threads())
        weights = self.given + task.gather(beta)
        shift = 0.0
        if task.free_bias:
            weights[-1] = self.weights[-1]
            shift = float(np.abs(self.weights[-1] - self.center).max())
            self.center = self.weights[-1].copy()
        return task.violation(self.amounts, task.targets - task.margins(task.scores(weights))), shift


def stop_after(max_newton: int, max_time: float) -> Stop:
    """Return a function that stops by these limits."""
    began = time.perf_counter()

    def stop(n_newton: int, violation: float) -> StopReason | None:
        if 0 <= max_newton < n_newton:
            return StopReason.MAX_ITER
        return StopReason.MAX_TIME if time.perf_counter() - began > max_time else None

    return stop
