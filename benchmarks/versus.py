"""Our fits against the peers', in one run.

    python -m benchmarks.versus all-in-one [--data NAME ...] [--machine NAME ...] [--rounds 3] [--out DIR]
    python -m benchmarks.versus ovo [--data NAME ...] [--rounds 3] [--limit S] [--large] [--intelex] [--out DIR]
    python -m benchmarks.versus ovo --small
    python -m benchmarks.versus selection [--data NAME ...] [--machine NAME] [--size K] [--rounds 1] [--out DIR]
    python -m benchmarks.versus linear [--data NAME ...] [--machine NAME ...] [--C 1 ...] [--limit S] [--out DIR]

``ovo`` is one-vs-one on both sides: see ``benchmarks.one_vs_one``. ``all-in-one`` is every machine of ours against
scikit-learn's one-vs-one: interleaved wall times of both fits, each measurement repeated to at least 0.3 s, medians.
Both train by the protocol of ``multimargin.datasets``: each machine with its own published (C, gamma). Beside the
times: support vectors, the true KKT violation (``verify``), steps, and the time of K(X, SV) computed once by our own
tiles.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any

import click
import numpy as np
from sklearn import svm
from sklearn.exceptions import ConvergenceWarning

from benchmarks.linear import linear
from benchmarks.measure import geometric_mean, interleaved, seconds_of, surroundings, write_report
from benchmarks.one_vs_one import ovo
from benchmarks.selection import selection
from multimargin import SVC, verify
from multimargin.base.resources import n_threads
from multimargin.datasets import load_benchmark, parameters
from multimargin.kernels.store import KernelStore

SETS = ("vehicle", "segment", "dna", "satimage", "letter", "shuttle")


def measure(name: str, machine: str, solver: str, rounds: int, limit: float) -> dict[str, Any]:
    """Return one row of the table."""
    data = load_benchmark(name)
    C, gamma = parameters(name, machine)
    peer_C, peer_gamma = parameters(name, "ovo")
    ours = SVC(multi_class=machine, C=C, gamma=gamma, solver=solver, max_time=limit)
    peer = svm.SVC(C=peer_C, gamma=peer_gamma)
    times = interleaved(lambda: ours.fit(data.X, data.y), lambda: peer.fit(data.X, data.y), rounds)
    truth = verify(ours, data.X, data.y)
    store = KernelStore(ours.support_vectors_, ours._spec.kernel)
    ones = np.ones((len(ours.support_), 1))
    bound = seconds_of(lambda: store.scores(np.arange(len(ones)), ones, data.X, n_threads()))
    return {
        "data": name,
        "machine": machine,
        "ours": times.ours,
        "scikit_learn": times.theirs,
        "ratio": times.ratio,
        "kernel_once": bound,
        "support_vectors": len(ours.support_),
        "steps": int(ours.n_iter_[0]),
        "violation": truth.kkt_violation,
        "optimal": truth.optimal,
        "stop_reason": ours.certificate_.stop_reason,
    }


def render(rows: list[dict[str, Any]]) -> list[str]:
    about = surroundings()
    lines = [
        f"scikit-learn {about['scikit-learn']} one-vs-one, {about['threads']} threads, {about['instruction_set']}, "
        f"load {about['load']:.2f}",
        "",
        "| data | machine | ours s | scikit-learn s | ours / theirs | K(X, SV) s | SVs | steps | true violation | |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {row['data']} | {row['machine']} | {row['ours']:.4f} | {row['scikit_learn']:.4f} | "
        f"{row['ratio']:.3f} | {row['kernel_once']:.4f} | {row['support_vectors']} | {row['steps']:,} | "
        f"{row['violation']:.1e} | {'ok' if row['optimal'] else row['stop_reason']} |"
        for row in rows
    ]
    for machine in dict.fromkeys(row["machine"] for row in rows):
        mean = geometric_mean([row["ratio"] for row in rows if row["machine"] == machine])
        lines.append(f"\n{machine}: geometric mean of ours / scikit-learn {mean:.3f} ({1 / mean:.2f} times faster)")
    return lines


@click.group()
def main() -> None:
    """Compare with peers."""


@main.command("all-in-one")
@click.option("--data", multiple=True, default=SETS)
@click.option("--machine", multiple=True, default=("ww", "cs"))
@click.option("--solver", default="auto")
@click.option("--rounds", default=3)
@click.option("--limit", default=60.0, help="Seconds per fit.")
@click.option("--out", default=None, help="Directory for Markdown and JSON.")
def all_in_one(
    data: tuple[str, ...], machine: tuple[str, ...], solver: str, rounds: int, limit: float, out: str
) -> None:
    """Fits of all-in-one machines beside scikit-learn's one-vs-one."""
    warnings.simplefilter("ignore", ConvergenceWarning)
    rows = []
    for name in data:
        for choice in machine:
            rows.append(measure(name, choice, solver, rounds, limit))
            print(".", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    write_report("all-in-one", out, render(rows), rows)


main.add_command(ovo)
main.add_command(selection)
main.add_command(linear)

if __name__ == "__main__":
    main()
