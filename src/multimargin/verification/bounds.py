r"""Generalisation bound of a fitted model, DGI11 (6), (7), and support vectors counted as in HL02.

The bound is a union over pairs of classes. For each pair (c, e) the difference h = h_c - h_e separates the rows of the
two classes; STC98's bound on its risk depends on how much h falls short of a margin there (z), and on the
fat-shattering dimension of the functions it was chosen from. That dimension is bounded by its margin form,
:math:`\mathrm{fat}(\gamma) \le (W R / \gamma)^2` for weights of length at most W on a ball of radius R (BST99).

The theorem requires W, R and the range of h to be fixed before the data are seen. Taken from the fit, as in DGI11 and
here, the bound is not a proof. (6) as printed gives each pair the probability delta/2; here all d (d -
1)/2 pairs share it, which is the same for two classes and otherwise changes a logarithm.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from multimargin._typing import FloatArray, IntArray
from multimargin.fitting.parameters import validate_data
from multimargin.kernels.store import KernelStore
from multimargin.models.kernel_model import KernelModel
from multimargin.models.linear_model import LinearModel
from multimargin.models.pair_model import PairModel
from multimargin.problems.given_kernels import call_kernel
from multimargin.problems.problem import Bias


@dataclass(frozen=True)
class PairTerm:
    """One pair of classes in the bound.

    Parameters
    ----------
    first, second : int
        Positions in ``classes_``.
    n_rows : int
        Rows of the two classes.
    weight : float
        Length of the weight vector of h_first - h_second, the bias counted as one more weight.
    violations : float
        Sum of z = max(0, margin - h) over these rows, h taken with the sign of the row's class.
    fat : float
        The bound on the fat-shattering dimension at margin/16: (16 weight R / margin)^2.
    spread : float
        DGI11's D: 2 (sqrt(violations * output range) + eta) / margin.
    risk : float
        The bound on the risk of this pair alone.
    share : float
        The bound on the probability that a point is of one of the two classes (Hoeffding); times risk it is the pair's
        part of the whole.
    """

    first: int
    second: int
    n_rows: int
    weight: float
    violations: float
    fat: float
    spread: float
    risk: float
    share: float


@dataclass(frozen=True)
class GeneralizationBound:
    """DGI11 (6) for a fitted model, with its terms.

    Parameters
    ----------
    bound : float
        With probability 1 - delta the risk is at most this; above 1 it is vacuous.
    order : float
        DGI11 (7) without its constants and logarithms: (d (d - 1) fat + sum of z / margin^2) / rows.
    violations : float
        The sum of z over all rows and wrong classes; what ww minimises.
    training_error : float
        Share of the rows that the model gets wrong.
    margin, delta, eta, radius_squared, output_range : float
        What the numbers were computed with.
    pairs : tuple of PairTerm
    """

    bound: float
    order: float
    violations: float
    training_error: float
    margin: float
    delta: float
    eta: float
    radius_squared: float
    output_range: float
    pairs: tuple[PairTerm, ...]

    @property
    def vacuous(self) -> bool:
        """Whether the bound is at least 1 and thus says nothing about the risk."""
        return self.bound >= 1

    def __str__(self) -> str:
        head = f"With probability {1 - self.delta:g} the risk is at most {self.bound:.3g} (DGI11 (6))"
        error = f"{100 * self.training_error:.3g} % of the training rows are wrong"
        if not self.vacuous:
            return f"{head}; {error}, and the risk on a test set is typically far below the bound."
        return (
            f"{head}, which is vacuous, as no risk exceeds 1: the bound is loose by orders of magnitude; {error}. "
            "Use its terms to compare models of the same data, not to predict errors."
        )


@dataclass(frozen=True)
class SupportCounts:
    """Support vectors as HL02 Table V.3 counts them.

    Parameters
    ----------
    unique : int
        Training rows with at least one nonzero dual coefficient; prediction needs one kernel value for each.
    in_all_machines : int
        The sum over the binary machines, or over the classes, of those with a nonzero coefficient there.
    n_rows : int
        Rows of the training data.
    """

    unique: int
    in_all_machines: int
    n_rows: int

    def __str__(self) -> str:
        return (
            f"{self.unique} of {self.n_rows} training rows are support vectors, each in "
            f"{self.in_all_machines / max(1, self.unique):.2g} binary machines or classes on average."
        )


def count_support(model: Any) -> SupportCounts:
    """Return how many training rows a fitted SVC needs for prediction: HL02's unique support vectors."""
    check_is_fitted(model)
    expansion = model._model
    if isinstance(expansion, KernelModel):
        used = expansion.beta != 0
    elif isinstance(expansion, PairModel):
        used = expansion.dual_coef.T != 0
    else:
        raise TypeError(
            f"{type(model).__name__} has weights instead of support vectors; give a fitted multimargin.SVC."
        )
    return SupportCounts(int(used.any(axis=1).sum()), int(used.sum()), int(model.shape_fit_[0]))


def generalization_bound(  # noqa: PLR0913 - the arguments of the theorem
    model: Any,
    X: ArrayLike,
    y: ArrayLike,
    *,
    margin: float = 1.0,
    delta: float = 0.05,
    eta: float = 0.1,
    radius_squared: float | None = None,
    output_range: float | None = None,
) -> GeneralizationBound:
    """Bound the risk of a fitted model by its margins on the training data: DGI11 (6).

    Parameters
    ----------
    model : SVC or LinearSVC
        Fitted, with a positive semi-definite kernel.
    X, y : array-like
        Its training data.
    margin : float, default=1.0
        The margin of which z is the shortfall; DGI11 uses 1 for all machines, although the target of ww is 2.
    delta : float, default=0.05
        The probability that the bound fails.
    eta : float, default=0.1
        DGI11's scaling of the output range: small makes D smaller and the last term larger.
    radius_squared, output_range : float or None, default=None
        R^2, the largest k(x, x), and b - a, the range of differences of scores. None takes R^2 of X, 1 added for a
        bias, and 2 W R of the longest weight vector.

    Returns
    -------
    bound : GeneralizationBound
    """
    check_is_fitted(model)
    _check_numbers(margin=margin, eta=eta, radius_squared=radius_squared, output_range=output_range)
    if not 0 < delta < 1:
        raise ValueError(f"delta={delta} is not allowed; give a probability between 0 and 1.")
    points, labels = _points(model, X, y)
    weights, scores = _pairs_of(model, points)
    if radius_squared is None:
        radius_squared = _radius_squared(model, points) + (model._spec.bias is not Bias.NONE)
    if output_range is None:
        output_range = 2 * float(weights.max()) * float(np.sqrt(radius_squared))
    given = _Given(margin, delta, eta, radius_squared, output_range, len(labels), len(model.classes_))
    terms = _terms(np.searchsorted(model.classes_, labels), weights, scores, given)
    return _summed(terms, given, float(np.mean(model.predict(X) != labels)))


@dataclass(frozen=True)
class _Given:
    """Common quantities of all pairs."""

    margin: float
    delta: float
    eta: float
    radius_squared: float
    output_range: float
    n_rows: int
    n_classes: int


def _terms(codes: IntArray, weights: FloatArray, scores: FloatArray, given: _Given) -> tuple[PairTerm, ...]:
    terms = []
    for at, (c, e) in enumerate(combinations(range(given.n_classes), 2)):
        rows = (codes == c) | (codes == e)
        signed = np.where(codes[rows] == c, 1.0, -1.0) * scores[rows, at]
        violations = float(np.maximum(0.0, given.margin - signed).sum())
        terms.append(_term((c, e), int(rows.sum()), float(weights[at]), violations, given))
    return tuple(terms)


def _summed(terms: tuple[PairTerm, ...], given: _Given, training_error: float) -> GeneralizationBound:
    total, d = sum(term.violations for term in terms), given.n_classes
    most_fat = max(term.fat for term in terms)
    return GeneralizationBound(
        bound=sum(term.share * term.risk for term in terms),
        order=(d * (d - 1) * most_fat + total / given.margin**2) / given.n_rows,
        violations=total,
        training_error=training_error,
        margin=given.margin,
        delta=given.delta,
        eta=given.eta,
        radius_squared=given.radius_squared,
        output_range=given.output_range,
        pairs=terms,
    )


def _term(pair: tuple[int, int], n: int, weight: float, violations: float, given: _Given) -> PairTerm:
    """Return one pair's part of DGI11 (6)."""
    d, width = given.n_classes, given.output_range
    fat = (16 * weight / given.margin) ** 2 * given.radius_squared
    spread = 2 * (np.sqrt(violations * width) + given.eta) / given.margin
    logs = np.log2(65 * n * (1 + spread) ** 3) * np.log2(9 * math.e * n * (1 + spread))
    # 64 d (d - 1) is 128 for two classes: delta/2, shared by all pairs.
    confidence = max(0.0, float(np.log2(64 * d * (d - 1) * n**1.5 * max(width, 1e-300) / (given.delta * given.eta))))
    risk = 2 / n * ((fat + 64 * spread**2) * logs + confidence)
    chance = np.sqrt((np.log(d * (d - 1)) - np.log(given.delta)) / 2) / np.sqrt(given.n_rows)
    share = n / given.n_rows + chance
    return PairTerm(*pair, n, weight, violations, float(fat), float(spread), float(risk), float(share))


def _check_numbers(**numbers: float | None) -> None:
    for name, value in numbers.items():
        if value is not None and not (np.isfinite(value) and value > 0):
            raise ValueError(f"{name}={value} is not allowed; give a finite number > 0.")


def _points(model: Any, X: ArrayLike, y: ArrayLike) -> tuple[Any, np.ndarray]:
    if not model._spec.kernel.positive_semidefinite:
        raise ValueError(
            f"kernel={model._spec.kernel.name!r} is not positive semi-definite, so that the weights have no length; "
            "the bound needs a kernel that is."
        )
    checked, labels = validate_data(
        model, X, y, dtype=[np.float64, np.float32], order="C", accept_sparse="csr", reset=False
    )
    if not np.isin(labels, model.classes_).all() or len(np.unique(labels)) < len(model.classes_):
        raise ValueError(
            f"y has the classes {np.unique(labels).tolist()}, the model was trained on {model.classes_.tolist()}; "
            "the bound needs the training data."
        )
    return checked, labels


def _radius_squared(model: Any, points: Any) -> float:
    """Return the largest k(x, x)."""
    kernel = model._spec.kernel
    if kernel.name == "precomputed":
        return float(np.diagonal(points).max())
    if kernel.function is not None:
        parts = [points[at : at + 256] for at in range(0, points.shape[0], 256)]
        return max(float(np.diagonal(call_kernel(kernel.function, part, part)).max()) for part in parts)
    return float(KernelStore(points, kernel).diagonal().max())


def _pairs_of(model: Any, points: Any) -> tuple[FloatArray, FloatArray]:
    """Return the lengths of the pairs' weight vectors, (n_pairs,), and their scores, (n_rows, n_pairs)."""
    expansion = model._model
    if isinstance(expansion, PairModel) or (isinstance(expansion, LinearModel) and expansion.scheme):
        pairs = _binary_pairs(expansion, points)
    else:
        pairs = _class_pairs(expansion, points)
    squared, bias, scores = pairs
    return np.sqrt(np.maximum(0.0, squared) + bias**2), scores


def _binary_pairs(expansion: PairModel | LinearModel, points: Any) -> tuple[FloatArray, FloatArray, FloatArray]:
    """For machines with one function for each pair."""
    if isinstance(expansion, LinearModel):
        return (expansion.coef**2).sum(axis=1), expansion.intercept, expansion.raw_scores(points)
    at_support = expansion.pair_scores(_support_rows(expansion, points)) - expansion.intercept
    squared = np.zeros(len(expansion.intercept))
    for pair in range(len(squared)):
        positions, beta = expansion.pair_beta(pair)
        squared[pair] = beta @ at_support[positions, pair]
    return squared, expansion.intercept, expansion.pair_scores(points)


def _class_pairs(expansion: KernelModel | LinearModel, points: Any) -> tuple[FloatArray, FloatArray, FloatArray]:
    """For machines with one function for each class: differences of two."""
    if isinstance(expansion, LinearModel):
        products, scores = expansion.coef @ expansion.coef.T, expansion.raw_scores(points)
    else:
        at_support = expansion.scores(_support_rows(expansion, points)) - expansion.intercept
        products, scores = expansion.beta.T @ at_support, expansion.scores(points)
    first, second = _pair_positions(len(expansion.intercept))
    squared = products[first, first] + products[second, second] - products[first, second] - products[second, first]
    bias = expansion.intercept[first] - expansion.intercept[second]
    return squared, bias, scores[:, first] - scores[:, second]


def _support_rows(expansion: KernelModel | PairModel, points: Any) -> Any:
    """Return the support vectors as points to score; of a precomputed kernel the rows of the matrix."""
    return points[expansion.support] if expansion.kernel.name == "precomputed" else expansion.support_vectors


def _pair_positions(n_classes: int) -> tuple[IntArray, IntArray]:
    first, second = np.triu_indices(n_classes, 1)
    return first.astype(np.int64), second.astype(np.int64)
