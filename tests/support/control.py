"""Helpers of tests that stop a fit: slow data, Ctrl-C, and checks of the model afterwards."""

from __future__ import annotations

import os
import signal
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning

from multimargin import SVC, Progress, verify
from multimargin.solvers.certificate import Certificate


def slow_data() -> tuple[np.ndarray, np.ndarray]:
    """Noisy labels and a huge C: millions of steps from the optimum."""
    X, y = make_classification(1500, 12, n_informative=6, n_classes=4, flip_y=0.3, class_sep=0.3, random_state=0)
    return X, y


@contextmanager
def ctrl_c_after(seconds: float) -> Iterator[None]:
    timer = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def assert_usable(clf: SVC, X: np.ndarray, y: np.ndarray) -> list[tuple[Certificate, Certificate]]:
    """The model predicts, its point is feasible, and no certificate says more than is true.

    Returns the fit's certificate and the true one: of a machine made of several problems, those of each.
    """
    assert np.isfinite(clf.decision_function(X)).all()
    own, true = clf.certificate_, verify(clf, X, y)
    pairs = list(zip(own.parts or (own,), true.parts or (true,), strict=True))
    for mine, found in pairs:
        assert np.isfinite(found.kkt_violation)
        assert found.gap >= -1e-9 * abs(found.primal)
        if mine.verified:  # atm: of all a with the same scores the best one is recovered
            assert found.dual >= mine.dual - 1e-6 * abs(mine.dual)
        else:
            assert "solver's own" in mine.remark
    return pairs


def assert_failing_callback_keeps_the_model(clf: SVC, X: np.ndarray, y: np.ndarray, **slow: object) -> None:
    """Where on_progress raises, the error reaches the caller, and the model of the fit before stays."""
    clf.fit(X, y)
    before = clf.decision_function(X)

    def fails(progress: Progress) -> bool:
        raise RuntimeError("no space left")

    clf.set_params(C=1e6, gamma=0.01, on_progress=fails, **slow)
    with pytest.raises(RuntimeError, match="no space left"):
        clf.fit(X, y)
    np.testing.assert_array_equal(clf.decision_function(X), before)


def fit_in_pieces(clf: SVC, X: np.ndarray, y: np.ndarray) -> SVC:
    """Return a machine with warm_start and max_iter, fitted again and again until it has converged."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for _ in range(200):
            clf.fit(X, y)
            if clf.fit_status_ == 0:
                break
    assert clf.certificate_.stop_reason == "converged"
    return clf
