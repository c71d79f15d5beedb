"""Units of work of a search, and the cells (C, gamma) filled by their results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from multimargin._typing import BoolArray, FloatArray, IntArray

Cell = tuple[float, float]  # (C, gamma)


@dataclass(frozen=True, eq=False)
class Unit:
    """One piece of work: a gamma, a fold, and the values of C to go along, ascending."""

    gamma: float
    fold: int
    Cs: FloatArray

    @property
    def key(self) -> tuple[float, int, tuple[float, ...]]:
        return self.gamma, self.fold, tuple(self.Cs.tolist())


class UnitScores(Protocol):
    """Result of a unit: one number for each of its values of C."""

    @property
    def gamma(self) -> float: ...
    @property
    def fold(self) -> int: ...
    @property
    def Cs(self) -> FloatArray: ...  # noqa: N802 - the name that scikit-learn's users know
    @property
    def scores(self) -> dict[str, FloatArray]: ...
    @property
    def n_support(self) -> IntArray: ...
    @property
    def n_iter(self) -> IntArray: ...
    @property
    def fit_seconds(self) -> FloatArray: ...
    @property
    def score_seconds(self) -> FloatArray: ...
    @property
    def converged(self) -> BoolArray: ...
    @property
    def stopped(self) -> BoolArray: ...


# How units become outcomes, in any order: here, in other processes or on a cluster.
Evaluate = Callable[[Any, Sequence[Unit]], Iterable[UnitScores]]


def key_of(outcome: UnitScores) -> tuple[float, int, tuple[float, ...]]:
    """Return the key of the unit that this came from."""
    return float(outcome.gamma), int(outcome.fold), tuple(np.asarray(outcome.Cs, dtype=np.float64).tolist())


def is_precomputed(problem: Any) -> bool:
    """Whether X holds kernel values."""
    kernel = problem.params.get("kernel", "rbf")
    return isinstance(kernel, str) and kernel == "precomputed"


def restricted(problem: Any, rows: IntArray) -> Any:
    """Return the problem restricted to some rows, with their part of every fold that validates some of them."""
    place = np.full(len(problem.y), -1)
    place[rows] = np.arange(len(rows))
    folds = [tuple(place[side][place[side] >= 0] for side in fold) for fold in problem.folds]
    X = problem.X[rows]
    return replace(
        problem,
        X=X[:, rows] if is_precomputed(problem) else X,
        y=problem.y[rows],
        sample_weight=None if problem.sample_weight is None else problem.sample_weight[rows],
        folds=tuple((train, test) for train, test in folds if len(test)),
    )


def share_of(rows: IntArray, y: IntArray, share: float) -> IntArray:
    """Return a share of the rows, evenly spread over each class, at least five of a class that has them."""
    kept = []
    for code in np.unique(y[rows]):
        members = rows[y[rows] == code]
        n_kept = min(len(members), max(5, round(share * len(members))))
        kept.append(members[np.linspace(0, len(members) - 1, n_kept).round().astype(np.int64)])
    return np.sort(np.concatenate(kept))


@dataclass(frozen=True, eq=False)
class SearchTable:
    """All cells of a search on the grid of the values that occurred; cells that were not tried are nan.

    Attributes
    ----------
    Cs, gammas : ndarray
        Ascending.
    scores : dict of metric to ndarray of shape (n_gammas, n_Cs, n_folds)
    asked : ndarray of bool of shape (n_gammas, n_Cs)
        Cells that the search tried, if only on some folds.
    stopped : ndarray of bool of shape (n_gammas, n_Cs)
        Cells abandoned before they had all folds.
    fit_seconds, score_seconds, n_support, n_iter : ndarray of shape (n_gammas, n_Cs, n_folds)
    converged : ndarray of bool of shape (n_gammas, n_Cs, n_folds)
    details : dict
        Details of a strategy, such as the linear C of a two-line search.
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
    details: dict[str, Any]

    def best(self, metric: str) -> Cell:
        """Return (C, gamma) of the best mean over all folds; of equal ones the smallest C, then the smallest gamma."""
        mean = self.scores[metric].mean(axis=2).T  # nan where a fold is missing
        if np.isnan(mean).all():
            raise ValueError(
                f"No cell has a score {metric!r} on every fold; let the search run longer, or check its scoring."
            )
        c, g = np.unravel_index(int(np.nanargmax(mean)), mean.shape)
        return float(self.Cs[c]), float(self.gammas[g])


@dataclass(eq=False)
class Cells:
    """The cells of a search while it runs: filled unit by unit, so that one that is interrupted keeps them."""

    n_folds: int
    outcomes: list[UnitScores] = field(default_factory=list)
    stopped: set[Cell] = field(default_factory=set)
    details: dict[str, Any] = field(default_factory=dict)

    def add(self, outcome: UnitScores) -> None:
        self.outcomes.append(outcome)

    def by_fold(self, metric: str) -> dict[Cell, FloatArray]:
        """Return the scores of each cell, shape (n_folds,); nan where there is none."""
        found: dict[Cell, FloatArray] = {}
        for outcome in self.outcomes:
            for C, score in zip(outcome.Cs.tolist(), outcome.scores[metric].tolist(), strict=True):
                row = found.setdefault((C, float(outcome.gamma)), np.full(self.n_folds, np.nan))
                row[outcome.fold] = score
        return found

    def missing(self, cells: Iterable[Cell], folds: Iterable[int]) -> list[Unit]:
        """Return the units that fill these cells on these folds, except those already present, by gamma."""
        there = {(C, float(each.gamma), each.fold) for each in self.outcomes for C in each.Cs.tolist()}
        by_gamma: dict[float, set[float]] = {}
        for C, gamma in cells:
            by_gamma.setdefault(gamma, set()).add(C)
        units = []
        for gamma, fold in [(gamma, fold) for gamma in sorted(by_gamma) for fold in folds]:
            Cs = sorted(C for C in by_gamma[gamma] if (C, gamma, fold) not in there)
            if Cs:
                units.append(Unit(gamma, fold, np.array(Cs)))
        return units

    def give_up_incomplete(self) -> None:
        """Mark the cells that lack a fold: the search has been ended."""
        tried: dict[Cell, set[int]] = {}
        for each in self.outcomes:
            for C in each.Cs.tolist():
                tried.setdefault((C, float(each.gamma)), set()).add(each.fold)
        self.stopped |= {cell for cell, folds in tried.items() if len(folds) < self.n_folds}

    def table(self) -> SearchTable:
        """Return the table of the results so far."""
        Cs = np.unique(np.concatenate([[C for C, _ in self.stopped], *(each.Cs for each in self.outcomes)]))
        gammas = np.unique([gamma for _, gamma in self.stopped] + [each.gamma for each in self.outcomes])
        shape = (len(gammas), len(Cs), self.n_folds)
        metrics = list(self.outcomes[0].scores) if self.outcomes else []
        scores = {metric: np.full(shape, np.nan) for metric in metrics}
        numbers = {name: np.full(shape, np.nan) for name in ("fit_seconds", "score_seconds", "n_support", "n_iter")}
        converged, asked, stopped = (
            np.zeros(shape, np.bool_),
            np.zeros(shape[:2], np.bool_),
            np.zeros(shape[:2], np.bool_),
        )
        for each in self.outcomes:
            g, places = int(np.searchsorted(gammas, each.gamma)), np.searchsorted(Cs, each.Cs)
            for metric in metrics:
                scores[metric][g, places, each.fold] = each.scores[metric]
            for name, array in numbers.items():
                array[g, places, each.fold] = getattr(each, name)
            converged[g, places, each.fold] = each.converged
            asked[g, places] = True
            stopped[g, places] |= each.stopped
        for C, gamma in self.stopped:
            place = np.searchsorted(gammas, gamma), np.searchsorted(Cs, C)
            stopped[place] = asked[place] = True
        return SearchTable(Cs, gammas, scores, asked, stopped, **numbers, converged=converged, details=self.details)
