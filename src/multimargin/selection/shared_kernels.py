"""Kernel values that all cells of a search share: what does not depend on gamma once, and a matrix for each gamma."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.metrics.pairwise import euclidean_distances, manhattan_distances

from multimargin.given_kernels import evaluate_all, symmetric
from multimargin.kernels import KernelSpec, KernelStore
from multimargin.machines import FloatArray
from multimargin.matrices import DataMatrix, is_sparse
from multimargin.resources import cache_bytes, n_threads

# Kernels that have a gamma.
WITH_GAMMA = ("rbf", "laplacian", "poly", "sigmoid")
# Rows whose kernel values are computed at once.
BLOCK_ROWS = 256


class SharedKernels:
    """The kernel among all rows of X, for one gamma after the other.

    Where the budget allows it, distances or products are computed once and a matrix is made from them for each gamma;
    beyond it a store serves rows on demand.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_samples, n_features)
    kernel : KernelSpec
        Its gamma does not matter.
    cache_size : float or "auto"
    """

    def __init__(self, X: DataMatrix, kernel: KernelSpec, cache_size: float | str) -> None:
        self.X, self.kernel, self.cache_size = X, kernel, cache_size
        needed = (8.0 if kernel.given else 16.0) * X.shape[0] ** 2
        self.whole = kernel.given or needed <= cache_bytes(cache_size, needed)
        self.bytes = needed if self.whole else 0.0
        self._basis: FloatArray | None = None
        self._last: tuple[float, KernelStore, FloatArray | None] | None = None

    def at(self, gamma: float, offset: float) -> KernelStore:
        """Return the store of the kernel with this gamma, ``offset`` added to every value."""
        if self._last is None or self._last[0] != gamma or self._last[1].kernel.offset != offset:
            spare = None if self._last is None or self.kernel.name not in WITH_GAMMA else self._last[2]
            self._last = (gamma, *self._make(gamma, offset, spare))
        return self._last[1]

    @property
    def gram(self) -> FloatArray | None:
        """The matrix at the last gamma, without offset; None beyond the budget."""
        return None if self._last is None else self._last[2]

    def _make(self, gamma: float, offset: float, spare: FloatArray | None) -> tuple[KernelStore, FloatArray | None]:
        if not self.whole:
            return KernelStore(self.X, replace(self.kernel, gamma=gamma, offset=offset)), None
        matrix = self._matrix(gamma, spare)
        indefinite = not replace(self.kernel, gamma=gamma).positive_semidefinite
        return KernelStore(matrix, KernelSpec("precomputed", offset=offset, indefinite=indefinite)), matrix

    def _matrix(self, gamma: float, spare: FloatArray | None) -> FloatArray:
        if self._basis is None:
            self._basis = make_basis(self.X, self.kernel, self.cache_size)
        if self.kernel.name not in WITH_GAMMA:
            return self._basis
        basis, out = self._basis, np.empty_like(self._basis) if spare is None else spare
        blocks = [slice(first, first + BLOCK_ROWS) for first in range(0, len(basis), BLOCK_ROWS)]

        def fill(block: slice) -> None:
            _evaluate(self.kernel, gamma, basis[block], out[block])

        with ThreadPoolExecutor(n_threads()) as pool:  # NumPy's functions let other threads run
            list(pool.map(fill, blocks))
        return out


def _evaluate(kernel: KernelSpec, gamma: float, basis: FloatArray, out: FloatArray) -> None:
    if kernel.name in ("rbf", "laplacian"):
        np.multiply(basis, -gamma, out=out)
        np.exp(out, out=out)
        return
    np.multiply(basis, gamma, out=out)
    out += kernel.coef0
    if kernel.name == "poly":
        np.power(out, kernel.degree, out=out)
    else:
        np.tanh(out, out=out)


def make_basis(X: DataMatrix, kernel: KernelSpec, cache_size: float | str) -> FloatArray:
    """Return what the kernel is a function of, (n_samples, n_samples) in float64: distances, products, or itself."""
    if kernel.function is not None:
        return np.asarray(symmetric(evaluate_all(kernel.function, X, cache_size), "The matrix that kernel returned"))
    if kernel.given:
        return np.ascontiguousarray(symmetric(X, "X"), dtype=np.float64)
    rows: Any = X.astype(np.float64) if X.dtype != np.float64 else X
    if kernel.name == "laplacian":
        return np.asarray(manhattan_distances(rows))
    if kernel.name == "rbf":
        if not is_sparse(rows):
            rows = rows - rows.mean(axis=0)  # distances stay, and less is lost in |x|^2 + |z|^2 - 2 x'z
        return np.ascontiguousarray(euclidean_distances(rows, squared=True))
    products = rows @ rows.T
    return np.ascontiguousarray(products.toarray() if is_sparse(products) else products)
