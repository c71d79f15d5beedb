"""The two lines of KCSL04 Algorithm 1: its cells and folds, and that it finds the best along a line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV

from multimargin import SVC, LinearSVC
from multimargin.model_selection import line_search, strategies
from multimargin.model_selection.distribute import local
from multimargin.model_selection.line_search import best_along, best_linear_C, folds_of, second_line
from multimargin.model_selection.search_table import Cells, Unit, UnitScores
from multimargin.model_selection.strategies import run_search
from support.separate_fits import Problem, evaluate_gamma, make_problem

CS = np.array([0.25, 1.0, 4.0, 16.0, 64.0])
GAMMAS = np.array([2.0**-6, 2.0**-4, 0.25, 1.0, 4.0])


@pytest.mark.parametrize("cache_size", ["auto", 0.0])  # 0: the linear machines by weights
def test_two_lines(problem: Problem, cache_size: Any) -> None:
    problem = replace(problem, params={"cache_size": cache_size})
    # 15 values of gamma; those whose C is within 2^-2 ... 2^6 are tried.
    gammas = 2.0 ** np.arange(-10, 5)
    table = run_search("two-line", problem, CS, gammas, local(evaluate_gamma))
    linear_C = table.details["linear_C"]
    search = GridSearchCV(LinearSVC(multi_class="ovo"), {"C": 2.0 ** np.arange(-10, 11)}, cv=list(problem.folds))
    search.fit(problem.X, problem.classes[problem.y])
    assert linear_C == search.best_params_["C"]
    tried = [(table.Cs[c], table.gammas[g]) for g, c in np.argwhere(table.asked)]
    assert tried
    for C, gamma in tried:
        assert np.log2(1 / (2 * gamma)) == pytest.approx(np.log2(C) - np.log2(linear_C), abs=1e-12)  # KCSL04 (6.1)
        assert CS.min() <= C <= CS.max()
    expected = [gamma for gamma in gammas if CS.min() <= linear_C / (2 * gamma) <= CS.max()]
    assert sorted(gamma for _, gamma in tried) == expected


@pytest.mark.parametrize(("multi_class", "loss"), [("ww", "hinge"), ("ova", "squared_hinge")])
def test_the_first_line_is_of_the_same_machine(multi_class: str, loss: str) -> None:
    problem = make_problem(multi_class=multi_class, loss=loss)
    weight = np.linspace(0.5, 2, len(problem.y))
    Cs = np.array([2.0**-6, 2.0**-4, 0.25, 1.0, 4.0])
    found = best_linear_C(replace(problem, sample_weight=weight), "score", Cs)
    labels = problem.classes[problem.y]
    scores = []
    for C in Cs.tolist():
        machine = SVC(C=C, kernel="linear", multi_class=multi_class, loss=loss)
        fits = [
            machine.fit(problem.X[a], labels[a], sample_weight=weight[a]).score(problem.X[b], labels[b], weight[b])
            for a, b in problem.folds
        ]
        scores.append(np.mean(fits))
    assert found == Cs[int(np.argmax(scores))]


@pytest.mark.parametrize("cache_size", ["auto", 0.0])
def test_the_whole_first_line_is_searched(monkeypatch: pytest.MonkeyPatch, cache_size: Any) -> None:
    """KCSL04 section 6: scores that rise twice; the second rise is the higher one."""
    Cs = 2.0 ** np.arange(-10, 11)
    problem = replace(make_problem(), params={"cache_size": cache_size})
    means = {C: 0.5 + (0.1 if C == 2.0**-6 else 0.2 if C == 2.0**9 else 0.0) for C in Cs.tolist()}
    asked: list[float] = []

    def by_weights(_problem: Any, _metric: str, some: Sequence[float], n_folds: int) -> list[float]:
        assert n_folds == len(problem.folds)
        asked.extend(some)
        return [means[C] for C in some]

    def by_kernels(run: Any, cells: Sequence[tuple[float, float]], n_folds: int) -> list[float]:
        run.fill(cells, range(n_folds))
        return by_weights(None, "", [C for C, _ in cells], n_folds)

    monkeypatch.setattr(line_search, "_linear_means", by_weights)
    monkeypatch.setattr(strategies._Run, "means", by_kernels)
    run = strategies._Run(problem, local(evaluate_gamma), strategies.SearchOptions(), Cells(len(problem.folds)))
    assert strategies._best_linear_C(run)[0] == 2.0**9
    assert asked == Cs.tolist()


def test_a_second_line_outside_the_grid() -> None:
    assert second_line(2.0**-10, CS, GAMMAS) == [(CS.min(), GAMMAS.min())]
    assert second_line(2.0**20, CS, GAMMAS) == [(CS.max(), GAMMAS.max())]


@pytest.mark.parametrize("n", [1, 2, 3, 8, 21])
@pytest.mark.parametrize("n_folds", [(1, 1), (1, 5), (3, 3)])
def test_the_best_of_a_line_that_rises_and_falls(n: int, n_folds: tuple[int, int]) -> None:
    Cs = np.exp2(np.arange(n) - 10.0).tolist()
    for best in range(n):
        asked: list[tuple[float, int]] = []

        def means(
            some: Sequence[float], n: int, best: int = best, asked: list[tuple[float, int]] = asked
        ) -> list[float]:
            asked.extend((C, n) for C in some)
            return [-abs(float(np.log2(C)) + 10.0 - best) for C in some]

        assert best_along(Cs, means, n_folds) == Cs[best]
        assert len(set(asked)) == len(asked)  # none twice
        assert len([C for C, n in asked if n == n_folds[0]]) <= n
        assert {n for _, n in asked} == set(n_folds)
        assert len([C for C, n in asked if n > n_folds[0]]) <= 3
        if n == 21 and best < 8:
            assert max(asked)[0] <= Cs[10]  # large C are not tried in vain
    assert best_along(Cs, lambda some, _: [0.0] * len(some), n_folds) == Cs[0]  # the smallest of equal ones


def test_all_folds_decide_between_neighbours_on_a_line() -> None:
    Cs = np.exp2(np.arange(9.0)).tolist()
    first = dict(zip(Cs, [0.1, 0.2, 0.3, 0.5, 0.6, 0.5, 0.3, 0.2, 0.1], strict=True))
    best = best_along(Cs, lambda some, n: [first[C] if n == 1 else -abs(C - 8.0) for C in some], (1, 5))
    assert best == 8.0  # beside the first fold's best, 16


def test_few_rows_are_no_look_at_a_line() -> None:
    held_out = [np.arange(n) for n in (100, 150, 100, 1000)]
    problem = replace(make_problem(), folds=tuple((np.arange(5), rows) for rows in held_out))
    assert folds_of(problem) == (3, 4)
    assert folds_of(replace(problem, folds=problem.folds[::-1])) == (1, 4)
    assert folds_of(replace(problem, folds=problem.folds[:1])) == (1, 1)
    assert folds_of(replace(problem, classes=problem.classes[:2])) == (4, 4)  # a pair may be perfect everywhere


def test_a_line_with_scores_that_are_missing() -> None:
    Cs = np.exp2(np.arange(9.0)).tolist()
    assert best_along(Cs, lambda some, _: [np.nan if C < 16.0 else 1.0 / C for C in some], (1, 1)) == 16.0


def test_cells_of_a_line_that_the_first_look_leaves_out_are_marked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line_search, "ROWS_FOR_A_LOOK", 1)
    problem = make_problem()
    gammas = 2.0 ** np.arange(-10, 5)
    table = run_search("two-line", problem, CS, gammas, local(evaluate_gamma))
    whole = np.asarray(np.isfinite(table.scores["score"]).all(axis=-1))
    assert 1 <= whole.sum() <= 3
    assert (table.stopped == (table.asked & ~whole)).all()
    assert table.stopped.any()
    C, gamma = table.best("score")
    assert whole[np.searchsorted(table.gammas, gamma), np.searchsorted(table.Cs, C)]


def test_where_few_rows_are_asked_for_the_second_line_has_no_matrix(monkeypatch: pytest.MonkeyPatch) -> None:
    problem, gammas = make_problem(), 2.0 ** np.arange(-10, 5)
    sizes: list[tuple[str, Any]] = []

    def recording(part: Any, units: Sequence[Unit]) -> Iterator[UnitScores]:
        sizes.append((part.params.get("kernel", "rbf"), part.params.get("cache_size", "auto")))
        yield from local(evaluate_gamma)(part, units)

    expected = run_search("two-line", problem, CS, gammas, recording)
    assert {size for _, size in sizes} == {"auto"}
    sizes.clear()
    monkeypatch.setattr(strategies, "FEW_SUPPORT", 1.1)
    monkeypatch.setattr(strategies, "MANY_ROWS", 1)
    found = run_search("two-line", problem, CS, gammas, recording)
    assert dict(sizes) == {"linear": "auto", "rbf": 4e-6 * len(problem.y) ** 2}
    assert np.array_equal(found.scores["score"], expected.scores["score"], equal_nan=True)
    bounded = replace(problem, params=problem.params | {"cache_size": 1e-3})
    assert strategies.without_matrix(bounded).params["cache_size"] == 1e-3  # never more than the caller allows
