"""DGI11 Table 1 repeated: (C, gamma) by nested grids and five-fold cross-validation, without a bias.

A grid in steps of 2^4, then finer ones around the best, in steps of 2^2 and 2. Many cells are nearly as good as the
best, so that a difference from the paper's parameters means little: the report compares the cross-validated accuracies
of both cells. Of abalone the classes with less than five rows are left out, because every fold needs all classes.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from sklearn.model_selection import StratifiedKFold

from experiments.data import RANGE, VARIANCE, frequent
from experiments.dgi11_table2 import parts
from experiments.frame import Cell, Cells, Experiment, Report, Settings, Task, command, was_ended
from experiments.tables import Entry, pivot
from multimargin import SVCCV
from multimargin.datasets import DGI11_PARAMETERS

MACHINES = ("ww", "llw", "cs", "ova")
N_FOLDS = 5
CS, GAMMAS = np.exp2(np.arange(-8.0, 21.0, 4.0)), np.exp2(np.arange(-14.0, 3.0, 4.0))
QUICK_CS, QUICK_GAMMAS = np.exp2([1.0, 5.0]), np.exp2([-6.0, -2.0])


def evaluate(name: str, machine: str, settings: Settings) -> Cell:
    """Search on the training rows of the first split, then evaluate the paper's cell on the same folds."""
    X, y, _, _ = next(parts(name, settings))
    rows = frequent(y, N_FOLDS)
    X, y = X[rows], y[rows]
    grid = (QUICK_CS, QUICK_GAMMAS) if settings.quick else (CS, GAMMAS)
    shared = {
        "cv": StratifiedKFold(N_FOLDS, shuffle=True, random_state=0),
        "multi_class": machine,
        "bias": "none",
        "refit": False,
        "max_time": settings.limit,
    }
    search = SVCCV(Cs=grid[0], gammas=grid[1], search="nested", **shared).fit(X, y)
    cell: Cell = {"seconds": search.search_seconds_, "done": not was_ended(search, settings.limit)}
    if hasattr(search, "best_params_"):
        cell |= {name: float(np.log2(value)) for name, value in search.best_params_.items()}
        cell["accuracy"] = 100 * float(search.best_score_)
    log_C, log_gamma = DGI11_PARAMETERS[name][machine]
    there = SVCCV(Cs=[2.0**log_C], gammas=[2.0**log_gamma], **shared).fit(X, y)
    if hasattr(there, "best_score_"):
        cell["accuracy_there"] = 100 * float(there.best_score_)
    return cell


def plan(settings: Settings) -> list[Task]:
    return [
        Task((name, machine), partial(evaluate, name, machine, settings))
        for name in settings.sets
        for machine in MACHINES
    ]


def report(cells: Cells, settings: Settings) -> Report:
    lines, rows = [], []
    for at, parameter in enumerate(("C", "gamma")):
        entries = [
            Entry(name, machine, cell.get(parameter), DGI11_PARAMETERS[name][machine][at], "log2", quantity=parameter)
            for (name, machine), cell in cells.items()
        ]
        lines += [f"{parameter}, ours / the paper's (difference of exponents):", "", *pivot(entries), ""]
        rows += [entry.as_row() for entry in entries]
    scores = [
        Entry(name, machine, cell.get("accuracy"), cell.get("accuracy_there"), quantity="cross-validated accuracy")
        for (name, machine), cell in cells.items()
    ]
    lines += [
        "Cross-validated accuracy in percent, at our cell / at the paper's cell (difference):",
        "",
        *pivot(scores),
    ]
    stopped = [" ".join(key) for key, cell in cells.items() if not cell["done"]]
    if stopped:
        lines += ["", f"Searches that the limit of {settings.limit:g} s ended: {', '.join(stopped)}."]
    return Report(lines, rows + [entry.as_row() for entry in scores])


EXPERIMENT = Experiment(
    name="dgi11_table1",
    title="DGI11 Table 1: parameters by nested grid search",
    sets=("iris", "glass", "soybean", "vehicle", "car"),
    more_sets=("segment", "satimage", "optdigits", "page-blocks", "abalone"),
    quick_sets=("iris",),
    plan=plan,
    report=report,
    variants=(VARIANCE, RANGE),
)
main = command(EXPERIMENT)

if __name__ == "__main__":
    main()
