"""Kernels that the caller computes: a precomputed matrix, or a function of two sets of rows.

Both become a symmetric matrix over all rows of the training data, which is tested for positive semi-definiteness, on a
sample if there are many rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from multimargin._typing import DataArray, DataMatrix, FloatArray, IntArray
from multimargin.base.matrices import is_sparse
from multimargin.base.resources import MEGABYTE, cache_bytes
from multimargin.kernels.spec import KernelSpec
from multimargin.kernels.store import check_values_range
from multimargin.problems.training_set import TrainingSet

# Rows of X for which a kernel function is called at once.
BLOCK_ROWS = 512
# Entries (i, j) and (j, i) may differ by this share of the largest; where it is more than rounding they are averaged.
SYMMETRY_TOLERANCE = 1e-6
# Rows on which positive semi-definiteness is tested.
SAMPLE_ROWS = 512

KernelFunction = Callable[[DataMatrix, DataMatrix], Any]


def refuse_sparse_gram(X: Any) -> None:
    """Raise TypeError for a kernel matrix that is sparse."""
    if is_sparse(X):
        raise TypeError(
            "Sparse precomputed kernels are not supported: X is a sparse matrix, kernel='precomputed' needs a dense "
            "one; pass X.toarray()."
        )


def holds_objects(X: Any) -> bool:
    """Return whether X is not a table of numbers: rows such as strings, or arrays of several shapes."""
    if is_sparse(X):
        return False
    try:
        array = np.asarray(X)
        if array.dtype.kind == "O":
            array.astype(np.float64)
    except (TypeError, ValueError):
        return True
    return array.dtype.kind in "USV" or array.ndim > 2


def as_objects(X: Any) -> np.ndarray:
    """Return an array whose first axis goes over the rows."""
    if isinstance(X, np.ndarray):
        return X
    if hasattr(X, "to_numpy"):
        return np.asarray(X.to_numpy(dtype=object))
    rows = list(X)
    array = np.empty(len(rows), dtype=object)
    for number, row in enumerate(rows):  # an assignment of all at once would look into them
        array[number] = row
    return array


def check_values(points: DataArray, support: IntArray) -> None:
    """Refuse NaN and infinity; a column that was not computed, NaN throughout, may only be one that is not read."""
    finite = np.isfinite(points)
    if finite.all():
        return
    left_out = np.asarray(np.isnan(points).all(axis=0))
    left_out[support[support < len(left_out)]] = False
    if not finite[:, ~left_out].all():
        row, column = (int(found[0]) for found in np.nonzero(~finite & ~left_out))
        raise ValueError(
            f"X contains NaN or infinity, first in row {row}, column {column}; give finite kernel values, or NaN "
            "throughout a column that belongs to no support vector."
        )


def settle(data: TrainingSet, kernel: KernelSpec, cache_size: float | str) -> tuple[TrainingSet, KernelSpec]:
    """Return the data with their kernel matrix and the tested kernel; other kernels are unchanged."""
    if not kernel.given:
        return data, kernel
    matrix = data.X if kernel.function is None else evaluate_all(kernel.function, data.X, cache_size)
    matrix = symmetric(matrix, "X" if kernel.function is None else "The matrix that kernel returned")
    definite, n_tested = check_definiteness(matrix, data.rows)
    kernel = replace(kernel, indefinite=not definite, tested_rows=n_tested, tested_all=n_tested == len(data.rows))
    return replace(data, gram=matrix), kernel


def evaluate_all(function: KernelFunction, X: DataMatrix, cache_size: float | str) -> DataArray:
    """Return function(X, X), computed by blocks of rows; refused where it does not fit the cache."""
    n = X.shape[0]
    needed = 8 * n * n
    budget = cache_bytes(cache_size, needed)
    if needed > budget:
        raise MemoryError(
            f"The matrix of a callable kernel takes {needed / MEGABYTE:.0f} MB for {n} rows, cache_size={cache_size!r} "
            f"allows {budget / MEGABYTE:.0f}; set cache_size={np.ceil(needed / MEGABYTE):.0f} or fit on fewer rows."
        )
    matrix = np.empty((n, n))
    for first, values in evaluate_blocks(function, X, X):
        matrix[first : first + len(values)] = values
    return matrix


def evaluate_blocks(function: KernelFunction, A: DataMatrix, B: DataMatrix) -> Iterator[tuple[int, DataArray]]:
    """Yield (first row, function(rows of A, B)) block by block.

    A function that fails for some rows but works for all is called once for all.
    """
    n, width = A.shape[0], B.shape[0]
    for first in range(0, n, BLOCK_ROWS):
        block = A[first : first + BLOCK_ROWS]
        result = call_kernel(function, block, B)
        if np.shape(result) != (block.shape[0], width) and first == 0 and block.shape[0] < n:
            whole = call_kernel(function, A, B)
            if np.shape(whole) == (n, width):
                yield 0, _checked(whole, (n, width))
                return
        yield first, _checked(result, (block.shape[0], width))


def support_values(model: Any, X: DataMatrix) -> Iterator[DataMatrix]:
    """Yield the kernel values of rows of X with a model's support vectors, (n_rows, n_SV), block by block."""
    rows = model.support_vectors if model.whole is None else model.whole
    for _, values in evaluate_blocks(model.kernel.function, X, rows):
        yield values if model.whole is None else np.ascontiguousarray(values[:, model.support])


def call_kernel(function: KernelFunction, A: DataMatrix, B: DataMatrix) -> Any:
    """Return function(A, B); it may read the rows, but not change them: they are the caller's own."""
    try:
        return function(read_only(A), read_only(B))
    except ValueError as error:
        if "buffer source array is read-only" in str(error):  # compiled code that does not say that it only reads
            return function(A.copy(), B.copy())
        if "read-only" in str(error):
            raise ValueError(
                f"The callable kernel wrote to the rows that it was given ({error}); they are the data themselves, so "
                "let it compute with copies."
            ) from error
        raise


def read_only(X: DataMatrix) -> DataMatrix:
    """Return the same rows, not copied, such that writing to them is an error."""
    if is_sparse(X):
        same = type(X)((_locked(X.data), _locked(X.indices), _locked(X.indptr)), shape=X.shape, copy=False)
        for array in (same.data, same.indices, same.indptr):
            array.flags.writeable = False
        return same
    return _locked(X)


def _locked(array: np.ndarray) -> np.ndarray:
    view = array.view()
    view.flags.writeable = False
    return view


def _checked(result: Any, shape: tuple[int, int]) -> DataArray:
    """Return what a kernel function returned as a contiguous array, or raise an error that describes the problem."""
    if is_sparse(result):
        result = result.toarray()
    if np.shape(result) != shape:
        raise ValueError(
            f"The callable kernel returned shape {np.shape(result)} for {shape[0]} rows against {shape[1]}; it must "
            f"return an array of shape {shape}: one kernel value for each pair of rows."
        )
    values = np.asarray(result)
    if values.dtype.kind not in "fiub":
        raise TypeError(
            f"The callable kernel returned {type(result).__name__} with entries of type {values.dtype}; it must return "
            f"an array of real numbers of shape {shape}."
        )
    values = np.ascontiguousarray(values, dtype=np.float32 if values.dtype == np.float32 else np.float64)
    if not np.isfinite(values).all():
        raise ValueError("The callable kernel returned NaN or infinity; every kernel value must be a finite number.")
    return values


def symmetric(matrix: DataArray, name: str) -> DataArray:
    """Return a kernel matrix that is square and symmetric; the same object if it is so up to rounding."""
    if matrix.shape[0] != matrix.shape[1]:
        raise ValueError(
            f"{name} has shape {matrix.shape}; with kernel='precomputed' fit needs the square matrix of kernel values "
            "between all pairs of training rows."
        )
    largest = max(float(np.abs(part).max(initial=0.0)) for part in (matrix.min(initial=0), matrix.max(initial=0)))
    check_values_range(matrix, name)
    apart, worst = 0.0, (0, 0)
    for first in range(0, len(matrix), BLOCK_ROWS):
        last = first + BLOCK_ROWS
        difference = np.abs(matrix[first:last, first:] - matrix[first:, first:last].T)
        found = float(difference.max())
        if found > apart:
            row, column = np.unravel_index(int(np.argmax(difference)), difference.shape)
            apart, worst = found, (first + int(row), first + int(column))
    if apart > SYMMETRY_TOLERANCE * largest:
        i, j = worst
        raise ValueError(
            f"{name} is not symmetric: entry ({i}, {j}) is {matrix[i, j]:.6g} and entry ({j}, {i}) is "
            f"{matrix[j, i]:.6g}; a kernel matrix is symmetric, so use (K + K.T) / 2 or another kernel."
        )
    if apart <= 16 * np.finfo(matrix.dtype).eps * largest:
        return matrix
    return (matrix + matrix.T) / 2


def check_definiteness(matrix: DataArray, rows: IntArray) -> tuple[bool, int]:
    """Return whether the matrix is positive semi-definite on a sample of the rows, and the size of the sample."""
    chosen = rows
    if len(rows) > SAMPLE_ROWS:
        chosen = np.sort(np.random.default_rng(0).choice(rows, SAMPLE_ROWS, replace=False))
    part: FloatArray = np.asarray(matrix[np.ix_(chosen, chosen)], dtype=np.float64)
    part = (part + part.T) / 2
    # What rounding of the entries may do to an eigenvalue.
    jitter = 16 * float(np.finfo(matrix.dtype).eps) * float(np.abs(np.diag(part)).sum())
    try:
        np.linalg.cholesky(part + max(jitter, np.finfo(np.float64).tiny) * np.eye(len(part)))
    except np.linalg.LinAlgError:
        return False, len(chosen)
    return True, len(chosen)
