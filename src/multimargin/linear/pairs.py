"""All pairs of classes at once: their coordinate steps and Newton's method in the core, spread over the threads.

What it leaves is settled pair by pair (solving.py), which goes on alone where that is needed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from multimargin.linear.descending import budget_of_entries
from multimargin.linear.points import AUTO, NEWTON, LinearLimits, Presolved
from multimargin.linear.solving import AIM, DEARER_WHEN_WIDE, MOST_WEIGHTS_OF_CORE
from multimargin.linear_core import (
    BinarySetting,
    LinearBatchWatch,
    LinearBinaryResult,
    LinearOptions,
    NewtonStart,
    linear_data,
    solve_linear_binary,
    solve_newton_binary,
)
from multimargin.machines import FloatArray
from multimargin.matrices import is_sparse
from multimargin.pair_fitting import PairFit, PairState
from multimargin.problem import Bias
from multimargin.resources import n_threads
from multimargin.solver import Progress, StopReason

# Told a moment and how to get the dual variables and biases of the pairs that are done; True stops.
PairsWatch = Callable[[Progress, Callable[[], list[FloatArray | None]]], bool]


@dataclass(frozen=True, eq=False)
class SolvedPairs:
    """What each pair has reached, and the exception that ended the work, if one did."""

    parts: list[Presolved]
    error: BaseException | None


def solve_pairs(fit: PairFit, limits: LinearLimits, start: PairState | None, watch: PairsWatch | None) -> SolvedPairs:
    """Solve all pairs as far as the core can."""
    recipe, problems = fit.recipe, fit.problems
    exact, wide = recipe.bias is Bias.EXACT, fit.data.X.shape[1] >= MOST_WEIGHTS_OF_CORE
    setting = BinarySetting(linear_data(fit.data.X), recipe.loss, recipe.kernel.offset, exact)
    # m - M of an exact bias is the distance of two gradients.
    tol = AIM * limits.tol * (0.5 if exact else 1.0)
    options = LinearOptions(tol=tol, max_passes=limits.max_iter, max_time=limits.max_time, n_threads=n_threads())
    starts = [np.zeros(len(p.rows)) for p in problems] if start is None else list(start.amounts)
    parts = [Presolved(a) for a in starts]
    error = None
    if limits.solver != NEWTON and not exact:
        cost = float("inf")
        if limits.solver == AUTO:
            cost = (DEARER_WHEN_WIDE if wide else 1.0) * max(_budget(fit, len(p.rows)) for p in problems)
        batch = solve_linear_binary(setting, problems, replace(options, max_cost=cost), starts, watch)
        parts = [_read(part, offset=False) for part in batch.results]
        error = batch.error
    by_newton = limits.solver in (AUTO, NEWTON) and not wide
    left = [i for i, part in enumerate(parts) if part.stop_reason in (StopReason.UNFINISHED, StopReason.STALLED)]
    if not (by_newton and left and error is None):
        return SolvedPairs(parts, error)
    spent = sum(part.seconds for part in parts)
    seeds = [NewtonStart(parts[i].amounts) for i in left]
    options = replace(options, max_time=max(1e-9, limits.max_time - spent))
    batch = solve_newton_binary(
        setting, [problems[i] for i in left], options, seeds, None if watch is None else _inserted(watch, parts, left)
    )
    for i, part in zip(left, batch.results, strict=True):
        found = _read(part, offset=exact)
        parts[i] = replace(found, passes=parts[i].passes, n_newton=part.report.passes, seconds=parts[i].seconds)
    return SolvedPairs(parts, batch.error)


def _budget(fit: PairFit, n_examples: int) -> float:
    X = fit.data.X
    entries = (X.nnz if is_sparse(X) else X.size) * n_examples / X.shape[0]
    return budget_of_entries(entries, n_examples)


def _read(part: LinearBinaryResult, *, offset: bool) -> Presolved:
    bias = np.array([-part.weights[-1], part.weights[-1]]) if offset and len(part.weights) else None
    report = part.report
    return Presolved(part.amounts, bias, report.stop_reason, report.passes, 0, report.seconds, report.width)


def _inserted(watch: PairsWatch, parts: list[Presolved], wanted: list[int]) -> LinearBatchWatch:
    """Tell of all pairs while some of them are solved: the others are done."""

    def told(progress: Progress, snapshot: Callable[[], list[FloatArray | None]]) -> bool:
        def everything() -> list[FloatArray | None]:
            now: list[FloatArray | None] = [part.amounts for part in parts]
            for i, found in zip(wanted, snapshot(), strict=True):
                now[i] = found
            return now

        return watch(progress, everything)

    return told
