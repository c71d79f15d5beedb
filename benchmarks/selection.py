"""A search for C and gamma: SVCCV against GridSearchCV over scikit-learn's SVC, in one run on the same folds.

    python -m benchmarks.versus selection [--data NAME ...] [--machine ovo] [--size K] [--rounds 1] [--out DIR]

C = 2^-2, ..., 2^12 and gamma = 2^-10, ..., 2^4, 15 values each (satimage 5), 5 folds, the refit included on both sides.
The peer has as many processes as we have threads.
"""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import click
import numpy as np
from sklearn import svm
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV

from benchmarks.measure import in_turn, seconds_once, surroundings, write_report
from multimargin import SVCCV
from multimargin.base.resources import n_threads
from multimargin.datasets import load_benchmark

SETS = ("vehicle", "segment", "satimage")
SIZES = {"satimage": 5}  # values of C and of gamma; 15 on the other sets
OURS = "ours"
SCIKIT_LEARN = "scikit-learn"


def grid(size: int) -> dict[str, np.ndarray]:
    """Return the values of C and gamma."""
    return {"C": np.exp2(np.linspace(-2, 12, size)), "gamma": np.exp2(np.linspace(-10, 4, size))}


def measure(name: str, machine: str, size: int, rounds: int) -> dict[str, Any]:
    """Return one row of the table."""
    data, values = load_benchmark(name), grid(size)
    ours = SVCCV(Cs=values["C"], gammas=values["gamma"], multi_class=machine)
    peer = GridSearchCV(svm.SVC(), values, n_jobs=n_threads())
    runs = {OURS: partial(ours.fit, data.X, data.y), SCIKIT_LEARN: partial(peer.fit, data.X, data.y)}
    times = in_turn(runs, rounds, seconds_once)
    apart = np.abs(ours.cv_results_["mean_test_score"] - peer.cv_results_["mean_test_score"])
    return {
        "data": name,
        "machine": machine,
        "cells": size * size,
        "seconds": times,
        "ratio": times[SCIKIT_LEARN] / times[OURS],
        "best": {OURS: ours.best_score_, SCIKIT_LEARN: float(peer.best_score_)},
        "params": {OURS: ours.best_params_, SCIKIT_LEARN: {k: float(v) for k, v in peer.best_params_.items()}},
        "largest_difference": float(apart.max()),
        "mean_difference": float(apart.mean()),
    }


def render(rows: list[dict[str, Any]]) -> list[str]:
    about = surroundings()
    lines = [
        f"C and gamma by 5 folds, refit included: scikit-learn {about['scikit-learn']} one-vs-one with "
        f"{about['threads']} processes, ours with {about['threads']} threads, {about['instruction_set']}, "
        f"load {about['load']:.2f}",
        "",
        "| data | machine | cells | ours s | scikit-learn s | scikit-learn / ours | best score ours / scikit-learn | "
        "scores apart, mean / largest |",
        "|---|---|---|---|---|---|---|---|",
    ]
    return lines + [
        f"| {row['data']} | {row['machine']} | {row['cells']} | {row['seconds'][OURS]:.2f} | "
        f"{row['seconds'][SCIKIT_LEARN]:.1f} | {row['ratio']:.1f} | "
        f"{row['best'][OURS]:.4f} / {row['best'][SCIKIT_LEARN]:.4f} | "
        f"{row['mean_difference']:.1e} / {row['largest_difference']:.1e} |"
        for row in rows
    ]


@click.command()
@click.option("--data", multiple=True, help="Default: vehicle, segment, satimage.")
@click.option("--machine", default="ovo", help="Ours; scikit-learn's is one-vs-one.")
@click.option("--size", default=None, type=int, help="Values of C and of gamma.")
@click.option("--rounds", default=1)
@click.option("--out", default=None, help="Directory for Markdown and JSON.")
def selection(*, data: tuple[str, ...], machine: str, size: int | None, rounds: int, out: str | None) -> None:
    """A search for C and gamma on both sides."""
    warnings.simplefilter("ignore", ConvergenceWarning)
    rows = [measure(name, machine, size or SIZES.get(name, 15), rounds) for name in data or SETS]
    write_report("selection", out, render(rows), rows)
