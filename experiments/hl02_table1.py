"""HL02 Table V.1 repeated: rows, test rows, classes and attributes of the data sets, and Statlog's best rates."""

from __future__ import annotations

from functools import partial

import numpy as np

from experiments.data import load
from experiments.frame import Cell, Cells, Experiment, Report, Settings, Task, command
from experiments.paper_numbers.hl02 import TABLE_1
from experiments.tables import Entry, pivot

COLUMNS = ("training rows", "test rows", "classes", "attributes")


def statistics_of(name: str, *, quick: bool) -> Cell:
    data = load(name, quick=quick)
    n_test = 0 if data.y_test is None else len(data.y_test)
    return dict(zip(COLUMNS, (len(data.y), n_test, len(np.unique(data.y)), data.X.shape[1]), strict=True))


def plan(settings: Settings) -> list[Task]:
    return [Task((name,), partial(statistics_of, name, quick=settings.quick)) for name in settings.sets]


def report(cells: Cells, settings: Settings) -> Report:
    entries = []
    for (name,), cell in cells.items():
        printed = TABLE_1.get(name)
        for at, column in enumerate(COLUMNS):
            paper = None if printed is None else printed[at]
            entries.append(Entry(name, column, cell[column], paper, "count", quantity=column))
        entries.append(Entry(name, "Statlog's best rate", None, None if printed is None else printed[4]))
    lines = [
        "Ours / the paper's. glass has nine attributes at UCI and in LIBSVM's copy; vowel's 462 test rows (other "
        "speakers) take no part in the paper, nor in the tables here.",
        "",
        *pivot(entries),
    ]
    return Report(lines, [entry.as_row() for entry in entries])


EXPERIMENT = Experiment(
    name="hl02_table1",
    title="HL02 Table V.1: problem statistics",
    sets=tuple(TABLE_1),
    quick_sets=("iris", "wine", "digits"),
    plan=plan,
    report=report,
)
main = command(EXPERIMENT)

if __name__ == "__main__":
    main()
