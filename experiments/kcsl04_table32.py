"""KCSL04 Table 3.2 repeated: iterations along C with and without alpha seeding, rbf kernel with gamma = 1/n.

The paper's point is that seeding saves little here, and one to two orders of magnitude with the linear kernel.
"""

from __future__ import annotations

from functools import partial

from experiments.frame import Cell, Cells, Report, Settings, Task, command
from experiments.kcsl04 import (
    AIM,
    GRID,
    ORDERS,
    QUICK_GRID,
    TOL,
    Path,
    as_path,
    load,
    on_its_sets,
    rbf_of,
    solve_path,
)
from experiments.paper_numbers.kcsl04 import TABLE_32
from experiments.tables import Entry, pivot
from multimargin.solvers.options import Precision, SolverOptions

STARTS = ("seeded", "unseeded")


def walk(name: str, order: str, start: str, settings: Settings) -> Cell:
    rows = load(name)
    grid = QUICK_GRID if settings.quick else GRID
    options = SolverOptions(solver=ORDERS[order], precision=Precision.FLOAT64, tol=TOL / AIM)
    kernel, seeded = rbf_of(rows[0]), start == "seeded"
    path = as_path(
        lambda: solve_path(rows, grid, options, seeded=seeded, limit=settings.limit, kernel=kernel), len(grid)
    )
    return path.to_cell()


def plan(settings: Settings) -> list[Task]:
    return [
        Task((name, order, start), partial(walk, name, order, start, settings))
        for name in settings.sets
        for order in ORDERS
        for start in STARTS
    ]


def report(cells: Cells, settings: Settings) -> Report:
    entries = []
    for (name, order, start), cell in cells.items():
        path, printed = Path.of_cell(cell), TABLE_32.get(name)
        paper = printed[STARTS.index(start)] if printed and order == "first" else None
        entries.append(Entry(name, f"{start}, {order} order", path.total, paper, "count", not path.done))
    for name in settings.sets:
        seeded, unseeded = (Path.of_cell(cells[name, "first", start]) for start in STARTS)
        printed = TABLE_32.get(name)
        saved = unseeded.total / max(1, seeded.total) if seeded.done else None
        entries.append(Entry(name, "times fewer", saved, printed[1] / printed[0] if printed else None, "number"))
    lines = [
        f"Total iterations, ours / the paper's (ratio), tol {TOL:g}, at most {settings.limit:g} s a column; the "
        "paper's solver chose pairs by first order:",
        "",
        *pivot(entries),
    ]
    return Report(lines, [entry.as_row() for entry in entries])


EXPERIMENT = on_its_sets(
    "kcsl04_table32", "KCSL04 Table 3.2: iterations with and without alpha seeding, rbf kernel", plan, report
)
main = command(EXPERIMENT)

if __name__ == "__main__":
    main()
