"""Files of predictions: a label for each row, with probabilities or scores; written row by row, atomically."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import numpy as np

from multimargin.base.files import whole_file
from multimargin.data_files.reading import kind_of
from multimargin.data_files.writing import number, text_file

STDOUT = Path("-")


@dataclass(frozen=True)
class Columns:
    """The columns beside the label: the names of probabilities (of classes) or of scores."""

    names: tuple[str, ...] = ()
    probabilities: bool = False

    @classmethod
    def of(cls, model: Any, *, probabilities: bool, scores: bool) -> Columns:
        """Return the columns of a model: one for each class; of two classes one score; of pairs each pair's."""
        classes = [label_text(label) for label in model.classes_]
        if probabilities:
            return cls(tuple(classes), True)
        if not scores:
            return cls()
        if len(classes) == 2:
            return cls((classes[1],))
        if getattr(model, "decision_function_shape", "ovr") == "ovo":
            return cls(tuple(f"{a}|{b}" for i, a in enumerate(classes) for b in classes[i + 1 :]))
        return cls(tuple(classes))


def label_text(label: Any) -> str:
    """Return a label as text."""
    if isinstance(label, str | np.bool_ | bool):
        return str(label)
    return number(label)


class Lines:
    """svm-predict's file: the label on each line; with probabilities, a header line of labels, and the probabilities
    beside each label."""

    def __init__(self, handle: IO[str], columns: Columns) -> None:
        self._handle = handle
        if columns.probabilities:
            handle.write(f"labels {' '.join(columns.names)}\n")

    def add(self, labels: np.ndarray, numbers: np.ndarray | None) -> None:
        for i, label in enumerate(labels):
            row = [] if numbers is None else [number(value) for value in numbers[i]]
            self._handle.write(" ".join([label_text(label), *row]) + "\n")


class CsvLines:
    """A CSV file with a header."""

    def __init__(self, handle: IO[str], columns: Columns) -> None:
        self._writer = csv.writer(handle, lineterminator="\n")
        kind = "probability" if columns.probabilities else "score"
        self._writer.writerow(["label", *(f"{kind}_{name}" for name in columns.names)])

    def add(self, labels: np.ndarray, numbers: np.ndarray | None) -> None:
        for i, label in enumerate(labels):
            row = [] if numbers is None else [number(value) for value in numbers[i]]
            self._writer.writerow([label_text(label), *row])


@dataclass(eq=False)
class Arrays:
    """Arrays ``label`` and ``probability`` or ``score``, with the names of their columns."""

    columns: Columns
    labels: list[np.ndarray] = field(default_factory=list)
    numbers: list[np.ndarray] = field(default_factory=list)

    def add(self, labels: np.ndarray, numbers: np.ndarray | None) -> None:
        self.labels.append(labels)
        if numbers is not None:
            self.numbers.append(numbers)

    def arrays(self) -> dict[str, np.ndarray]:
        found = {"label": np.concatenate(self.labels)}
        if self.numbers:
            found["probability" if self.columns.probabilities else "score"] = np.concatenate(self.numbers)
            found["columns"] = np.array(self.columns.names, dtype=np.str_)
        return found


def open_stdout() -> IO[str]:
    """Return stdout, for results without a file."""
    if sys.stdout is None:
        raise ValueError("stdout is closed, where the results would go; give the name of a file, or open it.")
    return sys.stdout


@contextmanager
def result_file(path: Path, columns: Columns) -> Iterator[Lines | CsvLines | Arrays]:
    """Yield a writer of predictions; the suffix of the name chooses the format, "-" is stdout."""
    if path == STDOUT:
        yield Lines(open_stdout(), columns)
    elif kind_of(path) == "npz":
        kept = Arrays(columns)
        yield kept
        with whole_file(path) as handle:
            np.savez_compressed(handle, **kept.arrays())  # type: ignore[arg-type]
    else:
        with text_file(path) as text:
            yield CsvLines(text, columns) if kind_of(path) == "csv" else Lines(text, columns)
