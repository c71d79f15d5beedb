"""Searches that try fewer cells: the requested units, the cells given up, and the grid's scores in all others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import make_scorer, zero_one_loss
from sklearn.model_selection import GridSearchCV

from multimargin import SVC, verify
from multimargin.model_selection.distribute import local
from multimargin.model_selection.evaluation import UnitResult
from multimargin.model_selection.pair_selection import PerPairSVC, pair_parts, select_pairs
from multimargin.model_selection.search_table import Cells, Evaluate, SearchTable, Unit, UnitScores, restricted
from multimargin.model_selection.strategies import SearchOptions, hold_out, run_search
from multimargin.models.voting import ovr_scores, vote
from support.separate_fits import Problem, evaluate_gamma, make_problem

CS = np.array([0.25, 1.0, 4.0, 16.0, 64.0])
GAMMAS = np.array([2.0**-6, 2.0**-4, 0.25, 1.0, 4.0])


@pytest.fixture(scope="module")
def grid(problem: Problem) -> SearchTable:
    return run_search("grid", problem, CS, GAMMAS, local(evaluate_gamma))


def _from_surface(surface: Any, noise: float = 0.0) -> Evaluate:
    """Scores by a formula in log2 C, log2 gamma, with a small difference for each fold."""

    def evaluate(problem: Any, units: Sequence[Unit]) -> Iterator[UnitScores]:
        for unit in units:
            n = len(unit.Cs)
            wave = noise * np.sin(31.0 * unit.fold + 7.0 * np.log2(unit.Cs) + 3.0 * np.log2(unit.gamma))
            scores = surface(np.log2(unit.Cs), np.log2(unit.gamma)) + wave
            zeros = np.zeros(n)
            yield UnitResult(
                unit.gamma, unit.fold, unit.Cs, {"score": scores}, zeros.astype(int), zeros.astype(int), zeros, zeros,
                np.ones(n, dtype=bool), np.zeros(n, dtype=bool),
            )  # fmt: skip

    return evaluate


def _agree_where_asked(table: SearchTable, grid: SearchTable) -> int:
    """Assert that all scores of a search are the grid's; returns their number."""
    rows, columns = np.searchsorted(grid.gammas, table.gammas), np.searchsorted(grid.Cs, table.Cs)
    np.testing.assert_array_equal(grid.gammas[rows], table.gammas)
    np.testing.assert_array_equal(grid.Cs[columns], table.Cs)
    expected = grid.scores["score"][np.ix_(rows, columns)]
    there = np.isfinite(table.scores["score"])
    np.testing.assert_array_equal(table.scores["score"][there], expected[there])
    return int(there.sum())


def test_the_grid_has_grid_searchs_scores(problem: Problem, grid: SearchTable) -> None:
    search = GridSearchCV(SVC(), {"C": CS, "gamma": GAMMAS}, cv=list(problem.folds))
    search.fit(problem.X, problem.classes[problem.y])
    mean = grid.scores["score"].mean(axis=2).T.ravel()  # C outside, gamma inside: scikit-learn's order
    np.testing.assert_allclose(mean, search.cv_results_["mean_test_score"], rtol=1e-12)
    assert grid.best("score") == (search.best_params_["C"], search.best_params_["gamma"])
    assert grid.asked.all()
    assert not grid.stopped.any()
    assert grid.converged.all()


def test_racing_finds_the_grids_best_cell(problem: Problem, grid: SearchTable) -> None:
    table = run_search("racing", problem, CS, GAMMAS, local(evaluate_gamma))
    assert table.best("score") == grid.best("score")
    n_scores = _agree_where_asked(table, grid)
    assert n_scores < grid.scores["score"].size
    unfinished = np.isnan(table.scores["score"]).any(axis=2)
    np.testing.assert_array_equal(table.stopped, unfinished)
    assert table.asked.all()


@pytest.mark.parametrize("noise", [0.0, 0.02, 0.2])
def test_racing_gives_up_only_what_cannot_win(noise: float) -> None:
    problem = replace(make_problem(), folds=((), (), (), (), ()))
    evaluate = _from_surface(lambda c, g: 0.75 - 0.01 * (c - 3) ** 2 - 0.01 * (g + 1) ** 2, noise)
    full = run_search("grid", problem, CS, GAMMAS, evaluate)
    table = run_search("racing", problem, CS, GAMMAS, evaluate)
    assert table.best("score") == full.best("score")
    best = full.scores["score"].mean(axis=2).max()
    # Where it stopped, even perfect scores would not have been enough; and it did stop somewhere.
    highest = np.where(np.isnan(table.scores["score"]), 1.0, table.scores["score"]).mean(axis=2)
    assert (highest[table.stopped] < best).all()
    assert table.stopped.any()


def test_racing_knows_no_bound_for_a_score_of_ones_own(problem: Problem) -> None:
    loss = make_scorer(zero_one_loss, greater_is_better=False)
    own = replace(problem, scorers={"loss": loss})
    assert not run_search("racing", own, CS, GAMMAS, local(evaluate_gamma)).stopped.any()
    known = SearchOptions(best_possible=0.0)
    assert run_search("racing", own, CS, GAMMAS, local(evaluate_gamma), known).stopped.any()


def test_halving_keeps_the_better_half_on_each_fold() -> None:
    problem = replace(make_problem(), folds=((), (), (), ()))
    evaluate = _from_surface(lambda c, g: 0.9 - 0.001 * (c - 3.1) ** 2 - 0.0011 * (g + 1.2) ** 2)
    table = run_search("halving", problem, CS, GAMMAS, evaluate, SearchOptions(best_possible=2.0))
    n_scored = np.isfinite(table.scores["score"]).sum(axis=(0, 1))
    # 25 cells, then 13, 7 and 4; the leader has all its folds from the beginning.
    np.testing.assert_array_equal(n_scored, [25, 13, 7, 4])
    assert table.best("score") == run_search("grid", problem, CS, GAMMAS, evaluate).best("score")


def test_halving_has_the_grids_scores(problem: Problem, grid: SearchTable) -> None:
    table = run_search("halving", problem, CS, GAMMAS, local(evaluate_gamma), SearchOptions(factor=3))
    assert _agree_where_asked(table, grid) < 0.7 * grid.scores["score"].size
    np.testing.assert_array_equal(table.stopped, np.isnan(table.scores["score"]).any(axis=2))


def test_equal_cells_go_on_together() -> None:
    problem = replace(make_problem(), folds=((), ()))
    table = run_search("halving", problem, CS, GAMMAS, _from_surface(lambda c, g: 0.5 + 0 * c))
    assert np.isfinite(table.scores["score"]).all()


@pytest.mark.parametrize("n_folds", [1, 3])
def test_halving_over_rows(problem: Problem, grid: SearchTable, n_folds: int) -> None:
    folds = hold_out(problem.y) if n_folds == 1 else problem.folds
    asked: list[tuple[int, int]] = []

    def counting(part: Any, units: Sequence[Unit]) -> Iterator[UnitScores]:
        asked.append((len(part.folds[0][0]), sum(len(unit.Cs) for unit in units) // len(part.folds)))
        yield from local(evaluate_gamma)(part, units)

    part = replace(problem, folds=folds)
    table = run_search("halving", part, CS, GAMMAS, counting, SearchOptions(resource="rows", first_share=0.25))
    sizes = [n for n, _ in asked]
    assert sizes == sorted(sizes)
    assert sizes[-1] == len(folds[0][0])
    assert sizes[0] < 0.4 * sizes[-1]
    n_cells = [n for _, n in asked]
    assert n_cells[0] == 25
    assert n_cells[-1] < 13
    # Only scores of all rows are reported.
    assert table.asked.all()
    np.testing.assert_array_equal(table.stopped, np.isnan(table.scores["score"]).any(axis=2))
    if n_folds == 3:
        _agree_where_asked(table, grid)


def test_hold_out_is_seventy_thirty_by_classes() -> None:
    y = np.repeat([0, 1, 2], [50, 30, 20])
    ((train, test),) = hold_out(y)
    assert sorted([*train, *test]) == list(range(100))
    np.testing.assert_array_equal(np.bincount(y[test]), [15, 9, 6])


def test_nested_grids_close_in_on_the_best() -> None:
    problem = replace(make_problem(), folds=((), ()))
    evaluate = _from_surface(lambda c, g: 0.9 - 0.01 * (c - 3.3) ** 2 - 0.01 * (g + 1.2) ** 2)
    table = run_search("nested", problem, CS, GAMMAS, evaluate, SearchOptions(stages=3))
    # Steps of 2, then 1, 1/2 and 1/4 on the scale of log2; each finer grid is 3 x 3 around the best so far.
    assert table.details["centres"] == [(16.0, 0.25), (8.0, 0.5), (2.0**3.5, 2.0**-1)]
    assert table.best("score") == (2.0**3.25, 2.0**-1.25)
    assert int(table.asked.sum()) == 25 + 8 + 8 + 8
    np.testing.assert_array_equal(np.isfinite(table.scores["score"]).all(axis=2), table.asked)


def test_nested_grids_go_beyond_the_edge() -> None:
    problem = replace(make_problem(), folds=((),))
    table = run_search("nested", problem, CS, GAMMAS, _from_surface(lambda c, g: 0.5 + 0.01 * c - 0.01 * g))
    assert table.best("score") == (2.0**7.5, 2.0**-7.5)


def test_nested_grids_leave_a_single_value_as_it_is() -> None:
    problem = replace(make_problem(), folds=((),))
    evaluate = _from_surface(lambda c, g: 0.5 - 0.01 * (c - 1) ** 2 + 0 * g)
    table = run_search("nested", problem, CS, np.array([0.3]), evaluate)
    assert table.gammas.tolist() == [0.3]
    assert table.best("score") == (2.0, 0.3)


@pytest.mark.parametrize("search", ["nested", "halving", "racing"])
def test_no_cell_is_trained_twice(problem: Problem, search: str) -> None:
    trained: list[tuple[float, float, int]] = []

    def counting(part: Any, units: Sequence[Unit]) -> Iterator[UnitScores]:
        trained.extend((C, unit.gamma, unit.fold) for unit in units for C in unit.Cs.tolist())
        yield from local(evaluate_gamma)(part, units)

    table = run_search(search, problem, CS, GAMMAS, counting)
    assert len(trained) == len(set(trained)) == np.isfinite(table.scores["score"]).sum()


def test_an_interrupted_search_keeps_what_it_has(problem: Problem) -> None:
    def interrupted(part: Any, units: Sequence[Unit]) -> Iterator[UnitScores]:
        for number, outcome in enumerate(local(evaluate_gamma)(part, units)):
            if number == 4:
                raise KeyboardInterrupt
            yield outcome

    cells = Cells(len(problem.folds))
    with pytest.raises(KeyboardInterrupt):
        run_search("grid", problem, CS, GAMMAS, interrupted, cells=cells)
    assert np.isfinite(cells.table().scores["score"]).sum() == 4 * len(CS)
    assert cells.table().best("score")[1] == GAMMAS[0]


def test_several_metrics_and_the_one_that_decides(problem: Problem) -> None:
    loss = make_scorer(zero_one_loss, greater_is_better=False)
    both = replace(problem, scorers={"accuracy": None, "loss": loss})
    table = run_search("nested", both, CS, GAMMAS, local(evaluate_gamma), SearchOptions(metric="loss"))
    np.testing.assert_allclose(table.scores["loss"], table.scores["accuracy"] - 1, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("search", "params", "options", "message"),
    [
        ("spiral", {}, {}, r"search='spiral' is not allowed; choose one of 'grid', 'nested', 'two-line'"),
        ("two-line", {"kernel": "poly"}, {}, r"search='two-line' with kernel='poly' does not exist.*use kernel='rbf'"),
        ("nested", {}, {"factor": 1}, r"factor=1 is not allowed; factor must be an integer >= 2"),
        ("nested", {}, {"stages": -1}, r"stages=-1 is not allowed"),
        ("halving", {}, {"resource": "time"}, r"resource='time' is not allowed; choose one of 'folds', 'rows'"),
    ],
)
def test_errors(search: str, params: dict[str, Any], options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        run_search(search, make_problem(**params), CS, GAMMAS, local(evaluate_gamma), SearchOptions(**options))


def test_pairs_have_the_best_cell_of_their_own_search(problem: Problem) -> None:
    selection = select_pairs("grid", problem, CS, GAMMAS, local(evaluate_gamma))
    labels = problem.classes[problem.y]
    for row in selection.rows():
        both = np.flatnonzero((labels == row["first"]) | (labels == row["second"]))
        folds = [
            (np.flatnonzero(np.isin(both, train)), np.flatnonzero(np.isin(both, test))) for train, test in problem.folds
        ]
        search = GridSearchCV(SVC(), {"C": CS, "gamma": GAMMAS}, cv=folds).fit(problem.X[both], labels[both])
        assert row["score"] == pytest.approx(search.best_score_, rel=1e-12)
        assert (row["C"], row["gamma"]) == (search.best_params_["C"], search.best_params_["gamma"])
    assert len(set(zip(selection.C, selection.gamma, strict=True))) > 1
    machine = selection.estimator(SVC()).fit(problem.X, labels)
    assert [each.C for each in machine.estimators_] == selection.C.tolist()
    assert machine.certificate_.stop_reason == "converged"
    assert len(machine.certificate_.parts) == 3


def test_equal_parameters_make_the_ordinary_machine(problem: Problem) -> None:
    labels = problem.classes[problem.y]
    weight = np.linspace(0, 2, len(labels))
    for template in (SVC(), SVC(multi_class="dag"), SVC(break_ties=True), SVC(class_weight="balanced")):
        plain = SVC(**template.get_params() | {"C": 4.0, "gamma": 0.3}).fit(problem.X, labels, weight)
        pairs = PerPairSVC(C=np.full(3, 4.0), gamma=0.3, estimator=template).fit(problem.X, labels, weight)
        np.testing.assert_allclose(
            pairs.decision_function(problem.X), plain.decision_function(problem.X), rtol=0, atol=2e-3
        )
        assert np.mean(pairs.predict(problem.X) == plain.predict(problem.X)) > 0.99
        for i, machine in enumerate(pairs.estimators_):
            first, second = [("a", "b"), ("a", "c"), ("b", "c")][i]
            both = np.flatnonzero(np.isin(labels, [first, second]) & (weight > 0))
            assert verify(machine, problem.X[both], labels[both], sample_weight=weight[both]).optimal


def test_votes_are_those_of_the_pairs(problem: Problem) -> None:
    labels = problem.classes[problem.y]
    machine = PerPairSVC(C=[0.1, 1, 10], gamma=[0.1, 0.5, 2.0]).fit(problem.X, labels)
    D = np.stack([-each.decision_function(problem.X) for each in machine.estimators_], axis=1)
    np.testing.assert_array_equal(machine.predict(problem.X), machine.classes_[vote(D, 3)])
    np.testing.assert_array_equal(machine.decision_function(problem.X), ovr_scores(D, 3))
    two = PerPairSVC(C=[2.0], gamma=[0.5]).fit(problem.X[problem.y < 2], labels[problem.y < 2])
    plain = SVC(C=2.0, gamma=0.5).fit(problem.X[problem.y < 2], labels[problem.y < 2])
    np.testing.assert_array_equal(two.decision_function(problem.X), plain.decision_function(problem.X))
    np.testing.assert_array_equal(two.predict(problem.X), plain.predict(problem.X))


def test_pair_problems_carry_weights(problem: Problem) -> None:
    weight = np.linspace(0.5, 2, len(problem.y))
    own = replace(problem, sample_weight=weight, params={"class_weight": "balanced"})
    parts = list(pair_parts(own))
    assert [part.classes.tolist() for part in parts] == [["a", "b"], ["a", "c"], ["b", "c"]]
    expected = SVC(class_weight="balanced").fit(problem.X, problem.classes[problem.y], weight).class_weight_
    for part, (i, j) in zip(parts, [(0, 1), (0, 2), (1, 2)], strict=True):
        rows = np.flatnonzero(np.isin(problem.y, [i, j]))
        np.testing.assert_array_equal(part.sample_weight, weight[rows])
        assert list(part.params["class_weight"].values()) == pytest.approx([expected[i], expected[j]])
        for (train, test), (whole_train, whole_test) in zip(part.folds, problem.folds, strict=True):
            np.testing.assert_array_equal(rows[train], np.intersect1d(whole_train, rows))
            np.testing.assert_array_equal(rows[test], np.intersect1d(whole_test, rows))


def test_some_rows_of_a_kernel_matrix(problem: Problem) -> None:
    gram = replace(problem, X=problem.X @ problem.X.T, params={"kernel": "precomputed"})
    rows = np.arange(0, 120, 2)
    part = restricted(gram, rows)
    np.testing.assert_array_equal(part.X, problem.X[rows] @ problem.X[rows].T)


def test_pair_errors(problem: Problem) -> None:
    with pytest.raises(ValueError, match=r"per_pair=True with multi_class='ww' does not exist.*use per_pair=False"):
        select_pairs("grid", make_problem(multi_class="ww"), CS, GAMMAS, local(evaluate_gamma))
    with pytest.raises(ValueError, match=r"per_pair=True with kernel='precomputed' does not exist"):
        select_pairs("grid", make_problem(kernel="precomputed"), CS, GAMMAS, local(evaluate_gamma))
    labels = problem.classes[problem.y]
    with pytest.raises(ValueError, match=r"C has shape \(2,\); give one number, or one for each of the 3 pairs"):
        PerPairSVC(C=[1.0, 2.0]).fit(problem.X, labels)
    with pytest.raises(ValueError, match=r"estimator has multi_class='cs', which is not built from pairs"):
        PerPairSVC(estimator=SVC(multi_class="cs")).fit(problem.X, labels)
    no_a = replace(problem, folds=((np.flatnonzero(problem.y > 0), np.flatnonzero(problem.y == 0)),))
    with pytest.raises(ValueError, match=r"training part of cv has no example of class 'a' or 'b'.*use stratified"):
        select_pairs("grid", no_a, CS, GAMMAS, local(evaluate_gamma))
