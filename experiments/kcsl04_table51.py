"""KCSL04 Table 5.1 repeated: five-fold cross-validation of the linear machine along C by several methods.

Two thirds of the rows are drawn for training; C = 2^-10, 2^-9.5, ..., 2^8 is validated on five folds of them, and the
best one predicts the rest. Pairs of variables with and without alpha seeding (without it up to 2^3 only, as in the
paper), ASVM and LSVM for the squared hinge with a regularised bias (LSVM stops after 1,000 iterations) and, beyond the
paper, our own LinearSVC along the path. Seconds are those of the cross-validation.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial

import numpy as np
from sklearn.model_selection import StratifiedKFold, train_test_split

from experiments.frame import Cell, Cells, Report, Settings, Task, command
from experiments.kcsl04 import TOL, load, on_its_sets
from experiments.paper_numbers.kcsl04 import TABLE_51
from experiments.tables import Entry, pivot
from multimargin import SVC, LinearSVC, svm_path
from multimargin._typing import FloatArray

GRID = tuple(-10.0 + 0.5 * k for k in range(37))
QUICK_GRID = (-4.0, -2.0, 0.0)
SHORT = 3.0  # log2 of the largest C without seeding
N_FOLDS = 5
LSVM_ITERATIONS = 1_000
METHODS = ("seeded", "unseeded", "asvm", "lsvm", "LinearSVC")

Found = tuple[float, FloatArray, float]  # log2 C, weights, intercept


def models(method: str, X: FloatArray, y: np.ndarray, grid: tuple[float, ...], limit: float) -> Iterator[Found]:
    """Yield weights and intercept for each C, until the limit."""
    if method in ("seeded", "LinearSVC"):
        pairs = SVC(kernel="linear", solver="most-violating-pair", tol=TOL, max_time=limit)
        estimator = pairs if method == "seeded" else LinearSVC(multi_class="ovo", tol=TOL, max_time=limit)
        path = svm_path(X, y, Cs=np.exp2(grid), estimator=estimator, keep_models=False)
        assert path.coefs is not None
        for C, coef, intercept in zip(path.Cs, path.coefs, path.intercepts, strict=True):
            yield float(np.log2(C)), coef[0], float(intercept[0])
        return
    began = time.perf_counter()
    for exponent in grid:
        left = limit - (time.perf_counter() - began)
        if left <= 0:
            return
        if method == "unseeded":
            clf = SVC(kernel="linear", solver="most-violating-pair", tol=TOL, C=2.0**exponent, max_time=left)
        else:
            most = LSVM_ITERATIONS if method == "lsvm" else -1
            shared = {"loss": "squared_hinge", "bias": "regularized", "max_iter": most, "max_time": left}
            clf = LinearSVC(solver=method, C=2.0**exponent, tol=TOL, **shared)
        clf.fit(X, y)
        yield exponent, clf.coef_[0], float(clf.intercept_[0])


def evaluate(name: str, method: str, settings: Settings) -> Cell:
    X, y = load(name)
    grid = QUICK_GRID if settings.quick else GRID
    if method == "unseeded":
        grid = tuple(exponent for exponent in grid if exponent <= SHORT)
    train, test = train_test_split(np.arange(len(y)), train_size=2 / 3, random_state=0, stratify=y)
    rates, began = np.zeros((N_FOLDS, len(grid))), time.perf_counter()
    done = True
    splitter = StratifiedKFold(N_FOLDS, shuffle=True, random_state=0)
    for fold, (rows, held) in enumerate(splitter.split(X[train], y[train])):
        left = settings.limit - (time.perf_counter() - began)
        found = list(models(method, X[train][rows], y[train][rows], grid, left)) if left > 0 else []
        done = done and len(found) == len(grid)
        for at, (_, coef, intercept) in enumerate(found):
            rates[fold, at] = _rate(coef, intercept, X[train][held], y[train][held])
    seconds = time.perf_counter() - began
    best = grid[int(np.argmax(rates.mean(axis=0)))]
    cell: Cell = {"seconds": seconds, "done": done, "log_C": best}
    last = list(models(method, X[train], y[train], (best,), settings.limit))
    if last:
        cell["accuracy"] = 100 * _rate(last[0][1], last[0][2], X[test], y[test])
    return cell


def _rate(coef: FloatArray, intercept: float, X: FloatArray, y: np.ndarray) -> float:
    return float(np.mean(np.where(X @ coef + intercept > 0, 1, -1) == y))


def plan(settings: Settings) -> list[Task]:
    return [
        Task((name, method), partial(evaluate, name, method, settings)) for name in settings.sets for method in METHODS
    ]


def report(cells: Cells, settings: Settings) -> Report:
    seconds, rates = [], []
    for (name, method), cell in cells.items():
        printed = TABLE_51.get(name)
        times = {} if printed is None else {"seeded": printed.seeded, "unseeded": printed.unseeded_to_3}
        times |= {} if printed is None else {"asvm": printed.asvm, "lsvm": printed.lsvm}
        title = f"{method} (to 2^{SHORT:g})" if method == "unseeded" else method
        seconds.append(Entry(name, title, cell["seconds"], times.get(method), "seconds", not cell["done"], "seconds"))
        squared = method in ("asvm", "lsvm")
        paper = None if printed is None else (printed.squared_accuracy if squared else printed.accuracy)
        rates.append(Entry(name, method, cell.get("accuracy"), paper, quantity="accuracy"))
    lines = [
        f"Seconds, ours / the paper's; at most {settings.limit:g} s a cell. Plain NumPy for asvm and lsvm.",
        "",
        *pivot(seconds),
        "",
        "Test accuracy in percent, ours / the paper's (difference; the paper's rows are not known):",
        "",
        *pivot(rates),
    ]
    return Report(lines, [entry.as_row() for entry in (*seconds, *rates)])


EXPERIMENT = on_its_sets("kcsl04_table51", "KCSL04 Table 5.1: alpha seeding beside ASVM and LSVM", plan, report)
main = command(EXPERIMENT)

if __name__ == "__main__":
    main()
