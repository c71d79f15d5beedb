"""Problems on which solvers of the literature are very slow: large C with a smooth kernel, and very many free
variables.

    python -m benchmarks.hard                      # all of them
    python -m benchmarks.hard --data page-blocks   # those of one data set
    python -m benchmarks.hard --limit 5            # the hardest ones stopped: delay of the stop, certificates

The unit is scikit-learn's one-vs-one fit of letter (C=2^4, gamma=2^2) in the same run. Every case must end converged,
with a float64 KKT violation below tol found by ``verify``, which recomputes it from the model alone.
"""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from typing import Any

import click
from sklearn import svm
from sklearn.exceptions import ConvergenceWarning

from benchmarks.measure import seconds_once, surroundings, write_report
from multimargin import SVC, verify
from multimargin.datasets import load_benchmark, parameters

TOL = 1e-3


@dataclass(frozen=True)
class Case:
    """A machine on a data set with C=2^log_c, gamma=2^log_gamma; its time limit, in units of the reference."""

    data: str
    machine: str
    log_c: int
    log_gamma: int
    allowed: float

    @property
    def name(self) -> str:
        return f"{self.machine} {self.data} (2^{self.log_c}, 2^{self.log_gamma})"

    def estimator(self, **options: Any) -> SVC:
        bias = {"bias": "none"} if self.machine == "ova" else {}
        return SVC(multi_class=self.machine, C=2.0**self.log_c, gamma=2.0**self.log_gamma, tol=TOL, **bias, **options)


CASES = (
    Case("page-blocks", "llw", 16, -7, 0.2),
    Case("vehicle", "llw", 11, -7, 0.2),
    Case("segment", "llw", 15, -4, 0.6),
    Case("page-blocks", "ww", 8, -4, 0.6),
    Case("page-blocks", "cs", 11, -5, 0.6),
    Case("segment", "cs", 12, -9, 0.6),
    Case("vehicle", "cs", 10, -7, 0.6),
    Case("page-blocks", "ova", 20, -9, 0.6),
    Case("iris", "ova", 18, -12, 0.6),
    Case("abalone", "llw", 0, 0, 1.0),
    Case("abalone", "cs", 0, 0, 1.0),
    Case("letter", "llw", 1, 2, 1.6),
)


def reference_seconds(rounds: int) -> float:
    """Return scikit-learn's time for letter, the fastest of some."""
    C, gamma = parameters("letter", "ovo")
    data = load_benchmark("letter")
    return min(seconds_once(lambda: svm.SVC(C=C, gamma=gamma).fit(data.X, data.y)) for _ in range(rounds))


def measure(case: Case, rounds: int, limit: float | None, reference: float) -> dict[str, Any]:
    """Return one row of the table: the fastest of some fits."""
    data = load_benchmark(case.data)
    seconds = []
    for _ in range(rounds):
        clf = case.estimator(max_time=limit)
        begin = time.perf_counter()
        clf.fit(data.X, data.y)
        seconds.append(time.perf_counter() - begin)
    certificate, truth = clf.certificate_, verify(clf, data.X, data.y)
    best = min(seconds)
    return {
        "case": case.name,
        "seconds": best,
        "share": best / reference,
        "allowed": case.allowed,
        "steps": certificate.n_iter,
        "stop": certificate.stop_reason,
        "verified": certificate.verified,
        "violation": truth.kkt_violation,
        "held": certificate.stop_reason == "converged"
        and truth.kkt_violation <= TOL
        and best / reference <= case.allowed,
    }


def as_line(row: dict[str, Any]) -> str:
    stop = row["stop"] + ("" if row["verified"] else ", not verified")
    return (
        f"| {row['case']} | {row['seconds']:.3f} | {row['share']:.3f} | {row['allowed']} | {row['steps']:,} | {stop} "
        f"| {row['violation']:.1e} | {'ok' if row['held'] else 'NO'} |"
    )


@click.command()
@click.option("--data", multiple=True, help="Only these data sets.")
@click.option("--machine", multiple=True, help="Only these machines.")
@click.option("--rounds", default=1, help="Fits per case; the fastest counts.")
@click.option("--limit", type=float, default=None, help="max_time of each fit.")
@click.option("--out", default=None, help="Directory for hard.md and hard.json.")
def main(data: tuple[str, ...], machine: tuple[str, ...], rounds: int, limit: float | None, out: str | None) -> None:
    """Time the hard cases in units of scikit-learn's letter."""
    warnings.simplefilter("ignore", ConvergenceWarning)
    reference = reference_seconds(2)
    where = surroundings()
    table = [
        f"scikit-learn {where['scikit-learn']}, letter, one-vs-one: T = {reference:.2f} s; {where['threads']} threads, "
        f"{where['instruction_set']}, load {where['load']:.2f}",
        "",
        "| case | seconds | of T | allowed | steps | stop | true violation |  |",
        "|---|---|---|---|---|---|---|---|",
    ]
    chosen = [c for c in CASES if (not data or c.data in data) and (not machine or c.machine in machine)]
    rows = []
    for case in chosen:
        rows.append(measure(case, rounds, limit, reference))
        click.echo(as_line(rows[-1]), err=True)
    write_report("hard", out, table + [as_line(row) for row in rows], rows)


if __name__ == "__main__":
    main()
