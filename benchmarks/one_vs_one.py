"""One-vs-one with exact bias on both sides: the same optimum, so that the times can be compared.

The command ``ovo`` of ``benchmarks.versus``: wall times of our SVC, scikit-learn's and, on the large sets or with
--intelex, scikit-learn-intelex's (where installed: ``pip install '.[peers]'``), all at tol=1e-3 on dense float64 rows,
intelex on float32 rows too. They run in turn, each measurement repeated to at least 0.3 s, medians over the rounds;
the large sets run once. Beside the times: the true violation of our worst pair (``verify``), support vectors, and
iterations.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import click
import numpy as np
from sklearn import svm
from sklearn.exceptions import ConvergenceWarning

from benchmarks.measure import geometric_mean, in_turn, seconds_of, seconds_once, surroundings, write_report
from multimargin import SVC, verify
from multimargin.datasets import load_benchmark, parameters

COMPARED = ("vehicle", "segment", "optdigits", "satimage", "letter", "shuttle")  # the geometric mean is over these
SETS = (*COMPARED, "dna")
SMALL = ("iris", "wine")
SMALL_FITS = 200
# Sets on which a peer takes a minute or more: (C, gamma) of each run.
LARGE = {
    "adult": ((1.0, 1 / 123), (32.0, 1 / 123)),
    "ijcnn1": ((1.0, 1 / 22), (32.0, 1 / 22)),
}
OURS, SCIKIT_LEARN = "multimargin", "scikit-learn"
INTELEX = {"intelex64": np.float64, "intelex32": np.float32}


@dataclass(frozen=True)
class Case:
    """One row of the table; a large one is measured once."""

    name: str
    C: float
    gamma: float | str
    large: bool

    @classmethod
    def of(cls, name: str) -> Iterator[Case]:
        """The cases of a data set: its large ones, or the protocol's one."""
        if name in LARGE:
            yield from (cls(name, C, gamma, True) for C, gamma in LARGE[name])
        else:
            yield cls(name, *parameters(name, "ovo"), False)


def has_intelex() -> bool:
    try:
        version("scikit-learn-intelex")
    except PackageNotFoundError:
        return False
    return True


def contestants(case: Case, X: np.ndarray, limit: float, intelex: bool) -> dict[str, tuple[Any, np.ndarray]]:
    """Return the estimators, and the rows of each."""
    given: dict[str, Any] = {"C": case.C, "gamma": case.gamma, "tol": 1e-3}
    found = {OURS: (SVC(max_time=limit, **given), X), SCIKIT_LEARN: (svm.SVC(**given), X)}
    if intelex:
        from sklearnex import svm as intelex_svm

        found |= {name: (intelex_svm.SVC(**given), X.astype(dtype)) for name, dtype in INTELEX.items()}
    return found


def measure(case: Case, rounds: int, limit: float, intelex: bool) -> dict[str, Any]:
    """Return one row of the table."""
    data = load_benchmark(case.name)
    fits = contestants(case, data.X, limit, intelex)

    runs = {name: partial(clf.fit, X, data.y) for name, (clf, X) in fits.items()}
    times = in_turn(runs, 1, seconds_once) if case.large else in_turn(runs, rounds, seconds_of)
    ours = fits[OURS][0]
    truth = verify(ours, data.X, data.y)
    return {
        "data": case.name,
        "C": case.C,
        "gamma": case.gamma,
        "seconds": times,
        "ratio": {name: seconds / times[OURS] for name, seconds in times.items() if name != OURS},
        "support_vectors": {name: len(clf.support_) for name, (clf, _) in fits.items()},
        "iterations": {name: int(np.sum(fits[name][0].n_iter_)) for name in (OURS, SCIKIT_LEARN)},
        "violation": truth.kkt_violation,
        "optimal": truth.optimal,
        "stop_reason": ours.certificate_.stop_reason,
    }


def render(rows: list[dict[str, Any]]) -> list[str]:
    about = surroundings()
    peers = list(dict.fromkeys(name for row in rows for name in row["ratio"]))
    intel = f", scikit-learn-intelex {version('scikit-learn-intelex')}" if len(peers) > 1 else ""
    header = ["data", "C", "gamma", *(f"{name} s" for name in (OURS, *peers)), *(f"{name} / ours" for name in peers)]
    header += ["SVs " + " / ".join((OURS, *peers)), "iterations ours / scikit-learn", "true violation", ""]
    lines = [
        f"one-vs-one, tol=1e-3: scikit-learn {about['scikit-learn']}{intel}, {about['threads']} threads, "
        f"{about['instruction_set']}, load {about['load']:.2f}",
        "",
        f"| {' | '.join(header)} |",
        "|---" * len(header) + "|",
    ]
    lines += [f"| {' | '.join(_cells(row, peers))} |" for row in rows]
    compared = [row for row in rows if row["data"] in COMPARED]
    names = ", ".join(row["data"] for row in compared)
    for peer in (peer for peer in peers if compared and all(peer in row["ratio"] for row in compared)):
        mean = geometric_mean([row["ratio"][peer] for row in compared])
        lines.append(f"\n{peer} / ours, geometric mean over {names}: {mean:.2f}")
    return lines


def _cells(row: dict[str, Any], peers: list[str]) -> list[str]:
    gamma = row["gamma"]

    def each(kind: str, names: Sequence[str], form: str) -> list[str]:
        return [format(row[kind][name], form) if name in row[kind] else "-" for name in names]

    return [
        row["data"],
        f"{row['C']:g}",
        gamma if isinstance(gamma, str) else f"{gamma:.4g}",
        *each("seconds", (OURS, *peers), ".4f"),
        *each("ratio", peers, ".2f"),
        " / ".join(each("support_vectors", (OURS, *peers), "d")),
        " / ".join(each("iterations", (OURS, SCIKIT_LEARN), ",")),
        f"{row['violation']:.1e}",
        "ok" if row["optimal"] else row["stop_reason"],
    ]


def measure_small(name: str, fits: int) -> dict[str, Any]:
    """Medians of single fits in turn: the whole cost of a small fit, overhead included."""
    data = load_benchmark(name)
    C, gamma = parameters(name, "ovo")
    both = {OURS: SVC(C=C, gamma=gamma), SCIKIT_LEARN: svm.SVC(C=C, gamma=gamma)}
    runs = {who: partial(clf.fit, data.X, data.y) for who, clf in both.items()}
    in_turn(runs, 3, seconds_once)  # the first fits load code and make the caches
    times = in_turn(runs, fits, seconds_once)
    return {"data": name, "C": C, "gamma": gamma, "seconds": times, "ratio": times[OURS] / times[SCIKIT_LEARN]}


def render_small(rows: list[dict[str, Any]], fits: int) -> list[str]:
    about = surroundings()
    lines = [
        f"single fits, median of {fits}: scikit-learn {about['scikit-learn']}, {about['threads']} threads, "
        f"load {about['load']:.2f}",
        "",
        "| data | ours ms | scikit-learn ms | ours / scikit-learn |",
        "|---|---|---|---|",
    ]
    return lines + [
        f"| {row['data']} | {1e3 * row['seconds'][OURS]:.3f} | {1e3 * row['seconds'][SCIKIT_LEARN]:.3f} | "
        f"{row['ratio']:.2f} |"
        for row in rows
    ]


@click.command()
@click.option("--data", multiple=True, help="Default: the sets of the table, with --small iris and wine.")
@click.option("--rounds", default=3)
@click.option("--limit", default=600.0, help="Seconds per fit of ours.")
@click.option("--large", is_flag=True, help="Also adult and ijcnn1, once each, with intelex where it is installed.")
@click.option("--intelex", is_flag=True, help="Beside scikit-learn-intelex on every set.")
@click.option("--small", is_flag=True, help="Single fits of small sets instead.")
@click.option("--out", default=None, help="Directory for Markdown and JSON.")
def ovo(  # noqa: PLR0913 - the command's options
    *, data: tuple[str, ...], rounds: int, limit: float, large: bool, intelex: bool, small: bool, out: str | None
) -> None:
    """One-vs-one on both sides."""
    warnings.simplefilter("ignore", ConvergenceWarning)
    if small:
        few = [measure_small(name, SMALL_FITS) for name in data or SMALL]
        write_report("ovo-small", out, render_small(few, SMALL_FITS), few)
        return
    if intelex and not has_intelex():
        raise click.UsageError("--intelex needs scikit-learn-intelex; pip install '.[peers]' brings it.")
    names = [*(data or SETS), *(LARGE if large else ())]
    rows = []
    for case in (case for name in dict.fromkeys(names) for case in Case.of(name)):
        beside = intelex or (case.large and has_intelex())
        rows.append(measure(case, rounds, limit, beside))
        print(".", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    write_report("ovo", out, render(rows), rows)
