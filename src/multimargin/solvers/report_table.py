"""What many solves reported, as columns: one row for each problem, a report made when it is asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from multimargin import _core
from multimargin._typing import FloatArray
from multimargin.solvers.report import SolverReport, StopReason
from multimargin.solvers.trace import Trace

REASONS = tuple(StopReason)
COUNTS = ("n_iter", "kernel_rows", "cache_hits")
FLAGS = ("verified", "float64_rows")
NUMBERS = ("seconds", "violation", "dual", "primal")
_PHASES_COUNTED = ("rounds", "blocks", "exact_blocks", "feature_sweeps")


@dataclass(frozen=True, eq=False)
class Reports(Sequence[SolverReport]):
    """Reports as columns, by the names that SolverReport has; ``reasons`` are places among the stop reasons."""

    reasons: NDArray[np.int8]
    columns: dict[str, NDArray[Any]]
    phases: dict[str, FloatArray]
    traces: tuple[tuple[Trace, ...], ...] = ()

    @classmethod
    def from_core(cls, table: FloatArray, traces: Sequence[dict[str, Any]]) -> Reports:
        """Return what the core's table of ``report_columns`` says."""
        named = dict(zip(_core.report_columns(), table.T, strict=True))
        codes = np.array([REASONS.index(StopReason(each.name)) for each in _core.StopReason], dtype=np.int8)
        columns: dict[str, NDArray[Any]] = {name: named[name].copy() for name in NUMBERS}
        columns |= {name: named["iterations" if name == "n_iter" else name].astype(np.int64) for name in COUNTS}
        columns |= {name: named[name].astype(bool) for name in FLAGS}
        first = list(named).index("bias") + 1
        phases = {name: named[name].copy() for name in list(named)[first:]}
        recorded = tuple((Trace(**each),) if each else () for each in traces)
        return cls(codes[named["stop_reason"].astype(np.int64)], columns, phases, recorded)

    @classmethod
    def of(cls, reports: Sequence[SolverReport]) -> Reports:
        """Return reports of any kind as columns."""
        if isinstance(reports, Reports):
            return reports
        codes = {reason: code for code, reason in enumerate(REASONS)}
        columns = {name: np.array([getattr(each, name) for each in reports]) for name in (*NUMBERS, *COUNTS, *FLAGS)}
        phases = {name: np.array([each.phases[name] for each in reports]) for name in reports[0].phases}
        traces = tuple(each.traces for each in reports) if any(each.traces for each in reports) else ()
        return cls(np.array([codes[each.stop_reason] for each in reports], dtype=np.int8), columns, phases, traces)

    @classmethod
    def of_points(cls, numbers: dict[str, FloatArray], **spent: NDArray[Any]) -> Reports:
        """Return reports of points that were computed anew in float64, without kernel rows; nothing spent is zeros.

        ``numbers`` are violation, dual and primal; ``spent`` may be seconds and n_iter, and codes of reasons.
        """
        n = len(numbers["dual"])
        columns: dict[str, NDArray[Any]] = {name: np.zeros(n, dtype=np.int64) for name in COUNTS}
        columns |= {"seconds": np.zeros(n), "verified": np.ones(n, bool), "float64_rows": np.zeros(n, bool)}
        reasons = spent.pop("reasons", np.full(n, REASONS.index(StopReason.CONVERGED), dtype=np.int8))
        return cls(reasons, columns | numbers | spent, {})

    def followed_by(self, last: SolverReport, primal: FloatArray) -> Reports:
        """Return these and the same one, which has no trace, once for each of these primal objectives."""
        n = len(primal)
        reasons = np.concatenate([self.reasons, np.full(n, REASONS.index(last.stop_reason), dtype=np.int8)])
        columns = {name: np.concatenate([each, np.full(n, getattr(last, name))]) for name, each in self.columns.items()}
        columns["primal"][-n:] = primal
        phases = {name: np.concatenate([each, np.full(n, last.phases[name])]) for name, each in self.phases.items()}
        return Reports(reasons, columns, phases, self.traces)

    def __len__(self) -> int:
        return len(self.reasons)

    @overload
    def __getitem__(self, index: int) -> SolverReport: ...
    @overload
    def __getitem__(self, index: slice) -> list[SolverReport]: ...
    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[i] for i in range(len(self))[index]]
        i = range(len(self))[index]
        values = {name: column[i].item() for name, column in self.columns.items()}
        phases = {
            name: int(column[i]) if name in _PHASES_COUNTED else column[i].item()
            for name, column in self.phases.items()
        }
        traces = self.traces[i] if self.traces else ()
        return SolverReport(stop_reason=REASONS[self.reasons[i]], phases=phases, traces=traces, **values)

    def __iter__(self) -> Iterator[SolverReport]:
        return (self[i] for i in range(len(self)))

    def after(self, first: Reports) -> Reports:
        """Return the reports of two solves in a row of each problem; the traces are those of the first."""
        added = ("seconds", *COUNTS)
        columns = self.columns | {name: first.columns[name] + self.columns[name] for name in added}
        none = np.zeros(len(self))
        phases = {name: column + first.phases.get(name, none) for name, column in self.phases.items()}
        return Reports(self.reasons, columns, phases, first.traces)

    def total(self) -> SolverReport:
        """Return one report for all: objectives and costs add up, the worst one gives the violation."""
        unfinished = np.flatnonzero(self.reasons != REASONS.index(StopReason.CONVERGED))
        sums = {name: self.columns[name].sum().item() for name in ("seconds", "dual", "primal", *COUNTS)}
        return replace(
            self[int(unfinished[0]) if len(unfinished) else 0],
            **sums,
            violation=self.columns["violation"].max().item(),
            verified=bool(self.columns["verified"].all()),
            float64_rows=bool(self.columns["float64_rows"].any()),
            phases={name: column.sum().item() for name, column in self.phases.items()},
            traces=tuple(trace for each in self.traces for trace in each),
        )
