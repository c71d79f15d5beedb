"""All pairs of classes at once: their coordinate steps and Newton's method in the core, spread over the threads.

The core takes them in batches, so that what there is of them at a time as objects is bounded; what it leaves is columns
of arrays, which are settled together (linear_pair_settling.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from multimargin._typing import FloatArray, IntArray
from multimargin.base.interrupts import poll
from multimargin.base.matrices import is_sparse
from multimargin.base.resources import n_threads
from multimargin.fitting.pairs import ENDS, PairFit, PairState
from multimargin.problems.problem import Bias
from multimargin.problems.schemes import Slices
from multimargin.solvers.linear.coordinate import budget_of_entries
from multimargin.solvers.linear.core import (
    BinarySetting,
    LinearBatch,
    LinearOptions,
    NewtonStart,
    linear_data,
    solve_linear_binary,
    solve_newton_binary,
)
from multimargin.solvers.linear.driver import AIM, DEARER_WHEN_WIDE, MOST_WEIGHTS_OF_CORE, REPORT_SECONDS
from multimargin.solvers.linear.types import AUTO, NEWTON, Clock, LinearLimits, Presolved
from multimargin.solvers.monitor import FitMonitor, Watch
from multimargin.solvers.report import Progress, StopReason
from multimargin.solvers.report_table import REASONS

# Pairs in a batch: enough that the threads seldom wait for the last one, and some 10 MB of objects.
BATCH = 4096


@dataclass(eq=False)
class SolvedPairs:
    """What the core has reached, by pair; of examples, dual variables one after the other.

    Parameters
    ----------
    amounts, biases : ndarray
        Not yet with sums that are zero for an exact bias.
    reasons : ndarray of int
        Places among ``REASONS``; UNFINISHED with no passes is a pair that was not begun.
    passes, n_newton, seconds, widths : ndarray
        What was spent, and the width that Newton's method ended with.
    ended : StopReason or None
        What ended the work before its time, if something did; and the exception, if that was one.
    """

    amounts: FloatArray
    biases: FloatArray
    reasons: NDArray[np.int8]
    passes: IntArray
    n_newton: IntArray
    seconds: FloatArray
    widths: FloatArray
    ended: StopReason | None = None
    error: BaseException | None = None

    @classmethod
    def at(cls, fit: PairFit, start: PairState | None) -> SolvedPairs:
        """Return where a fit starts."""
        n = len(fit.problems)
        amounts = np.zeros(len(fit.problems.rows)) if start is None else Slices.of(start.amounts).flat.copy()
        reasons = np.full(n, REASONS.index(StopReason.UNFINISHED), dtype=np.int8)
        counts = np.zeros(n, dtype=np.int64)
        return cls(amounts, np.zeros(n), reasons, counts, counts.copy(), np.zeros(n), np.ones(n))

    def are(self, *reasons: StopReason) -> NDArray[np.bool_]:
        return np.isin(self.reasons, [REASONS.index(each) for each in reasons])

    def one(self, fit: PairFit, index: int) -> Presolved:
        """Return where one pair is."""
        own = slice(*fit.problems.starts[index : index + 2].tolist())
        return Presolved(
            self.amounts[own],
            np.array([-self.biases[index], self.biases[index]]) if fit.spec.bias is Bias.EXACT else None,
            REASONS[self.reasons[index]],
            int(self.passes[index]),
            int(self.n_newton[index]),
            float(self.seconds[index]),
            float(self.widths[index]),
        )


def solve_pairs(
    fit: PairFit, limits: LinearLimits, start: PairState | None, clock: Clock, watch: Watch[FloatArray] | None
) -> SolvedPairs:
    """Solve all pairs as far as the core can."""
    work = PairWork(fit, limits, SolvedPairs.at(fit, start), clock, watch)
    found, exact = work.found, fit.spec.bias is Bias.EXACT
    # m - M of an exact bias is the distance of two gradients.
    tol = AIM * limits.tol * (0.5 if exact else 1.0)
    if limits.solver != NEWTON and not exact:
        work.descend(tol)
    if limits.solver in (AUTO, NEWTON) and not is_wide(fit) and found.ended is None:
        left = np.flatnonzero(found.are(StopReason.UNFINISHED, StopReason.STALLED))
        work.newton(left, LinearOptions(tol=tol, max_passes=limits.max_iter))
    return found


def is_wide(fit: PairFit) -> bool:
    """Whether there are so many features that the core does without Newton's method."""
    return bool(fit.data.X.shape[1] >= MOST_WEIGHTS_OF_CORE)


class PairWork:
    """Batches of pairs through the core, within the limits of a fit; ``found`` is where they are."""

    def __init__(
        self, fit: PairFit, limits: LinearLimits, found: SolvedPairs, clock: Clock, watch: Watch[FloatArray] | None
    ) -> None:
        self.fit, self.limits, self.found, self.clock = fit, limits, found, clock
        self.monitor = FitMonitor(watch).when(self._is_due)
        spec = fit.spec
        exact = spec.bias is Bias.EXACT
        self.setting = BinarySetting(linear_data(fit.data.X), spec.loss, spec.kernel.offset, exact)
        self.reported_at = -REPORT_SECONDS
        self.before = Progress(0, 0.0, 0.0, 0.0, np.inf, 0, 0, 0, 0)  # of the batches that are done

    def descend(self, tol: float) -> None:
        """Coordinate steps on all pairs, for "auto" no more of them than Newton's method would cost."""
        fit, found = self.fit, self.found
        cost = float("inf")
        if self.limits.solver == AUTO:
            cost = (DEARER_WHEN_WIDE if is_wide(fit) else 1.0) * _budget(fit, int(fit.problems.sizes.max()))
        options = LinearOptions(tol=tol, max_passes=self.limits.max_iter, max_cost=cost)

        def solve(batch: IntArray, options: LinearOptions, watch: Watch[list[FloatArray | None]]) -> LinearBatch:
            problems, starts = [fit.problems[i] for i in batch.tolist()], self._amounts(batch)
            result = solve_linear_binary(self.setting, problems, options, starts, watch)
            found.passes[batch] += [part.report.passes for part in result.results]
            return result

        self._run(np.arange(len(fit.problems)), options, solve)

    def newton(self, wanted: IntArray, options: LinearOptions) -> None:
        """Newton's method from where these pairs are."""
        fit, found = self.fit, self.found

        def solve(batch: IntArray, options: LinearOptions, watch: Watch[list[FloatArray | None]]) -> LinearBatch:
            before = zip(self._amounts(batch), found.biases[batch].tolist(), found.widths[batch].tolist(), strict=True)
            starts = [NewtonStart(amounts, bias, None, width) for amounts, bias, width in before]
            problems = [fit.problems[i] for i in batch.tolist()]
            result = solve_newton_binary(self.setting, problems, options, starts, watch)
            found.n_newton[batch] += [part.report.passes for part in result.results]
            found.widths[batch] = [part.report.width for part in result.results]
            if self.setting.exact_bias:
                known = zip(result.results, found.biases[batch].tolist(), strict=True)
                found.biases[batch] = [part.weights[-1] if len(part.weights) else old for part, old in known]
            return result

        self._run(wanted, options, solve)

    def _amounts(self, batch: IntArray) -> list[FloatArray]:
        flat, starts = self.found.amounts, self.fit.problems.starts
        pairs = zip(starts[batch].tolist(), starts[batch + 1].tolist(), strict=True)
        return [flat[first:end] for first, end in pairs]

    def _run(
        self,
        wanted: IntArray,
        options: LinearOptions,
        solve: Callable[[IntArray, LinearOptions, Watch[list[FloatArray | None]]], LinearBatch],
    ) -> None:
        found, codes = self.found, {reason: code for code, reason in enumerate(REASONS)}
        for first in range(0, len(wanted), BATCH):
            batch = wanted[first : first + BATCH]
            try:
                poll()
            except KeyboardInterrupt as interrupt:
                found.error, found.ended = interrupt, StopReason.INTERRUPTED
            if found.ended is None and self.clock.left <= 0.0 and first > 0:
                found.ended = StopReason.MAX_TIME
            if found.ended is not None:
                found.reasons[wanted[first:]] = codes[found.ended]
                return
            own = replace(options, max_time=max(1e-9, self.clock.left), n_threads=n_threads())
            result = solve(batch, own, self._batch_monitor(batch))
            found.amounts[places_of(self.fit.problems.starts, batch)] = np.concatenate(
                [part.amounts for part in result.results]
            )
            reports = [part.report for part in result.results]
            found.reasons[batch] = [codes[report.stop_reason] for report in reports]
            found.seconds[batch] += [report.seconds for report in reports]
            found.error = result.error
            found.ended = next((reason for reason in ENDS if bool(found.are(reason)[batch].any())), None)
            if found.error is not None and found.ended is None:  # it came when all were done
                found.ended = StopReason.INTERRUPTED
            self.before = replace(
                self.before,
                iteration=self.before.iteration + sum(report.n_iter for report in reports),
                dual=self.before.dual + sum(report.dual for report in reports),
                violation=max(self.before.violation, *(report.violation for report in reports)),
                n_support=self.before.n_support + sum(report.n_support for report in reports),
            )

    def _is_due(self) -> bool:
        if self.clock.spent - self.reported_at < REPORT_SECONDS:
            return False
        self.reported_at = self.clock.spent
        return True

    def _batch_monitor(self, batch: IntArray) -> FitMonitor[list[FloatArray | None]]:
        """The caller's monitor, which sees all pairs while some of them are solved: the others at their start."""
        before = self.before

        def of_all(progress: Progress) -> Progress:
            return replace(
                progress,
                iteration=before.iteration + progress.iteration,
                seconds=self.clock.spent,
                dual=before.dual + progress.dual,
                violation=max(before.violation, progress.violation),
                n_support=before.n_support + progress.n_support,
            )

        return self.monitor.map(lambda done: self._so_far(batch, done), of_all)

    def _so_far(self, batch: IntArray, done: list[FloatArray | None]) -> FloatArray:
        amounts = self.found.amounts.copy()
        for index, own in zip(batch.tolist(), done, strict=True):
            if own is not None:
                first = int(self.fit.problems.starts[index])
                amounts[first : first + len(own)] = own
        return amounts


def places_of(starts: IntArray, wanted: IntArray) -> IntArray:
    """Return the places of the examples of some pairs among those of all."""
    sizes = starts[wanted + 1] - starts[wanted]
    ends = np.cumsum(sizes)
    places: IntArray = np.arange(int(sizes.sum())) + np.repeat(starts[wanted] - (ends - sizes), sizes)
    return places


def _budget(fit: PairFit, n_examples: int) -> float:
    X = fit.data.X
    entries = (X.nnz if is_sparse(X) else X.size) * n_examples / X.shape[0]
    return budget_of_entries(entries, n_examples)
