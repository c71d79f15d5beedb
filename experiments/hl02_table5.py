"""HL02 Table VI.5 repeated: iterations of cs without a bias (17) and with a regularised one (24).

Whole examples by the largest violation, as in HL02 (20), at the paper's parameters; tolerance 1e-3, on letter and
shuttle 0.1. The paper finds that a bias nearly doubles the iterations.
"""

from __future__ import annotations

from functools import partial

from experiments import hl02
from experiments.data import load
from experiments.frame import Cell, Cells, Experiment, Report, Settings, Task, command
from experiments.paper_numbers.hl02 import TABLE_5
from experiments.tables import Entry, pivot
from multimargin import SVC

EQUATION = {"none": "(17), no bias", "regularized": "(24), regularised bias"}


def evaluate(name: str, bias: str, settings: Settings) -> Cell:
    data = load(name, quick=settings.quick)
    clf = SVC(
        multi_class="cs",
        bias=bias,
        solver="whole-example",
        tol=hl02.tolerance(name, "cs"),
        max_time=settings.limit,
        **hl02.rbf_parameters(name, "cs"),
    ).fit(data.X, data.y)
    proof = clf.certificate_
    return {"iterations": proof.n_iter, "seconds": proof.seconds, "done": proof.stop_reason == "converged"}


def plan(settings: Settings) -> list[Task]:
    return [Task((name, bias), partial(evaluate, name, bias, settings)) for name in settings.sets for bias in EQUATION]


def report(cells: Cells, settings: Settings) -> Report:
    entries = []
    for (name, bias), cell in cells.items():
        paper = TABLE_5.get(name, {}).get(bias)
        entries.append(Entry(name, EQUATION[bias], cell["iterations"], paper, "count", limited=not cell["done"]))
    for name in dict.fromkeys(key[0] for key in cells):
        none, some = cells[name, "none"], cells[name, "regularized"]
        printed = TABLE_5.get(name)
        ratio = some["iterations"] / max(1, none["iterations"]) if none["done"] and some["done"] else None
        paper = None if printed is None else printed["regularized"] / printed["none"]
        entries.append(Entry(name, "times more with a bias", ratio, paper, "number", quantity="ratio"))
    lines = [f"Iterations, ours / the paper's; at most {settings.limit:g} s a cell.", "", *pivot(entries)]
    return Report(lines, [entry.as_row() for entry in entries])


EXPERIMENT = Experiment(
    name="hl02_table5",
    title="HL02 Table VI.5: iterations of C&S with and without a bias",
    sets=hl02.FIXED,
    quick_sets=("iris", "digits"),
    plan=plan,
    report=report,
)
main = command(EXPERIMENT)

if __name__ == "__main__":
    main()
