"""What a fitted search found, as arrays over gamma, C and folds: of SVCCV, or of scikit-learn's GridSearchCV."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from multimargin._typing import BoolArray, FloatArray
from multimargin.kernels.table import has_gamma


@dataclass(frozen=True, eq=False)
class SelectionGrid:
    """The cells of a search over C and gamma.

    Parameters
    ----------
    Cs : ndarray of shape (n_Cs,)
        Ascending.
    gammas : ndarray of shape (n_gammas,)
        Ascending; one nan where the search had no gamma.
    scores : ndarray of shape (n_gammas, n_Cs, n_folds)
        nan where there is none.
    stopped : ndarray of shape (n_gammas, n_Cs)
        The cells that were abandoned before all folds were scored.
    best : tuple of int
        Row and column of the chosen cell.
    metric : str
        What the scores are, in a word.
    """

    Cs: FloatArray
    gammas: FloatArray
    scores: FloatArray
    stopped: BoolArray
    best: tuple[int, int]
    metric: str

    @property
    def mean(self) -> FloatArray:
        """Mean over the folds that have a score, (n_gammas, n_Cs); nan where none has."""
        return mean_of_known(self.scores)

    @property
    def spread(self) -> FloatArray:
        """Standard deviation over the same folds, as in ``std_test_score``."""
        return np.sqrt(mean_of_known((self.scores - self.mean[:, :, None]) ** 2))

    @property
    def chosen_cost(self) -> float:
        """C of the chosen cell."""
        return float(self.Cs[self.best[1]])

    @property
    def chosen_gamma(self) -> float:
        """Gamma of the chosen cell."""
        return float(self.gammas[self.best[0]])

    def edges(self) -> list[str]:
        """Return where the chosen cell is at the edge of the grid, one phrase for each side."""
        sides = []
        for name, values, index in (("C", self.Cs, self.best[1]), ("gamma", self.gammas, self.best[0])):
            if len(values) > 1 and index in (0, len(values) - 1):
                sides.append(f"{name}={values[index]:g} is the {'largest' if index else 'smallest'} {name} tried")
        return sides


def mean_of_known(values: FloatArray) -> FloatArray:
    """Return the mean over the last axis of what is not nan; nan where nothing is."""
    known = ~np.isnan(values)
    count = known.sum(axis=-1)
    total = np.where(known, values, 0.0).sum(axis=-1)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def read_grid(search: Any, metric: str | None = None) -> SelectionGrid:
    """Return the cells of a fitted search.

    Parameters
    ----------
    search : SVCCV, GridSearchCV or another object with their attributes
        Over C and gamma.
    metric : str or None, default=None
        One of the search's scores; the one it chose by, if there are several.
    """
    scores = getattr(search, "scores_", None)
    if isinstance(scores, Mapping) and hasattr(search, "gammas_"):
        name = _choose_metric(search, list(scores), metric)
        Cs, gammas = (np.asarray(values, dtype=np.float64) for values in (search.Cs_, search.gammas_))
        if len(gammas) == 1 and not has_gamma(getattr(search, "kernel", "rbf")):
            gammas = np.full(1, np.nan)  # the search needs some number
        cells = np.asarray(scores[name], dtype=np.float64)
        stopped = np.asarray(getattr(search, "stopped_", np.zeros(cells.shape[:2])), dtype=bool)
    elif hasattr(search, "cv_results_"):
        results = search.cv_results_
        prefix = "mean_test_"
        name = _choose_metric(search, [key[len(prefix) :] for key in results if key.startswith(prefix)], metric)
        Cs, gammas, cells = _read_results(results, name)
        stopped = np.zeros(cells.shape[:2], dtype=bool)
    else:
        raise ValueError(f"This {type(search).__name__} has no scores to show; give a fitted SVCCV or GridSearchCV.")
    best = _find_best(search, Cs, gammas, mean_of_known(np.where(stopped[:, :, None], np.nan, cells)), metric)
    return SelectionGrid(Cs, gammas, cells, stopped, best, _word_for(search, name))


def _choose_metric(search: Any, names: list[str], metric: str | None) -> str:
    if metric is None:
        refit = getattr(search, "refit", None)
        return refit if isinstance(refit, str) and refit in names else names[0]
    if metric not in names:
        raise ValueError(
            f"metric={metric!r} is not a score of this search; choose one of {', '.join(map(repr, names))}."
        )
    return metric


def _word_for(search: Any, name: str) -> str:
    """A search with one score calls it "score"; its parameter has the name."""
    scoring = getattr(search, "scoring", None)
    if name != "score":
        return name
    return "accuracy" if scoring is None else scoring if isinstance(scoring, str) else "score"


def _read_results(results: Mapping[str, Any], name: str) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return Cs, gammas and scores of ``cv_results_``; parameters may belong to a step of a pipeline."""
    columns = {key.removeprefix("param_"): results[key] for key in results if key.startswith("param_")}
    found: dict[str, Any] = {}
    for key, values in columns.items():
        own = key.rsplit("__", 1)[-1]
        if own in ("C", "gamma") and own not in found:
            found[own] = _numbers(key, values)
        elif len({repr(value) for value in values}) > 1:
            raise ValueError(f"The search varied {key!r}; only a search over C and gamma can be shown.")
    if "C" not in found:
        raise ValueError("The search did not vary 'C'; only a search over C and gamma can be shown.")
    gamma = found.get("gamma", np.full(len(found["C"]), np.nan))
    Cs, column = np.unique(found["C"], return_inverse=True)
    gammas, row = np.unique(gamma, return_inverse=True)
    folds = sum(key.startswith("split") and key.endswith(f"_test_{name}") for key in results)
    scores = np.full((len(gammas), len(Cs), folds), np.nan)
    for fold in range(folds):
        scores[row, column, fold] = results[f"split{fold}_test_{name}"]
    return Cs, gammas, scores


def _numbers(key: str, values: Any) -> FloatArray:
    for value in np.ma.asarray(values, dtype=object).tolist():
        if isinstance(value, str) or value is None:
            raise ValueError(f"The search has {key}={value!r} in its grid; only numbers can be shown.")
    return np.asarray(values, dtype=np.float64)


def _find_best(
    search: Any, Cs: FloatArray, gammas: FloatArray, mean: FloatArray, metric: str | None
) -> tuple[int, int]:
    """Return the cell of ``best_params_``; that of the best mean if there is none or another score is requested."""
    chosen = getattr(search, "best_params_", None)
    if metric is None and isinstance(chosen, Mapping):
        own = {str(key).rsplit("__", 1)[-1]: value for key, value in chosen.items()}
        column = np.flatnonzero(_equal(Cs, own.get("C")))
        row = np.flatnonzero(_equal(gammas, own.get("gamma"))) if len(gammas) > 1 else np.array([0])
        if len(row) and len(column):
            return int(row[0]), int(column[0])
    if np.isnan(mean).all():
        raise ValueError(f"This {type(search).__name__} has no score of any cell; nothing can be shown.")
    row_best, column_best = np.unravel_index(int(np.nanargmax(mean)), mean.shape)
    return int(row_best), int(column_best)


def _equal(values: FloatArray, value: Any) -> BoolArray:
    number = value if isinstance(value, int | float | np.number) else np.nan
    return np.asarray(np.isclose(values, float(number), rtol=1e-12, atol=0.0), dtype=bool)
