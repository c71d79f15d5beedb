"""Stopping a fit with calibration: the machine on all rows is complete, with probabilities or without."""

from __future__ import annotations

import os
import signal
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from multimargin import SVC, Progress, verify
from multimargin._typing import FloatArray, IntArray
from multimargin.fitting import calibrated
from support.helpers import noisy_classes as noisy


class InFolds:
    """Acts at the first moment within a fold; there must be one."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, action: Any) -> None:
        self.action, self.in_folds, self.moments = action, False, 0
        monkeypatch.setattr(calibrated, "kernel_fit", self.noticing(calibrated.__dict__["kernel_fit"]))

    def noticing(self, call: Any) -> Any:
        def noticed(*args: Any) -> Any:
            self.in_folds = True
            return call(*args)

        return noticed

    def __call__(self, progress: Progress) -> bool:
        if not self.in_folds:
            return False
        self.moments += 1
        return bool(self.action())


def test_a_fold_that_does_not_converge_warns_once() -> None:
    X, y = noisy()
    clf = SVC(calibration="sigmoid", multi_class="ww", solver="s2do", warm_start=True).fit(X, y)
    clf.set_params(max_iter=1)  # the whole machine is at its solution already
    with pytest.warns(
        ConvergenceWarning, match=r"^Solver terminated .* A model of the calibration ended early"
    ) as caught:
        clf.fit(X, y)
    assert len(caught) == 1
    assert clf.certificate_.stop_reason == "converged"
    np.testing.assert_allclose(clf.predict_proba(X).sum(axis=1), 1)
    clf.set_params(warm_start=False)
    with pytest.warns(ConvergenceWarning, match=r"^Solver terminated .* The fit ended early \(max_iter\)") as caught:
        clf.fit(X, y)
    assert len(caught) == 1
    assert str(caught[0].message).count("ended early") == 1


@pytest.mark.parametrize("machine", ["ovo", "ww"])
def test_max_time_is_for_all_together(machine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without time nothing is calibrated; folds that ran out of time are used, with a warning."""
    X, y = noisy(500, 4)
    clf = slow(machine, max_time=1e-3)
    with pytest.warns(ConvergenceWarning, match=r"The fit ended early \(max_time\).*probabilities are missing.*raise"):
        clf.fit(X, y)
    assert not hasattr(clf, "predict_proba")
    clf.set_params(max_time=600).fit(X, y)
    expected = clf.predict_proba(X)
    np.testing.assert_array_equal(slow(machine).fit(X, y).predict_proba(X), expected)
    given: list[float] = []
    original = calibrated.__dict__["kernel_fit"]

    def hurry(params: dict[str, Any], *rest: Any) -> Any:
        given.append(params["max_time"])
        return original(params | {"max_time": 1e-9}, *rest)

    monkeypatch.setattr(calibrated, "kernel_fit", hurry)
    with pytest.warns(ConvergenceWarning, match=r"^A model of the calibration ended early \(max_time\)"):
        clf.fit(X, y)
    assert clf.predict_proba(X).shape == (500, 4)
    np.testing.assert_allclose(given, 600 / np.array([5, 4, 3, 2, 1]), rtol=0.1)


def ctrl_c() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def slow(machine: str, **params: Any) -> SVC:
    """Return a machine whose folds take some hundred milliseconds, as seen by its callback."""
    return SVC(multi_class=machine, C=1e4, gamma=0.1, calibration="sigmoid", **params)


each_way = pytest.mark.parametrize("machine", ["ovo", "ww"])
# A fold must outlast the 50 ms from one call of the watcher to the next, on a fast machine too.
ROWS = {"ovo": 2400, "ww": 1200}


def assert_whole_without_probabilities(clf: SVC, X: FloatArray, y: IntArray) -> None:
    assert clf.certificate_.stop_reason == "converged"
    assert verify(clf, X, y).optimal
    assert not hasattr(clf, "predict_proba")
    assert clf.predict(X).shape == y.shape


@each_way
def test_ctrl_c_in_a_fold_raises(machine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = noisy(ROWS[machine], 4)
    clf = slow(machine, on_progress=InFolds(monkeypatch, ctrl_c))
    with pytest.raises(KeyboardInterrupt):
        clf.fit(X, y)
    assert_whole_without_probabilities(clf, X, y)


@each_way
def test_ctrl_c_in_a_fold_keeps(machine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = noisy(ROWS[machine], 4)
    clf = slow(machine, on_progress=InFolds(monkeypatch, ctrl_c), on_interrupt="keep")
    with pytest.warns(ConvergenceWarning, match=r"not finished \(interrupted\), so that probabilities are missing"):
        clf.fit(X, y)
    assert_whole_without_probabilities(clf, X, y)


def test_ctrl_c_between_two_folds(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = noisy()
    monkeypatch.setattr(calibrated, "fit_calibrator", lambda *_: ctrl_c())
    clf = SVC(calibration="sigmoid")
    with pytest.raises(KeyboardInterrupt):
        clf.fit(X, y)
    assert_whole_without_probabilities(clf, X, y)


@each_way
def test_callback_ends_the_folds(machine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = noisy(ROWS[machine], 4)
    on_progress = InFolds(monkeypatch, lambda: True)
    clf = slow(machine, on_progress=on_progress)
    with pytest.warns(ConvergenceWarning, match=r"not finished \(callback\), so that probabilities are missing"):
        clf.fit(X, y)
    assert on_progress.moments == 1
    assert_whole_without_probabilities(clf, X, y)
