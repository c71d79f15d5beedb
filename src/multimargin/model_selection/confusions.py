"""Predictions of rows by models that have not seen them, with the parameters that a search chose."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing
from sklearn.utils.metaestimators import _safe_split

from multimargin._typing import IntArray

OWN_FOLDS = "the folds of the search's cv"
OTHER_FOLDS = "five stratified folds (those of the search cannot be reproduced)"


@dataclass(frozen=True, eq=False)
class Confusion:
    """Confusion matrix of held-out rows.

    Parameters
    ----------
    labels : ndarray of shape (n_classes,)
    counts : ndarray of shape (n_classes, n_classes)
        Rows: true class; columns: predicted class.
    folds : str
        Description of the folds.
    """

    labels: np.ndarray
    counts: IntArray
    folds: str

    @property
    def accuracy(self) -> float:
        """Share of predictions that are right."""
        return float(np.trace(self.counts) / max(int(self.counts.sum()), 1))

    def worst(self, n: int) -> list[tuple[int, int, int]]:
        """Return the most frequent confusions as (true, predicted, how often), by the numbers of the classes."""
        wrong = np.where(np.eye(len(self.labels), dtype=bool), 0, self.counts)
        order = np.argsort(-wrong, axis=None, kind="stable")[:n]
        pairs = [np.unravel_index(int(at), wrong.shape) for at in order]
        return [(int(true), int(taken), int(wrong[true, taken])) for true, taken in pairs if wrong[true, taken]]


def confuse(search: Any, X: Any, y: Any, *, sample_weight: Any = None, groups: Any = None) -> Confusion:
    """Train the chosen model on the training part of each fold of (X, y), and count its predictions of the rest.

    A row counts as often as it is held out.
    """
    model = search.best_estimator_
    truth = np.asarray(y)
    folds, words = _folds(search, X, truth, groups)
    labels = np.unique(truth)
    counts = np.zeros((len(labels), len(labels)), dtype=np.int64)
    for train, test in folds:
        own = clone(model)
        X_train, y_train = _safe_split(own, X, truth, train)
        weights = {} if sample_weight is None else {"sample_weight": _safe_indexing(sample_weight, train)}
        own.fit(X_train, y_train, **weights)
        X_test, y_test = _safe_split(own, X, truth, test, train)
        predicted = np.asarray(own.predict(X_test))
        np.add.at(counts, (np.searchsorted(labels, y_test), np.searchsorted(labels, predicted)), 1)
    return Confusion(labels, counts, words)


def _folds(search: Any, X: Any, y: np.ndarray, groups: Any) -> tuple[list[tuple[IntArray, IntArray]], str]:
    """Return the search's folds, unless they were an iterator, now empty, or those of other rows."""
    own = list(check_cv(getattr(search, "cv", None), y, classifier=True).split(X, y, groups))
    if own and max(int(np.max(part)) for fold in own for part in fold) < len(y):
        return own, OWN_FOLDS
    return list(check_cv(5, y, classifier=True).split(X, y)), OTHER_FOLDS
