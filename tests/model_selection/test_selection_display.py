"""Figures of searches: they show the results of the search, ours or scikit-learn's."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from multimargin import SVC, SVCCV, LinearSVCCV, MachineComparison, MachinesDisplay, SelectionDisplay
from multimargin.model_selection.comparison import MachineRow
from multimargin.model_selection.grid import read_grid

CS, GAMMAS = np.array([0.25, 1.0, 4.0]), np.array([0.125, 0.5])


pytestmark = pytest.mark.usefixtures("figures_in_memory")


def searched(**changes: Any) -> Any:
    """The results of a fitted SVCCV: two gammas, three C, four folds; one cell stopped after two folds, one unknown."""
    scores = np.random.default_rng(0).uniform(0.8, 0.9, (2, 3, 4))
    scores[0, 0, 2:], scores[1, 0] = np.nan, np.nan
    stopped = np.zeros((2, 3), dtype=bool)
    stopped[0, 0] = True
    known = {
        "scores_": {"score": scores},
        "stopped_": stopped,
        "Cs_": CS,
        "gammas_": GAMMAS,
        "scoring": None,
        "refit": True,
        "best_params_": {"C": 4.0, "gamma": 0.5},
    }
    return SimpleNamespace(**(known | changes))


@pytest.fixture(scope="module")
def grid_search() -> GridSearchCV:
    search = GridSearchCV(SVC(), {"C": [4.0, 0.25, 1.0], "gamma": GAMMAS}, cv=3, scoring="f1_macro")
    return search.fit(*load_iris(return_X_y=True))


def test_means_and_spreads_are_those_of_known_folds() -> None:
    search = searched()
    grid = read_grid(search)
    scores = search.scores_["score"]
    assert grid.mean[0, 0] == pytest.approx(scores[0, 0, :2].mean())
    np.testing.assert_allclose(grid.mean[:, 1:], scores[:, 1:].mean(axis=2))
    np.testing.assert_allclose(grid.spread[:, 1:], scores[:, 1:].std(axis=2))
    assert np.isnan(grid.mean[1, 0])
    assert np.isnan(grid.spread[1, 0])
    assert (grid.metric, grid.best, grid.chosen_cost, grid.chosen_gamma) == ("accuracy", (1, 2), 4.0, 0.5)
    assert grid.edges() == ["C=4 is the largest C tried", "gamma=0.5 is the largest gamma tried"]


def test_a_grid_search_is_read_cell_by_cell(grid_search: GridSearchCV) -> None:
    grid = read_grid(grid_search)
    np.testing.assert_array_equal(grid.Cs, CS)
    np.testing.assert_array_equal(grid.gammas, GAMMAS)
    results = grid_search.cv_results_
    for params, mean, std in zip(results["params"], results["mean_test_score"], results["std_test_score"], strict=True):
        at = np.searchsorted(GAMMAS, params["gamma"]), np.searchsorted(CS, params["C"])
        np.testing.assert_allclose((grid.mean[at], grid.spread[at]), (mean, std), rtol=1e-12, atol=1e-15)
    best = grid_search.best_params_
    assert (grid.metric, grid.chosen_cost, grid.chosen_gamma) == ("f1_macro", best["C"], best["gamma"])
    assert not grid.stopped.any()


def test_svccv_is_read_as_its_results_are() -> None:
    search = SVCCV(Cs=[4.0, 0.25, 1.0], gammas=GAMMAS, cv=3, multi_class="ww").fit(*load_iris(return_X_y=True))
    own = read_grid(search)
    listed = read_grid(SimpleNamespace(cv_results_=search.cv_results_, best_params_=search.best_params_, scoring=None))
    for name in ("Cs", "gammas", "scores", "stopped", "best", "metric"):
        np.testing.assert_array_equal(getattr(own, name), getattr(listed, name))
    assert own.mean[own.best] == pytest.approx(search.best_score_)
    assert own.metric == "accuracy"
    np.testing.assert_array_equal(SelectionDisplay.from_estimator(search).mesh_.get_array().reshape(2, 3), own.mean)


def test_a_pipeline_and_several_scores() -> None:
    model = make_pipeline(StandardScaler(), SVC())
    search = GridSearchCV(
        model, {"svc__C": CS, "svc__gamma": GAMMAS}, cv=3, scoring=["accuracy", "f1_macro"], refit="f1_macro"
    ).fit(*load_iris(return_X_y=True))
    assert read_grid(search).metric == "f1_macro"
    assert read_grid(search).chosen_cost == search.best_params_["svc__C"]
    other = read_grid(search, "accuracy")
    assert other.mean.max() == pytest.approx(search.cv_results_["mean_test_accuracy"].max())
    assert other.mean[other.best] == other.mean.max()
    with pytest.raises(ValueError, match=r"metric='recall' is not a score .*'accuracy', 'f1_macro'"):
        read_grid(search, "recall")


def test_the_best_cell_without_a_choice_is_none_that_was_stopped() -> None:
    scores = np.full((2, 3, 4), 0.5)
    scores[0, 0], scores[1, 1] = 0.9, 0.8
    grid = read_grid(searched(best_params_={"C": "one for each pair"}, scores_={"score": scores}))
    assert grid.best == (1, 1)
    with pytest.raises(ValueError, match="no score of any cell"):
        read_grid(searched(best_params_=None, scores_={"score": np.full((2, 3, 4), np.nan)}))


def test_heat_map() -> None:
    search = searched()
    display = SelectionDisplay.from_estimator(search, cmap="magma")
    grid = read_grid(search)
    values = display.mesh_.get_array().reshape(2, 3)
    np.testing.assert_array_equal(values.mask, np.isnan(grid.mean))
    np.testing.assert_allclose(values.compressed(), grid.mean[np.isfinite(grid.mean)])
    best, stopped = display.lines_
    assert (best.get_xdata()[0], best.get_ydata()[0]) == (4.0, 0.5)
    np.testing.assert_array_equal(np.transpose(stopped.get_data()), [[0.25, 0.125]])
    legend = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert legend == ["best: C=4, gamma=0.5", "stopped early"]
    assert (display.ax_.get_xscale(), display.ax_.get_yscale()) == ("log", "log")
    np.testing.assert_array_equal(display.ax_.get_xticks(), CS)
    assert [text.get_text() for text in display.ax_.get_yticklabels()] == ["$2^{-3}$", "$2^{-1}$"]
    edges = display.mesh_.get_coordinates()
    np.testing.assert_allclose(edges[0, :, 0], [0.125, 0.5, 2.0, 8.0])
    np.testing.assert_allclose(edges[:, 0, 1], [0.0625, 0.25, 1.0])
    assert display.mesh_.get_cmap().name == "magma"
    display.figure_.canvas.draw()


def test_very_low_scores_do_not_hide_the_differences_of_good_ones() -> None:
    scores = np.full((2, 3, 1), 0.9)
    scores[0, 0], scores[1, 2] = 0.1, 0.95
    display = SelectionDisplay.from_estimator(searched(scores_={"score": scores}))
    assert display.mesh_.get_clim() == (pytest.approx(0.8), 0.95)
    assert display.mesh_.colorbar.extend == "min"
    whole = SelectionDisplay.from_estimator(searched(scores_={"score": scores}), vmin=0.0)
    assert whole.mesh_.get_clim() == (0.0, 0.95)
    assert whole.mesh_.colorbar.extend == "neither"


@pytest.mark.parametrize(
    ("Cs", "ticks", "labels"),
    [
        (np.logspace(-2, 2, 5), np.logspace(-2, 2, 5), ["0.01", "0.1", "1", "10", "100"]),
        (2.0 ** np.arange(-2, 20), 2.0 ** np.arange(-2, 20, 3), None),
        (2.0 ** np.array([-2, 0, 2, 2.5, 3, 3.5, 4]), 2.0 ** np.array([-2, 0, 2, 3, 4]), None),
        (np.array([1.0, 3.0, 3.01, 10.0]), [1.0, 3.0, 10.0], ["1", "3", "10"]),
    ],
)
def test_ticks_are_at_values_and_apart(Cs: Any, ticks: Any, labels: Any) -> None:
    scores = np.random.default_rng(0).uniform(size=(2, len(Cs), 2))
    stopped = np.zeros((2, len(Cs)), dtype=bool)
    search = searched(Cs_=Cs, scores_={"score": scores}, stopped_=stopped, best_params_=None)
    ax = SelectionDisplay.from_estimator(search).ax_
    np.testing.assert_array_equal(ax.get_xticks(), ticks)
    expected = [f"$2^{{{np.log2(tick):.0f}}}$" for tick in ticks] if labels is None else labels
    assert [text.get_text() for text in ax.get_xticklabels()] == expected


def test_curves() -> None:
    search = searched()
    display = SelectionDisplay.from_estimator(search, kind="curves", linewidth=3)
    grid = read_grid(search)
    for row, line in enumerate(display.lines_):
        known = np.isfinite(grid.mean[row])
        np.testing.assert_array_equal(line.get_xdata(), CS[known])
        np.testing.assert_array_equal(line.get_ydata(), grid.mean[row, known])
        band = display.ax_.collections[row].get_datalim(display.ax_.transData)
        low, high = (grid.mean[row] - grid.spread[row])[known], (grid.mean[row] + grid.spread[row])[known]
        np.testing.assert_allclose((band.y0, band.y1), (low.min(), high.max()))
        assert line.get_linewidth() == 3
    crosses = display.ax_.get_lines()[1]
    assert (crosses.get_xdata()[0], crosses.get_ydata()[0]) == (0.25, grid.mean[0, 0])
    assert [text.get_text() for text in display.ax_.get_legend().get_texts()] == ["gamma=0.125", "gamma=0.5"]
    one = display.plot(kind="curves", gammas=[0.4])
    assert [line.get_label() for line in one.lines_] == ["gamma=0.5"]
    assert one.mesh_ is None
    assert display.plot(display.ax_).figure_ is display.figure_


def test_curves_are_those_around_the_choice() -> None:
    gammas = 2.0 ** np.arange(9)
    scores = np.random.default_rng(1).uniform(size=(9, 3, 2))
    for chosen, first in ((0, 0), (4, 2), (8, 4)):
        search = searched(
            gammas_=gammas,
            stopped_=np.zeros((9, 3), dtype=bool),
            scores_={"score": scores},
            best_params_={"C": 1.0, "gamma": gammas[chosen]},
        )
        names = [line.get_label() for line in SelectionDisplay.from_estimator(search, kind="curves").lines_]
        assert names == [f"gamma={gamma:g}" for gamma in gammas[first : first + 5]]


def test_a_search_without_gamma() -> None:
    X, y = load_iris(return_X_y=True)
    search = GridSearchCV(SVC(kernel="linear"), {"C": [0.3, 3.0]}, cv=3).fit(X, y)
    display = SelectionDisplay.from_estimator(search)
    assert display.mesh_.get_array().shape == (1, 2)
    assert [text.get_text() for text in display.ax_.get_xticklabels()] == ["0.3", "3"]
    assert display.ax_.get_ylabel() == ""
    curves = display.plot(kind="curves")
    np.testing.assert_allclose(curves.lines_[0].get_ydata(), search.cv_results_["mean_test_score"])
    curves.figure_.canvas.draw()
    own = searched(
        gammas_=np.ones(1), kernel="linear", stopped_=np.zeros((1, 3)), scores_={"score": np.ones((1, 3, 2))}
    )
    assert np.isnan(read_grid(own).gammas).all()
    assert read_grid(own).chosen_cost == 4.0


def test_what_cannot_be_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="This SVC has no scores to show; give a fitted SVCCV or GridSearchCV"):
        SelectionDisplay.from_estimator(SVC())
    with pytest.raises(ValueError, match="This LinearSVCCV has no scores to show"):
        SelectionDisplay.from_estimator(LinearSVCCV(Cs=[1.0], cv=2).fit(X, y))
    with pytest.raises(ValueError, match="kind='map' is not allowed; choose one of 'heatmap', 'curves'"):
        SelectionDisplay.from_estimator(searched(), kind="map")
    with pytest.raises(ValueError, match=r"gammas=\[0\] is not allowed; give a list of numbers > 0"):
        SelectionDisplay.from_estimator(searched(), kind="curves", gammas=[0])
    for cells, message in (
        ({"C": [1.0], "gamma": ["scale", 0.1]}, "gamma='scale' in its grid; only numbers can be shown"),
        ({"C": [1.0], "tol": [0.1, 0.01]}, "The search varied 'tol'; only a search over C and gamma"),
        ({"gamma": [1.0]}, "The search did not vary 'C'"),
        ([{"C": [1.0]}, {"C": [2.0], "gamma": [0.1]}], "gamma=None in its grid"),
    ):
        with pytest.raises(ValueError, match=message):
            SelectionDisplay.from_estimator(GridSearchCV(SVC(), cells, cv=2).fit(X, y))
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"SelectionDisplay needs matplotlib.*multimargin\[plots\]"):
        SelectionDisplay.from_estimator(searched())


def compared(test: float | None) -> MachineComparison:
    rows = tuple(
        MachineRow(name, mean, 0.01, test, 1.0, 0.1, 0.1, 10, 1.0, 0.1, True, (mean - 0.01, mean + 0.01))
        for name, mean in (("ww", 0.9), ("$x_{$", 0.8), ("cs", 0.95))
    )
    return MachineComparison(rows, "accuracy", 2, "cs", "ww", "Take ww.")


@pytest.mark.parametrize("kind", ["points", "bars"])
def test_machines(kind: str) -> None:
    display = MachinesDisplay.from_comparison(compared(test=0.85), kind=kind)
    ax = display.ax_
    display.figure_.canvas.draw()  # the dollar sign begins no formula
    assert [text.get_text() for text in ax.get_yticklabels()] == ["$x_{$", "ww", "cs"]
    assert ax.get_title(loc="left") == "recommended: ww"
    if kind == "bars":
        assert [patch.get_width() for patch in ax.patches] == [0.8, 0.9, 0.95]
        assert {patch.get_x() for patch in ax.patches} == {0.0}
    else:
        means = next(line for line in ax.get_lines() if line.get_marker() == "o")
        np.testing.assert_array_equal(np.transpose(means.get_data()), [(0.8, 0), (0.9, 1), (0.95, 2)])
    tests = next(line for line in ax.get_lines() if line.get_marker() == "D")
    np.testing.assert_array_equal(np.transpose(tests.get_data()), [(0.85, 0), (0.85, 1), (0.85, 2)])
    untested = MachinesDisplay.from_comparison(compared(test=None), kind=kind)
    assert not [line for line in untested.ax_.get_lines() if line.get_marker() == "D"]
    with pytest.raises(ValueError, match="kind='pie' is not allowed; choose one of 'points', 'bars'"):
        MachinesDisplay.from_comparison(compared(test=None), kind="pie")
