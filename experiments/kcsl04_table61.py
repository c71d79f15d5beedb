"""KCSL04 Table 6.1 repeated: one (C, gamma) for all pairs, one per pair, and Algorithm 1 (two lines) for each pair.

Grid: C = 2^-2, ..., 2^12, gamma = 2^-10, ..., 2^4, five folds; Algorithm 1 searches its C~ among 2^-10, ..., 2^10. Not
repeated: the paper's accuracies with C~ up to 2^3 only. A search that the limit ends has no model; it is printed as ">
n".
"""

from __future__ import annotations

import time
from functools import partial

import numpy as np
from sklearn.model_selection import StratifiedKFold

from experiments.data import load
from experiments.frame import Cell, Cells, Experiment, Report, Settings, Task, command
from experiments.paper_numbers.kcsl04 import TABLE_61
from experiments.tables import Entry, pivot
from multimargin import SVCCV

CS, GAMMAS = np.exp2(np.arange(-2.0, 13.0)), np.exp2(np.arange(-10.0, 5.0))
QUICK_CS, QUICK_GAMMAS = np.exp2([0.0, 4.0]), np.exp2([-8.0, -4.0])
N_FOLDS = 5
SEARCHES = {
    "one": ("grid", False, "one (C, gamma)"),
    "pairs": ("grid", True, "one for each pair"),
    "two-line": ("two-line", True, "Algorithm 1"),
}


def search_for(how: str, *, quick: bool, seed: int, limit: float) -> SVCCV:
    """Return the search, not yet fitted."""
    search, per_pair, _ = SEARCHES[how]
    return SVCCV(
        Cs=QUICK_CS if quick else CS,
        gammas=QUICK_GAMMAS if quick else GAMMAS,
        search=search,
        per_pair=per_pair,
        cv=StratifiedKFold(N_FOLDS, shuffle=True, random_state=seed),
        max_time=limit,
    )


def evaluate(name: str, how: str, settings: Settings) -> Cell:
    data = load(name, quick=settings.quick)
    began = time.perf_counter()
    search = search_for(how, quick=settings.quick, seed=0, limit=settings.limit).fit(data.X, data.y)
    cell: Cell = {"seconds": time.perf_counter() - began, "done": hasattr(search, "best_estimator_")}
    # A stopped grid has a model of the finished cells only, which the table does not report.
    cell["done"] = cell["done"] and not (how == "one" and bool(search.stopped_.any()))
    if cell["done"]:
        cell["accuracy"] = 100 * float(np.mean(search.predict(data.X_test) == data.y_test))
    return cell


def plan(settings: Settings) -> list[Task]:
    return [Task((name, how), partial(evaluate, name, how, settings)) for name in settings.sets for how in SEARCHES]


def report(cells: Cells, settings: Settings) -> Report:
    rates, seconds = [], []
    for (name, how), cell in cells.items():
        title = SEARCHES[how][2]
        printed = TABLE_61.get(name, {}).get(how, (None, None))
        rates.append(Entry(name, title, cell.get("accuracy"), printed[0], quantity="accuracy"))
        seconds.append(Entry(name, title, cell["seconds"], printed[1], "seconds", not cell["done"], "seconds"))
    lines = [
        "Test accuracy in percent, ours / the paper's (difference):",
        "",
        *pivot(rates),
        "",
        f"Seconds of the whole selection and the last fit, ours / the paper's; at most {settings.limit:g} s a search:",
        "",
        *pivot(seconds),
    ]
    return Report(lines, [entry.as_row() for entry in (*rates, *seconds)])


EXPERIMENT = Experiment(
    name="kcsl04_table61",
    title="KCSL04 Table 6.1: model selection by grids and by two lines",
    sets=("dna", "satimage", "letter", "shuttle"),
    quick_sets=("digits",),
    plan=plan,
    report=report,
)
main = command(EXPERIMENT)

if __name__ == "__main__":
    main()
