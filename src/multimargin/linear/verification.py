"""Checking a fitted linear model against its data, from the data alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from multimargin.certificate import Certificate, Objectives, assemble, evaluate, examined
from multimargin.certificate_table import worst_of
from multimargin.fitting import Recipe
from multimargin.linear.fitting import LinearDual
from multimargin.linear.model import LinearModel
from multimargin.linear.task import as_scores_sum
from multimargin.machines import FloatArray
from multimargin.pair_verification import judge_pair
from multimargin.problem import Bias, DualProblem
from multimargin.recovery import recover_amounts
from multimargin.rounding import kernel_sizes
from multimargin.schemes import BinaryProblem, pair_problems
from multimargin.training_set import TrainingSet

# What rounding may leave between the weights and X' beta, relative to |X|' |beta|.
WEIGHTS_TOLERANCE = 1e-9


def verify_linear(model: Any, data: TrainingSet) -> Certificate:
    """Return the certificate of a fitted LinearSVC, recomputed in float64 from dual coefficients and data.

    The weights that predict must be those of the coefficients: others have an infinite violation.
    """
    recipe: Recipe = model._recipe
    dual: LinearDual = model._dual
    if data.X.shape != model.shape_fit_ or not np.isin(dual.support, data.rows).all():
        raise ValueError(
            f"X has the shape {data.X.shape}, the model was trained on {model.shape_fit_}, or sample_weight is 0 where "
            "the model has a coefficient; verify needs the training data and the weights of the fit."
        )
    linear: LinearModel = model._model
    if not recipe.scheme:
        return _assembled(_machine_numbers(linear, dual, recipe, data), recipe)
    parts = [
        _assembled(_pair_numbers(linear, dual, index, problem, recipe, data), recipe)
        for index, problem in enumerate(pair_problems(data))
    ]
    return worst_of(parts)


def _assembled(numbers: Objectives, recipe: Recipe) -> Certificate:
    return assemble(recipe.kernel, numbers, report=None, tol=recipe.tol, solver=("verify", "recomputed from the data"))


def _machine_numbers(model: LinearModel, dual: LinearDual, recipe: Recipe, data: TrainingSet) -> Objectives:
    problem = DualProblem(data, recipe.machine, recipe.kernel, recipe.loss, recipe.bias)
    beta = np.zeros((data.X.shape[0], problem.n_classes))
    beta[dual.support] = dual.beta
    X, beta = data.X[data.rows], beta[data.rows]
    weights = as_scores_sum(problem.machine, np.asarray(X.T @ beta, dtype=np.float64))
    constant = as_scores_sum(problem.machine, recipe.kernel.offset * beta.sum(axis=0))
    scores = np.asarray(X @ weights) + constant
    bias = model.intercept if recipe.bias is Bias.EXACT else np.zeros(problem.n_classes)
    amounts = recover_amounts(problem, beta, scores + bias)
    numbers = evaluate(problem, amounts, scores, bias)
    own = _close(model.coef.T, weights, X, beta)
    own = own and (recipe.bias is Bias.EXACT or _close_constant(model.intercept, constant, recipe.kernel.offset, beta))
    return examined(problem, amounts, beta, numbers if own else replace(numbers, violation=np.inf), bias)


def _pair_numbers(
    model: LinearModel, dual: LinearDual, index: int, problem: BinaryProblem, recipe: Recipe, data: TrainingSet
) -> Objectives:
    by_row = np.zeros(data.X.shape[0])
    by_row[dual.support] = dual.column(index)
    beta, X = by_row[problem.rows], data.X[problem.rows]
    weights = np.asarray(X.T @ beta, dtype=np.float64)
    scores = np.asarray(X @ weights) + recipe.kernel.offset * beta.sum()
    sizes = kernel_sizes(recipe.kernel, X)
    numbers = judge_pair(problem, beta, scores, float(model.intercept[index]), recipe, sizes)
    own = _close(model.coef[index][:, None], weights[:, None], X, beta[:, None])
    return numbers if own else replace(numbers, violation=np.inf)


def _close(weights: FloatArray, again: FloatArray, X: Any, beta: FloatArray) -> bool:
    return bool((np.abs(weights - again) <= WEIGHTS_TOLERANCE * (abs(X).T @ np.abs(beta))).all())


def _close_constant(intercept: FloatArray, again: FloatArray, offset: float, beta: FloatArray) -> bool:
    return bool((np.abs(intercept - again) <= WEIGHTS_TOLERANCE * offset * np.abs(beta).sum(axis=0)).all())
