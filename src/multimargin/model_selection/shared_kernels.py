"""Kernel values that all cells of a search share: what does not depend on gamma once, and a matrix for each gamma."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from threading import Thread
from typing import Any

import numpy as np
from sklearn.metrics.pairwise import euclidean_distances, manhattan_distances

from multimargin._typing import DataMatrix, FloatArray
from multimargin.base.matrices import is_sparse
from multimargin.base.resources import cache_bytes, n_threads
from multimargin.kernels.spec import KernelSpec
from multimargin.kernels.store import KernelStore
from multimargin.kernels.table import KERNELS
from multimargin.problems.given_kernels import evaluate_all, symmetric

# Features up to which kernel values are recomputed for each gamma: that is as fast as reading distances.
FEW_FEATURES = 64
# Rows whose kernel values are computed at once.
BLOCK_ROWS = 256
# exp(-2 gamma d) is the square of exp(-gamma d), at a fraction of the time. From f 2^(8 k) on, f in [1/2, 1), gammas up
# to f 2^(8 k + 7) are made by squares, whatever was computed before, so that a value has the same bits everywhere; its
# relative error is at most 128 times that of exp, far below that of float32 rows.
SQUARES = 8


_Made = tuple[float, KernelStore, FloatArray | None]  # gamma, the store, and the matrix that it reads


class SharedKernels:
    """The kernel among all rows of X, for one gamma after the other.

    Where the budget allows it, a matrix is computed for each gamma: of few features from the data, of many from
    distances or products that are computed once; beyond it a store serves rows on demand. Gammas that are reached by
    squaring share one matrix where ``on_reading``: then values are squared when they are read.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_samples, n_features)
    kernel : KernelSpec
        Its gamma does not matter.
    cache_size : float or "auto"
    on_reading : bool
    """

    def __init__(self, X: DataMatrix, kernel: KernelSpec, cache_size: float | str, *, on_reading: bool = False) -> None:
        self.X, self.kernel, self.cache_size = X, kernel, cache_size
        self.by_squares = not kernel.given and KERNELS[kernel.name].squares_with_gamma
        self.on_reading = on_reading and self.by_squares
        self.direct = not kernel.given and not is_sparse(X) and X.shape[1] <= FEW_FEATURES
        needed = (8.0 if kernel.given or self.direct else 16.0) * X.shape[0] ** 2
        self.whole = kernel.given or needed <= cache_bytes(cache_size, needed)
        self.bytes_left = max(0.0, cache_bytes(cache_size) - (needed if self.whole else 0.0))  # of the budget
        self._basis: FloatArray | None = None
        self._last: _Made | None = None

    def at(self, gamma: float, offset: float) -> KernelStore:
        """Return the store of the kernel with this gamma, ``offset`` added to every value."""
        if self._last is None or self._last[0] != gamma or self._last[1].kernel.offset != offset:
            before, self._last = self._last, None  # in case of an error while its matrix is overwritten
            self._last = (gamma, *self._make(gamma, offset, before))
        return self._last[1]

    @property
    def gram(self) -> FloatArray | None:
        """The matrix at the last gamma, without offset; None beyond the budget. Not for values squared on reading."""
        return None if self._last is None else self._last[2]

    def _make(self, gamma: float, offset: float, before: _Made | None) -> tuple[KernelStore, FloatArray | None]:
        if not self.whole:
            return KernelStore(self.X, replace(self.kernel, gamma=gamma, offset=offset)), None
        indefinite = not replace(self.kernel, gamma=gamma).positive_semidefinite
        if self.on_reading and offset == 0.0:
            squarings = _squarings(gamma)
            matrix = self._unsquared(gamma / 2.0**squarings, before)
            return KernelStore(matrix, KernelSpec("precomputed", indefinite=indefinite, squarings=squarings)), matrix
        matrix = self._matrix(gamma, before)
        return KernelStore(matrix, KernelSpec("precomputed", offset=offset, indefinite=indefinite)), matrix

    def _unsquared(self, gamma: float, before: _Made | None) -> FloatArray:
        """The matrix of this gamma, reusing that of the last store where possible."""
        out = self._memory(before)
        if before is None or before[0] / 2.0 ** _squarings(before[0]) != gamma:
            if not self.direct and self._basis is None:
                self._basis = make_basis(self.X, self.kernel, self.cache_size)
            self._evaluate(gamma, out)
        return out

    def _memory(self, before: _Made | None) -> FloatArray:
        n = self.X.shape[0]
        return np.empty((n, n)) if before is None or before[2] is None else before[2]

    def _matrix(self, gamma: float, before: _Made | None) -> FloatArray:
        if not self.direct and self._basis is None:
            self._basis = make_basis(self.X, self.kernel, self.cache_size)
        if self._basis is not None and not self.kernel.has_gamma:
            return self._basis
        out = self._memory(before)
        n_squares = _squarings(gamma) if self.by_squares else 0
        there = -1 if before is None else _doublings(before[0], gamma)
        if not 0 < there <= n_squares:
            there = n_squares
            self._evaluate(gamma / 2.0**n_squares, out)
        for _ in range(there):
            _by_blocks(_square, out, out)
        return out

    def _evaluate(self, gamma: float, out: FloatArray) -> None:
        if self._basis is None:
            KernelStore(self.X, replace(self.kernel, gamma=gamma, offset=0.0)).core.fill_into(out, n_threads())
        else:
            _by_blocks(replace(self.kernel, gamma=gamma).of_form, self._basis, out)


def _squarings(gamma: float) -> int:
    """Return how many squares lead to the values of gamma."""
    return int(np.frexp(gamma)[1]) % SQUARES


def _doublings(before: float, gamma: float) -> int:
    """Return how often ``before`` must be doubled to give gamma, -1 where it does not."""
    fraction, power = np.frexp(before)
    wanted, target = np.frexp(gamma)
    return int(target - power) if fraction == wanted else -1


def _by_blocks(work: Callable[[FloatArray, FloatArray], object], source: FloatArray, out: FloatArray) -> None:
    blocks = [slice(first, first + BLOCK_ROWS) for first in range(0, len(source), BLOCK_ROWS)]
    waiting = iter(blocks)
    errors: list[BaseException] = []

    def take_blocks() -> None:
        try:
            while not errors and (block := next(waiting, None)) is not None:
                work(source[block], out[block])
        except BaseException as error:
            errors.append(error)

    helpers = []  # NumPy's functions let other threads run
    for _ in range(min(n_threads(), len(blocks)) - 1):
        helper = Thread(target=take_blocks)
        try:
            helper.start()
        except RuntimeError:  # the system allows no more threads
            break
        helpers.append(helper)
    take_blocks()
    for helper in helpers:
        helper.join()
    if errors:
        raise errors[0]


def _square(source: FloatArray, out: FloatArray) -> None:
    np.square(source, out=out)


def make_basis(X: DataMatrix, kernel: KernelSpec, cache_size: float | str) -> FloatArray:
    """Return the argument of the kernel function, (n_samples, n_samples) in float64: distances, products, or itself."""
    if kernel.function is not None:
        return np.asarray(symmetric(evaluate_all(kernel.function, X, cache_size), "The matrix that kernel returned"))
    if kernel.given:
        return np.ascontiguousarray(symmetric(X, "X"), dtype=np.float64)
    rows: Any = X.astype(np.float64) if X.dtype != np.float64 else X
    if kernel.form == "absolute_difference":
        return np.asarray(manhattan_distances(rows))
    if kernel.form == "squared_difference":
        if not is_sparse(rows):
            rows = rows - rows.mean(axis=0)  # distances stay, and less is lost in |x|^2 + |z|^2 - 2 x'z
        return np.ascontiguousarray(euclidean_distances(rows, squared=True))
    products = rows @ rows.T
    return np.ascontiguousarray(products.toarray() if is_sparse(products) else products)
