"""Kernels: their parameters, a NumPy reference, and the store that serves kernel values from the C++ core."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from multimargin import _core
from multimargin.machines import FloatArray, IntArray

DataArray = NDArray[np.float32] | NDArray[np.float64]

KERNELS = ("linear", "rbf", "poly", "sigmoid", "laplacian")


@dataclass(frozen=True)
class KernelSpec:
    r"""A kernel function with its numbers.

    linear :math:`x'z`; rbf :math:`\exp(-\gamma \|x-z\|_2^2)`; laplacian :math:`\exp(-\gamma \|x-z\|_1)`;
    poly :math:`(\gamma x'z + \mathrm{coef0})^{\mathrm{degree}}`; sigmoid :math:`\tanh(\gamma x'z + \mathrm{coef0})`.
    ``offset`` is added to every value: 1 stands for the regularised bias (HL02 (10)).
    """

    name: str = "rbf"
    gamma: float = 1.0
    degree: int = 3
    coef0: float = 0.0
    offset: float = 0.0

    @property
    def positive_semidefinite(self) -> bool:
        """Whether the kernel is positive semi-definite for every data set."""
        if self.name == "sigmoid":
            return False
        return self.name != "poly" or (self.coef0 >= 0 and self.gamma >= 0)

    def with_offset(self, offset: float) -> KernelSpec:
        return replace(self, offset=offset)

    def gram(self, X: ArrayLike, Z: ArrayLike) -> FloatArray:
        """Return the kernel matrix (n_X, n_Z) in plain NumPy, float64: slow, obvious, the tests' oracle."""
        x, z = np.asarray(X, dtype=np.float64), np.asarray(Z, dtype=np.float64)
        values: FloatArray
        if self.name in ("rbf", "laplacian"):
            difference = x[:, None, :] - z[None, :, :]
            distance = (difference**2).sum(axis=2) if self.name == "rbf" else np.abs(difference).sum(axis=2)
            values = np.exp(-self.gamma * distance)
        else:
            values = x @ z.T
            if self.name == "poly":
                values = (self.gamma * values + self.coef0) ** self.degree
            elif self.name == "sigmoid":
                values = np.tanh(self.gamma * values + self.coef0)
        return values + self.offset

    def to_core(self) -> _core.Kernel:
        kernel = _core.Kernel()
        kernel.kind = getattr(_core.KernelKind, self.name)
        kernel.gamma, kernel.degree = self.gamma, self.degree
        kernel.coef0, kernel.offset = self.coef0, self.offset
        return kernel


class KernelStore:
    """Kernel values over one data set: rows, blocks and scores for any subset of its examples.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features), float32 or float64
        The data, read in place.
    kernel : KernelSpec
    row_budget : int
        Bytes that ``row`` may keep.
    """

    def __init__(self, X: DataArray, kernel: KernelSpec, row_budget: int = 100_000_000) -> None:
        self.X = X if X.flags.c_contiguous else X.copy(order="C")
        self.kernel = kernel
        self.core = _core.Store(self.X, kernel.to_core())
        self._row_budget = row_budget
        self._cached_rows: _core.CachedRows | None = None

    def __len__(self) -> int:
        return len(self.X)

    def block(self, rows: ArrayLike, columns: ArrayLike, *, float32: bool = False) -> DataArray:
        """Return k(x_r, x_c) for rows and columns given by index, shape (n_rows, n_columns)."""
        wanted = np.asarray(rows, dtype=np.int64), np.asarray(columns, dtype=np.int64)
        return self.core.block_f32(*wanted) if float32 else self.core.block_f64(*wanted)

    def row(self, example: int) -> NDArray[np.float32]:
        """Return k(x_example, x_j) for all j in float32, from the cache when it is there."""
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

    def scores(self, rows: IntArray, beta: FloatArray, points: DataArray, n_threads: int) -> FloatArray:
        """Return sum_s beta_sc k(x_rows[s], z), shape (n_points, n_scores), in float64."""
        points = points if points.flags.c_contiguous else points.copy(order="C")
        return self.core.scores(
            np.ascontiguousarray(rows, dtype=np.int64), np.ascontiguousarray(beta), points, n_threads
        )
