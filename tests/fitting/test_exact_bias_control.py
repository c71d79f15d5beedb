"""Stopping a fit with an exact bias: the point is feasible, sums of beta included, and the certificate is true."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning

from multimargin import SVC, Progress, verify
from support import control
from support.control import ctrl_c_after
from support.helpers import draw_data


def slow(**params: Any) -> SVC:
    return SVC(**{"multi_class": "ww", "C": 1e6, "gamma": 0.01, "bias": "exact", **params})


def assert_usable(clf: SVC, X: np.ndarray, y: np.ndarray) -> None:
    ((own, true),) = control.assert_usable(clf, X, y)
    if own.verified:
        assert true.primal == pytest.approx(own.primal, rel=1e-6)
    else:
        assert np.isnan(own.dual)


@pytest.mark.parametrize("solver", ["smo", "s2do", "semi-greedy", "two-level"])
@pytest.mark.parametrize("machine", ["ww", "cs", "llw", "atm"])
def test_max_iter(slow_data: tuple[np.ndarray, np.ndarray], machine: str, solver: str) -> None:
    X, y = slow_data
    clf = slow(multi_class=machine, solver=solver, max_iter=7)
    with pytest.warns(ConvergenceWarning, match=r"ended early \(max_iter\) after 7 steps.*raise max_iter"):
        clf.fit(X, y)
    assert (clf.certificate_.stop_reason, clf.certificate_.verified, clf.fit_status_) == ("max_iter", True, 1)
    assert_usable(clf, X, y)


def test_max_iter_counts_the_steps_of_all_rounds() -> None:
    X, y = draw_data(4, 200, 3)
    whole = SVC(multi_class="ww", C=10.0, solver="s2do", bias="exact", tol=1e-5).fit(X, y)
    steps = int(0.7 * whole.n_iter_[0])
    clf = SVC(multi_class="ww", C=10.0, solver="s2do", bias="exact", tol=1e-5, max_iter=steps)
    with pytest.warns(ConvergenceWarning, match=r"\(max_iter\)"):
        clf.fit(X, y)
    assert clf.n_iter_[0] == steps
    assert_usable(clf, X, y)


def test_max_time(slow_data: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = slow_data
    clf = slow(max_time=0.3)
    with pytest.warns(ConvergenceWarning, match=r"ended early \(max_time\)"):
        clf.fit(X, y)
    assert clf.certificate_.stop_reason == "max_time"
    assert_usable(clf, X, y)


def test_a_limit_that_is_not_needed_changes_nothing(slow_data: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = slow_data
    free = SVC(multi_class="ww", bias="exact").fit(X, y)
    limited = SVC(multi_class="ww", bias="exact", max_time=3600, max_iter=10**9).fit(X, y)
    np.testing.assert_array_equal(free.dual_coef_, limited.dual_coef_)
    np.testing.assert_array_equal(free.intercept_, limited.intercept_)


def test_callback_stops(slow_data: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = slow_data
    seen: list[Progress] = []

    def on_progress(progress: Progress) -> bool:
        seen.append(progress)
        return len(seen) == 4

    clf = slow(on_progress=on_progress)
    with pytest.warns(ConvergenceWarning, match=r"ended early \(callback\)"):
        clf.fit(X, y)
    assert (clf.certificate_.stop_reason, len(seen)) == ("callback", 4)
    assert_usable(clf, X, y)


def test_progress_goes_on_from_round_to_round() -> None:
    X, y = make_classification(600, 8, n_informative=5, n_classes=4, flip_y=0.2, random_state=1)
    seen: list[Progress] = []
    clf = SVC(multi_class="ww", C=100.0, bias="exact", solver="s2do", on_progress=seen.append).fit(X, y)
    assert len(seen) > 2
    for earlier, later in itertools.pairwise(seen):
        assert later.iteration >= earlier.iteration
        assert later.seconds > earlier.seconds
        assert later.kernel_rows >= earlier.kernel_rows
    assert seen[-1].iteration <= clf.n_iter_[0]


def test_ctrl_c(slow_data: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = slow_data
    clf = slow()
    with pytest.raises(KeyboardInterrupt), ctrl_c_after(0.3):
        clf.fit(X, y)
    assert clf.certificate_.stop_reason == "interrupted"
    assert_usable(clf, X, y)
    clf = slow(on_interrupt="keep")
    with pytest.warns(ConvergenceWarning, match=r"\(interrupted\)"), ctrl_c_after(0.3):
        clf.fit(X, y)
    assert_usable(clf, X, y)


def test_ctrl_c_between_two_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = draw_data(4, 200, 3)

    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("multimargin.solvers.proximal_bias._Rounds._adapt", interrupted)
    clf = SVC(multi_class="ww", C=10.0, solver="s2do", bias="exact", on_interrupt="keep")
    with pytest.warns(ConvergenceWarning, match=r"\(interrupted\)"):
        clf.fit(X, y)
    assert_usable(clf, X, y)


def test_stall_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = draw_data(4, 200, 3)
    monkeypatch.setattr("multimargin.solvers.proximal_bias.MAX_ROUNDS", 2)
    clf = SVC(multi_class="ww", C=10.0, solver="s2do", bias="exact", tol=1e-6)
    with pytest.warns(ConvergenceWarning, match=r"ended early \(stalled\)"):
        clf.fit(X, y)
    assert (clf.certificate_.stop_reason, clf.certificate_.verified, clf.certificate_.optimal) == (
        "stalled",
        True,
        False,
    )
    assert_usable(clf, X, y)


def test_failing_callback_leaves_the_old_model(slow_data: tuple[np.ndarray, np.ndarray]) -> None:
    control.assert_failing_callback_keeps_the_model(SVC(multi_class="ww", bias="exact"), *slow_data)


def test_stopped_fits_go_on() -> None:
    X, y = make_classification(300, 8, n_informative=5, n_classes=3, random_state=1)
    whole = SVC(multi_class="ww", solver="s2do", tol=1e-5, bias="exact").fit(X, y)
    clf = SVC(multi_class="ww", solver="s2do", tol=1e-5, bias="exact", warm_start=True, max_iter=200)
    control.fit_in_pieces(clf, X, y)
    np.testing.assert_allclose(clf.certificate_.dual, whole.certificate_.dual, rtol=1e-6)


@pytest.mark.parametrize("machine", ["ww", "cs", "adm"])
def test_warm_start(machine: str) -> None:
    X, y = make_classification(300, 8, n_informative=5, n_classes=3, flip_y=0.1, random_state=1)
    clf = SVC(multi_class=machine, warm_start=True, tol=1e-5, bias="exact", solver="s2do").fit(X, y)
    first = int(clf.n_iter_[0])
    clf.fit(X, y)
    assert clf.n_iter_[0] < first / 10
    for change in ({"C": 10.0}, {"bias": "none"}, {"C": 0.3, "bias": "exact"}):
        clf.set_params(**change).fit(X, y)
        cold = SVC(multi_class=machine, tol=1e-5, C=clf.C, bias=clf.bias).fit(X, y)
        np.testing.assert_allclose(clf.certificate_.dual, cold.certificate_.dual, rtol=1e-6)
        assert verify(clf, X, y).optimal


def test_same_bits_for_any_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = make_classification(900, 8, n_informative=5, n_classes=4, flip_y=0.1, random_state=1)
    found = []
    for n in (1, 2):
        monkeypatch.setattr("multimargin.fitting.machine.n_threads", lambda n=n: n)
        clf = SVC(multi_class="ww", C=10.0, bias="exact").fit(X, y)
        found.append((clf.dual_coef_, clf.intercept_))
    for one, two in zip(*found, strict=True):
        np.testing.assert_array_equal(one, two)
