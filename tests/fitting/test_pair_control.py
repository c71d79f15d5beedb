"""Stopping a one-vs-one fit: every pair is feasible, the certificates are true, and a fit can be continued."""

from __future__ import annotations

import itertools
import os
import signal
import threading
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning

from multimargin import SVC, Progress, verify
from support import control
from support.helpers import draw_data, duals

each_bias = pytest.mark.parametrize("bias", ["exact", "regularized", "none"])
# Every bias rule by the default, and the named choices of pairs where there is an equality to keep.
each_way = pytest.mark.parametrize(
    ("bias", "solver"),
    [
        *((bias, "auto") for bias in ("exact", "regularized", "none")),
        *(("exact", solver) for solver in ("maximum-gain", "most-violating-pair")),
    ],
)
Data = tuple[np.ndarray, np.ndarray]


def slow(**params: Any) -> SVC:
    return SVC(**{"C": 1e6, "gamma": 0.01, "tol": 1e-6, **params})


def assert_usable(clf: SVC, X: np.ndarray, y: np.ndarray) -> None:
    for own, true in control.assert_usable(clf, X, y):
        if own.verified:
            assert true.dual == pytest.approx(own.dual, rel=1e-6, abs=1e-9)
            assert true.kkt_violation == pytest.approx(own.kkt_violation, rel=1e-3, abs=own.tol)


@each_way
def test_max_iter_holds_for_each_pair(slow_data: Data, bias: str, solver: str) -> None:
    X, y = slow_data
    clf = slow(bias=bias, solver=solver, max_iter=7)
    with pytest.warns(ConvergenceWarning, match=r"ended early \(max_iter\) after 42 steps.*raise max_iter"):
        clf.fit(X, y)
    assert clf.n_iter_.tolist() == [7] * 6
    assert (clf.certificate_.stop_reason, clf.certificate_.verified, clf.fit_status_) == ("max_iter", True, 1)
    assert_usable(clf, X, y)


@each_way
def test_max_time_is_for_all_pairs(slow_data: Data, bias: str, solver: str) -> None:
    X, y = slow_data
    clf = slow(bias=bias, solver=solver, max_time=0.06)
    with pytest.warns(ConvergenceWarning, match=r"ended early \(max_time\).*raise max_time, or go on with"):
        clf.fit(X, y)
    assert_usable(clf, X, y)


@each_way
def test_callback_stops(slow_data: Data, bias: str, solver: str) -> None:
    X, y = slow_data
    seen: list[Progress] = []

    def on_progress(progress: Progress) -> bool:
        seen.append(progress)
        return len(seen) == 3

    clf = slow(bias=bias, solver=solver, on_progress=on_progress)
    with pytest.warns(ConvergenceWarning, match=r"ended early \(callback\)"):
        clf.fit(X, y)
    assert len(seen) == 3  # no pair begins after that
    assert {part.stop_reason for part in clf.certificate_.parts} <= {"converged", "callback"}
    for earlier, later in itertools.pairwise(seen):
        assert later.iteration >= earlier.iteration
        assert later.seconds > earlier.seconds
        assert later.kernel_rows >= earlier.kernel_rows
    assert_usable(clf, X, y)


@each_bias
def test_failing_callback_leaves_the_old_model(slow_data: Data, bias: str) -> None:
    control.assert_failing_callback_keeps_the_model(SVC(), *slow_data, tol=1e-6, bias=bias)


@each_way
def test_ctrl_c(slow_data: Data, bias: str, solver: str) -> None:
    X, y = slow_data
    for on_interrupt in ("raise", "keep"):
        timer = threading.Timer(0.02, os.kill, (os.getpid(), signal.SIGINT))

        def begin(progress: Progress, timer: threading.Timer = timer) -> None:  # the solver is at work
            if not timer.is_alive() and not timer.finished.is_set():
                timer.start()

        clf = slow(bias=bias, solver=solver, on_interrupt=on_interrupt, on_progress=begin)
        with pytest.raises(KeyboardInterrupt) if on_interrupt == "raise" else pytest.warns(ConvergenceWarning):
            clf.fit(X, y)
        timer.join()
        assert clf.certificate_.stop_reason == "interrupted"
        assert_usable(clf, X, y)


@each_bias
def test_stopped_fits_go_on(bias: str) -> None:
    """Stopped again and again, a fit with warm_start reaches the same optimum as an uninterrupted one."""
    X, y = make_classification(400, 8, n_informative=5, n_classes=3, random_state=1)
    whole = SVC(bias=bias, tol=1e-6, solver="smo").fit(X, y)
    clf = SVC(bias=bias, tol=1e-6, solver="smo", warm_start=True, max_iter=100)
    control.fit_in_pieces(clf, X, y)
    assert duals(clf) == pytest.approx(duals(whole), rel=1e-8)


@each_bias
def test_warm_start(bias: str) -> None:
    """The same problem costs nothing; another C, bias or scheme starts from zero."""
    X, y = make_classification(300, 8, n_informative=5, n_classes=3, flip_y=0.1, random_state=1)
    clf = SVC(bias=bias, warm_start=True, tol=1e-5, solver="smo").fit(X, y)
    first = clf.n_iter_.sum()
    clf.fit(X, y)
    assert clf.n_iter_.sum() < first / 10
    for change in ({"C": 10.0}, {"bias": "none"}, {"multi_class": "dag", "bias": "exact"}, {"C": 0.3}):
        clf.set_params(**change).fit(X, y)
        cold = SVC(tol=1e-5, C=clf.C, bias=clf.bias).fit(X, y)
        assert duals(clf) == pytest.approx(duals(cold), rel=1e-6)
        assert verify(clf, X, y).optimal


@each_bias
def test_a_limit_that_is_not_needed_changes_nothing(slow_data: Data, bias: str) -> None:
    X, y = slow_data
    free, limited = SVC(bias=bias).fit(X, y), SVC(bias=bias, max_time=3600, max_iter=10**9).fit(X, y)
    np.testing.assert_array_equal(free.dual_coef_, limited.dual_coef_)
    np.testing.assert_array_equal(free.intercept_, limited.intercept_)


@pytest.mark.parametrize("solver", ["smo", "s2do", "whole-example", "semi-greedy", "two-level"])
def test_solver_is_the_one_asked_for(solver: str) -> None:
    X, y = draw_data(3, 80, 3)
    expected = SVC(bias="regularized", tol=1e-7).fit(X, y)
    assert expected.certificate_.solver == "two-level"
    clf = SVC(bias="regularized", solver=solver, tol=1e-7).fit(X, y)
    assert (clf.certificate_.solver, clf.certificate_.solver_reason) == (solver, "asked for")
    assert duals(clf) == pytest.approx(duals(expected), rel=1e-6)
    exact = SVC(tol=1e-7).fit(X, y)
    assert exact.certificate_.solver == "smo"
    assert duals(SVC(solver="smo", tol=1e-7).fit(X, y)) == pytest.approx(duals(exact), rel=1e-6)


@pytest.mark.parametrize("multi_class", ["ovo", "ova"])
def test_kernel_matrix_that_is_all_rounding(multi_class: str) -> None:
    """Values of 1e12 in rank 4: the result of the free variables' linear system must not count as a solution."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(loc=100.0, size=(80, 2)), rng.integers(0, 2, 80)
    clf = SVC(multi_class=multi_class, kernel="poly")
    with pytest.warns(ConvergenceWarning, match=r"ended early \(stalled\).*scale the columns of X"):
        clf.fit(X, y)
    assert np.isfinite(clf.certificate_.dual)
    assert clf.certificate_.dual > 0
    assert not clf.certificate_.optimal
    assert np.isfinite(verify(clf, X, y).kkt_violation)


@pytest.mark.parametrize("multi_class", ["ovo", "ova"])
def test_kernel_values_that_overflow(multi_class: str) -> None:
    X = np.array([[1e60], [2e60], [-1e60], [3e60]])
    clf = SVC(multi_class=multi_class, kernel="poly", gamma=1.0, degree=3)
    with pytest.raises(ValueError, match=r"has values up to inf on these rows.* scale the columns of X"):
        clf.fit(X, [0, 1, 0, 1])
