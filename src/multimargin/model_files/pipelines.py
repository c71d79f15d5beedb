"""Pipelines of a scaler and a classifier as records: the model of data that are scaled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

from multimargin.model_files.errors import require
from multimargin.model_files.records import Record, Writer

# The attributes of a fitted scaler that are stored, each a number for each column.
STORED = {
    StandardScaler: ("mean_", "scale_"),
    MinMaxScaler: ("data_min_", "data_max_"),
    MaxAbsScaler: ("max_abs_",),
}
NAMES = {kind.__name__: kind for kind in STORED}
INTERVAL = (-1.0, 1.0)


def is_scaled(estimator: Any) -> bool:
    """Return whether this is a pipeline of a scaler that can be stored and a classifier."""
    steps = [step for _, step in estimator.steps] if isinstance(estimator, Pipeline) else []
    return len(steps) == 2 and type(steps[0]) in STORED


def check_scaler(scaler: Any) -> None:
    """Refuse settings that the file does not hold."""
    params = scaler.get_params()
    interval = params.get("feature_range", INTERVAL)
    if tuple(interval) != INTERVAL or params.get("clip") or not params.get("with_std", True):
        raise ValueError(
            f"{scaler!r} is not saved; of pipelines a StandardScaler, a MinMaxScaler to (-1, 1) or a MaxAbsScaler "
            "before the classifier is."
        )


def pack_scaler(scaler: Any, name: str, writer: Writer) -> dict[str, Any]:
    """Return a fitted scaler as a record."""
    check_scaler(scaler)
    values = {attribute: getattr(scaler, attribute) for attribute in STORED[type(scaler)]}
    arrays = {
        attribute: writer.put(f"{name}.{attribute}", np.zeros(scaler.n_features_in_) if value is None else value)
        for attribute, value in values.items()
    }
    return {"kind": type(scaler).__name__, "arrays": arrays, "centred": bool(getattr(scaler, "with_mean", True))}


def unpack_scaler(record: Record, n_features: int) -> Any:
    """Return the fitted scaler of a record."""
    kind = NAMES[record.text("kind", tuple(NAMES))]
    found = record.child("arrays")
    wanted = set(STORED[kind])
    require(set(found.fields) == wanted, "its scaler has other arrays than its kind")
    arrays = {name: found.floats(name, (n_features,)) for name in STORED[kind]}
    scaler = MAKERS[kind](arrays, record.flag("centred"))
    scaler.n_features_in_, scaler.n_samples_seen_ = n_features, 1
    return scaler


def _standard(arrays: dict[str, np.ndarray], centred: bool) -> StandardScaler:
    require(bool((arrays["scale_"] > 0).all()), "its scaler divides by zero")
    scaler = StandardScaler(with_mean=centred)
    scaler.__dict__.update(arrays, var_=np.square(arrays["scale_"]))
    return scaler


def _range(arrays: dict[str, np.ndarray], _: bool) -> MinMaxScaler:
    low, high = arrays["data_min_"], arrays["data_max_"]
    require(bool((low <= high).all()), "its scaler has columns whose least value is above the largest")
    return MinMaxScaler(feature_range=INTERVAL).fit(np.stack([low, high]))


def _largest(arrays: dict[str, np.ndarray], _: bool) -> MaxAbsScaler:
    return MaxAbsScaler().fit(arrays["max_abs_"][None])


MAKERS: dict[type, Callable[[dict[str, np.ndarray], bool], Any]] = {
    StandardScaler: _standard,
    MinMaxScaler: _range,
    MaxAbsScaler: _largest,
}
