"""LIBLINEAR's model files: a weight vector for each class, or one for two classes, positive for the first label."""

from __future__ import annotations

import re

import numpy as np

from multimargin.estimators.linear_svc import LinearSVC
from multimargin.fitting.linear import LinearDual, linear_attributes
from multimargin.fitting.spec import linear_spec
from multimargin.model_files.errors import require
from multimargin.model_files.text_lines import (
    LARGEST,
    NUMBER,
    Lines,
    distinct_labels,
    labels_to_write,
    unknown_certificate,
)
from multimargin.models.linear_model import LinearModel
from multimargin.problems.problem import Loss

KEYS = ("solver_type", "nr_class", "label", "nr_feature", "bias")
CRAMMER_SINGER = "MCSVM_CS"
# The machines of the other types; those not listed are not support vector machines with an l2 penalty.
LOSSES = {
    "L2R_L2LOSS_SVC_DUAL": "squared_hinge",
    "L2R_L2LOSS_SVC": "squared_hinge",
    "L2R_L1LOSS_SVC_DUAL": "hinge",
    CRAMMER_SINGER: "hinge",
}


def read_linear_svc(lines: Lines, wanted: int | None) -> LinearSVC:
    """Return the LinearSVC of a model file; features that it does not have, up to ``wanted``, get no weight."""
    lines.read_header(KEYS, "w")
    solver = lines.word("solver_type", tuple(LOSSES), f"only models of {', '.join(LOSSES)} are read")
    (d,) = lines.integers("nr_class", 1, 2)
    labels = distinct_labels(lines.integers("label", d, -LARGEST))
    (n_features,) = lines.integers("nr_feature", 1, 1)
    (constant,) = lines.reals("bias", 1)
    width = 1 if d == 2 and solver != CRAMMER_SINGER else d
    form = re.compile(rb"[ \t]*" + NUMBER + rb"(?:[ \t]+" + NUMBER + rb"){%d}" % (width - 1) + rb"[ \t]*\r?")
    rows = lines.rows(n_features + (constant >= 0), form, "weights")
    weights = np.array([[float(word) for word in line.split()] for _, line in rows])
    require(bool(np.isfinite(weights).all()), "it has a weight that is too large")
    if wanted is not None and wanted < n_features:
        raise ValueError(f"n_features={wanted} is less than the {n_features} in the file; give at least that.")
    coef = np.zeros((width, n_features if wanted is None else wanted))
    coef[:, :n_features] = weights[:n_features].T
    with np.errstate(over="ignore"):
        intercept = weights[n_features] * constant if constant >= 0 else np.zeros(width)
    require(bool(np.isfinite(intercept).all()), "it has an intercept that is too large")
    if width == 1:  # the second function is the negative of the first: the file has half of their difference
        coef, intercept = np.concatenate([coef, -coef]), np.concatenate([intercept, -intercept])
    order = np.argsort(labels)
    model = LinearModel(np.ascontiguousarray(coef[order]), intercept[order], d)
    clf = LinearSVC(
        multi_class="cs" if solver == CRAMMER_SINGER else "ova",
        loss=LOSSES[solver],
        bias="regularized" if constant > 0 else "none",
        intercept_scaling=constant if constant > 0 else 1.0,
    )
    dual = LinearDual(np.empty(0, dtype=np.int64), np.empty((0, d)))
    clf.__dict__.update(
        linear_attributes(model, dual, labels[order], np.ones(d), (0, coef.shape[1]))
        | {
            "n_features_in_": coef.shape[1],
            "certificate_": unknown_certificate("LIBLINEAR", clf.tol),
            "n_iter_": 1,
            "fit_status_": 0,
            "_spec": linear_spec(clf.get_params(deep=False)),
            "_state": None,
        }
    )
    return clf


def linear_svc_text(clf: LinearSVC) -> str:
    """Return the model file of a fitted linear machine with one function per class, or of two classes."""
    model: LinearModel = clf._model
    labels = labels_to_write(clf.classes_)
    if model.scheme and model.n_classes > 2:
        raise ValueError(
            f"LIBLINEAR's files hold one function for each class, not the pairs of multi_class={model.scheme!r}; fit "
            "with 'ova', 'cs' or another machine, or use save_model."
        )
    spec = clf._spec
    hinge = "L2R_L1LOSS_SVC_DUAL" if spec.loss is Loss.HINGE else "L2R_L2LOSS_SVC_DUAL"
    coef, intercept = model.coef, model.intercept
    if model.n_classes == 2:
        # Positive for the first label: so it comes first, and a score of 0 goes to the other, as here.
        coef, intercept = model.public_weights()
        solver, labels = hinge, labels[::-1]
    else:
        solver = CRAMMER_SINGER if spec.machine.name == "cs" else hinge
    with_bias = bool(intercept.any())
    head = [f"solver_type {solver}", f"nr_class {len(labels)}", "label" + "".join(f" {label}" for label in labels)]
    head += [f"nr_feature {coef.shape[1]}", f"bias {1 if with_bias else -1}", "w"]
    columns = np.concatenate([coef.T, intercept[None, :]]) if with_bias else coef.T
    body = ["".join(f"{value!r} " for value in row) for row in columns.astype(np.float64).tolist()]
    return "\n".join([*head, *body]) + "\n"
