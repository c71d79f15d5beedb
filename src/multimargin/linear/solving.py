"""Solving linear machines: from a problem to certified dual variables, weights and bias."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from multimargin.balance import balance, movable_support, movable_without_harm
from multimargin.certificate import Objectives, dual_gradient, evaluate
from multimargin.coupling import coefficients
from multimargin.linear.descending import budget, descend
from multimargin.linear.newton import MultiplierMethod
from multimargin.linear.reduced import approach
from multimargin.linear.task import BINARY, LinearTask, one_versus_all
from multimargin.linear_core import LinearOptions
from multimargin.machines import MACHINES, FloatArray
from multimargin.matrices import is_sparse
from multimargin.one_vs_all import components_by_class
from multimargin.problem import Bias, DualProblem, Loss
from multimargin.solver import Progress, SolverReport, SolverState, StopReason

# The method aims below tol: balancing the sums of an exact bias and rounding take their share.
AIM = 0.8
AUTO, NEWTON, DESCENT = "auto", "newton", "descent"
# The multipliers that a descent leaves are worth a narrower first problem.
WIDER = 8.0
MAX_ROUNDS = 6
REPORT_SECONDS = 0.05
EXTRA_STEPS = 60


@dataclass(frozen=True)
class LinearLimits:
    """What ends a solve, and how it goes.

    ``tol`` bounds the KKT violation, ``max_iter`` the passes of a descent and Newton's steps (-1: no limit).
    """

    tol: float
    max_iter: int = -1
    max_time: float = float("inf")
    extra_tol: float = 0.0  # where tol is reached, go on towards this one for a while
    solver: str = AUTO


@dataclass(frozen=True, eq=False)
class LinearPoint:
    """A feasible point: dual variables with scores and bias, weights (n_features, n_classes), objectives."""

    state: SolverState
    weights: FloatArray
    numbers: Objectives


@dataclass(frozen=True, eq=False)
class LinearSolution:
    """The point that a solve returns, what it spent, and the exception that ended it, if one did."""

    point: LinearPoint
    report: SolverReport
    error: BaseException | None
    solver: str


@dataclass(frozen=True, eq=False)
class LinearSeed(SolverState):
    """A start from a near problem (another C, other rows) with its weights, which are near, too.

    ``coef`` is (n_classes, n_features), ``intercept`` (n_classes,).
    """

    coef: FloatArray = field(default_factory=lambda: np.zeros((0, 0)))
    intercept: FloatArray = field(default_factory=lambda: np.zeros(0))


# Called about every 50 ms with the progress and a function that returns the current point; True stops.
LinearWatch = Callable[[Progress, Callable[[], LinearPoint]], bool]


def solve_linear(
    problem: DualProblem, limits: LinearLimits, start: SolverState | None = None, watch: LinearWatch | None = None
) -> LinearSolution:
    """Solve a linear machine by its weights.

    Solves   the dual of ``problem``, whose kernel is linear with an offset, to a KKT violation of at most ``tol``.
    Given    a start that fits its examples and classes.
    Returns  a feasible solution whatever ended the work.
    See      newton.py.
    """
    return _Solve(problem, limits, start, watch).run()


class _Solve:
    def __init__(
        self, problem: DualProblem, limits: LinearLimits, start: SolverState | None, watch: LinearWatch | None
    ) -> None:
        self.problem, self.limits, self.watch = problem, limits, watch
        self.began = time.perf_counter()
        self.last_report = 0.0
        data = problem.data
        whole = len(data.rows) == data.X.shape[0]
        self.X = data.X if whole else data.X[data.rows]
        self.binary = problem.n_classes == 2 and problem.machine in (MACHINES["ova"], MACHINES["ww"])
        self.by_class = not self.binary and problem.machine is MACHINES["ova"]
        self.task = self._task()
        amounts = None if start is None else self._feasible(start.amounts)
        bias = None if start is None or start.bias is None else start.bias[-1:] if self.binary else start.bias
        self.method = MultiplierMethod(self.task, amounts, bias)
        self.near = self._weights_of(start) if isinstance(start, LinearSeed) else None
        self.error: BaseException | None = None
        self.passes = 0

    def _task(self) -> LinearTask:
        """The problem on one column where two classes need no more."""
        problem = self.problem
        offset, free = problem.kernel.offset, problem.bias is Bias.EXACT
        y, C = problem.data.y, problem.data.C
        if self.binary:
            C = C if problem.loss is Loss.HINGE or problem.machine is MACHINES["ova"] else 2 * C
            return LinearTask(self.X, y, C, BINARY, 1, loss=problem.loss, offset=offset, free_bias=free)
        if self.by_class:
            table = one_versus_all(problem.n_classes)
            return LinearTask(self.X, y, C, table, problem.n_classes, loss=problem.loss, offset=offset, free_bias=free)
        return LinearTask.of_machine(
            self.X, y, C, problem.machine, problem.n_classes, problem.loss, offset=offset, free_bias=free
        )

    def _feasible(self, amounts: FloatArray) -> FloatArray:
        a = np.maximum(self._reduced(amounts), 0.0)
        cap = self.task.cap[:, None]
        if not self.task.simplex:
            return np.minimum(a, cap)
        total = a.sum(axis=1, keepdims=True)
        return np.asarray(a * np.minimum(1.0, cap / np.maximum(total, 1e-300)))

    def _weights_of(self, seed: LinearSeed) -> FloatArray:
        own = slice(1, None) if self.binary else slice(None)
        weights = seed.coef[own].T
        if not self.task.constant:
            return weights
        return np.concatenate([weights, seed.intercept[None, own] / self.task.constant])

    def _expand(self, amounts: FloatArray) -> FloatArray:
        """The machine's own variables: of two classes ova has two equal ones, of more the own class's first."""
        if self.binary:
            return np.repeat(amounts, self.problem.n_components, axis=1)
        if not self.by_class:
            return amounts
        own = np.empty_like(amounts)
        np.put_along_axis(own, self._places(), amounts, axis=1)
        return own

    def _places(self) -> np.ndarray:
        """Where ova keeps the variable of each class, (n_examples, n_classes)."""
        return components_by_class(self.problem.data.y, self.problem.n_classes)

    def _bias(self) -> FloatArray | None:
        if not self.task.free_bias:
            return None
        b = self.method.weights[-1]
        return np.array([-b[0], b[0]]) if self.binary else b

    def run(self) -> LinearSolution:
        tol, reason = AIM * self.limits.tol, StopReason.STALLED
        point = self._settle(quick=True)
        if self.limits.solver != NEWTON and not self.task.free_bias:
            reason = self._descend()
            point = self._settle(quick=True)
            missed = reason is StopReason.CONVERGED and point.numbers.violation > self.limits.tol
            if self.limits.solver == DESCENT or not (missed or reason in (StopReason.UNFINISHED, StopReason.STALLED)):
                return self._solution(reason if not missed else StopReason.STALLED, point)
            self.method.width *= WIDER
        for _ in range(MAX_ROUNDS):
            try:
                reason = self._advance(tol)
            except KeyboardInterrupt as interrupt:
                reason, self.error = StopReason.INTERRUPTED, interrupt
            point = self._settle(quick=reason is not StopReason.CONVERGED)
            if reason is not StopReason.CONVERGED or point.numbers.violation <= self.limits.tol:
                break
            tol *= 0.3
            reason = StopReason.STALLED
        return self._solution(reason, point)

    def _solution(self, reason: StopReason, point: LinearPoint) -> LinearSolution:
        if reason is not StopReason.INTERRUPTED and point.numbers.violation <= self.limits.tol:
            reason = StopReason.CONVERGED
            point = self._polished(point)
        way = [name for name, n in ((DESCENT, self.passes), (NEWTON, self.method.n_newton)) if n]
        return LinearSolution(point, self._report(reason, point.numbers), self.error, " and ".join(way) or NEWTON)

    def _descend(self) -> StopReason:
        """Coordinate steps, for "auto" no more of them than Newton's method would cost."""
        X = self.problem.data.X
        entries = X.nnz if is_sparse(X) else X.size
        columns = 1 if self.task.separable else self.task.n_columns
        auto = self.limits.solver == AUTO
        options = LinearOptions(
            tol=AIM * self.limits.tol,
            max_passes=self.limits.max_iter,
            max_time=max(1e-9, 0.95 * self.limits.max_time - (time.perf_counter() - self.began)),
            max_cost=budget(self.problem, entries, columns) if auto else float("inf"),
        )

        def told(progress: Progress, amounts: Callable[[], FloatArray]) -> bool:
            def point() -> LinearPoint:
                self.method.amounts = self._reduced(amounts())
                return self._settle(quick=True)

            return self.watch is not None and self.watch(progress, point)

        start = self._expand(self.method.amounts)
        found = descend(self.problem, options, start, None if self.watch is None else told)
        self.error, self.passes = found.error, found.passes
        self.method = MultiplierMethod(self.task, self._reduced(found.amounts))
        return found.stop_reason

    def _reduced(self, amounts: FloatArray) -> FloatArray:
        """The task's variables of the machine's."""
        if self.by_class:
            return np.take_along_axis(amounts, self._places(), axis=1)
        return amounts[:, :1] if self.binary else amounts

    def _advance(self, tol: float) -> StopReason:
        near, self.near = self.near, None
        ended = None if near is None else approach(self.method, near, tol, self._stop)
        return self.method.run(tol, self._stop).stop_reason if ended is None else ended

    def _polished(self, point: LinearPoint) -> LinearPoint:
        """The point after some more steps, if they made it better; an interrupt finds it good enough."""
        if self.limits.extra_tol <= 0 or self.limits.max_iter >= 0:
            return point
        last = self.method.n_newton + EXTRA_STEPS
        try:
            self.method.run(
                self.limits.extra_tol,
                lambda n, violation: StopReason.MAX_ITER if n > last else self._stop(n, violation),
            )
        except KeyboardInterrupt as interrupt:
            self.error = interrupt
            return point
        better = self._settle(quick=False)
        return better if better.numbers.violation < point.numbers.violation else point

    def _settle(self, *, quick: bool) -> LinearPoint:
        """The point with sums that are exactly zero for an exact bias, its weights and its objectives."""
        problem, bias = self.problem, self._bias()
        amounts = self._expand(self.method.amounts)
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
        weights = np.asarray(self.X.T @ beta, dtype=np.float64)
        return weights, np.asarray(self.X @ weights) + problem.kernel.offset * beta.sum(axis=0)

    def _stop(self, n_newton: int, violation: float) -> StopReason | None:
        seconds = time.perf_counter() - self.began
        if 0 <= self.limits.max_iter < self.passes + n_newton:
            return StopReason.MAX_ITER
        if seconds > 0.95 * self.limits.max_time:
            return StopReason.MAX_TIME
        if self.watch is not None and seconds - self.last_report >= REPORT_SECONDS:
            self.last_report = seconds
            if self.watch(self._progress(n_newton, seconds, violation), lambda: self._settle(quick=True)):
                return StopReason.CALLBACK
        return None

    def _progress(self, n_newton: int, seconds: float, violation: float) -> Progress:
        used = int(self.method.amounts.any(axis=1).sum())
        return Progress(n_newton, seconds, violation, np.nan, np.nan, self.task.n_examples, used, 0, 0)

    def _report(self, reason: StopReason, numbers: Objectives) -> SolverReport:
        return SolverReport(
            stop_reason=reason,
            n_iter=self.passes + self.method.n_newton,
            seconds=time.perf_counter() - self.began,
            violation=numbers.violation,
            dual=numbers.dual,
            primal=numbers.primal,
            kernel_rows=0,
            cache_hits=0,
            verified=True,
            float64_rows=True,
            phases={},
        )
