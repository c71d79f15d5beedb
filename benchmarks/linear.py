"""LinearSVC against LIBLINEAR (scikit-learn's LinearSVC): time to the same relative duality gap.

    python -m benchmarks.versus linear [--data NAME ...] [--machine ova --machine cs] [--C 1 ...] [--limit 120]
    python -m benchmarks.versus linear --path [--data adult]

The same machine on both sides: "ova" is hinge loss with the intercept regularised, "cs" is Crammer-Singer without one.
Each side takes the loosest tol of a grid that reaches the gap: its primal objective against the best dual known, for
both (LIBLINEAR does not return its dual). LIBLINEAR runs in a process of its own, which is ended at the limit.
"""

from __future__ import annotations

import multiprocessing
import time
import warnings
from typing import Any

import click
import numpy as np
from scipy import sparse
from sklearn import svm
from sklearn.base import clone

from benchmarks.measure import surroundings, write_report
from multimargin import LinearSVC, svm_path
from multimargin.datasets import load_benchmark

SETS = ("adult", "web", "letter", "satimage")
SPARSE = ("adult", "web")
GAPS = (1e-3, 1e-6)
TOLS = tuple(10.0**-k for k in np.arange(0, 6.5, 0.5))
BEST_TOL = 1e-5
# How many times faster than LIBLINEAR a fit must be, by C.
WANTED = {1.0: 1.0, 32.0: 5.0, 256.0: 20.0}


def data_of(name: str) -> tuple[Any, np.ndarray]:
    """Return rows, as CSR with 32-bit indices where they are sparse, and labels."""
    data = load_benchmark(name)
    X: Any = sparse.csr_matrix(data.X) if name in SPARSE else np.ascontiguousarray(data.X, dtype=np.float64)
    if name in SPARSE:
        X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return X, np.asarray(data.y)


def ours(machine: str, C: float, tol: float) -> LinearSVC:
    return LinearSVC(multi_class=machine, bias="regularized" if machine == "ova" else "none", C=C, tol=tol)


def theirs(machine: str, C: float, tol: float) -> svm.LinearSVC:
    if machine == "ova":
        return svm.LinearSVC(loss="hinge", dual=True, C=C, tol=tol, max_iter=10**8, random_state=0)
    return svm.LinearSVC(
        multi_class="crammer_singer", fit_intercept=False, C=C, tol=tol, max_iter=10**8, random_state=0
    )


def primal(X: Any, y: np.ndarray, model: Any, machine: str, C: float) -> float:
    """Return the objective of weights; of two classes one function."""
    classes = np.unique(y)
    scores = np.asarray(X @ model.coef_.T) + model.intercept_
    norm = 0.5 * float((model.coef_**2).sum() + (np.asarray(model.intercept_) ** 2).sum())
    if machine == "ova":
        signs = (
            np.where(y == classes[1], 1.0, -1.0)[:, None]
            if len(classes) == 2
            else np.where(y[:, None] == classes, 1.0, -1.0)
        )
        return norm + C * float(np.maximum(0.0, 1.0 - signs * scores).sum())
    if len(classes) == 2:
        raise ValueError("Crammer-Singer of two classes is left out here; choose a set with more.")
    own = np.searchsorted(classes, y)
    others = 1.0 + scores - scores[np.arange(len(y)), own][:, None]
    others[np.arange(len(y)), own] = 0.0
    return norm + C * float(others.max(axis=1).sum())


def _fit(connection: Any, X: Any, y: np.ndarray, machine: str, C: float, tol: float) -> None:
    warnings.simplefilter("ignore")
    begin = time.perf_counter()
    model = theirs(machine, C, tol).fit(X, y)
    seconds = time.perf_counter() - begin
    connection.send((seconds, primal(X, y, model, machine, C)))


def time_liblinear(X: Any, y: np.ndarray, machine: str, C: float, tol: float, limit: float) -> tuple[float, float]:
    """Return seconds and the objective reached; infinite beyond the limit."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=_fit, args=(sender, X, y, machine, C, tol))
    child.start()
    found: tuple[float, float] = receiver.recv() if receiver.poll(limit) else (np.inf, np.inf)
    child.terminate()
    child.join()
    return found


def measure(name: str, machine: str, C: float, limit: float) -> list[dict[str, Any]]:
    """Return the rows of one set, machine and C, one for each gap."""
    X, y = data_of(name)
    halves = 2.0 if machine == "ova" and len(np.unique(y)) == 2 else 1.0  # two classes: two equal functions
    best = ours(machine, C, BEST_TOL).fit(X, y).certificate_.dual / halves
    rows = []
    mine, peer = iter(TOLS), iter(TOLS)
    seconds = gap_reached = their_seconds = np.inf
    their_gap = np.inf
    for gap in GAPS:
        while gap_reached > gap:
            tol = next(mine, None)
            if tol is None:
                seconds = np.inf
                break
            model = ours(machine, C, tol)
            begin = time.perf_counter()
            model.fit(X, y)
            seconds, objective = time.perf_counter() - begin, primal(X, y, model, machine, C)
            gap_reached = (objective - best) / objective
        while their_gap > gap:
            tol = next(peer, None)
            if tol is None:
                their_seconds = np.inf
                break
            their_seconds, objective = time_liblinear(X, y, machine, C, tol, limit)
            their_gap = (objective - best) / objective if np.isfinite(objective) else np.inf
            if not np.isfinite(their_seconds):
                peer = iter(())
        ratio = their_seconds / seconds
        rows.append(
            {
                "data": name,
                "machine": machine,
                "C": C,
                "gap": gap,
                "ours": seconds,
                "liblinear": their_seconds,
                "ratio": ratio,
                "wanted": WANTED.get(C, 1.0),
                "solver": model.certificate_.solver,
                "iterations": int(model.certificate_.n_iter),
            }
        )
        print(rows[-1], flush=True)
    return rows


def render(rows: list[dict[str, Any]], limit: float) -> list[str]:
    about = surroundings()
    lines = [
        f"scikit-learn {about['scikit-learn']} LinearSVC (LIBLINEAR), {about['threads']} threads, "
        f"load {about['load']:.2f}; LIBLINEAR is ended after {limit:g} s",
        "",
        "| data | machine | C | gap | ours s | LIBLINEAR s | times faster | wanted | |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        head = f"| {row['data']} | {row['machine']} | {row['C']:g} | {row['gap']:g} | {row['ours']:.3f} |"
        reached = np.isfinite(row["liblinear"])
        times = f" {row['liblinear']:.3f} | {row['ratio']:.1f}" if reached else " not reached | -"
        good = not reached or row["ratio"] >= row["wanted"]
        lines.append(f"{head}{times} | {row['wanted']:g} | {'ok' if good else 'NO'} |")
    return lines


def measure_path(name: str, points: int, rounds: int) -> list[str]:
    """Return lines about a path along C beside separate fits at the same values; medians of wall times."""
    X, y = data_of(name)
    Cs = 2.0 ** np.linspace(-8, 8, points)
    estimator = LinearSVC()
    separate = [clone(estimator).set_params(C=C) for C in Cs]
    times: list[tuple[float, float]] = []
    for _ in range(rounds):
        begin = time.perf_counter()
        path = svm_path(X, y, Cs=Cs, estimator=estimator)
        middle = time.perf_counter()
        for model in separate:
            model.fit(X, y)
        times.append((middle - begin, time.perf_counter() - middle))
    ours, cold = (float(np.median(column)) for column in zip(*times, strict=True))
    duals = np.array([[p.dual, m.certificate_.dual] for p, m in zip(path.certificates, separate, strict=True)])
    apart = float(np.max(np.abs(duals[:, 0] - duals[:, 1]) / duals[:, 1]))
    steps = f"{int(np.sum(path.n_iter)):,} steps against {sum(int(m.certificate_.n_iter) for m in separate):,}"
    return [
        f"{name}, {points} values of C from 2^-8 to 2^8, bias='exact', tol=1e-3: path {ours:.2f} s, separate fits "
        f"{cold:.2f} s: {ours / cold:.3f} of them (wanted: 0.333), {steps}; duals agree to {apart:.1e}",
    ]


@click.command("linear")
@click.option("--data", multiple=True, default=SETS)
@click.option("--machine", multiple=True, default=("ova", "cs"))
@click.option("--C", "Cs", multiple=True, type=float, default=tuple(WANTED))
@click.option("--limit", default=120.0, help="Seconds per fit of LIBLINEAR.")
@click.option("--path", is_flag=True, help="A path along C beside separate fits of ours; by default on adult.")
@click.option("--out", default=None, help="Directory for Markdown and JSON.")
def linear(
    data: tuple[str, ...], machine: tuple[str, ...], Cs: tuple[float, ...], limit: float, path: bool, out: str
) -> None:
    """Time to a duality gap beside LIBLINEAR's."""
    if path:
        for name in data if data != SETS else ("adult",):
            print("\n".join(measure_path(name, 17, 3)), flush=True)
        return
    rows = []
    for name in data:
        for choice in machine:
            if choice == "cs" and name in SPARSE:  # two classes: the same machine as ova
                continue
            for C in Cs:
                rows += measure(name, choice, C, limit)
    write_report("linear", out, render(rows, limit), rows)
