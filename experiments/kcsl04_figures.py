"""KCSL04 Figures 1 and 2 repeated: iterations against C, and how fast the iterates reach the face of the solution.

Figure 1: problems along C from zero, linear and rbf kernel (gamma = 1/n); the linear curve's slope comes near 1, which
is a doubling of the iterations with C. Figure 2: at C = 2^7 and 2^8 the share of variables of another kind (lower
bound, free, upper bound) than at the end, against the share of the iterations. The solver is deterministic, so that a
point of a curve is the same solve again, stopped after so many iterations.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from experiments.frame import Cell, Cells, Experiment, Report, Settings, Task, command
from experiments.kcsl04 import (
    AIM,
    GRID,
    LINEAR,
    ORDERS,
    QUICK,
    QUICK_GRID,
    TOL,
    Path,
    as_path,
    load,
    rbf_of,
    solve_path,
)
from experiments.tables import markdown
from multimargin._typing import FloatArray
from multimargin.solvers.options import Precision, SolverOptions

FACE_EXPONENTS, QUICK_FACE_EXPONENTS = (7.0, 8.0), (2.0, 3.0)
N_POINTS, QUICK_POINTS = 24, 6
SLOPE_OVER = 5  # of the last points


def options_of(**more: Any) -> SolverOptions:
    return SolverOptions(solver=ORDERS["first"], precision=Precision.FLOAT64, tol=TOL / AIM, **more)


def walk(name: str, kernel_name: str, settings: Settings) -> Cell:
    """Return the path of Figure 1, from zero at every C."""
    rows = load(name)
    grid = QUICK_GRID if settings.quick else GRID
    kernel = LINEAR if kernel_name == "linear" else rbf_of(rows[0])
    path = as_path(
        lambda: solve_path(rows, grid, options_of(), seeded=False, limit=settings.limit, kernel=kernel), len(grid)
    )
    return path.to_cell()


def face_of(amounts: FloatArray, C: float) -> np.ndarray:
    return np.where(amounts == 0, -1, np.where(amounts == C, 1, 0))


def faces(name: str, exponent: float, settings: Settings) -> Cell:
    """Return Figure 2's curve: the share of variables that are of another kind than at the end."""
    rows, C = load(name), 2.0**exponent
    ((last, amounts),) = solve_path(rows, [exponent], options_of(), seeded=False, limit=settings.limit)
    end = face_of(amounts, C)
    shares = np.linspace(0, 1, QUICK_POINTS if settings.quick else N_POINTS)
    steps = np.unique((shares * last.iterations).astype(int))
    rates = []
    for n in steps.tolist():
        if n == 0:
            rates.append(float(np.mean(end != -1)))
            continue
        stopped = options_of(max_iter=n)
        ((_, point),) = solve_path(rows, [exponent], stopped, seeded=False, limit=settings.limit)
        rates.append(float(np.mean(face_of(point, C) != end)))
    return {"iterations": steps.tolist(), "rates": rates, "done": last.done}


def plan(settings: Settings) -> list[Task]:
    exponents = QUICK_FACE_EXPONENTS if settings.quick else FACE_EXPONENTS
    tasks = []
    for name in settings.sets:
        tasks += [Task((name, kernel), partial(walk, name, kernel, settings)) for kernel in ("linear", "rbf")]
        tasks += [Task((name, "face", f"{e:g}"), partial(faces, name, e, settings)) for e in exponents]
    return tasks


def slope(path: Path, grid: tuple[float, ...]) -> float:
    """Return by which power of C the iterations grow over the last points."""
    counts = np.array([max(1, each.iterations) for each in path.solved])[-SLOPE_OVER:]
    return float(np.polyfit(grid[: len(path.solved)][-SLOPE_OVER:], np.log2(counts), 1)[0])


def draw(cells: Cells, settings: Settings) -> Any:
    from matplotlib.figure import Figure

    grid = QUICK_GRID if settings.quick else GRID
    figure = Figure(figsize=(9.0, 3.2 * len(settings.sets)), layout="constrained")
    axes = figure.subplots(len(settings.sets), 2, squeeze=False)
    for (left, right), name in zip(axes, settings.sets, strict=True):
        for kernel in ("linear", "rbf"):
            path = Path.of_cell(cells[name, kernel])
            counts = [each.iterations for each in path.solved]
            left.plot(grid[: len(counts)], counts, label=kernel)
        left.set(xlabel="log2 C", ylabel="iterations", yscale="log", title=name)
        left.legend()
        for key, cell in cells.items():
            if key[:2] == (name, "face"):
                right.plot(cell["iterations"], cell["rates"], label=f"C = 2^{key[2]}")
        right.set(xlabel="iterations", ylabel="error-face rate", title=name)
        right.legend()
    return figure


def report(cells: Cells, settings: Settings) -> Report:
    grid = QUICK_GRID if settings.quick else GRID
    rows, records = [], []
    for name in settings.sets:
        linear, rbf = (Path.of_cell(cells[name, kernel]) for kernel in ("linear", "rbf"))
        slopes = [f"{slope(path, grid):.2f}" for path in (linear, rbf)]
        rows.append([name, linear.text(), rbf.text(), *slopes])
        for kernel, path in (("linear", linear), ("rbf", rbf)):
            for exponent, each in zip(grid, path.solved, strict=False):
                records.append({"data": name, "curve": kernel, "x": exponent, "y": each.iterations})
        for key, cell in cells.items():
            if key[:2] == (name, "face"):
                points = zip(cell["iterations"], cell["rates"], strict=True)
                records += [{"data": name, "curve": f"face 2^{key[2]}", "x": x, "y": y} for x, y in points]
    header = ["data", "iterations, linear", "iterations, rbf", "slope at large C, linear", "slope, rbf"]
    lines = [
        "Figure 1: iterations of all C together, and the slope of their logarithm against log C over the last points "
        "(paper: the linear one is very close to 1):",
        "",
        *markdown(header, rows),
        "",
        "Figure 2: iterations, and the error-face rate at half of them (paper: for 2C the same curve, twice as long):",
        "",
    ]
    halves = []
    for key, cell in cells.items():
        if key[1] == "face":
            half = float(np.interp(cell["iterations"][-1] / 2, cell["iterations"], cell["rates"]))
            halves.append([key[0], f"2^{key[2]}", f"{cell['iterations'][-1]:,}", f"{half:.3f}"])
    lines += markdown(["data", "C", "iterations", "rate at half"], halves)
    return Report(lines, records, figure=draw(cells, settings))


EXPERIMENT = Experiment(
    name="kcsl04_figures",
    title="KCSL04 Figures 1 and 2: iterations against C, error-face rate",
    sets=("heart",),
    more_sets=("australian", "diabetes", "german"),
    quick_sets=(QUICK,),
    plan=plan,
    report=report,
)
main = command(EXPERIMENT)

if __name__ == "__main__":
    main()
