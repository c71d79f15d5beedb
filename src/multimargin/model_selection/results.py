"""The results of a search: scores by gamma, C and fold, and scikit-learn's ``cv_results_`` from them."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from multimargin._typing import BoolArray, FloatArray
from multimargin.model_selection.evaluation import UnitResult

NUMBERS = ("fit_seconds", "score_seconds", "n_support", "n_iter")


@dataclass(frozen=True, eq=False)
class SelectionResults:
    """All cells of a search on the grid of the values that it tried.

    Parameters
    ----------
    Cs, gammas : ndarray
        Ascending.
    scores : dict of metric to ndarray of shape (n_gammas, n_Cs, n_folds)
        nan where there is none.
    asked : ndarray of bool of shape (n_gammas, n_Cs)
        Cells that were tried, if only on some folds.
    stopped : ndarray of bool of shape (n_gammas, n_Cs)
        Cells that do not have all folds, because the search was ended or gave them up.
    fit_seconds, score_seconds, n_support, n_iter, converged : ndarray of shape (n_gammas, n_Cs, n_folds)
    """

    Cs: FloatArray
    gammas: FloatArray
    scores: dict[str, FloatArray]
    asked: BoolArray
    stopped: BoolArray
    fit_seconds: FloatArray
    score_seconds: FloatArray
    n_support: FloatArray
    n_iter: FloatArray
    converged: BoolArray

    @classmethod
    def of_grid(
        cls, Cs: FloatArray, gammas: FloatArray, n_folds: int, metrics: Iterable[str], units: Iterable[UnitResult]
    ) -> SelectionResults:
        """Return the results of a whole grid; cells without a unit are marked as stopped."""
        shape = (len(gammas), len(Cs), n_folds)
        scores = {metric: np.full(shape, np.nan) for metric in metrics}
        numbers = {name: np.full(shape, np.nan) for name in NUMBERS}
        converged, done = np.zeros(shape, np.bool_), np.zeros(shape, np.bool_)
        for unit in units:
            place = int(np.searchsorted(gammas, unit.gamma)), np.searchsorted(Cs, unit.Cs), unit.fold
            for metric, values in unit.scores.items():
                scores[metric][place] = values
            for name, array in numbers.items():
                array[place] = np.where(unit.stopped, np.nan, getattr(unit, name))
            converged[place], done[place] = unit.converged, ~unit.stopped
        asked = np.ones(shape[:2], np.bool_)
        missing = np.asarray((~done).any(axis=2))
        return cls(Cs, gammas, scores, asked, missing, **numbers, converged=converged)

    @classmethod
    def of_table(cls, table: Any) -> SelectionResults:
        """Return the results of a search with another strategy: any object with the same attributes."""
        return cls(**{entry.name: getattr(table, entry.name) for entry in fields(cls)})

    def make_model(self, template: Any) -> Any:
        """Return the machine to train on all rows, unfitted: for a search by pairs, one that consists of pairs."""
        return template

    def own_attributes(self) -> dict[str, Any]:
        """Return additional attributes of the estimator."""
        return {}

    @property
    def n_folds(self) -> int:
        return int(self.fit_seconds.shape[2])

    def to_cv_results(self) -> dict[str, Any]:
        """Return ``cv_results_`` with GridSearchCV's keys, for the cells that were tried, C by C.

        Beyond these ``stopped`` and ``mean_n_support``.
        """
        cells = [(c, g) for c in range(len(self.Cs)) for g in range(len(self.gammas)) if self.asked[g, c]]
        at = (np.array([g for _, g in cells], dtype=np.int64), np.array([c for c, _ in cells], dtype=np.int64))
        params = [{"C": float(self.Cs[c]), "gamma": float(self.gammas[g])} for c, g in cells]
        results: dict[str, Any] = {}
        for key, array in (("fit_time", self.fit_seconds), ("score_time", self.score_seconds)):
            results |= _mean_and_std(key, array[at])
        for name in ("C", "gamma"):
            results[f"param_{name}"] = np.ma.MaskedArray([each[name] for each in params], mask=False)
        results["params"] = params
        for metric, array in self.scores.items():
            values = array[at]
            results |= {f"split{fold}_test_{metric}": values[:, fold] for fold in range(self.n_folds)}
            results |= _mean_and_std(f"test_{metric}", values)
            results[f"rank_test_{metric}"] = _ranks(results[f"mean_test_{metric}"])
        results["mean_n_support"] = self.n_support[at].mean(axis=1)
        results["stopped"] = self.stopped[at]
        return results


def _mean_and_std(key: str, values: FloatArray) -> dict[str, FloatArray]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return {f"mean_{key}": values.mean(axis=1), f"std_{key}": values.std(axis=1)}


def _ranks(means: FloatArray) -> NDArray[np.int32]:
    """Return the ranks, 1 for the best; a cell without a mean is behind all others, as in GridSearchCV."""
    if np.isnan(means).all():
        return np.ones(len(means), dtype=np.int32)
    known = np.nan_to_num(means, nan=float(np.nanmin(means)) - 1)
    return np.asarray(rankdata(-known, method="min")).astype(np.int32)
