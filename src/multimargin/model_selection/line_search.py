"""The two lines of KCSL04 Algorithm 1: the best linear C, the cells that follow from it, and the best along a line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from multimargin._typing import FloatArray
from multimargin.estimators.linear_svc_cv import LinearSVCCV
from multimargin.fitting import parameters as check
from multimargin.model_selection.search_table import Cell
from multimargin.problems.schemes import find_scheme

Point = TypeVar("Point", float, Cell)
# Held-out rows that suffice to find the best point of a line; their accuracy errs by 2 %.
ROWS_FOR_A_LOOK = 300


def folds_of(problem: Any) -> tuple[int, int]:
    """Return the number of folds that a line is evaluated on first, which hold out enough rows, and the number of all.

    Two classes are evaluated on all folds: one pair of a search by pairs is often nearly perfect at every point.
    """
    if len(problem.classes) == 2:
        return len(problem.folds), len(problem.folds)
    held_out = np.cumsum([len(test) for _, test in problem.folds])
    return min(int(np.searchsorted(held_out, ROWS_FOR_A_LOOK)) + 1, len(problem.folds)), len(problem.folds)


def best_along(
    line: Sequence[Point], means: Callable[[Sequence[Point], int], Sequence[float]], n_folds: tuple[int, int]
) -> Point:
    """Return the point of a line with the largest mean score, the first of equal ones; scores rise, then fall.

    ``means(points, n)`` returns mean scores over the first n folds. On the first folds every second point is tried, in
    order, until two more have brought nothing, and the neighbours of the best; on all folds the best of these and its
    neighbours. In ascending order of C what costs most is seldom tried.
    """
    known: dict[int, float] = {}
    n_first, n_all = n_folds

    def learn(places: Sequence[int], n: int) -> None:
        if places:
            known.update(zip(places, means([line[place] for place in places], n), strict=True))

    def best() -> int:
        return max(sorted(known), key=lambda place: np.nan_to_num(known[place], nan=-np.inf))

    def around(place: int) -> list[int]:
        return list(range(max(0, place - 1), min(len(line), place + 2)))

    coarse = list(range(0, len(line), 2))
    n_tried = min(len(coarse), len(coarse) // 2 + 1)
    learn(coarse[:n_tried], n_first)
    while n_tried < len(coarse) and best() in coarse[max(0, n_tried - 2) : n_tried]:
        learn(coarse[n_tried : n_tried + 2], n_first)  # two: the second is started from the first
        n_tried += 2
    learn([place for place in around(best()) if place not in known], n_first)
    if n_all > n_first:
        near = around(best())
        known.clear()
        learn(near, n_all)
    return line[best()]


def best_of_all(line: Sequence[Point], scores: Sequence[float]) -> Point:
    """Return the point of a line with the largest score, the first of equal ones."""
    return line[int(np.argmax(np.nan_to_num(np.asarray(scores, dtype=np.float64), nan=-np.inf)))]


def best_linear_C(problem: Any, metric: str, Cs: FloatArray) -> float:  # noqa: N802 - C is the name of the papers
    """Return the C of the best linear machine of the same kind on the same folds, by weights instead of kernels.

    Every C is tried on every fold (KCSL04 section 6): what follows depends on this C alone, scores along it may rise
    twice, and each machine is started from the one before.
    """
    points = Cs.tolist()
    best: float = best_of_all(points, _linear_means(problem, metric, points, len(problem.folds)))
    return best


def _linear_means(problem: Any, metric: str, Cs: Sequence[float], n_folds: int) -> list[float]:
    params = problem.params
    multi_class = params.get("multi_class", "ovo")  # SVC's default, which is not LinearSVC's
    search = LinearSVCCV(
        Cs=Cs,
        cv=list(problem.folds[:n_folds]),
        scoring=problem.scorers[metric],
        refit=False,
        multi_class=multi_class,
        bias=check.resolve_bias(params.get("bias", "auto"), find_scheme(multi_class)).value,
        **{name: params[name] for name in ("loss", "tol", "class_weight") if name in params},
    )
    search.fit(problem.X, problem.classes[problem.y], sample_weight=problem.sample_weight)
    means: list[float] = next(iter(search.scores_.values())).mean(axis=0).tolist()
    return means


def second_line(linear_C: float, Cs: FloatArray, gammas: FloatArray) -> list[Cell]:
    """Return the cells with sigma^2 = C / C~, gamma = 1 / (2 sigma^2), and C within the range of ``Cs``: KCSL04 (6.1).

    When the line misses that range, the cell of the nearest gamma with C moved into it.
    """
    on_line = linear_C / (2 * gammas)
    inside = (on_line >= Cs.min()) & (on_line <= Cs.max())
    if not inside.any():
        into = np.clip(on_line, Cs.min(), Cs.max())
        nearest = int(np.argmin(np.abs(np.log(into / on_line))))
        return [(float(into[nearest]), float(gammas[nearest]))]
    return list(zip(on_line[inside].tolist(), gammas[inside].tolist(), strict=True))
