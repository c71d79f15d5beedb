"""KCSL04 Table 5.2 repeated: working sets of two and of thirty variables along C, seeded, linear kernel.

The paper's numbers are SVMlight's. q = 2 is our core (most violating pair, as LIBSVM of 2004), q = 30 the reference in
plain NumPy, whose iterations are comparable and whose seconds are not.
"""

from __future__ import annotations

from functools import partial

from experiments.frame import Cell, Cells, Report, Settings, Task, command
from experiments.kcsl04 import (
    AIM,
    GRID,
    QUICK_GRID,
    TOL,
    Path,
    as_path,
    by_working_sets,
    load,
    on_its_sets,
    solve_path,
)
from experiments.paper_numbers.kcsl04 import TABLE_52
from experiments.tables import Entry, pivot
from multimargin.solvers.options import Precision, SolverChoice, SolverOptions

SIZES = (2, 30)


def walk(name: str, q: int, settings: Settings) -> Cell:
    rows = load(name)
    grid = QUICK_GRID if settings.quick else GRID
    if q > 2:
        return by_working_sets(rows, grid, q, settings.limit).to_cell()
    options = SolverOptions(solver=SolverChoice.MOST_VIOLATING_PAIR, precision=Precision.FLOAT64, tol=TOL / AIM)
    return as_path(lambda: solve_path(rows, grid, options, seeded=True, limit=settings.limit), len(grid)).to_cell()


def plan(settings: Settings) -> list[Task]:
    return [Task((name, str(q)), partial(walk, name, q, settings)) for name in settings.sets for q in SIZES]


def report(cells: Cells, settings: Settings) -> Report:
    iterations, seconds = [], []
    for (name, q), cell in cells.items():
        path, printed = Path.of_cell(cell), TABLE_52.get(name, {}).get(int(q))
        theirs = printed or (None, None)
        iterations.append(Entry(name, f"q = {q}", path.total, theirs[0], "count", not path.done, "iterations"))
        seconds.append(Entry(name, f"q = {q}", path.seconds, theirs[1], "seconds", not path.done, "seconds"))
    lines = [
        f"Total iterations, ours / the paper's (ratio), tol {TOL:g}, at most {settings.limit:g} s a column:",
        "",
        *pivot(iterations),
        "",
        "Seconds (q = 30 in plain NumPy):",
        "",
        *pivot(seconds),
        "",
    ]
    done = [n for n in settings.sets if all(Path.of_cell(cells[n, str(q)]).done for q in SIZES)]
    fewer = [n for n in done if Path.of_cell(cells[n, "30"]).total < Path.of_cell(cells[n, "2"]).total]
    lines.append(f"Fewer iterations with q = 30 (the paper: everywhere): {len(fewer)} of {len(done)} sets.")
    return Report(lines, [entry.as_row() for entry in (*iterations, *seconds)], holds=len(fewer) == len(done))


EXPERIMENT = on_its_sets("kcsl04_table52", "KCSL04 Table 5.2: working sets of 2 and of 30 variables", plan, report)
main = command(EXPERIMENT)

if __name__ == "__main__":
    main()
