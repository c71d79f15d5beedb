"""The points of all pairs of classes of a linear machine as arrays: dual variables, weights, scores, an exact bias."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from multimargin._typing import BoolArray, DataMatrix, FloatArray
from multimargin.base.matrices import is_sparse
from multimargin.fitting.pairs import PairFit
from multimargin.problems.problem import Bias, Loss
from multimargin.problems.schemes import BinaryProblems
from multimargin.problems.separate_sums import Groups, balance_groups
from multimargin.solvers.pair_objectives import PairObjectives, evaluate_together

# Entries of rows and of weights that are at hand at a time.
CHUNK = 2**20


@dataclass(frozen=True, eq=False)
class PairPoints:
    """A feasible point of each pair; of examples, dual variables and scores without an exact bias one after the other.

    ``harmless`` tells of which pairs the sums of an exact bias became zero by variables that violate nothing.
    """

    amounts: FloatArray
    biases: FloatArray
    coef: FloatArray
    scores: FloatArray
    harmless: BoolArray


def points_of(fit: PairFit, amounts: FloatArray, biases: FloatArray, tol: float) -> PairPoints:
    """Return the points where the core is: within the bounds, and with sums of zero for an exact bias."""
    problems, exact = fit.problems, fit.spec.bias is Bias.EXACT
    cap = problems.C if fit.spec.loss is Loss.HINGE else np.full(len(problems.C), np.inf)
    amounts = np.clip(amounts, 0.0, cap)
    harmless = np.ones(len(problems), dtype=np.bool_)
    if exact:
        amounts, harmless = _balanced(fit, amounts, cap, biases, tol)
    beta = problems.signs * amounts
    coef = weights_together(fit.data.X, problems, beta)
    scores = scores_together(fit.data.X, problems, coef)
    if fit.spec.kernel.offset > 0.0:
        scores += fit.spec.kernel.offset * np.repeat(np.add.reduceat(beta, problems.starts[:-1]), problems.sizes)
    return PairPoints(amounts, biases, coef, scores, harmless)


def _balanced(
    fit: PairFit, amounts: FloatArray, cap: FloatArray, biases: FloatArray, tol: float
) -> tuple[FloatArray, BoolArray]:
    """As ``zero_sums.movable_without_harm`` and, where these cannot, all support vectors or a = 0, which always do."""
    problems, C = fit.problems, fit.problems.C
    groups = Groups(problems.signs, np.where(np.isfinite(C), C, 1.0), cap, problems.starts[:-1])
    scores = scores_together(fit.data.X, problems, weights_together(fit.data.X, problems, problems.signs * amounts))
    with np.errstate(over="ignore", invalid="ignore"):
        gradient = 1.0 - problems.signs * (scores + np.repeat(biases, problems.sizes))
        if fit.spec.loss is Loss.SQUARED_HINGE:
            gradient -= amounts / (2.0 * C)
        movable = ((amounts > 0) & (amounts < cap)) | (np.abs(gradient) <= tol)
    found, good = balance_groups(groups, amounts, movable)
    if not good.all():
        by_support, mended = balance_groups(groups, amounts, amounts > 0)
        by_support = np.where(np.repeat(mended, problems.sizes), by_support, 0.0)
        found = np.where(np.repeat(good, problems.sizes), found, by_support)
    return found, good


def evaluate_points(fit: PairFit, points: PairPoints) -> PairObjectives:
    spec = fit.spec
    return evaluate_together(fit.problems, points.amounts, points.scores, points.biases, spec.loss, spec.bias)


def weights_together(X: DataMatrix, problems: BinaryProblems, beta: FloatArray) -> FloatArray:
    """Return X' beta of each pair, (n_pairs, n_features)."""
    n_pairs, n_features = len(problems), X.shape[1]
    chosen = sparse.csr_array((beta, problems.rows, problems.starts), shape=(n_pairs, X.shape[0]))
    if not is_sparse(X):
        return np.asarray(chosen @ X, dtype=np.float64)
    coef, step = np.empty((n_pairs, n_features)), max(1, CHUNK // n_features)
    for first in range(0, n_pairs, step):
        coef[first : first + step] = (chosen[first : first + step] @ X).toarray()
    return coef


def scores_together(X: DataMatrix, problems: BinaryProblems, coef: FloatArray) -> FloatArray:
    """Return X w of each pair at its own examples, one after the other."""
    scores = np.empty(len(problems.rows))
    for first, last in _chunks(X, problems):
        own = slice(int(problems.starts[first]), int(problems.starts[last]))
        points = X[problems.rows[own]]
        if last == first + 1:
            scores[own] = points @ coef[first]
        else:
            scores[own] = _products(points, coef, np.repeat(np.arange(first, last), problems.sizes[first:last]))
    return scores


def _products(points: DataMatrix, coef: FloatArray, places: np.ndarray) -> FloatArray:
    """Return the products of each row with its own line of weights."""
    if not is_sparse(points):
        return np.asarray(np.einsum("ij,ij->i", points, coef[places]), dtype=np.float64)
    row = np.repeat(np.arange(len(places)), np.diff(points.indptr))
    terms = points.data * coef[places[row], points.indices]
    return np.bincount(row, weights=terms, minlength=len(places)).astype(np.float64)


def _chunks(X: DataMatrix, problems: BinaryProblems) -> Iterator[tuple[int, int]]:
    """Yield from which pair to which, so that their rows have about CHUNK entries; a large pair is alone."""
    each = X.nnz / X.shape[0] if is_sparse(X) else X.shape[1]
    most, starts, first = max(1, int(CHUNK / max(1.0, each))), problems.starts, 0
    while first < len(problems):
        last = max(first + 1, int(np.searchsorted(starts, starts[first] + most, side="right")) - 1)
        yield first, last
        first = last
