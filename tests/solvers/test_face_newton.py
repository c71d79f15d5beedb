"""Overlapping classes, where steps on examples crawl: pairs of classes, then Newton's method on what may move."""

from __future__ import annotations

import os
import re
import signal
import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from multimargin import SVC, Progress, verify
from multimargin.datasets import overlapping

REASON = r"steps on examples were slow: \d+ problems between two classes, then \d+ steps of Newton's method"
X, Y = overlapping(1200, n_classes=28, n_features=5, random_state=0)
X /= np.abs(X).max(axis=0)


def estimator(**params: Any) -> SVC:
    return SVC(**{"multi_class": "ww", "C": 16.0, "gamma": 1.0, **params})


@pytest.fixture(scope="module")
def fitted() -> SVC:
    return estimator().fit(X, Y)


def test_converges_and_says_how(fitted: SVC) -> None:
    certificate = fitted.certificate_
    assert certificate.stop_reason == "converged"
    assert certificate.verified
    assert verify(fitted, X, Y).optimal
    assert re.search(REASON, certificate.solver_reason)


def test_the_optimum_is_that_of_other_solvers(fitted: SVC) -> None:
    reference = estimator(solver="s2do", tol=1e-2).fit(X, Y)
    assert "Newton" not in reference.certificate_.solver_reason
    assert fitted.certificate_.dual <= reference.certificate_.primal
    assert reference.certificate_.dual <= fitted.certificate_.primal
    np.testing.assert_allclose(fitted.certificate_.dual, reference.certificate_.dual, rtol=1e-4)


def test_weights_and_a_small_tolerance() -> None:
    weights = np.random.default_rng(1).uniform(0.5, 2.0, len(Y))
    near = estimator(tol=1e-5).fit(X, Y, sample_weight=weights)
    far = estimator().fit(X, Y, sample_weight=weights)
    for clf in (near, far):
        assert verify(clf, X, Y, sample_weight=weights).optimal
    assert "problems between two classes" in far.certificate_.solver_reason
    np.testing.assert_allclose(far.certificate_.dual, near.certificate_.dual, rtol=1e-5)


def test_bits_do_not_depend_on_threads(fitted: SVC) -> None:
    with threadpool_limits(1):
        alone = estimator().fit(X, Y)
    np.testing.assert_array_equal(alone.dual_coef_, fitted.dual_coef_)
    assert alone.n_iter_.tolist() == fitted.n_iter_.tolist()


@pytest.mark.parametrize("share", [0.5, 0.97, 0.999])
def test_max_iter_is_kept_in_every_part(fitted: SVC, share: float) -> None:
    limit = int(share * fitted.n_iter_[0])
    clf = estimator(max_iter=limit)
    with pytest.warns(ConvergenceWarning, match=r"ended early \(max_iter\)"):
        clf.fit(X, Y)
    assert clf.n_iter_[0] == limit
    assert_feasible(clf)


@pytest.mark.parametrize("share", [0.5, 0.97, 0.999])
def test_callback_and_interrupt_leave_a_usable_model(fitted: SVC, share: float) -> None:
    last = int(share * fitted.n_iter_[0])
    clf = estimator(on_progress=lambda progress: progress.iteration > last)
    with pytest.warns(ConvergenceWarning, match=r"ended early \(callback\)"):
        clf.fit(X, Y)
    assert_feasible(clf)

    def interrupt(progress: Progress) -> None:
        if progress.iteration > last:
            os.kill(os.getpid(), signal.SIGINT)

    clf = estimator(on_progress=interrupt)
    with pytest.raises(KeyboardInterrupt):
        clf.fit(X, Y)
    assert clf.certificate_.stop_reason == "interrupted"
    assert_feasible(clf)


@pytest.mark.parametrize("seconds", [0.02, 0.1, 0.3, 0.6])
def test_max_time_leaves_a_usable_model(seconds: float) -> None:
    clf = estimator(max_time=seconds)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        clf.fit(X, Y)
    assert clf.certificate_.stop_reason in ("max_time", "converged")
    assert_feasible(clf)


def assert_feasible(clf: SVC) -> None:
    """Verify recovers the variables and finds the dual that the certificate tells."""
    truth = verify(clf, X, Y)
    assert np.isfinite(clf.decision_function(X)).all()
    np.testing.assert_allclose(clf.certificate_.dual, truth.dual, rtol=1e-3)
