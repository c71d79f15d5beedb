"""Models to and from scikit-learn's SVC: the same scores and predictions, and a complete object."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn import svm
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics.pairwise import rbf_kernel

from multimargin import SVC, from_sklearn, to_sklearn, verify
from multimargin.base.matrices import dense
from multimargin.model_files import bridges
from support.helpers import noisy_classes

KERNELS: list[dict[str, Any]] = [
    {"kernel": "linear"},
    {"kernel": "rbf", "gamma": 0.3},
    {"kernel": "rbf"},
    {"kernel": "poly", "gamma": 0.2, "degree": 2, "coef0": 1.0},
    {"kernel": "sigmoid", "gamma": 0.05, "coef0": -0.1},
]
each_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: "-".join(map(str, kernel.values())))
each_form = pytest.mark.parametrize(
    "form", [np.array, sparse.csr_matrix, sparse.csr_array], ids=["dense", "matrix", "array"]
)
each_count = pytest.mark.parametrize("n_classes", [2, 4])


def data(n_classes: int) -> tuple[Any, Any]:
    X, y = noisy_classes(200, n_classes)
    X[np.abs(X) < 0.3] = 0.0
    return X, np.array(["zebra", "Ant", "mole", "newt"])[y]


def assert_equal_models(ours: Any, theirs: Any, X: Any) -> None:
    for shape in ("ovr", "ovo"):
        ours.set_params(decision_function_shape=shape)
        theirs.set_params(decision_function_shape=shape)
        expected = ours.decision_function(X)
        size = float(np.abs(ours.dual_coef_).sum())
        np.testing.assert_allclose(theirs.decision_function(X), expected, rtol=1e-10, atol=1e-13 * size)
        np.testing.assert_array_equal(theirs.predict(X), ours.predict(X))
    ours.set_params(decision_function_shape="ovr", break_ties=True)
    theirs.set_params(decision_function_shape="ovr", break_ties=True)
    np.testing.assert_array_equal(theirs.predict(X), ours.predict(X))
    ours.set_params(break_ties=False)
    theirs.set_params(break_ties=False)
    if ours.kernel == "linear":
        weights = theirs.coef_.toarray() if sparse.issparse(theirs.coef_) else theirs.coef_
        np.testing.assert_allclose(weights, dense(ours.coef_), rtol=1e-10, atol=1e-12)
    for name in ("classes_", "support_", "n_support_", "intercept_", "class_weight_", "shape_fit_", "n_features_in_"):
        np.testing.assert_array_equal(getattr(theirs, name), getattr(ours, name))


@each_kernel
@each_form
@each_count
def test_to_sklearn(n_classes: int, form: Any, kernel: dict[str, Any]) -> None:
    X, y = data(n_classes)
    rows = form(X)
    clf = SVC(**kernel, C=2.0, class_weight="balanced").fit(rows, y)
    svc = to_sklearn(clf)
    assert type(svc) is svm.SVC
    assert_equal_models(clf, svc, rows)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(svc)).predict(rows), svc.predict(rows))
    assert clone(svc).get_params() == svc.get_params()
    assert (svc.C, svc.kernel, svc.class_weight) == (2.0, kernel["kernel"], "balanced")
    trained = clone(svc).fit(rows, y)  # the same attributes as after a fit of its own
    assert set(vars(svc)) == set(vars(trained))
    for name, value in vars(trained).items():
        assert type(vars(svc)[name]) is type(value) or name == "_gamma", name
        if isinstance(value, np.ndarray):
            assert vars(svc)[name].dtype == value.dtype, name


@each_kernel
@each_form
@each_count
def test_from_sklearn(n_classes: int, form: Any, kernel: dict[str, Any]) -> None:
    X, y = data(n_classes)
    rows = form(X)
    weight = np.linspace(0.5, 2.0, len(y))
    svc = svm.SVC(**kernel, C=2.0, class_weight="balanced").fit(rows, y, sample_weight=weight)
    clf = from_sklearn(svc)
    assert_equal_models(clf, svc, rows)
    certificate = clf.certificate_
    assert not certificate.verified
    assert not certificate.optimal
    assert certificate.solver == "libsvm"
    assert "scikit-learn" in str(certificate)
    truth = verify(clf, rows, y, weight)
    assert truth.kkt_violation <= 1.1e-3  # LIBSVM's gradients come from float32 kernel values
    assert len(truth.parts) == n_classes * (n_classes - 1) // 2
    if kernel["kernel"] != "sigmoid":
        assert 0 <= truth.relative_gap <= 1e-2
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(clf)).predict(rows), svc.predict(rows))
    assert_equal_models(clf, to_sklearn(clf), rows)


def test_float32_and_names() -> None:
    X, y = data(3)
    frame = pd.DataFrame(X.astype(np.float32), columns=list("abcdef"))
    clf = SVC().fit(frame, y)
    svc = to_sklearn(clf)
    assert svc.feature_names_in_.tolist() == list("abcdef")
    np.testing.assert_allclose(svc.decision_function(frame), clf.decision_function(frame), rtol=1e-10, atol=1e-12)
    assert from_sklearn(svc).feature_names_in_.tolist() == list("abcdef")


@each_count
def test_precomputed(n_classes: int) -> None:
    X, y = data(n_classes)
    gram = rbf_kernel(X, gamma=0.3)
    clf = SVC(kernel="precomputed").fit(gram, y)
    assert_equal_models(clf, to_sklearn(clf), gram)
    svc = svm.SVC(kernel="precomputed").fit(gram, y)
    ours = from_sklearn(svc)
    assert_equal_models(ours, svc, gram)
    truth = verify(ours, gram, y)
    assert truth.kkt_violation <= 1.1e-3
    assert "found positive semi-definite" in truth.remark


def test_verify_finds_a_bad_solution() -> None:
    X, y = data(3)
    svc = svm.SVC(C=100.0, max_iter=20)
    with pytest.warns(match="terminated early"):
        svc.fit(X, y)
    clf = from_sklearn(svc)
    assert clf.certificate_.stop_reason == "max_iter"
    assert not verify(clf, X, y).optimal
    assert clf.set_params(max_iter=-1).fit(X, y).certificate_.optimal


def test_no_support_vectors() -> None:
    X, y = data(3)
    with pytest.warns(match="ended early"):
        clf = SVC(max_iter=0).fit(X, y)
    assert len(clf.support_) == 0
    np.testing.assert_array_equal(to_sklearn(clf).predict(X), clf.predict(X))


@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        ({"multi_class": "dag"}, r"a model of multi_class='dag'; scikit-learn's SVC has one-vs-one votes only"),
        ({"multi_class": "ww"}, r"a model of multi_class='ww'; scikit-learn's SVC"),
        ({"kernel": "laplacian"}, r"a model with kernel='laplacian'; it can hand over linear, rbf, poly"),
        ({"kernel": rbf_kernel}, r"a model with kernel='callable'"),
        ({"calibration": "coupling"}, r"a model with calibration='coupling'.*set calibration=None"),
    ],
)
def test_to_sklearn_refuses(params: dict[str, Any], sentence: str) -> None:
    X, y = data(3)
    clf = SVC(**params).fit(X, y)
    with pytest.raises(ValueError, match=sentence):
        to_sklearn(clf)
    if "calibration" in params:
        svc = to_sklearn(clf.set_params(calibration=None))
        np.testing.assert_array_equal(svc.predict(X), clf.predict(X))
    with pytest.raises(NotFittedError):
        to_sklearn(SVC())


def test_from_sklearn_refuses() -> None:
    X, y = data(3)
    with pytest.raises(TypeError, match=r"from_sklearn got NuSVC; it takes a fitted sklearn\.svm\.SVC"):
        from_sklearn(svm.NuSVC().fit(X, y))
    with pytest.raises(ValueError, match=r"a callable kernel; fit multimargin\.SVC with it"):
        from_sklearn(svm.SVC(kernel=rbf_kernel).fit(X, y))
    with pytest.raises(NotFittedError):
        from_sklearn(svm.SVC())


def test_another_version_of_scikit_learn(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = data(3)
    clf = SVC().fit(X, y)
    pattern = bridges._fitted_pattern(False)
    pattern._new_thing = 1
    with monkeypatch.context() as patch:
        patch.setattr(bridges, "_fitted_pattern", lambda _: pattern)
        with pytest.raises(RuntimeError, match=r"does not know the attribute '_new_thing' .*scikit-learn \d"):
            to_sklearn(clf)
    svc = to_sklearn(clf)
    del svc._gamma
    with pytest.raises(RuntimeError, match=r"does not find the attribute '_gamma'"):
        from_sklearn(svc)
