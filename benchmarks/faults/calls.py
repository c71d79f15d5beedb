"""The public calls that the fault loops go through: small, repeatable, each with a number that identifies its
result."""

from __future__ import annotations

import pickle
import resource
import tempfile
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning

import multimargin as mm

Call = Callable[[], float]

X, Y = make_classification(120, 5, n_informative=4, n_redundant=0, n_classes=3, flip_y=0.1, random_state=0)
CS = np.array([0.1, 1.0, 10.0])


def _fit(estimator: Any, *, sparse: bool = False) -> Call:
    """Fit the same estimator again and again: the object must be usable after a failure."""
    data = csr_matrix(X) if sparse else X

    def call() -> float:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            estimator.fit(data, Y)
        return float(np.sum(estimator.predict(data) * np.arange(len(Y))))

    return call


def _predict(estimator: Any) -> Call:
    estimator.fit(X, Y)
    return lambda: float(np.sum(estimator.decision_function(X)) + np.sum(estimator.predict(X)))


def _verify(estimator: Any) -> Call:
    estimator.fit(X, Y)
    return lambda: float(mm.verify(estimator, X, Y).dual)


def _save(estimator: Any) -> Call:
    estimator.fit(X, Y)

    def call() -> float:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model"
            mm.save_model(estimator, path)
            return float(np.sum(mm.load_model(path).decision_function(X)))

    return call


def _path() -> float:
    return float(np.sum(mm.svm_path(X, Y, estimator=mm.SVC(), Cs=CS).intercepts))


def _stream(multi_class: str) -> Call:
    """Learn all rows again by a stream that continues after failures; the results are those of a new one each time."""
    begun = pickle.dumps(mm.OnlineSVC(multi_class=multi_class, gamma=0.2).partial_fit(X[:40], Y[:40]))

    def call() -> float:
        stream = pickle.loads(begun)
        try:
            stream.partial_fit(X[40:], Y[40:])
        except MemoryError:
            go_on(stream)
            raise
        return float(np.sum(stream.decision_function(X)))

    return call


def go_on(stream: Any) -> None:
    """Use a stream after an error, once memory is available again; the state must be that of the rows it has
    counted."""
    from benchmarks.faults.library import disarm, is_loaded

    if is_loaded():
        disarm()
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    seen = stream.n_seen_
    stream.partial_fit(X[seen:], Y[seen:])
    if stream.n_seen_ != len(X) or not np.isfinite(stream.decision_function(X)).all():
        raise AssertionError("the stream does not go on after an error")
    if not stream.finalize(X, Y).certificate_.optimal:
        raise AssertionError("the stream does not reach the optimum after an error")


def _selection(estimator: Any) -> Call:
    def call() -> float:
        estimator.fit(X, Y)
        return float(np.sum(estimator.predict(X) * np.arange(len(Y))))

    return call


def public_calls() -> dict[str, Callable[[], Call]]:
    """Return what makes each call, by name; the preparation of a call must not fail."""
    calls: dict[str, Callable[[], Call]] = {}
    for machine in ("ovo", "ova", "ww", "cs", "llw", "adm", "ats", "atm", "rm", "mmr"):
        calls[f"SVC.fit {machine}"] = partial(lambda m: _fit(mm.SVC(multi_class=m)), machine)
    for solver in ("s2do", "smo", "whole-example", "semi-greedy", "two-level"):
        calls[f"SVC.fit {solver}"] = partial(lambda s: _fit(mm.SVC(multi_class="ww", solver=s)), solver)
    calls["SVC.fit exact bias"] = lambda: _fit(mm.SVC(multi_class="ww", bias="exact"))
    calls["SVC.fit squared"] = lambda: _fit(mm.SVC(loss="squared_hinge"))
    calls["SVC.fit sparse"] = lambda: _fit(mm.SVC(), sparse=True)
    calls["SVC.fit probability"] = lambda: _fit(mm.SVC(probability=True))
    for machine in ("ovo", "ova", "ww", "cs"):
        calls[f"LinearSVC.fit {machine}"] = partial(lambda m: _fit(mm.LinearSVC(multi_class=m)), machine)
    calls["LinearSVC.fit squared"] = lambda: _fit(mm.LinearSVC(loss="squared_hinge"))
    for machine in ("ovo", "ww"):
        calls[f"SVC.predict {machine}"] = partial(lambda m: _predict(mm.SVC(multi_class=m)), machine)
        calls[f"verify {machine}"] = partial(lambda m: _verify(mm.SVC(multi_class=m)), machine)
        calls[f"OnlineSVC.partial_fit {machine}"] = partial(_stream, machine)
        calls[f"OnlineSVC.fit {machine}"] = partial(lambda m: _fit(mm.OnlineSVC(multi_class=m)), machine)
    calls["LinearSVC.predict"] = lambda: _predict(mm.LinearSVC())
    calls["save and load"] = lambda: _save(mm.SVC())
    calls["svm_path"] = lambda: _path
    calls["SVCCV.fit"] = lambda: _selection(mm.SVCCV(Cs=CS, gammas=[0.1, 1.0], cv=3))
    calls["LinearSVCCV.fit"] = lambda: _selection(mm.LinearSVCCV(Cs=CS, cv=3))
    return calls
