"""The cases beyond a single fit: streams, paths along C and searches."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import partial
from typing import Any

from benchmarks.golden.hashing import Case, shown
from benchmarks.golden.sets import CLOUD, LATTICE, TWO, Set
from multimargin import SVC, SVCCV, LinearSVC, LinearSVCCV, OnlineSVC, svm_path

STREAMED = ("ovo", "dag", "ova", "ww", "cs", "llw", "adm", "ats", "atm", "rm", "mmr")
SEARCHED = ("ovo", "dag", "ova", "ww", "cs")
KERNELS: dict[str, dict[str, Any]] = {"linear": {}, "rbf": {"gamma": 0.05}}
LIMITS: dict[str, dict[str, Any]] = {
    "budget": {"budget": 25},
    "reprocess": {"reprocess": 3},
    "no cache": {"cache_size": 0.0},
}


def stream_cases() -> Iterator[Case]:
    """Yield the cases of streams, paths and searches."""
    yield from _streams()
    yield from _paths()
    yield from _searches()


def _streams() -> Iterator[Case]:
    for machine, bias, kernel in itertools.product(STREAMED, ("none", "regularized", "exact"), KERNELS):
        params = {"multi_class": machine, "bias": bias, "kernel": kernel, **KERNELS[kernel]}
        yield Case(f"online/{machine}/{bias}/{kernel}", partial(_stream, LATTICE, params))
    for machine, selection in itertools.product(("ovo", "ova", "ww", "cs"), ("first-order", "random")):
        params = {"multi_class": machine, "selection": selection, "kernel": "linear"}
        yield Case(f"online/selection/{machine}/{selection}", partial(_stream, LATTICE, params))
    for machine, name in itertools.product(("ovo", "ova", "ww", "cs"), LIMITS):
        params = {"multi_class": machine, "kernel": "linear", **LIMITS[name]}
        yield Case(f"online/{name}/{machine}", partial(_stream, LATTICE, params))


def _stream(data: Set, params: dict[str, Any]) -> Any:
    """Learn twice through, then some rows more, forget some, and go on to the optimum."""
    model = OnlineSVC(passes=2, **params).fit(data.X[:40], data.y[:40])
    found = [shown(model, data.points)]
    model.partial_fit(data.X[40:], data.y[40:], sample_weight=data.weight[40:] + 0.5).forget([1, 45])
    found.append(shown(model, data.points))
    model.finalize()
    found.append(shown(model, data.points))
    model.finalize(data.X, data.y)
    return [*found, shown(model, data.points)]


def _paths() -> Iterator[Case]:
    for machine, bias, scale in itertools.product(SEARCHED, ("none", "exact"), (True, False)):
        for kind, estimator in (
            ("svc/rbf", SVC(multi_class=machine, bias=bias, gamma=0.05)),
            ("svc/linear", SVC(multi_class=machine, bias=bias, kernel="linear")),
            ("linear", LinearSVC(multi_class=machine, bias=bias)),
        ):
            name = f"path/{kind}/{machine}/{bias}/{'scaled' if scale else 'as it was'}"
            yield Case(name, partial(_path, LATTICE, estimator, scale=scale))


def _path(data: Set, estimator: Any, *, scale: bool) -> Any:
    path = svm_path(data.X, data.y, Cs=[0.0625, 0.25, 2.0, 4.0], estimator=estimator, scale=scale)
    return [path, shown(path.model(2), data.points)]


def _searches() -> Iterator[Case]:
    for machine, kernel in itertools.product(SEARCHED, KERNELS):
        params = {"multi_class": machine, "kernel": kernel}
        yield Case(f"search/{machine}/{kernel}", partial(_search, CLOUD, params))
    for machine, search in itertools.product(("ovo", "ww"), ("nested", "two-line", "halving", "racing")):
        params = {"multi_class": machine, "search": search}
        yield Case(f"search/{search}/{machine}", partial(_search, CLOUD, params))
    yield Case("search/per pair", partial(_search, CLOUD, {"per_pair": True}))
    yield Case("search/no room", partial(_search, CLOUD, {"cache_size": 0.001}))
    for machine in SEARCHED:
        yield Case(f"search/linear/{machine}", partial(_linear_search, TWO if machine == "ova" else LATTICE, machine))


def _search(data: Set, params: dict[str, Any]) -> Any:
    gammas: dict[str, Any] = {} if params.get("kernel") == "linear" else {"gammas": [0.02, 0.1]}
    return shown(SVCCV(Cs=[0.25, 1.0, 8.0], cv=3, **gammas, **params).fit(data.X, data.y), data.points)


def _linear_search(data: Set, machine: str) -> Any:
    return shown(LinearSVCCV(Cs=[0.0625, 0.25, 1.0], cv=3, multi_class=machine).fit(data.X, data.y), data.points)
