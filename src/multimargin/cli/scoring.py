"""Labels, probabilities and scores of rows that may have other columns than the model."""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from multimargin.base.matrices import is_sparse
from multimargin.cli.data import named
from multimargin.data_files import Table
from multimargin.data_files.errors import fault, shown
from multimargin.models.kernel_model import KernelModel
from multimargin.models.pair_model import PairModel


def aligned(table: Table, model: Any, path: Path) -> Table:
    """Return the rows with the model's columns: by their names where both have names, else by their number."""
    names = getattr(model, "feature_names_in_", None)
    if names is not None and table.feature_names is not None:
        missing = [name for name in names if name not in table.feature_names]
        if missing:
            raise fault(path, f"has no column {shown(str(missing[0]))}, which the model was trained on")
        positions = [table.feature_names.index(name) for name in names]
        return Table(np.ascontiguousarray(table.X[:, positions]), table.y, tuple(map(str, names)))
    wanted = int(model.n_features_in_)
    if getattr(model, "kernel", None) == "precomputed" and table.n_features > wanted:
        return table  # LIBSVM's text has the columns up to its last support vector only
    if not is_sparse(table.X) and table.n_features != wanted:
        raise fault(path, f"has {table.n_features} columns beside the label's, but the model was trained on {wanted}")
    return table


def widened(model: Any, n_features: int) -> Any:
    """Return a copy of the model for rows with more columns, in which its support vectors are zero.

    As in LIBSVM: an index that did not occur in the training data counts for distances only.
    """
    expansion = model._model
    parts = Table(expansion.support_vectors, None).widened(n_features)
    other = copy.copy(model)
    other.__dict__["_model"] = replace(expansion, support_vectors=parts.X)
    other.__dict__["n_features_in_"] = n_features
    return other


def predictions(model: Any, table: Table, given: dict[str, Any]) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the labels and, on request, the probabilities or the scores, shape (n_rows, n_columns)."""
    extra = table.n_features - int(model.n_features_in_)
    if extra > 0:
        expansion = getattr(model, "_model", None)
        # Where distances count, a column that is zero in all support vectors changes the values.
        if isinstance(expansion, KernelModel | PairModel) and expansion.kernel.shift_invariant:
            model = widened(model, table.n_features)
        else:
            table = Table(table.X[:, : model.n_features_in_], table.y, table.feature_names)
    X = named(table)
    if given["probability"]:
        numbers: np.ndarray = model.predict_proba(X)
        return model.predict(X), numbers
    if getattr(model, "calibration", None) == "coupling":  # without -b 1 the votes decide, as in svm-predict
        model = copy.copy(model).set_params(calibration=None)
    if given["scores"]:
        scores = np.asarray(model.decision_function(X))
        return model.predict(X), scores.reshape(len(scores), -1)
    return model.predict(X), None
