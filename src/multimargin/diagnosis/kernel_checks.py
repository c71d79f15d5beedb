"""Whether gamma and C are in the range where they make a difference."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.base import clone

from multimargin._typing import DataMatrix, FloatArray, IntArray
from multimargin.base.matrices import dense
from multimargin.diagnosis.findings import Finding
from multimargin.estimators.svc import SVC
from multimargin.fitting.advice import LARGE_C, large_cost
from multimargin.fitting.parameters import resolve_kernel
from multimargin.kernels.spec import KernelSpec
from multimargin.model_selection.search_table import share_of
from multimargin.problems.training_set import TrainingSet

# Kernel values are computed between so many rows and so many others.
SAMPLE = 200
OTHERS = 5_000
NEARLY_CONSTANT = 0.99  # the median of the kernel values between different rows
NEARLY_IDENTITY = 0.01  # the median of those with the nearest row
# C is judged by machines at C and at this multiple of it.
STEP = 4.0
FEW = 400
SAME = 1e-3
SECONDS = 5.0
# Parameters of a trial fit.
QUIET: dict[str, Any] = {
    "verbose": False,
    "on_progress": None,
    "max_time": SECONDS,
    "trace": False,
    "calibration": None,
}
QUIET |= {"warm_start": False, "probability": "deprecated", "max_iter": -1, "on_interrupt": "raise"}


def gamma_findings(estimator: Any, X: DataMatrix, y: np.ndarray) -> Iterator[Finding]:
    """Find a gamma for which the kernel is nearly constant, or nearly the identity."""
    data = TrainingSet.from_arrays(X, y, C=1.0)
    kernel = resolve_kernel(estimator.get_params(deep=False), data)
    if not kernel.shift_invariant:
        return
    distance = _distances(kernel, X)
    typical = float(np.median(distance))
    if typical == 0:
        return
    values = kernel.of_form(distance)
    better = f"SVC(gamma={1 / typical:.3g})"
    if kernel.name != SVC().kernel:
        better = f'SVC(kernel="{kernel.name}", gamma={1 / typical:.3g})'
    if float(np.median(values)) > NEARLY_CONSTANT:
        yield Finding(
            "warning",
            "gamma",
            f"gamma={kernel.gamma:.3g} makes the kernel nearly constant: half of its values between different rows are "
            f"above {float(np.median(values)):.4f}, so that the machine is almost linear",
            f"clf = {better}",
        )
    elif (nearest := float(np.median(values.max(axis=1)))) < NEARLY_IDENTITY:
        yield Finding(
            "warning",
            "gamma",
            f"gamma={kernel.gamma:.3g} makes the kernel nearly the identity: for half of the rows even the nearest one "
            f"has a value of {nearest:.2g} at most, so that the machine memorises rows",
            f"clf = {better}",
        )


def _distances(kernel: KernelSpec, X: DataMatrix) -> FloatArray:
    """Return the form's values between some rows and many others, without pairs of equal rows."""
    n = X.shape[0]
    rows = np.unique(np.linspace(0, n - 1, min(n, SAMPLE)).astype(np.int64))
    others = np.unique(np.linspace(0, n - 1, min(n, OTHERS)).astype(np.int64))
    A, B = dense(X[rows]), dense(X[others])
    distance = np.empty((len(rows), len(others)))
    for place, row in enumerate(A):
        apart = B - row
        distance[place] = (apart**2).sum(axis=1) if kernel.form == "squared_difference" else np.abs(apart).sum(axis=1)
    distance[rows[:, None] == others[None, :]] = np.inf
    finite = np.isfinite(distance)
    return np.where(finite, distance, distance[finite].max(initial=0.0)) if finite.any() else np.zeros((1, 1))


def cost_findings(estimator: Any, X: DataMatrix, y: np.ndarray, codes: IntArray) -> Iterator[Finding]:
    """Find a C where every example is at its bound, or none."""
    C = float(estimator.C)
    if not np.isfinite(C):
        return
    if C >= LARGE_C:
        advice = large_cost(C)
        yield Finding("note", "C", f"{advice.text}: fits take longer, and noise is learnt", advice.line)
    rows = share_of(np.arange(len(codes)), codes, min(1.0, FEW / len(codes)))
    part = rows_of(estimator, X, rows)
    machine, other = (trial_fit(estimator, part, y[rows], C=factor * C) for factor in (1.0, STEP))
    if machine.fit_status_ or other.fit_status_:
        return
    before, after = (_coefficients(each, len(rows)) for each in (machine, other))
    size = float(np.abs(before).sum())
    about = f"on {len(rows):,} of the rows" if len(rows) < len(codes) else "on these rows"
    if float(np.abs(after - STEP * before).sum()) <= SAME * STEP * size:
        yield Finding(
            "warning",
            "C",
            f"C={C:g} is too small to tell rows apart: {about} every example counts as much as it may, and four times "
            "the C gives the same machine times four",
            f"clf = {type(estimator).__name__}(C={C / _typical_score(machine, part):.0e})",
        )
    elif float(np.abs(after - before).sum()) <= SAME * size and C < LARGE_C:
        yield Finding(
            "note",
            "C",
            f"C={C:g} is at the end of its range: {about} no example is at its bound, and a larger C changes nothing",
            f"clf = {type(estimator).__name__}(C={C / 10:g})  # if the score on new rows is low",
        )


def _typical_score(machine: Any, X: DataMatrix) -> float:
    """Return the size of the scores without the intercept; they grow with C until they reach the margin, 1."""
    model = machine._model
    raw = getattr(model, "pair_scores", None) or getattr(model, "raw_scores", None) or model.scores
    return max(float(np.median(np.abs(raw(X) - model.intercept))), float(np.finfo(np.float64).tiny))


def rows_of(estimator: Any, X: DataMatrix, rows: IntArray) -> DataMatrix:
    """Return the data of some rows: for a precomputed kernel the values among them."""
    given = isinstance(getattr(estimator, "kernel", None), str) and estimator.kernel == "precomputed"
    return X[np.ix_(rows, rows)] if given else X[rows]


def trial_fit(estimator: Any, X: DataMatrix, y: np.ndarray, **params: Any) -> Any:
    """Return a copy of an estimator, trained for a short time without output."""
    known = estimator.get_params(deep=False)
    machine = clone(estimator).set_params(**{n: value for n, value in (QUIET | params).items() if n in known})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return machine.fit(X, y)


def _coefficients(machine: Any, n_rows: int) -> FloatArray:
    """Return the coefficients of all rows, or the weights of a linear machine."""
    if not hasattr(machine, "dual_coef_"):
        return np.asarray(machine.coef_)
    full = np.zeros((machine.dual_coef_.shape[0], n_rows))
    full[:, machine.support_] = dense(machine.dual_coef_)
    return full
