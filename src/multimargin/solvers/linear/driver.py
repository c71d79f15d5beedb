"""Solving linear machines: from a problem to certified dual variables, weights and bias."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property

import numpy as np

from multimargin._core import LinearData
from multimargin._typing import FloatArray
from multimargin.base.interrupts import poll
from multimargin.base.matrices import is_sparse
from multimargin.problems.binary_parts import separate
from multimargin.problems.coupling import coefficients
from multimargin.problems.machines import MACHINES
from multimargin.problems.problem import Bias, DualProblem, Loss
from multimargin.problems.zero_sums import balance, movable_support, movable_without_harm
from multimargin.solvers.certificate import Objectives, dual_gradient, evaluate
from multimargin.solvers.core import SolverState
from multimargin.solvers.effort import work_limit
from multimargin.solvers.linear.coordinate import budget, descend, newton_by_column
from multimargin.solvers.linear.core import LinearOptions, NewtonStart, linear_data
from multimargin.solvers.linear.near_start import approach
from multimargin.solvers.linear.newton import MultiplierMethod
from multimargin.solvers.linear.rounds import descend_with_bias
from multimargin.solvers.linear.systems import MOST_WEIGHTS
from multimargin.solvers.linear.task import BINARY, LinearTask, as_scores_sum
from multimargin.solvers.linear.types import (
    AUTO,
    DESCENT,
    NEWTON,
    LinearLimits,
    LinearPoint,
    LinearSeed,
    LinearSolution,
    Presolved,
)
from multimargin.solvers.monitor import FitMonitor, Watch
from multimargin.solvers.report import Progress, SolverReport, StopReason, report_without_kernel
from multimargin.solvers.separable import components_by_class

# The method aims below tol: balancing the sums of an exact bias and rounding take their share.
AIM = 0.8
MAX_ROUNDS = 6
REPORT_SECONDS = 0.05
EXTRA_STEPS = 60
# Newton's steps that a solve on few rows may take whatever they cost, and what each costs beside its arithmetic.
USUAL_STEPS = 400
NEWTON_OVERHEAD = 1e6
# Weights of a column with which the core's own Cholesky factor is as fast as LAPACK's.
MOST_WEIGHTS_OF_CORE = 800
# How many times more a descent may cost where there are more weights than that.
DEARER_WHEN_WIDE = 100.0


def solve_linear(
    problem: DualProblem,
    limits: LinearLimits,
    start: SolverState | None = None,
    watch: Watch[LinearPoint] | None = None,
) -> LinearSolution:
    """Solve a linear machine by its weights.

    Solves   the dual of ``problem``, whose kernel is linear with an offset, to a KKT violation of at most ``tol``.
    Given    a start that fits its examples and classes.
    Returns  a feasible solution whatever ended the work.
    See      newton.py.
    """
    return _Solve(problem, limits, start, watch).run()


def settle_linear(
    problem: DualProblem, limits: LinearLimits, found: Presolved, watch: Watch[LinearPoint] | None = None
) -> LinearSolution:
    """Return the solution of two classes that the core has found, after more steps where it is not good enough yet."""
    return _Solve(problem, limits, found.state, watch).run_from(found)


class _Solve:
    """One solve; ``amounts`` and ``bias`` are its current point, by columns of scores."""

    def __init__(
        self, problem: DualProblem, limits: LinearLimits, start: SolverState | None, watch: Watch[LinearPoint] | None
    ) -> None:
        self.problem, self.limits, self.monitor = problem, limits, FitMonitor(watch)
        self.began = time.perf_counter()
        self.last_report = -REPORT_SECONDS  # the first step reports
        data = problem.data
        in_place = np.array_equal(data.rows, np.arange(data.X.shape[0]))
        self.X = data.X if in_place else data.X[data.rows]
        self.separated = separate(problem)
        self.binary = self.separated is not None and self.separated.binary
        self.task = self._task(problem.n_classes - 1)
        self.n_columns = problem.n_classes if self.separated is None else len(self.separated.parts)
        self.amounts, self.bias = self._start(start)
        self.near = self._as_scores_sum(start) if isinstance(start, LinearSeed) else None
        self.open_columns: tuple[int, ...] = ()
        self.width = 1.0
        self.error: BaseException | None = None
        self.passes = self.n_newton = 0
        self.most_work = work_limit(problem.n_examples) if limits.solver == AUTO else float("inf")

    def _task(self, column: int) -> LinearTask:
        """The problem, or one of its columns where they are problems of their own."""
        problem = self.problem
        offset, free = problem.kernel.offset, problem.bias is Bias.EXACT
        y, C = problem.data.y, problem.data.C
        if self.separated is None:
            return LinearTask.of_machine(
                self.X, y, C, problem.machine, problem.n_classes, problem.loss, offset=offset, free_bias=free
            )
        own = (y == column).astype(np.int64)
        C = C if problem.loss is Loss.HINGE or problem.machine is MACHINES["ova"] else 2 * C
        return LinearTask(self.X, own, C, BINARY, 1, loss=problem.loss, offset=offset, free_bias=free)

    def _start(self, start: SolverState | None) -> tuple[FloatArray, FloatArray]:
        width = self.n_columns if self.separated is not None else self.problem.n_components
        if start is None:
            return np.zeros((self.problem.n_examples, width)), np.zeros(self.n_columns)
        bias = np.zeros(self.problem.n_classes) if start.bias is None else start.bias
        a = np.maximum(self._reduced(start.amounts), 0.0)
        cap = self.task.cap[:, None]
        if self.task.simplex:
            a = a * np.minimum(1.0, cap / np.maximum(a.sum(axis=1, keepdims=True), 1e-300))
        return np.minimum(a, cap), (bias[-1:] if self.binary else bias).copy()

    def _as_scores_sum(self, seed: LinearSeed) -> FloatArray:
        own = slice(1, None) if self.binary else slice(None)
        weights = seed.coef[own].T
        if not self.task.constant:
            return weights
        return np.concatenate([weights, seed.intercept[None, own] / self.task.constant])

    def _expand(self, amounts: FloatArray) -> FloatArray:
        """The machine's own variables: of two classes ova has two equal ones, of more the own class's first."""
        if self.binary:
            return np.repeat(amounts, self.problem.n_components, axis=1)
        if self.separated is None:
            return amounts
        own = np.empty_like(amounts)
        np.put_along_axis(own, self._places(), amounts, axis=1)
        return own

    def _reduced(self, amounts: FloatArray) -> FloatArray:
        """The variables by column of the machine's."""
        if self.separated is None:
            return amounts
        return amounts[:, :1] if self.binary else np.take_along_axis(amounts, self._places(), axis=1)

    def _places(self) -> np.ndarray:
        """Where ova keeps the variable of each class, (n_examples, n_classes)."""
        return components_by_class(self.problem.data.y, self.problem.n_classes)

    def _machine_bias(self) -> FloatArray | None:
        if not self.task.free_bias:
            return None
        return np.array([-self.bias[0], self.bias[0]]) if self.binary else self.task.centred(self.bias.copy())

    def run_from(self, found: Presolved) -> LinearSolution:
        if not found.begun:
            return self.run()
        self.passes, self.n_newton, self.width = found.passes, found.n_newton, found.width
        self.began -= found.seconds
        good = found.stop_reason is StopReason.CONVERGED
        point = self.settle(quick=not good)
        missed = good and point.numbers.violation > self.limits.tol
        if missed or found.stop_reason in (StopReason.UNFINISHED, StopReason.STALLED):
            return self._by_newton()
        return self._solution(found.stop_reason, point)

    def run(self) -> LinearSolution:
        if self.limits.solver != NEWTON and (self.wide or not self.task.free_bias):
            reason = self._descend()
            point = self.settle(quick=True)
            missed = reason is StopReason.CONVERGED and point.numbers.violation > self.limits.tol
            if self.limits.solver == DESCENT or not (missed or reason in (StopReason.UNFINISHED, StopReason.STALLED)):
                return self._solution(reason if not missed else StopReason.STALLED, point)
        return self._by_newton()

    def _by_newton(self) -> LinearSolution:
        tol = AIM * self.limits.tol
        for _ in range(MAX_ROUNDS):
            try:
                reason = self._advance(tol)
            except KeyboardInterrupt as interrupt:
                reason, self.error = StopReason.INTERRUPTED, interrupt
            point = self.settle(quick=reason is not StopReason.CONVERGED)
            if reason is not StopReason.CONVERGED or point.numbers.violation <= self.limits.tol:
                break
            tol *= 0.3
            reason = StopReason.STALLED
        return self._solution(reason, point)

    def _solution(self, reason: StopReason, point: LinearPoint) -> LinearSolution:
        if reason is not StopReason.INTERRUPTED and point.numbers.violation <= self.limits.tol:
            reason = StopReason.CONVERGED
            point = self._polished(point)
        way = [name for name, n in ((DESCENT, self.passes), (NEWTON, self.n_newton)) if n]
        return LinearSolution(point, self._report(reason, point.numbers), self.error, " and ".join(way) or NEWTON)

    @property
    def wide(self) -> bool:
        """Whether there are so many features that Newton's equations are dear."""
        if self.separated is None:
            return self.task.n_weights * self.n_columns > MOST_WEIGHTS
        return self.task.n_weights > MOST_WEIGHTS_OF_CORE

    @cached_property
    def _data(self) -> LinearData:
        return linear_data(self.problem.data.X)

    def _time_left(self) -> float:
        return max(1e-9, 0.95 * self.limits.max_time - (time.perf_counter() - self.began))

    def _descend(self) -> StopReason:
        """Coordinate steps, for "auto" no more of them than Newton's method would cost."""
        X = self.problem.data.X
        entries = X.nnz if is_sparse(X) else X.size
        auto = self.limits.solver == AUTO
        allowed = budget(self.problem, entries, self.task.n_columns, coupled=self.separated is None)
        options = LinearOptions(
            tol=AIM * self.limits.tol,
            max_passes=self.limits.max_iter,
            max_time=self._time_left(),
            max_cost=(DEARER_WHEN_WIDE if self.wide else 1.0) * allowed if auto else float("inf"),
        )
        if self.task.free_bias:
            return self._descend_with_bias(options)
        found = descend(self.problem, self.separated, options, self.amounts, self._inner(), self._data)
        self.error, self.passes, self.open_columns = found.error, found.passes, found.unfinished
        self.amounts = found.amounts
        return found.stop_reason

    def _descend_with_bias(self, options: LinearOptions) -> StopReason:
        bias = self._machine_bias()
        assert bias is not None
        start = (self._expand(self.amounts), bias)
        found = descend_with_bias(self.problem, options, start, self._inner(self._reduced), self._data)
        self.error, self.passes, self.amounts = found.error, found.passes, self._reduced(found.amounts)
        if found.bias is not None:
            self.bias = (found.bias[-1:] if self.binary else found.bias).copy()
        return found.stop_reason

    def _inner(self, read: Callable[[FloatArray], FloatArray] = lambda a: a) -> FitMonitor[FloatArray]:
        """The caller's monitor, given dual variables of which ``read`` makes those by column."""

        def point(amounts: FloatArray) -> LinearPoint:
            self.amounts = read(amounts)
            return self.settle(quick=True)

        return self.monitor.map(point)

    def _advance(self, tol: float, max_steps: int = -1) -> StopReason:
        """Newton's method from where it is, in at most so many steps (-1: no limit but that of the solve)."""
        near, self.near = self.near, None
        last = self.n_newton + max_steps if max_steps >= 0 else sys.maxsize
        if self.limits.max_iter >= 0:
            last = min(last, self.limits.max_iter - self.passes - 1)  # a method stops at the first step beyond
        if self.separated is None:
            return self._advance_task(slice(None), tol, last, near)
        wanted = self.open_columns or tuple(range(self.n_columns))
        self.open_columns = ()
        if not self.wide:
            return self._advance_in_core(wanted, tol, last, near)
        for c in wanted:
            own = slice(c, c + 1)
            reason = self._advance_task(own, tol, last, None if near is None else near[:, own])
            if reason not in (StopReason.CONVERGED, StopReason.STALLED):
                return reason
        return reason

    def _advance_task(self, own: slice, tol: float, last: int, near: FloatArray | None) -> StopReason:
        """The machine as a whole, or one column of it."""
        task = (
            self.task
            if self.separated is None
            else self._task(range(self.problem.n_classes)[-self.n_columns :][own][0])
        )
        method = MultiplierMethod(task, self.amounts[:, own], self.bias[own], width=self.width)
        before = self.n_newton

        def stop(n_newton: int, violation: float) -> StopReason | None:
            self.n_newton = before + n_newton
            self._take(method, own)
            if self.n_newton > USUAL_STEPS and self._newton_work() > self.most_work:
                return StopReason.STALLED
            return StopReason.MAX_ITER if self.n_newton > last else self._stop(violation)

        ended = None if near is None else approach(method, near, tol, stop)
        reason = method.run(tol, stop).stop_reason if ended is None else ended
        self.n_newton = before + method.n_newton
        self._take(method, own)
        self.width = method.relative_width if self.separated is None else self.width
        return reason

    def _newton_work(self) -> float:
        """Return the multiply-adds of Newton's steps: the matrix, its factor, and the passes in between."""
        n, size = self.problem.n_examples, self.task.n_weights * self.task.n_columns
        return self.n_newton * (NEWTON_OVERHEAD + n * size**2 + size**3 / 6)

    def _take(self, method: MultiplierMethod, own: slice) -> None:
        if self.separated is None:
            self.amounts = method.amounts
        else:
            self.amounts[:, own] = method.amounts
        if self.task.free_bias:
            self.bias[own] = method.weights[-1]

    def _advance_in_core(self, wanted: tuple[int, ...], tol: float, last: int, near: FloatArray | None) -> StopReason:
        assert self.separated is not None
        parts = self.separated.split(self.amounts)
        starts = {
            c: NewtonStart(parts[c], float(self.bias[c]), None if near is None else near[:, c], self.width)
            for c in wanted
        }
        limit = -1 if last == sys.maxsize else max(0, last - self.n_newton)
        options = LinearOptions(tol=tol, max_passes=limit, max_time=self._time_left())
        found = newton_by_column(self.separated, options, self.amounts, starts, self._inner(), self._data)
        self.amounts = found.amounts
        if found.bias is not None:
            self.bias[list(wanted)] = found.bias
        self.n_newton += found.passes
        self.width, self.error = found.width, self.error or found.error
        return found.stop_reason

    def _polished(self, point: LinearPoint) -> LinearPoint:
        """The point after some more steps, if they made it better; an interrupt finds it good enough."""
        if self.limits.extra_tol <= 0 or self.limits.max_iter >= 0:
            return point
        try:
            self._advance(self.limits.extra_tol, EXTRA_STEPS)
        except KeyboardInterrupt as interrupt:
            self.error = interrupt
            return point
        better = self.settle(quick=False)
        return better if better.numbers.violation < point.numbers.violation else point

    def settle(self, *, quick: bool) -> LinearPoint:
        """The point with sums that are exactly zero for an exact bias, its weights and its objectives."""
        problem, bias = self.problem, self._machine_bias()
        amounts = self._expand(self.amounts)
        weights, scores = self._scores(amounts)
        if bias is not None:
            gradient = dual_gradient(problem, amounts, scores + bias)
            harmless = movable_without_harm(problem, amounts, gradient, 0.5 * self.limits.tol)
            balanced = balance(problem, amounts, harmless, 50)
            if balanced is None and quick:
                balanced = balance(problem, amounts, movable_support(amounts), 200)
            amounts = balanced if balanced is not None else np.zeros_like(amounts) if quick else amounts
            weights, scores = self._scores(amounts)
        numbers = evaluate(problem, amounts, scores, bias)
        if bias is not None and balanced is None and not quick:
            numbers = replace(numbers, violation=np.inf)
        return LinearPoint(SolverState(amounts, scores, problem.n_classes, bias), weights, numbers)

    def _scores(self, amounts: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Weights X' beta, (n_features, n_classes), and the scores with a regularised bias."""
        problem = self.problem
        beta = coefficients(problem.machine, amounts, problem.data.y, problem.n_classes)
        weights = as_scores_sum(problem.machine, np.asarray(self.X.T @ beta, dtype=np.float64))
        constant = as_scores_sum(problem.machine, problem.kernel.offset * beta.sum(axis=0))
        return weights, np.asarray(self.X @ weights) + constant

    def _stop(self, violation: float) -> StopReason | None:
        poll()
        seconds = time.perf_counter() - self.began
        if seconds > 0.95 * self.limits.max_time:
            return StopReason.MAX_TIME
        if self.monitor.active and seconds - self.last_report >= REPORT_SECONDS:
            self.last_report = seconds
            if self.monitor(self._progress(seconds, violation), lambda: self.settle(quick=True)):
                return StopReason.CALLBACK
        return None

    def _progress(self, seconds: float, violation: float) -> Progress:
        used = int(self.amounts.any(axis=1).sum())
        return Progress(self.n_newton, seconds, violation, np.nan, np.nan, self.problem.n_examples, used, 0, 0)

    def _report(self, reason: StopReason, numbers: Objectives) -> SolverReport:
        return report_without_kernel(
            reason,
            self.passes + self.n_newton,
            time.perf_counter() - self.began,
            numbers.violation,
            (numbers.dual, numbers.primal),
        )
