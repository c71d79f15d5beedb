"""Data and kernel values of any finite size: a fit is right, stops early with a true certificate, or raises an error of
one sentence.

Before, scores beyond 1e30 let padding be chosen as a variable, and the process crashed.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning

from multimargin import SVC, SVCCV, LinearSVC, LinearSVCCV, OnlineSVC, svm_path, verify
from multimargin._typing import DataMatrix
from multimargin.kernels.store import LARGEST_VALUE

pytestmark = pytest.mark.timeout(300)

MACHINES = ("ovo", "dag", "ova", "ww", "cs", "llw", "adm", "ats", "atm", "rm", "mmr")
SCALES = (1e-300, 1e-155, 1e-100, 1e-30, 1e-10, 1e10, 1e19, 1e30, 1e75, 1e100, 1e155, 1e300)
REFUSED = "refused"
STOPPED = ("stalled", "max_time", "max_iter")


def _some(X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.ascontiguousarray(X[::3]), y[::3]


IRIS = _some(*load_iris(return_X_y=True))
WINE = load_wine(return_X_y=True)


def _outcome(model: Any, X: DataMatrix, y: np.ndarray) -> str:
    """Fit, and return the stop reason; a converged model has finite numbers and passes verify."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(X, y)
    except ValueError as error:
        if any(remedy in str(error) for remedy in ("scale the columns", "divide the matrix")):
            return REFUSED
        raise
    certificate = model.certificate_
    for name in ("dual_coef_", "intercept_", "coef_"):
        if hasattr(model, name):
            values = getattr(model, name)
            assert np.isfinite(values.data if sparse.issparse(values) else values).all(), name
    if certificate.stop_reason != "converged":
        assert certificate.stop_reason in STOPPED
        assert not certificate.optimal
        return str(certificate.stop_reason)
    assert np.isfinite(certificate.kkt_violation)
    assert verify(model, X, y).kkt_violation <= 2 * certificate.tol
    assert len(model.predict(X)) == len(y)
    return "converged"


@pytest.mark.parametrize("degree", range(2, 9))
@pytest.mark.parametrize("machine", ["ovo", "ova", "ww", "cs", "llw"])
def test_poly_on_raw_data_does_not_crash(machine: str, degree: int) -> None:
    for C in (1e-2, 1e4):
        model = SVC(kernel="poly", degree=degree, gamma=1, coef0=1, C=C, multi_class=machine, max_time=0.25)
        assert _outcome(model, *WINE) != REFUSED  # k(x, x) is 1e50 at most


@pytest.mark.parametrize("machine", ["ovo", "ova", "ww", "cs"])
@pytest.mark.parametrize("factor", [1e20, 1e60, 1e160])
def test_one_column_of_another_size(machine: str, factor: float) -> None:
    X, y = IRIS
    X = X * np.array([1.0, factor, 1.0, 1.0])
    for data in (X, sparse.csr_array(X)):
        ended = _outcome(SVC(kernel="linear", multi_class=machine, max_time=0.25), data, y)
        assert (ended == REFUSED) == (factor == 1e160)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly", "sigmoid", "laplacian"])
def test_every_machine_and_kernel_at_every_scale(machine: str, kernel: str) -> None:
    X, y = IRIS
    for scale in SCALES:
        model = SVC(kernel=kernel, coef0=1.0, multi_class=machine, max_time=0.1)
        _outcome(model, X * scale, y)
        if 1e-37 < scale < 1e37:
            _outcome(model, (X * scale).astype(np.float32), y)
        model.set_params(gamma=1.0)
        _outcome(model, sparse.csr_array(X * scale), y)


@pytest.mark.parametrize("machine", MACHINES)
def test_given_kernels_of_any_size(machine: str) -> None:
    X, y = IRIS
    K = X @ X.T
    for scale in (*SCALES, 1e304):
        ended = _outcome(SVC(kernel="precomputed", multi_class=machine, max_time=0.1), K * scale, y)
        assert (ended == REFUSED) == (K.max() * scale > LARGEST_VALUE)


@pytest.mark.parametrize(
    ("machine", "solver"),
    [
        ("ovo", "smo"),
        ("ovo", "maximum-gain"),
        ("ovo", "most-violating-pair"),
        ("ww", "smo"),
        ("ww", "s2do"),
        ("ww", "whole-example"),
        ("ww", "semi-greedy"),
        ("ww", "working-set"),
        ("ww", "two-level"),
        ("cs", "s2do"),
        ("cs", "whole-example"),
        ("cs", "semi-greedy"),
        ("cs", "two-level"),
    ],
)
def test_every_solver_at_every_scale(machine: str, solver: str) -> None:
    X, y = IRIS
    for scale in SCALES:
        for C in (1e-6, 1e6):
            model = SVC(kernel="linear", C=C, multi_class=machine, solver=solver, max_time=0.1)
            _outcome(model, X * scale, y)
            model.set_params(kernel="precomputed")
            _outcome(model, (X @ X.T) * scale, y)


@pytest.mark.parametrize("machine", ["ovo", "ova", "ww", "cs"])
def test_linear_machines_at_every_scale(machine: str) -> None:
    X, y = IRIS
    for scale in SCALES:
        for loss in ("hinge", "squared_hinge"):
            for data in (X * scale, sparse.csr_array(X * scale)):
                ended = _outcome(LinearSVC(multi_class=machine, loss=loss, max_time=0.1), data, y)
                assert (ended == REFUSED) == (scale >= 1e75)


def _learn(X: np.ndarray, y: np.ndarray) -> Any:
    return OnlineSVC(kernel="linear").fit(X, y)


def _follow(X: np.ndarray, y: np.ndarray) -> Any:
    return svm_path(X, y, Cs=[0.1, 1.0], estimator=SVC(kernel="linear", max_time=0.25))


def _follow_linear(X: np.ndarray, y: np.ndarray) -> Any:
    return svm_path(X, y, Cs=[0.1, 1.0], estimator=LinearSVC(max_time=0.25))


def _search(X: np.ndarray, y: np.ndarray) -> Any:
    return SVCCV(Cs=[0.1, 1.0], gammas=[0.1], cv=2, kernel="rbf").fit(X, y)


def _search_linear(X: np.ndarray, y: np.ndarray) -> Any:
    return LinearSVCCV(Cs=[0.1, 1.0], cv=2).fit(X, y)


@pytest.mark.parametrize("run", [_learn, _follow, _follow_linear, _search, _search_linear])
def test_other_ways_to_a_model_refuse_in_a_sentence(run: Callable[[np.ndarray, np.ndarray], Any]) -> None:
    X, y = IRIS
    with pytest.raises(ValueError, match=r"X has rows too long .* scale the columns"):
        run(X * 1e200, y)


@pytest.mark.parametrize("scale", [1e-200, 1e-100, 1e-20, 1e20, 1e60])
@pytest.mark.parametrize("machine", ["ovo", "ova", "ww", "cs"])
def test_streams_at_every_scale(machine: str, scale: float) -> None:
    X, y = IRIS
    model = OnlineSVC(kernel="linear", multi_class=machine).fit(X * scale, y)
    assert np.isfinite(model.dual_coef_).all()
    with pytest.raises(ValueError, match="scale the columns"):
        model.partial_fit(X * 1e200, y)
    assert len(model.predict(X * scale)) == len(y)


@pytest.mark.parametrize("machine", ["ovo", "dag", "ova", "ww", "cs"])
@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
def test_points_too_long_to_decide_are_refused(machine: str, kernel: str) -> None:
    X, y = IRIS
    for form in (np.asarray, sparse.csr_array):
        model, points = SVC(kernel=kernel, multi_class=machine).fit(form(X), y), form(X * 1e300)
        for decide in (model.decision_function, model.predict):
            with pytest.raises(ValueError, match="scale the columns"):
                decide(points)


def test_points_too_long_for_weights_are_refused() -> None:
    X, y = IRIS
    model = LinearSVC().fit(X, y)
    with pytest.raises(ValueError, match=r"too large to compute scores with, first in row 0; scale its columns"):
        model.decision_function(np.full((1, 4), 1.7e308) * np.array([1, -1, 1, -1]))


def test_what_overflows_is_named() -> None:
    X, y = IRIS
    with pytest.raises(ValueError, match=r"degree=40, gamma=100 and coef0=1 has values up to .* or lower degree"):
        SVC(kernel="poly", degree=40, gamma=100, coef0=1).fit(X, y)
    with pytest.raises(ValueError, match=r"gamma='scale' cannot be computed: the variance .*scale the columns of X"):
        SVC().fit(X * 1e-155, y)
    with pytest.raises(ValueError, match=r"X has kernel values up to .* divide the matrix"):
        SVC(kernel="precomputed").fit((X @ X.T) * 1e300, y)
    with pytest.raises(ValueError, match=r"C=1e-300 times the weights .* is 0 for some rows"):
        SVC(C=1e-300).fit(X, y, sample_weight=np.full(len(y), 1e-300))
    with pytest.raises(ValueError, match=r"C=1e\+300 times the weights .* is infinite for some rows"):
        SVC(C=1e300).fit(X, y, sample_weight=np.full(len(y), 1e300))


def test_a_refused_fit_leaves_the_old_model() -> None:
    X, y = IRIS
    model = SVC(kernel="linear").fit(X, y)
    before = model.decision_function(X)
    with pytest.raises(ValueError, match="scale the columns"):
        model.fit(X * 1e200, y)
    assert np.array_equal(model.decision_function(X), before)
