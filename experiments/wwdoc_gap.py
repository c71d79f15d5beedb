"""WWDOC section 5: the duality gap of Frank-Wolfe against iterations, for ww with an unregularised bias.

The document prints no numbers. Its own algorithm is "plain"; compared with variants that may move away from vertices.
Its margin is 1, so that its C is ww's 2C here. (C, gamma) are those of HL02 Table V.2 for ww. An iteration is one
linear program, which finds the vertex to go to.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from experiments.data import load
from experiments.frame import Cell, Cells, Experiment, Report, Settings, Task, command
from experiments.hl02 import rbf_parameters
from experiments.tables import markdown
from multimargin import MACHINES
from multimargin.kernels.spec import KernelSpec
from multimargin.problems.problem import Bias, DualProblem, Loss
from multimargin.problems.training_set import TrainingSet
from multimargin.solvers.frank_wolfe.driver import FrankWolfeOptions, solve
from multimargin.solvers.frank_wolfe.steps import Variant
from multimargin.solvers.options import SolverOptions

TOL, QUICK_TOL = 1e-3, 1e-2
MOST_STEPS, QUICK_STEPS = 20_000, 40
LEVELS = (1e-1, 1e-2, 1e-3)
MOST_KEPT = 200  # points of a curve


def evaluate(name: str, variant: str, settings: Settings) -> Cell:
    data, params = load(name, quick=settings.quick), rbf_parameters(name, "ww")
    problem = DualProblem(
        TrainingSet.from_arrays(data.X, data.y, C=params["C"]),
        MACHINES["ww"],
        KernelSpec("rbf", gamma=params["gamma"]),
        Loss.HINGE,
        Bias.EXACT,
    )
    options = SolverOptions(
        tol=QUICK_TOL if settings.quick else TOL,
        max_time=settings.limit,
        max_iter=QUICK_STEPS if settings.quick else MOST_STEPS,
        trace=True,
        trace_primal=True,
    )
    solution = solve(problem, options, how=FrankWolfeOptions(variant=Variant(variant)))
    (trace,) = solution.report.traces
    # The gap of the best primal and dual so far, which a user would stop by.
    primal = np.fmin.accumulate(np.nan_to_num(trace.primal, nan=np.inf))
    gap = np.maximum(primal - np.maximum.accumulate(trace.dual), 0.0) / np.maximum(np.abs(primal), 1e-300)
    kept = np.unique(np.linspace(0, len(trace) - 1, min(MOST_KEPT, len(trace))).astype(int))
    return {
        "iterations": trace.iterations[kept].tolist(),
        "gap": np.minimum(gap, 1.0)[kept].tolist(),
        "reached": {f"{level:g}": _first(trace.iterations, gap, level) for level in LEVELS},
        "seconds": solution.report.seconds,
        "stop_reason": solution.report.stop_reason.value,
        "dual": solution.report.dual,
    }


def _first(iterations: np.ndarray, gap: np.ndarray, level: float) -> int | None:
    below = np.flatnonzero(gap <= level)
    return int(iterations[below[0]]) if len(below) else None


def plan(settings: Settings) -> list[Task]:
    return [
        Task((name, variant.value), partial(evaluate, name, variant.value, settings))
        for name in settings.sets
        for variant in Variant
    ]


def draw(cells: Cells, settings: Settings) -> Any:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.2 * len(settings.sets), 3.4), layout="constrained")
    axes = figure.subplots(1, len(settings.sets), squeeze=False)[0]
    for ax, name in zip(axes, settings.sets, strict=True):
        for variant in Variant:
            cell = cells[name, variant.value]
            ax.plot(np.maximum(cell["iterations"], 1), np.maximum(cell["gap"], 1e-8), label=variant.value)
        ax.set(xscale="log", yscale="log", xlabel="iterations", ylabel="relative duality gap", title=name)
    axes[-1].legend()
    return figure


def report(cells: Cells, settings: Settings) -> Report:
    rows, records = [], []
    for (name, variant), cell in cells.items():
        reached = [f"{cell['reached'][f'{level:g}']:,}" if cell["reached"][f"{level:g}"] else "-" for level in LEVELS]
        rows.append(
            [name, variant, *reached, f"{cell['iterations'][-1]:,}", cell["stop_reason"], f"{cell['seconds']:.3g}"]
        )
        points = zip(cell["iterations"], cell["gap"], strict=True)
        records += [{"data": name, "variant": variant, "iterations": x, "relative_gap": y} for x, y in points]
    header = ["data", "variant", *(f"to {level:g}" for level in LEVELS), "iterations", "ended", "seconds"]
    lines = ["Iterations to a relative duality gap (of the best primal and dual so far):", "", *markdown(header, rows)]
    return Report(lines, records, figure=draw(cells, settings))


EXPERIMENT = Experiment(
    name="wwdoc_gap",
    title="WWDOC section 5: the gap of Frank-Wolfe against iterations",
    sets=("iris", "wine", "glass"),
    quick_sets=("iris",),
    plan=plan,
    report=report,
)
main = command(EXPERIMENT)

if __name__ == "__main__":
    main()
