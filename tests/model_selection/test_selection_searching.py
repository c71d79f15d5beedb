"""SVCCV's other searches: fewer cells, other processes, results on disk, single pairs; the same scores throughout."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import ShuffleSplit

from multimargin import SVC, SVCCV
from multimargin.model_selection import run as searching
from multimargin.model_selection.evaluation import evaluate_gamma
from multimargin.model_selection.pair_selection import PerPairSVC
from multimargin.model_selection.strategies import hold_out

GRID: dict[str, Any] = {"Cs": [0.25, 1.0, 4.0, 16.0], "gammas": [0.03125, 0.0625, 0.5], "cv": 3}


@pytest.fixture(scope="module")
def noisy() -> tuple[Any, Any]:
    X, y = make_classification(
        150, 5, n_informative=4, n_redundant=0, n_classes=3, flip_y=0.02, class_sep=1.5, random_state=3
    )
    return X, np.array(["a", "b", "c"])[y]


@pytest.fixture(scope="module")
def grid(noisy: Any) -> SVCCV:
    return SVCCV(**GRID).fit(*noisy)


def _same(found: SVCCV, grid: SVCCV) -> None:
    np.testing.assert_array_equal(found.scores_["score"], grid.scores_["score"])
    assert found.best_params_ == grid.best_params_
    np.testing.assert_array_equal(found.best_estimator_.dual_coef_, grid.best_estimator_.dual_coef_)
    for key, values in grid.cv_results_.items():
        if "time" not in key:
            np.testing.assert_array_equal(found.cv_results_[key], values, err_msg=key)


@pytest.mark.parametrize("search", ["racing", "halving", "nested", "two-line"])
def test_cells_are_those_of_the_grid(search: str, noisy: Any, grid: SVCCV) -> None:
    found = SVCCV(**GRID, search=search).fit(*noisy)
    known = {(each["C"], each["gamma"]): index for index, each in enumerate(grid.cv_results_["params"])}
    shared = 0
    for index, each in enumerate(found.cv_results_["params"]):
        place = known.get((each["C"], each["gamma"]))
        if place is None:
            continue
        for fold in range(3):
            score = found.cv_results_[f"split{fold}_test_score"][index]
            assert np.isnan(score) or score == grid.cv_results_[f"split{fold}_test_score"][place]
            shared += not np.isnan(score)
    assert found.certificate_.stop_reason == "converged"
    if search == "racing":
        assert found.best_params_ == grid.best_params_
    if search == "nested":
        assert shared == 36
        assert found.best_score_ >= grid.best_score_
    if search in ("racing", "halving"):
        assert found.stopped_.any()
        assert 12 <= shared < 36


@pytest.mark.parametrize("multi_class", ["ovo", "ww"])
def test_processes_and_disk_give_the_same(multi_class: str, noisy: Any, tmp_path: Path) -> None:
    plain = SVCCV(**GRID, multi_class=multi_class).fit(*noisy)
    first = SVCCV(**GRID, multi_class=multi_class, n_jobs=2, resume=tmp_path).fit(*noisy)
    _same(first, plain)
    stamps = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    assert len(stamps) == 1 + 2 * 9
    _same(SVCCV(**GRID, multi_class=multi_class, resume=str(tmp_path)).fit(*noisy), plain)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == stamps
    with pytest.raises(ValueError, match=r"resume=.* holds a search on other data, folds or parameters"):
        SVCCV(**GRID, multi_class=multi_class, resume=tmp_path, tol=1e-4).fit(*noisy)


def test_dask_gives_the_same(noisy: Any, grid: SVCCV) -> None:
    distributed = pytest.importorskip("distributed", reason="needs the extra 'dask': pip install 'multimargin[dask]'")
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, host="127.0.0.1", dashboard_address=None, silence_logs=50
        ) as cluster,
        distributed.Client(cluster),
        joblib.parallel_config("dask"),
    ):
        _same(SVCCV(**GRID).fit(*noisy), grid)


def test_ctrl_c_and_then_going_on(noisy: Any, grid: SVCCV, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[float] = []

    def interrupted(problem: Any, gamma: float, folds: Any, Cs: Any) -> Any:
        asked.append(gamma)
        if gamma == 0.0625 and len(asked) < 3:
            raise KeyboardInterrupt
        return evaluate_gamma(problem, gamma, folds, Cs)

    monkeypatch.setattr(searching, "evaluate_gamma", interrupted)
    search = SVCCV(**GRID, resume=tmp_path)
    with pytest.raises(KeyboardInterrupt):
        search.fit(*noisy)
    np.testing.assert_array_equal(search.stopped_, [[False] * 4, [True] * 4, [True] * 4])
    np.testing.assert_array_equal(search.scores_["score"][0], grid.scores_["score"][0])
    assert not hasattr(search, "best_estimator_")
    _same(search.fit(*noisy), grid)
    assert asked == [0.03125, 0.0625, 0.0625, 0.5]


@pytest.mark.parametrize("search", ["grid", "halving"])
def test_time_limit(search: str, noisy: Any, tmp_path: Path) -> None:
    found = SVCCV(**GRID, search=search, resume=tmp_path, max_time=1e-9)
    with pytest.warns(ConvergenceWarning, match=r"The search ended early \(max_time\)"):
        found.fit(*noisy)
    assert found.stop_reason_ == "max_time"
    assert found.stopped_.any()


@pytest.mark.parametrize("search", ["nested", "two-line", "halving", "racing"])
def test_cells_that_an_end_left_out_are_marked(search: str, noisy: Any) -> None:
    whole = SVCCV(**GRID, search=search).fit(*noisy)
    assert whole.stop_reason_ == "finished"
    looks = iter(range(1000))
    ended = SVCCV(**GRID, search=search, on_progress=lambda _: next(looks) > 0)
    with pytest.warns(ConvergenceWarning, match=r"The search ended early \(callback\)"):
        ended.fit(*noisy)
    assert ended.stop_reason_ == "callback"
    unfinished = ~np.isfinite(ended.scores_["score"]).all(axis=-1)
    tried = np.isin(ended.gammas_, GRID["gammas"])[:, None] & np.isin(ended.Cs_, GRID["Cs"])[None, :]
    assert ended.stopped_.any()
    if search != "two-line":  # whose cells lie between those of the grid
        assert (ended.stopped_ | ~unfinished)[tried].all()


def test_one_split_of_seventy_to_thirty(noisy: Any) -> None:
    X, y = noisy
    folds = hold_out(np.unique(y, return_inverse=True)[1])
    found = SVCCV(**GRID | {"cv": folds}, search="halving").fit(X, y)
    assert found.n_splits_ == 1
    model = SVC(**found.best_params_).fit(X[folds[0][0]], y[folds[0][0]])
    assert found.best_score_ == pytest.approx(model.score(X[folds[0][1]], y[folds[0][1]]), abs=1e-12)


def test_each_pair_has_its_own_cell(noisy: Any) -> None:
    X, y = noisy
    found = SVCCV(**GRID, per_pair=True).fit(X, y)
    assert isinstance(found.best_estimator_, PerPairSVC)
    rows = found.pair_selection_.rows()
    for row, machine in zip(rows, found.best_estimator_.estimators_, strict=True):
        both = np.isin(y, [row["first"], row["second"]])
        assert (machine.C, machine.gamma) == (row["C"], row["gamma"])
        assert machine.shape_fit_[0] == both.sum()
    assert found.n_iter_.shape == (3,)
    assert found.certificate_.stop_reason == "converged"
    means = np.mean([table.scores["score"] for table in found.pair_selection_.tables], axis=0)
    np.testing.assert_allclose(found.scores_["score"], means, rtol=1e-12)
    np.testing.assert_array_equal(found.predict(X), found.best_estimator_.predict(X))
    # The next fit is an ordinary one.
    assert not hasattr(found.set_params(per_pair=False).fit(X, y), "pair_selection_")


def test_pairs_by_two_lines_of_their_own(noisy: Any) -> None:
    found = SVCCV(**GRID | {"gammas": 2.0 ** np.arange(-8, 3)}, search="two-line", per_pair=True).fit(*noisy)
    tried = set()
    for table in found.pair_selection_.tables:
        for g, c in np.argwhere(table.asked):
            assert table.Cs[c] * 2 * table.gammas[g] == pytest.approx(table.details["linear_C"])
            tried.add((table.Cs[c], table.gammas[g]))
    assert {(each["C"], each["gamma"]) for each in found.cv_results_["params"]} == tried


def test_forecast_changes_nothing(noisy: Any, grid: SVCCV) -> None:
    before = dict(grid.__dict__)
    estimated = grid.forecast(*noisy)
    assert estimated.n_fits == 36
    assert estimated.seconds > 0
    assert grid.__dict__ == before
    assert not hasattr(SVCCV(**GRID), "n_features_in_")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"search": "spiral"}, r"search='spiral' is not allowed; choose one of 'grid', 'nested'"),
        ({"search": "two-line", "kernel": "laplacian"}, r"search='two-line' with kernel='laplacian' does not exist"),
        ({"per_pair": True, "multi_class": "cs"}, r"per_pair=True with multi_class='cs' does not exist"),
    ],
)
def test_wrong_choices(given: dict[str, Any], message: str, noisy: Any) -> None:
    with pytest.raises(ValueError, match=message):
        SVCCV(**GRID, **given).fit(*noisy)


def test_pairs_and_any_splitter(noisy: Any) -> None:
    found = SVCCV(**GRID | {"cv": ShuffleSplit(2, random_state=0)}, per_pair=True, search="nested").fit(*noisy)
    assert found.n_splits_ == 2
    assert np.isfinite(found.best_score_)


def test_the_callers_function_hears_of_units_elsewhere(noisy: Any, grid: SVCCV) -> None:
    moments: list[Any] = []
    found = SVCCV(**GRID, n_jobs=1, on_progress=moments.append).fit(*noisy)
    _same(found, grid)
    assert len(moments) == 9  # gammas times folds
    steps = [moment.iteration for moment in moments]
    assert steps == sorted(steps)
    assert all(0 < moment.n_support <= 100 for moment in moments)
    with pytest.warns(ConvergenceWarning, match=r"ended early \(callback\)"):
        ended = SVCCV(**GRID, n_jobs=1, on_progress=lambda moment: True).fit(*noisy)
    assert np.isfinite(ended.scores_["score"]).any(axis=1).sum() == 1
    assert ended.stopped_.any()
