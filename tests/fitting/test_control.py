"""Stopping a fit: limits, callbacks, Ctrl-C; the model is usable or unchanged, and a fit can be continued."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning

from multimargin import SVC, Progress, verify
from support import control
from support.control import ctrl_c_after

REASONS = ("converged", "max_iter", "max_time", "stalled", "interrupted", "callback")


def slow(**params: Any) -> SVC:
    return SVC(**{"multi_class": "ww", "C": 1e6, "gamma": 0.01, **params})


def assert_usable(clf: SVC, X: np.ndarray, y: np.ndarray) -> None:
    assert clf.certificate_.stop_reason in REASONS
    for own, true in control.assert_usable(clf, X, y):
        assert np.isfinite(true.dual)
        assert true.dual >= 0
        if own.stop_reason == "converged":
            assert true.optimal


@pytest.mark.parametrize("solver", ["smo", "s2do", "whole-example", "semi-greedy", "working-set"])
@pytest.mark.parametrize("machine", ["ww", "cs", "llw", "atm"])
def test_max_iter(slow_data: tuple[np.ndarray, np.ndarray], machine: str, solver: str) -> None:
    if solver == "working-set" and machine in ("cs", "atm"):
        pytest.skip("working sets are for boxes")
    X, y = slow_data
    clf = slow(multi_class=machine, solver=solver, max_iter=7)
    with pytest.warns(ConvergenceWarning, match=r"ended early \(max_iter\) after 7 steps.*raise max_iter"):
        clf.fit(X, y)
    assert clf.n_iter_.tolist() == [7]
    assert clf.fit_status_ == 1
    assert clf.certificate_.stop_reason == "max_iter"
    assert clf.certificate_.verified
    assert_usable(clf, X, y)


each_way = pytest.mark.parametrize("solver", ["auto", "working-set"])


@each_way
def test_max_time(slow_data: tuple[np.ndarray, np.ndarray], solver: str) -> None:
    X, y = slow_data
    clf = slow(max_time=0.2, solver=solver)
    with pytest.warns(ConvergenceWarning, match=r"ended early \(max_time\).*raise max_time, or go on with"):
        clf.fit(X, y)
    assert clf.certificate_.stop_reason == "max_time"
    assert clf.n_iter_[0] > 7
    assert_usable(clf, X, y)


def test_a_limit_that_is_not_needed_changes_nothing(slow_data: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = slow_data
    free = SVC(multi_class="ww").fit(X, y)
    limited = SVC(multi_class="ww", max_time=3600, max_iter=10**9).fit(X, y)
    assert limited.certificate_.stop_reason == "converged"
    np.testing.assert_array_equal(free.dual_coef_, limited.dual_coef_)


@each_way
def test_callback_stops(slow_data: tuple[np.ndarray, np.ndarray], solver: str) -> None:
    X, y = slow_data
    seen: list[Progress] = []

    def enough() -> bool:  # on a busy machine calls may come before the first step
        return len(seen) >= 3 and seen[-1].n_support > 0

    def on_progress(progress: Progress) -> bool:
        assert not enough(), "called again after it had said to stop"
        seen.append(progress)
        return enough()

    clf = slow(on_progress=on_progress, solver=solver)
    with pytest.warns(ConvergenceWarning, match=r"ended early \(callback\)"):
        clf.fit(X, y)
    assert clf.certificate_.stop_reason == "callback"
    assert not clf.certificate_.verified
    assert "solver's own" in clf.certificate_.remark
    assert enough()
    assert_usable(clf, X, y)
    for earlier, later in itertools.pairwise(seen):
        assert later.iteration >= earlier.iteration  # between two calls there may be nothing but kernel rows
        assert later.seconds > earlier.seconds
        assert later.dual >= earlier.dual
    assert seen[-1].iteration > 0
    assert seen[-1].primal > seen[-1].dual
    # the solver's own dual is that of the iterate
    np.testing.assert_allclose(verify(clf, X, y).dual, clf.certificate_.dual, rtol=1e-3)


def test_a_failing_callback_leaves_the_old_model(slow_data: tuple[np.ndarray, np.ndarray]) -> None:
    control.assert_failing_callback_keeps_the_model(SVC(), *slow_data)


@each_way
def test_ctrl_c_raises_and_leaves_a_model(slow_data: tuple[np.ndarray, np.ndarray], solver: str) -> None:
    X, y = slow_data
    clf = slow(solver=solver)
    with pytest.raises(KeyboardInterrupt), ctrl_c_after(0.3):
        clf.fit(X, y)
    assert clf.certificate_.stop_reason == "interrupted"
    assert_usable(clf, X, y)


@each_way
def test_ctrl_c_keeps(slow_data: tuple[np.ndarray, np.ndarray], solver: str) -> None:
    X, y = slow_data
    clf = slow(on_interrupt="keep", solver=solver)
    with (
        pytest.warns(ConvergenceWarning, match=r"ended early \(interrupted\).*warm_start=True"),
        ctrl_c_after(0.3),
    ):
        assert clf.fit(X, y) is clf
    assert clf.certificate_.stop_reason == "interrupted"
    assert clf.fit_status_ == 1
    assert_usable(clf, X, y)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_random_stops(slow_data: tuple[np.ndarray, np.ndarray]) -> None:
    """A signal at any moment leaves the old model or a usable new one.

    A signal during the callback of a weak reference is lost in Python; then the fit finishes.
    """
    X, y = slow_data
    rng = np.random.default_rng(0)
    reference = SVC().fit(X[:200], y[:200])
    raised = 0
    for _ in range(25):
        clf = SVC().fit(X[:200], y[:200])
        clf.set_params(C=1e6, gamma=0.01, multi_class=rng.choice(["ovo", "ww", "cs", "llw"]), max_time=20)
        try:
            with ctrl_c_after(rng.uniform(0, 0.1)):
                clf.fit(X, y)
        except KeyboardInterrupt:
            raised += 1
        if clf.shape_fit_[0] == 200:
            np.testing.assert_array_equal(clf.dual_coef_, reference.dual_coef_)
        else:
            assert_usable(clf, X, y)
    assert raised >= 22


@pytest.mark.parametrize("solver", ["s2do", "working-set"])
def test_stopped_fits_go_on(solver: str) -> None:
    """Stopped again and again, a fit with warm_start reaches the same optimum as an uninterrupted one."""
    X, y = make_classification(400, 8, n_informative=5, n_classes=3, random_state=1)
    whole = SVC(multi_class="ww", solver=solver, tol=1e-6).fit(X, y)
    clf = SVC(multi_class="ww", solver=solver, tol=1e-6, warm_start=True, max_iter=100)
    control.fit_in_pieces(clf, X, y)
    np.testing.assert_allclose(clf.certificate_.dual, whole.certificate_.dual, rtol=1e-9)


def test_interrupted_fit_goes_on_without_having_asked(slow_data: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = slow_data
    clf = slow(max_iter=200, solver="s2do")
    with pytest.warns(ConvergenceWarning):
        clf.fit(X, y)
    first = clf.certificate_.dual
    clf.set_params(warm_start=True)
    with pytest.warns(ConvergenceWarning):
        clf.fit(X, y)
    assert clf.certificate_.dual > first


@pytest.mark.parametrize("machine", ["ww", "cs", "adm"])
@pytest.mark.parametrize("factor", [0.1, 10.0])
def test_warm_start_along_c(machine: str, factor: float) -> None:
    X, y = make_classification(300, 8, n_informative=5, n_classes=3, flip_y=0.1, random_state=1)
    clf = SVC(multi_class=machine, warm_start=True, tol=1e-5).fit(X, y)
    clf.set_params(C=factor).fit(X, y)
    cold = SVC(multi_class=machine, C=factor, tol=1e-5).fit(X, y)
    np.testing.assert_allclose(clf.certificate_.dual, cold.certificate_.dual, rtol=1e-6)
    assert verify(clf, X, y).optimal


def test_scikit_learn_callbacks(slow_data: tuple[np.ndarray, np.ndarray]) -> None:
    callback = pytest.importorskip("sklearn.callback", reason="scikit-learn >= 1.9 has callbacks")
    assert callback is not None
    X, y = slow_data
    events: list[str] = []

    class Recorder:
        def setup(self, estimator: Any, context: Any) -> None:
            events.append("setup")

        def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
            events.append("begin")

        def on_fit_task_end(self, estimator: Any, context: Any, *, fitted_estimator: Any) -> bool:
            assert np.isfinite(fitted_estimator.decision_function(X[:5])).all()
            events.append(f"end {context.task_name}")
            return events.count("end iterations") == 2

        def teardown(self, estimator: Any, context: Any) -> None:
            events.append("teardown")

    clf = slow().set_callbacks(Recorder())
    with pytest.warns(ConvergenceWarning, match=r"\(callback\)"):
        clf.fit(X, y)
    assert events[:2] == ["setup", "begin"]
    assert events.count("end iterations") == 2
    assert events[-2:] == ["end fit", "teardown"]
    assert_usable(clf, X, y)


@pytest.mark.parametrize("multi_class", ["ovo", "dag", "ww"])
def test_interrupted_prediction(slow_data: tuple[np.ndarray, np.ndarray], multi_class: str) -> None:
    X, y = slow_data
    clf = SVC(multi_class=multi_class).fit(X, y)
    many = np.tile(X, (400, 1))
    with pytest.raises(KeyboardInterrupt), ctrl_c_after(0.05):
        clf.predict(many)
    assert clf.predict(X).shape == y.shape


def run_in_thread(function: Callable[[], Any]) -> Any:
    result: list[Any] = []
    thread = threading.Thread(target=lambda: result.append(function()))
    thread.start()
    thread.join()
    return result[0]


@pytest.mark.parametrize("multi_class", ["ovo", "ww"])
def test_fit_outside_the_main_thread(slow_data: tuple[np.ndarray, np.ndarray], multi_class: str) -> None:
    X, y = slow_data
    inside = run_in_thread(lambda: SVC(multi_class=multi_class).fit(X, y))
    np.testing.assert_array_equal(inside.dual_coef_, SVC(multi_class=multi_class).fit(X, y).dual_coef_)
