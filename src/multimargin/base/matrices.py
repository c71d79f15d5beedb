"""Helpers for matrices of rows, dense or sparse."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn import get_config

from multimargin import _core
from multimargin._typing import DataArray, DataMatrix, FloatArray
from multimargin.base.resources import check_room


def is_sparse(X: DataMatrix) -> bool:
    """Return whether X is one of scipy's sparse matrices."""
    return bool(sparse.issparse(X))


def tidy(X: DataMatrix) -> DataMatrix:
    """Return X in the layout that the core reads, copied only where needed.

    Dense rows follow each other in memory; sparse rows have ascending indices without repetitions.
    """
    if not is_sparse(X):
        return np.ascontiguousarray(X)
    if X.has_canonical_format:
        return X
    summed = X.copy()
    summed.sum_duplicates()
    return summed


def weighted_sums_of_rows(weights: FloatArray, X: DataMatrix) -> DataMatrix:
    """Return weights @ X; of sparse X as CSR, in memory for the columns that have entries."""
    if not is_sparse(X):
        return np.asarray(weights @ X)
    columns, places = np.unique(X.indices, return_inverse=True)
    narrow = sparse.csr_array((X.data, places, X.indptr), shape=(X.shape[0], len(columns)))
    sums = sparse.csr_array(np.asarray(weights @ narrow))
    return sparse.csr_array((sums.data, columns[sums.indices], sums.indptr), shape=(len(weights), X.shape[1]))


def as_published(X: DataMatrix) -> DataMatrix:
    """Return sparse rows in the class that scikit-learn is set to return (``sparse_interface``); others unchanged."""
    if not is_sparse(X):
        return X
    arrays = get_config().get("sparse_interface", "spmatrix") == "sparray"
    wanted = sparse.csr_array if arrays else sparse.csr_matrix
    return X if type(X) is wanted else wanted(X)


def public_coefficients(values: np.ndarray, *, as_sparse: bool) -> DataMatrix:
    """Return coefficients as scikit-learn's SVC has them: on sparse data CSR with every entry, zeros too."""
    if not as_sparse:
        return values
    n_rows, width = values.shape
    indices = np.tile(np.arange(width, dtype=np.int32), n_rows)
    starts = width * np.arange(n_rows + 1, dtype=np.int32)
    return as_published(sparse.csr_array((values.ravel(), indices, starts), shape=values.shape))


def dense(X: DataMatrix) -> FloatArray:
    """Return the rows as a dense array of doubles; raise MemoryError where memory does not suffice."""
    if not is_sparse(X):
        return np.ascontiguousarray(X, dtype=np.float64)
    check_room(
        8.0 * X.shape[0] * X.shape[1],
        f"{X.shape[0]} sparse rows of {X.shape[1]} columns, which are needed dense,",
        "leave out columns that are zero throughout, and renumber the others",
    )
    return np.ascontiguousarray(X.toarray(), dtype=np.float64)


def check_indices(X: Any) -> None:
    """Raise ValueError for a sparse matrix whose arrays contradict each other; scipy would read out of bounds."""
    if not is_sparse(X) or X.format not in ("csr", "csc", "coo"):
        return
    n_rows, n_columns = X.shape
    if X.format == "coo":
        _check_range("row", X.coords[0], n_rows)
        _check_range("column", X.coords[1], n_columns)
        return
    major, minor, name = (n_rows, n_columns, "column") if X.format == "csr" else (n_columns, n_rows, "row")
    starts, indices = X.indptr, X.indices
    sound = starts.shape == (major + 1,) and indices.ndim == 1 and indices.shape == X.data.shape
    sound = sound and starts.dtype.kind in "iu" and indices.dtype.kind in "iu"
    if not (sound and starts[0] == 0 and starts[-1] <= len(indices) and (starts[1:] >= starts[:-1]).all()):
        raise ValueError(
            f"X is a sparse matrix whose indptr does not lead through its {len(indices)} indices from row to row; "
            "rebuild it, and see X.check_format()."
        )
    _check_range(name, indices[: starts[-1]], minor)


def _check_range(name: str, indices: np.ndarray, length: int) -> None:
    if not len(indices):
        return
    least, most = int(indices.min()), int(indices.max())
    if least < 0 or most >= length:
        raise ValueError(
            f"X is a sparse matrix with the {name} index {least if least < 0 else most}, but it has {length} {name}s, "
            f"from 0 to {length - 1}; rebuild it, and see X.check_format()."
        )


def to_core(X: DataMatrix) -> DataArray | _core.SparseData:
    """Return what the core takes for tidy X, read in place."""
    if not is_sparse(X):
        return X  # type: ignore[no-any-return]
    integer: Any = np.int32 if X.indices.dtype == X.indptr.dtype == np.int32 else np.int64
    starts = np.ascontiguousarray(X.indptr, dtype=integer)
    indices = np.ascontiguousarray(X.indices, dtype=integer)
    return _core.SparseData(np.ascontiguousarray(X.data), indices, starts, X.shape[1])


def less_offsets(X: DataMatrix, offsets: FloatArray) -> DataMatrix:
    """Return sparse X - offsets, where only the columns with an offset other than 0 are filled."""
    columns = np.flatnonzero(offsets)
    n_rows = X.shape[0]
    starts = np.arange(n_rows + 1, dtype=np.int64) * len(columns)
    shift = sparse.csr_array((np.tile(offsets[columns], n_rows), np.tile(columns, n_rows), starts), shape=X.shape)
    return sparse.csr_array(X.astype(np.float64)) - shift


def same_values(A: DataMatrix, B: DataMatrix) -> bool:
    """Return whether two matrices, each dense or sparse, have the same shape and entries."""
    if A.shape != B.shape:
        return False
    if is_sparse(A) or is_sparse(B):
        return bool((sparse.csr_array(A) != sparse.csr_array(B)).nnz == 0)
    return bool(np.array_equal(A, B))


def variance(X: DataMatrix, weight: FloatArray | None = None) -> float:
    """Return the variance of all entries; a weight counts as that many repetitions of its row."""
    if is_sparse(X):
        return _sparse_variance(X, weight)
    if weight is None:
        return float(X.var())  # scikit-learn's formula, so that gamma="scale" is the same number
    rows = np.asarray(X, dtype=np.float64)
    mean = np.average(rows.mean(axis=1), weights=weight)
    return float(np.average(((rows - mean) ** 2).mean(axis=1), weights=weight))


def largest_square(X: DataMatrix) -> float:
    """Return the largest squared length of a row, in float64; infinity or NaN where it overflows."""
    with np.errstate(over="ignore", invalid="ignore"):
        if is_sparse(X):
            entries = np.square(X.data, dtype=np.float64)
            squares = sparse.csr_array((entries, X.indices, X.indptr), shape=X.shape).sum(axis=1)
        else:
            squares = np.einsum("ij,ij->i", X, X, dtype=np.float64)
        return float(np.max(squares, initial=0.0))


def _lost_share(X: DataMatrix) -> float:
    """Return the share of E x^2 below which E x^2 - (E x)^2 has less than half of its digits."""
    return float(np.sqrt(np.finfo(X.dtype).eps))


def _sparse_variance(X: DataMatrix, weight: FloatArray | None) -> float:
    if weight is None:
        squares, mean = X.multiply(X).mean(), X.mean()  # scikit-learn's formula again
    else:
        rows = X.astype(np.float64)
        squares = np.average(np.asarray(rows.multiply(rows).mean(axis=1)).ravel(), weights=weight)
        mean = np.average(np.asarray(rows.mean(axis=1)).ravel(), weights=weight)
    found = float(squares - mean**2)
    if found > _lost_share(X) * squares:
        return found
    # The difference has lost half of its digits: sum squared differences instead, absent entries included.
    lengths, entries = np.diff(X.indptr), X.data.astype(np.float64)
    mean = np.average((X.astype(np.float64) @ np.ones(X.shape[1])) / X.shape[1], weights=weight)
    sums = (X.shape[1] - lengths) * mean**2
    sums += np.bincount(np.repeat(np.arange(len(lengths)), lengths), (entries - mean) ** 2, len(lengths))
    return float(np.average(sums, weights=weight) / X.shape[1])


def column_deviations(X: DataMatrix) -> FloatArray:
    """Return the standard deviation of each column, shape (n_features,)."""
    if not is_sparse(X):
        return np.asarray(np.asarray(X, dtype=np.float64).std(axis=0))
    entries = X.astype(np.float64)
    squares = np.asarray(entries.multiply(entries).mean(axis=0)).ravel()
    variances = squares - np.asarray(entries.mean(axis=0)).ravel() ** 2
    lost = np.flatnonzero(variances <= _lost_share(entries) * squares)
    lost = lost[squares[lost] > 0]
    if len(lost):  # they are nearly full
        columns = entries[:, lost].toarray()
        variances[lost] = (columns - columns[:1]).var(axis=0)
    return np.asarray(np.sqrt(np.maximum(variances, 0.0)))


def distinct_rows(X: DataMatrix) -> np.ndarray:
    """Return a label for each row of X, the same for equal rows."""
    if not is_sparse(X):
        return np.unique(X, axis=0, return_inverse=True)[1].ravel()
    kept = tidy(X).copy()
    kept.eliminate_zeros()
    numbers: dict[tuple[bytes, bytes], int] = {}
    bounds = zip(kept.indptr[:-1], kept.indptr[1:], strict=True)
    keys = ((kept.indices[start:end].tobytes(), kept.data[start:end].tobytes()) for start, end in bounds)
    return np.array([numbers.setdefault(key, len(numbers)) for key in keys])
