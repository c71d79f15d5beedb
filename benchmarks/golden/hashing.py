"""One hash of all public values of a fitted object, bit by bit, without times and messages."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator

from multimargin import Certificate, StreamHistory, SVMPath, Trace

# What is compared of them. Seconds differ from run to run, and messages may change.
CERTIFICATE = (
    *("primal", "dual", "gap", "relative_gap", "kkt_violation", "tol", "verified", "stop_reason", "n_iter"),
    *("kernel_rows", "cache_hits", "solver", "float64_rows", "blocks", "exact_blocks", "feature_sweeps", "parts"),
)
TRACE = ("iterations", "kernel_rows", "violation", "dual", "primal", "n_active", "n_variables", "n_free", "n_bounded")
PATH = ("Cs", "certificates", "n_iter", "face_changes", "coefs", "intercepts", "saturation_C", "stop_reason")
HISTORY = ("n_seen", "n_tested", "n_correct")
SHOWN: dict[type, tuple[str, ...]] = {Certificate: CERTIFICATE, Trace: TRACE, SVMPath: PATH, StreamHistory: HISTORY}
# Attributes that hold times, what tests of other cases hash, functions, or what is deprecated.
LEFT_OUT = {"refit_time_", "search_seconds_", "pair_selection_", "scorer_", "probA_", "probB_"}


@dataclass(frozen=True)
class Case:
    """A name, and the function that makes the values to be hashed."""

    name: str
    values: Callable[[], Any]


@dataclass(frozen=True)
class Derived:
    """A value that is computed from a model, perhaps by other means than the core's."""

    value: Any


class Digests:
    """Two hashes: of models, and of what is derived from them, certificates among it."""

    def __init__(self) -> None:
        self.model, self.derived = hashlib.sha256(), hashlib.sha256()

    def render(self) -> str:
        """Return the beginnings of both."""
        return f"{self.model.hexdigest()[:16]} {self.derived.hexdigest()[:16]}"


def hash_of(case: Case) -> str:
    """Return the hashes of a case; for a refused one the hash of the refusal (the message may change)."""
    try:
        values = case.values()
    except ValueError:
        return "refused"
    digests = Digests()
    _add(digests, digests.model, values)
    return digests.render()


def shown(model: Any, points: Any) -> dict[str, Any]:
    """Return all fitted attributes of an estimator, and what it says about rows it has not seen."""
    values: dict[str, Any] = attributes_of(model)
    for method in ("decision_function", "predict", "predict_proba"):
        if hasattr(model, method):
            values[method] = Derived(getattr(model, method)(points))
    return values


def attributes_of(model: Any) -> dict[str, Any]:
    """Return the attributes by name: those with an underscore at the end."""
    names = [name for name in dir(model) if name.endswith("_") and not name.startswith("_") and name not in LEFT_OUT]
    found = {name: getattr(model, name) for name in names if hasattr(model, name)}
    for name in {"dual_coef_", "coef_"} & found.keys():  # whether they are sparse is no matter of bits
        found[name] = found[name].toarray() if sparse.issparse(found[name]) else found[name]
    if isinstance(found.get("n_iter_"), int):  # the largest of all parts
        parts = found["certificate_"].parts or (found["certificate_"],)
        found["n_iter_"] = np.array([max(1, part.n_iter) for part in parts], dtype=np.int32)
    if "coef_" in found and "dual_coef_" in found:  # a product of the latter and the rows
        found["coef_"] = Derived(found["coef_"])
    return found


def _add(digests: Digests, into: Any, value: Any) -> None:
    """Feed a value into a hash, with its kind and shape; what is derived into its own."""
    if isinstance(value, Derived):
        _add(digests, digests.derived, value.value)
    elif type(value) in SHOWN:
        into = digests.derived if isinstance(value, Certificate) else into
        _add(digests, into, {name: getattr(value, name) for name in SHOWN[type(value)]})
    elif isinstance(value, BaseEstimator):
        _add(digests, into, attributes_of(value))
    elif sparse.issparse(value):
        rows = sparse.csr_array(value)
        _add(digests, into, [rows.shape, rows.data, rows.indices.astype(np.int64), rows.indptr.astype(np.int64)])
    elif isinstance(value, Mapping):
        for key in sorted(value, key=str):
            if "time" not in str(key):  # of cv_results_
                into.update(f"{key}:".encode())
                _add(digests, into, value[key])
    elif isinstance(value, Sequence | np.ndarray) and not _is_leaf(value):
        into.update(f"[{len(value)}]".encode())
        for entry in value:
            _add(digests, into, entry)
    else:
        into.update(_bytes_of(value))


def _is_leaf(value: Any) -> bool:
    return isinstance(value, str) or (isinstance(value, np.ndarray) and value.dtype != object)


def _bytes_of(value: Any) -> bytes:
    """Return the bits of an array of numbers, a number or a text."""
    if isinstance(value, np.ndarray):
        return f"{value.dtype.str}{value.shape}".encode() + np.ascontiguousarray(value).tobytes()
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, float):
        return float(value).hex().encode()
    if value is None or isinstance(value, int | np.generic):
        return repr(value).encode()
    raise TypeError(f"{type(value).__name__} has no values to be hashed; name them in SHOWN.")
