"""One pass over a stream: OnlineSVC beside SGD on random features, and an SVC that is refitted again and again.

    python -m benchmarks.online
    python -m benchmarks.online --data letter --machine ww --rows 5000
    python -m benchmarks.online --long 200000          # memory over a long stream

Rows come in pieces of 1,000. SGDClassifier (hinge) learns each piece on an RBFSampler of 1,000 components with the same
gamma; SVC, ours and scikit-learn's (one-vs-one), is fitted on all rows so far after each piece, with the same
parameters. Seconds are those of learning alone, on as many threads as each takes. A pass is made again for five
seconds, five times at most, each with another order of the rows: medians of the seconds, means of the accuracies.
(C, gamma): experiments/streams.py.
Ends with an error if the accuracy is not above SGD's, or the pass not ten times as fast as scikit-learn's fits: those
are what a user without this package would do instead. Our own fits are printed beside them as information. They are so
fast on sets of this size that a pass, which answers after each row, cannot be ten times as fast.
"""

from __future__ import annotations

import resource
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

import click
import numpy as np
from sklearn import svm
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import SGDClassifier
from sklearn.pipeline import make_pipeline

from benchmarks.measure import surroundings, write_report
from experiments.streams import MADE, StreamData, load_stream
from multimargin import SVC, OnlineSVC

SETS = ("banana", "letter", MADE)
PIECE = 1_000
COMPONENTS = 1_000
WANTED_RATIO = 10.0
SECONDS, MOST_PASSES = 5.0, 5


@dataclass(frozen=True)
class Row:
    """One pass over a set: seconds and test accuracy of the three."""

    data: str
    machine: str
    rows: int
    online_seconds: float
    online_accuracy: float
    n_support: int
    sgd_seconds: float
    sgd_accuracy: float
    refit_seconds: float
    refit_accuracy: float
    peer_seconds: float

    @property
    def ratio(self) -> float:
        return self.refit_seconds / self.online_seconds

    @property
    def peer_ratio(self) -> float:
        return self.peer_seconds / self.online_seconds


@dataclass(frozen=True)
class Passes:
    """Passes over the same rows in different orders: the median of the seconds of learning, the mean accuracy."""

    seconds: float
    accuracy: float
    last: Any


def make_passes(data: StreamData, make: Callable[[StreamData], tuple[Callable[[int, int], Any], Any]]) -> Passes:
    """Learn all pieces with what ``make`` returns: a function that learns the rows from one to another, and its model.

    The model, if it is None, is what the function returned last.
    """
    seconds: list[float] = []
    accuracy: list[float] = []
    model = None
    while not seconds or (len(seconds) < MOST_PASSES and sum(seconds) < SECONDS):
        order = np.random.default_rng(len(seconds)).permutation(len(data.y)) if seconds else np.arange(len(data.y))
        rows = replace(data, X=data.X[order], y=data.y[order])
        learn, model = make(rows)
        seconds.append(0.0)
        for first in range(0, len(data.y), PIECE):
            begin = time.perf_counter()
            learnt = learn(first, min(first + PIECE, len(data.y)))
            seconds[-1] += time.perf_counter() - begin
        model = learnt if model is None else model
        accuracy.append(model.score(data.X_test, data.y_test))
    return Passes(statistics.median(seconds), statistics.mean(accuracy), model)


def measure(data: StreamData, machine: str) -> Row:
    """Run the passes of all four."""
    classes = np.unique(data.y)
    given: dict[str, Any] = {"C": data.C, "gamma": data.gamma, "multi_class": machine}
    sampler = RBFSampler(gamma=data.gamma, n_components=COMPONENTS, random_state=0).fit(data.X[:1])

    def stream(rows: StreamData) -> tuple[Callable[[int, int], Any], Any]:
        clf = OnlineSVC(**given)
        return lambda a, b: clf.partial_fit(rows.X[a:b], rows.y[a:b], classes=classes), clf

    def gradient_descent(rows: StreamData) -> tuple[Callable[[int, int], Any], Any]:
        # SGD's penalty for the C of all rows.
        sgd = SGDClassifier(loss="hinge", alpha=1.0 / (data.C * len(data.y)), random_state=0)
        both = make_pipeline(sampler, sgd)
        return lambda a, b: sgd.partial_fit(sampler.transform(rows.X[a:b]), rows.y[a:b], classes=classes), both

    online, descent = make_passes(data, stream), make_passes(data, gradient_descent)
    refit = make_passes(data, lambda rows: (lambda _, b: SVC(**given).fit(rows.X[:b], rows.y[:b]), None))
    peer = make_passes(
        data, lambda rows: (lambda _, b: svm.SVC(C=data.C, gamma=data.gamma).fit(rows.X[:b], rows.y[:b]), None)
    )
    return Row(
        data=data.name,
        machine=machine,
        rows=len(data.y),
        online_seconds=online.seconds,
        online_accuracy=online.accuracy,
        n_support=len(online.last.support_),
        sgd_seconds=descent.seconds,
        sgd_accuracy=descent.accuracy,
        refit_seconds=refit.seconds,
        refit_accuracy=refit.accuracy,
        peer_seconds=peer.seconds,
    )


def failures(rows: list[Row]) -> list[str]:
    """Return sentences about the promises that do not hold."""
    found = []
    for row in rows:
        where = f"{row.data} {row.machine}"
        if row.online_accuracy <= row.sgd_accuracy:
            found.append(f"{where}: {row.online_accuracy:.2%} is not above SGD's {row.sgd_accuracy:.2%}")
        if row.peer_ratio < WANTED_RATIO:
            found.append(f"{where}: {row.peer_ratio:.1f} times as fast as scikit-learn's fits, not {WANTED_RATIO:g}")
    return found


def render(rows: list[Row], wrong: list[str]) -> list[str]:
    """Return the table as lines of Markdown."""
    lines = [
        "| data | machine | rows | online: rows/s, accuracy, SV | SGD: rows/s, accuracy "
        "| fits: the same | times as fast as our fits | as scikit-learn's |",
        "|---|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {row.data} | {row.machine} | {row.rows:,} "
        f"| {row.rows / row.online_seconds:,.0f}, {row.online_accuracy:.2%}, {row.n_support:,} "
        f"| {row.rows / row.sgd_seconds:,.0f}, {row.sgd_accuracy:.2%} "
        f"| {row.rows / row.refit_seconds:,.0f}, {row.refit_accuracy:.2%} | {row.ratio:.1f} | {row.peer_ratio:.1f} |"
        for row in rows
    ]
    own = [row.ratio for row in rows]
    beside = (
        f"A pass is {min(own):.1f} to {max(own):.1f} times as fast as our own fits, about which nothing is promised."
    )
    load = f"load {surroundings()['load']:.1f}"
    return [*lines, "", beside, "", load, *(wrong or ["All that is asked for holds."])]


def long_stream(n_rows: int) -> list[str]:
    """Learn a long stream with overlapping classes; return lines on the kept examples and the largest memory."""
    rng = np.random.default_rng(0)
    clf = OnlineSVC(C=1.0, gamma=1.0, multi_class="ww", cache_size=20.0)
    lines = ["| rows | support vectors | slots | largest memory, MB |", "|---|---|---|---|"]
    centres = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0]])
    marks = {n_rows * k // 10 for k in range(1, 11)}
    for first in range(0, n_rows, PIECE):
        y = rng.integers(0, 3, min(PIECE, n_rows - first))
        clf.partial_fit(centres[y] + 0.35 * rng.normal(size=(len(y), 2)), y)
        if clf.n_seen_ in marks:
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
            slots = clf._stream.learner.core.n_slots  # type: ignore[union-attr]
            lines.append(f"| {clf.n_seen_:,} | {len(clf.support_):,} | {slots:,} | {peak:.0f} |")
    return lines


@click.command()
@click.option("--data", multiple=True, default=SETS, type=click.Choice(SETS))
@click.option("--machine", multiple=True, default=("ovo", "ww", "cs"), help="For sets of more than two classes.")
@click.option("--rows", default=None, type=int, help="Training rows to use, all by default.")
@click.option("--long", "n_long", default=None, type=int, help="Rows of a long stream, instead.")
@click.option("--out", default=None, help="Directory for the table as .md and .json.")
def main(**chosen: Any) -> None:
    """Measure, print, and fail where the promises do not hold."""
    if chosen["n_long"] is not None:
        write_report("online_long", chosen["out"], long_stream(chosen["n_long"]), [])
        return
    rows: list[Row] = []
    for name in chosen["data"]:
        for machine in chosen["machine"] if name == "letter" else chosen["machine"][:1]:
            rows.append(measure(load_stream(name, machine, chosen["rows"]), machine))
            print(f"{name} {machine} done", file=sys.stderr, flush=True)
    wrong = failures(rows)
    write_report("online", chosen["out"], render(rows, wrong), [asdict(row) for row in rows])
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
