"""Small sets of data whose bits are the same everywhere: raw numbers of Philox, sums and quotients, nothing of libm."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import sparse

HELD_OUT = 23


@dataclass(frozen=True)
class Set:
    """Rows to train on, and rows to score."""

    X: npt.NDArray[np.float64]
    y: npt.NDArray[np.int64]
    points: npt.NDArray[np.float64]
    weight: npt.NDArray[np.float64]

    def stored(self, storage: str) -> tuple[object, object]:
        """Return both parts as dense or CSR rows of either precision."""
        kind = np.float32 if storage.endswith("32") else np.float64
        parts = [rows.astype(kind) for rows in (self.X, self.points)]
        return tuple(sparse.csr_array(rows) if storage.startswith("csr") else rows for rows in parts)  # type: ignore[return-value]


def raw(seed: int, *shape: int) -> npt.NDArray[np.int64]:
    """Return whole numbers from 0 to 2^32 - 1; NumPy promises these bits, but not those of its distributions."""
    numbers = np.random.Philox(seed).random_raw(int(np.prod(shape)))
    return (numbers >> np.uint64(32)).astype(np.int64).reshape(shape)


def lattice(seed: int, n_rows: int, n_features: int, n_classes: int) -> Set:
    """Return overlapping classes of whole numbers from -4 to 7: products and sums of them are exact in any order."""
    numbers = raw(seed, n_rows + HELD_OUT, n_features + 2)
    y = np.arange(n_rows + HELD_OUT) % n_classes
    X = (numbers[:, :n_features] % 9 - 4 + 3 * (np.arange(n_features) % n_classes == y[:, None])).astype(np.float64)
    return _split(X, y, numbers[:, n_features] % 4)


def cloud(seed: int, n_rows: int, n_features: int, n_classes: int) -> Set:
    """Return overlapping classes of nearly normal numbers, sums of four uniform ones."""
    numbers = raw(seed, n_rows + HELD_OUT, n_features + 1, 4)
    y = np.arange(n_rows + HELD_OUT) % n_classes
    X = (numbers[:, :n_features].sum(axis=2) - 2**33) / 2.0**31
    X += 0.7 * (np.arange(n_features) % n_classes == y[:, None])
    return _split(X, y, numbers[:, n_features, 0] % 4)


def _split(X: npt.NDArray[np.float64], y: npt.NDArray[np.int64], quarters: npt.NDArray[np.int64]) -> Set:
    n = len(y) - HELD_OUT
    return Set(X[:n], y[:n], X[n:], quarters[:n] / 2.0)


LATTICE = lattice(1, 60, 4, 3)
CLOUD = cloud(2, 64, 6, 4)
TWO = lattice(3, 60, 5, 2)
MEDIUM = cloud(4, 700, 8, 4)
MEDIUM_LATTICE = lattice(5, 700, 6, 3)
LARGE = lattice(6, 4300, 5, 2)
