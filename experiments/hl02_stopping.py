"""HL02 section VI, a remark: stopping rules see larger gradients in larger problems; divide them by the problem's
size.

The tolerance that a problem of n dual variables gets is 1e-3 n / n_0, n_0 being the mean size of one-against-one's
pairs, which keep 1e-3: this divides (22) by the problem's size. If the remark explained the differences in time, the
all-in-one methods would come closer to one-against-one; the paper expects that they do not.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from experiments import hl02
from experiments.data import load
from experiments.frame import Cell, Cells, Report, Settings, Task, command
from experiments.tables import Entry, pivot

RULES = ("1e-3", "by size")


def problem_size(method: str, n_rows: int, n_classes: int) -> float:
    """Return the dual variables of one problem of a method; for pairs their mean."""
    if method in ("ovo", "dag"):
        return 2 * n_rows / n_classes
    return n_rows if method == "ova" else n_rows * (n_classes - 1)


def evaluate(name: str, method: str, rule: str, settings: Settings) -> Cell:
    data = load(name, quick=settings.quick)
    n_rows, n_classes = len(data.y), len(np.unique(data.y))
    share = problem_size(method, n_rows, n_classes) / problem_size("ovo", n_rows, n_classes)
    tol = hl02.TOL * (share if rule == "by size" else 1.0)
    clf = hl02.machine(method, tol, max_time=settings.limit, **hl02.rbf_parameters(name, method))
    return hl02.measure(clf, (data.X, data.y, data.X_test, data.y_test)) | {"tol": tol}


def plan(settings: Settings) -> list[Task]:
    return [
        Task((name, method, rule), partial(evaluate, name, method, rule, settings))
        for name in settings.sets
        for method in hl02.BIAS
        for rule in RULES
    ]


def report(cells: Cells, settings: Settings) -> Report:
    lines, rows = [], []
    for quantity, kind, caption in (
        ("training_seconds", "seconds", "Seconds of training"),
        ("rate", "points", "Rates"),
    ):
        entries = [
            Entry(f"{name}, {rule}", hl02.TITLES[method], cell[quantity], None, kind, not cell["done"], quantity)
            for (name, method, rule), cell in cells.items()
        ]
        entries.sort(key=lambda entry: entry.row)
        lines += [f"{caption}:", "", *pivot(entries, "data, tolerance"), ""]
        rows += [entry.as_row() for entry in entries]
    return Report(lines[:-1], rows)


EXPERIMENT = hl02.on_test_parts(
    "hl02_stopping", "HL02 section VI: the stopping rule divided by the size of the problem", plan, report
)
main = command(EXPERIMENT)

if __name__ == "__main__":
    main()
