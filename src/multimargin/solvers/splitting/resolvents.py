"""(K + rho)^-1 for many right sides at a time: by the inverse in memory, or by the features of a kernel of low rank."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from multimargin._typing import FloatArray
from multimargin.solvers.splitting.inverse import invert

# A solution in float32 errs by some 1e-7 / rho in every direction, which K then multiplies by up to its largest
# eigenvalue: up to so many times rho that does no harm (measured: 3e2 does none, 4e4 ends in noise).
MOST_IN_FLOAT32 = 2e3
# Costs are counted in multiply-adds of BLAS in float32; float64 takes twice as long.
DOUBLE = 2.0


class WholeKernel:
    """K itself, (n, n) in float32; its inverse with one rho at a time.

    ``top`` holds directions near the eigenvectors of the largest eigenvalues, as features with orthogonal columns: what
    is beyond float32 is done apart, in float64.
    """

    def __init__(self, matrix: np.ndarray, poll: Callable[[], None], top: FloatArray | None = None) -> None:
        self.matrix, self.poll = matrix, poll
        self.largest = float(np.abs(matrix).sum(axis=1, dtype=np.float64).max())  # no eigenvalue is larger
        self.inverse = matrix[:0, :0]
        self.vectors, self.values = np.zeros((len(matrix), 0)), np.zeros(0)
        if top is not None and top.shape[1] > 0:
            self.vectors, self.values = _sharpened(matrix, top)
        self.apart = self.vectors[:, :0]
        self.weights = self.values[:0]

    def cost(self, n_classes: int) -> float:
        """Return that of a solution for all classes."""
        return float(len(self.matrix)) ** 2 * n_classes

    def prepare(self, rho: float) -> bool:
        """Make the inverse; False where rounding leaves none."""
        large = self.values > 0.5 * MOST_IN_FLOAT32 * rho
        split = self.largest > MOST_IN_FLOAT32 * rho and large.any() and not large.all()
        self.apart = self.vectors[:, large] if split else self.vectors[:, :0]
        values = self.values[large] if split else self.values[:0]
        self.weights = 1.0 / (values + rho)
        for single in dict.fromkeys((split or self.largest <= MOST_IN_FLOAT32 * rho, False)):
            shifted = self._without_apart(single=single)
            np.fill_diagonal(shifted, shifted.diagonal() + np.float64(rho))
            self.inverse = shifted
            if invert(shifted, self.poll):
                return True
        return False

    def _without_apart(self, *, single: bool) -> np.ndarray:
        """(I - Q Q') K (I - Q Q'), with the directions Q that are done apart; it has no negative eigenvalue."""
        shifted = self.matrix.astype(np.float32 if single else np.float64)
        if self.apart.shape[1] == 0:
            return shifted
        Q = self.apart.astype(shifted.dtype)
        Y = shifted @ Q
        Y = Y - 0.5 * Q @ (Q.T @ Y)
        np.subtract(shifted, Q @ Y.T, out=shifted)
        np.subtract(shifted, Y @ Q.T, out=shifted)
        return shifted

    def solve(self, right: FloatArray) -> FloatArray:
        inner = self.apart.T @ right
        rest = (right - self.apart @ inner).astype(self.inverse.dtype)
        found = (self.inverse @ rest).astype(np.float64)
        return np.asarray(found + self.apart @ (self.weights[:, None] * inner - self.apart.T @ found))


def _sharpened(matrix: np.ndarray, top: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return eigenvectors and eigenvalues of K nearer than those of ``top``: a step of orthogonal iteration."""
    vectors, _ = np.linalg.qr((matrix @ top.astype(matrix.dtype)).astype(np.float64))
    values, turn = np.linalg.eigh(vectors.T @ (matrix @ vectors.astype(matrix.dtype)).astype(np.float64))
    return vectors @ turn, values


class Features:
    """G G' + shift in place of K; the systems have one unknown per feature."""

    def __init__(self, G: FloatArray, shift: float) -> None:
        self.G, self.shift = G, shift
        self.single = G.astype(np.float32)
        self.squares = np.asarray(np.einsum("ij,ij->j", G, G))  # the columns of G are orthogonal, the longest last
        self.rho = 0.0

    def cost(self, n_classes: int) -> float:
        """Return that of a solution for all classes."""
        return 2.0 * self.G.size * n_classes

    def prepare(self, rho: float) -> bool:
        self.rho = rho
        return True

    def solve(self, right: FloatArray) -> FloatArray:
        level = self.rho + self.shift
        G = self.single if self.squares[-1] <= MOST_IN_FLOAT32 * level else self.G
        inner = (G.T @ right.astype(G.dtype)) / (self.squares + level)[:, None]
        return np.asarray((right - G @ inner.astype(G.dtype)) / level)
