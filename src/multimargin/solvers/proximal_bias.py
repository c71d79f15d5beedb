"""Solving with an exact (unregularised) bias: rounds of the proximal point method on b, each step by the core.

bias_step.py has the method. At the end the sums, small by then, are made zero.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np

from multimargin._typing import FloatArray
from multimargin.base.interrupts import allowed
from multimargin.problems.coupling import coefficients
from multimargin.problems.problem import Bias, DualProblem
from multimargin.problems.separate_sums import NEGLIGIBLE
from multimargin.problems.zero_sums import Account, balance, imbalance, movable_support, movable_without_harm
from multimargin.solvers.bias_step import FIRST_RHO, FIRST_TOL, TOL_FACTOR, BiasStep, growth_of_rho
from multimargin.solvers.certificate import Objectives, dual_gradient, evaluate
from multimargin.solvers.core import InnerSolve, Solution, SolverState, StateWatch, check_start, run_core
from multimargin.solvers.monitor import FitMonitor
from multimargin.solvers.options import SolverOptions
from multimargin.solvers.report import Progress, SolverReport, StopReason, add_phases
from multimargin.solvers.separable import with_mirror_image
from multimargin.solvers.trace import Trace, TraceBuilder, count_variables

# Small problems are one block for the active set, which does not mind.
FIRST_RHO_SMALL = 10.0
# The last rounds leave room for what making the sums zero changes.
LAST_TOL = 0.85
MAX_ROUNDS = 100
# A small problem goes on beyond tol for at most so many rounds that do not halve the violation.
PATIENCE = 2
# Multiply-adds of a pass over the kernel that still is no wait after Ctrl-C.
QUICK_PASS = 2e7
SAMPLE = 64
# What a projection of ``balance`` costs in multiply-adds: its numpy calls, and its passes over each variable.
PROJECTION, PROJECTION_PASSES = 4e5, 30.0
ROUNDING = 1e-16


def solve_by_bias_rule(
    problem: DualProblem,
    options: SolverOptions,
    start: SolverState | None = None,
    watch: StateWatch = None,
    inner: InnerSolve | None = None,
) -> Solution:
    """Solve the problem by its bias rule.

    Solves   the dual of ``problem``, with an exact bias under sum_i beta_ic = 0, to a KKT violation at the reported
             b of at most ``options.tol``.
    Given    a start that fits its examples and classes; its bias is where b begins. A hard margin must exist. ``inner``
             solves problems without an exact bias, in place of the core.
    Returns  a Solution whose state is feasible, sums included, whatever ended the solve.
    See      WWDOC Problem 2; core.py for the other rules.
    """
    check_start(problem, start)
    solve = inner or run_core
    if problem.bias is not Bias.EXACT:
        plain = None if start is None else replace(start, scores=None)
        return with_mirror_image(problem, solve(problem, options, plain, watch))
    return _Rounds(problem, options, start, watch, solve).run()


@dataclass(frozen=True, eq=False)
class _Iterate:
    """A point of the rounds: a, F = K beta where known, b; and its objectives once it is feasible."""

    amounts: FloatArray
    scores: FloatArray | None
    bias: FloatArray
    numbers: Objectives | None = None


class _Rounds:
    """The rounds of one solve, and the account of what they spent together."""

    def __init__(
        self,
        problem: DualProblem,
        options: SolverOptions,
        start: SolverState | None,
        watch: StateWatch,
        inner: InnerSolve,
    ) -> None:
        self.problem, self.options, self.monitor = problem, options, FitMonitor(watch)
        self.solve_inner = inner
        self.began = time.perf_counter()
        bias = np.zeros(problem.n_classes) if start is None or start.bias is None else start.bias
        amounts = np.zeros((problem.n_examples, problem.n_components)) if start is None else start.amounts
        self.now = _Iterate(amounts, None, bias)
        self.best: _Iterate | None = None  # feasible, and within tol
        self.reports: list[SolverReport] = []
        self.error: BaseException | None = None
        self.trace = TraceBuilder()
        self.account = Account()
        self.scale = float(np.mean(np.abs(problem.store.diagonal()[problem.data.rows])))
        self.rho = _first_rho(problem, (FIRST_RHO_SMALL if options.extra_tol > 0 else FIRST_RHO) * self.scale)
        self.disappointments = 0
        self.step = BiasStep(problem)
        near = start is not None and start.bias is not None
        self.last_tol = LAST_TOL * options.tol
        # Small problems are solved as far as they go in every round, which is cheap.
        loose = FIRST_TOL * float(np.abs(problem.targets).max(initial=0.0))
        self.tol = self.last_tol if near or options.extra_tol > 0 else max(self.last_tol, loose)

    def run(self) -> Solution:
        try:
            reason = self._iterate()
        except KeyboardInterrupt as interrupt:  # between two calls of the core, which keeps what it raises
            reason, self.error = StopReason.INTERRUPTED, interrupt
        return self._finish(reason)

    def _iterate(self) -> StopReason:
        size_before = np.inf
        for _ in range(MAX_ROUNDS):
            reason, size = self._round()
            if reason is not StopReason.CONVERGED:
                return reason
            if self.tol <= self.last_tol and self._settle():
                return StopReason.CONVERGED
            self._adapt(size, size_before)
            size_before = size
        return StopReason.STALLED

    def _round(self) -> tuple[StopReason, float]:
        """One proximal step on b; what ended it, and the largest sum |sum_i beta_ic| that it left."""
        now, rho = self.now, self.rho
        left = self._left()
        if isinstance(left, StopReason):
            return left, np.inf
        inner = self.step.inner_problem(now.bias, rho)
        sums, _ = imbalance(self.problem, now.amounts)
        scores = None if now.scores is None else now.scores + rho * sums
        spent = self._spent()
        solution = self.solve_inner(
            inner, left, SolverState(now.amounts, scores, self.problem.n_classes), self._round_monitor(now.bias)
        )
        self.reports.append(solution.report)
        for trace in solution.report.traces:
            self.trace.extend(trace, spent)
        self.error = solution.error
        found = solution.state
        sums, mass = imbalance(self.problem, found.amounts)
        scores = None if found.scores is None else found.scores - rho * sums
        self.now = _Iterate(found.amounts, scores, self.step.next_bias(now.bias, rho, sums))
        size = float(np.abs(sums).max())
        return solution.report.stop_reason, 0.0 if size <= NEGLIGIBLE * mass else size

    def _left(self) -> SolverOptions | StopReason:
        """What is left of the limits for the next round, or that nothing is."""
        options = self.options
        steps = options.max_iter if options.max_iter < 0 else options.max_iter - self._n_iter()
        seconds = options.max_time
        if np.isfinite(seconds):
            pass_time = min(self._seconds_of_pass(), 0.25 * seconds)  # for the scores of the balanced point
            seconds -= time.perf_counter() - self.began + pass_time
        if options.max_iter >= 0 and steps <= 0 and self.reports:
            return StopReason.MAX_ITER
        if seconds <= 0 and self.reports:
            return StopReason.MAX_TIME
        projection = PROJECTION + PROJECTION_PASSES * self.now.amounts.size
        work = options.max_work - sum(report.phases["work"] for report in self.reports)
        work -= self.account.projections * projection
        if work <= 0:
            return StopReason.STALLED
        return replace(options, tol=self.tol, max_iter=steps, max_time=max(seconds, 1e-9), max_work=work)

    def _settle(self) -> bool:
        """Make the sums zero without leaving tol, if that can be done; True when the point found is good enough."""
        settled = self._settled()
        if settled is None or settled.numbers is None:
            return self._end_of_patience() if self.best is not None else False
        before = np.inf if self.best is None or self.best.numbers is None else self.best.numbers.violation
        if settled.numbers.violation < before:
            self.best = settled
        if settled.numbers.violation > 0.5 * before and self._end_of_patience():
            return True
        _, mass = imbalance(self.problem, settled.amounts)
        rounding = 20 * ROUNDING * mass * (self.scale + self.rho)
        extra = self.options.extra_tol
        return extra <= 0 or settled.numbers.violation <= max(extra, rounding)

    def _end_of_patience(self) -> bool:
        self.disappointments += 1
        return self.disappointments > PATIENCE

    def _settled(self) -> _Iterate | None:
        """The balanced point beside the last round's, if it is within tol."""
        problem, now, tol = self.problem, self.now, self.options.tol
        if now.scores is None:
            return None
        gradient = dual_gradient(problem, now.amounts, now.scores + now.bias)
        harmless = movable_without_harm(problem, now.amounts, gradient, 0.5 * tol)
        amounts = balance(problem, now.amounts, harmless, 20, self.account)
        if amounts is None:
            return None
        change = coefficients(problem.machine, amounts - now.amounts, problem.data.y, problem.n_classes)
        moved = np.flatnonzero((change != 0).any(axis=1))
        sample = moved[:: max(1, len(moved) // SAMPLE)]
        # A full pass costs as much as a round that finds nothing to do; the last round's violation is that of ``now``.
        room = tol - self.reports[-1].violation
        if len(sample):
            difference = self._scores_of(change, moved, sample)
            if 1.5 * float(np.abs(difference - difference.mean(axis=0)).max()) > room:
                return None
        settled = self._moved(amounts, change, moved)
        return settled if settled.numbers is not None and settled.numbers.violation <= tol else None

    def _moved(self, amounts: FloatArray, change: FloatArray, moved: np.ndarray) -> _Iterate:
        """The balanced point with its scores; b takes up what changed alike for all that moved."""
        scores, bias = self.now.scores, self.now.bias
        difference = self._scores_of(change, moved)
        if scores is None:
            scores = difference
        elif len(moved):
            scores = scores + difference
            # With a smooth kernel nearly all of the change is a constant: that of the sums.
            bias = self.step.centre(bias - difference[moved].mean(axis=0))
        return _Iterate(amounts, scores, bias, evaluate(self.problem, amounts, scores, bias))

    def _lost_digits(self, point: _Iterate) -> bool:
        """Whether rho times the sums of the rounds may have changed scores by what matters beside tol.

        Where a pass over the kernel costs nothing, that is not asked.
        """
        beta, mass = imbalance(self.problem, point.amounts)
        if self.problem.n_examples * self.problem.data.X.size * len(beta) <= QUICK_PASS:
            return True
        return 100 * ROUNDING * mass * (self.scale + self.rho) > 0.01 * self.options.tol

    def _anew(self, point: _Iterate) -> _Iterate:
        """The point with its scores computed anew: those of a round have lost digits to rho times its sums."""
        beta = coefficients(self.problem.machine, point.amounts, self.problem.data.y, self.problem.n_classes)
        scores = self._scores_of(beta, np.flatnonzero(beta.any(axis=1)))
        return replace(point, scores=scores, numbers=evaluate(self.problem, point.amounts, scores, point.bias))

    def _adapt(self, size: float, size_before: float) -> None:
        """Choose rho and tol of the next round by what the last one did to the sums."""
        if self.rho * size > self.tol:
            _, mass = imbalance(self.problem, self.now.amounts)
            most = 0.01 * self.options.tol / (ROUNDING * max(mass, np.finfo(float).tiny))
            factor = growth_of_rho(size, size_before)
            self.rho = max(self.rho, min(factor * self.rho, most))
        elif self.tol <= self.last_tol and size > 0.5 * size_before:  # as small as rounds of this tolerance make it
            self.tol = max(0.3 * self.tol, 0.01 * self.last_tol)
        if self.tol > self.last_tol:
            lower = TOL_FACTOR * self.tol
            self.tol = lower if lower > 2 * self.last_tol else self.last_tol

    def _finish(self, reason: StopReason) -> Solution:
        limits = (StopReason.STALLED, StopReason.MAX_ITER, StopReason.MAX_TIME)
        if self.best is not None:
            end = self.best
            reason = StopReason.CONVERGED if reason in limits else reason
        else:
            end = self._balanced(quick=reason not in limits)
            if end.numbers is not None and end.numbers.violation <= self.options.tol and reason in limits:
                reason = StopReason.CONVERGED
        if end.numbers is not None and (self.options.extra_tol > 0 or self._lost_digits(end)):
            try:
                end = self._anew(end)
            except KeyboardInterrupt as interrupt:  # the point is a good one with the scores that it has
                reason, self.error = StopReason.INTERRUPTED, interrupt
        last, numbers = self.reports[-1] if self.reports else None, end.numbers
        known = Objectives(np.inf, np.nan, np.inf if last is None else last.violation)
        numbers = known if numbers is None else numbers
        report = SolverReport(
            stop_reason=reason,
            n_iter=self._n_iter(),
            seconds=time.perf_counter() - self.began,
            violation=numbers.violation,
            dual=numbers.dual,
            primal=numbers.primal,
            kernel_rows=sum(report.kernel_rows for report in self.reports),
            cache_hits=sum(report.cache_hits for report in self.reports),
            verified=end.numbers is not None,
            float64_rows=last is not None and last.float64_rows,
            phases=add_phases([report.phases for report in self.reports]),
        )
        if self.options.trace:
            report = replace(report, traces=(self._end_trace(report, end.amounts),))
        return Solution(SolverState(end.amounts, end.scores, self.problem.n_classes, end.bias), report, self.error)

    def _end_trace(self, report: SolverReport, amounts: FloatArray) -> Trace:
        """The rounds' traces, one after the other, and the point that the solve returns."""
        return self.trace.end(
            seconds=report.seconds,
            iterations=report.n_iter,
            kernel_rows=report.kernel_rows,
            violation=report.violation,
            dual=report.dual,
            primal=report.primal if self.options.trace_primal else np.nan,
            n_active=self.problem.n_examples,
            n_variables=int(self.problem.count_components().sum()),
            **count_variables(amounts, self.problem.cap),
        )

    def _balanced(self, *, quick: bool) -> _Iterate:
        """The last round's point made feasible, for an early end: by free variables, or else by all support vectors."""
        problem, now = self.problem, self.now
        amounts = None
        if now.scores is not None and self.reports:
            gradient = dual_gradient(problem, now.amounts, now.scores + now.bias)
            free = movable_without_harm(problem, now.amounts, gradient, self.reports[-1].violation)
            amounts = balance(problem, now.amounts, replace(free, variables=free.variables & (now.amounts > 0)))
        if amounts is None:
            amounts = balance(problem, now.amounts, movable_support(now.amounts), 200)
        if amounts is None:
            amounts = np.zeros_like(now.amounts)
        known = np.zeros_like(amounts) if now.scores is None else now.amounts
        change = coefficients(problem.machine, amounts - known, problem.data.y, problem.n_classes)
        moved = np.flatnonzero((change != 0).any(axis=1))
        if quick and float(len(moved)) * problem.data.X.size > QUICK_PASS:
            return _Iterate(amounts, None, now.bias)
        try:
            return self._moved(amounts, change, moved)
        except KeyboardInterrupt as interrupt:
            self.error = interrupt
            return _Iterate(amounts, None, now.bias)

    def _scores_of(self, beta: FloatArray, used: np.ndarray, points: np.ndarray | None = None) -> FloatArray:
        """K beta over the examples used, at all examples or at those named."""
        data = self.problem.data
        rows = data.rows if points is None else data.rows[points]
        points_there = data.kernel_data[rows]
        with allowed():
            return self.problem.store.scores(data.rows[used], beta[used], points_there, self.options.n_threads)

    def _seconds_of_pass(self) -> float:
        """What the scores of all examples take, measured on a few."""
        used = np.flatnonzero((self.now.amounts > 0).any(axis=1))
        few = np.arange(min(SAMPLE, self.problem.n_examples))
        before = time.perf_counter()
        self._scores_of(np.ones((self.problem.n_examples, self.problem.n_classes)), few, few)
        panel = time.perf_counter() - before
        n = self.problem.n_examples
        return panel * (n / len(few)) * (max(len(used), n / 4) / len(few))

    def _spent(self) -> dict[str, float]:
        rows = sum(report.kernel_rows for report in self.reports)
        return {"seconds": time.perf_counter() - self.began, "iterations": self._n_iter(), "kernel_rows": rows}

    def _n_iter(self) -> int:
        return sum(report.n_iter for report in self.reports)

    def _round_monitor(self, bias: FloatArray) -> FitMonitor[SolverState]:
        """The caller's monitor, which sees all rounds as one solve; objectives are those of the round."""
        rho, done = self.rho, self._n_iter()
        rows = sum(report.kernel_rows for report in self.reports)
        hits = sum(report.cache_hits for report in self.reports)

        def with_bias(state: SolverState) -> SolverState:
            return replace(state, bias=bias + rho * imbalance(self.problem, state.amounts)[0])

        def of_all(progress: Progress) -> Progress:
            return replace(
                progress,
                iteration=done + progress.iteration,
                seconds=time.perf_counter() - self.began,
                kernel_rows=rows + progress.kernel_rows,
                cache_hits=hits + progress.cache_hits,
            )

        return self.monitor.map(with_bias, of_all)


def _first_rho(problem: DualProblem, by_kernel: float) -> float:
    """What the kernel asks for; for a tiny C as much as lets one round move b by a tenth of a target."""
    lightest = float(np.bincount(problem.data.y, weights=problem.data.C, minlength=problem.n_classes).min())
    by_penalty = 0.1 * float(np.abs(problem.targets).max(initial=0.0)) / lightest
    rho = max(by_kernel, by_penalty)
    return rho if rho > 0 else 1.0
