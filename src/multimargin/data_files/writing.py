"""Writing data files atomically, in the format of the name's suffix."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
from scipy import sparse

from multimargin.base.files import whole_file
from multimargin.base.matrices import dense, is_sparse
from multimargin.data_files.npz import NAMES
from multimargin.data_files.parquet import pyarrow_parquet
from multimargin.data_files.reading import kind_of
from multimargin.data_files.table import Table
from multimargin.data_files.text_blocks import OPENERS

LABEL = "label"


@contextmanager
def text_file(path: Path) -> Iterator[IO[str]]:
    """Yield a text file, compressed as its suffix says, written atomically."""
    opener = OPENERS.get(path.suffix.lower())
    with whole_file(path) as handle:
        inner: Any = handle if opener is None else opener(handle, "wb")
        text = io.TextIOWrapper(inner, encoding="utf-8", newline="")
        yield text
        text.flush()
        text.detach()
        if opener is not None:
            inner.close()


def number(value: float) -> str:
    """Return the shortest text that reads as the same double, without ".0"."""
    return repr(float(value)).removesuffix(".0")


def write_data(path: str | os.PathLike[str], table: Table) -> None:
    """Write rows and labels; the suffix of the name chooses the format, as in ``read_data``."""
    checked = Path(path)
    kind = kind_of(checked)
    if kind == "csv":
        _write_csv(checked, table)
    elif kind == "parquet":
        _write_parquet(checked, table)
    elif kind == "npz":
        _write_npz(checked, table)
    else:
        _write_svmlight(checked, table)


def _write_svmlight(path: Path, table: Table) -> None:
    rows = sparse.csr_array(table.X)
    labels = np.zeros(table.n_rows) if table.y is None else table.y
    if labels.dtype.kind not in "fiub":
        raise ValueError(
            f"{path}: LIBSVM's text has numbers as labels, but the labels are {labels[:3].tolist()}...; write .csv, "
            ".parquet or .npz, or encode the labels as numbers."
        )
    with text_file(path) as handle:
        handle.writelines(svmlight_lines(rows, labels, table.n_features))


def svmlight_lines(rows: Any, labels: np.ndarray, n_features: int) -> Iterator[str]:
    """Yield a line for each row; the first names the last column, so that readers know the number of columns."""
    largest = int(rows.indices.max(initial=-1)) + 1
    for i, label in enumerate(labels):
        part = slice(rows.indptr[i], rows.indptr[i + 1])
        pairs = [f"{j + 1}:{number(v)}" for j, v in zip(rows.indices[part], rows.data[part], strict=True)]
        if i == 0 and largest < n_features:
            pairs.append(f"{n_features}:0")
        yield " ".join([number(label), *pairs]) + "\n"


def _write_csv(path: Path, table: Table) -> None:
    names = _column_names(table)
    with text_file(path) as handle:
        writer = csv.writer(handle, lineterminator="\n", delimiter="\t" if ".tsv" in path.suffixes else ",")
        writer.writerow(([] if table.y is None else [LABEL]) + names)
        for i, row in enumerate(_dense_rows(table)):
            cells = [number(value) for value in row]
            writer.writerow(cells if table.y is None else [_text_of(table.y[i]), *cells])


def _text_of(label: Any) -> str:
    return str(label) if isinstance(label, str | np.bool_) else number(label)


def _write_parquet(path: Path, table: Table) -> None:
    parquet = pyarrow_parquet()
    import pyarrow

    X = dense(table.X)
    columns: dict[str, Any] = {} if table.y is None else {LABEL: pyarrow.array(table.y)}
    columns |= {name: X[:, j] for j, name in enumerate(_column_names(table))}
    with whole_file(path) as handle:
        parquet.write_table(pyarrow.table(columns), handle)


def _write_npz(path: Path, table: Table) -> None:
    arrays: dict[str, Any] = {} if table.y is None else {"y": table.y}
    if table.feature_names is not None:
        arrays[NAMES] = np.array(table.feature_names, dtype=np.str_)
    if is_sparse(table.X):
        X = table.X
        arrays |= {"data": X.data, "indices": X.indices, "indptr": X.indptr, "shape": np.array(X.shape)}
        arrays["format"] = np.array("csr")
    else:
        arrays["X"] = table.X
    with whole_file(path) as handle:
        np.savez_compressed(handle, **arrays)


def _column_names(table: Table) -> list[str]:
    if table.feature_names is not None:
        return list(table.feature_names)
    return [f"x{j + 1}" for j in range(table.n_features)]


def _dense_rows(table: Table) -> Iterable[np.ndarray]:
    if not is_sparse(table.X):
        yield from table.X
        return
    for i in range(table.n_rows):
        yield dense(table.X[[i]]).ravel()
