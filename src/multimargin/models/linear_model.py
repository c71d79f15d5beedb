"""A trained linear machine: weight vectors and intercepts. Predicts; independent of how it was trained."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from multimargin._typing import DataMatrix, FloatArray, IntArray
from multimargin.models.voting import dag_path, dag_scores, ovr_scores, vote
from multimargin.problems.schemes import DAG


@dataclass(frozen=True, eq=False)
class LinearModel:
    """Scores X coef' + intercept, of each class or, with a scheme, of each pair of classes (> 0 for the first).

    Parameters
    ----------
    coef : ndarray of shape (n_classes or n_pairs, n_features)
    intercept : ndarray of shape (n_classes or n_pairs,)
    n_classes : int
    scheme : {"", "ovo", "dag"}
    """

    coef: FloatArray
    intercept: FloatArray
    n_classes: int
    scheme: str = ""

    def raw_scores(self, X: DataMatrix) -> FloatArray:
        """Return the scores of all classes or pairs."""
        with np.errstate(over="ignore", invalid="ignore"):
            raw: FloatArray = np.asarray(X @ self.coef.T + self.intercept)
        if not np.isfinite(raw).all():
            row = int(np.flatnonzero(~np.isfinite(raw).all(axis=1))[0])
            raise ValueError(
                f"X has values too large to compute scores with, first in row {row}; scale its columns as those of the "
                "training data."
            )
        return raw

    def scores(self, X: DataMatrix) -> FloatArray:
        """Return one score per class, (n_samples, n_classes)."""
        raw = self.raw_scores(X)
        if not self.scheme:
            return raw
        return (dag_scores if self.scheme == DAG else ovr_scores)(raw, self.n_classes)

    def codes(self, X: DataMatrix) -> IntArray:
        """Return the codes of the classes, (n_samples,)."""
        raw = self.raw_scores(X)
        if not self.scheme:
            return np.asarray(raw.argmax(axis=1))
        return (dag_path if self.scheme == DAG else vote)(raw, self.n_classes)

    def decision(self, X: DataMatrix) -> FloatArray:
        """Return the scores, or for two classes one, positive for the second."""
        if self.n_classes > 2:
            return self.scores(X)
        raw = self.raw_scores(X)
        return -raw[:, 0] if self.scheme else (raw[:, 1] - raw[:, 0]) / 2

    def public_weights(self) -> tuple[FloatArray, FloatArray]:
        """Return coef_ and intercept_ in scikit-learn's layout: one row for two classes."""
        if self.n_classes > 2:
            return self.coef, self.intercept
        if self.scheme:
            return -self.coef, -self.intercept
        return (self.coef[1:] - self.coef[:1]) / 2, (self.intercept[1:] - self.intercept[:1]) / 2
