"""Checking a fitted one-vs-one model against its data, pair by pair, from the data alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from multimargin.binary import evaluate_binary, signs
from multimargin.certificate import Certificate, Objectives, assemble, worst_of
from multimargin.fitting import Recipe
from multimargin.machines import FloatArray
from multimargin.pair_fitting import PairFit
from multimargin.pair_model import PairModel
from multimargin.problem import Bias, Loss
from multimargin.resources import n_threads
from multimargin.schemes import BinaryProblem
from multimargin.training_set import TrainingSet

# As for the other machines: what rounding may leave of the bounds and of sum_i y_i a_i.
FEASIBILITY_TOLERANCE = 1e-10
SUMS_TOLERANCE = 1e-9
BOUND_TOLERANCE = 1e-12


def verify_pairs(model: PairModel, recipe: Recipe, data: TrainingSet) -> Certificate:
    """Return the certificates of all pairs, recomputed in float64, as one."""
    fit = PairFit.of(data, recipe)
    parts = []
    for index, problem in enumerate(fit.problems):
        numbers = _pair_numbers(fit, model, index, problem)
        parts.append(
            assemble(recipe.kernel, numbers, report=None, tol=recipe.tol, solver=("verify", "recomputed from the data"))
        )
    return worst_of(parts)


def _pair_numbers(fit: PairFit, model: PairModel, index: int, problem: BinaryProblem) -> Objectives:
    positions, beta = model.pair_beta(index)
    by_row = np.zeros(fit.data.X.shape[0])
    by_row[model.support[positions]] = beta
    scores = np.zeros(len(problem.rows))
    used = positions[beta != 0]
    if len(used):
        points = fit.data.kernel_data[problem.rows]
        weights = np.ascontiguousarray(beta[beta != 0, None])
        scores = fit.store.scores(model.support[used], weights, points, n_threads())[:, 0]
    return judge_pair(problem, by_row[problem.rows], scores, float(model.intercept[index]), fit.recipe)


def judge_pair(
    problem: BinaryProblem, beta: FloatArray, scores: FloatArray, intercept: float, recipe: Recipe
) -> Objectives:
    """Return objectives and violation of a pair's coefficients, given its scores without an exact bias."""
    amounts = signs(problem) * beta
    snapped = amounts
    if recipe.loss is Loss.HINGE:
        finite = np.where(np.isfinite(problem.C), problem.C, 0.0)
        snapped = np.where(np.abs(snapped) <= BOUND_TOLERANCE * finite, 0.0, snapped)
        snapped = np.where(np.abs(problem.C - snapped) <= BOUND_TOLERANCE * finite, problem.C, snapped)
    numbers = evaluate_binary(problem, snapped, scores, intercept, recipe.loss, recipe.bias)
    violation = max(numbers.violation, _violation_at(problem, snapped, scores, intercept, recipe))
    if not _is_feasible(problem, amounts, recipe, intercept):
        violation = np.inf  # gradients say nothing about a point outside the bounds
    return replace(numbers, violation=violation)


def _violation_at(
    problem: BinaryProblem, amounts: FloatArray, scores: FloatArray, intercept: float, recipe: Recipe
) -> float:
    """How far the reported bias is outside the interval that the scores allow; m - M does not see the bias."""
    if recipe.bias is not Bias.EXACT:
        return 0.0
    return evaluate_binary(problem, amounts, scores + intercept, 0.0, recipe.loss, Bias.NONE).violation


def _is_feasible(problem: BinaryProblem, amounts: FloatArray, recipe: Recipe, intercept: float) -> bool:
    finite = np.where(np.isfinite(problem.C), problem.C, 0.0)
    allowed = FEASIBILITY_TOLERANCE * (finite + amounts)
    cap = problem.C if recipe.loss is Loss.HINGE else np.inf
    within = bool((amounts >= -allowed).all() and (amounts <= cap + allowed).all())
    total = float(np.sum(signs(problem) * amounts))
    scale = float(np.abs(amounts).sum())
    if recipe.bias is Bias.EXACT:
        return within and abs(total) <= SUMS_TOLERANCE * scale
    offset = recipe.kernel.offset + (1.0 if recipe.bias is Bias.REGULARIZED else 0.0)  # HL02 (10)
    wanted = offset * total
    return within and abs(intercept - wanted) <= SUMS_TOLERANCE * scale
