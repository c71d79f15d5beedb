"""HL02 Table V.4 repeated: rates of five methods with the linear kernel, at the paper's own C.

The mean of ten repetitions of ten-fold cross-validation stands beside the paper's best of fifteen C on its own folds.
"""

from __future__ import annotations

from experiments import hl02
from experiments.data import load
from experiments.frame import Cell, Cells, Experiment, Report, Settings, command
from experiments.paper_numbers.hl02 import TABLE_4, TABLE_4_C
from experiments.tables import Entry, pivot, worst
from multimargin import LinearSVC


def evaluate(name: str, method: str, settings: Settings) -> Cell:
    data = load(name, quick=settings.quick)
    clf = LinearSVC(multi_class=method, bias=hl02.BIAS[method], tol=hl02.TOL, C=2.0 ** TABLE_4_C[name][method])
    return hl02.cross_validate(clf, data.X, data.y, settings)


plan = hl02.each_method(evaluate)


def report(cells: Cells, settings: Settings) -> Report:
    entries = [
        Entry(name, hl02.TITLES[method], cell.get("rate"), TABLE_4[name][method], quantity="rate")
        for (name, method), cell in cells.items()
    ]
    lines = [f"Percent, ours / the paper's (difference); at most {settings.limit:g} s a cell.", "", *pivot(entries), ""]
    most = worst(entries)
    if most is not None:
        lines.append(f"The largest difference is {most.difference:+.2f} ({most.row}, {most.column}).")
    seconds = [
        Entry(name, hl02.TITLES[method], cell.get("training_seconds"), None, "seconds", quantity="training_seconds")
        for (name, method), cell in cells.items()
    ]
    lines += ["", "Seconds of one training (the paper prints none):", "", *pivot(seconds)]
    return Report(lines, [entry.as_row() for entry in (*entries, *seconds)])


EXPERIMENT = Experiment(
    name="hl02_table4",
    title="HL02 Table V.4: rates with the linear kernel",
    sets=hl02.SMALL,
    quick_sets=("iris", "wine"),
    plan=plan,
    report=report,
    quick_splits=1,
)
main = command(EXPERIMENT)

if __name__ == "__main__":
    main()
