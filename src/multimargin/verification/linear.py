"""Certificate of a fitted linear model, recomputed from the model and its training data."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from multimargin._typing import FloatArray
from multimargin.fitting.linear import LinearDual
from multimargin.fitting.linear_pair_points import scores_together, weights_together
from multimargin.fitting.pair_certificates import certify_together
from multimargin.fitting.spec import FitSpec
from multimargin.kernels.rounding import kernel_sizes
from multimargin.models.linear_model import LinearModel
from multimargin.problems.problem import Bias, DualProblem
from multimargin.problems.recovery import recover_amounts
from multimargin.problems.schemes import BinaryProblems, Slices, pair_problems
from multimargin.problems.training_set import TrainingSet
from multimargin.solvers.binary import BinarySolutions
from multimargin.solvers.certificate import Certificate, Objectives, assemble, evaluate, examined
from multimargin.solvers.certificate_table import CertificateTable, worst_of
from multimargin.solvers.linear.task import as_scores_sum
from multimargin.solvers.report_table import Reports
from multimargin.verification.pairs import judge_pair, judge_together

# What rounding may leave between the weights and X' beta, relative to |X|' |beta|.
WEIGHTS_TOLERANCE = 1e-9
VERIFIER = ("verify", "recomputed from the data")


def verify_linear(model: Any, data: TrainingSet) -> Certificate:
    """Return the certificate of a fitted LinearSVC, recomputed in float64 from dual coefficients and data.

    The weights used to predict must equal those of the coefficients; otherwise the violation is infinite.
    """
    spec: FitSpec = model._spec
    dual: LinearDual = model._dual
    if data.X.shape != model.shape_fit_ or not np.isin(dual.support, data.rows).all():
        raise ValueError(
            f"X has the shape {data.X.shape}, the model was trained on {model.shape_fit_}, or sample_weight is 0 where "
            "the model has a coefficient; verify needs the training data and the weights of the fit."
        )
    linear: LinearModel = model._model
    if not spec.scheme:
        return _assembled(_machine_numbers(linear, dual, spec, data), spec)
    return worst_of(_verify_pairs(linear, dual, spec, data))


def _assembled(numbers: Objectives, spec: FitSpec) -> Certificate:
    return assemble(spec.kernel, numbers, report=None, tol=spec.tol, solver=VERIFIER)


def _machine_numbers(model: LinearModel, dual: LinearDual, spec: FitSpec, data: TrainingSet) -> Objectives:
    problem = DualProblem(data, spec.machine, spec.kernel, spec.loss, spec.bias)
    beta = np.zeros((data.X.shape[0], problem.n_classes))
    beta[dual.support] = dual.beta
    X, beta = data.X[data.rows], beta[data.rows]
    weights = as_scores_sum(problem.machine, np.asarray(X.T @ beta, dtype=np.float64))
    constant = as_scores_sum(problem.machine, spec.kernel.offset * beta.sum(axis=0))
    scores = np.asarray(X @ weights) + constant
    bias = model.intercept if spec.bias is Bias.EXACT else np.zeros(problem.n_classes)
    amounts = recover_amounts(problem, beta, scores + bias)
    numbers = evaluate(problem, amounts, scores, bias)
    own = _close(model.coef.T, weights, X, beta)
    own = own and (spec.bias is Bias.EXACT or _close_constant(model.intercept, constant, spec.kernel.offset, beta))
    return examined(problem, amounts, beta, numbers if own else replace(numbers, violation=np.inf), bias)


def _verify_pairs(model: LinearModel, dual: LinearDual, spec: FitSpec, data: TrainingSet) -> CertificateTable:
    """Return the certificates of all pairs: clear cases together, doubtful ones one by one."""
    problems = pair_problems(data)
    beta = _coefficients_of_pairs(dual, problems, data)
    weights = weights_together(data.X, problems, beta)
    with np.errstate(over="ignore", invalid="ignore"):
        scores = scores_together(data.X, problems, weights)
        scores += spec.kernel.offset * np.repeat(np.add.reduceat(beta, problems.starts[:-1]), problems.sizes)
    sizes = kernel_sizes(spec.kernel, data.X[data.rows])[problems.positions]
    numbers = judge_together(problems, beta, scores, model.intercept, spec)
    foreign = ~_close_together(model.coef, weights, problems, beta, data)
    numbers.violation[foreign] = np.inf
    solutions = BinarySolutions(
        Slices(problems.signs * beta, problems.starts), model.intercept, Reports.of_points(numbers.columns)
    )
    table, doubtful = certify_together(problems, solutions, spec, sizes, VERIFIER)
    for index in doubtful.tolist():
        own = slice(*problems.starts[index : index + 2].tolist())
        each = judge_pair(problems[index], beta[own], scores[own], float(model.intercept[index]), spec, sizes[own])
        table.put(index, _assembled(replace(each, violation=np.inf) if foreign[index] else each, spec))
    return table


def _coefficients_of_pairs(dual: LinearDual, problems: BinaryProblems, data: TrainingSet) -> FloatArray:
    """Return the coefficients of all pairs one after the other, in the order of their rows."""
    place = np.full(data.X.shape[0], -1)
    place[dual.support] = np.arange(len(dual.support))
    by_pair = sparse.csc_array(dual.beta)
    by_pair.sum_duplicates()
    n_support, pairs = by_pair.shape[0], np.repeat(np.arange(len(problems)), problems.sizes)
    # Entries are found by searching their sorted positions.
    known = np.repeat(np.arange(len(problems)), np.diff(by_pair.indptr)) * n_support + by_pair.indices
    wanted = pairs * n_support + place[problems.rows]
    found = np.minimum(np.searchsorted(known, wanted), max(0, len(known) - 1))
    if not len(known):
        return np.zeros(len(wanted))
    held = (place[problems.rows] >= 0) & (known[found] == wanted)
    return np.where(held, by_pair.data[found], 0.0)


def _close_together(
    weights: FloatArray, again: FloatArray, problems: BinaryProblems, beta: FloatArray, data: TrainingSet
) -> np.ndarray:
    """``_close`` of each pair."""
    allowed = WEIGHTS_TOLERANCE * weights_together(abs(data.X), problems, np.abs(beta))
    return np.asarray((np.abs(weights - again) <= allowed).all(axis=1))


def _close(weights: FloatArray, again: FloatArray, X: Any, beta: FloatArray) -> bool:
    return bool((np.abs(weights - again) <= WEIGHTS_TOLERANCE * (abs(X).T @ np.abs(beta))).all())


def _close_constant(intercept: FloatArray, again: FloatArray, offset: float, beta: FloatArray) -> bool:
    return bool((np.abs(intercept - again) <= WEIGHTS_TOLERANCE * offset * np.abs(beta).sum(axis=0)).all())
