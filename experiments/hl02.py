"""Shared by HL02's tables: its five methods, their bias and tolerance, and one measured fit.

One-against-one, DAG and one-against-all have the exact bias, ww the regularised one (BSVM), cs none. The tolerance is
1e-3, but 0.1 for cs on letter and shuttle. Sets with a test part are trained once; the others go through ten-fold
cross-validation, ten times with other folds.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold

from experiments.data import load
from experiments.frame import Cell, Cells, Experiment, Report, Settings, Task
from multimargin import SVC
from multimargin.datasets import HL02_PARAMETERS, parameters
from multimargin.verification.bounds import count_support

BIAS = {"ovo": "exact", "dag": "exact", "ova": "exact", "ww": "regularized", "cs": "none"}
TITLES = {"ovo": "one-against-one", "dag": "DAG", "ova": "one-against-all", "ww": "[25], [27] (ww)", "cs": "C&S (cs)"}
SMALL = ("iris", "wine", "glass", "vowel", "vehicle", "segment")
FIXED = ("dna", "satimage", "letter", "shuttle")
QUICK = ("iris", "wine", "digits")
TOL, LOOSE_TOL = 1e-3, 0.1
LOOSE = ("letter", "shuttle")
N_FOLDS = 10


def tolerance(name: str, method: str) -> float:
    """Return HL02's tolerance; section V explains the loose one."""
    return LOOSE_TOL if method == "cs" and name in LOOSE else TOL


def rbf_parameters(name: str, method: str) -> dict[str, Any]:
    """Return C and gamma of Table V.2; of sets that are not in it those of the protocol."""
    if name in HL02_PARAMETERS:
        log_C, log_gamma = HL02_PARAMETERS[name][method]
        return {"C": 2.0**log_C, "gamma": 2.0**log_gamma}
    C, gamma = parameters(name, method)
    return {"C": C, "gamma": gamma}


def machine(method: str, tol: float, **params: Any) -> SVC:
    return SVC(multi_class=method, bias=BIAS[method], tol=tol, **params)


def measure(clf: Any, part: tuple[Any, Any, Any, Any]) -> Cell:
    """Train on a part, predict the rest of it; rates in percent."""
    X, y, X_test, y_test = part
    began = time.perf_counter()
    clf.fit(X, y)
    trained = time.perf_counter()
    predicted = clf.predict(X_test)
    ended = time.perf_counter()
    return {
        "rate": 100 * float(np.mean(predicted == y_test)),
        "training_seconds": trained - began,
        "testing_seconds": ended - trained,
        "support_vectors": count_support(clf).unique if isinstance(clf, SVC) else None,
        "iterations": int(np.sum(clf.n_iter_)),
        "done": clf.certificate_.stop_reason == "converged",
    }


def folds(y: np.ndarray, repetition: int) -> list[tuple[np.ndarray, np.ndarray]]:
    splitter = StratifiedKFold(N_FOLDS, shuffle=True, random_state=repetition)
    return list(splitter.split(np.zeros((len(y), 1)), y))


def cross_validate(clf: Any, X: np.ndarray, y: np.ndarray, settings: Settings) -> Cell:
    """Return the means over the folds of each repetition, until the limit; clf is trained again and again."""
    began, repetitions = time.perf_counter(), []
    for repetition in range(settings.splits):
        found = []
        for train, test in folds(y, repetition):
            left = settings.limit - (time.perf_counter() - began)
            if left <= 0:
                break
            clf.set_params(max_time=left)
            found.append(measure(clf, (X[train], y[train], X[test], y[test])))
        if len(found) < N_FOLDS or not all(each["done"] for each in found):
            break
        sizes = [len(test) for _, test in folds(y, repetition)]
        repetitions.append(_means(found, sizes))
    cell: Cell = {"rates": [each["rate"] for each in repetitions], "done": len(repetitions) == settings.splits}
    if repetitions:
        names = ("rate", "training_seconds", "testing_seconds", "support_vectors", "iterations")
        known = [name for name in names if repetitions[0][name] is not None]
        cell |= {name: float(np.mean([each[name] for each in repetitions])) for name in known}
    return cell


def _means(found: list[Cell], sizes: list[int]) -> Cell:
    """Rates are means over rows, as if all were predicted once; all else are means over folds."""
    cell: Cell = {}
    for name in found[0]:
        values = [each[name] for each in found]
        if values[0] is None:
            cell[name] = None
        else:
            cell[name] = float(np.average(values, weights=sizes if name == "rate" else None))
    return cell


def evaluate(name: str, method: str, settings: Settings, *, tol: float | None = None) -> Cell:
    """Train a method with the rbf kernel at the paper's (C, gamma)."""
    data = load(name, quick=settings.quick)
    tol = tolerance(name, method) if tol is None else tol
    clf = machine(method, tol, max_time=settings.limit, **rbf_parameters(name, method))
    if data.X_test is None or name in SMALL:
        return cross_validate(clf, data.X, data.y, settings)
    cell = measure(clf, (data.X, data.y, data.X_test, data.y_test))
    return cell | {"rates": [cell["rate"]]}


def rbf_tasks(settings: Settings) -> list[Task]:
    """Return the fits of Tables V.2 and V.3, which share them: the loose cs of letter and shuttle also at 1e-3."""
    tasks = []
    for name in settings.sets:
        tasks += [Task((name, method), partial(evaluate, name, method, settings)) for method in BIAS]
        if name in LOOSE:
            key = (name, "cs", f"{TOL:g}")
            tasks.append(Task(key, partial(evaluate, name, "cs", settings, tol=TOL)))
    return tasks


def each_method(evaluate: Callable[[str, str, Settings], Cell]) -> Callable[[Settings], list[Task]]:
    """Return the plan of an experiment that evaluates all methods on each set."""
    return lambda settings: [
        Task((name, method), partial(evaluate, name, method, settings)) for name in settings.sets for method in BIAS
    ]


def on_all_sets(name: str, title: str, report: Callable[[Cells, Settings], Report]) -> Experiment:
    """Return an experiment that reports on the fits of Tables V.2 and V.3."""
    return Experiment(
        name,
        title,
        sets=(*SMALL, *FIXED),
        quick_sets=QUICK,
        plan=rbf_tasks,
        report=report,
        cells="hl02_rbf",
        quick_splits=1,
    )


def on_test_parts(
    name: str, title: str, plan: Callable[[Settings], list[Task]], report: Callable[[Cells, Settings], Report]
) -> Experiment:
    """Return an experiment on the sets with a test part; the large ones on demand."""
    return Experiment(
        name, title, sets=FIXED[:2], more_sets=FIXED[2:], quick_sets=("digits",), plan=plan, report=report
    )
