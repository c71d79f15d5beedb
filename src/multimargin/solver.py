"""Solving a dual problem: options, state, report, and the one call into the C++ core."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from enum import Enum
from typing import Any

import numpy as np

from multimargin import _core
from multimargin.machines import FloatArray
from multimargin.problem import Bias, DualProblem
from multimargin.separability import refuse_if_inseparable
from multimargin.trace import Trace


class SolverChoice(Enum):
    """The algorithms: one variable, two variables, all variables of one example, or a few of any at a time.

    ``SEMI_GREEDY`` solves whole examples too, but visits many of them for one scan of the violations. The last two
    choose pairs of variables of a binary problem with an exact bias; only ``binary.solve_batch`` knows them.
    """

    SMO = "smo"
    S2DO = "s2do"
    WHOLE_EXAMPLE = "whole-example"
    SEMI_GREEDY = "semi-greedy"
    TWO_LEVEL = "two-level"
    WORKING_SET = "working-set"
    MOST_VIOLATING_PAIR = "most-violating-pair"
    MAXIMUM_GAIN = "maximum-gain"


# How the second variable of a pair is chosen (IGEL); the first is the most violating one that may rise.
PAIR_CHOICES = (SolverChoice.MOST_VIOLATING_PAIR, SolverChoice.MAXIMUM_GAIN)


class Precision(Enum):
    """Kernel rows: float32 while that carries the tolerance, or always one of the two."""

    AUTOMATIC = "automatic"
    FLOAT32 = "float32"
    FLOAT64 = "float64"


class StopReason(Enum):
    """Why a solver ended. Only CONVERGED means that tol was reached.

    UNFINISHED is for callers who set a budget of work and go on by other means; no fit ends with it.
    """

    CONVERGED = "converged"
    MAX_ITER = "max_iter"
    MAX_TIME = "max_time"
    STALLED = "stalled"
    INTERRUPTED = "interrupted"
    CALLBACK = "callback"
    UNFINISHED = "unfinished"


@dataclass(frozen=True)
class SolverOptions:
    """How to solve; field by field the C++ struct ``Options``."""

    solver: SolverChoice = SolverChoice.S2DO
    precision: Precision = Precision.AUTOMATIC
    tol: float = 1e-3
    max_iter: int = -1
    max_time: float = float("inf")
    max_work: float = float("inf")
    shrink_variables: bool = True
    shrink_examples: bool = True
    cache_bytes: float = 2e8
    n_threads: int = 1
    extra_tol: float = 0.0
    extra_steps: int = 0
    trace: bool = False
    trace_primal: bool = False
    working_set_size: int = 10

    def to_core(self) -> _core.Options:
        options = _core.Options()
        for entry in fields(self):
            value = getattr(self, entry.name)
            if isinstance(value, SolverChoice):
                value = getattr(_core.SolverKind, value.name.lower())
            elif isinstance(value, Precision):
                value = getattr(_core.Precision, value.value)
            setattr(options, entry.name, value)
        return options


@dataclass(frozen=True)
class Progress:
    """A moment of a solve. ``primal`` and ``gap`` are estimates while examples are shrunk."""

    iteration: int
    seconds: float
    violation: float
    dual: float
    primal: float
    n_active: int
    n_support: int
    kernel_rows: int
    cache_hits: int

    @property
    def gap(self) -> float:
        return self.primal - self.dual

    @property
    def relative_gap(self) -> float:
        return self.gap / max(abs(self.primal), abs(self.dual), 1e-300)


@dataclass(frozen=True, eq=False)
class SolverState:
    """Where a solve stands: enough to go on from, or to seed another one.

    Parameters
    ----------
    amounts : ndarray of shape (n_examples, n_components)
        The dual variables a.
    scores : ndarray of shape (n_examples, n_classes) or None
        F = K beta, where it is known in float64; a regularised bias is part of K, an exact one is not in F.
    n_classes : int
    bias : ndarray of shape (n_classes,) or None
        b, for an exact bias.
    """

    amounts: FloatArray
    scores: FloatArray | None
    n_classes: int
    bias: FloatArray | None = None


@dataclass(frozen=True)
class SolverReport:
    """What a solve did and reached; violation and objectives are the solver's own unless ``verified``.

    ``traces`` is empty unless it was asked for; of several problems reported together it holds one for each.
    """

    stop_reason: StopReason
    n_iter: int
    seconds: float
    violation: float
    dual: float
    primal: float
    kernel_rows: int
    cache_hits: int
    verified: bool
    float64_rows: bool
    phases: dict[str, float]
    traces: tuple[Trace, ...] = field(default=(), repr=False, compare=False)


def report_without_kernel(
    reason: StopReason, n_iter: int, seconds: float, violation: float, objectives: tuple[float, float]
) -> SolverReport:
    """Return the report of a solver that needs no kernel rows, with (dual, primal) computed anew from its point."""
    dual, primal = objectives
    return SolverReport(reason, n_iter, seconds, violation, dual, primal, 0, 0, True, True, {})


@dataclass(frozen=True, eq=False)
class Solution:
    """State and report; ``error`` is the exception (Ctrl-C, a failing callback) that ended the solve, if one did."""

    state: SolverState
    report: SolverReport
    error: BaseException | None


# Called about every 50 ms with the progress and a function that returns the current state; True stops.
Watch = Callable[[Progress, Callable[[], SolverState]], bool]


def solve(
    problem: DualProblem,
    options: SolverOptions,
    start: SolverState | None = None,
    watch: Watch | None = None,
) -> Solution:
    """Solve the problem from ``start`` (or from zero).

    Solves   the dual of ``problem`` to a KKT violation of at most ``options.tol``.
    Given    a start that fits its examples and classes; it is made feasible first.
    Returns  a Solution whose state is feasible whatever ended the solve.
    See      DGI11 Algorithm 1, cpp/core/solve.cpp; exact_bias.py for the exact bias.
    """
    if problem.bias is Bias.EXACT:
        raise ValueError("The exact bias adds constraints that this solver does not know; use exact_bias.solve.")
    check_start(problem, start)
    if np.isinf(problem.data.C).any():
        refuse_if_inseparable(problem)
    return run_core(problem, options, None if start is None else replace(start, scores=None), watch)


def check_start(problem: DualProblem, start: SolverState | None) -> None:
    """Refuse a start that belongs to other data."""
    if start is None:
        return
    shape = (problem.n_examples, problem.n_components)
    if start.amounts.shape != shape or start.n_classes != problem.n_classes:
        raise ValueError(
            f"The state to start from has {start.amounts.shape[0]} examples, {start.n_classes} classes and "
            f"{start.amounts.shape[1]} variables each, the data have {shape[0]}, {problem.n_classes} and {shape[1]}; "
            "fit from nothing (warm_start=False) or on the same rows, classes and machine."
        )


def run_core(problem: DualProblem, options: SolverOptions, start: SolverState | None, watch: Watch | None) -> Solution:
    """Call the core on a problem and a start that were checked; scores of the start are believed."""
    result = _core.solve(
        problem.store.core,
        problem.to_core(),
        getattr(_core.Loss, problem.loss.value),
        problem.data.rows,
        problem.data.y,
        problem.data.C,
        options.to_core(),
        None if start is None else np.ascontiguousarray(start.amounts),
        None if start is None or start.scores is None else np.ascontiguousarray(start.scores),
        None if watch is None else _adapt(watch, problem.n_classes),
    )
    report = read_report(result.report)
    state = SolverState(result.amounts, result.scores if report.verified else None, problem.n_classes)
    error = result.error
    # An exception's traceback holds this frame; through it the result would hold itself, unseen by the collector.
    del result
    return Solution(state, report, error)


def _adapt(watch: Watch, n_classes: int) -> Callable[[_core.Progress, Callable[[], FloatArray]], bool]:
    def adapted(progress: _core.Progress, snapshot: Callable[[], FloatArray]) -> bool:
        moment = Progress(**{entry.name: getattr(progress, entry.name) for entry in fields(Progress)})
        return bool(watch(moment, lambda: SolverState(snapshot(), None, n_classes)))

    return adapted


def read_report(report: _core.Report) -> SolverReport:
    """Return the core's report as a value."""
    values: dict[str, Any] = {
        entry.name: getattr(report, entry.name)
        for entry in fields(SolverReport)
        if entry.name not in ("stop_reason", "n_iter", "traces")
    }
    recorded = report.trace
    values["traces"] = (Trace(**recorded),) if recorded else ()
    return SolverReport(stop_reason=StopReason(report.stop_reason.name), n_iter=int(report.iterations), **values)


def add_phases(phases: Sequence[dict[str, float]]) -> dict[str, float]:
    """Return the phases of several solves as of one."""
    return {name: sum(each[name] for each in phases) for name in (phases[0] if phases else {})}
