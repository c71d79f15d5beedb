"""The figures that the solver is held to, each beside its peer in the same run.

    python -m benchmarks.figures large-c      # llw where C is large, beside scikit-learn's letter
    python -m benchmarks.figures solvers      # the default solver beside our own s2do, times and duals
    python -m benchmarks.figures predict      # prediction beside scikit-learn's
    python -m benchmarks.figures threads      # two threads beside one
    python -m benchmarks.figures memory       # peak memory of a fit

Sets and parameters by the protocol of ``multimargin.datasets``.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
import warnings

import click
from sklearn import svm
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from benchmarks.measure import geometric_mean, interleaved, seconds_of
from benchmarks.versus import SETS
from multimargin import SVC, verify
from multimargin.datasets import load_benchmark, parameters

LARGE_C = {"vehicle": (11, -7), "page-blocks": (16, -7), "segment": (15, -4)}


def machine_for(name: str, machine: str, **options: object) -> SVC:
    C, gamma = parameters(name, machine)
    return SVC(multi_class=machine, C=C, gamma=gamma, **options)


def fit_seconds(clf: SVC | svm.SVC, name: str) -> float:
    data = load_benchmark(name)
    begin = time.perf_counter()
    clf.fit(data.X, data.y)
    return time.perf_counter() - begin


@click.group()
def main() -> None:
    """Figures."""
    warnings.simplefilter("ignore", ConvergenceWarning)


@main.command("large-c")
def large_c() -> None:
    """The ill-conditioned regime: llw with C up to 2^16."""
    C, gamma = parameters("letter", "ovo")
    reference = min(fit_seconds(svm.SVC(C=C, gamma=gamma), "letter") for _ in range(2))
    print(f"scikit-learn, letter, one-vs-one: {reference:.2f} s")
    for name, (log_C, log_gamma) in LARGE_C.items():
        clf = SVC(multi_class="llw", C=2.0**log_C, gamma=2.0**log_gamma)
        seconds = fit_seconds(clf, name)
        data = load_benchmark(name)
        truth = verify(clf, data.X, data.y)
        print(
            f"{name} llw (2^{log_C}, 2^{log_gamma}): {seconds:.3f} s, {seconds / reference:.3f} of that; "
            f"{clf.certificate_.n_iter:,} steps, true violation {truth.kkt_violation:.1e}"
        )


@main.command()
@click.option("--data", multiple=True, default=SETS)
@click.option("--machine", multiple=True, default=("ww", "cs"))
@click.option("--limit", default=100.0, help="Seconds per fit.")
def solvers(data: tuple[str, ...], machine: tuple[str, ...], limit: float) -> None:
    """The default solver and s2do: seconds at tol=1e-3, relative difference of the duals at tol=1e-6."""
    ratios = []
    for name in data:
        for choice in machine:
            ours = min(fit_seconds(machine_for(name, choice), name) for _ in range(2))
            slow = machine_for(name, choice, solver="s2do", max_time=limit)
            theirs = fit_seconds(slow, name)
            ended = slow.certificate_.stop_reason == "converged"
            ratios.append(theirs / ours)
            exact = [machine_for(name, choice, solver=s, tol=1e-6, max_time=limit) for s in ("auto", "s2do")]
            for clf in exact:
                fit_seconds(clf, name)
            certificates = [clf.certificate_ for clf in exact]
            both = all(c.stop_reason == "converged" for c in certificates)
            difference = abs(certificates[0].dual - certificates[1].dual) / abs(certificates[0].dual)
            print(
                f"{name:9} {choice}: {ours:.4f} s, s2do {'' if ended else '> '}{theirs:.3f} s, "
                f"{'' if ended else '> '}{theirs / ours:.1f} times; duals at 1e-6 differ by {difference:.1e}"
                f"{'' if both else ' (' + ', '.join(c.stop_reason for c in certificates) + ')'}",
                flush=True,
            )
    print(f"geometric mean: {geometric_mean(ratios):.1f} times faster than s2do")


@main.command()
def predict() -> None:
    """5,000 rows of letter."""
    data = load_benchmark("letter")
    C, gamma = parameters("letter", "ovo")
    ours = machine_for("letter", "ww").fit(data.X, data.y)
    peer = svm.SVC(C=C, gamma=gamma).fit(data.X, data.y)
    rows = data.X_test[:5000]
    times = interleaved(lambda: ours.predict(rows), lambda: peer.predict(rows), 3)
    print(
        f"{len(rows)} rows: ww {times.ours:.4f} s, scikit-learn one-vs-one {times.theirs:.3f} s: "
        f"{times.theirs / times.ours:.1f} times faster"
    )


@main.command()
@click.option("--pairs", default=5)
def threads(pairs: int) -> None:
    """Letter with one and two threads; the best of some pairs."""
    print(f"load {os.getloadavg()[0]:.2f}")
    data = load_benchmark("letter")
    clf = machine_for("letter", "ww")
    best = 0.0
    for _ in range(pairs):
        with threadpool_limits(1):
            one = seconds_of(lambda: clf.fit(data.X, data.y))
        with threadpool_limits(2):
            two = seconds_of(lambda: clf.fit(data.X, data.y))
        best = max(best, one / two)
        print(f"one {one:.2f} s, two {two:.2f} s: {one / two:.2f} times")
    print(f"best: {best:.2f} times")


@main.command()
@click.option("--data", multiple=True, default=("letter", "shuttle"))
@click.option("--machine", multiple=True, default=("ww", "cs"))
def memory(data: tuple[str, ...], machine: tuple[str, ...]) -> None:
    """Peak memory of a fresh process less what it had after loading the data, with cache_size=100."""
    for name in data:
        for choice in machine:
            subprocess.run([sys.executable, "-m", "benchmarks.figures", "one-memory", name, choice], check=True)


@main.command("one-memory", hidden=True)
@click.argument("name")
@click.argument("machine")
def one_memory(name: str, machine: str) -> None:
    data = load_benchmark(name)
    clf = machine_for(name, machine, cache_size=100)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    clf.fit(data.X, data.y)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"{name} {machine}: {(after - before) / 1024:.0f} MiB")


if __name__ == "__main__":
    main()
