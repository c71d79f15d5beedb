"""SVC with calibration: agreement with scikit-learn's, what predict follows, weights, stopping, and the contract."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn import svm
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.metrics.pairwise import rbf_kernel
from threadpoolctl import threadpool_limits

from multimargin import SVC, verify
from multimargin._typing import FloatArray
from multimargin.fitting.machine import KernelFit
from multimargin.models.calibration import KINDS, fit_calibrator, folds_for_calibration
from support.helpers import noisy_classes as noisy

TIGHT = 1e-9
each_kind = pytest.mark.parametrize("kind", KINDS)


@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("machine", ["ovo", "dag", "ww", "ova"])
def test_agrees_with_calibrated_classifier_cv(machine: str, n_classes: int, method: str) -> None:
    """The same folds give the same curves, for one-vs-one from scikit-learn's machine; class weights are weights."""
    X, y = noisy(n_classes=n_classes)
    shared: dict[str, Any] = {"C": 2.0, "gamma": 0.2, "tol": TIGHT}
    folds = folds_for_calibration(y, np.ones(len(y)), X=X)
    base = svm.SVC(**shared) if machine == "ovo" else SVC(**shared, multi_class=machine)
    weight = np.where(y == 0, 2.0, 1.0)
    theirs = CalibratedClassifierCV(base, method=method, ensemble=False, cv=folds).fit(X, y, sample_weight=weight)
    ours = SVC(**shared, class_weight={0: 2.0}, multi_class=machine, calibration=method).fit(X, y)
    new = noisy(seed=1)[0]
    np.testing.assert_allclose(ours.predict_proba(new), theirs.predict_proba(new), atol=1e-4)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_coupling_agrees_with_scikit_learns_pairs(n_classes: int) -> None:
    X, y = noisy(n_classes=n_classes)
    params: dict[str, Any] = {"C": 2.0, "gamma": 0.2, "tol": TIGHT, "decision_function_shape": "ovo"}

    def pair_scores(machine: Any, rows: FloatArray) -> FloatArray:
        scores: FloatArray = machine.decision_function(rows)
        return -scores[:, None] if n_classes == 2 else scores

    held_out = np.empty((len(y), n_classes * (n_classes - 1) // 2))
    for train, test in folds_for_calibration(y, np.ones(len(y)), X=X):
        held_out[test] = pair_scores(svm.SVC(**params).fit(X[train], y[train]), X[test])
    calibrator = fit_calibrator("coupling", held_out, y, np.ones(len(y)), n_classes)
    new = noisy(seed=1)[0]
    expected = calibrator.probabilities(pair_scores(svm.SVC(**params).fit(X, y), new))
    ours = SVC(**params, calibration="coupling").fit(X, y)
    np.testing.assert_allclose(ours.predict_proba(new), expected, atol=1e-5)


@each_kind
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("machine", ["ovo", "dag", "cs"])
def test_predictions_follow_the_probabilities(machine: str, n_classes: int, kind: str) -> None:
    if kind == "coupling" and machine == "cs":
        pytest.skip("has no pairs")
    X, y = noisy(n_classes=n_classes)
    labels = np.array(["zebra", "Ant", "mole"])[y]
    clf = SVC(multi_class=machine, calibration=kind).fit(X, labels)
    plain = SVC(multi_class=machine).fit(X, labels)
    probabilities = clf.predict_proba(X)
    assert probabilities.shape == (len(X), n_classes)
    assert (probabilities >= 0).all()
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-12)
    np.testing.assert_array_equal(clf.predict(X), clf.classes_[probabilities.argmax(axis=1)])
    with np.errstate(divide="ignore"):
        np.testing.assert_array_equal(clf.predict_log_proba(X), np.log(probabilities))
    if kind == "coupling":  # the curves of one class against the rest may prefer another class than the scores
        np.testing.assert_array_equal(clf.decision_function(X), plain.decision_function(X))
    else:
        assert not hasattr(clf, "decision_function")
    assert np.mean(clf.predict(X) == labels) > 0.8 * np.mean(plain.predict(X) == labels)  # columns are not swapped
    assert verify(clf, X, labels).optimal


@pytest.mark.parametrize("bias", ["none", "exact"])
def test_folds_start_from_the_whole_solution(bias: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each fold is seeded by the whole machine's dual variables of its own rows."""
    X, y = noisy()
    seeds: list[Any] = []
    original = KernelFit.solve

    def spy(fit: Any, seed: Any, monitor: Any) -> Any:
        seeds.append((fit.problem, seed))
        return original(fit, seed, monitor)

    monkeypatch.setattr(KernelFit, "solve", spy)
    clf = SVC(calibration="sigmoid", multi_class="ww", bias=bias, warm_start=True).fit(X, y)
    state = clf._state[0]
    assert seeds.pop(0)[1] is None  # that of all rows
    assert len(seeds) == 5
    for problem, seed in seeds:
        assert len(problem.data.rows) == 192
        np.testing.assert_array_equal(seed.amounts, state.amounts[problem.data.rows])
        np.testing.assert_array_equal(seed.bias, state.bias)


@each_kind
def test_weights_are_repetitions(kind: str) -> None:
    """Weight 2 is the row twice, weight 0 no row: equal rows share a fold."""
    X, y = noisy()
    rng = np.random.default_rng(0)
    weight = rng.integers(0, 3, len(y)).astype(float)
    repeated = np.repeat(np.arange(len(y)), weight.astype(int))
    new = noisy(seed=1)[0]
    params: dict[str, Any] = {"calibration": kind, "gamma": 0.3, "tol": TIGHT}
    weighted = SVC(**params).fit(X, y, sample_weight=weight)
    twice = SVC(**params).fit(X[repeated], y[repeated])
    np.testing.assert_allclose(weighted.predict_proba(new), twice.predict_proba(new), atol=1e-6)
    kept = SVC(**params).fit(X[weight > 0], y[weight > 0], sample_weight=weight[weight > 0])
    np.testing.assert_allclose(weighted.predict_proba(new), kept.predict_proba(new), atol=1e-6)
    assert np.abs(weighted.predict_proba(new) - SVC(**params).fit(X, y).predict_proba(new)).max() > 1e-3


@each_kind
def test_every_form_of_the_data_gives_the_same(kind: str) -> None:
    X, y = noisy()
    X, y = np.vstack([X, X[:40]]), np.concatenate([y, y[:40]])
    params: dict[str, Any] = {"calibration": kind, "gamma": 0.3, "tol": TIGHT}
    expected = SVC(**params).fit(X, y).predict_proba(X)
    rows = sparse.csr_array(X)
    np.testing.assert_allclose(SVC(**params).fit(rows, y).predict_proba(rows), expected, atol=1e-6)
    n_calls = 0

    def kernel(A: Any, B: Any) -> Any:
        nonlocal n_calls
        n_calls += 1
        return rbf_kernel(A, B, gamma=0.3)

    own = SVC(**params, kernel=kernel).fit(X, y)
    assert n_calls == 1  # the folds take their values from the matrix
    np.testing.assert_allclose(own.predict_proba(X), expected, atol=1e-6)


@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
def test_precomputed_kernel(method: str) -> None:
    """Its folds depend on positions, as a matrix does not show which rows are equal."""
    X, y = noisy()
    gram = rbf_kernel(X, gamma=0.3)
    clf = SVC(kernel="precomputed", calibration=method, tol=TIGHT).fit(gram, y)
    folds = folds_for_calibration(y, np.ones(len(y)))
    plain = SVC(kernel="precomputed", tol=TIGHT)
    theirs = CalibratedClassifierCV(plain, method=method, ensemble=False, cv=folds).fit(gram, y)
    np.testing.assert_allclose(clf.predict_proba(gram), theirs.predict_proba(gram), atol=1e-4)


@pytest.mark.parametrize("machine", ["ovo", "ww", "ova"])
@pytest.mark.parametrize("bias", ["none", "regularized", "exact"])
@pytest.mark.parametrize("own", [False, True], ids=["rbf", "callable"])
def test_every_bias(machine: str, bias: str, own: bool) -> None:
    """The folds train the same machine as the whole; compared with scikit-learn's own cross-validation of the same
    machine."""
    X, y = noisy(150)
    params: dict[str, Any] = {
        "kernel": (lambda A, B: rbf_kernel(A, B, gamma=0.3)) if own else "rbf",
        "gamma": 0.3,
        "tol": 1e-7,
        "multi_class": machine,
        "bias": bias,
    }
    folds = folds_for_calibration(y, np.ones(len(y)), X=X)
    theirs = CalibratedClassifierCV(SVC(**params), method="sigmoid", ensemble=False, cv=folds).fit(X, y)
    ours = SVC(**params, calibration="sigmoid").fit(X, y)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-4)


def test_the_bits_do_not_depend_on_the_threads() -> None:
    X, y = noisy(600)
    found = []
    for n in (1, 2):
        with threadpool_limits(n):
            found.append(SVC(calibration="coupling").fit(X, y).predict_proba(X))
    np.testing.assert_array_equal(found[0], found[1])


@pytest.mark.parametrize("machine", ["ovo", "ww"])
def test_methods_exist_where_there_are_probabilities(machine: str) -> None:
    X, y = load_iris(return_X_y=True)
    plain = SVC(multi_class=machine)
    assert not hasattr(plain, "predict_proba")
    assert not hasattr(plain.fit(X, y), "predict_log_proba")
    with pytest.raises(AttributeError, match="no attribute 'predict_proba'") as caught:
        plain.predict_proba(X)
    assert "calibration=None" in str(caught.value.__cause__)
    plain.set_params(calibration="sigmoid")  # but not fitted again
    assert not hasattr(plain, "predict_proba")
    np.testing.assert_array_equal(plain.predict(X), SVC(multi_class=machine).fit(X, y).predict(X))
    clf = SVC(multi_class=machine, calibration="sigmoid")
    assert hasattr(clf, "predict_proba")
    assert hasattr(clf, "predict_log_proba")
    for method in (clf.predict_proba, clf.predict):
        with pytest.raises(NotFittedError):
            method(X)
    clf.fit(X, y).set_params(calibration=None).fit(X, y)
    assert not hasattr(clf, "predict_proba")
    clf.set_params(calibration="sigmoid")
    assert not hasattr(clf, "predict_proba")


@pytest.mark.parametrize(("machine", "kind"), [("ovo", "coupling"), ("dag", "coupling"), ("ww", "sigmoid")])
def test_scikit_learns_probability(machine: str, kind: str) -> None:
    X, y = load_iris(return_X_y=True)
    expected = SVC(multi_class=machine, calibration=kind).fit(X, y).predict_proba(X)
    clf = SVC(multi_class=machine, probability=True)
    assert hasattr(clf, "predict_proba")
    with pytest.warns(FutureWarning, match=r"probability=True: .*deprecated.*calibration='coupling' \(or 'sigmoid'\)"):
        clf.fit(X, y)
    np.testing.assert_array_equal(clf.predict_proba(X), expected)
    with pytest.warns(FutureWarning, match="probability=False: .*is deprecated"):
        plain = SVC(multi_class=machine, probability=False).fit(X, y)
    assert not hasattr(plain, "predict_proba")
    with pytest.raises(TypeError, match="probability='yes' is not a bool"):
        SVC(probability="yes").fit(X, y)


@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        (
            {"calibration": "beta"},
            r"calibration='beta' is not allowed; choose one of 'sigmoid', 'isotonic', 'coupling'",
        ),
        ({"calibration": True}, r"calibration=True is not allowed"),
        (
            {"calibration": "coupling", "multi_class": "ww"},
            r"calibration='coupling' with multi_class='ww' does not exist: only multi_class='ovo' and 'dag' have",
        ),
    ],
)
def test_bad_calibration(params: dict[str, Any], sentence: str) -> None:
    """Refused in a sentence; the old model stays as it was."""
    X, y = load_iris(return_X_y=True)
    clf = SVC(calibration="sigmoid").fit(X, y)
    before = clf.predict_proba(X)
    with pytest.raises(ValueError, match=sentence):
        clf.set_params(**params).fit(X, y)
    np.testing.assert_array_equal(clf.set_params(calibration="sigmoid").predict_proba(X), before)


def test_a_class_with_one_example() -> None:
    X, y = load_iris(return_X_y=True)
    labels = np.array(["a", "b", "c", "rare"])[y]
    labels[0] = "rare"
    with pytest.raises(ValueError, match=r"needs at least 2 examples of every class, but class .*'rare'"):
        SVC(calibration="sigmoid").fit(X, labels)
    labels[1] = "rare"
    clf = SVC(calibration="coupling").fit(X, labels)
    assert clf.predict_proba(X).shape == (150, 4)


@each_kind
def test_copies(kind: str) -> None:
    X, y = load_iris(return_X_y=True)
    clf = SVC(calibration=kind).fit(X, y)
    expected = clf.predict_proba(X)
    for other in (copy.deepcopy(clf), pickle.loads(pickle.dumps(clf))):
        np.testing.assert_array_equal(other.predict_proba(X), expected)
    assert clone(clf).calibration == kind
    with pytest.raises(NotFittedError):
        clone(clf).predict_proba(X)
