"""Parquet files, read by pyarrow, an optional dependency."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from multimargin.data_files.csv_files import find_label
from multimargin.data_files.errors import DataFileError, fault, shown
from multimargin.data_files.room import Room
from multimargin.data_files.table import Table, labels_from_numbers, labels_from_text

MISSING = "Parquet files need pyarrow, which is not installed; get it with: pip install 'multimargin[parquet]'"


def pyarrow_parquet() -> Any:
    """Return pyarrow's module, or raise ImportError with the command that installs it."""
    try:
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError(MISSING) from error
    return pyarrow.parquet


def read_parquet(path: Path, *, label: str | None = None, label_needed: bool = True) -> Table:
    """Return the rows of a Parquet file; ``label`` is the name of a column, or its number from 1 (-1: the last)."""
    parquet = pyarrow_parquet()
    try:
        found = parquet.read_metadata(path)
        Room(path).take(2 * 8 * found.num_rows * found.num_columns)  # pyarrow's own copy, and the doubles
        table = parquet.read_table(path)
    except DataFileError:
        raise
    except (OSError, ValueError) as error:  # ArrowInvalid is a ValueError
        raise fault(path, f"cannot be read as Parquet ({str(error).splitlines()[0]})") from error
    names = list(table.column_names)
    position = find_label(path, names, len(names), label, needed=label_needed)
    columns = [i for i in range(len(names)) if i != position]
    if not columns or not table.num_rows:
        raise fault(path, "has no rows, or no column beside the label's")
    X = np.empty((table.num_rows, len(columns)))
    for j, i in enumerate(columns):
        X[:, j] = _numbers(path, names[i], table.column(i))
    y = None if position is None else _labels(path, names[position], table.column(position))
    label_name = None if position is None else names[position]
    return Table(X, y, tuple(names[i] for i in columns), label_name)


def _numbers(path: Path, name: str, column: Any) -> np.ndarray:
    values = _whole(path, name, column)
    if values.dtype.kind not in "fiub":
        raise fault(path, f"the column {shown(name)} holds no numbers ({column.type}); encode categories as numbers")
    if not np.isfinite(values).all():
        raise fault(path, f"the column {shown(name)} holds values that are not finite; fill or drop them")
    return values


def _labels(path: Path, name: str, column: Any) -> np.ndarray:
    values = _whole(path, name, column)
    if values.dtype.kind == "f":
        return labels_from_numbers(values.astype(np.float64))
    return values if values.dtype.kind in "iub" else labels_from_text([str(value) for value in values])


def _whole(path: Path, name: str, column: Any) -> np.ndarray:
    if column.null_count:
        raise _missing(path, name)
    return np.asarray(column.to_numpy())


def _missing(path: Path, name: str) -> DataFileError:
    return fault(path, f"the column {shown(name)} has missing values; fill or drop them")
