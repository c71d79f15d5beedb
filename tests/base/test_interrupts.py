"""Ctrl-C at every moment of every call: no object is left half updated, and "keep" always returns a model."""

from __future__ import annotations

import gc
import signal
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from benchmarks.interrupt_storm import Striker, count_calls, fit_case, storm, strike, striking
from benchmarks.term_storm import term_storm
from multimargin import SVC, SVCCV, LinearSVC, LinearSVCCV, verify
from multimargin.base.interrupts import allowed, deferred, poll

X = np.random.default_rng(0).normal(size=(60, 4))
y = np.repeat([0, 1, 2], 20)
X[:, 0] += y


@pytest.fixture(autouse=True)
def default_handler() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    signal.signal(signal.SIGINT, before)


def ctrl_c() -> None:
    signal.raise_signal(signal.SIGINT)


@pytest.mark.timeout(300)
def test_no_public_call_is_broken_by_an_interrupt() -> None:
    sent, broken = storm(79, seed=3)
    assert sent >= 79
    assert broken == []


KEEPING: dict[str, Callable[[], Any]] = {
    "ovo": lambda: SVC(on_interrupt="keep"),
    "ww": lambda: SVC(multi_class="ww", bias="exact", on_interrupt="keep"),
    "hard": lambda: SVC(C=np.inf, gamma=10.0, on_interrupt="keep"),
    "callable": lambda: SVC(kernel=lambda A, B: A @ B.T, on_interrupt="keep"),
    "linear ovo squared": lambda: LinearSVC(multi_class="ovo", loss="squared_hinge", on_interrupt="keep"),
    "linear cs": lambda: LinearSVC(multi_class="cs", on_interrupt="keep"),
}


@pytest.mark.parametrize("name", list(KEEPING))
def test_keep_returns_a_model_at_every_moment(name: str) -> None:
    """Before the solver begins, between its stages, while certificate and model are made."""
    case = fit_case(name, KEEPING[name], (X, y))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        n_calls = count_calls(case)
        complaints = [strike(case, int(moment)) for moment in np.linspace(20, n_calls - 20, 12)]
    assert complaints == [""] * 12


@pytest.mark.parametrize("make", [SVC, LinearSVC])
def test_an_interrupt_before_the_solver_begins_keeps_the_start_point(make: Any) -> None:
    model = make(multi_class="ww", on_interrupt="keep")
    with pytest.warns(ConvergenceWarning, match=r"ended early \(interrupted\)"):
        strike_in(model, "from_arrays")
    assert model.certificate_.stop_reason == "interrupted"
    assert model.certificate_.dual >= 0
    assert np.isfinite(model.decision_function(X)).all()
    assert not verify(model, X, y).optimal


def strike_in(model: Any, function: str) -> None:
    """Fit, with Ctrl-C when a function of this name is called."""

    class Once(Striker):
        def __call__(self, frame: Any, event: str, argument: Any) -> None:
            if event == "call" and frame.f_code.co_name == function and not self.n_calls:
                self.n_calls = 1
                ctrl_c()

    with striking(Once()):
        model.fit(X, y)


@pytest.mark.parametrize("mode", ["raise", "keep"])
def test_an_interrupt_after_the_last_step_finds_a_whole_model(mode: str) -> None:
    model = SVC(on_interrupt=mode)
    if mode == "raise":
        with pytest.raises(KeyboardInterrupt):
            strike_in(model, "from_amounts")
    else:
        with pytest.warns(ConvergenceWarning, match="after the last step of the solver; the model is complete"):
            strike_in(model, "from_amounts")
    assert model.certificate_.stop_reason == "converged"
    np.testing.assert_array_equal(model.decision_function(X), SVC().fit(X, y).decision_function(X))


def test_a_cross_validation_that_was_interrupted_is_not_fitted() -> None:
    model = LinearSVCCV(Cs=[0.1, 1], cv=2)
    with pytest.raises(KeyboardInterrupt):
        strike_in(model, "solve_linear")
    with pytest.raises(NotFittedError):
        model.predict(X)
    model.fit(X, y)
    before = model.coef_
    with pytest.raises(KeyboardInterrupt):
        strike_in(model.set_params(Cs=[10.0]), "solve_linear")
    np.testing.assert_array_equal(model.coef_, before)


def test_a_search_keeps_its_results_when_the_refit_is_interrupted() -> None:
    search = SVCCV(Cs=[0.1, 1], gammas=[0.1], cv=2)
    with pytest.raises(KeyboardInterrupt):
        strike_in(search, "run_fit")
    assert search.best_params_["C"] in (0.1, 1.0)
    assert search.best_estimator_.certificate_.stop_reason in ("interrupted", "converged")
    assert search.predict(X).shape == y.shape


def interrupted_twice(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    ctrl_c()
    ctrl_c()
    return np.asarray(A @ B.T)


def test_a_second_interrupt_is_raised_at_once_and_leaves_the_old_model() -> None:
    model = SVC().fit(X, y)
    before = model.decision_function(X)
    model.set_params(C=5.0, kernel=interrupted_twice, on_interrupt="keep")
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    model.set_params(kernel="rbf")
    np.testing.assert_array_equal(model.decision_function(X), before)


def test_handlers_of_the_caller_are_called_at_once() -> None:
    heard: list[int] = []
    signal.signal(signal.SIGINT, lambda number, frame: heard.append(number))
    with deferred():
        ctrl_c()
        assert heard == [signal.SIGINT]
        poll()  # it raised nothing
    assert SVC().fit(X, y).certificate_.optimal

    def ends(number: int, frame: Any) -> None:
        raise TimeoutError("enough")

    signal.signal(signal.SIGINT, ends)
    with pytest.raises(TimeoutError, match="enough"), deferred():
        ctrl_c()
    assert signal.getsignal(signal.SIGINT) is ends
    signal.signal(signal.SIGINT, signal.default_int_handler)


def test_an_ignored_signal_stays_ignored() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with deferred():
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
        ctrl_c()
    signal.signal(signal.SIGINT, signal.default_int_handler)


def test_other_threads_change_nothing() -> None:
    found: list[Any] = []

    def look() -> None:
        with deferred(), allowed():
            poll()
            found.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert found == [signal.default_int_handler]


def test_an_inner_block_leaves_what_waits_to_the_outer() -> None:
    passed = []

    def outer() -> None:
        with deferred():
            with deferred(keep=True):
                ctrl_c()
            passed.append(True)

    with pytest.raises(KeyboardInterrupt):
        outer()
    assert passed
    with deferred() as waiting:
        ctrl_c()
        assert isinstance(waiting.take(), KeyboardInterrupt)


def test_what_waits_is_raised_where_interrupts_are_allowed() -> None:
    @deferred()
    def wait() -> None:
        ctrl_c()
        with allowed():
            pytest.fail("the interrupt still waits")

    with pytest.raises(KeyboardInterrupt):
        wait()


def test_an_interrupt_beats_a_refusal() -> None:
    @deferred()
    def refuse() -> None:
        ctrl_c()
        raise ValueError("C=-1")

    with pytest.raises(KeyboardInterrupt):
        refuse()


@pytest.mark.parametrize("moment", range(1, 40))
def test_interrupts_at_the_edges_leave_no_handler_behind(moment: int) -> None:
    gc.disable()  # an interrupt within another's callback of the collector would be lost there
    try:
        with striking(Striker(moment)), deferred():
            pass
    except KeyboardInterrupt:
        pass
    finally:
        gc.enable()
    with deferred() as waiting:
        ctrl_c()
        assert waiting.take() is not None


def test_processes_that_are_asked_to_end_do() -> None:
    sent, broken = term_storm(30, seed=1)
    assert (sent, broken) == (30, [])
