"""A forecast of the seconds and megabytes of a fit, from fits on few rows."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from multimargin._typing import DataMatrix, IntArray
from multimargin.base.resources import MEGABYTE, cache_bytes
from multimargin.diagnosis.findings import Finding
from multimargin.diagnosis.kernel_checks import rows_of, trial_fit
from multimargin.model_selection.estimator import SVCCV
from multimargin.model_selection.forecast import extrapolate, in_words, subsample_sizes
from multimargin.model_selection.search_table import share_of

LONG = 600.0  # from this many seconds on a faster alternative is suggested


@dataclass(frozen=True)
class Cost:
    """Seconds and megabytes of a fit, and the rows they were estimated from."""

    seconds: float
    megabytes: float
    sizes: tuple[int, ...]

    def finding(self, what: str) -> Finding:
        known = " and ".join(f"{n:,}" for n in self.sizes)
        cost = f"{in_words(self.seconds)} and {self.megabytes:,.0f} MB beside the data"
        text = f"{what} takes about {cost} (from {known} rows)"
        return Finding("note", "forecast", text, "clf = LinearSVC()  # or a subsample" if self.seconds > LONG else "")


def fit_cost(estimator: Any, X: DataMatrix, y: np.ndarray, codes: IntArray) -> Cost:
    """Estimate the cost of a fit; a search has its own forecast."""
    if isinstance(estimator, SVCCV):
        estimate = estimator.forecast(X, y)
        return Cost(estimate.seconds, estimate.memory / MEGABYTE, tuple(estimate.sizes[1:]))
    n = len(codes)
    sizes, seconds, processor = [], [], []
    for size in subsample_sizes(n):
        rows = share_of(np.arange(n), codes, min(1.0, size / n))
        part = rows_of(estimator, X, rows)
        before = time.perf_counter(), time.process_time()
        trial_fit(estimator, part, y[rows])
        seconds.append(time.perf_counter() - before[0])
        processor.append(time.process_time() - before[1])
        sizes.append(len(rows))
    known = np.array(sizes, dtype=np.float64), np.array(seconds), np.array(processor)
    return Cost(_at(*known, n, estimator), _megabytes(estimator, X, codes), tuple(sizes[1:]))


def _at(sizes: np.ndarray, seconds: np.ndarray, processor: np.ndarray, n: int, estimator: Any) -> float:
    if not hasattr(estimator, "kernel"):  # passes over the rows
        return float(seconds[-1] * n / sizes[-1])
    if sizes[1] >= sizes[2]:  # all rows in each
        return float(seconds[-1])
    by_size, _ = extrapolate(sizes, seconds[-1:], processor[:, None], n)
    return float(by_size[0])


def _megabytes(estimator: Any, X: DataMatrix, codes: IntArray) -> int:
    """Return the memory in use: kernel rows within their budget, and some numbers for each example and class."""
    n, n_classes = len(codes), int(codes.max()) + 1
    own = 4 * 8.0 * n * n_classes
    weights = 8.0 * float(X.shape[1]) * n_classes
    if not hasattr(estimator, "kernel"):
        return math.ceil((own + weights) / MEGABYTE)
    rows = min(8.0 * n**2, float(cache_bytes(estimator.cache_size, 8.0 * n**2)))
    return math.ceil((own + rows) / MEGABYTE)
