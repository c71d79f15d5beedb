"""How long a search will take and what memory it needs, from the same search on few rows.

The whole grid is run on two subsamples, and each gamma's time is extrapolated by its own power of the number of rows. A
third, tiny one tells what a fit costs whatever its size.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from multimargin._typing import FloatArray
from multimargin.base.resources import MEGABYTE, cache_bytes
from multimargin.fitting.warm_starts import check_costs
from multimargin.model_selection.search_table import Evaluate, Unit, restricted, share_of

# The share of the rows in the larger subsample, and its limits.
SHARE = 1 / 4
LEAST_ROWS = 300
MOST_ROWS = 2_000
# A kernel matrix grows with the square of the rows, a solve more slowly at first and hardly faster than with the cube;
# few rows tell mostly of the solves.
EXPONENTS = (1.75, 3.0)
# How far a gamma's exponent may be from the median of all.
DEVIATION = 0.25


@dataclass(frozen=True, eq=False)
class Forecast:
    """What a search will cost, roughly: expect a factor of two either way.

    Attributes
    ----------
    seconds : float
    memory : int
        Bytes in addition to the data.
    n_fits : int
    sizes : tuple of int
        Rows of the subsamples.
    seconds_by_gamma : ndarray of shape (n_gammas,)
    exponents : ndarray of shape (n_gammas,)
        Of the number of rows.
    spent : float
        Seconds that the forecast took.
    """

    seconds: float
    memory: int
    n_fits: int
    sizes: tuple[int, ...]
    seconds_by_gamma: FloatArray
    exponents: FloatArray
    spent: float

    def __str__(self) -> str:
        return (
            f"{self.n_fits:,} fits in about {in_words(self.seconds)} with about {self.memory / MEGABYTE:,.0f} MB "
            f"in addition to the data (from {' and '.join(f'{n:,}' for n in self.sizes)} rows, in {self.spent:.1f} s)"
        )


def in_words(seconds: float) -> str:
    """Return a time in the unit that people would take."""
    for limit, unit in ((86_400, "days"), (3_600, "hours"), (60, "minutes")):
        if seconds >= 1.5 * limit:
            return f"{seconds / limit:.1f} {unit}"
    return f"{seconds:.1f} seconds" if seconds < 10 else f"{seconds:.0f} seconds"


def forecast(problem: Any, Cs: ArrayLike, gammas: ArrayLike, evaluate: Evaluate) -> Forecast:
    """Estimate the cost of a grid search.

    Parameters
    ----------
    problem : SelectionProblem
    Cs, gammas : array-like of float
    evaluate : callable
        How the search will run its units; it is timed.

    Returns
    -------
    forecast : Forecast
    """
    began = time.perf_counter()
    costs, widths = check_costs(Cs), np.unique(np.asarray(gammas, dtype=np.float64))
    n_rows = len(problem.y)
    parts = [subsample(problem, size) for size in subsample_sizes(n_rows)]
    seconds, processor = np.moveaxis(
        np.array([_times_by_gamma(part, len(problem.folds), costs, widths, evaluate) for part in parts]), 2, 0
    )
    sizes = np.array([len(part.y) for part in parts], dtype=np.float64)
    # What else runs on this machine disturbs short times, but hardly the processor's; other processes have their own.
    here = processor[-1].sum() > 0.5 * seconds[-1].sum()
    by_gamma, exponents = extrapolate(sizes, seconds[-1], processor if here else seconds, n_rows)
    return Forecast(
        seconds=float(by_gamma.sum()),
        memory=memory_needed(problem),
        n_fits=len(costs) * len(widths) * len(problem.folds),
        sizes=tuple(len(part.y) for part in parts),
        seconds_by_gamma=by_gamma,
        exponents=exponents,
        spent=time.perf_counter() - began,
    )


def subsample_sizes(n_rows: int) -> tuple[int, int, int]:
    """Return how many rows to try: hardly any, a third of the last, and the last."""
    most = min(n_rows, max(LEAST_ROWS, min(MOST_ROWS, round(SHARE * n_rows))))
    return most // 20, most // 3, most


def subsample(problem: Any, n_rows: int) -> Any:
    """Return the problem of about so many rows, with all classes, and with the folds that train on all of them."""
    part = restricted(problem, share_of(np.arange(len(problem.y)), problem.y, n_rows / len(problem.y)))
    n_classes = len(problem.classes)
    folds = tuple(fold for fold in part.folds if len(np.unique(part.y[fold[0]])) == n_classes)
    return replace(part, folds=folds) if folds else problem


def _times_by_gamma(
    problem: Any, n_folds: int, Cs: FloatArray, gammas: FloatArray, evaluate: Evaluate
) -> list[tuple[float, float]]:
    """Return the seconds, of the clock and of the processor, that ``n_folds`` folds take, by those that there are."""
    times = []
    for gamma in gammas.tolist():
        before = time.perf_counter(), time.process_time()
        for _ in evaluate(problem, [Unit(gamma, fold, Cs) for fold in range(len(problem.folds))]):
            pass
        share = n_folds / len(problem.folds)
        times.append((share * (time.perf_counter() - before[0]), share * (time.process_time() - before[1])))
    return times


def extrapolate(
    sizes: FloatArray, seconds: FloatArray, growth: FloatArray, n_rows: int
) -> tuple[FloatArray, FloatArray]:
    """Return the seconds of each gamma at ``n_rows``, and their exponents: t = t_0 + b n^p.

    ``growth`` has the times of the gammas, in any unit, in a row for each of three sizes; the first, of hardly any
    rows, is taken for t_0. ``seconds`` are those of the last. The exponent of a single gamma is uncertain and stays
    near the median of all.
    """
    growing = np.maximum(growth[1:] - growth[0], 0.1 * growth[1:])
    own = np.log(growing[1] / growing[0]) / np.log(sizes[2] / sizes[1])
    common = np.median(own)
    p = np.clip(np.clip(own, common - DEVIATION, common + DEVIATION), *EXPONENTS)
    share = growing[1] / growth[2]
    return seconds * (1 - share + share * (n_rows / sizes[2]) ** p), p


def memory_needed(problem: Any) -> int:
    """Return the bytes of kernel values: distances and one kernel matrix in float64, or rows within the budget."""
    needed = 16.0 * len(problem.y) ** 2
    return int(min(needed, cache_bytes(problem.params.get("cache_size", "auto"), needed)))
