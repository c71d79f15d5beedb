"""LinearSVC: the same optimum as the kernel machine, certified; limits, weights, bias rules, every machine."""

from __future__ import annotations

import os
import pickle
import signal
import warnings
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse
from sklearn import svm
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris, load_wine, make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import minmax_scale

from multimargin import MACHINES, SVC, Certificate, LinearSVC, Progress, verify

ALL = (*MACHINES, "ovo", "dag")


@pytest.fixture(scope="module")
def wine() -> tuple[NDArray[Any], NDArray[Any]]:
    X, y = load_wine(return_X_y=True)
    return minmax_scale(X, (-1, 1)), y


def _sums(certificate: Certificate) -> tuple[float, float]:
    parts = certificate.parts or (certificate,)
    return sum(part.primal for part in parts), sum(part.dual for part in parts)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("bias", ["exact", "regularized", "none"])
@pytest.mark.parametrize("machine", ALL)
def test_same_machine_as_the_kernel(machine: str, bias: str, loss: str, wine: Any) -> None:
    X, y = wine
    linear = LinearSVC(multi_class=machine, bias=bias, loss=loss, C=2.0, tol=1e-7).fit(X, y)
    kernel = SVC(kernel="linear", multi_class=machine, bias=bias, loss=loss, C=2.0, tol=1e-7).fit(X, y)
    assert linear.certificate_.stop_reason == "converged"
    assert linear.certificate_.relative_gap < 1e-6
    assert _sums(linear.certificate_) == pytest.approx(_sums(kernel.certificate_), rel=1e-6)
    np.testing.assert_allclose(linear.coef_, kernel.coef_, atol=2e-4)
    again = verify(linear, X, y)
    assert again.optimal
    assert _sums(again) == pytest.approx(_sums(linear.certificate_), rel=1e-9)


@pytest.mark.parametrize("machine", ALL)
def test_intercept_is_the_kernels(machine: str) -> None:
    X, y = make_classification(120, 6, n_informative=4, n_classes=3, flip_y=0.2, random_state=1)
    linear = LinearSVC(multi_class=machine, C=0.5, tol=1e-6).fit(X, y)
    kernel = SVC(kernel="linear", multi_class=machine, bias="exact", C=0.5, tol=1e-6).fit(X, y)
    scores = kernel.decision_function(X)
    np.testing.assert_allclose(linear.decision_function(X), scores, atol=1e-3)
    two = np.sort(scores, axis=1)[:, -2:]
    clear = two[:, 1] - two[:, 0] > 2e-3
    np.testing.assert_array_equal(linear.predict(X)[clear], kernel.predict(X)[clear])


def test_layouts_agree(wine: Any) -> None:
    X, y = wine
    dense = LinearSVC(multi_class="ww", tol=1e-8).fit(X, y)
    for other in (sparse.csr_matrix(X), sparse.csr_array(X), np.asfortranarray(X), X.astype(np.float32)):
        same = LinearSVC(multi_class="ww", tol=1e-8).fit(other, y)
        np.testing.assert_allclose(same.coef_, dense.coef_, atol=2e-6)
        assert verify(same, other, y).optimal


@pytest.mark.parametrize("C", [1.0, 256.0])
def test_liblinear_agrees(C: float) -> None:
    X, y = load_breast_cancer(return_X_y=True)
    X = minmax_scale(X, (-1, 1))
    ours = LinearSVC(C=C, bias="regularized", tol=1e-6).fit(X, y)
    theirs = svm.LinearSVC(C=C, loss="hinge", dual=True, tol=1e-7, max_iter=10**7).fit(X, y)

    def primal(model: Any) -> float:
        margin = np.where(y == 1, 1, -1) * (X @ model.coef_[0] + model.intercept_[0])
        return float(
            0.5 * (model.coef_**2).sum() + 0.5 * model.intercept_[0] ** 2 + C * np.maximum(0, 1 - margin).sum()
        )

    assert primal(ours) == pytest.approx(primal(theirs), rel=1e-6)


def test_liblinear_agrees_on_crammer_singer(wine: Any) -> None:
    X, y = wine
    ours = LinearSVC(multi_class="cs", fit_intercept=False, tol=1e-8).fit(X, y)
    theirs = svm.LinearSVC(multi_class="crammer_singer", fit_intercept=False, tol=1e-9, max_iter=10**6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs.fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-5)


@pytest.mark.parametrize("machine", ["ova", "cs", "ovo"])
def test_weight_is_repetition(machine: str, wine: Any) -> None:
    X, y = wine
    weight = np.ones(len(y))
    weight[::7] = 2.0
    weight[3::11] = 0.0
    repeated = np.repeat(np.arange(len(y)), weight.astype(int))
    weighted = LinearSVC(multi_class=machine, tol=1e-8).fit(X, y, sample_weight=weight)
    plain = LinearSVC(multi_class=machine, tol=1e-8).fit(X[repeated], y[repeated])
    np.testing.assert_allclose(weighted.coef_, plain.coef_, atol=1e-5)
    assert verify(weighted, X, y, sample_weight=weight).optimal


def test_steps_do_not_grow_with_the_cost() -> None:
    X, y = make_classification(400, 10, n_informative=6, n_classes=3, flip_y=0.3, random_state=0)
    steps = [LinearSVC(multi_class="ww", C=C).fit(X, y).n_iter_ for C in (1.0, 2.0**8, 2.0**14)]
    assert max(steps) <= 6 * min(steps)


def test_unscaled_columns_converge() -> None:
    X, y = load_wine(return_X_y=True)  # raw: columns from 0.1 to 1000
    for machine in ("ova", "cs", "ovo"):
        model = LinearSVC(multi_class=machine, C=2.0**8).fit(X, y)
        assert model.certificate_.stop_reason == "converged"
        assert verify(model, X, y).optimal


def test_more_features_than_rows() -> None:
    X, y = make_classification(60, 500, n_informative=30, n_classes=3, random_state=0)
    for machine in ("ova", "ww", "ovo"):
        model = LinearSVC(multi_class=machine, C=1.0).fit(sparse.csr_matrix(X * (np.abs(X) > 1)), y)
        assert model.certificate_.stop_reason == "converged"


def test_hard_margin(wine: Any) -> None:
    X, y = wine
    linear = LinearSVC(C=float("inf"), tol=1e-6).fit(X, y)
    kernel = SVC(kernel="linear", multi_class="ova", C=float("inf"), tol=1e-6).fit(X, y)
    np.testing.assert_allclose(linear.coef_, kernel.coef_, atol=1e-3)
    with pytest.raises(ValueError, match="cannot be separated"):
        LinearSVC(C=float("inf")).fit(*load_iris(return_X_y=True))


def test_fit_intercept() -> None:
    X, y = load_iris(return_X_y=True)
    without = LinearSVC(fit_intercept=False).fit(X, y)
    assert not without.intercept_.any()
    np.testing.assert_allclose(without.coef_, LinearSVC(bias="none").fit(X, y).coef_)
    with pytest.raises(ValueError, match="fit_intercept=False contradicts"):
        LinearSVC(fit_intercept=False, bias="regularized").fit(X, y)


def test_intercept_scaling() -> None:
    X, y = load_iris(return_X_y=True)
    scaled = LinearSVC(bias="regularized", intercept_scaling=100.0, tol=1e-6).fit(X, y)
    exact = LinearSVC(bias="exact", tol=1e-6).fit(X, y)
    np.testing.assert_allclose(scaled.intercept_, exact.intercept_, atol=1e-2)
    assert verify(scaled, X, y).optimal


def test_limits(wine: Any) -> None:
    X, y = wine
    for limits, reason in (({"max_iter": 2}, "max_iter"), ({"max_time": 1e-9}, "max_time")):
        with pytest.warns(ConvergenceWarning, match=reason):
            model = LinearSVC(multi_class="ww", **limits).fit(X, y)
        assert model.fit_status_ == 1
        assert model.predict(X).shape == y.shape
        assert np.isfinite(verify(model, X, y).dual)


def test_callback_stops(wine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = wine
    monkeypatch.setattr("multimargin.solvers.linear.driver.REPORT_SECONDS", 0.0)
    seen: list[float] = []

    def third(progress: Any) -> bool:
        seen.append(progress.seconds)
        return len(seen) >= 3

    with pytest.warns(ConvergenceWarning, match="callback"):
        LinearSVC(multi_class="ww", on_progress=third).fit(X, y)
    assert len(seen) == 3


@pytest.mark.parametrize("machine", ["ww", "ova", "ovo"])
def test_interrupt_keeps_the_model(machine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = make_classification(20_000, 60, n_informative=40, n_classes=3, flip_y=0.2, random_state=0)
    monkeypatch.setattr("multimargin.solvers.linear.driver.REPORT_SECONDS", 0.0)

    def interrupt(progress: Any) -> bool:
        raise KeyboardInterrupt

    model = LinearSVC(multi_class=machine, on_progress=interrupt)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert model.certificate_.stop_reason == "interrupted"
    assert model.predict(X).shape == y.shape
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        clone(model).set_params(on_interrupt="keep").fit(X, y)


@pytest.mark.parametrize("machine", ["cs", "ovo"])
def test_warm_start(machine: str, wine: Any) -> None:
    X, y = wine
    model = LinearSVC(multi_class=machine, warm_start=True, C=8.0).fit(X, y)
    cold = model.n_iter_
    model.fit(X, y)
    assert model.n_iter_ < cold
    assert verify(model, X, y).optimal
    with pytest.raises(ValueError, match="warm_start"):
        model.fit(X, y.astype(str))


def test_changed_weights_do_not_verify(wine: Any) -> None:
    X, y = wine
    model = pickle.loads(pickle.dumps(LinearSVC(multi_class="ww").fit(X, y)))
    assert verify(model, X, y).optimal
    model._model.coef[0, 0] += 1e-3
    assert not verify(model, X, y).optimal


@pytest.mark.parametrize("machine", ["ova", "ww"])
@pytest.mark.parametrize("solver", ["asvm", "lsvm"])
def test_solvers_of_the_squared_hinge(solver: str, machine: str) -> None:
    X, y = load_breast_cancer(return_X_y=True)
    X = minmax_scale(X, (-1, 1))
    common: dict[str, Any] = {"multi_class": machine, "loss": "squared_hinge", "bias": "regularized", "tol": 1e-6}
    named = LinearSVC(solver=solver, **common).fit(X, y)
    usual = LinearSVC(**common).fit(X, y)
    assert named.certificate_.solver == solver
    assert verify(named, X, y).optimal
    np.testing.assert_allclose(named.coef_, usual.coef_, atol=1e-4)
    with pytest.raises(ValueError, match="two classes"):
        LinearSVC(solver=solver).fit(*load_iris(return_X_y=True))
    with pytest.raises(ValueError, match="does not apply"):
        LinearSVC(solver=solver, **common | {"multi_class": "ovo"}).fit(X, y)


@pytest.mark.parametrize("machine", ["ova", "ww"])
@pytest.mark.parametrize("solver", ["most-violating-pair", "working-set"])
def test_decomposition(solver: str, machine: str) -> None:
    X, y = load_breast_cancer(return_X_y=True)
    X = minmax_scale(X[:150], (-1, 1))
    y = y[:150]
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    common: dict[str, Any] = {"multi_class": machine, "tol": 1e-5}
    usual = LinearSVC(**common).fit(X, y, weight)
    for rows in (X, sparse.csr_array(X)):
        named = LinearSVC(solver=solver, **common).fit(rows, y, weight)
        assert named.certificate_.solver == solver
        assert verify(named, rows, y, weight).optimal
        assert named.certificate_.dual == pytest.approx(usual.certificate_.dual, rel=1e-6)
    np.testing.assert_allclose(named.coef_, usual.coef_, atol=1e-3)
    larger = LinearSVC(solver=solver, warm_start=True, **common).fit(X, y, weight)
    assert larger.fit(X, y, weight).n_iter_ == 1  # none, reported as one
    for wrong in ({"loss": "squared_hinge"}, {"bias": "none"}, {"multi_class": "cs"}):
        with pytest.raises(ValueError, match="two classes"):
            LinearSVC(solver=solver, **common | wrong).fit(X, y)
    with pytest.raises(ValueError, match="does not apply"):
        LinearSVC(solver=solver, multi_class="ovo").fit(X, y)


def test_decomposition_stops() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    X = minmax_scale(X, (-1, 1))
    slow: dict[str, Any] = {"solver": "most-violating-pair", "C": 100.0, "tol": 1e-8}

    def fails(_: Progress) -> bool:
        raise RuntimeError("no space left")

    def interrupt(_: Progress) -> None:
        os.kill(os.getpid(), signal.SIGINT)

    stops: list[tuple[dict[str, Any], str]] = [
        ({"max_iter": 5}, "max_iter"),
        ({"max_time": 0.02}, "max_time"),
        ({"on_progress": lambda _: True}, "callback"),
        ({"on_progress": interrupt, "on_interrupt": "keep"}, "interrupted"),
    ]
    for params, reason in stops:
        with pytest.warns(ConvergenceWarning, match=reason):
            model = LinearSVC(**slow, **params).fit(X, y)
        assert model.certificate_.stop_reason == reason
        assert verify(model, X, y).dual == pytest.approx(model.certificate_.dual, rel=1e-9, abs=1e-9)
    with pytest.raises(RuntimeError, match="no space left"):
        LinearSVC(**slow, on_progress=fails).fit(X, y)


@pytest.mark.parametrize("bias", ["none", "regularized"])
@pytest.mark.parametrize("machine", ALL)
def test_solvers_agree(machine: str, bias: str, wine: Any) -> None:
    X, y = wine
    duals = []
    for solver in ("descent", "newton", "auto"):
        model = LinearSVC(multi_class=machine, bias=bias, solver=solver, tol=1e-5).fit(X, y)
        assert model.certificate_.stop_reason == "converged"
        duals.append(_sums(model.certificate_)[1])
    assert max(duals) - min(duals) <= 1e-6 * max(duals)


def test_descent_goes_over_to_newton() -> None:
    X, y = make_classification(600, 10, n_informative=6, n_classes=3, flip_y=0.3, random_state=0)
    easy = LinearSVC(multi_class="ww", bias="regularized", C=1e-3, tol=1e-2).fit(X, y)
    hard = LinearSVC(multi_class="ww", bias="regularized", C=2.0**12).fit(X, y)
    assert easy.certificate_.solver.startswith("descent")
    assert hard.certificate_.solver == "descent and newton"
    assert verify(hard, X, y).optimal
    with pytest.raises(ValueError, match="bias='exact'"):
        LinearSVC(solver="descent").fit(X, y)


def test_bad_parameters() -> None:
    X, y = load_iris(return_X_y=True)
    wrong: list[tuple[dict[str, Any], type[Exception]]] = [
        ({"C": 0}, ValueError),
        ({"C": "1"}, TypeError),
        ({"bias": "auto"}, ValueError),
        ({"loss": "log"}, ValueError),
        ({"solver": "liblinear"}, ValueError),
        ({"multi_class": "all"}, ValueError),
        ({"tol": 0.0}, ValueError),
        ({"max_iter": -2}, ValueError),
        ({"max_time": -1.0}, ValueError),
        ({"intercept_scaling": 0.0}, ValueError),
        ({"fit_intercept": 1}, TypeError),
        ({"on_progress": 3}, TypeError),
    ]
    for params, error in wrong:
        with pytest.raises(error, match=next(iter(params))):
            LinearSVC(**params).fit(X, y)
