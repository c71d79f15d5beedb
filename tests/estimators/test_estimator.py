"""The scikit-learn contract of SVC, for every machine."""

from __future__ import annotations

import copy
import io
import pickle
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris, make_blobs
from sklearn.ensemble import StackingClassifier
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from multimargin import MACHINES, SVC, verify
from multimargin.problems.schemes import SCHEMES


@pytest.fixture(scope="module")
def iris() -> tuple[np.ndarray, np.ndarray]:
    X, y = load_iris(return_X_y=True)
    return X, y


@pytest.mark.parametrize("name", [*MACHINES, "dag"])
def test_prediction_is_the_argmax_of_the_scores(name: str, iris: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = iris
    labels = np.array(["setosa", "Versicolor", "virginica"])[y]
    clf = SVC(multi_class=name, C=4).fit(X, labels)
    scores = clf.decision_function(X)
    assert scores.shape == (150, 3)
    assert clf.classes_.tolist() == ["Versicolor", "setosa", "virginica"]  # sorted, not by appearance
    np.testing.assert_array_equal(clf.predict(X), clf.classes_[scores.argmax(axis=1)])


@pytest.mark.parametrize("name", MACHINES)
def test_attributes_reproduce_the_scores(name: str, iris: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = iris
    clf = SVC(multi_class=name, gamma=0.5, bias="regularized").fit(X, y)
    n_support = len(clf.support_)
    assert clf.dual_coef_.shape == (3, n_support)
    assert clf.intercept_.shape == (3,)
    np.testing.assert_array_equal(clf.support_vectors_, X[clf.support_])
    # grouped by class, ascending within a class
    codes = y[clf.support_]
    assert (np.diff(codes) >= 0).all()
    np.testing.assert_array_equal(np.bincount(codes, minlength=3), clf.n_support_)
    for code in range(3):
        assert (np.diff(clf.support_[codes == code]) > 0).all()
    kernel = np.exp(-0.5 * ((X[:, None] - clf.support_vectors_[None]) ** 2).sum(axis=2))
    expected = kernel @ clf.dual_coef_.T + clf.intercept_
    np.testing.assert_allclose(clf.decision_function(X), expected, atol=1e-12 * np.abs(clf.dual_coef_).sum())
    assert clf.n_iter_.shape == (1,)
    assert clf.fit_status_ == 0
    assert clf.shape_fit_ == X.shape
    assert clf.class_weight_.tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("name", SCHEMES)
@pytest.mark.parametrize("bias", ["exact", "regularized", "none"])
def test_attributes_of_pairs_reproduce_their_scores(name: str, bias: str, iris: tuple[np.ndarray, np.ndarray]) -> None:
    """LIBSVM's layout: entry j - 1 of a support vector of class i < j, entry i of one of class j."""
    X, y = iris
    clf = SVC(multi_class=name, gamma=0.5, bias=bias, decision_function_shape="ovo").fit(X, y)
    assert clf.dual_coef_.shape == (2, len(clf.support_))
    assert clf.intercept_.shape == clf.n_iter_.shape == (3,)
    kernel = np.exp(-0.5 * ((X[:, None] - clf.support_vectors_[None]) ** 2).sum(axis=2))
    codes, scores = y[clf.support_], clf.decision_function(X)
    for pair, (i, j) in enumerate([(0, 1), (0, 2), (1, 2)]):
        of_i, of_j = codes == i, codes == j
        expected = kernel[:, of_i] @ clf.dual_coef_[j - 1, of_i] + kernel[:, of_j] @ clf.dual_coef_[i, of_j]
        np.testing.assert_allclose(scores[:, pair], expected + clf.intercept_[pair], atol=1e-12)
    assert verify(clf, X, y).optimal


@pytest.mark.parametrize("name", [*MACHINES, *SCHEMES])
def test_two_classes_have_one_function(name: str, iris: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = iris[0][50:], iris[1][50:]
    clf = SVC(multi_class=name, gamma=0.5).fit(X, y)
    decision = clf.decision_function(X)
    assert decision.shape == (100,)
    assert clf.dual_coef_.shape == (1, len(clf.support_))
    assert clf.intercept_.shape == (1,)
    np.testing.assert_array_equal(clf.predict(X), np.where(decision > 0, 2, 1))
    kernel = np.exp(-0.5 * ((X[:, None] - clf.support_vectors_[None]) ** 2).sum(axis=2))
    np.testing.assert_allclose(decision, kernel @ clf.dual_coef_[0] + clf.intercept_[0], atol=1e-10)


def test_linear_weights(iris: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = iris
    for clf in (SVC(multi_class="ww", bias="regularized"), SVC(decision_function_shape="ovo")):
        clf.set_params(kernel="linear").fit(X, y)
        assert clf.coef_.shape == (3, 4)
        np.testing.assert_allclose(clf.decision_function(X), X @ clf.coef_.T + clf.intercept_, atol=1e-9)
    binary = SVC(kernel="linear").fit(X[:100], y[:100])
    assert binary.coef_.shape == (1, 4)
    np.testing.assert_allclose(binary.decision_function(X), X @ binary.coef_[0] + binary.intercept_[0], atol=1e-9)
    with pytest.raises(AttributeError, match="only available when using a linear kernel"):
        _ = SVC().fit(X, y).coef_


def test_float32_stays_float32(iris: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = iris
    clf = SVC().fit(X.astype(np.float32), y)
    assert clf.support_vectors_.dtype == np.float32
    assert verify(clf, X.astype(np.float32), y).optimal
    # a model of one precision predicts data of the other
    np.testing.assert_allclose(clf.decision_function(X), clf.decision_function(X.astype(np.float32)), atol=1e-5)


def test_copies_and_files(iris: tuple[np.ndarray, np.ndarray], tmp_path: Path) -> None:
    X, y = iris
    clf = SVC(multi_class="cs").fit(X, y)
    expected = clf.decision_function(X)
    joblib.dump(clf, tmp_path / "model.joblib")
    copies = [copy.deepcopy(clf), pickle.loads(pickle.dumps(clf)), joblib.load(tmp_path / "model.joblib")]
    for other in copies:
        np.testing.assert_array_equal(other.decision_function(X), expected)
        assert verify(other, X, y).optimal
    assert not hasattr(clone(clf), "classes_")


def test_frames_and_read_only_memory(iris: tuple[np.ndarray, np.ndarray], tmp_path: Path) -> None:
    X, y = iris
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    clf = SVC().fit(frame, pd.Series(y))
    assert clf.feature_names_in_.tolist() == ["a", "b", "c", "d"]
    joblib.dump(X, tmp_path / "X.joblib")
    mapped = joblib.load(tmp_path / "X.joblib", mmap_mode="r")
    other = SVC().fit(mapped, y)
    np.testing.assert_array_equal(other.dual_coef_, clf.dual_coef_)
    with pytest.raises(ValueError, match="feature names should match"):
        clf.predict(frame.rename(columns={"a": "z"}))


def test_inside_other_estimators(iris: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = iris
    pipeline = make_pipeline(StandardScaler(), SVC())
    search = GridSearchCV(pipeline, {"svc__multi_class": ["ww", "cs"], "svc__C": [0.1, 1]}, cv=3).fit(X, y)
    assert search.best_score_ > 0.9
    assert cross_val_score(SVC(), X, y, cv=3).mean() > 0.9
    calibrated = CalibratedClassifierCV(SVC(), ensemble=False, cv=3).fit(X, y)
    np.testing.assert_allclose(calibrated.predict_proba(X).sum(axis=1), 1)
    stacked = StackingClassifier([("svc", SVC())], cv=3).fit(X, y)
    assert stacked.score(X, y) > 0.9
    assert OneVsRestClassifier(SVC()).fit(X, y).score(X, y) > 0.9


def test_scikit_learns_names_are_aliases(iris: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = iris
    for alias, name in (("ovr", "ova"), ("crammer_singer", "cs")):
        np.testing.assert_array_equal(
            SVC(multi_class=alias).fit(X, y).dual_coef_, SVC(multi_class=name).fit(X, y).dual_coef_
        )


@pytest.mark.parametrize("name", ["ovo", "ww"])
def test_class_weight_is_a_factor_on_c(iris: tuple[np.ndarray, np.ndarray], name: str) -> None:
    X, y = iris
    by_class = SVC(multi_class=name, class_weight={0: 2.0, 1: 0.5}).fit(X, y)
    gamma = by_class._spec.kernel.gamma
    by_sample = SVC(multi_class=name, gamma=gamma).fit(X, y, sample_weight=np.array([2.0, 0.5, 1.0])[y])
    np.testing.assert_allclose(by_class.decision_function(X), by_sample.decision_function(X), atol=1e-3)
    assert by_class.class_weight_.tolist() == [2.0, 0.5, 1.0]
    assert verify(by_class, X, y).optimal
    uneven = np.concatenate([np.arange(50), np.arange(50, 60), np.arange(100, 120)])
    balanced = SVC(multi_class=name, class_weight="balanced").fit(X[uneven], y[uneven])
    np.testing.assert_allclose(balanced.class_weight_, 80 / (3 * np.array([50, 10, 20])))
    assert verify(balanced, X[uneven], y[uneven]).optimal


def test_verify_needs_the_training_data(iris: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = iris
    clf = SVC().fit(X, y)
    with pytest.raises(ValueError, match="verify needs the training data, in the same order"):
        verify(clf, X[::-1], y[::-1])
    with pytest.raises(ValueError, match="the model was trained on"):
        verify(clf, X, y + 1)
    weight = np.ones(150)
    weight[clf.support_[0]] = 0
    with pytest.raises(ValueError, match="verify needs the weights of the fit"):
        verify(clf, X, y, sample_weight=weight)


def test_prediction_without_support_vectors() -> None:
    X, y = make_blobs(30, centers=3, random_state=0)
    clf = SVC(multi_class="ww", max_iter=0, solver="s2do")
    with pytest.warns(match="ended early"):
        clf.fit(X, y)
    assert len(clf.support_) == 0
    np.testing.assert_array_equal(clf.decision_function(X), 0)
    clf = SVC(max_iter=0, decision_function_shape="ovo")
    with pytest.warns(match="ended early"):
        clf.fit(X, y)
    assert len(clf.support_) == 0
    np.testing.assert_array_equal(clf.decision_function(X), 0)


def test_nothing_is_printed(iris: tuple[np.ndarray, np.ndarray], capfd: pytest.CaptureFixture[str]) -> None:
    SVC().fit(*iris).predict(iris[0])
    assert capfd.readouterr() == ("", "")


def test_verbose_writes_plain_lines_to_a_file(
    iris: tuple[np.ndarray, np.ndarray], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stream = io.StringIO()
    monkeypatch.setattr("sys.stderr", stream)
    SVC(verbose=1).fit(*iris)
    line = stream.getvalue().splitlines()[-1]
    assert line.startswith("ovo ")
    for word in ("steps", "violation", "gap", "active", "support vectors"):
        assert word in line
    assert capsys.readouterr().out == ""
