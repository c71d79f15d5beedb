"""Kernel values over one data set, from the C++ core: rows, blocks, scores."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from multimargin import _core
from multimargin._typing import DataArray, DataMatrix, FloatArray, IntArray
from multimargin.base.matrices import is_sparse, largest_square, less_offsets, tidy, to_core
from multimargin.base.resources import n_threads
from multimargin.kernels.spec import KernelSpec
from multimargin.kernels.table import KERNELS

# Dense data take the sparse tiles from this many features on and up to this share of nonzeros. Measured on one thread,
# ns per rbf value in float32, sparse against dense tiles: 123 features with 14 nonzeros (adult) 1.0 / 3.8, with 30
# 1.5 / 3.8; 180 with 46 (dna) 2.0 / 4.9; 300 with 12 (web) 1.2 / 8.5; 64 with 16 1.1 / 2.0; 36 with 9 1.0 / 1.4.
SPARSE_FROM_FEATURES = 32
SPARSE_SHARE = 0.3
# The sparse tiles compute |x|^2 + |z|^2 - 2 x'z, whose rounding in float32 is a 1e-7th of its terms and goes through
# exp as a relative error: up to this size of gamma times the terms it stays near that of the dense tiles. Their
# centring is lost, too, which matters beyond it only.
SPARSE_EXPONENT = 8.0
# CSR data are checked for offsets from this size of gamma times the norms on, where a distance that is small beside
# them has an error of 1e-4 in the exponent of a float32 value; for larger ones float64 values are affected, too.
OFFSET_EXPONENT = 1e-4 / float(np.finfo(np.float32).eps)
# A column is centred if that takes away so much of its squares; it has at least as many entries as that, then.
OFFSET_SHARE = 0.75
# Points of the other kind than the store's data are converted by blocks of this many entries.
CONVERTED_ENTRIES = 2_000_000


def pays_as_sparse(X: DataArray, kernel: KernelSpec) -> bool:
    """Return whether sparse rows give the kernel values of dense X faster, at the same precision."""
    if X.shape[1] < SPARSE_FROM_FEATURES or kernel.given or kernel.form == "absolute_difference":
        return False
    few = X[:: max(1, len(X) // 128)]  # a sample decides for most data
    if any(np.count_nonzero(part) > SPARSE_SHARE * part.size for part in (few, X)):
        return False
    if kernel.form == "dot":
        return True
    largest = largest_square(X)
    return 2 * abs(kernel.scale) * largest <= SPARSE_EXPONENT


# The largest allowed kernel value and squared length of a row: products of two of them, and sums over all examples,
# stay finite in float64 (whose largest number is near 2^1024).
LARGEST_VALUE = 2.0**500


def check_rows(X: DataMatrix, name: str = "X") -> float:
    """Return the largest squared length of a row; raise ValueError where it is above LARGEST_VALUE."""
    square = largest_square(X)
    if not square <= LARGEST_VALUE:
        raise ValueError(
            f"{name} has rows too long to compute with: a sum of squares is {square:.2g}, and {LARGEST_VALUE:.0e} is "
            "the most; scale the columns (for example with StandardScaler)."
        )
    return square


def check_range(X: DataMatrix, kernel: KernelSpec) -> None:
    """Raise ValueError for data whose kernel values, or products of two of them, would overflow."""
    if kernel.given:
        check_values_range(X.diagonal(), "X")
        return
    square = check_rows(X)
    largest = kernel.largest_value(square)
    if not largest <= LARGEST_VALUE:
        names = KERNELS[kernel.name].parameters
        given = [f"{name}={getattr(kernel, name):.6g}" for name in names]
        raise ValueError(
            f"kernel={kernel.name!r} with {_listed(given, 'and')} has values up to {largest:.2g} on these rows, and "
            f"{LARGEST_VALUE:.0e} is the most that can be computed with; scale the columns of X (for example with "
            f"StandardScaler), or lower {_listed(names, 'or')}."
        )


def _listed(words: Sequence[str], last: str) -> str:
    return f" {last} ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def check_values_range(values: DataArray, name: str) -> None:
    """Raise ValueError for given kernel values whose products would overflow."""
    largest = max(abs(float(values.min(initial=0.0))), abs(float(values.max(initial=0.0))))
    if not largest <= LARGEST_VALUE:
        raise ValueError(
            f"{name} has kernel values up to {largest:.2g}, and {LARGEST_VALUE:.0e} is the most that can be computed "
            "with; divide the matrix by its largest entry and multiply C by it, which is the same machine."
        )


def offsets_of(X: DataMatrix, kernel: KernelSpec) -> FloatArray | None:
    """Return what to subtract from the columns of sparse X so that small distances keep their digits, or None.

    Squared distances of sparse rows are |x|^2 + |z|^2 - 2 x'z. Columns whose squares are mostly those of an offset are
    mostly filled, so that centring them, the absent entries with them, adds few entries.
    """
    if not kernel.shift_invariant or X.shape[0] == 0:
        return None
    with np.errstate(over="ignore"):  # then the norms are infinite, and large
        power = 1 if kernel.form == "absolute_difference" else 2
        largest = np.float64(max(X.data.max(initial=0.0), -X.data.min(initial=0.0)))
        if abs(kernel.scale) * largest**power * np.diff(X.indptr).max() <= OFFSET_EXPONENT:
            return None  # decides for most data, without a copy
        entries = X.astype(np.float64)
        sizes = np.asarray(abs(entries).power(power).sum(axis=1))
        if abs(kernel.scale) * sizes.max() <= OFFSET_EXPONENT:
            return None
        squares = np.asarray(entries.power(2).mean(axis=0)).ravel()
        means = np.asarray(entries.mean(axis=0)).ravel()
        offsets = np.where(means**2 > OFFSET_SHARE * squares, means, 0.0)
    return offsets if np.isfinite(offsets).all() and offsets.any() else None


class KernelStore:
    """Kernel values over one data set: rows, blocks and scores for any subset of its examples.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_samples, n_features), float32 or float64
        The data, read in place; dense data with many zeros are copied into sparse rows where that is faster, and
        sparse data with large offsets are copied without them if the kernel is shift-invariant.
        For a kernel that is ``given``, the symmetric matrix of all kernel values, and points are rows of such values.
    kernel : KernelSpec
    row_budget : int
        Bytes that ``row`` may keep.
    """

    def __init__(self, X: DataMatrix, kernel: KernelSpec, row_budget: int = 100_000_000) -> None:
        rows = tidy(X)
        self.kernel = kernel
        self.sparse = is_sparse(rows) or pays_as_sparse(rows, kernel)
        self._n_rows, self._width = rows.shape
        check_range(rows, kernel)
        self._offsets = offsets_of(rows, kernel) if is_sparse(rows) and not kernel.given else None
        data = to_core(self._of_this_kind(rows))
        if kernel.given and not isinstance(data, _core.SparseData):
            self.core = _core.Store(data, kernel.offset, kernel.squarings)
        else:
            self.core = _core.Store(data, kernel.to_core())
        self._row_budget = row_budget
        self._cached_rows: _core.CachedRows | None = None

    def __len__(self) -> int:
        return int(self._n_rows)

    def block(self, rows: ArrayLike, columns: ArrayLike, *, float32: bool = False) -> DataArray:
        """Return k(x_r, x_c) for rows and columns given by index, shape (n_rows, n_columns)."""
        wanted = np.asarray(rows, dtype=np.int64), np.asarray(columns, dtype=np.int64)
        return self.core.block_f32(*wanted) if float32 else self.core.block_f64(*wanted)

    def row(self, example: int) -> NDArray[np.float32]:
        """Return k(x_example, x_j) for all j in float32, from the cache if possible."""
        if self._cached_rows is None:
            self._cached_rows = _core.CachedRows(self.core, self._row_budget)
        return self._cached_rows.row(example)

    @property
    def rows_computed(self) -> int:
        return 0 if self._cached_rows is None else self._cached_rows.rows_computed

    @property
    def cache_hits(self) -> int:
        return 0 if self._cached_rows is None else self._cached_rows.hits

    def diagonal(self) -> FloatArray:
        """Return k(x_i, x_i), shape (n_samples,)."""
        return self.core.diagonal()

    def scores(self, rows: IntArray, beta: FloatArray, points: DataMatrix, n_threads: int) -> FloatArray:
        """Return sum_s beta_sc k(x_rows[s], z), shape (n_points, n_scores), in float64."""
        chosen, weights = np.ascontiguousarray(rows, dtype=np.int64), np.ascontiguousarray(beta)
        blocks = [self.core.scores(chosen, weights, block, n_threads) for block in self.points(points)]
        return blocks[0] if len(blocks) == 1 else np.concatenate(blocks)

    def scores_within(self, rows: IntArray, beta: FloatArray, columns: IntArray, n_threads: int) -> FloatArray:
        """Return sum_s beta_cs k(x_rows[s], x_columns), shape (n_scores, n_columns), in float64."""
        chosen, others = (np.ascontiguousarray(each, dtype=np.int64) for each in (rows, columns))
        return self.core.scores_within(chosen, np.ascontiguousarray(beta), others, n_threads)

    def points(self, X: DataMatrix) -> Iterator[DataArray | _core.SparseData]:
        """Yield X as the core takes it beside this store's data: whole, or converted by blocks of rows."""
        if not self.kernel.given:
            check_range(X, self.kernel)
        if is_sparse(X) == self.sparse:
            yield to_core(self._of_this_kind(tidy(X)))
            return
        step = max(1, CONVERTED_ENTRIES // max(1, self._width))
        for first in range(0, X.shape[0], step):
            yield to_core(tidy(self._of_this_kind(X[first : first + step])))

    def _of_this_kind(self, X: DataMatrix) -> DataMatrix:
        if is_sparse(X) != self.sparse:
            X = sparse.csr_array(X) if self.sparse else X.toarray()
        return X if self._offsets is None else tidy(less_offsets(X, self._offsets))


def weighted_sums(weights: FloatArray, values: DataArray) -> FloatArray:
    """Return values @ weights.T, shape (n_points, n_weights), for kernel values that are given, (n_points, n).

    A product, written as the linear kernel with its columns: the core's sums have the same bits for any number of
    threads.
    """
    n_sums = len(weights)
    columns = _core.Store(np.ascontiguousarray(weights), KernelSpec("linear").to_core())
    return columns.scores(np.arange(n_sums), np.eye(n_sums), values, n_threads())
