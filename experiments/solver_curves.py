"""Convergence of the solvers, side by side: curves over time and a table of iterations, kernel rows and seconds.

    python -m experiments.solver_curves [--data vehicle ...] [--machine ww] [--bias exact] [--solver smo ...]
        [--tol 1e-3] [--limit 60] [--out DIR] [--picture docs/images/solver_curves.png]

Prints the table and, with --out, writes it as solver_curves.md and .json. Without --data, --machine and
--bias the studies are those of docs/solvers.md. (C, gamma) are those of the papers for the machine, see
``multimargin.datasets``.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import click
from matplotlib.figure import Figure
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning

from benchmarks.measure import write_report
from multimargin import MACHINES, SVC, Bound, ConvergenceDisplay
from multimargin.datasets import load_benchmark, parameters

WORKING_SET = "working-set"
SOLVERS = ("two-level", "semi-greedy", "whole-example", WORKING_SET, "s2do", "smo")
# Sets that are small enough for it.
FRANK_WOLFE, SMALL = "frank-wolfe", ("iris", "wine", "glass")
# Binary problems with an exact bias; "smo" is "maximum-gain".
PAIR_SOLVERS = ("auto", "maximum-gain", "most-violating-pair")
PANELS = ("violation", "suboptimality")
HEADER = (
    "| data | machine | solver | ended | iterations | seconds | kernel rows | KKT violation "
    "| dual below the best, relative |"
)

Fits = dict[str, SVC]


@dataclass(frozen=True)
class Study:
    """A machine on a data set: one row of the picture. "digits" is the set that scikit-learn ships."""

    data: str
    machine: str = "ww"
    bias: str = "auto"

    @property
    def label(self) -> str:
        return self.machine + (f", {self.bias} bias" if self.bias not in ("auto", "none") else "")

    @property
    def solvers(self) -> tuple[str, ...]:
        """The solvers that apply, and that finish in time on the papers' data sets."""
        if self.machine in ("ovo", "dag", "ova") and self.bias in ("auto", "exact"):
            return PAIR_SOLVERS
        simplex = self.machine in MACHINES and MACHINES[self.machine].bound is Bound.SIMPLEX
        found = tuple(solver for solver in SOLVERS if not (simplex and solver == WORKING_SET))
        return (*found, FRANK_WOLFE) if self.data in SMALL else found


SETS = ("vehicle", "satimage")
STUDIES: tuple[Study, ...] = (
    Study("vehicle"),
    Study("satimage"),
    Study("glass"),
    Study("vehicle", "ovo"),
)


def fit_all(study: Study, solvers: tuple[str, ...], tol: float, limit: float) -> Fits:
    """Fit one machine with every solver."""
    if study.data == "digits":
        X, y = load_digits(return_X_y=True)
        X = X / 16
    else:
        data = load_benchmark(study.data)
        X, y = data.X, data.y
    C, gamma = parameters(study.data, study.machine)
    asked: dict[str, Any] = {"multi_class": study.machine, "bias": study.bias, "C": C, "gamma": gamma}
    return {solver: SVC(solver=solver, trace=True, tol=tol, max_time=limit, **asked).fit(X, y) for solver in solvers}


def dual_of(clf: SVC) -> float:
    """Return the dual objective, of all pairs together where there are such."""
    return float(sum(part.dual for part in clf.certificate_.parts or (clf.certificate_,)))


def rows_of(study: Study, fits: Fits) -> list[dict[str, Any]]:
    """Return one row for each solver: its cost, and how far its dual is below the best."""
    best = max(dual_of(clf) for clf in fits.values())
    names = ("stop_reason", "n_iter", "seconds", "kernel_rows", "kkt_violation")
    rows = []
    for solver, clf in fits.items():
        asked = {"data": study.data, "machine": study.label, "solver": solver, "C": clf.C, "gamma": clf.gamma}
        found = {name: getattr(clf.certificate_, name) for name in names}
        rows.append({**asked, **found, "dual": dual_of(clf), "below": (best - dual_of(clf)) / best})
    return rows


def render(rows: list[dict[str, Any]]) -> list[str]:
    """Return the table."""
    lines = [
        f"| {row['data']} | {row['machine']} | {row['solver']} | {row['stop_reason']} | {row['n_iter']:,} | "
        f"{row['seconds']:.3g} | {row['kernel_rows']:,} | {row['kkt_violation']:.1e} | {row['below']:.0e} |"
        for row in rows
    ]
    return [HEADER, "|---" * HEADER.count(" | ") + "|---|", *lines]


def draw(fits_of: Mapping[Study, Fits]) -> Figure:
    """Return the picture: a row for each study, KKT violation and suboptimality over the seconds of the fit.

    Machines that see all classes are solved by rounds if the bias is exact, and a round has a dual of its own: then
    only the table compares.
    """
    figure = Figure(figsize=(9.0, 2.6 * len(fits_of)), layout="constrained")
    axes: Any = figure.subplots(len(fits_of), len(PANELS), squeeze=False)
    for row, (study, fits) in zip(axes, fits_of.items(), strict=True):
        for ax, y in zip(row, PANELS, strict=True):
            ConvergenceDisplay.from_estimators(fits, y=y, ax=ax, linewidth=1.0)
            ax.set_xscale("log")
        row[0].get_legend().remove()
        row[1].legend(fontsize=8)
        C, gamma = parameters(study.data, study.machine)
        row[0].set_title(f"{study.data}, {study.label}, C = {C:g}, gamma = {gamma}", fontsize=9, loc="left")
    return figure


@click.command()
@click.option("--data", multiple=True, help="Of the papers, or digits; vehicle and satimage unless given.")
@click.option("--machine", default=None, help="ww unless given.")
@click.option("--bias", default=None, help="That of the machine unless given.")
@click.option("--solver", "solvers", multiple=True, help="Those that suit the machine and the bias, unless given.")
@click.option("--tol", default=1e-3)
@click.option("--limit", default=60.0, help="Seconds per fit.")
@click.option("--out", default=None, help="A directory for the table.")
@click.option("--picture", type=click.Path(dir_okay=False, writable=True), default=None, help="A file for the curves.")
def main(data: tuple[str, ...], machine: str | None, bias: str | None, solvers: tuple[str, ...], **asked: Any) -> None:
    """Fit with every solver, print the table and draw the curves."""
    warnings.simplefilter("ignore", ConvergenceWarning)
    studies = STUDIES
    if data or machine or bias:
        studies = tuple(Study(name, machine or "ww", bias or "auto") for name in data or SETS)
    fits = {study: fit_all(study, solvers or study.solvers, asked["tol"], asked["limit"]) for study in studies}
    rows = [row for study in studies for row in rows_of(study, fits[study])]
    write_report("solver_curves", asked["out"], render(rows), rows)
    if asked["picture"] is not None:
        draw(fits).savefig(asked["picture"], dpi=80)


if __name__ == "__main__":
    main()
