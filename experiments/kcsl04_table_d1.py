"""KCSL04 Table D.1 repeated: seconds along C with a tolerance proportional to C, with and without alpha seeding.

The tolerance is C * 1e-3. Where that exceeds 2 the zero start meets it, "an obviously wrong solution" (appendix D); the
report names the C from which this holds.
"""

from __future__ import annotations

from functools import partial

from experiments.frame import Cell, Cells, Report, Settings, Task, command
from experiments.kcsl04 import AIM, GRID, ORDERS, QUICK_GRID, TOL, Path, as_path, load, on_its_sets, solve_path
from experiments.paper_numbers.kcsl04 import TABLE_D1
from experiments.tables import Entry, pivot
from multimargin.solvers.options import Precision, SolverOptions

STARTS = ("seeded", "unseeded")


def walk(name: str, start: str, settings: Settings) -> Cell:
    rows = load(name)
    grid = QUICK_GRID if settings.quick else GRID
    options = SolverOptions(solver=ORDERS["first"], precision=Precision.FLOAT64)
    path = as_path(
        lambda: solve_path(
            rows, grid, options, seeded=start == "seeded", limit=settings.limit, tol_of=lambda C: C * TOL / AIM
        ),
        len(grid),
    )
    return path.to_cell()


def plan(settings: Settings) -> list[Task]:
    return [Task((name, start), partial(walk, name, start, settings)) for name in settings.sets for start in STARTS]


def report(cells: Cells, settings: Settings) -> Report:
    seconds, iterations = [], []
    for (name, start), cell in cells.items():
        path, printed = Path.of_cell(cell), TABLE_D1.get(name)
        paper = printed[STARTS.index(start)] if printed else None
        seconds.append(Entry(name, start, path.seconds, paper, "seconds", not path.done, "seconds"))
        iterations.append(Entry(name, start, path.total, None, "count", not path.done, "iterations"))
    lines = [
        f"Seconds with tolerance C * {TOL:g}, ours / the paper's; at most {settings.limit:g} s a column:",
        "",
        *pivot(seconds),
        "",
        "Iterations:",
        "",
        *pivot(iterations),
        "",
        f"From C = {2 / TOL:g} on the tolerance exceeds 2 and nothing would be trained at all; the grid ends before.",
    ]
    return Report(lines, [entry.as_row() for entry in (*seconds, *iterations)])


EXPERIMENT = on_its_sets(
    "kcsl04_table_d1", "KCSL04 Table D.1: seconds with a tolerance proportional to C", plan, report
)
main = command(EXPERIMENT)

if __name__ == "__main__":
    main()
