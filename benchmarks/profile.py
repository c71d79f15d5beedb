"""Where the time of a fit goes.

    python -m benchmarks.profile [--data NAME ...] [--machine NAME ...] [--solver auto] [--threads N] [--out DIR]

Wall seconds of one fit, split into: kernel values (tiles, blocks, a stored matrix), scores (adding them up), inner
(steps within blocks), selection (choosing and gathering rounds and blocks), check (the float64 check of all examples),
other (what the core does besides) and Python (validation, certificate, attributes). The fastest of several fits.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import click
from sklearn.exceptions import ConvergenceWarning

from benchmarks.measure import surroundings, write_report
from multimargin import SVC
from multimargin.datasets import load_benchmark, parameters
from multimargin.fitting import machine as fitting
from multimargin.solvers.core import Solution

SETS = ("vehicle", "segment", "dna", "satimage", "letter", "shuttle")
PHASES = ("kernel", "scores", "inner", "selection", "check")


def profile(name: str, machine: str, solver: str, repeats: int) -> dict[str, Any]:
    """Return one row of the table: the fastest of some fits."""
    data = load_benchmark(name)
    C, gamma = parameters(name, machine)
    solutions: list[Solution] = []
    solve = fitting.solve_by_bias_rule

    def remember(*args: Any) -> Solution:
        solutions.append(solve(*args))
        return solutions[-1]

    best: dict[str, Any] = {"seconds": float("inf")}
    fitting.solve_by_bias_rule = remember  # the report of a solve is not kept by the estimator
    try:
        for _ in range(repeats):
            begin = time.perf_counter()
            SVC(multi_class=machine, C=C, gamma=gamma, solver=solver, max_time=100.0).fit(data.X, data.y)
            seconds = time.perf_counter() - begin
            report = solutions[-1].report
            if seconds < best["seconds"]:
                best = {"data": name, "machine": machine, "seconds": seconds, **report.phases}
                best["other"] = report.seconds - sum(report.phases[phase] for phase in PHASES)
                best["python"] = seconds - report.seconds
                best["steps"] = report.n_iter
                best["float64"] = report.float64_rows
    finally:
        fitting.solve_by_bias_rule = solve
    return best


def render(rows: list[dict[str, Any]]) -> list[str]:
    about = surroundings()
    parts = (*PHASES, "other", "python")
    lines = [
        f"milliseconds; {about['threads']} threads, {about['instruction_set']}, load {about['load']:.2f}",
        "",
        f"| data | machine | all | {' | '.join(parts)} | rounds | blocks | steps | us per step | rows |",
        "|---" * (len(parts) + 8) + "|",
    ]
    for row in rows:
        times = " | ".join(f"{1e3 * row[part]:.1f}" for part in parts)
        lines.append(
            f"| {row['data']} | {row['machine']} | {1e3 * row['seconds']:.1f} | {times} | {row['rounds']} | "
            f"{row['blocks']} | {row['steps']:,} | {1e6 * row['inner'] / max(row['steps'], 1):.2f} | "
            f"{'float64' if row['float64'] else 'float32'} |"
        )
    return lines


@click.command()
@click.option("--data", multiple=True, default=SETS)
@click.option("--machine", multiple=True, default=("ww", "cs"))
@click.option("--solver", default="auto")
@click.option("--repeats", default=3)
@click.option("--out", default=None, help="Directory for Markdown and JSON.")
def main(data: tuple[str, ...], machine: tuple[str, ...], solver: str, repeats: int, out: str | None) -> None:
    """Show where a fit's time goes."""
    warnings.simplefilter("ignore", ConvergenceWarning)
    rows = [profile(name, choice, solver, repeats) for name in data for choice in machine]
    write_report("profile", out, render(rows), rows)


if __name__ == "__main__":
    main()
