"""The cases: machines, kernels, bias rules, losses, solvers, storages, and everything else that trains or converts a
model.

A name is a path such as ``svc/lattice/ww/rbf/exact/hinge``. A refused combination is a case, too.
"""

from __future__ import annotations

import itertools
import tempfile
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from sklearn.exceptions import ConvergenceWarning

from benchmarks.golden.hashing import Case, shown
from benchmarks.golden.sets import CLOUD, LARGE, LATTICE, MEDIUM, MEDIUM_LATTICE, TWO, Set
from benchmarks.golden.streams import stream_cases
from multimargin import MACHINES, SVC, LinearSVC, dump_libsvm, from_sklearn, load_model, save_model, to_sklearn, verify
from multimargin.bounds import generalization_bound

ALL = ("ovo", "dag", *(name for name in MACHINES))
SOME = ("ovo", "ova", "ww", "cs", "llw")
BIASES = ("none", "regularized", "exact")
LOSSES = ("hinge", "squared_hinge")
SOLVERS = ("smo", "s2do", "working-set", "whole-example", "semi-greedy", "two-level", "maximum-gain")
SOLVERS_OF_PAIRS = ("most-violating-pair", "maximum-gain", "smo")
LINEAR_SOLVERS = ("auto", "descent", "newton")
# Powers of two, so that polynomials of whole numbers are exact.
KERNELS: dict[str, dict[str, Any]] = {
    "linear": {},
    "poly": {"degree": 2, "gamma": 0.0625, "coef0": 1.0},
    "rbf": {"gamma": 0.05},
    "sigmoid": {"gamma": 0.01, "coef0": -0.1},
    "laplacian": {"gamma": 0.1},
}
VARIANTS: dict[str, dict[str, Any]] = {
    "hard margin": {"C": float("inf")},
    "large C": {"C": 1e4},
    "small C": {"C": 1e-3},
    "small tol": {"tol": 1e-8},
    "max_iter": {"max_iter": 7},
    "no cache": {"cache_size": 0},
    "balanced": {"class_weight": "balanced"},
    "class weights": {"class_weight": {0: 2.0, 1: 0.5}},
    "no shrinking": {"shrinking": False, "solver": "s2do"},
    "shrinking variables": {"shrinking": "variables", "solver": "s2do"},
    "shrinking examples": {"shrinking": "examples", "solver": "s2do"},
    "trace": {"trace": True},
    "primal trace": {"trace": "primal"},
    "scores of pairs": {"decision_function_shape": "ovo"},
    "ties": {"break_ties": True},
    "gamma auto": {"gamma": "auto"},
    "gamma scale": {"gamma": "scale"},
}


def all_cases() -> list[Case]:
    """Return every case, in an order that does not change."""
    found = list(itertools.chain(_svc(), _svc_variants(), _larger(), _linear(), _turned_over(), stream_cases()))
    names = [case.name for case in found]
    assert len(set(names)) == len(names), "two cases have the same name"
    return found


def fitted(kind: type, data: Set, storage: str = "dense64", weighted: bool = False, **params: Any) -> Any:
    """Return a fitted model of the set, and its rows to score."""
    X, points = data.stored(storage)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = kind(**params).fit(X, data.y, *([data.weight] if weighted else []))
    return model, points


def case(name: str, kind: type, data: Set, **params: Any) -> Case:
    """Return the case of a fit."""
    return Case(name, lambda: shown(*fitted(kind, data, **params)))


def _svc() -> Iterator[Case]:
    for machine, (kernel, numbers), bias, loss in itertools.product(ALL, KERNELS.items(), BIASES, LOSSES):
        if kernel in ("linear", "poly", "rbf"):
            params = {"multi_class": machine, "kernel": kernel, "bias": bias, "loss": loss, **numbers}
            yield case(f"svc/lattice/{machine}/{kernel}/{bias}/{loss}", SVC, LATTICE, **params)
    for machine, (kernel, numbers), loss in itertools.product(ALL, KERNELS.items(), LOSSES):
        params = {"multi_class": machine, "kernel": kernel, "loss": loss, "C": 3.0, **numbers}
        yield case(f"svc/cloud/{machine}/{kernel}/{loss}", SVC, CLOUD, **params)
    for machine, kernel, bias in itertools.product(ALL, ("linear", "rbf"), BIASES):
        params = {"multi_class": machine, "kernel": kernel, "bias": bias, **KERNELS[kernel]}
        yield case(f"svc/two/{machine}/{kernel}/{bias}", SVC, TWO, **params)
    for machine, solver, loss, kernel in itertools.product(ALL[2:], SOLVERS, LOSSES, ("linear", "rbf")):
        params = {"multi_class": machine, "solver": solver, "loss": loss, "bias": "none", "kernel": kernel}
        yield case(f"svc/solver/{machine}/{solver}/{loss}/{kernel}", SVC, LATTICE, **params, **KERNELS[kernel])
    for machine, solver, loss, kernel in itertools.product(
        ("ovo", "dag", "ova"), SOLVERS_OF_PAIRS, LOSSES, ("linear", "rbf")
    ):
        params = {"multi_class": machine, "solver": solver, "loss": loss, "bias": "exact", "kernel": kernel}
        yield case(f"svc/pairs/{machine}/{solver}/{loss}/{kernel}", SVC, LATTICE, **params, **KERNELS[kernel])
    for machine, bias in itertools.product(("ww", "cs", "ova"), ("none", "exact")):
        params = {"multi_class": machine, "bias": bias, "solver": "frank-wolfe", "tol": 0.05, "trace": True}
        yield case(f"svc/frank-wolfe/{machine}/{bias}/rbf", SVC, TWO, **params, gamma=0.05)


def _svc_variants() -> Iterator[Case]:
    for machine, (name, numbers), kernel in itertools.product(SOME, VARIANTS.items(), ("linear", "rbf")):
        params = {"multi_class": machine, "kernel": kernel, "C": 0.25, "gamma": 0.5, **numbers}
        yield case(f"svc/variant/{machine}/{name}/{kernel}", SVC, LATTICE, **params)
    for machine, storage, kernel in itertools.product(SOME, ("dense32", "csr64", "csr32"), ("linear", "rbf")):
        params = {"multi_class": machine, "kernel": kernel, "storage": storage, **KERNELS[kernel]}
        yield case(f"svc/storage/{machine}/{storage}/{kernel}", SVC, LATTICE, **params)
    for machine, bias in itertools.product(SOME, BIASES):
        params = {"multi_class": machine, "bias": bias, "kernel": "linear"}
        yield case(f"svc/weighted/{machine}/{bias}", SVC, LATTICE, weighted=True, **params)
    for machine, kernel, bias in itertools.product(SOME, ("precomputed", "callable"), ("auto", "exact")):
        yield Case(f"svc/given/{machine}/{kernel}/{bias}", partial(_given, machine, kernel, bias))
    for machine, bias, kernel in itertools.product(SOME, ("none", "exact"), ("linear", "rbf")):
        yield Case(f"svc/warm start/{machine}/{bias}/{kernel}", partial(_warm, SVC, machine, bias, kernel=kernel))
    for machine, kind in itertools.product(SOME, ("sigmoid", "isotonic", "coupling")):
        yield case(f"svc/calibration/{machine}/{kind}/rbf", SVC, CLOUD, multi_class=machine, calibration=kind)


def _larger() -> Iterator[Case]:
    """Sets beyond the limits up to which problems are solved in float64 throughout, and in one block."""
    for machine, kernel in itertools.product(ALL, ("linear", "rbf")):
        params = {"multi_class": machine, "kernel": kernel, **KERNELS[kernel]}
        yield case(f"svc/medium/{machine}/{kernel}", SVC, MEDIUM, C=1.0, **params)
    for machine in SOME:
        yield case(f"svc/medium lattice/{machine}", SVC, MEDIUM_LATTICE, C=0.125, multi_class=machine, kernel="linear")
        yield case(f"svc/medium large C/{machine}/rbf", SVC, MEDIUM, C=50.0, multi_class=machine, gamma=0.05)
    for machine in ("ww", "cs"):
        params = {"multi_class": machine, "bias": "exact", "gamma": 0.05}
        yield case(f"svc/medium exact bias/{machine}/rbf", SVC, MEDIUM, **params)
    for storage in ("dense64", "csr32"):
        yield case(f"svc/large/ovo/{storage}", SVC, LARGE, storage=storage, kernel="linear", C=0.03125)
    yield case("svc/large/ovo/rbf", SVC, LARGE, gamma=0.05)
    yield case("svc/large/ww/rbf", SVC, LARGE, gamma=0.05, multi_class="ww")


def _linear() -> Iterator[Case]:
    for machine, bias, loss, solver in itertools.product(ALL, BIASES, LOSSES, LINEAR_SOLVERS):
        params = {"multi_class": machine, "bias": bias, "loss": loss, "solver": solver}
        yield case(f"linear/lattice/{machine}/{bias}/{loss}/{solver}", LinearSVC, LATTICE, **params)
    for solver, loss, bias in itertools.product(
        ("most-violating-pair", "working-set", "asvm", "lsvm"), LOSSES, ("exact", "regularized")
    ):
        yield case(f"linear/two/{solver}/{loss}/{bias}", LinearSVC, TWO, solver=solver, loss=loss, bias=bias)
    for machine, storage, bias in itertools.product(SOME, ("dense32", "csr64", "csr32"), ("regularized", "exact")):
        params = {"multi_class": machine, "storage": storage, "bias": bias}
        yield case(f"linear/storage/{machine}/{storage}/{bias}", LinearSVC, CLOUD, **params)
    for machine, bias in itertools.product(SOME, ("none", "exact")):
        yield case(f"linear/weighted/{machine}/{bias}", LinearSVC, CLOUD, weighted=True, multi_class=machine, bias=bias)
        yield Case(f"linear/warm start/{machine}/{bias}", partial(_warm, LinearSVC, machine, bias))
        yield case(f"linear/medium/{machine}/{bias}", LinearSVC, MEDIUM, multi_class=machine, bias=bias, C=10.0)
    yield case("linear/hard margin", LinearSVC, CLOUD, C=float("inf"))
    yield case("linear/large", LinearSVC, LARGE, C=0.03125)


def _turned_over() -> Iterator[Case]:
    """Conversions of fitted models."""
    uses: dict[str, Callable[[Any, Set], Any]] = {
        "verify": lambda model, data: verify(model, data.X, data.y),
        "bound": lambda model, data: generalization_bound(model, data.X, data.y).bound,
        "saved": _through_a_file,
        "libsvm": lambda model, _: _libsvm_text(model),
    }
    kinds: dict[str, type] = {"svc": SVC, "linear": LinearSVC}
    for (kind, estimator), machine, (use, function) in itertools.product(kinds.items(), SOME, uses.items()):
        kernels: tuple[dict[str, Any], ...] = ({},) if kind == "linear" else ({"kernel": "linear"}, {"gamma": 0.05})
        for params, name in zip(kernels, ("linear", "rbf"), strict=False):
            made = partial(_used, function, estimator, {"multi_class": machine, **params})
            yield Case(f"use/{kind}/{machine}/{use}/{name}", made)
    yield Case("use/svc/there and back/rbf", lambda: _there_and_back(CLOUD))


def _used(function: Callable[[Any, Set], Any], estimator: type, params: dict[str, Any]) -> Any:
    return function(fitted(estimator, CLOUD, **params)[0], CLOUD)


def _through_a_file(model: Any, data: Set) -> Any:
    with tempfile.TemporaryDirectory() as directory:
        save_model(model, Path(directory) / "model")
        return shown(load_model(Path(directory) / "model"), data.points)


def _libsvm_text(model: Any) -> str:
    with tempfile.TemporaryDirectory() as directory:
        dump_libsvm(model, Path(directory) / "model")
        return (Path(directory) / "model").read_text()


def _there_and_back(data: Set) -> Any:
    theirs = to_sklearn(fitted(SVC, data, gamma=0.05)[0])
    back = from_sklearn(theirs)
    return [theirs.decision_function(data.points), back.dual_coef_, back.decision_function(data.points)]


def _given(machine: str, kernel: str, bias: str) -> Any:
    X, points = LATTICE.X, LATTICE.points
    if kernel == "callable":
        model = SVC(kernel=_products, multi_class=machine, bias=bias).fit(X, LATTICE.y)
        return shown(model, points)
    model = SVC(kernel="precomputed", multi_class=machine, bias=bias).fit(_products(X, X), LATTICE.y)
    return shown(model, _products(points, X))


def _products(left: Any, right: Any) -> Any:
    return left @ right.T + 1.0


def _warm(kind: type, machine: str, bias: str, **params: Any) -> Any:
    model, points = fitted(kind, CLOUD, multi_class=machine, bias=bias, warm_start=True, **params)
    found = []
    for C in (2.0, 0.5):
        model.set_params(C=C).fit(CLOUD.X, CLOUD.y)
        found.append(shown(model, points))
    return found
