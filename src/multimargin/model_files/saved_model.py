"""Maps an estimator to the model that is saved: a search to its best model, an OnlineSVC to its current model."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from multimargin.estimators.linear_svc import LinearSVC
from multimargin.estimators.linear_svc_cv import LinearSVCCV
from multimargin.estimators.svc import SVC
from multimargin.fitting.machine import expansion_attributes
from multimargin.fitting.spec import FitSpec
from multimargin.model_files.pipelines import is_scaled
from multimargin.model_files.text_lines import unknown_certificate
from multimargin.model_selection.estimator import SVCCV
from multimargin.model_selection.pair_selection import PerPairSVC
from multimargin.models.pair_model import PairModel, pair_model_attributes


def what_to_save(estimator: Any) -> Any:
    """Return the SVC, LinearSVC or PerPairSVC that predicts as this estimator does."""
    if isinstance(estimator, SVCCV):
        check_is_fitted(estimator, "best_estimator_")
        return estimator.best_estimator_
    if isinstance(estimator, LinearSVCCV):
        return _chosen_linear(estimator)
    if type(estimator).__name__ == "OnlineSVC":
        return _learnt(estimator)
    if is_scaled(estimator):
        return Pipeline([estimator.steps[0], (estimator.steps[1][0], what_to_save(estimator[-1]))])
    if type(estimator) not in (SVC, LinearSVC, PerPairSVC):
        raise TypeError(
            f"A {type(estimator).__name__} is not saved; give a fitted SVC, LinearSVC, PerPairSVC, OnlineSVC, SVCCV or "
            "LinearSVCCV, a Pipeline of a scaler and one of these, or the last step of any other Pipeline."
        )
    return estimator


def _chosen_linear(search: LinearSVCCV) -> LinearSVC:
    check_is_fitted(search)
    if not hasattr(search, "_dual"):
        raise ValueError(
            "This LinearSVCCV has refit=False, whose weights are a mean of models and no solution; fit with refit=True."
        )
    known = search.get_params(deep=False)
    shared = set(LinearSVC().get_params(deep=False)) & set(known)
    model = LinearSVC(**{name: known[name] for name in shared}, C=float(search.C_[0]))
    public = ("classes_", "class_weight_", "coef_", "intercept_", "support_", "shape_fit_", "certificate_", "n_iter_")
    more = ("fit_status_", "n_features_in_", "feature_names_in_", "_model", "_dual", "_spec")
    model.__dict__.update({name: vars(search)[name] for name in (*public, *more) if name in vars(search)})
    return model


def _learnt(online: Any) -> SVC:
    """Return an online machine as the SVC that predicts as it does now; its stream does not go on from a file."""
    check_is_fitted(online)
    if len(online.classes_) < 2:
        raise ValueError("This OnlineSVC has seen one class only; call partial_fit with a second class before saving.")
    known = online.get_params(deep=False)
    clf = SVC(**{name: known[name] for name in set(SVC().get_params(deep=False)) & set(known)})
    model = online._model
    n_rows = max(int(online.shape_fit_[0]), int(model.support.max(initial=-1)) + 1)
    facts = (online.classes_, np.asarray(online.class_weight_, dtype=np.float64), (n_rows, int(online.n_features_in_)))
    made = pair_model_attributes if isinstance(model, PairModel) else expansion_attributes
    public = {name: value for name, value in vars(online).items() if name in ("certificate_", "feature_names_in_")}
    clf.__dict__.update(
        made(model, *facts)
        | {
            "n_features_in_": facts[2][1],
            "n_iter_": np.atleast_1d(online.n_iter_),
            "fit_status_": int(getattr(online, "fit_status_", 1)),
            "certificate_": unknown_certificate("OnlineSVC", clf.tol),
            "_spec": getattr(online, "_spec", None) or FitSpec.from_params(clf.get_params(deep=False), model.kernel),
            "_state": None,
        }
        | public
    )
    return clf
