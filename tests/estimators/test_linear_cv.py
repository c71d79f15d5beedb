"""LinearSVCCV: the scores of separate fits, cell by cell; scikit-learn's attributes and checks."""

from __future__ import annotations

import os
import signal
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris, make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegressionCV
from sklearn.model_selection import GridSearchCV, GroupKFold, StratifiedKFold

from multimargin import LinearSVC, LinearSVCCV, Progress, verify

CS = [0.01, 0.1, 1.0, 10.0]


@pytest.fixture(scope="module")
def noisy() -> tuple[Any, Any]:
    X, y = make_classification(240, 6, n_informative=4, n_redundant=0, n_classes=3, flip_y=0.1, random_state=0)
    return X, np.array(["a", "b", "c"])[y]


@pytest.mark.parametrize("machine", ["ova", "ww", "ovo"])
def test_cells_are_separate_fits(machine: str, noisy: Any) -> None:
    X, y = noisy
    folds = StratifiedKFold(4, shuffle=True, random_state=1)
    own = LinearSVCCV(Cs=CS[::-1], cv=folds, multi_class=machine, tol=1e-6, class_weight="balanced").fit(X, y)
    alone = LinearSVC(multi_class=machine, tol=1e-6, class_weight="balanced")
    search = GridSearchCV(alone, {"C": CS}, cv=folds).fit(X, y)
    np.testing.assert_array_equal(own.Cs_, CS)
    for fold, (train, _) in enumerate(folds.split(X, y)):
        np.testing.assert_allclose(own.scores_["a"][fold], search.cv_results_[f"split{fold}_test_score"], rtol=1e-12)
        for index, C in enumerate(CS):
            single = clone(alone).set_params(C=C).fit(X[train], y[train])
            found = np.stack([path[fold, index] for path in own.coefs_paths_.values()])
            wanted = np.column_stack([single.coef_, single.intercept_])
            if machine == "ww":  # margins are differences: intercepts are known up to a constant
                found[:, -1], wanted[:, -1] = (each - each.mean() for each in (found[:, -1], wanted[:, -1]))
            np.testing.assert_allclose(found, wanted, atol=1e-4)
            assert own.fold_certificates_[fold][index].stop_reason == "converged"
    assert own.C_.tolist() == [search.best_params_["C"]] * 3
    np.testing.assert_allclose(own.coef_, search.best_estimator_.coef_, atol=1e-5)
    assert verify(own, X, y).optimal
    assert own.score(X, y) == search.best_estimator_.score(X, y)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("refit", [True, False])
def test_attributes_as_those_of_logistic_regression(n_classes: int, refit: bool, noisy: Any) -> None:
    X, y = noisy[0], noisy[1]
    kept = np.isin(y, list("abc")[:n_classes])
    X, y = X[kept], y[kept]
    peer = LogisticRegressionCV(
        Cs=3, cv=3, refit=refit, scoring="accuracy", use_legacy_attributes=True, l1_ratios=(0,)
    ).fit(X, y)
    own = LinearSVCCV(Cs=3, cv=3, refit=refit, scoring="accuracy").fit(X, y)
    np.testing.assert_allclose(own.Cs_, peer.Cs_)
    for name in ("scores_", "coefs_paths_"):
        ours, theirs = getattr(own, name), getattr(peer, name)
        assert list(ours) == list(theirs)
        assert [value.shape for value in ours.values()] == [value.squeeze(2).shape for value in theirs.values()]
    assert own.coef_.shape == peer.coef_.shape
    assert own.intercept_.shape == peer.intercept_.shape
    assert own.C_.shape == np.shape(peer.C_)
    scores = next(iter(own.scores_.values()))
    if refit:
        assert own.C_[0] == own.Cs_[np.argmax(scores.mean(axis=0))]
    else:
        best = scores.argmax(axis=1)
        assert own.C_[0] == pytest.approx(own.Cs_[best].mean())
        rows = [np.mean([path[f, c] for f, c in enumerate(best)], axis=0) for path in own.coefs_paths_.values()]
        np.testing.assert_allclose(np.column_stack([own.coef_, own.intercept_]), rows, atol=1e-12)


def test_weights_count_in_fits_and_scores(noisy: Any) -> None:
    X, y = noisy
    weight = np.random.default_rng(0).integers(0, 4, len(y)).astype(float)
    folds = list(StratifiedKFold(3).split(X, y))
    own = LinearSVCCV(Cs=CS, cv=folds, tol=1e-6).fit(X, y, sample_weight=weight)
    for fold, (train, test) in enumerate(folds):
        for index, C in enumerate(CS):
            single = LinearSVC(C=C, tol=1e-6).fit(X[train], y[train], weight[train])
            assert own.scores_["a"][fold, index] == pytest.approx(single.score(X[test], y[test], weight[test]))


def test_groups_reach_the_splitter(noisy: Any) -> None:
    X, y = noisy
    groups = np.arange(len(y)) % 5
    splitter = GroupKFold(5)
    own = LinearSVCCV(Cs=[1.0], cv=splitter).fit(X, y, groups=groups)
    same = LinearSVCCV(Cs=[1.0], cv=list(splitter.split(X, y, groups))).fit(X, y)
    np.testing.assert_array_equal(own.scores_["a"], same.scores_["a"])


def test_stopped_search_has_a_model() -> None:
    X, y = make_classification(20_000, 30, n_informative=20, n_classes=4, random_state=0)
    with pytest.warns(ConvergenceWarning, match="callback"):
        own = LinearSVCCV(Cs=CS, on_progress=lambda _: True).fit(X, y)
    assert np.isnan(own.scores_[0]).any()
    assert np.isfinite(own.scores_[0]).sum() >= 1
    assert own.predict(X).shape == y.shape

    def interrupt(_: Progress) -> None:
        os.kill(os.getpid(), signal.SIGINT)

    before = own.coef_
    own.set_params(on_progress=interrupt)
    with pytest.raises(KeyboardInterrupt):
        own.fit(X, y)
    assert own.coef_ is before
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        own.set_params(on_interrupt="keep").fit(X, y)


@pytest.mark.parametrize(
    ("params", "error", "text"),
    [
        ({"Cs": 0}, ValueError, "Cs=0 is not allowed"),
        ({"Cs": []}, ValueError, "is empty"),
        ({"Cs": [-1.0]}, ValueError, "Cs contains -1"),
        ({"Cs": True}, ValueError, "not one list"),
        ({"refit": 1}, TypeError, "refit=1 is not a bool"),
        ({"cv": [(np.arange(100), np.arange(100, 150))]}, ValueError, "A training part of cv has no example of class"),
    ],
)
def test_errors(params: dict[str, Any], error: type[Exception], text: str) -> None:
    X, y = load_iris(return_X_y=True)
    with pytest.raises(error, match=text):
        LinearSVCCV(**params).fit(X, y)
