"""Errors of bad input: one sentence with the parameter, the value, the allowed values and the remedy."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from multimargin import SVC, verify

X, y = load_iris(return_X_y=True)

BAD_PARAMETERS: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"C": 0}, ValueError, r"C=0 is not allowed; C must be a number > 0"),
    ({"C": -1.5}, ValueError, r"C=-1.5 is not allowed"),
    ({"C": float("nan")}, ValueError, r"C=nan is not allowed"),
    ({"C": "1"}, TypeError, r"C='1' is not a number; C must be a number > 0"),
    ({"C": True}, TypeError, r"C=True is not a number"),
    ({"kernel": "gauss"}, ValueError, r"kernel='gauss' is not allowed; choose one of 'linear', 'rbf'"),
    ({"kernel": "precomputed"}, ValueError, r"X has shape \(150, 2\); with kernel='precomputed' fit needs the square"),
    ({"kernel": np.outer}, ValueError, r"The callable kernel returned shape \(300, 300\) for 150 rows against 150"),
    ({"degree": 2.5}, TypeError, r"degree=2.5 is not an integer; degree must be an integer >= 0"),
    ({"degree": -1}, ValueError, r"degree=-1 is not allowed"),
    (
        {"gamma": "big"},
        ValueError,
        r"gamma='big' is not allowed; choose one of 'scale', 'auto', or give a number",
    ),
    ({"gamma": -1.0}, ValueError, r"gamma=-1.0 is not allowed; gamma must be a number >= 0"),
    ({"coef0": float("inf")}, ValueError, r"coef0=inf is not allowed"),
    (
        {"shrinking": 1},
        TypeError,
        r"shrinking=1 is not a bool; shrinking must be True, False, 'variables' or 'examples'",
    ),
    (
        {"shrinking": "rows"},
        ValueError,
        r"shrinking='rows' is not allowed; choose one of 'variables', 'examples', or give True or False",
    ),
    ({"tol": 0}, ValueError, r"tol=0 is not allowed; tol must be a number > 0"),
    ({"cache_size": -1}, ValueError, r"cache_size=-1 is not allowed; cache_size must be a number >= 0"),
    (
        {"cache_size": "all"},
        ValueError,
        r"cache_size='all' is not allowed; choose one of 'auto', or give a number",
    ),
    (
        {"class_weight": {0: -1.0}},
        ValueError,
        r"class_weight=\{0: -1.0\} contains a value that is not a positive",
    ),
    ({"verbose": -1}, ValueError, r"verbose=-1 is not allowed"),
    (
        {"max_iter": -2},
        ValueError,
        r"max_iter=-2 is not allowed; max_iter must be an integer >= -1 \(-1 for no",
    ),
    ({"max_iter": 1.0}, TypeError, r"max_iter=1.0 is not an integer"),
    ({"decision_function_shape": "ova"}, ValueError, r"decision_function_shape='ova' is not allowed"),
    (
        {"decision_function_shape": "ovo", "multi_class": "ww"},
        ValueError,
        r"with multi_class='ww' does not exist: .*use decision_function_shape='ovr'",
    ),
    ({"multi_class": "www"}, ValueError, r"multi_class='www' is not a machine; choose 'ovo', 'dag', one of \['adm'"),
    ({"multi_class": 3}, ValueError, r"multi_class=3 is not a machine"),
    (
        {"bias": "free"},
        ValueError,
        r"bias='free' is not allowed; choose one of 'auto', 'none', 'regularized', 'exact'",
    ),
    (
        {"bias": "some"},
        ValueError,
        r"bias='some' is not allowed; choose one of 'auto', 'none', 'regularized'",
    ),
    ({"loss": "log"}, ValueError, r"loss='log' is not allowed; choose one of 'hinge', 'squared_hinge'"),
    ({"loss": "squared_hinge", "kernel": "sigmoid"}, ValueError, r"may have no solution.*use loss='hinge'"),
    (
        {"solver": "newton"},
        ValueError,
        r"solver='newton' is not allowed; choose one of 'auto', 'smo', 's2do'",
    ),
    (
        {"solver": "two-level"},
        ValueError,
        r"solver='two-level' does not apply to multi_class='ovo' with an exact bias.*'maximum-gain' or.*bias='none'",
    ),
    ({"solver": "s2do", "multi_class": "dag"}, ValueError, r"does not apply to multi_class='dag' with an exact bias"),
    ({"solver": "s2do", "multi_class": "ovr"}, ValueError, r"does not apply to multi_class='ova' with an exact bias"),
    (
        {"solver": "maximum-gain", "bias": "none"},
        ValueError,
        r"'maximum-gain' is for binary.*not for multi_class='ovo' with bias='none'; use bias='exact', or solver='smo'",
    ),
    (
        {"solver": "most-violating-pair", "multi_class": "ww", "bias": "exact"},
        ValueError,
        r"'most-violating-pair' is for binary.*not for multi_class='ww' with bias='exact'; use solver='smo' or 's2do'",
    ),
    *(
        (
            {"solver": "working-set", "multi_class": name},
            ValueError,
            rf"solver='working-set' does not apply to multi_class='{name}'.*use solver='whole-example'",
        )
        for name in ("cs", "adm", "atm")
    ),
    (
        {"solver": "working-set", "kernel": "sigmoid", "bias": "none"},
        ValueError,
        r"solver='working-set' needs a positive semi-definite kernel.*'s2do'",
    ),
    (
        {"solver": "semi-greedy", "kernel": "sigmoid", "bias": "none"},
        ValueError,
        r"needs a positive semi-definite kernel.*'s2do'",
    ),
    (
        {"calibration": "platt"},
        ValueError,
        r"calibration='platt' is not allowed; choose one of 'sigmoid', 'isotonic', 'coupling', or None",
    ),
    ({"trace": "yes"}, ValueError, r"trace='yes' is not allowed; use True .*'primal'.*or False"),
    ({"trace": 1}, ValueError, r"trace=1 is not allowed"),
    ({"max_time": 0}, ValueError, r"max_time=0 is not allowed; max_time must be a number > 0"),
    ({"warm_start": "yes"}, TypeError, r"warm_start='yes' is not a bool"),
    ({"on_progress": 5}, TypeError, r"on_progress=5 is not callable; give a function of a Progress, or None"),
    (
        {"on_interrupt": "stop"},
        ValueError,
        r"on_interrupt='stop' is not allowed; choose one of 'raise', 'keep'",
    ),
]


@pytest.mark.parametrize(
    ("params", "error", "sentence"),
    BAD_PARAMETERS,
    ids=[f"{number}-{'-'.join(case[0])}" for number, case in enumerate(BAD_PARAMETERS)],
)
def test_bad_parameter(params: dict[str, Any], error: type[Exception], sentence: str) -> None:
    """Refused in one sentence; a model fitted before stays as it was."""
    clf = SVC().fit(X, y)
    before = clf.decision_function(X)
    clf.set_params(**params)
    with pytest.raises(error, match=sentence) as caught:
        clf.fit(X[:, :2], y)
    assert str(caught.value).rstrip(".").count(". ") == 0  # one sentence
    assert clf.n_features_in_ == 4
    clf.set_params(decision_function_shape="ovr")  # which, as in scikit-learn, is read at each call
    np.testing.assert_array_equal(clf.decision_function(X), before)


def bad(value: float) -> np.ndarray:
    data: np.ndarray = X.copy()
    data[3, 2] = value
    return data


BAD_DATA: list[tuple[Any, Any, Any, type[Exception], str]] = [
    (bad(np.nan), y, None, ValueError, r"Input X contains NaN"),
    (bad(np.inf), y, None, ValueError, r"Input X contains infinity"),
    (X[:0], y[:0], None, ValueError, r"Found array with 0 sample"),
    (X[:, :0], y, None, ValueError, r"0 feature"),
    (X, y[:-1], None, ValueError, r"inconsistent numbers of samples"),
    (X, np.zeros(150), None, ValueError, r"y has one class only \(0.0\); .*at least two classes"),
    (X, y + 0.5, None, ValueError, r"Unknown label type"),
    (X[0], y, None, ValueError, r"Expected 2D array, got 1D array"),
    (sparse.csr_array(bad(np.nan)), y, None, ValueError, r"contains NaN"),
    (X, y, np.ones(3), ValueError, r"sample_weight has shape \(3,\); it must have one entry per row of X"),
    (X, y, np.full(150, -1.0), ValueError, r"Invalid input - all samples have zero or negative weights"),
    (X, y, np.zeros(150), ValueError, r"Invalid input - all samples have zero or negative weights"),
    (X, y, np.where(y == 1, 1.0, -1.0), ValueError, r"all samples with positive weights belong to the same class"),
    (X, y, np.full(150, np.nan), ValueError, r"sample_weight contains NaN or infinity"),
    (X, y, (y > 0).astype(float), ValueError, r"Every sample_weight of class .*0.* is zero or negative"),
]


@pytest.mark.parametrize(
    ("data", "labels", "weight", "error", "sentence"), BAD_DATA, ids=[case[-1][:20] for case in BAD_DATA]
)
def test_bad_data(data: Any, labels: Any, weight: Any, error: type[Exception], sentence: str) -> None:
    clf = SVC().fit(X, y)
    before = clf.decision_function(X)
    with pytest.raises(error, match=sentence):
        clf.fit(data, labels, sample_weight=weight)
    np.testing.assert_array_equal(clf.decision_function(X), before)


def test_prediction_refuses_other_widths() -> None:
    with pytest.raises(NotFittedError):
        SVC().predict(X)
    with pytest.raises(NotFittedError):
        verify(SVC(), X, y)
    clf = SVC().fit(X, y)
    with pytest.raises(ValueError, match="X has 2 features, but SVC is expecting 4 features"):
        clf.predict(X[:, :2])


@pytest.mark.parametrize(
    ("multi_class", "sentence"),
    [
        ("ww", r"has 150 examples, 3 classes.*the data have 149, 3"),
        ("ovo", r"has pairs of \[100, 100, 100\] examples, the data have pairs of \[99, 99, 100\]; fit from nothing"),
    ],
)
def test_warm_start_refuses_other_data(multi_class: str, sentence: str) -> None:
    clf = SVC(multi_class=multi_class, warm_start=True).fit(X, y)
    with pytest.raises(ValueError, match=sentence):
        clf.fit(X[1:], y[1:])
    with pytest.raises(ValueError, match=r"warm_start=True, but y has the classes \[1, 2, 3\]"):
        clf.fit(X, y + 1)
    assert clf.predict(X).max() == 2


def test_warm_start_refuses_another_kind_of_machine() -> None:
    for before, now in (("ovo", "ww"), ("ww", "dag")):
        clf = SVC(multi_class=before, warm_start=True).fit(X, y).set_params(multi_class=now)
        with pytest.raises(ValueError, match=rf"warm_start=True with multi_class='{now}'.*fit with warm_start=False"):
            clf.fit(X, y)
    assert SVC(warm_start=True).fit(X, y).set_params(multi_class="dag").fit(X, y).certificate_.optimal


def test_probability_is_deprecated() -> None:
    with pytest.warns(FutureWarning, match="the `probability` parameter is deprecated as in scikit-learn"):
        assert hasattr(SVC(probability=True).fit(X, y), "predict_proba")


def test_hard_margin_that_does_not_exist() -> None:
    with pytest.raises(ValueError, match="C=inf asks for a hard margin, but the classes cannot be separated"):
        SVC(C=float("inf"), kernel="linear").fit([[0.0], [0.0], [1.0], [1.0]], [0, 1, 0, 1])


def test_hard_margin_needs_a_positive_kernel() -> None:
    with pytest.raises(ValueError, match=r"C=inf with kernel='sigmoid' may have no solution.*use a finite C"):
        SVC(C=float("inf"), kernel="sigmoid").fit(X, y)


def test_warning_names_the_unscaled_column() -> None:
    wide = X * np.array([1, 1, 1e5, 1])
    with pytest.warns(ConvergenceWarning, match=r"Likely cause: column 2 of X varies .*StandardScaler"):
        SVC(multi_class="ww", max_iter=3, solver="s2do", kernel="linear").fit(wide, y)
    with pytest.warns(ConvergenceWarning, match=r"Likely cause: C=1e\+06 is large"):
        SVC(multi_class="ww", max_iter=3, solver="s2do", C=1e6).fit(X, y)
    with pytest.warns(ConvergenceWarning, match=r"ended early \(max_iter\) after 3 steps at a KKT violation of"):
        SVC(multi_class="ww", max_iter=3, solver="s2do").fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SVC().fit(X, y)
