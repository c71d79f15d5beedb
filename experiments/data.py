"""Data sets of the experiments: the papers' by the protocol of multimargin.datasets, or small ones for --quick."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from multimargin._typing import FloatArray
from multimargin.datasets import Benchmark, load_benchmark

# What scikit-learn ships. Its iris differs from UCI's in two rows.
SHIPPED: dict[str, Callable[..., Any]] = {
    "iris": load_iris,
    "wine": load_wine,
    "digits": load_digits,
    "breast_cancer": load_breast_cancer,
}
QUICK_ROWS = {"digits": 400, "breast_cancer": 200}
QUICK_TEST_ROWS = {"digits": 200}
TRAINING_SHARE = 0.7
# DGI11's accuracies are multiples of 1/93: its soybean is UCI's training file, the first rows here.
FIRST_ROWS = {"soybean": 307}

# How attributes are scaled: to [-1, 1] (HL02, KCSL04), or to mean 0 and variance 1.
RANGE, VARIANCE = "range", "variance"

Part = tuple[FloatArray, np.ndarray, FloatArray, np.ndarray]


@lru_cache(maxsize=4)
def load(name: str, *, quick: bool = False) -> Benchmark:
    """Return a data set, scaled to [-1, 1] on its training part."""
    if not quick and name not in ("digits", "breast_cancer"):
        return load_benchmark(name)
    if name not in SHIPPED:
        raise ValueError(f"set={name!r} is none of scikit-learn's; with --quick choose one of {', '.join(SHIPPED)}.")
    X, y = SHIPPED[name](return_X_y=True)
    n, n_test = QUICK_ROWS.get(name, len(y)), QUICK_TEST_ROWS.get(name, 0)
    scaler = MinMaxScaler((-1, 1)).fit(X[:n])
    test = slice(n, n + n_test)
    X_test, y_test = (scaler.transform(X[test]), y[test] + 1) if n_test else (None, None)
    return Benchmark(name, np.ascontiguousarray(scaler.transform(X[:n])), y[:n] + 1, X_test, y_test)


def standardized(part: Part) -> Part:
    """Return a part with attributes of mean 0 and variance 1 on its training rows."""
    X, y, X_test, y_test = part
    scaler = StandardScaler().fit(X)
    return scaler.transform(X), y, scaler.transform(X_test), y_test


def splits(name: str, n_splits: int, *, quick: bool = False, own_test: bool = True) -> Iterator[Part]:
    """Yield training and test rows as DGI11 has them: 70 percent drawn at random, or the set's own parts once.

    The accuracies of its Table 2 are multiples of one over 30 percent of the rows, and its iris has 105 training rows.
    Without ``own_test`` the set's own test part is not used.
    """
    data = load(name, quick=quick)
    if own_test and data.X_test is not None and data.y_test is not None:
        yield data.X, data.y, data.X_test, data.y_test
        return
    first = FIRST_ROWS.get(name, len(data.y))
    for seed in range(n_splits):
        train, test = train_test_split(np.arange(first), train_size=TRAINING_SHARE, random_state=seed)
        train, test = np.sort(train), np.sort(test)
        yield data.X[train], data.y[train], data.X[test], data.y[test]


def frequent(y: np.ndarray, least: int) -> np.ndarray:
    """Return the rows of classes with at least so many rows: every class must occur in every fold."""
    labels, counts = np.unique(y, return_counts=True)
    return np.flatnonzero(np.isin(y, labels[counts >= least]))
