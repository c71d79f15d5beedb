"""The warning of a fit that did not reach tol: how far it got, the likely cause, and what helps."""

from __future__ import annotations

import warnings

from sklearn.exceptions import ConvergenceWarning

from multimargin._typing import DataMatrix
from multimargin.fitting.causes import likely_cause
from multimargin.fitting.driver import Fitted
from multimargin.fitting.spec import FitSpec
from multimargin.solvers.report import StopReason

REMEDIES = {
    StopReason.MAX_ITER.value: "raise max_iter (-1 means no limit)",
    StopReason.MAX_TIME.value: "raise max_time, or go on with warm_start=True",
    StopReason.STALLED.value: "scale the columns of X (for example with StandardScaler) or lower C",
    StopReason.INTERRUPTED.value: "go on with warm_start=True",
    StopReason.CALLBACK.value: "go on with warm_start=True",
}


# scikit-learn's words where max_iter ended a fit, which scripts match, before ours.
SVC_ENDED = (
    "Solver terminated early (max_iter={max_iter}).  Consider pre-processing your data with StandardScaler or "
    "MinMaxScaler."
)
LINEAR_SVC_ENDED = "Liblinear failed to converge, increase the number of iterations."


def warn_if_unfinished(fitted: Fitted, X: DataMatrix, spec: FitSpec, words: str = "") -> None:
    """Say once how far a fit or its folds got that did not reach tol, the likely cause, and the line that helps."""
    named = (("The fit", fitted.certificate), ("A model of the calibration", fitted.folds))
    early = [(what, c) for what, c in named if c is not None and c.stop_reason != StopReason.CONVERGED.value]
    sentences = []
    limited = [c for _, c in early[:1] if c.stop_reason == StopReason.MAX_ITER.value]
    theirs = [words for _ in limited if words]
    for what, certificate in early[:1]:
        sentences.append(
            f"{what} ended early ({certificate.stop_reason}) after {certificate.n_iter} steps at a KKT violation of "
            f"{certificate.kkt_violation:.2g}, relative gap {certificate.relative_gap:.2g}; tol={certificate.tol:g} "
            f"was asked for.{likely_cause(X, spec.kernel, spec.C, certificate)} "
            f"To reach it, {REMEDIES[certificate.stop_reason]}."
        )
    if fitted.missing:
        remedy = "raise max_time" if fitted.missing == StopReason.MAX_TIME.value else "fit again"
        sentences.append(
            f"The calibration was not finished ({fitted.missing}), so that probabilities are missing and predict goes "
            f"by the scores; {remedy} to get them."
        )
    if sentences:
        warnings.warn(" ".join([*theirs, *sentences]), ConvergenceWarning, stacklevel=4)
