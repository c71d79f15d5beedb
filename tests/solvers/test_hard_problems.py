"""Few features, many classes, very many free variables: the solver goes over to the features of a low-rank kernel."""

from __future__ import annotations

import os
import signal
import threading
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from multimargin import SVC, Progress, verify

# By machine: examples, classes and parameters for which blocks are slow.
CASES: dict[str, tuple[int, int, dict[str, Any]]] = {
    "llw": (1000, 16, {"C": 1.0, "gamma": 0.05, "solver": "two-level"}),
    "cs": (1300, 16, {"C": 0.3, "gamma": 0.05}),
    "ww": (1100, 12, {"C": 10.0, "gamma": 0.1, "loss": "squared_hinge"}),
    "cs-squared": (1300, 10, {"C": 1.0, "gamma": 0.05, "loss": "squared_hinge"}),
    "llw-squared": (900, 9, {"C": 1.0, "gamma": 0.05, "loss": "squared_hinge"}),
}
IN_SWEEPS = 75_000  # steps after which every one of them has left the blocks behind
# Tolerances that take many more, but not so small that float32 cannot carry them.
LONG = {"llw": 5e-5, "cs": 2e-5, "ww": 1e-3}
each_case = pytest.mark.parametrize("name", CASES)
each_machine = pytest.mark.parametrize("name", ["llw", "cs", "ww"])

Data = tuple[np.ndarray, np.ndarray]


def draw(name: str) -> Data:
    """Return an ordinal target, as an age is, that three features hardly predict."""
    n, n_classes, _ = CASES[name]
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    limits = np.quantile(X[:, 0], np.linspace(0, 1, n_classes + 1)[1:-1])
    return X, np.digitize(X[:, 0] + rng.normal(size=n), limits)


def estimator(name: str, **params: Any) -> SVC:
    return SVC(multi_class=name.removesuffix("-squared"), **{**CASES[name][2], **params})


def long_one(name: str, **params: Any) -> SVC:
    """Return an estimator whose feature sweeps take long."""
    return estimator(name, tol=LONG[name], **params)


def assert_usable(clf: SVC, data: Data) -> None:
    """The iterate is feasible: verify recovers it, and finds the dual of the certificate."""
    certificate = clf.certificate_
    assert certificate.feature_sweeps > 0
    truth = verify(clf, *data)
    assert np.isfinite(clf.decision_function(data[0])).all()
    assert truth.kkt_violation > truth.tol
    np.testing.assert_allclose(certificate.dual, truth.dual, rtol=1e-6 if certificate.verified else 1e-2)
    if certificate.verified:
        np.testing.assert_allclose(certificate.kkt_violation, truth.kkt_violation, rtol=1e-6)


@each_case
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_converges_in_features(name: str) -> None:
    """The optimum is between dual and primal of any feasible point: both solvers' intervals are narrow, and meet.

    Steps on two variables reach a tenth of tol on one of the problems; on the others they take minutes.
    """
    data = draw(name)
    clf = estimator(name).fit(*data)
    certificate = clf.certificate_
    assert certificate.stop_reason == "converged"
    assert certificate.verified
    assert not certificate.float64_rows
    assert verify(clf, *data).optimal
    assert certificate.feature_sweeps > 0
    assert f"of {certificate.blocks} blocks, {certificate.feature_sweeps} sweeps in features" in str(certificate)
    reference = estimator(name, solver="s2do", tol=1e-4, max_iter=100_000).fit(*data).certificate_
    assert reference.optimal == (name == "llw-squared")
    assert reference.verified
    assert reference.feature_sweeps == 0
    assert "features" not in str(reference)
    assert certificate.dual <= reference.primal
    assert reference.dual <= certificate.primal
    assert certificate.relative_gap < 1e-3
    assert reference.relative_gap < 1e-2


@each_machine
def test_weighted_classes(name: str) -> None:
    data = draw(name)
    clf = estimator(name, class_weight={0: 0.5, 1: 2.0, 2: 1.5}).fit(*data)
    assert clf.certificate_.feature_sweeps > 0
    assert verify(clf, *data).optimal


@each_machine
def test_max_iter(name: str) -> None:
    data = draw(name)
    clf = long_one(name, max_iter=IN_SWEEPS)
    with pytest.warns(ConvergenceWarning, match=rf"ended early \(max_iter\) after {IN_SWEEPS} steps"):
        clf.fit(*data)
    assert clf.n_iter_.tolist() == [IN_SWEEPS]
    assert clf.certificate_.verified
    assert_usable(clf, data)


@each_machine
def test_max_time(name: str) -> None:
    data = draw(name)
    clf = long_one(name, max_iter=IN_SWEEPS)
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        clf.fit(*data)
    clf.set_params(max_iter=-1, max_time=1.2 * clf.certificate_.seconds)
    with pytest.warns(ConvergenceWarning, match=r"ended early \(max_time\)"):
        clf.fit(*data)
    assert_usable(clf, data)


@each_machine
def test_callback_stops(name: str) -> None:
    data = draw(name)
    seen: list[Progress] = []

    def on_progress(progress: Progress) -> bool:
        seen.append(progress)
        return progress.iteration > IN_SWEEPS

    clf = long_one(name, on_progress=on_progress)
    with pytest.warns(ConvergenceWarning, match=r"ended early \(callback\)"):
        clf.fit(*data)
    assert not clf.certificate_.verified
    assert np.isnan(clf.certificate_.primal)
    assert seen[-1].n_active == len(data[1])
    assert 0 < seen[-1].n_support <= len(data[1])
    assert_usable(clf, data)


@each_machine
def test_ctrl_c(name: str) -> None:
    data = draw(name)
    timers: list[threading.Timer] = []

    def on_progress(progress: Progress) -> bool:
        if progress.iteration > IN_SWEEPS and not timers:
            timers.append(threading.Timer(0.02, os.kill, (os.getpid(), signal.SIGINT)))
            timers[0].start()
        return False

    clf = long_one(name, on_progress=on_progress)
    with pytest.raises(KeyboardInterrupt):
        clf.fit(*data)
    assert clf.certificate_.stop_reason == "interrupted"
    assert_usable(clf, data)


@each_machine
def test_a_stopped_fit_goes_on(name: str) -> None:
    data = draw(name)
    whole = estimator(name).fit(*data)
    clf = estimator(name, warm_start=True, max_iter=IN_SWEEPS // 2)
    with pytest.warns(ConvergenceWarning):
        clf.fit(*data)
    clf.set_params(max_iter=-1).fit(*data)
    assert verify(clf, *data).optimal
    assert whole.certificate_.dual - clf.certificate_.gap <= clf.certificate_.dual <= whole.certificate_.primal


@each_machine
@pytest.mark.parametrize("trace", [True, "primal"])
def test_trace(name: str, trace: bool | str) -> None:
    data = draw(name)
    plain, clf = estimator(name).fit(*data), estimator(name, trace=trace).fit(*data)
    np.testing.assert_array_equal(plain.dual_coef_, clf.dual_coef_)
    course, certificate = clf.trace_, clf.certificate_
    assert course.dual[-1] == certificate.dual
    assert course.violation[-1] == certificate.kkt_violation
    assert course.iterations[-1] == certificate.n_iter
    assert (np.diff(course.iterations) >= 0).all()
    looks = course.iterations > IN_SWEEPS // 2
    assert looks.any()
    n, n_classes, _ = CASES[name]
    assert (course.n_active[looks] == n).all()
    assert (course.n_variables[looks] == n * (n_classes - 1)).all()
    assert (np.diff(course.dual[looks]) >= 0).all()
    if trace == "primal":
        assert (course.primal[looks] >= course.dual[looks]).all()
