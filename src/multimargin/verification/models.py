"""verify: the certificate of a fitted model, recomputed from the model and its training data."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from multimargin.base.matrices import same_values
from multimargin.base.resources import n_threads
from multimargin.fitting.parameters import validate_data
from multimargin.fitting.spec import FitSpec
from multimargin.models.kernel_model import KernelModel
from multimargin.models.linear_model import LinearModel
from multimargin.models.pair_model import PairModel
from multimargin.problems.given_kernels import settle
from multimargin.problems.problem import Bias, DualProblem
from multimargin.problems.recovery import recover_amounts
from multimargin.problems.training_set import TrainingSet
from multimargin.solvers.certificate import Certificate, assemble, evaluate, examined
from multimargin.solvers.certificate_table import worst_of
from multimargin.verification.linear import verify_linear
from multimargin.verification.pairs import verify_pairs


def verify(model: Any, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Certificate:
    """Recompute the certificate of a fitted model in float64 from the data it was trained on.

    Parameters
    ----------
    model : SVC, LinearSVC or PerPairSVC
        A fitted estimator.
    X : array-like or sparse matrix of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
        The training data; other data are refused.
    sample_weight : array-like of shape (n_samples,), default=None
        The weights of the fit.

    Returns
    -------
    certificate : Certificate
        ``certificate.optimal`` is true if the recomputed KKT violation is at most the model's ``tol``. For pairs of
        classes the certificate is that of the worst pair, and ``certificate.parts`` has all of them.

    See Also
    --------
    Certificate : What is returned.
    diagnose : Checks of data and parameters before a fit.
    """
    check_is_fitted(model)
    if hasattr(model, "binary_parts"):
        parts = [verify(*part) for part in model.binary_parts(X, y, sample_weight)]
        return worst_of([each for part in parts for each in part.parts or (part,)])
    if not hasattr(model, "_spec"):
        raise TypeError(
            f"model is a {type(model).__name__}, which verify does not know; give a fitted SVC, LinearSVC or "
            "PerPairSVC, of a search its best_estimator_."
        )
    spec: FitSpec = model._spec
    checked_X, labels = validate_data(
        model, X, y, dtype=[np.float64, np.float32], order="C", accept_sparse="csr", reset=False
    )
    data = TrainingSet.from_arrays(checked_X, labels, C=spec.C, sample_weight=sample_weight)
    data = _with_class_weights(model, data)
    if isinstance(model._model, LinearModel):
        return verify_linear(model, data)
    return _verify_expansion(model, spec, data)


def _verify_expansion(model: Any, spec: FitSpec, data: TrainingSet) -> Certificate:
    """Return the certificate of an expansion in support vectors."""
    expansion: KernelModel | PairModel = model._model
    _check_support(model, expansion, data)
    data, kernel = settle(data, spec.kernel, model.cache_size)
    spec = replace(spec, kernel=kernel)  # a precomputed matrix is tested again
    if isinstance(expansion, PairModel):
        return verify_pairs(expansion, spec, data)
    problem = DualProblem(data, spec.machine, spec.kernel, spec.loss, spec.bias)
    beta = np.zeros((data.X.shape[0], problem.n_classes))
    beta[expansion.support] = expansion.beta
    scores = problem.store.scores(
        expansion.support.astype(np.int64), expansion.beta, data.kernel_data[data.rows], n_threads()
    )
    # The other rules' bias is in the coefficients already.
    bias = expansion.intercept if spec.bias is Bias.EXACT else np.zeros(problem.n_classes)
    amounts = recover_amounts(problem, beta[data.rows], scores + bias)
    numbers = examined(problem, amounts, beta[data.rows], evaluate(problem, amounts, scores, bias), bias)
    return assemble(
        problem.kernel,
        numbers,
        report=None,
        tol=spec.tol,
        solver=("verify", "recomputed from the data"),
    )


def _with_class_weights(model: Any, data: TrainingSet) -> TrainingSet:
    if not np.array_equal(data.classes, model.classes_):
        raise ValueError(
            f"y has the classes {data.classes.tolist()}, the model was trained on {model.classes_.tolist()}; "
            "verify needs the training data."
        )
    return replace(data, C=data.C * model.class_weight_[data.y], class_weight=model.class_weight_)


def _check_support(model: Any, expansion: KernelModel | PairModel, data: TrainingSet) -> None:
    n_rows = data.X.shape[0]
    same = data.X.shape == model.shape_fit_
    if expansion.kernel.name != "precomputed":
        same = same and same_values(data.X[expansion.support], expansion.support_vectors)
    if not same:
        raise ValueError(
            f"X ({n_rows} rows) does not hold the model's support vectors at the rows support_ names "
            f"({model.shape_fit_[0]} rows were trained on); verify needs the training data, in the same order."
        )
    if not np.isin(expansion.support, data.rows).all():
        raise ValueError("sample_weight is 0 for a support vector; verify needs the weights of the fit.")
