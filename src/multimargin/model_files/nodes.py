"""Estimators as records of a model file: their parameters, and the fitted state for prediction and verification."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from multimargin.estimators.linear_svc import LinearSVC
from multimargin.estimators.svc import SVC
from multimargin.fitting.linear import check_linear_control, linear_attributes
from multimargin.fitting.machine import expansion_attributes
from multimargin.fitting.parameters import check_control
from multimargin.fitting.spec import FitSpec
from multimargin.model_files import parts
from multimargin.model_files.errors import FaultError, require
from multimargin.model_files.pipelines import is_scaled, pack_scaler, unpack_scaler
from multimargin.model_files.records import Record, Writer, tagged
from multimargin.model_files.values import (
    pack_labels,
    pack_machine,
    pack_value,
    unpack_labels,
    unpack_machine,
    unpack_value,
)
from multimargin.model_selection.pair_selection import PerPairSVC
from multimargin.models.kernel_model import KernelModel
from multimargin.models.pair_model import PairModel, pair_model_attributes
from multimargin.problems.machines import ComponentTable
from multimargin.problems.problem import Bias, Loss
from multimargin.problems.schemes import DAG, ONE_VS_ONE, SCHEMES

PIPELINE = "Pipeline"
# Callbacks and random generators are not part of the model; they become None.
LISTENERS = ("on_progress", "random_state")


def pack_estimator(estimator: Any, name: str, writer: Writer) -> Any:
    """Return a fitted estimator as a record."""
    check_is_fitted(estimator)
    if is_scaled(estimator):
        inner = pack_estimator(estimator[-1], name, writer)
        names = getattr(estimator, "feature_names_in_", None)
        packed = None if names is None else pack_labels(names, f"{name}.scaler.feature_names", writer)
        scaler = pack_scaler(estimator[0], f"{name}.scaler", writer)
        return {"type": PIPELINE, "scaler": scaler, "feature_names": packed, "estimator": inner}
    kind = next(each for each in KINDS if type(estimator) is KINDS[each][0])
    return {"type": kind, "params": pack_params(estimator, name, writer)} | KINDS[kind][1](estimator, name, writer)


def unpack_estimator(record: Record) -> Any:
    """Return the fitted estimator of a record."""
    kind = record.text("type", (*KINDS, PIPELINE))
    if kind == PIPELINE:
        return _unpack_scaled(record)
    cls, _, unpack = KINDS[kind]
    estimator = cls(**unpack_params(cls, record))
    estimator.__dict__.update(unpack(estimator, record))
    return estimator


def _unpack_scaled(record: Record) -> Pipeline:
    inner = record.child("estimator")
    inner.text("type", tuple(KINDS))  # no pipeline in a pipeline
    model = unpack_estimator(inner)
    scaler = unpack_scaler(record.child("scaler"), int(model.n_features_in_))
    if record.raw("feature_names") is not None:
        scaler.feature_names_in_ = unpack_labels(record.child("feature_names"), int(model.n_features_in_))
    return Pipeline([("scaler", scaler), ("classifier", model)])


def pack_params(estimator: Any, name: str, writer: Writer) -> Any:
    """Return the parameters of an estimator, fitted or not."""
    params = estimator.get_params(deep=False)
    n_classes = len(getattr(estimator, "classes_", (0, 1)))
    if callable(params.get("kernel")):
        raise ValueError(
            "kernel is a function, which a model file cannot hold, as reading it must execute nothing; fit with a "
            "kernel by name, or with kernel='precomputed' on the values of your function."
        )
    for listener in LISTENERS:
        if not isinstance(params.get(listener), int | np.integer | None):
            params[listener] = None
    _check_params(type(estimator), params)
    packed = {}
    for param, value in params.items():
        if isinstance(value, SVC):
            packed[param] = {"estimator": pack_params(value, f"{name}.params.{param}", writer)}
        else:
            packed[param] = pack_value(value, f"{name}.params.{param}", writer, n_classes)
    return packed


def unpack_params(cls: Any, record: Record) -> dict[str, Any]:
    """Return checked parameters for a class of estimators; those that the file does not have keep their defaults."""
    found = record.child("params")
    known = cls().get_params(deep=False)
    params = {}
    for name, value in found.fields.items():
        require(name in known, f"it has the parameter {name[:40]!r}, which {cls.__name__} does not know")
        if isinstance(value, dict) and "estimator" in value:
            require(cls is PerPairSVC and name == "estimator", f"its parameter {name!r} is an estimator")
            params[name] = SVC(**unpack_params(SVC, Record({"params": value["estimator"]}, record.arrays, "estimator")))
        else:
            params[name] = unpack_value(value, found)
        require(name not in LISTENERS or isinstance(params[name], int | None), f"its parameter {name!r} is no integer")
    try:
        _check_params(cls, known | params)
    except (ValueError, TypeError, OverflowError) as error:
        raise FaultError(f"one of its parameters is wrong: {error}") from None
    return params


def _check_params(cls: type, params: dict[str, Any]) -> None:
    """Check the parameters that predictions use; the next fit checks the others."""
    if issubclass(cls, SVC):
        check_control(params)
    elif issubclass(cls, LinearSVC):
        check_linear_control(params)


def _pack_shared(estimator: Any, name: str, writer: Writer) -> dict[str, Any]:
    names = getattr(estimator, "feature_names_in_", None)
    return {
        "classes": pack_labels(estimator.classes_, f"{name}.classes", writer),
        "n_features": int(estimator.n_features_in_),
        "feature_names": None if names is None else pack_labels(names, f"{name}.feature_names", writer),
        "n_iter": writer.put(f"{name}.n_iter", np.atleast_1d(estimator.n_iter_)),
        "certificate": parts.pack_certificate(estimator.certificate_),
    }


def _unpack_shared(record: Record) -> dict[str, Any]:
    classes = unpack_labels(record.child("classes"))
    require(len(classes) >= 2, "it has fewer than two classes")
    require(bool((classes[1:] > classes[:-1]).all()), "its classes are not in order")
    n_features = record.integer("n_features", low=1)
    attributes = {
        "classes_": classes,
        "n_features_in_": n_features,
        "n_iter_": record.array("n_iter", "i", low=0),
        "certificate_": parts.unpack_certificate(record.child("certificate")),
    }
    if record.raw("feature_names") is None:
        return attributes
    return attributes | {"feature_names_in_": unpack_labels(record.child("feature_names"), n_features)}


def _pack_fit(estimator: Any, name: str, writer: Writer) -> dict[str, Any]:
    """The part that SVC and LinearSVC share."""
    spec: FitSpec = estimator._spec
    packed_spec = {
        "machine": pack_machine(spec.machine, f"{name}.machine", writer, _classes_of(spec, estimator)),
        "kernel": parts.pack_kernel(spec.kernel),
        "loss": spec.loss.value,
        "bias": spec.bias.value,
        "C": tagged(spec.C),
        "tol": tagged(spec.tol),
        "scheme": spec.scheme,
    }
    return _pack_shared(estimator, name, writer) | {
        "class_weight": writer.put(f"{name}.class_weight", np.asarray(estimator.class_weight_, dtype=np.float64)),
        "shape_fit": [int(size) for size in estimator.shape_fit_],
        "fit_status": int(estimator.fit_status_),
        "recipe": packed_spec,
    }


def _classes_of(spec: FitSpec, estimator: Any) -> int:
    return 2 if spec.scheme else len(estimator.classes_)


def _unpack_fit(record: Record) -> tuple[dict[str, Any], tuple[Any, ...]]:
    """Return attributes, and what the attributes of a model need: classes, their weights, the shape of the data."""
    attributes = _unpack_shared(record)
    classes = attributes["classes_"]
    shape = record.raw("shape_fit")
    good = isinstance(shape, list) and len(shape) == 2 and all(type(n) is int and n >= 0 for n in shape)
    require(good and shape[1] == attributes["n_features_in_"], "its data had another shape than its model")
    weight = record.floats("class_weight", (len(classes),), low=0.0)
    spec = _unpack_spec(record.child("recipe"), len(classes))
    attributes |= {"fit_status_": record.integer("fit_status", high=1), "_spec": spec, "_state": None}
    return attributes, (classes, weight, (shape[0], shape[1]))


def _unpack_spec(record: Record, n_classes: int) -> FitSpec:
    scheme = record.text("scheme", ("", *SCHEMES))
    machine = unpack_machine(record.child("machine"))
    # Other machines are defined for any number of classes; a table in a file has one.
    if isinstance(machine.components, ComponentTable):
        n_needed = 2 if scheme else n_classes
        require(machine.components.n_classes == n_needed, "its machine is made for another number of classes")
    return FitSpec(
        machine=machine,
        kernel=parts.unpack_kernel(record.child("kernel")),
        loss=Loss(record.text("loss", tuple(loss.value for loss in Loss))),
        bias=Bias(record.text("bias", tuple(bias.value for bias in Bias))),
        C=record.number("C", low=0.0, finite=False),
        tol=record.number("tol", low=0.0),
        scheme=scheme,
    )


def _pack_svc(clf: SVC, name: str, writer: Writer) -> dict[str, Any]:
    return _pack_fit(clf, name, writer) | {
        "model": parts.pack_expansion(clf._model, f"{name}.model", writer),
        "calibrator": parts.pack_calibrator(clf._calibrator, f"{name}.calibrator", writer),
    }


def _unpack_svc(clf: SVC, record: Record) -> dict[str, Any]:
    attributes, known = _unpack_fit(record)
    classes, _, shape = known
    model = parts.unpack_expansion(record.child("model"), len(classes), shape)
    pairs = isinstance(model, PairModel)
    scheme = attributes["_spec"].scheme
    require(scheme == (model.scheme if isinstance(model, PairModel) else ""), "its model is not that of its machine")
    require(isinstance(clf.kernel, str), "its kernel is no name")
    require(pairs or clf.decision_function_shape == "ovr", "its model has no scores of pairs of classes")
    made = pair_model_attributes(model, *known) if isinstance(model, PairModel) else expansion_attributes(model, *known)
    calibrator = parts.unpack_calibrator(record, "calibrator", len(classes), pairs=pairs)
    return attributes | made | {"_calibrator": calibrator}


def _pack_linear_svc(clf: LinearSVC, name: str, writer: Writer) -> dict[str, Any]:
    return _pack_fit(clf, name, writer) | {"model": parts.pack_linear(clf._model, clf._dual, f"{name}.model", writer)}


def _unpack_linear_svc(_: LinearSVC, record: Record) -> dict[str, Any]:
    attributes, known = _unpack_fit(record)
    model, dual = parts.unpack_linear(record.child("model"), len(known[0]), known[2])
    require(attributes["_spec"].scheme == model.scheme, "its model is not that of its machine")
    attributes["n_iter_"] = max(1, int(attributes["n_iter_"].max(initial=1)))
    return attributes | linear_attributes(model, dual, *known)


def _pack_per_pair(clf: PerPairSVC, name: str, writer: Writer) -> dict[str, Any]:
    pairs = [pack_estimator(each, f"{name}.pair{i}", writer) for i, each in enumerate(clf.estimators_)]
    return _pack_shared(clf, name, writer) | {
        "pairs": pairs,
        "scheme": clf._scheme,
        "break_ties": bool(clf._break_ties),
    }


def _unpack_per_pair(_: PerPairSVC, record: Record) -> dict[str, Any]:
    attributes = _unpack_shared(record)
    classes = attributes["classes_"]
    machines = []
    for pair in record.children("pairs"):
        pair.text("type", ("SVC",))
        machines.append(unpack_estimator(pair))
    require(len(machines) == len(classes) * (len(classes) - 1) // 2, "it does not have a machine for every pair")
    for machine in machines:
        same = machine.n_features_in_ == attributes["n_features_in_"] and len(machine.classes_) == 2
        require(same and isinstance(machine._model, KernelModel | PairModel), "a machine of a pair does not fit")
        require(hasattr(machine, "decision_function"), "a machine of a pair has no scores")
    return attributes | {
        "estimators_": machines,
        "_scheme": record.text("scheme", (ONE_VS_ONE, DAG)),
        "_break_ties": record.flag("break_ties"),
    }


Pack = Callable[[Any, str, Writer], dict[str, Any]]
Unpack = Callable[[Any, Record], dict[str, Any]]
KINDS: dict[str, tuple[type, Pack, Unpack]] = {
    "SVC": (SVC, _pack_svc, _unpack_svc),
    "LinearSVC": (LinearSVC, _pack_linear_svc, _unpack_linear_svc),
    "PerPairSVC": (PerPairSVC, _pack_per_pair, _unpack_per_pair),
}
