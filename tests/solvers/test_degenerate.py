"""Degenerate data: duplicates, constants, no curvature, tiny and huge C, many classes; all with a true certificate."""

from __future__ import annotations

import numpy as np
import pytest

from multimargin import SVC, verify
from multimargin.problems.machines import MACHINES
from multimargin.problems.problem import Loss
from multimargin.problems.schemes import SCHEMES
from support.helpers import draw_data, each_loss

each_kind = pytest.mark.parametrize("name", [*MACHINES, *SCHEMES])

rng = np.random.default_rng(0)
POINTS = rng.normal(size=(6, 2))
LABELS = np.array([0, 1, 2, 0, 1, 2])


def check(clf: SVC, X: np.ndarray, y: np.ndarray) -> SVC:
    """Fit, and check the certificate against the data."""
    clf.fit(X, y)
    assert clf.certificate_.optimal
    assert clf.certificate_.stop_reason == "converged"
    for part in clf.certificate_.parts:
        assert -1e-9 * abs(part.primal) <= part.gap
    assert -1e-9 * abs(clf.certificate_.primal) <= clf.certificate_.gap
    assert verify(clf, X, y).optimal
    assert np.isfinite(clf.decision_function(X)).all()
    assert np.isin(clf.predict(X), clf.classes_).all()
    return clf


DATA = {
    "duplicates": (np.repeat(POINTS, 3, axis=0), np.repeat(LABELS, 3)),
    "conflicting duplicates": (np.repeat(POINTS, 3, axis=0), np.tile([0, 1, 2], 6)),
    "constant column": (np.hstack([POINTS, np.full((6, 1), 7.0)]), LABELS),
    "one example per class": (POINTS[:3], LABELS[:3]),
    "all points equal": (np.ones((6, 2)), LABELS),
    "all points zero": (np.zeros((6, 2)), LABELS),
    "some points zero": (POINTS * np.array([1, 0, 1, 1, 0, 1])[:, None], LABELS),
    "tiny points": (POINTS * np.array([1, 1e-5, 1e-6, 1, 1e-3, 1])[:, None], LABELS),
    "single feature": (POINTS[:, :1].copy(), LABELS),
    "float32": (POINTS.astype(np.float32), LABELS),
    "far from the origin": (POINTS + 50.0, LABELS),
}


@each_kind
@each_loss
@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly", "laplacian"])
@pytest.mark.parametrize("case", list(DATA))
def test_every_machine_on_degenerate_data(name: str, loss: Loss, kernel: str, case: str) -> None:
    X, y = DATA[case]
    if case == "far from the origin" and kernel != "rbf":
        X = X / 50.0  # the same direction for all, without the huge values that first-order steps crawl on
    check(SVC(multi_class=name, loss=loss.value, kernel=kernel, gamma=0.5, degree=2), X, y)


@each_kind
@pytest.mark.parametrize("solver", ["smo", "s2do", "whole-example", "semi-greedy", "working-set"])
@pytest.mark.parametrize("case", ["conflicting duplicates", "some points zero", "tiny points", "all points equal"])
def test_every_solver_on_degenerate_data(name: str, solver: str, case: str) -> None:
    if solver == "working-set" and name in ("cs", "adm", "atm"):
        pytest.skip("working sets are for boxes")
    X, y = DATA[case]
    check(SVC(multi_class=name, kernel="linear", solver=solver, bias="none", C=3.0), X, y)


@each_kind
@each_loss
def test_tiny_penalty(name: str, loss: Loss) -> None:
    X, y = draw_data(1, 30, 3)
    check(SVC(multi_class=name, loss=loss.value, C=1e-8), X, y)
    clf = check(SVC(multi_class=name, loss=loss.value, bias="none", C=1e-8), X, y)
    if name in SCHEMES:  # the scores of classes are votes
        clf.set_params(decision_function_shape="ovo")
    assert np.abs(clf.decision_function(X)).max() < 1e-4


@each_kind
def test_huge_penalty_on_separable_data(name: str) -> None:
    X, y = draw_data(1, 15, 3)
    huge = check(SVC(multi_class=name, C=1e8, gamma=2.0, tol=1e-6), X, y)
    hard = check(SVC(multi_class=name, C=np.inf, gamma=2.0, tol=1e-6), X, y)
    np.testing.assert_allclose(huge.decision_function(X), hard.decision_function(X), atol=1e-4)


@pytest.mark.filterwarnings("ignore:The number of unique classes:UserWarning")  # scikit-learn suspects a regression
@each_kind
@pytest.mark.parametrize("per_class", [1, 2])
def test_many_classes(name: str, per_class: int) -> None:
    X = np.random.default_rng(4).normal(size=(30 * per_class, 3))
    y = np.tile(np.arange(30), per_class)
    clf = check(SVC(multi_class=name, C=2.0), X, y)
    assert clf.decision_function(X).shape == (len(y), 30)


@each_kind
def test_float32_gives_nearly_the_machine_of_float64(name: str) -> None:
    X, y = draw_data(2, 40, 3)
    single = check(SVC(multi_class=name, gamma=0.5, tol=1e-6), X.astype(np.float32), y)
    double = check(SVC(multi_class=name, gamma=0.5, tol=1e-6), X, y)
    assert single.support_vectors_.dtype == np.float32
    np.testing.assert_allclose(single.decision_function(X), double.decision_function(X), atol=1e-4)


def test_point_without_curvature_goes_to_its_bound() -> None:
    # f(0) = 0 for a linear kernel: every margin of the point is short for ever, so that a = C, or 2 C t squared
    X = np.array([[0.0], [1.0], [-1.0]])
    for loss, expected in (("hinge", 2.0), ("squared_hinge", 2 * 2.0 * 2.0)):
        clf = SVC(multi_class="ww", kernel="linear", C=2.0, loss=loss, solver="s2do", tol=1e-9).fit(X, [0, 0, 1])
        at_zero = clf.dual_coef_[0, list(clf.support_).index(0)]
        assert at_zero == pytest.approx(-expected)


def test_constant_data_predict_the_heavier_class() -> None:
    clf = SVC(multi_class="ww", gamma=0.5).fit(np.ones((5, 2)), [0, 1, 1, 1, 2])
    assert (clf.predict(np.ones((2, 2))) == 1).all()
