"""KCSL04 Table 3.1 repeated: iterations along C with and without alpha seeding, compared with the paper's numbers.

    python -m experiments.kcsl04_table31 --set adult --set ijcnn1

The first-order choice of pairs is the one that LIBSVM had in 2004; the second-order one is printed beside it. A column
that reaches its limit is printed as "> n". Ends with an error if, with first order on the small sets, a seeded total is
not within 30 % of the paper's, seeding saves less than a factor of 10, or less than 40 in the geometric mean.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from benchmarks.measure import geometric_mean
from experiments.frame import Cell, Cells, Report, Settings, Task, command
from experiments.kcsl04 import AIM, GRID, ORDERS, QUICK_GRID, SMALL, TOL, Path, as_path, load, on_its_sets, solve_path
from experiments.paper_numbers.kcsl04 import TABLE_31
from experiments.tables import markdown
from multimargin.solvers.options import Precision, SolverChoice, SolverOptions

EXACT_TOL = 1e-7
SAME = 1e-5  # relative difference of w'w that counts as none
FURTHER = (*GRID, *(8.5 + 0.5 * k for k in range(8)))  # for C*: to 2^12
WITHIN, LEAST_RATIO, LEAST_MEAN_RATIO = 0.3, 10.0, 40.0


@dataclass(frozen=True)
class Row:
    """One data set: seeded and unseeded path by order of selection, and the accurate path."""

    data: str
    n_rows: int
    n_features: int
    seeded: dict[str, Path]
    unseeded: dict[str, Path]
    exact: Path
    exact_grid: tuple[float, ...] = field(repr=False)

    def ratio(self, order: str) -> float:
        """How many times fewer iterations seeding needs; nan where a limit was reached."""
        seeded, unseeded = self.seeded[order], self.unseeded[order]
        return unseeded.total / max(1, seeded.total) if seeded.done else np.nan

    def off(self) -> float:
        """By which share of the paper's the seeded total of first order differs from it."""
        printed = TABLE_31.get(self.data)
        return np.nan if printed is None else self.seeded["first"].total / printed.seeded - 1

    def settles_at(self) -> str:
        """The smallest C of the grid from which on w'w stays the same."""
        if not self.exact.done:
            return "-"
        norms = np.array([each.norm for each in self.exact.solved])
        different = np.flatnonzero(np.abs(norms - norms[-1]) > SAME * norms[-1])
        first = 0 if len(different) == 0 else int(different[-1]) + 1
        # A w'w that changes at the last C but one may change beyond it.
        return f"2^{self.exact_grid[first]:g}" if first < len(norms) - 1 else "unstable"


def walk(name: str, order: str, settings: Settings) -> Cell:
    """Return one path; ``order`` is "first seeded", ..., or "exact"."""
    rows = load(name)
    exact = order == "exact"
    grid = QUICK_GRID if settings.quick else (FURTHER if exact else GRID)
    options = SolverOptions(solver=SolverChoice.TWO_LEVEL, tol=EXACT_TOL)
    if not exact:
        options = SolverOptions(solver=ORDERS[order.split(maxsplit=1)[0]], precision=Precision.FLOAT64, tol=TOL / AIM)
    seeded = exact or order.endswith(" seeded")
    path = as_path(lambda: solve_path(rows, grid, options, seeded=seeded, limit=settings.limit), len(grid))
    return path.to_cell() | {"shape": list(rows[0].shape)}


COLUMNS = ("first seeded", "second seeded", "first unseeded", "second unseeded", "exact")


def plan(settings: Settings) -> list[Task]:
    return [Task((name, column), partial(walk, name, column, settings)) for name in settings.sets for column in COLUMNS]


def rows_of(cells: Cells, settings: Settings) -> list[Row]:
    rows = []
    for name in settings.sets:
        paths = {column: Path.of_cell(cells[name, column]) for column in COLUMNS}
        n_rows, n_features = cells[name, "exact"]["shape"]
        seeded, unseeded = ({order: paths[f"{order} {how}"] for order in ORDERS} for how in ("seeded", "unseeded"))
        grid = QUICK_GRID if settings.quick else FURTHER
        rows.append(Row(name, n_rows, n_features, seeded, unseeded, paths["exact"], grid))
    return rows


def report(cells: Cells, settings: Settings) -> Report:
    rows = rows_of(cells, settings)
    grid = QUICK_GRID if settings.quick else GRID
    ends = f"C = 2^{grid[-2]:g}", f"C = 2^{grid[-1]:g}"
    seeded = ["data", "rows", "seeded, first order", "KCSL04", "off by", "second order"]
    unseeded = ["data", "first order", "KCSL04", *(f"{end}{of}" for end in ends for of in ("", ", KCSL04"))]
    unseeded += ["second order", "times fewer, first", "second"]
    norms = ["data", "C*", "KCSL04", "w'w there", "w'w at the end, seeded", "KCSL04", "most free", "n + 1"]
    lines = [
        f"Total iterations along C = 2^{grid[0]:g}, ..., 2^{grid[-1]:g}, tol {TOL:g}, at most {settings.limit:g} s a "
        "column.",
        "",
        *markdown(seeded, [_seeded_cells(row) for row in rows]),
        "",
        "Without seeding, and how many times fewer iterations seeding needs:",
        "",
        *markdown(unseeded, [_unseeded_cells(row) for row in rows]),
        "",
        f"C* and w'w of solutions to {EXACT_TOL:g} up to C = 2^{rows[0].exact_grid[-1]:g}:",
        "",
        *markdown(norms, [_norm_cells(row) for row in rows]),
        "",
    ]
    holds, sentences = verdict(rows)
    return Report(lines + sentences, [record for row in rows for record in _records(row)], holds=holds)


def _records(row: Row) -> list[dict[str, Any]]:
    paths = {"seeded": row.seeded, "unseeded": row.unseeded}
    printed = TABLE_31.get(row.data)
    theirs = {} if printed is None else {"seeded": printed.seeded, "unseeded": printed.unseeded}
    return [
        {
            "data": row.data,
            "start": how,
            "order": order,
            "iterations": path.total,
            "done": path.done,
            "paper": theirs.get(how),
        }
        for how, by_order in paths.items()
        for order, path in by_order.items()
    ]


def _seeded_cells(row: Row) -> list[str]:
    printed, first = TABLE_31.get(row.data), row.seeded["first"]
    off = f"{row.off():+.0%}" if printed and first.done else "-"
    theirs = f"{printed.seeded:,}" if printed else "-"
    return [row.data, str(row.n_rows), first.text(), theirs, off, row.seeded["second"].text()]


def _unseeded_cells(row: Row) -> list[str]:
    printed, first = TABLE_31.get(row.data), row.unseeded["first"]
    theirs = (printed.unseeded, *printed.last) if printed else ("-", "-", "-")
    more = [
        f"{'' if row.unseeded[order].done else '> '}{row.ratio(order):.3g}" if row.seeded[order].done else "-"
        for order in ORDERS
    ]
    ends = [first.text_of(-2), theirs[1], first.text_of(-1), theirs[2]]
    return [row.data, first.text(), theirs[0], *ends, row.unseeded["second"].text(), *more]


def _norm_cells(row: Row) -> list[str]:
    printed, exact, seeded = TABLE_31.get(row.data), row.exact, row.seeded["first"]
    there = f"{exact.solved[-1].norm:.5g}" if exact.done else "-"
    end = f"{seeded.solved[-1].norm:.5g}" if seeded.done else "-"
    most_free = str(max(each.n_free for each in exact.solved))
    theirs = (printed.C_star, printed.norm) if printed else ("-", "-")
    return [row.data, row.settles_at(), theirs[0], there, end, theirs[1], most_free, str(row.n_features + 1)]


def verdict(rows: list[Row]) -> tuple[bool, list[str]]:
    """Return whether the small sets agree with the paper, and sentences about it."""
    judged = [row for row in rows if row.data in SMALL]
    if not judged:
        return True, ["None of the paper's small sets took part, so nothing is judged."]
    near = sum(row.seeded["first"].done and abs(row.off()) <= WITHIN for row in judged)
    saving = sum(row.ratio("first") >= LEAST_RATIO for row in judged)
    mean = geometric_mean([row.ratio("first") for row in judged])
    lines = [
        f"Seeded totals within {WITHIN:.0%} of the paper's: {near} of {len(judged)}.",
        f"At least {LEAST_RATIO:g} times fewer iterations by seeding: {saving} of {len(judged)}; geometric mean "
        f"{mean:.3g}, at least {LEAST_MEAN_RATIO:g} is asked for.",
    ]
    return near == saving == len(judged) and mean >= LEAST_MEAN_RATIO, lines


EXPERIMENT = on_its_sets(
    "kcsl04_table31", "KCSL04 Table 3.1: iterations with and without alpha seeding, linear kernel", plan, report
)
main = command(EXPERIMENT)

if __name__ == "__main__":
    main()
