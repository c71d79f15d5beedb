"""DGI11 Table 3 again: iterations and seconds of SMO and S2DO for WW and LLW, beside the numbers printed there.

    python -m experiments.dgi11_table3                            # the paper's smaller sets
    python -m experiments.dgi11_table3 --data abalone --limit 600
    python -m experiments.dgi11_table3 --solver semi-greedy       # one more column
    python -m experiments.dgi11_table3 --splits 10 --out results  # medians of ten splits, as in the paper

(C, gamma) are those of DGI11 Table 1, the tolerance is the paper's 1e-3. The paper's numbers are medians over ten
splits into training and test rows; the accuracies of its Table 2 are multiples of one over 30 percent of the rows (and
its iris has 105 training rows), so 70 percent are drawn here, too, and all training rows where a set has a test part.
A fit that reaches its limit is printed as "> n". Ends with an error if S2DO does not need fewer iterations than SMO.
"""

from __future__ import annotations

import statistics
import sys
import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import click
import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split

from benchmarks.measure import write_report
from multimargin import SVC
from multimargin.datasets import DGI11_PARAMETERS, load_benchmark

TOL = 1e-3
TRAINING_SHARE = 0.7
SETS = ("vehicle", "segment", "glass", "iris", "soybean", "car")
MACHINES = ("ww", "llw")
BOTH = ("smo", "s2do")
# Its accuracies are multiples of 1/93: the paper's soybean is UCI's training file, the first rows here.
FIRST_ROWS = {"soybean": 307}

# DGI11 Table 3: iterations and seconds.
PRINTED: dict[str, dict[tuple[str, str], tuple[float, float]]] = {
    "abalone": {
        ("llw", "smo"): (122_853, 671),
        ("llw", "s2do"): (52_501, 493),
        ("ww", "smo"): (92_705, 361),
        ("ww", "s2do"): (40_514, 319),
    },
    "car": {
        ("llw", "smo"): (130_199, 9.86),
        ("llw", "s2do"): (31_360, 6.37),
        ("ww", "smo"): (15_309, 0.85),
        ("ww", "s2do"): (2_973, 0.73),
    },
    "glass": {
        ("llw", "smo"): (38_030, 1.08),
        ("llw", "s2do"): (5_475, 0.48),
        ("ww", "smo"): (742, 0.048),
        ("ww", "s2do"): (372, 0.037),
    },
    "iris": {
        ("llw", "smo"): (21_145, 0.065),
        ("llw", "s2do"): (1_697, 0.049),
        ("ww", "smo"): (146_387, 0.153),
        ("ww", "s2do"): (554, 0.022),
    },
    "optdigits": {
        ("llw", "smo"): (529_247, 532),
        ("llw", "s2do"): (195_362, 520),
        ("ww", "smo"): (24_102, 59),
        ("ww", "s2do"): (10_419, 77),
    },
    "page-blocks": {
        ("llw", "smo"): (693e6, 34_078),
        ("llw", "s2do"): (381e6, 25_259),
        ("ww", "smo"): (1_037_684, 30),
        ("ww", "s2do"): (93_251, 11),
    },
    "satimage": {
        ("llw", "smo"): (219_895, 191),
        ("llw", "s2do"): (95_643, 276),
        ("ww", "smo"): (59_495, 105),
        ("ww", "s2do"): (22_001, 96),
    },
    "segment": {
        ("llw", "smo"): (55e6, 6_507),
        ("llw", "s2do"): (19e6, 5_161),
        ("ww", "smo"): (206_149, 9.4),
        ("ww", "s2do"): (17_782, 4.7),
    },
    "soybean": {
        ("llw", "smo"): (728_480, 66.3),
        ("llw", "s2do"): (214_096, 51.8),
        ("ww", "smo"): (7_073, 0.56),
        ("ww", "s2do"): (1_627, 0.49),
    },
    "vehicle": {
        ("llw", "smo"): (17e8, 566),
        ("llw", "s2do"): (1_743_176, 163),
        ("ww", "smo"): (1_391_588, 18.1),
        ("ww", "s2do"): (203_840, 6.3),
    },
}
# Probably a misprint: 17*10^8 iterations in 566 s would be 30 times as fast as every other cell; 17*10^6 is meant.
CORRECTED = {("vehicle", "llw", "smo"): 17e6}

# Why a cell can be of another order of magnitude than the paper's.
REASON = "the paper's splits, and how it scales and codes attributes (here [-1, 1], categories by order), are not known"


@dataclass(frozen=True)
class Cell:
    """What a solver needed on a machine: medians over the splits; ``done`` if every fit converged."""

    iterations: float
    seconds: float
    done: bool

    def text(self) -> str:
        return f"{'' if self.done else '> '}{self.iterations:,.0f} ({self.seconds:.3g})"


@dataclass(frozen=True)
class Row:
    """One machine on one data set."""

    data: str
    machine: str
    n_rows: int
    cells: dict[str, Cell]

    @property
    def fewer(self) -> bool | None:
        """Whether S2DO needs fewer iterations than SMO; None where the limit ended what would decide it."""
        smo, s2do = self.cells["smo"], self.cells["s2do"]
        if not s2do.done and s2do.iterations <= smo.iterations:
            return None
        if not smo.done and smo.iterations <= s2do.iterations:
            return None
        return s2do.iterations < smo.iterations

    def printed(self, solver: str) -> tuple[float, float] | None:
        """The paper's iterations, with the misprint mended, and seconds."""
        found = PRINTED.get(self.data, {}).get((self.machine, solver))
        if found is None:
            return None
        return CORRECTED.get((self.data, self.machine, solver), found[0]), found[1]

    def remark(self, solver: str) -> str:
        """How the iterations compare with the paper's: the same order of magnitude, or why not."""
        cell, paper = self.cells[solver], self.printed(solver)
        if paper is None:
            return "not in the paper"
        ratio = cell.iterations / paper[0]
        if not cell.done and ratio < 1:
            return "ended by the limit before the paper's number"
        if 0.1 < ratio < 10:
            return "same order"
        return f"{ratio:.2g} times the paper's: {REASON}"


def training_rows(name: str, splits: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield X and y of each split."""
    benchmark = load_benchmark(name)
    X, y = benchmark.X, benchmark.y
    if benchmark.X_test is not None:
        yield X, y
        return
    first = FIRST_ROWS.get(name, len(y))
    for seed in range(splits):
        kept, _ = train_test_split(np.arange(first), train_size=TRAINING_SHARE, random_state=seed)
        yield X[np.sort(kept)], y[np.sort(kept)]


def measure(name: str, machine: str, solvers: tuple[str, ...], splits: int, limit: float) -> Row:
    """Fit a machine on the splits of a set with every solver and with the default."""
    log_c, log_gamma = DGI11_PARAMETERS[name][machine]
    parts = list(training_rows(name, splits))
    cells = {}
    for solver in (*solvers, "auto"):
        found = []
        for X, y in parts:
            clf = SVC(
                multi_class=machine, C=2.0**log_c, gamma=2.0**log_gamma, tol=TOL, solver=solver, max_time=limit
            ).fit(X, y)
            found.append(clf.certificate_)
        cells[solver] = Cell(
            statistics.median(certificate.n_iter for certificate in found),
            statistics.median(certificate.seconds for certificate in found),
            all(certificate.stop_reason == "converged" for certificate in found),
        )
    return Row(name, machine, len(parts[0][1]), cells)


def render(rows: list[Row], solvers: tuple[str, ...], limit: float) -> list[str]:
    """Return the table, the remarks that it needs, and the verdict, as Markdown."""
    names = [title for solver in solvers for title in (solver, *([f"{solver}, DGI11"] if solver in BOTH else []))]
    header = ["data", "machine", "rows", *names, "default", "S2DO fewer"]
    lines = [
        f"Iterations (seconds), tol {TOL:g}, at most {limit:g} s a fit; of the default solver the seconds alone.",
        "",
        "| " + " | ".join(header) + " |",
        "|" + "---|" * len(header),
    ]
    for row in rows:
        columns = [row.data, row.machine, str(row.n_rows)]
        for solver in solvers:
            columns.append(row.cells[solver].text())
            if solver in BOTH:
                columns.append(_paper(row, solver))
        auto = row.cells["auto"]
        verdict = {True: "yes", False: "NO", None: "open: limit"}[row.fewer]
        lines.append("| " + " | ".join([*columns, f"{'' if auto.done else '> '}{auto.seconds:.3g} s", verdict]) + " |")
    lines += ["", "Iterations beside the paper's (seconds are those of other computers):", ""]
    lines += [f"- {row.data} {row.machine} {solver}: {row.remark(solver)}" for row in rows for solver in BOTH]
    lines += [
        "",
        f"S2DO needs fewer iterations than SMO in {sum(row.fewer is True for row in rows)} of {len(rows)} cases.",
    ]
    return lines


def _paper(row: Row, solver: str) -> str:
    found = row.printed(solver)
    if found is None:
        return "-"
    mended = (row.data, row.machine, solver) in CORRECTED
    original = f" (printed {PRINTED[row.data][row.machine, solver][0]:.2g})" if mended else ""
    return f"{found[0]:,.0f}{original} ({found[1]:g})"


@click.command()
@click.option("--data", multiple=True, default=SETS, type=click.Choice(sorted(DGI11_PARAMETERS)))
@click.option("--machine", multiple=True, default=MACHINES, type=click.Choice(MACHINES))
@click.option("--solver", multiple=True, help="More solvers than smo and s2do.")
@click.option("--splits", default=1, help="Random splits to take medians of.")
@click.option("--limit", default=300.0, help="Seconds per fit.")
@click.option("--out", default=None, help="Directory for the table as .md and .json.")
def main(**chosen: Any) -> None:
    """Measure, print beside the paper's numbers, and fail if S2DO is not ahead."""
    warnings.simplefilter("ignore", ConvergenceWarning)
    solvers = (*BOTH, *(solver for solver in chosen["solver"] if solver not in BOTH))
    rows = []
    for name in chosen["data"]:
        for machine in chosen["machine"]:
            rows.append(measure(name, machine, solvers, chosen["splits"], chosen["limit"]))
            print(f"{name} {machine} done", file=sys.stderr, flush=True)
    write_report("dgi11_table3", chosen["out"], render(rows, solvers, chosen["limit"]), [asdict(row) for row in rows])
    sys.exit(1 if any(row.fewer is False for row in rows) else 0)


if __name__ == "__main__":
    main()
