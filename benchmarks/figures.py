"""Performance figures that must hold, each compared with a peer in the same run.

    python -m benchmarks.figures large-c      # llw where C is large, beside scikit-learn's letter
    python -m benchmarks.figures solvers      # the default solver beside our own s2do, times and duals
    python -m benchmarks.figures predict      # prediction beside scikit-learn's
    python -m benchmarks.figures threads      # two threads beside one
    python -m benchmarks.figures memory       # peak memory of a fit

and the same of one-vs-one:

    python -m benchmarks.figures predict-ovo  # voting and the DAG beside scikit-learn's, all rows and one row
    python -m benchmarks.figures threads-ovo  # two threads beside one: the same bits, and the times
    python -m benchmarks.figures memory-ovo   # peak memory of a fit on shuttle

Sets and parameters by the protocol of ``multimargin.datasets``.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
import warnings
from functools import partial
from typing import Any

import click
import numpy as np
from sklearn import svm
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from benchmarks.measure import geometric_mean, in_turn, interleaved, load, seconds_of
from benchmarks.one_vs_one import Case
from benchmarks.versus import SETS
from multimargin import SVC, verify
from multimargin.datasets import Benchmark, load_benchmark, parameters

LARGE_C = {"vehicle": (11, -7), "page-blocks": (16, -7), "segment": (15, -4)}


def machine_for(name: str, machine: str, **options: Any) -> SVC:
    C, gamma = parameters(name, machine)
    return SVC(multi_class=machine, C=C, gamma=gamma, **options)


def fit_seconds(clf: SVC | svm.SVC, name: str) -> float:
    data = load_benchmark(name)
    begin = time.perf_counter()
    clf.fit(data.X, data.y)
    return time.perf_counter() - begin


def held_out(data: Benchmark) -> np.ndarray:
    """The test rows, or the training rows where there are none."""
    return data.X if data.X_test is None else data.X_test


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
    rows = held_out(data)[:5000]
    times = interleaved(lambda: ours.predict(rows), lambda: peer.predict(rows), 3)
    print(
        f"{len(rows)} rows: ww {times.ours:.4f} s, scikit-learn one-vs-one {times.theirs:.3f} s: "
        f"{times.theirs / times.ours:.1f} times faster"
    )


@main.command()
@click.option("--pairs", default=5)
def threads(pairs: int) -> None:
    """Letter with one and two threads; the best of some pairs."""
    print(f"load {load():.2f}")
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


@main.command("memory-ovo")
@click.option("--data", multiple=True, default=("shuttle",))
@click.pass_context
def memory_ovo(context: click.Context, data: tuple[str, ...]) -> None:
    """The same of one-vs-one."""
    context.invoke(memory, data=data, machine=("ovo",))


@main.command("one-memory", hidden=True)
@click.argument("name")
@click.argument("machine")
def one_memory(name: str, machine: str) -> None:
    data = load_benchmark(name)
    clf = machine_for(name, machine, cache_size=100)
    import resource  # Windows has none

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    clf.fit(data.X, data.y)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"{name} {machine}: {(after - before) / 1024:.0f} MiB")


@main.command("predict-ovo")
@click.option("--data", multiple=True, default=("letter", "satimage", "ijcnn1"))
@click.option("--rows", default=10_000, help="At most this many test rows.")
def predict_ovo(data: tuple[str, ...], rows: int) -> None:
    """Test rows (training rows where there are none) by votes, by the DAG and by scikit-learn; then one row."""
    for name in data:
        benchmark, case = load_benchmark(name), next(Case.of(name))
        given: dict[str, Any] = {"C": case.C, "gamma": case.gamma}
        fits = {
            "votes": SVC(**given),
            "dag": SVC(**given, multi_class="dag"),
            "scikit-learn": svm.SVC(**given),
        }
        for clf in fits.values():
            clf.fit(benchmark.X, benchmark.y)
        points = held_out(benchmark)[:rows]
        times = in_turn(_predictions(fits, points), 3)
        faster = {who: times["scikit-learn"] / times[who] for who in ("votes", "dag")}
        classes = {who: clf.predict(points) for who, clf in fits.items()}
        differ = {who: int(np.sum(classes[who] != classes["scikit-learn"])) for who in ("votes", "dag")}
        print(
            f"{name}, {len(points)} rows, {len(fits['votes'].support_)} SVs: votes {times['votes']:.4f} s, dag "
            f"{times['dag']:.4f} s, scikit-learn {times['scikit-learn']:.4f} s: {faster['votes']:.1f} and "
            f"{faster['dag']:.1f} times faster; not as scikit-learn: votes {differ['votes']}, dag {differ['dag']}"
        )
        row = np.ascontiguousarray(points[:1])
        model = fits["votes"]._model
        one = in_turn({"model": partial(model.codes, row), **_predictions(fits, row)}, 3)
        print(
            f"{name}, one row: model {1e6 * one['model']:.1f} us, predict {1e6 * one['votes']:.1f} us, dag "
            f"{1e6 * one['dag']:.1f} us, scikit-learn {1e6 * one['scikit-learn']:.1f} us: "
            f"{one['scikit-learn'] / one['votes']:.1f} times faster",
            flush=True,
        )


def _predictions(fits: dict[str, Any], points: np.ndarray) -> dict[str, Any]:
    return {name: partial(clf.predict, points) for name, clf in fits.items()}


@main.command("threads-ovo")
@click.option("--data", multiple=True, default=("letter", "shuttle"))
@click.option("--pairs", default=3)
def threads_ovo(data: tuple[str, ...], pairs: int) -> None:
    """Fits with one and two threads: every fitted number has the same bits; medians of some pairs of measurements."""
    print(f"load {load():.2f}")
    broken = 0
    for name in data:
        benchmark = load_benchmark(name)
        clfs = {count: machine_for(name, "ovo") for count in (1, 2)}
        times: dict[int, list[float]] = {1: [], 2: []}
        for _ in range(pairs):
            for count, clf in clfs.items():
                with threadpool_limits(count):
                    times[count].append(seconds_of(partial(clf.fit, benchmark.X, benchmark.y)))
        one, two = (statistics.median(times[count]) for count in (1, 2))
        different = differing_numbers(clfs[1], clfs[2])
        broken += bool(different)
        print(
            f"{name}: one {one:.3f} s, two {two:.3f} s: {one / two:.2f} times; "
            f"{'DIFFERENT: ' + ', '.join(different) if different else 'the same bits'}",
            flush=True,
        )
    sys.exit(1 if broken else 0)


def differing_numbers(one: SVC, two: SVC) -> list[str]:
    """Return the names of fitted numbers of one-vs-one whose bits differ; times do not count."""
    names = ("classes_", "support_", "support_vectors_", "n_support_", "dual_coef_", "intercept_", "n_iter_")
    different = [name for name in names if _bits(getattr(one, name)) != _bits(getattr(two, name))]
    for name in ("primal", "dual", "kkt_violation", "stop_reason", "n_iter"):
        mine, other = ([getattr(part, name) for part in clf.certificate_.parts] for clf in (one, two))
        if _bits(mine) != _bits(other):
            different.append(f"certificate_.{name}")
    return different


def _bits(values: Any) -> tuple[Any, ...]:
    array = np.ascontiguousarray(values)
    return array.dtype.str, array.shape, array.tobytes()


if __name__ == "__main__":
    main()
