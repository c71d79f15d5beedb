"""svm-scale's map of columns to an interval, and its range file, read and written as svm-scale does."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from multimargin.base.resources import available_bytes
from multimargin.data_files.errors import fault, shown
from multimargin.data_files.svmlight import RowBlock
from multimargin.data_files.text_blocks import line_blocks

Interval = tuple[float, float]


@dataclass(frozen=True, eq=False)
class Scaling:
    """From [low_j, high_j] of each column j to one interval; a column whose two are equal is left out.

    Parameters
    ----------
    interval : (float, float)
    low, high : ndarray of shape (n_features,)
    label_interval, label_range : (float, float) or None
        The same for labels, where they are scaled.
    """

    interval: Interval
    low: np.ndarray
    high: np.ndarray
    label_interval: Interval | None = None
    label_range: Interval | None = None

    @property
    def n_features(self) -> int:
        return len(self.low)

    def to_text(self) -> str:
        """Return the range file."""
        lines = []
        if self.label_interval is not None and self.label_range is not None:
            lines += ["y", _pair(self.label_interval), _pair(self.label_range)]
        lines += ["x", _pair(self.interval)]
        kept = np.flatnonzero(self.low != self.high)
        lines += [f"{j + 1} {_pair((self.low[j], self.high[j]))}" for j in kept]
        return "\n".join(lines) + "\n"

    def columns(self, values: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Return scaled values of the given columns; both ends are reached exactly."""
        return _mapped(values, (self.low[columns], self.high[columns]), self.interval)

    def labels(self, labels: np.ndarray) -> np.ndarray:
        """Return the labels, scaled on request."""
        if self.label_interval is None or self.label_range is None:
            return labels
        return _mapped(labels, self.label_range, self.label_interval)


def _pair(numbers: Interval) -> str:
    return f"{numbers[0]:.17g} {numbers[1]:.17g}"


def _mapped(values: np.ndarray, ends: tuple[np.ndarray | float, np.ndarray | float], to: Interval) -> np.ndarray:
    low, high = ends
    with np.errstate(divide="ignore", invalid="ignore"):
        inner = to[0] + (to[1] - to[0]) * (values - low) / (high - low)
    return np.where(values == low, to[0], np.where(values == high, to[1], inner))


@dataclass(eq=False)
class RangeFinder:
    """The smallest and the largest value of each column; entries that are absent are zeros."""

    path: Path
    n_rows: int = 0
    n_values: int = 0
    low: np.ndarray = field(default_factory=lambda: np.empty(0))
    high: np.ndarray = field(default_factory=lambda: np.empty(0))
    seen: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    label_low: float = np.inf
    label_high: float = -np.inf

    def add(self, block: RowBlock) -> None:
        width = max(len(self.low), block.largest_index)
        if 48 * width > available_bytes():
            raise fault(self.path, f"has the index {width}, and so many columns do not fit the memory")
        self._widen(width)
        columns = block.indices - 1
        np.minimum.at(self.low, columns, block.values)
        np.maximum.at(self.high, columns, block.values)
        self.seen += np.bincount(columns, minlength=width)
        self.n_rows += len(block.labels)
        self.n_values += len(block.values)
        self.label_low = min(self.label_low, float(block.labels.min()))
        self.label_high = max(self.label_high, float(block.labels.max()))

    def _widen(self, width: int) -> None:
        more = width - len(self.low)
        self.low = np.concatenate([self.low, np.full(more, np.inf)])
        self.high = np.concatenate([self.high, np.full(more, -np.inf)])
        self.seen = np.concatenate([self.seen, np.zeros(more, dtype=np.int64)])

    def scaling(self, interval: Interval, label_interval: Interval | None) -> Scaling:
        """Return the map with these ranges."""
        with_zeros = self.seen < self.n_rows
        low = np.where(with_zeros, np.minimum(self.low, 0.0), self.low)
        high = np.where(with_zeros, np.maximum(self.high, 0.0), self.high)
        label_range = None if label_interval is None else (self.label_low, self.label_high)
        return Scaling(interval, low, high, label_interval, label_range)


def read_ranges(path: Path) -> Scaling:
    """Return the map of a range file."""
    lines = [(number, text.split()) for number, text in _lines(path) if text.strip()]
    position, label_interval, label_range = 0, None, None
    if lines and lines[0][1] == [b"y"]:
        label_interval, label_range = _numbers(path, lines, 1, 2), _numbers(path, lines, 2, 2)
        position = 3
    if len(lines) <= position or lines[position][1] != [b"x"]:
        line = lines[position][0] if position < len(lines) else 1
        raise fault(path, "has no line 'x'; a range file is what scale -s writes", line)
    interval = _numbers(path, lines, position + 1, 2)
    entries = [_numbers(path, lines, i, 3) for i in range(position + 2, len(lines))]
    columns = np.array([entry[0] for entry in entries])
    width = int(columns.max(initial=0))
    for (line, _), entry in zip(lines[position + 2 :], entries, strict=True):
        if entry[0] < 1 or entry[0] != int(entry[0]) or entry[0] >= 2**31:
            raise fault(path, f"{entry[0]:g} is not an index, a whole number from 1 to 2147483647", line)
    if 16 * width > available_bytes():
        raise fault(path, f"has the index {width}, and so many columns do not fit the memory")
    low, high = np.zeros(width), np.zeros(width)
    for column, least, most in entries:
        low[int(column) - 1], high[int(column) - 1] = least, most
    return Scaling((interval[0], interval[1]), low, high, _two(label_interval), _two(label_range))


def _two(numbers: tuple[float, ...] | None) -> Interval | None:
    return None if numbers is None else (numbers[0], numbers[1])


def _lines(path: Path) -> Iterable[tuple[int, bytes]]:
    for first, text in line_blocks(path):
        yield from enumerate(text.splitlines(), first)


def _numbers(path: Path, lines: list[tuple[int, list[bytes]]], at: int, count: int) -> tuple[float, ...]:
    if at >= len(lines):
        raise fault(path, "ends too early; a range file is what scale -s writes")
    line, words = lines[at]
    try:
        found = tuple(float(word) for word in words)
    except ValueError:
        found = ()
    if len(found) != count or not np.isfinite(found).all():
        raise fault(path, f"{shown(b' '.join(words))} is not {count} numbers", line)
    return found


def widened(scaling: Scaling, n_features: int) -> Scaling:
    """Return the map for more columns, which are not scaled."""
    more = max(0, n_features - scaling.n_features)
    return replace(scaling, low=np.pad(scaling.low, (0, more)), high=np.pad(scaling.high, (0, more)))
