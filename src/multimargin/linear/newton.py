"""The multiplier method with a semismooth Newton method inside: linear machines at a cost that does not grow with C.

Coordinate steps on the dual need a number of passes that grows like C. The proximal point method on the dual,

    max_a  D(a) - sum_i |a_i - a_k,i|^2 / (2 sigma_i),

has the primal problem min_W phi(W), convex with a continuous, piecewise linear gradient W - X' beta(a(W)); a(W) is a
projection of each example's variables (proximal.py). Newton's method solves it in some five to ten steps, each a linear
system of the weights to which only examples with free variables contribute (systems.py). sigma grows from one such
problem to the next, and a handful of them reach any tolerance, whatever C. An exact bias is regularised about its last
value, which is the same method for the constraint sum_i beta_i = 0.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from multimargin.linear import proximal
from multimargin.linear.systems import Equations, score_metric
from multimargin.linear.task import LinearTask
from multimargin.machines import FloatArray
from multimargin.solver import StopReason

# sigma_i = width * C_i: a margin short by 1 / width takes a variable from 0 to C. In the first problem no variable is
# at its bound where all scores are zero, so that its first step is a least squares fit of all margins.
FIRST_WIDTH = 0.5  # in units of 1 / target
GROWTH = 4.0
MOST_WIDTH = 1e12
MAX_OUTER = 60
MAX_NEWTON = 60
# An inner problem that took no more Newton steps than this is followed by a wider one.
EASY = 20
# An inner problem is solved to this share of the change of scores that its multipliers ask for.
INNER_SHARE = 0.1
# A step length is good enough when it leaves this share of the slope.
SLOPE_SHARE = 1e-3
MAX_LENGTHS = 25
# Damping by a share of sum_i sigma_i x_i x_i', the curvature if all examples were free: a bound on changes of scores.
LEAST_DAMPING, MOST_DAMPING = 1e-6, 1.0
SHORT, LONG = 0.1, 0.5
# An exact bias may go rho times the sum of its coefficients away from its last value; it has arrived when it went no
# further than this share of tol.
FIRST_RHO, MOST_RHO = 10.0, 1e10
SHIFT_SHARE = 0.01


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
        self.scale = np.where(np.isfinite(task.C), task.C, 1.0)
        self.width = FIRST_WIDTH / float(task.table.target.max())
        self.damping = 0.0
        self.metric = score_metric(task, self.scale)
        self.n_newton = 0
        self.violation = np.inf

    def run(self, tol: float, stop: Stop) -> NewtonResult:
        reason = StopReason.STALLED
        for _ in range(MAX_OUTER):
            before = self.n_newton
            ended, solved = self._minimize(stop)
            if ended is None and not solved:  # too little of it is smooth: a narrower problem from the same multipliers
                self.width /= GROWTH**2
                continue
            self.violation, shift = self._take_multipliers()
            good = self.violation <= tol and shift <= SHIFT_SHARE * tol
            if ended is not None or good:
                reason = StopReason.CONVERGED if good else ended or reason
                break
            if self.n_newton - before <= EASY:
                self.width = min(MOST_WIDTH, GROWTH * self.width)
                self.rho = min(MOST_RHO, GROWTH * self.rho)
        return NewtonResult(self.amounts, self.weights, self.violation, self.n_newton, reason)

    @property
    def sigma(self) -> FloatArray:
        return self.width * self.scale

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
        task, sigma, regularization = self.task, self.sigma, self._regularization()
        v = self.amounts + sigma[:, None] * (task.targets - task.margins(task.scores(self.weights)))
        for _ in range(MAX_NEWTON):
            point = proximal.step_with_slope(task, v, sigma)
            gradient = self._slope(self.weights, regularization) - task.gather(task.coefficients(point.amounts))
            if self._good_enough(point.amounts, gradient):
                return None, True
            self.n_newton += 1
            reason = stop(self.n_newton, self.violation)
            if reason is not None:
                return reason, False
            equations = Equations.at(task, point, sigma, regularization).damped(self.damping, self.width * self.metric)
            direction = equations.solve(-gradient)
            if task.sum_to_zero:  # as they do but for rounding
                direction -= direction.mean(axis=1, keepdims=True)
            change = sigma[:, None] * task.margins(task.scores(direction))
            length = self._length(v, change, direction, regularization)
            if not np.any(length):  # as far as rounding lets it come
                return None, True
            self._adapt_damping(float(length.min()))
            self.weights = self.weights + length * direction
            v = self.amounts + sigma[:, None] * (task.targets - task.margins(task.scores(self.weights)))
        return None, False

    def _adapt_damping(self, length: float) -> None:
        """More of it after a step that had to be cut short, less after one that had not."""
        if length < SHORT:
            self.damping = min(MOST_DAMPING, max(LEAST_DAMPING, 10 * self.damping))
        elif length > LONG:
            self.damping = 0.25 * self.damping if self.damping > LEAST_DAMPING else 0.0

    def _good_enough(self, amounts: FloatArray, gradient: FloatArray) -> bool:
        moved = np.abs(amounts - self.amounts) / self.sigma[:, None]
        return float(np.linalg.norm(gradient)) <= max(INNER_SHARE * float(np.linalg.norm(moved)), 1e-12)

    def _length(
        self, v: FloatArray, change: FloatArray, direction: FloatArray, regularization: FloatArray
    ) -> FloatArray:
        """Return how far to go, one number or one for each separable column: where phi's slope has nearly vanished."""
        task, sigma = self.task, self.sigma[:, None]
        together = (lambda x: x) if task.separable else (lambda x: np.array([x.sum()]))
        linear = together((self._slope(self.weights, regularization) * direction).sum(axis=0))
        square = together((regularization[:, None] * direction**2).sum(axis=0))
        apart = task.separable and task.n_columns > 1
        columns = task.table.class1[task.y]
        margin_change = change / sigma
        squares = change * margin_change

        def by_column(a: FloatArray, b: FloatArray) -> FloatArray:
            if not apart:
                return np.array([np.vdot(a, b)])
            if task.aligned:
                return np.asarray(np.einsum("ic,ic->c", a, b))
            sums = np.bincount(columns.ravel(), weights=(a * b).ravel(), minlength=task.n_columns)
            return sums.astype(np.float64)

        def slope_and_curvature(t: FloatArray) -> tuple[FloatArray, FloatArray]:
            length = t if task.aligned else t[columns] if apart else t[0]
            point = proximal.step_with_slope(task, v - length * change, self.sigma)
            slope = linear + t * square - by_column(point.amounts, margin_change)
            curvature = by_column(point.slope, squares)
            if point.share is not None:
                held = (point.slope * margin_change).sum(axis=1)
                curvature = curvature - float(np.sum(self.sigma * point.share * held**2))
            return slope, square + curvature

        return find_root(slope_and_curvature, len(linear))

    def _take_multipliers(self) -> tuple[float, float]:
        """a <- a(W), the center of b <- b; the true violation there, and how far b went."""
        task = self.task
        scores = task.scores(self.weights)
        self.amounts = proximal.step(
            task, self.amounts + self.sigma[:, None] * (task.targets - task.margins(scores)), self.sigma
        )
        weights = self.given + task.gather(task.coefficients(self.amounts))
        shift = 0.0
        if task.free_bias:
            weights[-1] = self.weights[-1]
            shift = float(np.abs(self.weights[-1] - self.center).max())
            self.center = self.weights[-1].copy()
        return task.violation(self.amounts, task.targets - task.margins(task.scores(weights))), shift


def find_root(function: Callable[[FloatArray], tuple[FloatArray, FloatArray]], n: int) -> FloatArray:
    """Return for each of n entries a t > 0 at which a nondecreasing function, negative at 0, has nearly vanished.

    Newton's method from t = 1, kept within what is known of the root.
    """
    at_zero, _ = function(np.zeros(n))
    low, high = np.zeros(n), np.full(n, np.inf)
    wanted = SLOPE_SHARE * np.abs(at_zero)
    t = np.where(at_zero < 0, 1.0, 0.0)
    for _ in range(MAX_LENGTHS):
        value, slope = function(t)
        done = (np.abs(value) <= wanted) | (at_zero >= 0)
        if done.all():
            break
        low, high = np.where(value < 0, t, low), np.where(value >= 0, t, high)
        with np.errstate(over="ignore"):
            newton = t - value / np.maximum(slope, 1e-300)
        open_ended = np.isinf(high)
        middle = 0.5 * (low + np.where(open_ended, 4 * np.maximum(low, 1e-3), high))
        following = np.where((newton > low) & (newton < high), newton, middle)
        t = np.where(done, t, np.where(open_ended, np.minimum(following, 16 * np.maximum(low, 1e-3)), following))
    return t


def stop_after(max_newton: int, max_time: float) -> Stop:
    """Return a function that stops by these limits."""
    began = time.perf_counter()

    def stop(n_newton: int, violation: float) -> StopReason | None:
        if 0 <= max_newton < n_newton:
            return StopReason.MAX_ITER
        return StopReason.MAX_TIME if time.perf_counter() - began > max_time else None

    return stop
