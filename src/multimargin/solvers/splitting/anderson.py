"""Anderson acceleration of a fixed-point iteration x <- x + r(x)."""

from __future__ import annotations

import numpy as np

from multimargin._typing import FloatArray

REGULARIZATION = 1e-8  # of the least squares, as a share of its trace
WORSE = 2.0  # a residual so many times the least one met ends a run of accelerated steps


class Anderson:
    """The next x is the one at which the residual, linear between the last few, is least (type II)."""

    def __init__(self, size: int, memory: int) -> None:
        self.memory = memory
        self.moves = np.empty((memory, size))  # differences of x + r
        self.changes = np.empty((memory, size))  # differences of r
        self.products = np.zeros((memory, memory))  # of the changes
        self.reset()

    def reset(self) -> None:
        """Forget all points: the iteration changed."""
        self.count, self.least = 0, np.inf
        self.last: tuple[FloatArray, FloatArray] | None = None

    def next(self, x: FloatArray, r: FloatArray) -> FloatArray:
        """Return the point to go on from after x with residual r."""
        plain, flat = x + r, r.ravel()
        size = float(np.sqrt(flat @ flat))
        if size > WORSE * self.least:
            self.reset()
        self.least = min(self.least, size)
        if self.last is not None:
            self._remember(plain, flat)
        self.last = (plain.ravel().copy(), flat.copy())
        n = min(self.count, self.memory)
        if n == 0:
            return plain
        gram = self.products[:n, :n] + REGULARIZATION * np.trace(self.products[:n, :n]) / n * np.eye(n)
        try:
            weights = np.linalg.solve(gram, self.changes[:n] @ flat)
        except np.linalg.LinAlgError:
            return plain
        if not np.isfinite(weights).all():
            return plain
        return plain - (weights @ self.moves[:n]).reshape(x.shape)

    def _remember(self, plain: FloatArray, r: FloatArray) -> None:
        assert self.last is not None
        k = self.count % self.memory
        np.subtract(plain.ravel(), self.last[0], out=self.moves[k])
        np.subtract(r, self.last[1], out=self.changes[k])
        n = min(self.count + 1, self.memory)
        self.products[k, :n] = self.products[:n, k] = self.changes[:n] @ self.changes[k]
        self.count += 1
