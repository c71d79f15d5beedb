"""Calibration: likelihoods that other solvers do not improve, scikit-learn's probabilities, and weights as
repetitions."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import minimize
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.isotonic import IsotonicRegression
from threadpoolctl import threadpool_limits

from multimargin import SVC
from multimargin.models.calibration import (
    KINDS,
    Calibrator,
    Isotonic,
    OneVsRestCalibrator,
    Sigmoid,
    fit_calibrator,
    fit_isotonic,
    fit_sigmoid,
    folds_for_calibration,
)

Array = NDArray[np.float64]
Codes = NDArray[np.int64]
each_kind = pytest.mark.parametrize("kind", KINDS)


@st.composite
def binary_scores(draw: st.DrawFn) -> tuple[Array, NDArray[np.bool_], Array]:
    """Scores at many scales and places, that rank well, perfectly, not at all, or the wrong way."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n = draw(st.integers(4, 200))
    positive = rng.uniform(size=n) < draw(st.sampled_from([0.1, 0.5]))
    positive[:2] = [True, False]
    scores = rng.normal(size=n) + draw(st.sampled_from([-2.0, 0.0, 1.0, 3.0, 20.0])) * positive
    if draw(st.booleans()):
        scores[0] *= 1e3  # an outlier, on either side
    scores = (scores + draw(st.sampled_from([0.0, 50.0]))) * draw(st.sampled_from([1e-4, 1.0, 1e5]))
    weight = rng.uniform(0.1, 5, size=n) if draw(st.booleans()) else np.ones(n)
    return scores, positive, weight


def platt_targets(positive: NDArray[np.bool_], weight: Array) -> Array:
    n_positive, n_negative = weight[positive].sum(), weight[~positive].sum()
    target: Array = np.where(positive, (n_positive + 1) / (n_positive + 2), 1 / (n_negative + 2))
    return target


def negative_log_likelihood(line: Array, scores: Array, target: Array, weight: Array) -> float:
    logit = line[0] * scores + line[1]
    return float(weight @ (target * np.logaddexp(0, -logit) + (1 - target) * np.logaddexp(0, logit)))


@given(case=binary_scores())
def test_sigmoid_is_the_most_likely_one_of_slope_at_least_zero(
    case: tuple[Array, NDArray[np.bool_], Array],
) -> None:
    scores, positive, weight = case
    target = platt_targets(positive, weight)
    found = fit_sigmoid(scores, positive, weight)
    reached = negative_log_likelihood(np.array([found.slope, found.offset]), scores, target, weight)
    # An independent solver, on scores of zero mean and unit variance.
    scaled = (scores - scores.mean()) / scores.std()
    rival = minimize(
        negative_log_likelihood,
        x0=np.zeros(2),
        args=(scaled, target, weight),
        method="L-BFGS-B",
        bounds=[(0, None), (None, None)],
        options={"ftol": 1e-15, "gtol": 1e-9},
    )
    assert reached <= rival.fun + 1e-6
    # The optimality conditions of a convex problem prove the rest: derivatives 0, or slope 0 and no gain in raising it.
    residual = weight * (found(scores) - target)
    assert abs(residual.sum()) <= 1e-7 * weight.sum()
    by_slope = residual @ scaled
    assert by_slope >= -1e-7 * weight.sum()
    assert found.slope == 0 or by_slope <= 1e-7 * weight.sum()


def test_sigmoid_that_would_fall_is_constant_at_the_mean_target() -> None:
    scores, positive = np.array([3.0, 2.0, 1.0, 0.0, -1.0]), np.array([False, False, False, True, True])
    weight = np.array([1.0, 2.0, 1.0, 1.0, 3.0])
    found = fit_sigmoid(scores, positive, weight)
    assert found.slope == 0
    expected = (4 * (5 / 6) + 4 * (1 / 6)) / 8
    np.testing.assert_allclose(found(np.array([-1e300, 0.0, 1e300])), expected, rtol=1e-14)


@pytest.mark.parametrize("value", [0.0, 0.1, -1e6])
def test_sigmoid_of_equal_scores_is_constant(value: float) -> None:
    positive = np.array([True, False, False, True, True, False, False])
    found = fit_sigmoid(np.full(7, value), positive, np.ones(7))
    assert found.slope == 0
    assert found(np.array([value]))[0] == pytest.approx(platt_targets(positive, np.ones(7)).mean(), rel=1e-14)


def test_sigmoid_of_two_distinct_scores_meets_the_targets() -> None:
    """With one score for each side the curve can, and so must, go through both targets."""
    scores, positive = np.repeat([-1e4, 2e4], [10**5, 30]), np.repeat([False, True], [10**5, 30])
    found = fit_sigmoid(scores, positive, np.ones(len(scores)))
    np.testing.assert_allclose(found(scores), platt_targets(positive, np.ones(len(scores))), rtol=1e-6)


def test_sigmoid_does_not_overflow() -> None:
    found = Sigmoid(1.0, 0.0)(np.array([-1e9, 0.0, 1e9]))  # a warning would be an error
    np.testing.assert_array_equal(found, [0.0, 0.5, 1.0])


def test_sigmoid_has_the_same_bits_for_any_number_of_threads() -> None:
    rng = np.random.default_rng(0)
    positive = rng.uniform(size=100_003) < 0.3
    scores = rng.normal(size=len(positive)) + positive
    found = set()
    for threads in (1, 2, 3):
        with threadpool_limits(threads):
            found.add(fit_sigmoid(scores, positive, np.ones(len(positive))))
    assert len(found) == 1


@given(case=binary_scores())
def test_isotonic_is_that_of_scikit_learn(case: tuple[Array, NDArray[np.bool_], Array]) -> None:
    scores, positive, weight = case
    theirs = IsotonicRegression(out_of_bounds="clip").fit(scores, positive.astype(float), weight)
    asked = np.concatenate([scores, np.linspace(scores.min() - 1, scores.max() + 1, 50)])
    # Between close knots the order of the operations shows.
    ours = fit_isotonic(scores, positive, weight)(asked)
    np.testing.assert_allclose(ours, theirs.predict(asked), rtol=0, atol=1e-9)
    assert (np.diff(ours[np.argsort(asked)]) >= -1e-15).all()


def draw_scores(kind: str, n_classes: int, n: int = 150, seed: int = 0) -> tuple[Array, Codes, Array]:
    """Return scores in the form for ``kind``, codes, and weights 1, 2, 3."""
    rng = np.random.default_rng(seed)
    codes = np.append(np.arange(n_classes), rng.integers(n_classes, size=n - n_classes))
    weight = rng.integers(1, 4, size=n).astype(float)
    by_class = rng.normal(size=(n, n_classes)) + 1.5 * np.eye(n_classes)[codes]
    if kind == "coupling":
        i, j = np.triu_indices(n_classes, 1)
        return by_class[:, i] - by_class[:, j] + 0.3 * rng.normal(size=(n, len(i))), codes, weight
    return by_class[:, 1] - by_class[:, 0] if n_classes == 2 else by_class, codes, weight


class GivenScores(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier whose scores are its data."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> GivenScores:
        self.classes_ = np.unique(y)
        return self

    def decision_function(self, X: Any) -> Any:
        return X[:, 0] if len(self.classes_) == 2 else X

    def predict(self, X: Any) -> Any:  # scikit-learn checks that it exists
        raise NotImplementedError


@pytest.mark.parametrize("kind", ["sigmoid", "isotonic"])
@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_probabilities_are_those_of_scikit_learn(kind: str, n_classes: int) -> None:
    scores, codes, weight = draw_scores(kind, n_classes)
    asked, _, _ = draw_scores(kind, n_classes, seed=1)
    asked = 3 * asked  # some beyond all scores seen
    found = fit_calibrator(kind, scores, codes, weight, n_classes).probabilities(asked)
    X = scores.reshape(len(scores), -1)
    theirs = CalibratedClassifierCV(GivenScores(), method=kind, ensemble=False).fit(X, codes, sample_weight=weight)
    expected = theirs.predict_proba(asked.reshape(len(asked), -1))
    # scikit-learn maximises the likelihood to a gradient of 1e-6 only.
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5 if kind == "sigmoid" else 1e-12)


def test_uniform_where_every_curve_says_zero() -> None:
    curve = Isotonic((0.0, 1.0), (0.0, 1.0))
    found = OneVsRestCalibrator((curve, curve, curve)).probabilities(np.array([[-1.0, -2.0, 0.0], [0.5, 0.25, -1.0]]))
    np.testing.assert_allclose(found, [[1 / 3, 1 / 3, 1 / 3], [2 / 3, 1 / 3, 0]], rtol=1e-15)


@each_kind
@pytest.mark.parametrize("n_classes", [2, 4])
def test_rows_are_distributions_and_the_right_class_gains(kind: str, n_classes: int) -> None:
    scores, codes, weight = draw_scores(kind, n_classes)
    p = fit_calibrator(kind, scores, codes, weight, n_classes).probabilities(scores)
    assert p.shape == (len(scores), n_classes)
    assert (p >= 0).all()
    np.testing.assert_allclose(p.sum(axis=1), 1, rtol=0, atol=1e-14)
    # A curve of maximum likelihood has the mean of its targets; turned signs or columns would miss the class.
    for code in range(n_classes):
        assert p[codes == code, code].mean() > p[codes != code, code].mean() + 0.2


def test_coupling_of_two_classes_is_the_sigmoid_of_the_negated_score() -> None:
    scores, codes, weight = draw_scores("sigmoid", 2)
    sigmoid = fit_calibrator("sigmoid", scores, codes, weight, 2)
    coupling = fit_calibrator("coupling", -scores[:, None], codes, weight, 2)
    np.testing.assert_allclose(
        coupling.probabilities(-scores[:, None]), sigmoid.probabilities(scores), rtol=0, atol=1e-12
    )


def test_a_pair_is_fitted_on_its_own_two_classes() -> None:
    scores, codes, weight = draw_scores("coupling", 4)
    before = fit_calibrator("coupling", scores, codes, weight, 4)
    i, j = np.triu_indices(4, 1)
    strangers = (codes[:, None] != i) & (codes[:, None] != j)
    assert fit_calibrator("coupling", np.where(strangers, 1e3, scores), codes, weight, 4) == before


@each_kind
@pytest.mark.parametrize("n_classes", [2, 4])
def test_a_weight_is_a_number_of_repetitions(kind: str, n_classes: int) -> None:
    scores, codes, weight = draw_scores(kind, n_classes)
    weight[n_classes : n_classes + 20] = 0
    rows = np.repeat(np.arange(len(codes)), weight.astype(int))[::-1]
    weighted = fit_calibrator(kind, scores, codes, weight, n_classes)
    repeated = fit_calibrator(kind, scores[rows], codes[rows], np.ones(len(rows)), n_classes)
    np.testing.assert_allclose(weighted.probabilities(scores), repeated.probabilities(scores), rtol=0, atol=1e-9)


@each_kind
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_row_of_weight_zero_counts_for_nothing(kind: str, n_classes: int) -> None:
    scores, codes, weight = draw_scores(kind, n_classes)
    wild = np.concatenate([scores, np.full_like(scores[:1], 1e30)])
    expected = fit_calibrator(kind, scores, codes, weight, n_classes)
    assert fit_calibrator(kind, wild, np.append(codes, 0), np.append(weight, 0), n_classes) == expected


@each_kind
@pytest.mark.parametrize("n_classes", [2, 3])
def test_calibrators_are_values(kind: str, n_classes: int) -> None:
    scores, codes, weight = draw_scores(kind, n_classes)
    calibrator = fit_calibrator(kind, scores, codes, weight, n_classes)
    restored: Calibrator = pickle.loads(pickle.dumps(calibrator))
    assert restored == calibrator == fit_calibrator(kind, scores, codes, weight, n_classes)
    assert hash(restored) == hash(calibrator)
    np.testing.assert_array_equal(restored.probabilities(scores), calibrator.probabilities(scores))
    assert calibrator != fit_calibrator(kind, scores + 1, codes, weight, n_classes)
    with pytest.raises(FrozenInstanceError):
        calibrator.curves = ()  # type: ignore[attr-defined]


@each_kind
@pytest.mark.parametrize("n_classes", [2, 3])
def test_refuses_a_class_without_a_score(kind: str, n_classes: int) -> None:
    scores, codes, weight = draw_scores(kind, n_classes)
    weight[codes == 1] = 0
    with pytest.raises(ValueError, match=rf"^calibration='{kind}' needs .* class with code 1; give it more examples"):
        fit_calibrator(kind, scores, codes, weight, n_classes)


@each_kind
def test_refuses_scores_of_another_shape(kind: str) -> None:
    scores, codes, weight = draw_scores(kind, 4)
    with pytest.raises(ValueError, match=rf"^scores has shape \(150, .*calibration='{kind}' of 4 classes needs \(150"):
        fit_calibrator(kind, scores[:, 1:], codes, weight, 4)


def test_refuses_an_unknown_kind() -> None:
    scores, codes, weight = draw_scores("sigmoid", 3)
    with pytest.raises(ValueError, match=r"^calibration='beta' is not available; choose one of 'sigmoid', "):
        fit_calibrator("beta", scores, codes, weight, 3)


@given(seed=st.integers(0, 2**32), n_classes=st.integers(2, 5), n_folds=st.integers(2, 6), with_X=st.booleans())
def test_folds_are_stratified_and_train_on_every_class(seed: int, n_classes: int, n_folds: int, with_X: bool) -> None:
    rng = np.random.default_rng(seed)
    codes = rng.permutation(np.append(np.repeat(np.arange(n_classes), 2), rng.integers(n_classes, size=20)))
    weight = np.append(np.ones(len(codes)), np.zeros(7))
    codes = np.append(codes, rng.integers(n_classes, size=7))
    X = np.arange(len(codes), dtype=float)[:, None] if with_X else None
    folds = folds_for_calibration(codes, weight, n_folds, X=X)
    assert len(folds) == n_folds
    tests = np.concatenate([test for _, test in folds])
    np.testing.assert_array_equal(np.sort(tests), np.flatnonzero(weight > 0))  # each row is held out once
    for train, test in folds:
        np.testing.assert_array_equal(np.sort(np.append(train, test)), np.flatnonzero(weight > 0))
        assert set(codes[train]) == set(range(n_classes))
    counts = np.array([np.bincount(codes[test], minlength=n_classes) for _, test in folds])
    assert np.ptp(counts, axis=0).max() <= 1
    assert np.ptp(counts.sum(axis=1)) <= 1


def test_few_examples_give_few_folds() -> None:
    folds = folds_for_calibration(np.array([0, 0, 1, 1]), np.ones(4))
    assert [test.tolist() for _, test in folds] == [[0], [1], [2], [3]]


@pytest.mark.parametrize("repeat_at_the_end", [True, False])
def test_repeated_rows_share_a_fold(repeat_at_the_end: bool) -> None:
    rng = np.random.default_rng(0)
    X = rng.integers(2, size=(40, 5)).astype(float) - 0.0
    codes, copies = rng.integers(3, size=40), rng.integers(1, 4, size=40)
    rows = np.repeat(np.arange(40), copies)
    if repeat_at_the_end:
        rows = np.append(np.arange(40), np.repeat(np.arange(40), copies - 1))
    weighted = folds_for_calibration(codes, copies.astype(float), X=X)
    signs = np.where(rng.uniform(size=(len(rows), 5)) < 0.5, -1.0, 1.0)
    repeated_X = np.where(X[rows] == 0, 0 * signs, X[rows])  # -0 equals 0
    repeated = folds_for_calibration(codes[rows], np.ones(len(rows)), X=repeated_X)
    for (_, test), (_, repeated_test) in zip(weighted, repeated, strict=True):
        assert set(rows[repeated_test]) == set(test)


@pytest.mark.parametrize(
    ("X", "weight"), [(None, [1, 1, 1, 1, 0]), ([[1], [2], [3], [5], [5]], [1, 1, 1, 0.9, 0.9])], ids=["none", "equal"]
)
def test_refuses_a_class_with_one_example(X: list[list[float]] | None, weight: list[float]) -> None:
    codes, classes = np.array([0, 0, 0, 1, 1]), np.array(["cat", "dog"])
    data = None if X is None else np.array(X, dtype=float)
    with pytest.raises(ValueError, match=r"at least 2 examples .*'dog'.* has 1 .* or use calibration=None\.$"):
        folds_for_calibration(codes, np.array(weight, dtype=float), X=data, classes=classes)
    with pytest.raises(ValueError, match=r"class 1 has 1 of positive weight"):
        folds_for_calibration(codes, np.array(weight, dtype=float), X=data)


def test_refuses_one_fold() -> None:
    with pytest.raises(ValueError, match=r"^n_folds=1 leaves nothing to train on; use at least 2\.$"):
        folds_for_calibration(np.array([0, 0, 1, 1]), np.ones(4), 1)


@pytest.mark.parametrize("kind", ["sigmoid", "isotonic"])
def test_from_data_to_probabilities_a_weight_is_a_repetition(kind: str) -> None:
    rng = np.random.default_rng(3)
    codes = rng.integers(3, size=45)
    X = rng.normal(size=(45, 2)) + 1.2 * np.eye(3)[codes, :2]
    weight = rng.integers(1, 3, size=45).astype(float)
    tol = 1e-9

    def probabilities(X_fit: Array, y: Codes, w: Array) -> Array:
        machine = SVC(multi_class="ww", gamma=0.5, tol=tol)
        scores = np.empty((len(y), 3))
        for train, test in folds_for_calibration(y, w, X=X_fit):
            machine.fit(X_fit[train], y[train], sample_weight=w[train])
            scores[test] = machine.decision_function(X_fit[test])
        calibrator = fit_calibrator(kind, scores, y, w, 3)
        return calibrator.probabilities(machine.fit(X_fit, y, sample_weight=w).decision_function(X))

    rows = np.append(np.arange(45), np.flatnonzero(weight == 2))
    difference = probabilities(X, codes, weight) - probabilities(X[rows], codes[rows], np.ones(len(rows)))
    assert np.abs(difference).max() <= 1e3 * tol
