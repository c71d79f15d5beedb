"""History of online learning: accuracy before learning, dual objective, support vectors."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from multimargin._typing import FloatArray, IntArray

# Largest number of points; beyond it every second one is dropped.
MOST_POINTS = 2_000
# The weight of an example in the recent accuracy falls by this factor with each later one.
FADING = 0.999


@lru_cache(maxsize=8)
def _fading(n: int) -> tuple[FloatArray, float, float]:
    """Return the weights of n examples after the last one, their sum, and the weight of what came before them."""
    weights = np.asarray(FADING ** np.arange(n - 1, -1, -1), dtype=np.float64)
    return weights, float(weights.sum()), FADING**n


@dataclass
class StreamHistory:
    """History of online learning; each example is predicted, then learned (prequential accuracy).

    ``recent_accuracy`` forgets by a factor of 0.999 for each example, so that drift shows; ``accuracy``
    counts all alike.
    """

    _points: list[tuple[int, float, float, float, int]] = field(default_factory=list)
    n_seen: int = 0
    n_tested: int = 0
    n_correct: int = 0
    _faded: tuple[float, float] = (0.0, 0.0)  # correct, all
    _stride: int = 1
    _moment: int = 0

    def add(self, correct: np.ndarray | None, n_rows: int, dual: float, n_support: int) -> None:
        """Record rows that were learned; ``correct`` marks correct predictions; None: rows seen before."""
        self.n_seen += n_rows
        if correct is not None and len(correct):
            self.n_tested += len(correct)
            self.n_correct += int(np.count_nonzero(correct))
            weights, sum_of_weights, kept = _fading(len(correct))
            right, total = self._faded
            self._faded = (right * kept + float(weights @ correct), total * kept + sum_of_weights)
        if self._moment % self._stride == 0:
            self._points.append((self.n_seen, self._overall(), self._recent(), dual, n_support))
        self._moment += 1
        if len(self._points) >= MOST_POINTS:
            self._points = self._points[::2]
            self._stride *= 2

    def plus(self, correct: np.ndarray | None, n_rows: int, dual: float, n_support: int) -> StreamHistory:
        """Return a copy that ``add`` can continue."""
        after = copy(self)
        after._points = list(self._points)
        after.add(correct, n_rows, dual, n_support)
        return after

    def _overall(self) -> float:
        return self.n_correct / self.n_tested if self.n_tested else np.nan

    def _recent(self) -> float:
        right, total = self._faded
        return right / total if total > 0 else np.nan

    def __len__(self) -> int:
        return len(self._points)

    def _column(self, position: int) -> FloatArray:
        return np.array([point[position] for point in self._points], dtype=np.float64)

    @property
    def examples(self) -> IntArray:
        """Examples seen, at each point."""
        return self._column(0).astype(np.int64)

    @property
    def accuracy(self) -> FloatArray:
        """Share of all examples so far that were predicted correctly before they were learned."""
        return self._column(1)

    @property
    def recent_accuracy(self) -> FloatArray:
        """The same, with exponentially decreasing weights of older examples."""
        return self._column(2)

    @property
    def dual(self) -> FloatArray:
        """The dual objective."""
        return self._column(3)

    @property
    def n_support(self) -> IntArray:
        """Support vectors."""
        return self._column(4).astype(np.int64)
