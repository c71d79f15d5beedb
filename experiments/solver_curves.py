"""How the solvers converge, side by side: curves over time and a table of what they spent.

    python -m experiments.solver_curves [--data vehicle ...] [--solver smo ...] [--tol 1e-3] [--limit 60]
        [--out DIR] [--picture docs/images/solver_curves.png]

Prints the table and, with --out, writes it as solver_curves.md and .json. (C, gamma) are those of the papers for the
machine, see ``multimargin.datasets``.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import click
from matplotlib.figure import Figure
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning

from benchmarks.measure import write_report
from multimargin import SVC, ConvergenceDisplay
from multimargin.datasets import load_benchmark, parameters

SETS = ("vehicle", "satimage")
SOLVERS = ("two-level", "semi-greedy", "whole-example", "s2do", "smo")
PANELS = ("violation", "suboptimality")
HEADER = (
    "| data | solver | ended | iterations | seconds | kernel rows | KKT violation | dual below the best, relative |"
)

Fits = dict[str, SVC]


def fit_all(name: str, machine: str, solvers: tuple[str, ...], tol: float, limit: float) -> Fits:
    """Fit one machine with every solver; "digits" is the set that scikit-learn ships."""
    if name == "digits":
        X, y = load_digits(return_X_y=True)
        X = X / 16
    else:
        data = load_benchmark(name)
        X, y = data.X, data.y
    C, gamma = parameters(name, machine)
    asked: dict[str, Any] = {"multi_class": machine, "C": C, "gamma": gamma, "tol": tol, "max_time": limit}
    return {solver: SVC(solver=solver, trace=True, **asked).fit(X, y) for solver in solvers}


def rows_of(name: str, fits: Fits) -> list[dict[str, Any]]:
    """Return one row for each solver: what it spent, and how far its dual is below the best."""
    best = max(clf.certificate_.dual for clf in fits.values())
    names = ("stop_reason", "n_iter", "seconds", "kernel_rows", "kkt_violation", "dual", "C", "gamma")
    rows = []
    for solver, clf in fits.items():
        found = {key: getattr(clf.certificate_ if hasattr(clf.certificate_, key) else clf, key) for key in names}
        rows.append({"data": name, "solver": solver, "below": (best - found["dual"]) / best, **found})
    return rows


def render(rows: list[dict[str, Any]]) -> list[str]:
    """Return the table."""
    lines = [
        f"| {row['data']} | {row['solver']} | {row['stop_reason']} | {row['n_iter']:,} | {row['seconds']:.3g} | "
        f"{row['kernel_rows']:,} | {row['kkt_violation']:.1e} | {row['below']:.0e} |"
        for row in rows
    ]
    return [HEADER, "|---" * HEADER.count(" | ") + "|---|", *lines]


def draw(fits_by_set: Mapping[str, Fits], machine: str) -> Figure:
    """Return the picture: a row for each data set, KKT violation and suboptimality over the seconds of the fit."""
    figure = Figure(figsize=(9.0, 3.1 * len(fits_by_set)), layout="constrained")
    axes: Any = figure.subplots(len(fits_by_set), len(PANELS), squeeze=False)
    for row, (name, fits) in zip(axes, fits_by_set.items(), strict=True):
        for ax, y in zip(row, PANELS, strict=True):
            ConvergenceDisplay.from_estimators(fits, y=y, ax=ax, linewidth=1.2)
            ax.set_xscale("log")
            ax.get_legend().remove()
        clf = next(iter(fits.values()))
        row[0].set_title(f"{name}, {machine}, C = {clf.C:g}, gamma = {clf.gamma:g}", fontsize=9, loc="left")
    axes[0, 1].legend(fontsize=8)
    return figure


@click.command()
@click.option("--data", multiple=True, default=SETS, help="Of the papers, or digits.")
@click.option("--machine", default="ww")
@click.option("--solver", "solvers", multiple=True, default=SOLVERS)
@click.option("--tol", default=1e-3)
@click.option("--limit", default=60.0, help="Seconds per fit.")
@click.option("--out", default=None, help="A directory for the table.")
@click.option("--picture", type=click.Path(dir_okay=False, writable=True), default=None, help="A file for the curves.")
def main(data: tuple[str, ...], machine: str, solvers: tuple[str, ...], **asked: Any) -> None:
    """Fit with every solver, print the table and draw the curves."""
    warnings.simplefilter("ignore", ConvergenceWarning)
    fits = {name: fit_all(name, machine, solvers, asked["tol"], asked["limit"]) for name in data}
    rows = [row for name in data for row in rows_of(name, fits[name])]
    write_report("solver_curves", asked["out"], render(rows), rows)
    if asked["picture"] is not None:
        draw(fits, machine).savefig(asked["picture"], dpi=80)


if __name__ == "__main__":
    main()
