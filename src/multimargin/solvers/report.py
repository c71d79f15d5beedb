"""What a solve did and reached: progress, reasons to stop, reports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from enum import Enum
from typing import Any

from multimargin import _core
from multimargin.solvers.trace import Trace


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
