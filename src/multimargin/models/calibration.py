"""Probabilities from scores: curves that map a score to a probability, and one set of them per classifier.

A calibrator is fitted on out-of-fold scores: those of models that have not seen the example. This module
defines the folds, the curves, and how the curves of several classes become one distribution. It is independent of
machines, kernels and labels; coupling_probabilities.py combines the probabilities of pairs of classes.
"""

from __future__ import annotations

import itertools
import warnings
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import expit
from sklearn.isotonic import IsotonicRegression

from multimargin._typing import FloatArray, IntArray
from multimargin.base.errors import shown_label
from multimargin.models.coupling_probabilities import couple_pairs

COUPLING = "coupling"
KINDS = ("sigmoid", "isotonic", COUPLING)

# The Newton method for a sigmoid, on standardised scores and weights that sum to 1.
MAX_NEWTON = 200
SUFFICIENT_DECREASE = 1e-4  # LLW07
SMALLEST_RIDGE = 1e-12  # LLW07
SMALLEST_DECREMENT = 1e-13  # twice what the likelihood can still gain
EPSILON = float(np.finfo(np.float64).eps)


class Curve(Protocol):
    """A nondecreasing map from scores to probabilities."""

    def __call__(self, scores: FloatArray) -> FloatArray: ...


@dataclass(frozen=True)
class Sigmoid:
    """P(positive | score) = 1 / (1 + exp(-(slope score + offset))), slope >= 0; LLW07 has A = -slope, B = -offset."""

    slope: float
    offset: float

    def __call__(self, scores: FloatArray) -> FloatArray:
        probability: FloatArray = expit(self.slope * scores + self.offset)
        return probability


@dataclass(frozen=True)
class Isotonic:
    """Linear between the knots, constant outside; plain numbers, so that a saved curve needs no scikit-learn."""

    knots: tuple[float, ...]
    values: tuple[float, ...]

    def __call__(self, scores: FloatArray) -> FloatArray:
        # Interpolation may pass 0 or 1 by a rounding error.
        probability: FloatArray = np.clip(np.interp(scores, self.knots, self.values), 0.0, 1.0)
        return probability


def fit_sigmoid(scores: FloatArray, positive: NDArray[np.bool_], weight: FloatArray) -> Sigmoid:
    """Fit Platt's sigmoid by maximum likelihood over all slopes >= 0.

    Solves    min  -sum_i w_i (t_i log p_i + (1 - t_i) log(1 - p_i)),  p = Sigmoid(slope, offset)(scores)
    Given     scores (n,), positive (n,), weight (n,); rows of weight 0 are ignored
    Returns   the sigmoid. If the likelihood is largest for a negative slope (the scores rank worse than chance), the
              slope is 0, and the sigmoid is constant at the weighted mean of the targets t.
    See       PLATT99 for the targets: (N+ + 1) / (N+ + 2) for positive rows and 1 / (N- + 2) for the others, N+ and
              N- the weights of either side, so that a weight of 2 equals a repeated row; LLW07 for the method.
    """
    kept = weight > 0
    scores, positive, weight = scores[kept], positive[kept], weight[kept]
    n_positive, n_negative = weight[positive].sum(), weight[~positive].sum()
    target = np.where(positive, (n_positive + 1) / (n_positive + 2), 1 / (n_negative + 2))
    share = weight / weight.sum()
    mean_target = _dot(share, target)
    constant = float(np.log(mean_target / (1 - mean_target)))

    center = _dot(share, scores)
    scale = float(np.sqrt(_dot(share, (scores - center) ** 2)))
    if scale <= 1e-14 * np.abs(scores).max():  # all scores are equal
        return Sigmoid(0.0, constant)
    standardised = (scores - center) / scale
    # The likelihood is concave: its slope at the best constant gives the sign of the best slope.
    if _dot(share, (target - mean_target) * standardised) <= 0:
        return Sigmoid(0.0, constant)
    slope, offset = _maximize_likelihood(standardised, target, share, constant)
    slope = max(slope, 0.0) / scale
    return Sigmoid(slope, offset - slope * center)


def _maximize_likelihood(x: FloatArray, target: FloatArray, share: FloatArray, offset: float) -> tuple[float, float]:
    """Return slope and offset from safeguarded Newton steps, started at slope 0.

    LLW07 add a small ridge to the Hessian and shorten a step that does not gain enough. Here such a step is taken
    again with a larger ridge, which also turns it: with 30 positive rows among 100,000 probabilities soon round to 0
    and 1, and along the Newton direction no length gains anything. As x is standardised the Hessian is never above
    I / 4, so that a ridge of 1/4 always gains.
    """
    slope, ridge = 0.0, SMALLEST_RIDGE
    loss, probability = _cross_entropy(np.full(len(x), offset), target, share)
    for _ in range(MAX_NEWTON):
        residual = share * (probability - target)
        g_slope, g_offset = _dot(residual, x), float(residual.sum())
        curvature = share * probability * (1 - probability)
        h_slope, h_offset = _dot(curvature, x * x) + ridge, float(curvature.sum()) + ridge
        h_both = _dot(curvature, x)
        determinant = h_slope * h_offset - h_both * h_both
        d_slope = (h_both * g_offset - h_offset * g_slope) / determinant
        d_offset = (h_both * g_slope - h_slope * g_offset) / determinant
        decrement = -(g_slope * d_slope + g_offset * d_offset)
        trial = slope + d_slope, offset + d_offset
        if decrement <= SMALLEST_DECREMENT and ridge <= 1e-3 * min(h_slope, h_offset):
            return trial  # the last Newton step needs no check
        if decrement <= 4 * EPSILON * loss:
            break  # what is left to gain does not show in the loss
        trial_loss, trial_probability = _cross_entropy(trial[0] * x + trial[1], target, share)
        if trial_loss <= loss - SUFFICIENT_DECREASE * decrement:
            (slope, offset), loss, probability = trial, trial_loss, trial_probability
            ridge = max(ridge / 10, SMALLEST_RIDGE)
        else:
            ridge *= 10
    return slope, offset


def _cross_entropy(logit: FloatArray, target: FloatArray, share: FloatArray) -> tuple[float, FloatArray]:
    """Return the loss and the probabilities; exp sees negative numbers only, so that nothing overflows (LLW07)."""
    small = np.exp(-np.abs(logit))
    loss = np.maximum(logit, 0) - target * logit + np.log1p(small)
    return _dot(share, loss), np.where(logit >= 0, 1.0, small) / (1 + small)


def _dot(a: FloatArray, b: FloatArray) -> float:
    """Sum in an order that does not depend on the number of threads; that of a @ b does."""
    return float((a * b).sum())


def fit_isotonic(scores: FloatArray, positive: NDArray[np.bool_], weight: FloatArray) -> Isotonic:
    """Fit the nondecreasing function of least weighted squares, as scikit-learn does; arrays of shape (n,)."""
    fitted = IsotonicRegression(out_of_bounds="clip").fit(scores, positive.astype(np.float64), weight)
    return Isotonic(tuple(fitted.X_thresholds_.tolist()), tuple(fitted.y_thresholds_.tolist()))


class Calibrator(Protocol):
    """What ``fit_calibrator`` returns: a frozen value that pickles and compares."""

    def probabilities(self, scores: FloatArray) -> FloatArray:
        """Return probabilities of shape (n, d) whose rows sum to 1, columns by class code."""


@dataclass(frozen=True)
class BinaryCalibrator:
    """One curve on the score of class 1."""

    curve: Curve

    def probabilities(self, scores: FloatArray) -> FloatArray:
        """Return shape (n, 2) from scores of shape (n,), positive for class 1."""
        positive = self.curve(scores)
        return np.stack([1 - positive, positive], axis=1)


@dataclass(frozen=True)
class OneVsRestCalibrator:
    """One curve per class against the rest, normalised as in scikit-learn's CalibratedClassifierCV."""

    curves: tuple[Curve, ...]

    def probabilities(self, scores: FloatArray) -> FloatArray:
        """Return shape (n, d) from scores of shape (n, d); uniform where every curve is 0."""
        raw = np.stack([curve(column) for curve, column in zip(self.curves, scores.T, strict=True)], axis=1)
        total = raw.sum(axis=1, keepdims=True)
        uniform = np.full_like(raw, 1 / raw.shape[1])
        normalised: FloatArray = np.divide(raw, total, out=uniform, where=total > 0)
        return normalised


@dataclass(frozen=True)
class PairCalibrator:
    """One sigmoid per pair of classes, combined by pairwise coupling: LIBSVM's probabilities."""

    curves: tuple[Sigmoid, ...]

    def probabilities(self, scores: FloatArray) -> FloatArray:
        """Return shape (n, d) from scores of pairs, shape (n, d (d - 1) / 2), positive for the first class."""
        curves = zip(self.curves, scores.T, strict=True)
        return couple_pairs(np.stack([curve(column) for curve, column in curves], axis=1))


def fit_calibrator(kind: str, scores: FloatArray, codes: IntArray, weight: FloatArray, n_classes: int) -> Calibrator:
    """Fit the calibrator of a kind on out-of-fold scores.

    Parameters
    ----------
    kind : {"sigmoid", "isotonic", "coupling"}
    scores : ndarray
        Sigmoid and isotonic: (n, d), one score per class, or (n,) for two classes, positive for class 1. Coupling:
        (n, d (d - 1) / 2), one score per pair (i, j), i < j, positive for class i.
    codes : ndarray of shape (n,)
        Class codes 0, ..., d - 1.
    weight : ndarray of shape (n,)
        A weight of 2 counts as the row twice, a weight of 0 as no row.
    n_classes : int
        d, at least 2.
    """
    if kind not in KINDS:
        raise ValueError(f"calibration={kind!r} is not available; choose one of {', '.join(map(repr, KINDS))} or None.")
    width = n_classes * (n_classes - 1) // 2 if kind == "coupling" else n_classes
    expected = (len(codes),) if n_classes == 2 and kind != "coupling" else (len(codes), width)
    if scores.shape != expected:
        raise ValueError(
            f"scores has shape {scores.shape}; calibration={kind!r} of {n_classes} classes needs {expected}."
        )
    missing = np.setdiff1d(np.arange(n_classes), codes[weight > 0])
    if len(missing):
        raise ValueError(
            f"calibration={kind!r} needs an out-of-fold score of every class, but there is none of positive weight for "
            f"the class with code {missing[0]}; give it more examples or use calibration=None."
        )
    if kind == "coupling":
        return _fit_pairs(scores, codes, weight, n_classes)
    fit = fit_sigmoid if kind == "sigmoid" else fit_isotonic
    if n_classes == 2:
        return BinaryCalibrator(fit(scores, codes == 1, weight))
    return OneVsRestCalibrator(tuple(fit(scores[:, c], codes == c, weight) for c in range(n_classes)))


def _fit_pairs(scores: FloatArray, codes: IntArray, weight: FloatArray, n_classes: int) -> PairCalibrator:
    curves = []
    for column, (i, j) in enumerate(zip(*np.triu_indices(n_classes, k=1), strict=True)):
        rows = (codes == i) | (codes == j)
        curves.append(fit_sigmoid(scores[rows, column], codes[rows] == i, weight[rows]))
    return PairCalibrator(tuple(curves))


def folds_for_calibration(
    codes: IntArray,
    weight: FloatArray,
    n_folds: int = 5,
    *,
    X: Any = None,
    classes: NDArray[Any] | None = None,
    allow_single: bool = False,
) -> list[tuple[IntArray, IntArray]]:
    """Return stratified folds as (train, test) arrays of rows, without random numbers.

    The distinct rows of each class are assigned to the folds in turn, continuing where the class before ended. So fold
    sizes differ by at most one distinct row, overall and per class; rows of weight 0 are in no fold. Every class is in
    every training part; a class whose rows are all equal is in the training part even of its own test fold.

    With ``X`` equal rows of a class share a fold, and the order depends on the content of the rows. Then a row
    of weight 2 and the same row twice, in any order of the rows, give the same folds, the same training problems,
    and curves that agree to rounding errors: probabilities differ only as far as ``tol`` allows for the scores.
    Without ``X`` every row counts as distinct and is assigned by position, and this does not hold.

    Parameters
    ----------
    codes : ndarray of shape (n,)
        Class codes 0, ..., d - 1.
    weight : ndarray of shape (n,)
    n_folds : int, default=5
        Fewer are returned when there are fewer distinct rows.
    X : ndarray or sparse matrix of shape (n, n_features), default=None
    classes : ndarray of shape (d,), default=None
        Labels for the message when a class is too small.
    allow_single : bool, default=False
        Whether a class may have one row; that is then scored by models that have seen it, with a warning.
    """
    if n_folds < 2:
        raise ValueError(f"n_folds={n_folds} leaves nothing to train on; use at least 2.")
    fold = np.full(len(codes), -1)
    always = np.zeros(len(codes), dtype=bool)  # in every training part
    n_dealt = 0
    for code in range(int(codes.max()) + 1):
        rows = np.flatnonzero((codes == code) & (weight > 0))
        number = np.arange(len(rows)) if X is None else _number_distinct(X[rows])
        n_distinct = int(number.max(initial=-1)) + 1
        if n_distinct < 2 and weight[rows].sum() < 2:
            _say_too_few(code if classes is None else classes[code], n_distinct, refuse=not allow_single)
        always[rows] = n_distinct == 1
        fold[rows] = (n_dealt + number) % n_folds
        n_dealt += n_distinct
    parts = range(min(n_folds, n_dealt))
    return [(np.flatnonzero((fold >= 0) & ((fold != part) | always)), np.flatnonzero(fold == part)) for part in parts]


def _say_too_few(label: Any, n_distinct: int, *, refuse: bool) -> None:
    """Refuse a class that is too small for folds, or warn of it."""
    if refuse:
        raise ValueError(
            f"calibration needs at least 2 examples of every class, but class {shown_label(label)} has {n_distinct} of "
            "positive weight; give it more examples or use calibration=None."
        )
    warnings.warn(
        f"Class {label!s} has one example of positive weight, so that its probabilities come from models that have "
        "seen it; give it more examples.",
        stacklevel=2,
    )


def _number_distinct(X: Any) -> IntArray:
    """Number the rows by their nonzeros, in the order of their bytes; equal rows, sparse or not, get equal numbers."""
    rows = sparse.csr_array(X, dtype=np.float64, copy=True)
    rows.sum_duplicates()
    rows.eliminate_zeros()
    indices, bounds = rows.indices.astype(np.int64), itertools.pairwise(rows.indptr)
    keys = [(indices[start:end].tobytes(), rows.data[start:end].tobytes()) for start, end in bounds]
    numbers = {key: number for number, key in enumerate(sorted(set(keys)))}
    return np.array([numbers[key] for key in keys], dtype=np.int64)
