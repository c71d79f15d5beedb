"""The data sets of the experiments and benchmarks on streams, with (C, gamma) and their sources."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.model_selection import train_test_split

from multimargin.datasets import load_benchmark, parameters

SQUARES = 4  # of the chessboard, along each side
MADE = "chessboard"
# (C, gamma) of ovo by five-fold cross-validation on the training rows (python -m experiments.igel_online --validate);
# the other sets have those of the papers' protocol.
VALIDATED = {
    MADE: (1024.0, 1.0),
    "banana": (16.0, 4.0),
    "diabetes": (16.0, 0.0625),
    "german": (16.0, 0.00390625),
    "adult_small": (4.0, 0.015625),
}


@dataclass(frozen=True, eq=False)
class StreamData:
    """Training rows in the order of the stream, test rows, C and gamma."""

    name: str
    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    C: float
    gamma: float


def chessboard(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return points spread evenly over a chessboard and the colours of their squares."""
    X = np.random.default_rng(seed).uniform(0, SQUARES, (n, 2))
    return X, (np.floor(X).sum(axis=1) % 2).astype(np.int64)


def load_stream(name: str, machine: str, n_rows: int | None = None, seed: int = 0) -> StreamData:
    """Return a set for a machine; ``n_rows`` takes only so many training rows, ``seed`` gives their order."""
    if name == MADE:
        X, y = chessboard(5000, 0)
        X_test, y_test = chessboard(10_000, 1)
    else:
        data = load_benchmark(name)
        X, y = data.X, data.y
        if data.X_test is None or data.y_test is None:
            X, X_test, y, y_test = train_test_split(X, y, test_size=0.3, random_state=0, stratify=y)
        else:
            X_test, y_test = data.X_test, data.y_test
    order = np.random.default_rng(seed).permutation(len(y))[:n_rows]
    C, gamma = VALIDATED[name] if name in VALIDATED else parameters(name, machine)
    return StreamData(name, np.ascontiguousarray(X[order]), y[order], X_test, y_test, float(C), float(gamma))
