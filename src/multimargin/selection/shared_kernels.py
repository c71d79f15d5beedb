"""Kernel values that all cells of a search share: what does not depend on gamma once, and a matrix for each gamma."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
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
# exp(-2 gamma d) is the square of exp(-gamma d), at a fraction of the time. From f 2^(8 k) on, f in [1/2, 1), gammas up
# to f 2^(8 k + 7) are made by squares, whatever was computed before, so that a value has the same bits everywhere; its
# relative error is at most 128 times that of exp, far below that of float32 rows.
SQUARES = 8


_Made = tuple[float, KernelStore, FloatArray | None]  # gamma, the store, and the matrix that it reads


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
        self._last: _Made | None = None

    def at(self, gamma: float, offset: float) -> KernelStore:
        """Return the store of the kernel with this gamma, ``offset`` added to every value."""
        if self._last is None or self._last[0] != gamma or self._last[1].kernel.offset != offset:
            before, self._last = self._last, None  # whatever happens while its matrix is written over
            self._last = (gamma, *self._make(gamma, offset, before))
        return self._last[1]

    @property
    def gram(self) -> FloatArray | None:
        """The matrix at the last gamma, without offset; None beyond the budget."""
        return None if self._last is None else self._last[2]

    def _make(self, gamma: float, offset: float, before: _Made | None) -> tuple[KernelStore, FloatArray | None]:
        if not self.whole:
            return KernelStore(self.X, replace(self.kernel, gamma=gamma, offset=offset)), None
        matrix = self._matrix(gamma, before)
        indefinite = not replace(self.kernel, gamma=gamma).positive_semidefinite
        return KernelStore(matrix, KernelSpec("precomputed", offset=offset, indefinite=indefinite)), matrix

    def _matrix(self, gamma: float, before: _Made | None) -> FloatArray:
        if self._basis is None:
            self._basis = make_basis(self.X, self.kernel, self.cache_size)
        if self.kernel.name not in WITH_GAMMA:
            return self._basis
        out = np.empty_like(self._basis) if before is None or before[2] is None else before[2]
        n_squares = int(np.frexp(gamma)[1]) % SQUARES if self.kernel.name in ("rbf", "laplacian") else 0
        there = -1 if before is None else _doublings(before[0], gamma)
        if not 0 < there <= n_squares:
            there = n_squares
            _by_blocks(partial(_evaluate, self.kernel, gamma / 2.0**n_squares), self._basis, out)
        for _ in range(there):
            _by_blocks(_square, out, out)
        return out


def _doublings(before: float, gamma: float) -> int:
    """Return how often ``before`` must be doubled to give gamma, -1 where it does not."""
    fraction, power = np.frexp(before)
    wanted, target = np.frexp(gamma)
    return int(target - power) if fraction == wanted else -1


def _by_blocks(work: Callable[[FloatArray, FloatArray], None], source: FloatArray, out: FloatArray) -> None:
    blocks = [slice(first, first + BLOCK_ROWS) for first in range(0, len(source), BLOCK_ROWS)]
    with ThreadPoolExecutor(n_threads()) as pool:  # NumPy's functions let other threads run
        list(pool.map(lambda block: work(source[block], out[block]), blocks))


def _square(source: FloatArray, out: FloatArray) -> None:
    np.square(source, out=out)


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
