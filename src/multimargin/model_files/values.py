"""Parameters of estimators as data: plain values, dicts, lists, arrays, machines; functions are refused."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any

import numpy as np

from multimargin.base.errors import shown_label
from multimargin.model_files.errors import FaultError, require
from multimargin.model_files.records import Record, Writer, tagged
from multimargin.problems.machines import MACHINES, Bound, ComponentTable, Machine

BOUNDS = tuple(bound.value for bound in Bound)
MAX_WIDTH = 1_024  # characters of a dtype of texts that are kept beyond the longest text


def pack_value(value: Any, name: str, writer: Writer, n_classes: int) -> Any:
    """Return a value as JSON; what has no form there goes into an object with one name that says what it is."""
    if value is None or isinstance(value, str | np.bool_ | Real):
        return _pack_scalar(value)
    if isinstance(value, Machine):
        return {"machine": pack_machine(value, f"{name}.machine", writer, n_classes)}
    if isinstance(value, np.ndarray) and value.ndim <= 2:
        if value.dtype.kind != "f" or np.isfinite(value).all():
            return {"array": writer.put(name, value)}
        value = value.tolist()
    if isinstance(value, list | tuple):
        kind = "list" if isinstance(value, list) else "tuple"
        return {kind: [pack_value(each, f"{name}.{i}", writer, n_classes) for i, each in enumerate(value)]}
    if isinstance(value, dict):
        pairs = enumerate(value.items())
        return {"dict": [[pack_value(part, f"{name}.{i}", writer, n_classes) for part in pair] for i, pair in pairs]}
    raise TypeError(
        f"{name.rpartition('params.')[2]}={value!r} is of type {type(value).__name__}, which is not data; a model file "
        "holds numbers, texts, lists, dicts, arrays and machines, so set it to one of these or to None."
    )


def _pack_scalar(value: Any) -> Any:
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, Integral):
        return int(value)
    return tagged(float(value)) if isinstance(value, Real) else value


def unpack_value(value: Any, record: Record) -> Any:
    """Return the value that ``pack_value`` wrote."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    require(isinstance(value, dict) and len(value) == 1, f"its record {record.name!r} has a value of no known kind")
    ((kind, content),) = value.items()
    if kind == "float":
        return record_of(value, record).number("value", finite=False)
    if kind == "machine":
        return unpack_machine(Record(content, record.arrays, f"{record.name}.machine"))
    if kind == "array":
        return Record(value, record.arrays, record.name).array("array", "fiub")
    require(isinstance(content, list), f"its record {record.name!r} has a value of no known kind")
    if kind in ("list", "tuple"):
        values = [unpack_value(each, record) for each in content]
        return values if kind == "list" else tuple(values)
    require(kind == "dict", f"its record {record.name!r} has a value of no known kind")
    require(
        all(isinstance(pair, list) and len(pair) == 2 for pair in content), f"its record {record.name!r} has no dict"
    )
    try:
        return {unpack_value(key, record): unpack_value(each, record) for key, each in content}
    except TypeError:
        raise FaultError(f"its record {record.name!r} has a dict whose names cannot be such") from None


def record_of(value: Any, parent: Record) -> Record:
    """Return a record that holds one value under the name "value"."""
    return Record({"value": value}, parent.arrays, parent.name)


def pack_machine(machine: Machine, name: str, writer: Writer, n_classes: int) -> Any:
    """Return a published machine as its name, any other with its table for this number of classes."""
    known = MACHINES.get(machine.name)
    if known is not None and known.components is machine.components and known.bound is machine.bound:
        return {"known": machine.name}
    table = machine.table(n_classes)
    real = np.arange(table.class1.shape[1]) < table.n_components[:, None]  # the rest is padding
    empty = {"class1": 0, "value1": 0.0, "class2": -1, "value2": 0.0, "target": 0.0}
    filled = {field: np.where(real, getattr(table, field), nothing) for field, nothing in empty.items()}
    return {
        "name": machine.name,
        "bound": machine.bound.value,
        "sum_to_zero": bool(machine.sum_to_zero),
        "binary_factor": None if machine.binary_factor is None else tagged(machine.binary_factor),
        "source": machine.source,
        "n_components": writer.put(f"{name}.n_components", table.n_components),
        **{field: writer.put(f"{name}.{field}", values) for field, values in filled.items()},
    }


def unpack_machine(record: Record) -> Machine:
    """Return a machine; the table of one's own is checked as ``ComponentTable.from_dense`` checks it."""
    if "known" in record.fields:
        return MACHINES[record.text("known", tuple(MACHINES))]
    n_components = record.array("n_components", "i", low=1)
    require(n_components.ndim == 1 and n_components.dtype == np.int64, "its machine has no numbers of components")
    class1, d = record.array("class1", "i", low=0), len(n_components)
    shape = class1.shape
    require(
        len(shape) == 2 and shape[0] == d and bool((n_components <= shape[1]).all()),
        "its machine has another number of components than it says",
    )
    class2 = record.array("class2", "i", shape, low=-1)
    require(class1.dtype == class2.dtype == np.int64, "its machine has classes of another type than int64")
    require(d >= 2 and bool((class1 < d).all() and (class2 < d).all()), "its machine names classes that do not exist")
    value1, value2, target = (record.floats(field, shape) for field in ("value1", "value2", "target"))
    require(bool((value2[class2 < 0] == 0).all() and (class1 != class2).all()), "its machine has impossible components")
    factor = None if record.raw("binary_factor") is None else record.number("binary_factor", finite=False)
    require(factor is None or not math.isnan(factor), "its machine has no binary factor")
    return Machine(
        name=record.text("name"),
        bound=Bound(record.text("bound", BOUNDS)),
        sum_to_zero=record.flag("sum_to_zero"),
        components=ComponentTable(class1, value1, class2, value2, target, n_components),
        binary_factor=factor,
        source=record.text("source"),
    )


def pack_labels(labels: np.ndarray, name: str, writer: Writer) -> Any:
    """Return class labels or names of columns: numbers and bools as an array, texts as a list."""
    if labels.dtype.kind in "fiub":
        return {"array": writer.put(name, labels)}
    if labels.dtype.kind not in "UO" or not all(isinstance(label, str) for label in labels.tolist()):
        raise TypeError(
            f"{name} has the dtype {labels.dtype} and begins with {shown_label(labels[0])}; a model file holds labels "
            "that are texts, numbers or bools, so fit with such labels."
        )
    longest = max((len(label) for label in labels.tolist()), default=1)
    width = 0 if labels.dtype.kind == "O" else labels.dtype.itemsize // 4
    return {"texts": labels.tolist(), "width": width if width <= MAX_WIDTH else longest}


def unpack_labels(record: Record, n_labels: int | None = None) -> np.ndarray:
    """Return what ``pack_labels`` wrote; a width of 0 stands for Python's own texts."""
    if "array" in record.fields:
        labels = record.array("array", "fiub")
    else:
        texts = record.raw("texts")
        require(
            isinstance(texts, list) and all(isinstance(each, str) for each in texts),
            f"its record {record.name!r} is no list of texts",
        )
        longest = max((len(each) for each in texts), default=1)
        width = record.integer("width", high=max(MAX_WIDTH, longest))
        require(width == 0 or width >= longest, f"its record {record.name!r} has texts that are too long")
        labels = np.array(texts, dtype=np.dtype(("U", width)) if width else object)
    require(labels.ndim == 1, f"its record {record.name!r} is no vector")
    require(n_labels is None or len(labels) == n_labels, f"its record {record.name!r} does not have {n_labels} entries")
    return labels
