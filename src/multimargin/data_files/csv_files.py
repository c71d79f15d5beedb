"""CSV files: a header with the names of the columns, or none; the label's column is named."""

from __future__ import annotations

import csv
import io
import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from multimargin.data_files.errors import DataFileError, MissingLabelError, fault, shown
from multimargin.data_files.room import Room
from multimargin.data_files.table import Table, labels_from_text
from multimargin.data_files.text_blocks import LONGEST_LINE, opened

SEPARATORS = ",;\t"
LABEL_NAMES = ("label", "class", "target", "y")
ROWS_AT_ONCE = 4096
BYTES_OF_LABEL = 64  # bytes of a short str in a list


def read_csv(path: Path, *, label: str | None = None, label_needed: bool = True) -> Table:
    """Return the rows of a CSV file; ``label`` is the name of a column, or its number from 1 (-1: the last)."""
    with opened(path) as raw:
        text = io.TextIOWrapper(raw, encoding="utf-8-sig", newline="")
        try:
            return _read(path, text, label, label_needed=label_needed)
        except UnicodeDecodeError as error:
            raise fault(path, f"is not UTF-8 text ({error.reason})") from error


def _read(path: Path, text: io.TextIOWrapper, label: str | None, *, label_needed: bool) -> Table:
    first = text.readline(LONGEST_LINE)
    separator = max(SEPARATORS, key=first.count)
    lines = _Lines(first, text)
    reader = csv.reader(lines, delimiter=separator, strict=True)
    try:
        return _read_rows(path, reader, lines, label, label_needed=label_needed)
    except csv.Error as error:
        raise fault(path, f"is not CSV ({error})", reader.line_num) from error


def _read_rows(path: Path, reader: Any, lines: _Lines, label: str | None, *, label_needed: bool) -> Table:
    head = next((row for row in reader if row), None)
    if head is None:
        raise fault(path, "is empty; give a CSV file with a row for each example")
    names = None if all(_is_number(cell) for cell in head) else [cell.strip() for cell in head]
    position = find_label(
        path, names, len(head), label, needed=label_needed, sample=lambda: next((row for row in reader if row), None)
    )
    columns = [i for i in range(len(head)) if i != position]
    cells = _Cells(path, names, columns, position, len(head), lines, Room(path))
    if not columns:
        raise fault(path, "has no column beside the label's", reader.line_num)
    if names is None:
        cells.add(head, reader.line_num)
    for row in reader:
        if row:
            cells.add(row, reader.line_num)
    return cells.table()


class _Lines:
    """The lines of a file, the first of them given; records whether any holds an underscore."""

    def __init__(self, first: str, rest: io.TextIOWrapper) -> None:
        self._first, self._rest, self.underscore = first, rest, False

    def __iter__(self) -> Iterator[str]:
        if self._first:
            yield self._first
        while line := self._rest.readline(LONGEST_LINE):
            if len(line) == LONGEST_LINE:
                raise csv.Error(f"a line is longer than {LONGEST_LINE} characters")
            self.underscore |= "_" in line
            yield line


@dataclass(eq=False)
class _Cells:
    """The numbers of the rows, turned into arrays some rows at a time."""

    path: Path
    names: list[str] | None
    columns: list[int]
    position: int | None
    width: int
    source: _Lines
    room: Room
    rows: list[list[str]] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    blocks: list[np.ndarray] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)

    def add(self, row: list[str], line: int) -> None:
        if len(row) != self.width:
            raise fault(self.path, f"has {len(row)} cells, but the first row has {self.width}", line)
        if self.position is not None:
            text = row[self.position].strip()
            if not text:
                raise fault(self.path, "the label is empty", line)
            self.labels.append(text)
        self.rows.append([row[i] for i in self.columns])
        self.lines.append(line)
        if len(self.rows) == ROWS_AT_ONCE:
            self._convert()

    def table(self) -> Table:
        self._convert()
        if not self.blocks:
            raise fault(self.path, "has a header only; give a row for each example")
        names = None if self.names is None else tuple(self.names[i] for i in self.columns)
        y = None if self.position is None else labels_from_text(self.labels)
        label = None if self.names is None or self.position is None else self.names[self.position]
        return Table(np.concatenate(self.blocks), y, names, label)

    def _convert(self) -> None:
        if not self.rows:
            return
        self.room.take(len(self.rows) * (2 * 8 * len(self.columns) + BYTES_OF_LABEL))
        try:
            block = np.array(self.rows, dtype=np.float64)
        except ValueError:
            raise self._first_bad_cell() from None
        # Python reads 1_000 as a number; other programs do not.
        underscored = self.source.underscore and any("_" in cell for row in self.rows for cell in row)
        if underscored or not np.isfinite(block).all():
            raise self._first_bad_cell()
        self.blocks.append(block)
        self.rows, self.lines = [], []

    def _first_bad_cell(self) -> DataFileError:
        for line, row in zip(self.lines, self.rows, strict=True):
            for column, cell in zip(self.columns, row, strict=True):
                if not _is_number(cell):
                    name = f"column {column + 1}" if self.names is None else f"column {shown(self.names[column])}"
                    what = f"{name} is empty" if not cell.strip() else f"{name}: {shown(cell)} is not a finite number"
                    return fault(self.path, f"{what}; encode categories as numbers, fill or drop missing values", line)
        return fault(self.path, "holds a cell that is not a number")


def _is_number(cell: str) -> bool:
    try:
        return bool(np.isfinite(float(cell))) and "_" not in cell
    except ValueError:
        return False


def find_label(
    path: Path,
    names: Sequence[str] | None,
    width: int,
    label: str | None,
    *,
    needed: bool,
    sample: Callable[[], Sequence[str] | None] = lambda: None,
) -> int | None:
    """Return the position of the label's column, or None where there is none and none is needed.

    ``sample`` returns a row of the file, by which the column is guessed that a message asks about.
    """
    if names is not None and len(set(names)) < len(names):
        twice = next(name for name in names if list(names).count(name) > 1)
        raise fault(path, f"has two columns called {shown(twice)}; give each column its own name", 1)
    if label is not None and names is not None and label in names:
        return list(names).index(label)
    if label is not None:
        try:
            number = int(label)
        except ValueError:
            number = 0
        if number == 0 or abs(number) > width:
            known = f"it has {', '.join(map(shown, names[:20]))}" if names else f"it has {width} columns without names"
            raise MissingLabelError(
                f"{path}: has no column {shown(label)} for the label: {known}; name the label's column (--label)"
            )
        return number - 1 if number > 0 else width + number
    found = [i for i, name in enumerate(names or ()) if name.lower() in LABEL_NAMES]
    if len(found) == 1:
        return found[0]
    if needed:
        raise fault(
            path,
            f"has {'no' if not found else 'more than one'} column called {', '.join(LABEL_NAMES)}; "
            f"{_question(names, width, sample())}name the label's column with --label NAME, or its number from 1 "
            "(-1: the last)",
        )
    return None


def _question(names: Sequence[str] | None, width: int, row: Sequence[str] | None) -> str:
    """Ask whether a column is the label: the last that holds text, or the last one."""
    if names is None:
        return ""
    texts = [i for i, cell in enumerate((row or ())[:width]) if not _is_number(cell)]
    likely = names[texts[-1] if texts else -1]
    return f"is {shown(likely)} the label? then add --label {shlex.quote(likely)}; else "
