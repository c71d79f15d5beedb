"""The all-in-one machines over the plane of C and gamma, beside our one-vs-one, cell by cell.

    python -m benchmarks.plane [--data NAME ...] [--machine NAME ...] [--limit 10] [--clock cpu] [--threads 1]
                               [--C=-2,2,6,10,14] [--gamma=-8,-5,-2,1] [--sklearn] [--cells] [--heat FILE] [--out DIR]

A person who searches C and gamma meets every regime, not the best cell of a paper. Each cell is a fit of every machine
with the same C and gamma on features scaled to [-1, 1], with ``max_time`` as limit; fits shorter than 0.1 s are
repeated. A cell is unfinished if its fit did not converge, and uncertified if it did but without the float64 check.
``--clock cpu`` takes ratios of the process's CPU seconds, which other processes disturb less than wall time.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import numpy as np
from sklearn import svm
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from benchmarks.measure import geometric_mean, surroundings, write_report
from benchmarks.plane_sets import DEFAULT, plane_set
from multimargin import SVC

LEAST_SECONDS = 0.1
LOG2_C = "-2,2,6,10,14"
LOG2_GAMMA = "-8,-5,-2,1"

Row = dict[str, Any]


def timed(fit: Callable[[], Any]) -> dict[str, float]:
    """Return wall and CPU seconds of one fit, the mean of as many as take 0.1 s."""
    repeats, wall, cpu = 0, time.perf_counter(), time.process_time()
    while True:
        fit()
        repeats += 1
        passed = time.perf_counter() - wall
        if passed >= LEAST_SECONDS:
            return {"wall": passed / repeats, "cpu": (time.process_time() - cpu) / repeats}


def measure_cell(X: np.ndarray, y: np.ndarray, machine: str, place: dict[str, Any], tol: float, limit: float) -> Row:
    """Return times and the verdict of one machine in one cell; machine "sklearn" is scikit-learn's one-vs-one."""
    if machine == "sklearn":
        peer = svm.SVC(**place, tol=tol)
        return {**timed(lambda: peer.fit(X, y)), "finished": True, "certified": False}
    clf = SVC(**place, multi_class=machine, max_time=limit, tol=tol)
    times = timed(lambda: clf.fit(X, y))
    found = clf.certificate_
    finished = found.stop_reason == "converged"
    return {
        **times,
        "finished": finished,
        "certified": finished and found.verified and found.kkt_violation <= tol,
        "stop_reason": found.stop_reason,
        "violation": found.kkt_violation,
        "dual": found.dual,
        "relative_gap": found.relative_gap,
        "steps": int(np.sum(clf.n_iter_)),
        "solver": found.solver,
    }


def measure_plane(data: tuple[str, ...], machine: tuple[str, ...], C: list[float], **options: Any) -> list[Row]:
    """Return a row for each set, cell and machine; one-vs-one comes first."""
    machines = ("ovo", *(["sklearn"] if options["peer"] else []), *machine)
    rows = []
    for name in data:
        X, y = plane_set(name, options["size"], options["seed"])
        for place in ({"C": c, "gamma": g} for c in C for g in options["gamma"]):
            for choice in machines:
                found = measure_cell(X, y, choice, place, options["tol"], options["limit"])
                rows.append({"data": name, "machine": choice, **place, **found})
        print(".", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return rows


def with_ratios(rows: list[Row], clock: str) -> list[Row]:
    """Return the rows with ``ratio`` to one-vs-one in the same cell."""
    base = {(row["data"], row["C"], row["gamma"]): row[clock] for row in rows if row["machine"] == "ovo"}
    return [{**row, "ratio": row[clock] / base[row["data"], row["C"], row["gamma"]]} for row in rows]


def summary_line(name: str, machine: str, rows: list[Row], clock: str) -> str:
    worst = max(rows, key=lambda row: row["ratio"])
    missing = sum(not row["finished"] for row in rows)
    uncertified = sum(row["finished"] and not row["certified"] for row in rows) if machine != "sklearn" else "-"
    mean = geometric_mean([row["ratio"] for row in rows])
    mark = "> " if missing else ""
    place = f"C=2^{np.log2(worst['C']):g}, gamma=2^{np.log2(worst['gamma']):g}"
    return (
        f"| {name} | {machine} | {mark}{sum(row[clock] for row in rows):.2f} | {mark}{mean:.2f} | "
        f"{worst['ratio']:.1f} ({place}) | {missing} of {len(rows)} | {uncertified} |"
    )


def render(rows: list[Row], clock: str) -> list[str]:
    """Return the table: a line for each set and machine, and the means over all sets."""
    about = surroundings()
    lines = [
        f"{clock} seconds, {about['threads']} threads, {about['instruction_set']}, load {about['load']:.2f}",
        "",
        f"| data | machine | {clock} s | to ovo, geometric mean | worst | unfinished | uncertified |",
        "|---|---|---|---|---|---|---|",
    ]
    machines = list(dict.fromkeys(row["machine"] for row in rows))
    names = list(dict.fromkeys(row["data"] for row in rows))
    for name in [*names, *(["all"] if len(names) > 1 else [])]:
        for machine in machines:
            part = [row for row in rows if row["machine"] == machine and name in (row["data"], "all")]
            lines.append(summary_line(name, machine, part, clock))
    return lines


def render_cells(rows: list[Row], clock: str) -> list[str]:
    """Return one table for each set and machine: C downwards, gamma to the right; seconds (ratio)."""
    lines = []
    for name, machine in dict.fromkeys((row["data"], row["machine"]) for row in rows):
        part = {(r["C"], r["gamma"]): r for r in rows if (r["data"], r["machine"]) == (name, machine)}
        gammas = sorted({gamma for _, gamma in part})
        lines += ["", f"| {name} {machine} | " + " | ".join(f"gamma=2^{np.log2(g):g}" for g in gammas) + " |"]
        lines.append("|---" * (len(gammas) + 1) + "|")
        for C in sorted({C for C, _ in part}):
            cells = [part[C, gamma] for gamma in gammas]
            texts = [f"{c[clock]:.3f} ({c['ratio']:.1f}){'' if c['finished'] else ' unfinished'}" for c in cells]
            lines.append(f"| C=2^{np.log2(C):g} | " + " | ".join(texts) + " |")
    return lines


def draw_heat(rows: list[Row], path: Path) -> None:
    """Draw log2 of the ratio to one-vs-one over the plane: sets downwards, machines to the right."""
    from matplotlib.figure import Figure

    names = list(dict.fromkeys(row["data"] for row in rows))
    machines = [m for m in dict.fromkeys(row["machine"] for row in rows) if m != "ovo"]
    figure = Figure(figsize=(3 * len(machines) + 1, 2.4 * len(names)), layout="constrained")
    axes = figure.subplots(len(names), len(machines), squeeze=False)
    for i, name in enumerate(names):
        for j, machine in enumerate(machines):
            part = {(r["C"], r["gamma"]): r["ratio"] for r in rows if (r["data"], r["machine"]) == (name, machine)}
            Cs, gammas = sorted({C for C, _ in part}), sorted({gamma for _, gamma in part})
            values = np.log2([[part[C, gamma] for gamma in gammas] for C in Cs])
            image = axes[i, j].imshow(values, origin="lower", vmin=-2, vmax=7, aspect="auto")
            axes[i, j].set_xticks(range(len(gammas)), [f"{np.log2(g):g}" for g in gammas])
            axes[i, j].set_yticks(range(len(Cs)), [f"{np.log2(C):g}" for C in Cs])
            axes[i, j].set_title(f"{name} {machine}")
    figure.supxlabel("log2 gamma")
    figure.supylabel("log2 C")
    figure.colorbar(image, ax=axes, label="log2 of seconds / one-vs-one's")
    figure.savefig(path)


@contextmanager
def limited(threads: int | None) -> Iterator[None]:
    if threads is None:
        yield
    else:
        with threadpool_limits(threads):
            yield


def exponents(_: Any, __: Any, text: str) -> list[float]:
    return [2.0 ** float(part) for part in text.split(",")]


@click.command()
@click.option("--data", multiple=True, default=DEFAULT, help="A set of the papers or drawn-3, -6, -8, -12, -17.")
@click.option("--machine", multiple=True, default=("ww", "cs"))
@click.option("--limit", default=10.0, help="Seconds per fit (max_time).")
@click.option("--tol", default=1e-3)
@click.option("--size", type=int, default=None, help="Rows of each set, instead of its own number.")
@click.option("--seed", default=0, help="Of subsamples and drawn sets.")
@click.option("--C", "C", default=LOG2_C, callback=exponents, help="Base-2 logarithms.")
@click.option("--gamma", default=LOG2_GAMMA, callback=exponents, help="Base-2 logarithms.")
@click.option("--clock", type=click.Choice(["wall", "cpu"]), default="wall")
@click.option("--threads", type=int, default=None, help="Default: those allowed.")
@click.option("--sklearn", "peer", is_flag=True, help="scikit-learn's one-vs-one, too.")
@click.option("--cells", is_flag=True, help="Print every cell.")
@click.option("--heat", type=click.Path(path_type=Path), default=None, help="Heat map of the ratios, an image file.")
@click.option("--out", default=None, help="Directory for Markdown and JSON.")
def main(clock: str, threads: int | None, cells: bool, heat: Path | None, out: str | None, **options: Any) -> None:
    """Measure machines beside one-vs-one over the plane of C and gamma."""
    warnings.simplefilter("ignore", ConvergenceWarning)
    with limited(threads):
        rows = with_ratios(measure_plane(**options), clock)
        table = render(rows, clock) + (render_cells(rows, clock) if cells else [])
        write_report("plane", out, table, rows)
    if heat is not None:
        draw_heat(rows, heat)


if __name__ == "__main__":
    main()
