"""Scores of a search beside those of separate fits: SVCCV against GridSearchCV over our own SVC, on the same folds.

    python -m benchmarks.selection_agreement [--data NAME ...] [--machine ovo ...] [--rows 1000] [--size 5] [--tol 1e-3]

Every cell must have the same accuracy in every fold, up to rows whose score lies within the tolerance of the boundary:
0.1 % of all rows, or one row. Two solutions that both meet tol may differ at more rows than that; a smaller tol shows
whether they lead to the same optimum.
"""

from __future__ import annotations

import warnings
from typing import Any

import click
import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV

from benchmarks.measure import write_report
from benchmarks.selection import SETS, grid
from multimargin import SVC, SVCCV
from multimargin.datasets import load_benchmark

MACHINES = ("ovo", "ww", "cs", "llw")
ALLOWED = 1e-3  # share of all rows, by cell; one row at least


def compare(name: str, machine: str, n_rows: int, size: int, *, max_time: float, tol: float) -> dict[str, Any]:
    """Return how much the scores of one set and machine differ."""
    data, values = load_benchmark(name), grid(size)
    chosen = np.sort(np.random.default_rng(0).permutation(len(data.y))[:n_rows])
    X, y = data.X[chosen], data.y[chosen]
    ours = SVCCV(Cs=values["C"], gammas=values["gamma"], multi_class=machine, tol=tol, refit=False).fit(X, y)
    own = SVC(multi_class=machine, tol=tol, max_time=max_time)
    apart = GridSearchCV(own, values, refit=False).fit(X, y).cv_results_
    keys = [f"split{k}_test_score" for k in range(5)]
    found = np.array([ours.cv_results_[key] for key in keys])
    differences = np.abs(found - [apart[key] for key in keys]).mean(axis=0)
    return {
        "data": name,
        "machine": machine,
        "rows": len(y),
        "cells": size * size,
        "tol": tol,
        "equal": int((differences == 0).sum()),
        "largest": float(differences.max()),
        "mean": float(differences.mean()),
        "holds": bool(round(differences.max() * len(y)) <= max(1, int(ALLOWED * len(y)))),
    }


def render(rows: list[dict[str, Any]]) -> list[str]:
    lines = ["| data | machine | tol | rows | cells | equal cells | rows otherwise, worst cell | in the mean | holds |"]
    lines.append("|---|---|---|---|---|---|---|---|---|")
    return lines + [
        f"| {row['data']} | {row['machine']} | {row['tol']:g} | {row['rows']} | {row['cells']} | {row['equal']} | "
        f"{round(row['largest'] * row['rows'])} | {row['mean'] * row['rows']:.2f} | {'yes' if row['holds'] else 'NO'} |"
        for row in rows
    ]


@click.command()
@click.option("--data", multiple=True, default=SETS)
@click.option("--machine", multiple=True, default=MACHINES)
@click.option("--rows", default=1000, help="Rows drawn from each set.")
@click.option("--size", default=5, help="Values of C and of gamma.")
@click.option("--max-time", default=60.0, help="Seconds for each separate fit.")
@click.option("--tol", default=1e-3)
@click.option("--out", default=None, help="Directory for Markdown and JSON.")
def main(*, data: tuple[str, ...], machine: tuple[str, ...], rows: int, size: int, out: str | None, **how: Any) -> None:
    """A search's scores against those of separate fits."""
    warnings.simplefilter("ignore", ConvergenceWarning)
    found = []
    for name in data:
        for each in machine:
            found.append(compare(name, each, rows, size, **how))
            click.echo(render(found)[-1])
    write_report("selection_agreement", out, render(found), found)


if __name__ == "__main__":
    main()
