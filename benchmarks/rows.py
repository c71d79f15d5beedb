"""How the time of a fit grows with the number of rows.

    python -m benchmarks.rows [--rows 10000 ...] [--out DIR]

One-vs-one with the rbf kernel on two generated data sets in the plane: classes that hardly overlap (a chessboard), and
classes that overlap, where the number of support vectors grows with the rows. The times are
processor seconds of one fit, summed over all threads, so that other work on the computer hardly counts.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import click
import numpy as np

from benchmarks.measure import write_report
from multimargin import SVC, verify
from multimargin.datasets import banana, chessboard

SIZES = (10_000, 50_000, 100_000, 500_000)


@dataclass(frozen=True)
class Case:
    """A generated data set, the parameters of its fit, and the largest size at which it is fitted."""

    name: str
    make: Callable[[int], tuple[np.ndarray, np.ndarray]]
    C: float
    gamma: float
    largest: int


CASES = (
    Case("chessboard", lambda n: chessboard(n, n_classes=3, random_state=0), 100.0, 10.0, 500_000),
    Case("banana, noise 0.3", lambda n: banana(n, n_classes=4, noise=0.3, random_state=0), 1.0, 1.0, 100_000),
)


def measure(case: Case, size: int) -> dict[str, Any]:
    """Return one row of the table."""
    X, y = case.make(size)
    start = time.process_time()
    clf = SVC(C=case.C, gamma=case.gamma).fit(X, y)
    seconds = time.process_time() - start
    return {
        "data": case.name,
        "rows": size,
        "seconds": seconds,
        "support_vectors": len(clf.support_),
        "violation": verify(clf, X, y).kkt_violation,
        "stop_reason": clf.certificate_.stop_reason,
    }


def render(rows: list[dict[str, Any]]) -> list[str]:
    lines = ["| data | rows | processor s | support vectors | true violation |", "|---|---|---|---|---|"]
    return lines + [
        f"| {row['data']} | {row['rows']:,} | {row['seconds']:.2f} | {row['support_vectors']:,} | "
        f"{row['violation']:.1e} |"
        for row in rows
    ]


@click.command()
@click.option("--rows", "sizes", multiple=True, type=int, default=SIZES, show_default=True)
@click.option("--out", default=None, help="Directory for rows.md and rows.json.")
def main(sizes: tuple[int, ...], out: str | None) -> None:
    """Fit data sets of growing size."""
    rows = [measure(case, size) for case in CASES for size in sizes if size <= case.largest]
    write_report("rows", out, render(rows), rows)


if __name__ == "__main__":
    main()
