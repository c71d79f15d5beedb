"""Lines of LIBSVM's and LIBLINEAR's model files: keys with values, then rows of numbers. Strict, with line numbers."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from multimargin.model_files.errors import FaultError, require
from multimargin.solvers.certificate import Certificate
from multimargin.solvers.report import StopReason

NUMBER = rb"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?"
INTEGER = re.compile(rb"[+-]?\d{1,10}")
REAL = re.compile(NUMBER)
LARGEST = 2**31 - 1  # both programs keep labels and indices in 32 bits
REMARK = "the model was taken from {}, which does not record its optimality"


class Lines:
    """A text file, line by line; the header first."""

    def __init__(self, content: bytes) -> None:
        *self.lines, rest = content.split(b"\n")
        require(not rest, "its last line has no end, so that it breaks off there")
        self.next = 0
        self.header: dict[str, tuple[int, list[bytes]]] = {}

    def read_header(self, keys: Sequence[str], last: str) -> None:
        """Read lines of a key and its values up to the line with the last key, which has none."""
        while True:
            require(self.next < len(self.lines), f"it breaks off before the line {last!r}")
            number, words = self.next + 1, self.lines[self.next].split()
            self.next += 1
            require(bool(words), f"line {number} is empty")
            key = words[0].decode("ascii", errors="replace")
            if key == last and len(words) == 1:
                return
            require(key in keys, f"line {number} has the key {key[:30]!r}, which is not known")
            require(key not in self.header, f"line {number} has the key {key!r} a second time")
            self.header[key] = (number, words[1:])

    def word(self, key: str, allowed: Sequence[str], why: str) -> str:
        """Return the only value of a key, one of those allowed."""
        number, words = self._of(key, 1)
        word = words[0].decode("ascii", errors="replace")
        require(word in allowed, f"line {number} has {key} {word[:30]}; {why}")
        return word

    def integers(self, key: str, count: int, low: int, high: int = LARGEST) -> list[int]:
        """Return the values of a key as integers."""
        number, words = self._of(key, count)
        require(all(INTEGER.fullmatch(word) for word in words), f"line {number} has a {key} that is no integer")
        values = [int(word) for word in words]
        require(all(low <= value <= high for value in values), f"line {number} has a {key} below {low} or above {high}")
        return values

    def reals(self, key: str, count: int) -> list[float]:
        """Return the values of a key as finite numbers."""
        number, words = self._of(key, count)
        require(all(REAL.fullmatch(word) for word in words), f"line {number} has a {key} that is no number")
        values = [float(word) for word in words]
        require(all(map(math.isfinite, values)), f"line {number} has a {key} that is too large")
        return values

    def _of(self, key: str, count: int) -> tuple[int, list[bytes]]:
        if key not in self.header:
            raise FaultError(f"it has no line {key!r}")
        number, words = self.header[key]
        require(len(words) == count, f"line {number} has {len(words)} values of {key}, {count} are needed")
        return number, words

    def rows(self, count: int, pattern: re.Pattern[bytes], what: str) -> list[tuple[int, bytes]]:
        """Return the remaining lines, of which there must be so many, each of this form, with their numbers."""
        found = self.lines[self.next :]
        require(len(found) == count, f"it has {len(found)} lines of {what} after its header, {count} are needed")
        numbered = [(self.next + 1 + i, line) for i, line in enumerate(found)]
        for number, line in numbered:
            require(pattern.fullmatch(line) is not None, f"line {number} is no line of {what}")
        return numbered


def distinct_labels(values: list[int]) -> np.ndarray:
    """Return labels, which must differ."""
    require(len(set(values)) == len(values), "it has a label twice")
    return np.array(values, dtype=np.int64)


def labels_to_write(classes: np.ndarray) -> list[int]:
    """Return class labels as the integers that these files hold."""
    if classes.dtype.kind not in "iuf" or not all(
        float(c).is_integer() and abs(c) <= LARGEST for c in classes.tolist()
    ):
        raise ValueError(
            f"The classes {classes[:3].tolist()} are not integers of 32 bits, the only labels that LIBSVM's and "
            "LIBLINEAR's files hold; fit with such labels (sklearn.preprocessing.LabelEncoder), or use save_model."
        )
    return [int(label) for label in classes.tolist()]


def unknown_certificate(program: str, tol: float) -> Certificate:
    """Return the certificate of a model of unknown optimality."""
    nan = float("nan")
    return Certificate(
        primal=nan,
        dual=nan,
        gap=nan,
        relative_gap=nan,
        kkt_violation=nan,
        tol=tol,
        verified=False,
        stop_reason=StopReason.CONVERGED.value,
        n_iter=0,
        seconds=0.0,
        kernel_rows=0,
        cache_hits=0,
        solver=program.lower(),
        solver_reason="not trained here",
        remark=REMARK.format(program),
    )


def read_lines(path: Path) -> Lines:
    return Lines(path.read_bytes())
