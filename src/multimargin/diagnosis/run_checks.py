"""diagnose: problems of data and parameters, each with the line of code that fixes it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_consistent_length, column_or_1d

from multimargin.base.resources import check_room
from multimargin.diagnosis.cost import fit_cost
from multimargin.diagnosis.data_checks import (
    class_findings,
    column_findings,
    column_names,
    missing_values,
    row_findings,
    text_columns,
)
from multimargin.diagnosis.findings import Diagnosis, Finding, sorted_findings
from multimargin.diagnosis.kernel_checks import cost_findings, gamma_findings
from multimargin.estimators.linear_svc import LinearSVC
from multimargin.estimators.svc import DATA, SVC
from multimargin.fitting.parameters import check_array
from multimargin.model_selection.estimator import SVCCV


def diagnose(X: ArrayLike, y: ArrayLike, estimator: Any = None) -> Diagnosis:
    """Check data, and an estimator's parameters on them, for problems that cost accuracy or time.

    Parameters
    ----------
    X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
        NaN and infinity are found, not refused. The names of a data frame's columns are used.
    y : array-like of shape (n_samples,)
    estimator : SVC, LinearSVC, SVCCV or a Pipeline that ends with one, default=None
        Not fitted, and not changed; None means ``SVC()``. Of a Pipeline the last step is checked on X as the steps
        before transform it.

    Returns
    -------
    diagnosis : Diagnosis
        ``print`` it, or read ``findings``, ``seconds`` and ``megabytes``. It takes a few seconds: gamma, C and the
        forecast are found by fits on some hundred rows.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from multimargin import diagnose
    >>> X, y = load_iris(return_X_y=True)
    >>> X[:, 2] *= 1000
    >>> [finding.topic for finding in diagnose(X, y).findings if finding.severity == "warning"]
    ['unscaled columns']
    """
    machine = SVC() if estimator is None else estimator
    steps = machine[:-1] if isinstance(machine, Pipeline) and len(machine.steps) > 1 else None
    machine = machine.steps[-1][1] if isinstance(machine, Pipeline) else machine
    if not isinstance(machine, SVC | LinearSVC | SVCCV):
        raise TypeError(
            f"estimator={machine!r} is not known to diagnose; give an SVC, LinearSVC or SVCCV, a Pipeline that ends "
            "with one, or None."
        )
    labels = column_or_1d(y)
    check_consistent_length(X, labels)
    findings = _label_findings(labels) or ([] if steps is not None else text_columns(X))
    if findings:
        return Diagnosis(tuple(findings), *_shape(X), len(np.unique(labels)))
    rows, names = _rows_and_names(steps, X, labels)
    findings += missing_values(rows, names)
    classes, codes = np.unique(labels, return_inverse=True)
    if findings:
        return Diagnosis(tuple(findings), *_shape(rows), len(classes))
    findings += class_findings(classes, np.bincount(codes))
    if not (isinstance(machine, SVC | SVCCV) and machine._precomputed):
        findings += row_findings(rows, codes, frame=hasattr(X, "iloc"))
        findings += column_findings(rows, names)
    return _with_machine(machine, (rows, labels, codes), findings, len(classes))


# The name of a column, its deviation and its extremes.
BYTES_PER_COLUMN = 100.0


def _rows_and_names(steps: Any, X: Any, labels: np.ndarray) -> tuple[Any, list[str]]:
    """Return the data as numbers, after the first steps of a Pipeline, and the names of their columns."""
    if steps is None:
        rows = check_array(X, ensure_all_finite=False, **DATA)
        check_room(
            BYTES_PER_COLUMN * rows.shape[1],
            f"Names and numbers of {rows.shape[1]} columns",
            "leave out columns that are zero throughout, and renumber the others",
        )
        return rows, column_names(X, rows.shape[1])
    fitted = clone(steps)
    made = fitted.fit_transform(X, labels)
    rows = check_array(made, ensure_all_finite=False, **DATA)
    try:
        return rows, [repr(str(name)) for name in fitted.get_feature_names_out()]
    except (AttributeError, ValueError):
        return rows, column_names(made, rows.shape[1])


def _with_machine(
    machine: Any, data: tuple[Any, np.ndarray, np.ndarray], findings: list[Finding], n_classes: int
) -> Diagnosis:
    """Add the findings about an estimator's parameters on the data."""
    X, labels, codes = data
    if isinstance(machine, SVC):
        findings += gamma_findings(machine, X, labels)
    if not isinstance(machine, SVCCV):
        findings += cost_findings(machine, X, labels, codes)
    cost = fit_cost(machine, X, labels, codes)
    name = type(machine).__name__
    findings.append(cost.finding(f"A fit of {name}" if name != "SVCCV" else "The search of SVCCV"))
    return Diagnosis(sorted_findings(findings), *_shape(X), n_classes, cost.seconds, cost.megabytes)


def _label_findings(labels: np.ndarray) -> list[Finding]:
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        bad = int((~np.isfinite(labels)).sum())
        return [Finding("error", "labels", f"{bad:,} labels are NaN or infinite", "X, y = X[~isnan(y)], y[~isnan(y)]")]
    if type_of_target(labels) not in ("binary", "multiclass"):
        text = f"y is {type_of_target(labels)}, not a list of classes: its first values are {labels[:3].tolist()}"
        return [Finding("error", "labels", text, "y = numpy.digitize(y, numpy.quantile(y, [1/3, 2/3]))")]
    if len(np.unique(labels)) < 2:
        return [Finding("error", "labels", f"y has one class only, {labels[0]!s}", "print(numpy.unique(y))")]
    return []


def _shape(X: Any) -> tuple[int, int]:
    n_rows, n_columns = np.shape(X)
    return n_rows, n_columns
