"""How far a solve goes: a limit of work on few rows, and a smaller tol where tol alone proves little."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from multimargin.solvers.certificate import Certificate
from multimargin.solvers.certificate_table import CertificateTable, worst_of
from multimargin.solvers.report import SolverReport, StopReason

# With solver="auto" a problem of at most so many rows, which is one block, ends as stalled after so many multiply-adds,
# about a second for 300 rows and, as the factors of exact blocks do, growing by the cube: what needs more is ruled by
# rounding, or by a C and a kernel of which no descent finds the end.
FEW_ROWS = 512
WORK_ON_300_ROWS = 2e9


def work_limit(n_examples: int) -> float:
    """Return the multiply-adds after which a fit ends as stalled."""
    return WORK_ON_300_ROWS * max(1.0, (n_examples / 300) ** 3) if n_examples <= FEW_ROWS else float("inf")


def work_left(n_examples: int, phases: Mapping[str, Any]) -> float:
    """Return what is left of the limit after what a report's phases count, of one problem or of many."""
    return work_limit(n_examples) - float(np.sum(phases.get("work", 0.0)))


class NarrowGap:
    """Goes on from a solve that met tol while the dual is less than half of the primal, to a tenth of its violation.

    A violation of v bounds the gap by v sum C, which is much where C is large. Ends when the gap is narrow, or when a
    solve does not reach its tol or no longer helps, which is what rounding does. ``certificate`` is that of all solves.
    """

    def __init__(self, params: dict[str, Any], tol: float) -> None:
        self.params, self.tol = params, tol
        self.certificate: Certificate | None = None

    def next(self, found: Certificate, work: float) -> tuple[dict[str, Any], float] | None:
        """Return parameters and tol of the next solve, None where this was the last.

        ``found`` is the certificate of the last solve, ``work`` what is left of the limit of work. The parameters'
        limits are those of the fit less what was spent.
        """
        helped = True
        if self.certificate is not None:
            before = self.certificate
            reached = found.stop_reason == StopReason.CONVERGED.value or _violation_of_wide_gap(found) > 0.0
            found = _judged(found, self.tol, before)
            helped = reached and found.relative_gap <= 0.9 * before.relative_gap
        self.certificate = found
        violation, left = _violation_of_wide_gap(found), _limits_left(self.params, found)
        if not helped or violation <= 0.0 or left is None or work <= 0.0:
            return None
        return self.params | left | {"max_work": work}, violation / 10


def _violation_of_wide_gap(certificate: Certificate) -> float:
    """Return the largest violation among the parts that met tol and are not optimal only for their gap; else 0."""
    parts = CertificateTable.of(certificate.parts or (certificate,))
    found = parts.columns
    wide = found["verified"] & parts.are(StopReason.STALLED.value) & (found["kkt_violation"] <= found["tol"])
    wide &= ~parts.optimal & (found["relative_gap"] < np.inf)
    return float(found["kkt_violation"][wide].max(initial=0.0))


def _limits_left(params: dict[str, Any], certificate: Certificate) -> dict[str, Any] | None:
    """Return what is left of max_iter and max_time, None when nothing is."""
    left = {"max_iter": params["max_iter"], "max_time": params["max_time"]}
    if params["max_iter"] >= 0:
        left["max_iter"] = params["max_iter"] - certificate.n_iter
    if params["max_time"] is not None:
        left["max_time"] = params["max_time"] - certificate.seconds
    return None if left["max_iter"] == 0 or (left["max_time"] is not None and left["max_time"] <= 0.0) else left


def _judged(certificate: Certificate, tol: float, before: Certificate) -> Certificate:
    """Return a certificate of a solve to a smaller tol as one of tol, with what was spent before."""
    if certificate.parts:
        earlier = before.parts
        return worst_of([_judged(*each) for each in zip(certificate.parts, [tol] * len(earlier), earlier, strict=True)])
    found = replace(
        certificate,
        tol=tol,
        n_iter=before.n_iter + certificate.n_iter,
        seconds=before.seconds + certificate.seconds,
        kernel_rows=before.kernel_rows + certificate.kernel_rows,
        cache_hits=before.cache_hits + certificate.cache_hits,
        blocks=before.blocks + certificate.blocks,
        exact_blocks=before.exact_blocks + certificate.exact_blocks,
    )
    limits = (StopReason.CONVERGED, StopReason.MAX_ITER, StopReason.MAX_TIME, StopReason.STALLED)
    if found.stop_reason not in [reason.value for reason in limits]:
        return found
    early = StopReason.STALLED.value if found.stop_reason == StopReason.CONVERGED.value else found.stop_reason
    return replace(found, stop_reason=StopReason.CONVERGED.value if found.optimal else early)


def joined(first: SolverReport, second: SolverReport) -> SolverReport:
    """Return the report of two solves in a row; the trace is that of the first."""
    return replace(
        second,
        n_iter=first.n_iter + second.n_iter,
        seconds=first.seconds + second.seconds,
        kernel_rows=first.kernel_rows + second.kernel_rows,
        cache_hits=first.cache_hits + second.cache_hits,
        phases={name: value + first.phases.get(name, 0.0) for name, value in second.phases.items()},
        traces=first.traces,
    )
