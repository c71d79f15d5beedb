"""The parameters of an online classifier, checked: which machine, which kernel, which classes, which weights."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.multiclass import check_classification_targets

from multimargin._typing import DataMatrix, FloatArray
from multimargin.base.errors import shown_label
from multimargin.base.resources import MEGABYTE
from multimargin.estimators.svc import DATA
from multimargin.fitting import parameters as check
from multimargin.fitting.parameters import validate_data
from multimargin.fitting.spec import FitSpec
from multimargin.kernels.store import check_range
from multimargin.kernels.table import KERNELS
from multimargin.online.learner import ONE_VS_ALL, OnlineOptions
from multimargin.problems.binary_parts import is_separable
from multimargin.problems.problem import Bias
from multimargin.problems.schemes import find_scheme
from multimargin.problems.training_set import TrainingSet

SELECTIONS = ("second-order", "first-order", "random")


def check_parameters(params: dict[str, Any]) -> None:
    """Check the parameters that need no data."""
    check.check_number("C", params["C"], low=0.0, strict=True)
    check.check_number("tol", params["tol"], low=0.0, strict=True)
    check.check_number("cache_size", params["cache_size"], low=0.0)
    check.check_choice("selection", params["selection"], SELECTIONS)
    check.check_integer("reprocess", params["reprocess"], low=0)
    check.check_integer("passes", params["passes"], low=1)
    if params["budget"] is not None:
        check.check_integer("budget", params["budget"], low=2, meaning="or None for no limit")
    check.check_flag("break_ties", params["break_ties"])
    check.check_choice("decision_function_shape", params["decision_function_shape"], ("ovr", "ovo"))
    if not isinstance(params["kernel"], str) or params["kernel"] not in KERNELS:
        listed = ", ".join(repr(name) for name in KERNELS)
        raise ValueError(
            f"kernel={params['kernel']!r} is not allowed for online learning, whose kernel values are not known in "
            f"advance; choose one of {listed}, or use SVC."
        )


def check_labels(labels: np.ndarray) -> None:
    """Refuse labels that are not classes; integers are accepted without scikit-learn's check, which is slow."""
    if labels.dtype.kind not in "biu":
        check_classification_targets(labels)


@cache
def _parameter_names(kind: type) -> tuple[str, ...]:
    return tuple(kind._get_param_names())  # type: ignore[attr-defined]


def parameters_of(estimator: Any) -> dict[str, Any]:
    """Return ``get_params(deep=False)``, without reading the signature of ``__init__`` again for each row."""
    kind: type = type(estimator)
    return {name: getattr(estimator, name) for name in _parameter_names(kind)}


def _are_plain(X: np.ndarray, y: np.ndarray) -> bool:
    fit_together = X.ndim == 2 and y.ndim == 1 and len(X) == len(y) and X.size > 0
    return fit_together and X.dtype == np.float64 and y.dtype.kind in "iu" and bool(np.isfinite(X).all())


def check_rows(estimator: Any, X: ArrayLike, y: ArrayLike, *, reset: bool) -> tuple[DataMatrix, np.ndarray]:
    """Return rows and labels, checked as scikit-learn does.

    Its checks take longer than learning a row. They neither reject nor change arrays of finite
    float64 and whole numbers that fit together and to what was seen before, so that such go straight through.
    """
    named = not reset and "feature_names_in_" in estimator.__dict__
    if type(X) is np.ndarray and type(y) is np.ndarray and not named and _are_plain(X, y):
        if reset:
            estimator.n_features_in_ = X.shape[1]
            estimator.__dict__.pop("feature_names_in_", None)
        if X.shape[1] == estimator.n_features_in_:
            return X, y
    rows, labels = validate_data(estimator, X, y, reset=reset, **DATA)
    check_labels(labels)
    return rows, labels


def make_spec(params: dict[str, Any], X: DataMatrix, weight: FloatArray) -> FitSpec:
    """Return machine, kernel and bias; gamma="scale" is computed from these rows and then fixed."""
    check_parameters(params)
    choice = find_scheme(params["multi_class"])
    bias = check.resolve_bias(params["bias"], choice)
    if bias is Bias.EXACT and not is_separable(choice):
        raise ValueError(
            f"bias='exact' with multi_class={params['multi_class']!r} is not available for online learning: its "
            "constraints tie all examples together; use bias='none' or 'regularized', or multi_class='ovo'."
        )
    n, ones = X.shape[0], np.ones(2)
    rows = np.flatnonzero(weight > 0) if (weight > 0).any() else np.arange(n)
    used = np.where(weight > 0, weight, 1.0)[rows]
    data = TrainingSet(X, np.arange(2), rows, np.zeros(len(rows), dtype=np.int64), used, ones, used)
    kernel = check.resolve_kernel(params, data)
    check_range(X, kernel)
    spec = FitSpec.from_params(params, kernel, bias)
    return replace(spec, scheme=ONE_VS_ALL) if is_separable(spec.machine) and not spec.scheme else spec


def make_options(params: dict[str, Any], spec: FitSpec) -> OnlineOptions:
    """Return the core's options."""
    return OnlineOptions(
        selection=params["selection"],
        reprocess=int(params["reprocess"]),
        budget=-1 if params["budget"] is None else int(params["budget"]),
        exact_bias=spec.bias is Bias.EXACT,
        tol=spec.tol,
        cache_bytes=float(params["cache_size"]) * MEGABYTE,
    )


# Parameters that may change between calls of partial_fit.
CHANGEABLE = ("passes", "random_state", "decision_function_shape", "break_ties")


def check_unchanged(params: dict[str, Any], before: dict[str, Any]) -> None:
    """Refuse parameters that changed since the first call of partial_fit."""
    for name, value in before.items():
        if name in CHANGEABLE or params[name] is value or params[name] == value:
            continue
        raise ValueError(
            f"{name}={params[name]!r}, but the first partial_fit had {name}={value!r}; partial_fit continues with the "
            f"parameters it began with, so set {name} back, or call fit."
        )


def check_weights(sample_weight: ArrayLike | None, n: int) -> FloatArray:
    """Return one weight for each row."""
    if sample_weight is None:
        return np.ones(n)
    weight = np.asarray(sample_weight, dtype=np.float64)
    weight = np.full(n, float(weight)) if weight.ndim == 0 else weight
    if weight.shape != (n,):
        raise ValueError(
            f"sample_weight has shape {weight.shape}; it must have one entry per row of X, that is ({n},)."
        )
    if not np.isfinite(weight).all() or (weight < 0).any():
        raise ValueError(
            "sample_weight contains a value that is negative or not finite; weights must be numbers >= 0 (0 leaves a "
            "row out)."
        )
    return weight


def class_weights(choice: Any, classes: np.ndarray, y: np.ndarray | None) -> FloatArray:
    """Return the factor on C of each class; "balanced" needs all labels, ``y``."""
    if choice is None:
        return np.ones(len(classes))
    if isinstance(choice, str):
        check.check_choice("class_weight", choice, ("balanced",), ", a dict or None")
        if y is None:
            raise ValueError(
                "class_weight='balanced' needs all labels at once, partial_fit sees some; give a dict of weights, or "
                "use fit."
            )
        counts = np.array([max(1, int((y == label).sum())) for label in classes])
        return np.asarray(len(y) / (len(classes) * counts), dtype=np.float64)
    if not isinstance(choice, dict):
        raise TypeError(f"class_weight={choice!r} is not a dict; class_weight must be a dict, 'balanced' or None.")
    weights = np.array([float(choice.get(label, 1.0)) for label in classes.tolist()])
    if not (np.isfinite(weights).all() and (weights > 0).all()):
        raise ValueError(
            f"class_weight={choice!r} contains a value that is not a positive number; give every class a weight > 0."
        )
    return weights


def merge_classes(
    known: np.ndarray | None, labels: np.ndarray, classes: ArrayLike | None, *, fixed: bool
) -> np.ndarray:
    """Return the classes after these labels, sorted; refuse labels outside the classes that were given."""
    if classes is not None:
        given = np.unique(np.asarray(classes))
        if known is not None and not np.array_equal(given, known):
            raise ValueError(
                f"classes={given.tolist()} is not the list of the calls before, {known.tolist()}; give the same one, "
                "or leave it out."
            )
        known, fixed = given, True
    if known is None:
        return np.unique(labels)
    comparable = known.dtype.kind == labels.dtype.kind
    if comparable and (known[np.searchsorted(known[:-1], labels)] == labels).all():
        return known
    new = np.unique(labels)
    unknown = new[~np.isin(new, known)]
    if fixed and len(unknown):
        raise ValueError(
            f"y contains the label {shown_label(unknown[0])}, which is not among classes={known.tolist()}; give "
            "classes with all labels in the first call of partial_fit, or none, so that new ones are taken in."
        )
    return np.unique(np.concatenate([known, unknown])) if len(unknown) else known
