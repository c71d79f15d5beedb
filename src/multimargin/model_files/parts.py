"""Kernels, trained models, calibrators and certificates as records of a model file."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
from scipy import sparse

from multimargin._typing import DataMatrix
from multimargin.base.matrices import is_sparse, tidy
from multimargin.fitting.linear import LinearDual
from multimargin.kernels.spec import KernelSpec
from multimargin.kernels.table import KERNELS
from multimargin.model_files.errors import require
from multimargin.model_files.records import Record, Writer, tagged
from multimargin.models.calibration import (
    BinaryCalibrator,
    Calibrator,
    Curve,
    Isotonic,
    OneVsRestCalibrator,
    PairCalibrator,
    Sigmoid,
)
from multimargin.models.kernel_model import KernelModel
from multimargin.models.linear_model import LinearModel
from multimargin.models.pair_model import PairModel
from multimargin.problems.schemes import SCHEMES
from multimargin.solvers.certificate import Certificate
from multimargin.solvers.report import StopReason

# Powers are computed by a loop: the limit bounds the time of predictions with a damaged file.
MAX_DEGREE = 10_000
REASONS = tuple(reason.value for reason in StopReason)


def pack_kernel(kernel: KernelSpec) -> Any:
    if kernel.function is not None:
        raise ValueError(
            "kernel is a function, which a model file cannot hold, as reading it must execute nothing; fit with a "
            "kernel by name, or with kernel='precomputed' on the values of your function."
        )
    if kernel.degree > MAX_DEGREE:
        raise ValueError(f"degree={kernel.degree} is not allowed in a model file; use at most {MAX_DEGREE}.")
    plain = {"name": kernel.name, "degree": int(kernel.degree)}
    numbers = {name: float(getattr(kernel, name)) for name in ("gamma", "coef0", "offset")}
    tested = {"indefinite": kernel.indefinite, "tested_rows": kernel.tested_rows, "tested_all": kernel.tested_all}
    return plain | numbers | tested


def unpack_kernel(record: Record) -> KernelSpec:
    return KernelSpec(
        name=record.text("name", (*KERNELS, "precomputed")),
        gamma=record.number("gamma", low=0.0),
        degree=record.integer("degree", high=MAX_DEGREE),
        coef0=record.number("coef0"),
        offset=record.number("offset", low=0.0),
        indefinite=record.flag("indefinite"),
        tested_rows=record.integer("tested_rows"),
        tested_all=record.flag("tested_all"),
    )


def pack_rows(rows: DataMatrix, name: str, writer: Writer) -> Any:
    """Return a dense or sparse matrix as a record."""
    if not is_sparse(rows):
        return {"dense": writer.put(name, rows)}
    tidied = tidy(rows)
    parts = {part: writer.put(f"{name}.{part}", getattr(tidied, part)) for part in ("data", "indices", "indptr")}
    return parts | {"n_columns": int(rows.shape[1]), "matrix": isinstance(rows, sparse.spmatrix)}


def unpack_rows(record: Record, shape: tuple[int, int]) -> DataMatrix:
    """Return a matrix of this shape whose entries are finite and, if it is sparse, in order."""
    if "dense" in record.fields:
        return record.array("dense", "f", shape)
    n_rows, n_columns = shape
    record.integer("n_columns", low=n_columns, high=n_columns)
    data = record.array("data", "f")
    indices, starts = record.indices("indices", n_columns), record.indices("indptr", len(data) + 1)
    require(indices.dtype == starts.dtype and indices.shape == data.shape, "its sparse rows do not fit together")
    require(indices.dtype in (np.int32, np.int64), "its sparse rows have indices of another type")
    require(len(starts) == n_rows + 1, f"its sparse rows are not {n_rows}")
    require(int(starts[0]) == 0 and int(starts[-1]) == len(data), "its sparse rows do not fill their entries")
    require(bool((np.diff(starts) >= 0).all()), "its sparse rows overlap")
    ascending = np.diff(indices) > 0
    firsts = starts[1:-1]  # an entry that begins a row may be smaller than the one before
    ascending[firsts[(firsts > 0) & (firsts < len(data))] - 1] = True
    require(bool(ascending.all()), "its sparse rows are not in order")
    kind = sparse.csr_matrix if record.flag("matrix") else sparse.csr_array
    return kind((data, indices, starts), shape=shape)


def pack_expansion(model: KernelModel | PairModel, name: str, writer: Writer) -> Any:
    """Return an expansion in support vectors as a record."""
    common = {
        "kernel": pack_kernel(model.kernel),
        "support": writer.put(f"{name}.support", np.asarray(model.support, dtype=np.int64)),
        "n_support": writer.put(f"{name}.n_support", np.asarray(model.n_support, dtype=np.int32)),
        "intercept": writer.put(f"{name}.intercept", model.intercept),
        "support_vectors": pack_rows(model.support_vectors, f"{name}.support_vectors", writer),
    }
    if isinstance(model, PairModel):
        order = None if model.label_order is None else list(model.label_order)
        own = {"dual_coef": writer.put(f"{name}.dual_coef", model.dual_coef), "label_order": order}
        return {"kind": "pairs", "scheme": model.scheme} | common | own
    return {"kind": "classes"} | common | {"beta": writer.put(f"{name}.beta", model.beta)}


def unpack_expansion(record: Record, n_classes: int, shape_fit: tuple[int, int]) -> KernelModel | PairModel:
    """Return the expansion of a machine with so many classes that was trained on data of this shape."""
    kernel = unpack_kernel(record.child("kernel"))
    support = record.indices("support", shape_fit[0])
    n_support = record.array("n_support", "i", (n_classes,), low=0)
    require(
        support.dtype == np.int64 and n_support.dtype == np.int32, "its support vectors are counted in another type"
    )
    n = len(support)
    require(int(n_support.sum(dtype=np.int64)) == n, "its numbers of support vectors do not sum to their number")
    given = kernel.name == "precomputed"
    require(not given or shape_fit[0] == shape_fit[1], "its precomputed kernel was not square")
    rows = unpack_rows(record.child("support_vectors"), (0, 0) if given else (n, shape_fit[1]))
    kind = record.text("kind", ("pairs", "classes"))
    if kind == "classes":
        beta, intercept = record.floats("beta", (n, n_classes)), record.floats("intercept", (n_classes,))
        return KernelModel(support, rows, n_support, beta, intercept, kernel)
    n_pairs = n_classes * (n_classes - 1) // 2
    return PairModel(
        support=support,
        support_vectors=rows,
        n_support=n_support,
        dual_coef=record.floats("dual_coef", (n_classes - 1, n)),
        intercept=record.floats("intercept", (n_pairs,)),
        kernel=kernel,
        scheme=record.text("scheme", SCHEMES),
        label_order=_unpack_order(record.raw("label_order"), n_classes),
    )


def _unpack_order(order: Any, n_classes: int) -> tuple[int, ...] | None:
    if order is None:
        return None
    good = isinstance(order, list) and all(type(code) is int for code in order)
    require(good and sorted(order) == list(range(n_classes)), "its order of labels is no order of all classes")
    return tuple(order)


def pack_linear(model: LinearModel, dual: LinearDual, name: str, writer: Writer) -> Any:
    """Return weights, and the dual coefficients that verification needs, as a record."""
    return {
        "kind": "linear",
        "scheme": model.scheme,
        "coef": writer.put(f"{name}.coef", model.coef),
        "intercept": writer.put(f"{name}.intercept", model.intercept),
        "support": writer.put(f"{name}.support", np.asarray(dual.support, dtype=np.int64)),
        "beta": pack_rows(dual.beta, f"{name}.beta", writer),
    }


def unpack_linear(record: Record, n_classes: int, shape_fit: tuple[int, int]) -> tuple[LinearModel, LinearDual]:
    record.text("kind", ("linear",))
    scheme = record.text("scheme", ("", *SCHEMES))
    n_functions = n_classes * (n_classes - 1) // 2 if scheme else n_classes
    coef = record.floats("coef", (n_functions, shape_fit[1]))
    model = LinearModel(coef, record.floats("intercept", (n_functions,)), n_classes, scheme)
    support = record.indices("support", shape_fit[0])
    require(support.dtype == np.int64, "its support is counted in another type")
    return model, LinearDual(support, unpack_rows(record.child("beta"), (len(support), n_functions)))


def pack_calibrator(calibrator: Calibrator | None, name: str, writer: Writer) -> Any:
    if calibrator is None:
        return None
    curves: tuple[Curve, ...]
    if isinstance(calibrator, BinaryCalibrator):
        kind, curves = "binary", (calibrator.curve,)
    elif isinstance(calibrator, OneVsRestCalibrator):
        kind, curves = "classes", calibrator.curves
    elif isinstance(calibrator, PairCalibrator):
        kind, curves = "pairs", calibrator.curves
    else:
        raise TypeError(f"A calibrator of type {type(calibrator).__name__} cannot be saved; fit with calibration=None.")
    return {"kind": kind, "curves": [_pack_curve(each, f"{name}.{i}", writer) for i, each in enumerate(curves)]}


def _pack_curve(curve: Curve, name: str, writer: Writer) -> Any:
    if isinstance(curve, Sigmoid):
        return {"slope": float(curve.slope), "offset": float(curve.offset)}
    assert isinstance(curve, Isotonic)
    return {part: writer.put(f"{name}.{part}", np.array(getattr(curve, part))) for part in ("knots", "values")}


def unpack_calibrator(parent: Record, field: str, n_classes: int, *, pairs: bool) -> Calibrator | None:
    """Return the calibrator of a model with so many classes; ``pairs``: whether it has scores of pairs."""
    if parent.raw(field) is None:
        return None
    record = parent.child(field)
    kind = record.text("kind", ("binary", "classes", "pairs"))
    curves = [_unpack_curve(each) for each in record.children("curves")]
    wanted = {"binary": 1, "classes": n_classes, "pairs": n_classes * (n_classes - 1) // 2}[kind]
    require(len(curves) == wanted and (kind == "binary") <= (n_classes == 2), "its number of curves is wrong")
    require(kind != "classes" or n_classes > 2, "its calibration is not that of two classes")
    if kind == "binary":
        return BinaryCalibrator(curves[0])
    if kind == "classes":
        return OneVsRestCalibrator(tuple(curves))
    sigmoids = tuple(curve for curve in curves if isinstance(curve, Sigmoid))
    require(pairs and len(sigmoids) == len(curves), "its calibration of pairs does not fit the model")
    return PairCalibrator(sigmoids)


def _unpack_curve(record: Record) -> Sigmoid | Isotonic:
    if "slope" in record.fields:
        return Sigmoid(record.number("slope"), record.number("offset"))
    knots = record.array("knots", "f")
    require(knots.ndim == 1 and len(knots) > 0 and bool((np.diff(knots) > 0).all()), "its knots are not in order")
    values = record.floats("values", knots.shape, low=0.0)
    good = bool((values <= 1).all() and (np.diff(values) >= 0).all()) and knots.dtype == np.float64
    require(good, "its curve is no rising curve of probabilities")
    return Isotonic(tuple(knots.tolist()), tuple(values.tolist()))


def pack_certificate(certificate: Certificate) -> Any:
    plain = {
        entry.name: tagged(value) if isinstance(value, float) else value
        for entry in fields(Certificate)
        if entry.name != "parts"
        for value in (getattr(certificate, entry.name),)
    }
    plain = {name: value.item() if isinstance(value, np.generic) else value for name, value in plain.items()}
    return plain | {"parts": [pack_certificate(part) for part in certificate.parts]}


def unpack_certificate(record: Record) -> Certificate:
    numbers = ("primal", "dual", "gap", "relative_gap", "kkt_violation", "tol", "seconds")
    counts = ("n_iter", "kernel_rows", "cache_hits", "blocks", "exact_blocks", "feature_sweeps")
    found: dict[str, Any] = {name: record.number(name, finite=False) for name in numbers}
    found |= {name: record.integer(name) for name in counts}
    found |= {name: record.flag(name) for name in ("verified", "float64_rows")}
    found |= {name: record.text(name) for name in ("solver", "solver_reason", "remark")}
    found |= {"stop_reason": record.text("stop_reason", REASONS)}
    return Certificate(**found, parts=tuple(unpack_certificate(part) for part in record.children("parts")))
