"""The account of a Frank-Wolfe solve: what it has spent and reached; limits, progress, trace and report go by it."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from multimargin._typing import FloatArray
from multimargin.base.interrupts import poll
from multimargin.problems.problem import DualProblem
from multimargin.solvers.certificate import Objectives
from multimargin.solvers.core import SolverState, StateWatch
from multimargin.solvers.monitor import FitMonitor
from multimargin.solvers.options import SolverOptions
from multimargin.solvers.report import Progress, SolverReport, StopReason
from multimargin.solvers.trace import Trace, TraceBuilder, count_variables

SECONDS_BETWEEN_CALLS = 0.05


class End(Exception):  # noqa: N818 - not an error: a limit was reached, or the caller wants no more
    def __init__(self, reason: StopReason) -> None:
        super().__init__(reason.value)
        self.reason = reason


class Account:
    """What one solve has spent and reached.

    ``violation`` and ``dual`` are those of the point at hand, as far as it was judged; ``primal`` is the lowest met, a
    bound of the optimum. ``reserve`` is what the last pass over all examples will take, in seconds.
    """

    def __init__(self, problem: DualProblem, options: SolverOptions, watch: StateWatch) -> None:
        self.problem, self.options, self.monitor = problem, options, FitMonitor(watch)
        self.began = time.perf_counter()
        self.called = self.began - SECONDS_BETWEEN_CALLS  # the first check reports
        self.n_iter = self.kernel_values = 0
        self.violation = self.primal = np.inf
        self.dual = self.reserve = 0.0
        self.error: BaseException | None = None
        self.trace = TraceBuilder()

    def judge(self, numbers: Objectives) -> None:
        """Take over what a check of all examples says; the dual is kept step by step."""
        self.violation, self.primal = numbers.violation, min(self.primal, numbers.primal)

    def seconds(self) -> float:
        return time.perf_counter() - self.began

    def seconds_left(self) -> float:
        """Until ``max_time``, less what is kept back for the last pass over all examples."""
        limit = self.options.max_time
        return limit - min(self.reserve, 0.25 * limit) - self.seconds()

    def kernel_rows(self) -> int:
        return -(-self.kernel_values // self.problem.n_examples)

    def ask(self, state: Callable[[], SolverState], n_active: int) -> None:
        """Check the limits, and about every 50 ms tell the caller; raises End where that is the end."""
        now, options = time.perf_counter(), self.options
        poll()
        if 0 <= options.max_iter <= self.n_iter:
            raise End(StopReason.MAX_ITER)
        if self.seconds_left() <= 0:
            raise End(StopReason.MAX_TIME)
        if not self.monitor.active or now - self.called < SECONDS_BETWEEN_CALLS:
            return
        self.called = now
        moment = Progress(
            iteration=self.n_iter,
            seconds=now - self.began,
            violation=self.violation,
            dual=self.dual,
            primal=self.primal,
            n_active=n_active,
            n_support=count_support(state().amounts),
            kernel_rows=self.kernel_rows(),
            cache_hits=0,
        )
        try:
            stop = self.monitor(moment, state)
        except Exception as error:
            self.error = error
            stop = True
        if stop:
            raise End(StopReason.CALLBACK)

    def record(self, amounts: FloatArray, part: DualProblem, violation: float) -> None:
        """Offer the point at hand to the trace, with the violation of the examples that are worked on."""
        if self.options.trace and self.trace.wants_next():
            numbers = Objectives(self.primal, self.dual, violation)
            self.trace.keep(**self._moment(self.seconds(), amounts, part, numbers))

    def report(self, reason: StopReason, amounts: FloatArray, numbers: Objectives, *, verified: bool) -> SolverReport:
        """Return the report of a solve that ends at this point."""
        seconds = self.seconds()
        traces: tuple[Trace, ...] = ()
        if self.options.trace:
            traces = (self.trace.end(**self._moment(seconds, amounts, self.problem, numbers)),)
        return SolverReport(
            stop_reason=reason,
            n_iter=self.n_iter,
            seconds=seconds,
            violation=numbers.violation,
            dual=numbers.dual,
            primal=numbers.primal,
            kernel_rows=self.kernel_rows(),
            cache_hits=0,
            verified=verified,
            float64_rows=True,
            phases={},
            traces=traces,
        )

    def _moment(self, seconds: float, amounts: FloatArray, part: DualProblem, numbers: Objectives) -> dict[str, float]:
        """A point of the trace; ``part`` has the examples that are worked on."""
        return {
            "seconds": seconds,
            "iterations": self.n_iter,
            "kernel_rows": self.kernel_rows(),
            "violation": numbers.violation,
            "dual": numbers.dual,
            "primal": numbers.primal if self.options.trace_primal else np.nan,
            "n_active": part.n_examples,
            "n_variables": int(part.count_components().sum()),
            **count_variables(amounts, self.problem.cap),
        }


def count_support(amounts: FloatArray) -> int:
    """Return how many examples have a dual variable above 0."""
    return int((amounts > 0).any(axis=1).sum())
