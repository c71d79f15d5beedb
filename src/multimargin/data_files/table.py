"""The contents of a data file: rows of numbers, and labels and column names where there are any."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from multimargin._typing import DataMatrix
from multimargin.base.matrices import is_sparse
from multimargin.base.resources import available_bytes

# Sparse rows as full as this take about as much memory when they are dense, and kernels are computed faster.
FULL = 0.25
# Whole numbers of this size and more are not all doubles.
EXACT = 2.0**53


@dataclass(frozen=True, eq=False)
class Table:
    """Rows of a data file.

    Parameters
    ----------
    X : ndarray or CSR array of shape (n_rows, n_features), float64
    y : ndarray of shape (n_rows,) or None
        Labels: int64 where all are whole numbers, else float64 or str; None where the file has none.
    feature_names : tuple of str or None
    label_name : str or None
        Name of the label's column, where it has one.
    """

    X: DataMatrix
    y: np.ndarray | None
    feature_names: tuple[str, ...] | None = None
    label_name: str | None = None

    @property
    def n_rows(self) -> int:
        return int(self.X.shape[0])

    @property
    def n_features(self) -> int:
        return int(self.X.shape[1])

    def widened(self, n_features: int) -> Table:
        """Return the same rows with further columns of zeros, so that there are at least ``n_features``."""
        if self.n_features >= n_features:
            return self
        if is_sparse(self.X):
            parts = (self.X.data, self.X.indices, self.X.indptr)
            X: Any = sparse.csr_array(parts, shape=(self.n_rows, n_features))
        else:
            X = np.pad(self.X, ((0, 0), (0, n_features - self.n_features)))
        return replace(self, X=X)

    def compact(self) -> Table:
        """Return the rows, dense if enough of their entries are nonzero."""
        cells = self.n_rows * self.n_features
        if not is_sparse(self.X) or self.X.nnz < FULL * cells or 8 * cells > available_bytes() // 2:
            return self
        return replace(self, X=self.X.toarray())


def labels_from_numbers(values: np.ndarray) -> np.ndarray:
    """Return labels that were read as doubles: as integers where all of them are whole numbers."""
    whole = np.isfinite(values) & (np.floor(values) == values) & (np.abs(values) < EXACT)
    return values.astype(np.int64) if bool(whole.all()) else values


def labels_from_text(texts: Sequence[str]) -> np.ndarray:
    """Return labels that were read as text: numbers where all of them are numbers."""
    try:
        values = np.array(texts, dtype=np.float64)
    except ValueError:
        return np.array(texts, dtype=np.str_)
    if any("_" in text for text in texts) or not np.isfinite(values).all():
        return np.array(texts, dtype=np.str_)
    return labels_from_numbers(values)
