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
    """K itself, (n, n) in float32; its inverse with one rho at a time."""

    def __init__(self, matrix: np.ndarray, poll: Callable[[], None]) -> None:
        self.matrix, self.poll = matrix, poll
        self.largest = float(np.abs(matrix).sum(axis=1, dtype=np.float64).max())  # no eigenvalue is larger
        self.inverse = matrix[:0, :0]

    def cost(self, n_classes: int) -> float:
        """Return that of a solution for all classes."""
        return float(len(self.matrix)) ** 2 * n_classes

    def prepare(self, rho: float) -> bool:
        """Make the inverse; False where rounding leaves none."""
        first = np.float32 if self.largest <= MOST_IN_FLOAT32 * rho else np.float64
        for precision in dict.fromkeys((first, np.float64)):
            shifted = self.matrix.astype(precision)
            np.fill_diagonal(shifted, self.matrix.diagonal() + np.float64(rho))
            self.inverse = shifted
            if invert(shifted, self.poll):
                return True
        return False

    def solve(self, right: FloatArray) -> FloatArray:
        return np.asarray(self.inverse @ right.astype(self.inverse.dtype), dtype=np.float64)


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
