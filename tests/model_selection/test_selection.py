"""SVCCV: the scores of separate fits, cell by cell; GridSearchCV's results; scikit-learn's checks."""

from __future__ import annotations

import os
import pickle
import signal
from dataclasses import fields
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, GroupKFold, ShuffleSplit, StratifiedKFold

from multimargin import SVC, SVCCV, Progress, verify
from multimargin.kernels.spec import KernelSpec
from multimargin.kernels.store import KernelStore
from multimargin.model_selection.evaluation import SelectionProblem, UnitResult, evaluate_gamma, evaluate_unit
from multimargin.model_selection.results import SelectionResults
from multimargin.model_selection.shared_kernels import FEW_FEATURES, SharedKernels, make_basis
from support.helpers import noisy_classes

CS = [0.5, 4.0, 64.0]
GAMMAS = [0.02, 0.1, 0.7]
MACHINES = ("ovo", "dag", "ova", "ww", "cs", "llw")


@pytest.fixture(scope="module")
def noisy() -> tuple[Any, Any]:
    X, y = noisy_classes()
    return X, np.array(["a", "b", "c"])[y]


def make_units(X: Any, y: Any, *, stop: Any = None, folds: Any = (0, 1, 2), **params: Any) -> list[UnitResult]:
    problem = make_problem(X, y, **params)
    return evaluate_gamma(problem, GAMMAS[1], folds, np.array(CS), stop=stop)


def make_problem(X: Any, y: Any, **params: Any) -> SelectionProblem:
    own = {k: v for k, v in SVC(**params).get_params(deep=False).items() if k not in ("C", "gamma")}
    classes, codes = np.unique(y, return_inverse=True)
    folds = tuple(StratifiedKFold(3).split(X, y))
    return SelectionProblem(X, codes, classes, None, own, folds, {"score": None})


@pytest.mark.parametrize("machine", MACHINES)
def test_cells_are_separate_fits(machine: str, noisy: Any) -> None:
    X, y = noisy
    folds = StratifiedKFold(4, shuffle=True, random_state=1)
    given: dict[str, Any] = {"multi_class": machine, "class_weight": "balanced", "tol": 1e-5}
    own = SVCCV(Cs=CS[::-1], gammas=GAMMAS, cv=folds, **given).fit(X, y)
    search = GridSearchCV(SVC(**given), {"C": CS, "gamma": GAMMAS}, cv=folds).fit(X, y)
    for key in (k for k in search.cv_results_ if "test" in k or "param_" in k):
        np.testing.assert_allclose(
            np.asarray(own.cv_results_[key], dtype=float), np.asarray(search.cv_results_[key], dtype=float), rtol=1e-12
        )
    assert own.cv_results_["params"] == search.cv_results_["params"]
    assert set(search.cv_results_) <= set(own.cv_results_)
    assert (own.best_params_, own.best_index_, own.n_splits_) == (search.best_params_, search.best_index_, 4)
    assert own.best_score_ == pytest.approx(search.best_score_)
    np.testing.assert_array_equal(own.predict(X), search.predict(X))
    assert own.score(X, y) == pytest.approx(search.score(X, y))
    assert verify(own.best_estimator_, X, y).optimal
    assert own.certificate_.stop_reason == "converged"


@pytest.mark.parametrize(
    "given",
    [
        {"loss": "squared_hinge"},
        {"bias": "regularized"},
        {"bias": "none", "multi_class": "dag"},
        {"bias": "exact", "multi_class": "ww"},
        {"kernel": "laplacian"},
        {"kernel": "poly", "coef0": 1.0, "degree": 2},
        {"break_ties": True},
        {"cache_size": 0.2},
        {"cache_size": 0.2, "multi_class": "ova"},
        {"cache_size": 0.2, "multi_class": "ww", "bias": "regularized"},
    ],
    ids=str,
)
@pytest.mark.parametrize("storage", ["dense", "csr"])
def test_every_way_of_training(given: dict[str, Any], storage: str, noisy: Any) -> None:
    X, y = noisy
    data = sparse.csr_array(X) if storage == "csr" else X
    own = SVCCV(Cs=CS[:2], gammas=GAMMAS[:2], cv=3, tol=1e-5, **given).fit(data, y)
    search = GridSearchCV(SVC(tol=1e-5, **given), {"C": CS[:2], "gamma": GAMMAS[:2]}, cv=3).fit(X, y)
    for fold in range(3):
        key = f"split{fold}_test_score"
        np.testing.assert_allclose(own.cv_results_[key], search.cv_results_[key], rtol=1e-12)


@pytest.mark.parametrize("kernel", ["linear", "precomputed", "callable"])
def test_kernels_without_gamma(kernel: str, noisy: Any) -> None:
    X, y = noisy
    function = (lambda A, B: A @ B.T) if kernel == "callable" else kernel
    data = X @ X.T if kernel == "precomputed" else X
    own = SVCCV(Cs=CS[:2], kernel=function, cv=3, tol=1e-5).fit(data, y)
    search = GridSearchCV(SVC(kernel=function, tol=1e-5), {"C": CS[:2]}, cv=3).fit(data, y)
    np.testing.assert_allclose(own.cv_results_["mean_test_score"], search.cv_results_["mean_test_score"], rtol=1e-12)
    np.testing.assert_array_equal(own.predict(data), search.predict(data))
    with pytest.raises(ValueError, match="which has no gamma; leave gammas out"):
        SVCCV(Cs=CS, gammas=GAMMAS, kernel=function).fit(data, y)


def test_two_classes_and_scores_that_rank(noisy: Any) -> None:
    X, y = noisy[0], noisy[1] == "a"
    own = SVCCV(Cs=CS, gammas=GAMMAS, scoring="roc_auc", cv=3, tol=1e-6).fit(X, y)
    search = GridSearchCV(SVC(tol=1e-6), {"C": CS, "gamma": GAMMAS}, scoring="roc_auc", cv=3).fit(X, y)
    np.testing.assert_allclose(own.cv_results_["mean_test_score"], search.cv_results_["mean_test_score"], atol=1e-4)
    assert own.score(X, y) == pytest.approx(search.score(X, y), abs=1e-4)


@pytest.mark.parametrize("shape", ["ovr", "ovo"])
def test_decisions_reach_the_scorers(shape: str, noisy: Any) -> None:
    X, y = noisy

    def spread(estimator: Any, points: Any, labels: Any) -> float:
        decision = estimator.decision_function(points)
        assert decision.shape == (len(points), 3)
        return float(np.abs(decision).mean())

    given: dict[str, Any] = {"decision_function_shape": shape, "tol": 1e-7}
    own = SVCCV(Cs=CS, gammas=GAMMAS, scoring=spread, cv=3, **given).fit(X, y)
    search = GridSearchCV(SVC(**given), {"C": CS, "gamma": GAMMAS}, scoring=spread, cv=3).fit(X, y)
    np.testing.assert_allclose(own.cv_results_["mean_test_score"], search.cv_results_["mean_test_score"], rtol=1e-5)


def test_several_metrics_weights_and_groups(noisy: Any) -> None:
    X, y = noisy
    rng = np.random.default_rng(0)
    weight, groups = rng.uniform(0.2, 3.0, len(y)), rng.integers(0, 12, len(y))
    weight[::17] = 0.0
    scoring = {"share": "accuracy", "macro": "f1_macro"}
    given: dict[str, Any] = {"scoring": scoring, "cv": GroupKFold(3), "refit": "macro"}
    own = SVCCV(Cs=CS, gammas=GAMMAS, tol=1e-5, **given).fit(X, y, sample_weight=weight, groups=groups)
    search = GridSearchCV(SVC(tol=1e-5), {"C": CS, "gamma": GAMMAS}, **given)
    search.fit(X, y, sample_weight=weight, groups=groups)
    for metric in scoring:
        for key in (f"split2_test_{metric}", f"mean_test_{metric}", f"std_test_{metric}", f"rank_test_{metric}"):
            np.testing.assert_allclose(own.cv_results_[key], search.cv_results_[key], rtol=1e-10)
    assert own.best_params_ == search.best_params_
    assert own.multimetric_
    assert own.scores_["macro"].shape == (3, 3, 3)
    assert own.score(X, y) == pytest.approx(search.score(X, y))


def test_refit_by_a_function_or_not_at_all(noisy: Any) -> None:
    X, y = noisy
    own = SVCCV(Cs=CS, gammas=GAMMAS, cv=2, refit=lambda results: 3).fit(X, y)
    assert own.best_index_ == 3
    assert own.best_params_ == own.cv_results_["params"][3] == {"C": 4.0, "gamma": 0.02}
    assert (own.best_estimator_.C, own.best_estimator_.gamma) == (4.0, 0.02)
    none = SVCCV(Cs=CS, gammas=GAMMAS, cv=2, refit=False).fit(X, y)
    assert none.best_params_["C"] in CS
    assert not hasattr(none, "best_estimator_")
    with pytest.raises(AttributeError) as caught:
        none.predict(X)
    assert "refit=False and no model" in str(caught.value.__cause__)


def test_any_splitter(noisy: Any) -> None:
    X, y = noisy
    splitter = ShuffleSplit(4, test_size=0.3, random_state=3)  # held-out parts that overlap
    own = SVCCV(Cs=CS, gammas=GAMMAS, cv=splitter, tol=1e-5).fit(X, y)
    search = GridSearchCV(SVC(tol=1e-5), {"C": CS, "gamma": GAMMAS}, cv=splitter).fit(X, y)
    np.testing.assert_allclose(own.cv_results_["mean_test_score"], search.cv_results_["mean_test_score"], rtol=1e-12)


def same(a: UnitResult, b: UnitResult) -> bool:
    names = [entry.name for entry in fields(UnitResult) if "seconds" not in entry.name and entry.name != "scores"]
    return all(np.array_equal(getattr(a, n), getattr(b, n)) for n in names) and np.array_equal(
        a.scores["score"], b.scores["score"]
    )


@pytest.mark.parametrize("machine", ["ovo", "ww"])
def test_units_are_independent_and_travel(machine: str, noisy: Any) -> None:
    X, y = noisy
    together = make_units(X, y, multi_class=machine)
    problem = pickle.loads(pickle.dumps(make_problem(X, y, multi_class=machine)))
    alone = [evaluate_unit(problem, GAMMAS[1], fold, np.array(CS)) for fold in (2, 0, 1)]
    for unit in alone:
        assert same(unit, together[unit.fold])
        assert same(pickle.loads(pickle.dumps(unit)), unit)
        assert unit.converged.all()
        assert not unit.stopped.any()
        assert (unit.n_support > 0).all()
    assert "workplace" not in problem.__getstate__()


def test_threads_do_not_change_the_results(noisy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = noisy
    two = make_units(X, y)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    for module in ("fitting.machine", "model_selection.binary_paths", "model_selection.shared_kernels"):
        monkeypatch.setattr(f"multimargin.{module}.n_threads", lambda: 1)
    one = make_units(X, y)
    assert all(same(a, b) for a, b in zip(one, two, strict=True))


@pytest.mark.parametrize("machine", ["ovo", "ww"])
def test_a_search_that_is_stopped_keeps_its_cells(machine: str, noisy: Any) -> None:
    X, y = noisy

    def at_once(progress: Progress) -> bool:
        return True

    Cs = np.geomspace(1, 1e5, 60)
    big = np.repeat(X, 4, axis=0) + 1e-3 * np.arange(4 * len(X))[:, None]
    with pytest.warns(ConvergenceWarning, match=r"ended early \(callback\) with \d+ of 180 cells"):
        own = SVCCV(Cs=Cs, gammas=GAMMAS, multi_class=machine, on_progress=at_once).fit(big, np.repeat(y, 4))
    assert own.stopped_.any()
    assert np.isnan(own.scores_["score"]).any(axis=2).tolist() == own.stopped_.tolist()
    done = ~np.isnan(own.cv_results_["mean_test_score"])
    assert (own.cv_results_["stopped"] == ~done).all()
    if done.any():
        assert own.best_score_ == own.cv_results_["mean_test_score"][done].max()
        assert own.predict(big).shape == (len(big),)


@pytest.mark.parametrize("choice", ["raise", "keep"])
def test_ctrl_c_keeps_the_finished_cells(choice: str, noisy: Any) -> None:
    X, y = noisy
    n_calls = 0

    def interrupt(estimator: Any, points: Any, labels: Any) -> float:
        nonlocal n_calls
        n_calls += 1
        if n_calls == 8:  # in the second gamma: three folds and two C make six scores each
            os.kill(os.getpid(), signal.SIGINT)
        return 0.5

    own = SVCCV(Cs=CS[:2], gammas=GAMMAS, cv=3, scoring=interrupt, on_interrupt=choice)
    if choice == "raise":
        with pytest.raises(KeyboardInterrupt):
            own.fit(X, y)
        assert not hasattr(own, "best_estimator_")
    else:
        with pytest.warns(ConvergenceWarning, match=r"ended early \(interrupted\) with 2 of 6 cells"):
            own.fit(X, y)
        assert own.predict(X).shape == y.shape
    assert own.stopped_.tolist() == [[False] * 2, [True] * 2, [True] * 2]
    assert own.best_params_ == {"C": 0.5, "gamma": 0.02}


def test_ctrl_c_keeps_the_folds_that_are_scored(noisy: Any) -> None:
    n_calls = 0

    def interrupt(estimator: Any, points: Any, labels: Any) -> float:
        nonlocal n_calls
        n_calls += 1
        if n_calls == 10:  # in the second fold of the second gamma
            os.kill(os.getpid(), signal.SIGINT)
        return 0.5

    own = SVCCV(Cs=CS[:2], gammas=GAMMAS[:2], cv=3, scoring=interrupt, multi_class="ww")
    with pytest.raises(KeyboardInterrupt):
        own.fit(*noisy)
    known = np.isfinite(own.scores_["score"])
    assert known[0].all()
    assert known[1].tolist() == [[True, False, False]] * 2


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("name", ["rbf", "laplacian", "poly"])
def test_kernels_have_the_same_bits_in_any_order(name: str, wide: bool, noisy: Any) -> None:
    X = np.ascontiguousarray(noisy[0])
    if wide:
        X = np.hstack([X, np.zeros((len(X), FEW_FEATURES))])
    spec = KernelSpec(name, coef0=1.0)
    rows = np.arange(0, len(X), 3)
    upward, on_reading = SharedKernels(X, spec, "auto"), SharedKernels(X, spec, "auto", on_reading=True)
    for gamma in 0.7 * np.exp2(np.arange(-11.0, 3.0)):
        found = upward.at(gamma, 0.0).block(rows, rows)
        alone = SharedKernels(X, spec, "auto").at(gamma, 0.0).block(rows, rows)
        np.testing.assert_array_equal(found, alone)
        np.testing.assert_array_equal(on_reading.at(gamma, 0.0).block(rows, rows), alone)
        wanted = KernelSpec(name, gamma, coef0=1.0).gram(X[rows], X[rows])
        np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-18)  # (x'z + 1)^3 may be nearly nothing


@pytest.mark.parametrize("n_features", [2, FEW_FEATURES + 1])
def test_rows_of_problems_are_kept_beside_the_matrix(n_features: int) -> None:
    kernels = SharedKernels(np.zeros((2300, n_features)), KernelSpec("rbf"), "auto")
    assert kernels.whole
    assert kernels.bytes_left > 2 * 12 * 1000**2  # two threads, each with 1,000 rows in both precisions
    tight = SharedKernels(np.zeros((2300, n_features)), KernelSpec("rbf"), 12.0 * 2300**2 / 2**20)
    assert tight.whole == (n_features <= FEW_FEATURES)  # of many features there are distances, too
    assert SharedKernels(np.zeros((2300, n_features)), KernelSpec("rbf"), 40.0).whole is False


def test_max_time(noisy: Any) -> None:
    X, y = noisy
    with pytest.warns(ConvergenceWarning, match=r"ended early \(max_time\)"):
        own = SVCCV(Cs=CS, gammas=GAMMAS, max_time=1e-6).fit(X, y)
    assert own.stopped_.any()


def test_progress_line(noisy: Any, capsys: pytest.CaptureFixture[str]) -> None:
    SVCCV(Cs=CS, gammas=GAMMAS, verbose=1).fit(*noisy)
    assert "% of the search" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"Cs": []}, ValueError, "Cs=.* is empty"),
        ({"gammas": [0.1, -1.0]}, ValueError, "gammas contains -1; gammas must be a list of finite numbers > 0"),
        ({"gammas": "scale"}, TypeError, "gammas='scale' are not numbers"),
        ({"scoring": ["accuracy", "f1_macro"]}, ValueError, "refit=True with several metrics does not say which"),
        ({"refit": "f1"}, ValueError, "refit='f1' is not allowed"),
        ({"scoring": 3}, TypeError, "scoring=3 is not allowed"),
        ({"search": "nowhere"}, ValueError, "search='nowhere'"),
        ({"tol": -1.0}, ValueError, "tol=-1.0"),
        ({"multi_class": "none"}, ValueError, "none"),
        ({"max_time": 0.0}, ValueError, "max_time=0.0"),
    ],
    ids=str,
)
def test_wrong_parameters(given: dict[str, Any], error: type[Exception], message: str, noisy: Any) -> None:
    own = SVCCV(Cs=[1.0], gammas=[0.1], cv=2).fit(*noisy)
    before = dict(own.__dict__)
    with pytest.raises(error, match=message):
        own.set_params(**given).fit(*noisy)
    assert {k: v for k, v in own.__dict__.items() if k.endswith("_")} == {
        k: v for k, v in before.items() if k.endswith("_")
    }


def test_a_fold_without_a_class_is_refused(noisy: Any) -> None:
    X, y = noisy
    folds = [(np.flatnonzero(y != "b"), np.flatnonzero(y == "b"))]
    with pytest.raises(ValueError, match=r"A training part of cv has no example of class .*'b'"):
        SVCCV(cv=folds).fit(X, y)


def test_the_basis_gives_the_kernels_values(noisy: Any) -> None:
    X = noisy[0] + 100.0  # far from the origin
    for name in ("rbf", "laplacian", "linear"):
        spec = SVC(kernel=name, gamma=0.3)
        kernel = spec.fit(X, noisy[1])._spec.kernel
        basis = make_basis(X, kernel, "auto")
        values = basis if name == "linear" else np.exp(-0.3 * basis)
        np.testing.assert_allclose(values, kernel.gram(X, X), rtol=1e-9)


def test_scores_within_are_products(noisy: Any) -> None:
    X = noisy[0]
    kernel = SVC(gamma=0.3).fit(*noisy)._spec.kernel
    rows, columns = np.array([5, 3, 77]), np.arange(100, 0, -3)
    beta = np.random.default_rng(0).normal(size=(4, 3))
    expected = beta @ kernel.gram(X[rows], X[columns])
    for store in (KernelStore(X, kernel), KernelStore(sparse.csr_array(X), kernel)):
        np.testing.assert_allclose(store.scores_within(rows, beta, columns, 2), expected, atol=1e-12)


def test_ranks_as_grid_search_has_them() -> None:
    Cs, gammas = np.array([1.0, 2.0]), np.array([0.1])
    ones = np.ones(2)
    unit = UnitResult(
        0.1,
        0,
        Cs,
        {"score": np.array([0.5, np.nan])},
        ones.astype(int),
        ones.astype(int),
        ones,
        ones,
        ones > 0,
        np.array([False, True]),
    )
    results = SelectionResults.of_grid(Cs, gammas, 1, ["score"], [unit])
    found = results.to_cv_results()
    assert found["rank_test_score"].tolist() == [1, 2]
    assert found["stopped"].tolist() == [False, True]
    assert SelectionResults.of_table(results).to_cv_results().keys() == found.keys()
