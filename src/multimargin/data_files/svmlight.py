"""LIBSVM's and svmlight's text files: a row on each line, ``label index:value index:value ... # comment``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from multimargin import _core
from multimargin.base.resources import available_bytes
from multimargin.data_files.errors import DataFileError, fault, shown
from multimargin.data_files.room import Room
from multimargin.data_files.table import Table, labels_from_numbers
from multimargin.data_files.text_blocks import BLOCK, line_blocks


@dataclass(frozen=True, eq=False)
class RowBlock:
    """Consecutive rows: labels, and values with their indices as in the file."""

    labels: NDArray[np.float64]
    values: NDArray[np.float64]
    indices: NDArray[np.int64]
    starts: NDArray[np.int64]

    @property
    def largest_index(self) -> int:
        return int(self.indices.max(initial=-1))

    def rows(self, first_index: int, n_features: int = 0) -> sparse.csr_array:
        """Return the rows as a matrix with at least ``n_features`` columns, the first of ``first_index``."""
        width = max(n_features, self.largest_index + 1 - first_index)
        columns = (self.indices - first_index).astype(np.int32)
        starts = self.starts.astype(np.int32) if len(columns) < 2**31 else self.starts
        return sparse.csr_array((self.values, columns, starts), shape=(len(self.labels), width))


def row_blocks(path: Path, *, first_index: int = 1, size: int = BLOCK) -> Iterator[RowBlock]:
    """Yield the rows of a file, some at a time; a fault is a DataFileError that names its line."""
    for line, text in line_blocks(path, size):
        labels, values, indices, starts, kind, at, token = _core.read_rows(text, first_index)
        if kind is not _core.TextFault.none:
            raise _fault_of(path, kind, token, line + at, first_index)
        if len(labels):
            yield RowBlock(labels, values, indices, starts)


def read_svmlight(path: Path, *, n_features: int = 0, zero_based: bool = False) -> Table:
    """Return all rows of a file, sparse."""
    first_index = 0 if zero_based else 1
    block = joined(_within_room(path, row_blocks(path, first_index=first_index)))
    if block is None:
        raise fault(path, "has no rows; a row is a line such as '1 1:0.5 3:-2'")
    return Table(block.rows(first_index, n_features), labels_from_numbers(block.labels))


def read_precomputed(path: Path, *, square: bool = False) -> Table:
    """Return kernel values, dense: LIBSVM writes them as ``label 0:number 1:K(x, x_1) 2:K(x, x_2) ...``.

    In a ``square`` file, which is trained on, row i has the number i; the numbers of rows to predict are not read.
    """
    block = joined(_within_room(path, row_blocks(path, first_index=0)))
    if block is None or block.largest_index < 1:
        raise fault(path, "has no kernel values; a row is a line such as '1 0:1 1:0.5 2:0.25'")
    n_rows, width = len(block.labels), block.largest_index
    if square and width != n_rows:
        raise fault(path, f"has {n_rows} rows and {width} columns of kernel values; give the matrix of all pairs")
    if 8 * n_rows * width > available_bytes():
        raise fault(path, f"has {n_rows} times {width} kernel values, which are more than the memory holds")
    values = block.rows(0).toarray()
    if square and not np.array_equal(values[:, 0], np.arange(1, n_rows + 1)):
        line = int(np.argmax(values[:, 0] != np.arange(1, n_rows + 1))) + 1
        raise fault(path, f"row {line} does not begin with 0:{line}; number the rows from 1, in order")
    return Table(np.ascontiguousarray(values[:, 1:]), labels_from_numbers(block.labels))


def _within_room(path: Path, blocks: Iterable[RowBlock]) -> Iterator[RowBlock]:
    """Yield blocks that will be kept and joined, as long as memory suffices for both."""
    room = Room(path)
    for block in blocks:
        room.take(2 * sum(part.nbytes for part in (block.labels, block.values, block.indices, block.starts)))
        yield block


def joined(blocks: Iterable[RowBlock]) -> RowBlock | None:
    """Return all rows as one block, or None where there are none."""
    parts = list(blocks)
    if len(parts) < 2:
        return parts[0] if parts else None
    before = np.cumsum([0, *(len(part.values) for part in parts)])
    starts = [part.starts[1:] + offset for part, offset in zip(parts, before[:-1], strict=True)]
    return RowBlock(
        labels=np.concatenate([part.labels for part in parts]),
        values=np.concatenate([part.values for part in parts]),
        indices=np.concatenate([part.indices for part in parts]),
        starts=np.concatenate([parts[0].starts[:1], *starts]),
    )


def _fault_of(path: Path, kind: _core.TextFault, token: bytes, line: int, first_index: int) -> DataFileError:
    text = shown(token)
    if kind is _core.TextFault.label:
        what = f"the label {text} is not a finite number"
    elif kind is _core.TextFault.pair:
        what = f"{text} is not of the form index:value"
    elif kind is _core.TextFault.order:
        what = f"the index of {text} is not above the one before it; sort each row by index, and name each index once"
    elif kind is _core.TextFault.value:
        what = f"the value of {text} is not a finite number"
    elif token.startswith(b"qid:"):
        what = f"{text} is a query id, for ranking; there is nothing to rank here, so leave it out"
    else:
        what = f"{text} does not begin with an index, a whole number from {first_index} to 2147483647"
        if token.startswith(b"0:"):
            what += "; a file whose indices begin at 0 is read with zero_based=True (--zero-based)"
    return fault(path, what, line)
