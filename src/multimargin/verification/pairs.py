"""Certificates of a fitted one-vs-one model, pair by pair, recomputed from the model and its training data."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from multimargin._typing import FloatArray
from multimargin.base.resources import n_threads
from multimargin.fitting.pairs import PairFit
from multimargin.fitting.spec import FitSpec
from multimargin.models.pair_model import PairModel
from multimargin.problems.problem import Bias, Loss
from multimargin.problems.recovery import BOUND_TOLERANCE, SUMS_TOLERANCE
from multimargin.problems.schemes import BinaryProblem, BinaryProblems
from multimargin.problems.training_set import TrainingSet
from multimargin.solvers.binary import evaluate_with_bias, examined_binary, signs
from multimargin.solvers.certificate import Certificate, Objectives, assemble
from multimargin.solvers.certificate_table import worst_of
from multimargin.solvers.pair_objectives import PairObjectives, evaluate_together


def verify_pairs(model: PairModel, spec: FitSpec, data: TrainingSet) -> Certificate:
    """Return the certificates of all pairs, recomputed in float64, as one."""
    fit = PairFit.of(data, spec)
    parts = []
    for index, problem in enumerate(fit.problems):
        numbers = _pair_numbers(fit, model, index, problem)
        parts.append(
            assemble(spec.kernel, numbers, report=None, tol=spec.tol, solver=("verify", "recomputed from the data"))
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
    return judge_pair(
        problem, by_row[problem.rows], scores, float(model.intercept[index]), fit.spec, fit.sizes_of(problem)
    )


def judge_pair(
    problem: BinaryProblem, beta: FloatArray, scores: FloatArray, intercept: float, spec: FitSpec, sizes: FloatArray
) -> Objectives:
    """Return objectives and violation of a pair's coefficients, given its scores without an exact bias."""
    amounts = signs(problem) * beta
    snapped = amounts
    if spec.loss is Loss.HINGE:
        finite = np.where(np.isfinite(problem.C), problem.C, 0.0)
        largest = np.abs(amounts).max(initial=0.0)  # C may be so large that its rounding error exceeds this
        snapped = np.where(np.abs(snapped) <= BOUND_TOLERANCE * np.minimum(finite, largest), 0.0, snapped)
        snapped = np.where(np.abs(problem.C - snapped) <= BOUND_TOLERANCE * finite, problem.C, snapped)
    numbers = evaluate_with_bias(problem, snapped, scores, intercept, spec.loss, spec.bias)
    if not _is_own_intercept(problem, amounts, spec, intercept):
        numbers = replace(numbers, violation=np.inf)
    exact_bias = intercept if spec.bias is Bias.EXACT else None
    return examined_binary(problem, amounts, numbers, sizes, spec.loss, exact_bias)


def judge_together(
    problems: BinaryProblems, beta: FloatArray, scores: FloatArray, intercepts: FloatArray, spec: FitSpec
) -> PairObjectives:
    """Return the same for all pairs at once, without the checks of feasibility and rounding."""
    amounts, C = problems.signs * beta, problems.C
    snapped, first = amounts, problems.starts[:-1]
    if spec.loss is Loss.HINGE:
        finite = np.where(np.isfinite(C), C, 0.0)
        largest = np.repeat(np.maximum.reduceat(np.abs(amounts), first), problems.sizes)
        snapped = np.where(np.abs(snapped) <= BOUND_TOLERANCE * np.minimum(finite, largest), 0.0, snapped)
        snapped = np.where(np.abs(C - snapped) <= BOUND_TOLERANCE * finite, C, snapped)
    numbers = evaluate_together(problems, snapped, scores, intercepts, spec.loss, spec.bias)
    if spec.bias is Bias.EXACT:
        return numbers
    wanted, mass = np.add.reduceat(beta, first), np.add.reduceat(np.abs(beta), first)
    own = np.abs(intercepts - _constant(spec) * wanted) <= SUMS_TOLERANCE * mass
    return replace(numbers, violation=np.where(own, numbers.violation, np.inf))


def _constant(spec: FitSpec) -> float:
    """The constant that the kernel adds to every product for a regularised bias."""
    return spec.kernel.offset + (1.0 if spec.bias is Bias.REGULARIZED else 0.0)


def _is_own_intercept(problem: BinaryProblem, amounts: FloatArray, spec: FitSpec, intercept: float) -> bool:
    """Whether an intercept that is no exact bias follows from the coefficients: HL02 (10)."""
    if spec.bias is Bias.EXACT:
        return True
    wanted = _constant(spec) * float(np.sum(signs(problem) * amounts))
    return abs(intercept - wanted) <= SUMS_TOLERANCE * float(np.abs(amounts).sum())
