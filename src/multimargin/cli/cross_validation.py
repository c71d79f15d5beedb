"""svm-train's -v: every row is predicted by a model of the other folds; prints the accuracy."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import click
import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from multimargin.cli.command import tell
from multimargin.cli.data import on_terminal


def fold_numbers(y: np.ndarray, n_folds: int, seed: int) -> np.ndarray:
    """Return the fold of each row: rows are shuffled within their class and distributed in turn, as LIBSVM does."""
    rng = np.random.default_rng(seed)
    _, codes = np.unique(y, return_inverse=True)
    dealt = np.lexsort((rng.permutation(len(y)), codes))
    folds = np.empty(len(y), dtype=np.int64)
    folds[dealt] = np.arange(len(y)) % n_folds
    return folds


def folds_of(y: np.ndarray, n_folds: int, seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return rows to train and to test on, for each fold."""
    if n_folds > len(y):
        raise click.ClickException(f"-v {n_folds} is more than the {len(y)} rows of the file; ask for fewer folds.")
    folds = fold_numbers(y, n_folds, seed)
    return [(np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)) for fold in range(n_folds)]


def cross_validate(
    make: Callable[[float | None], Any], X: Any, y: np.ndarray, n_folds: int, given: dict[str, Any]
) -> int:
    """Return the number of rows that are predicted correctly; ``make`` gets the seconds that a fit may take."""
    if n_folds > len(y):
        tell(f"WARNING: # folds ({n_folds}) > # data ({len(y)}). Will use # folds = # data instead.")
        n_folds = len(y)
    if n_folds < 2:
        raise click.ClickException(f"-v {n_folds}: cross-validation needs at least two rows; the file has {len(y)}.")
    began, limit = time.perf_counter(), given["max_time"]
    correct = 0
    with _bar(given["quiet"]) as bar:
        task = bar.add_task("cross-validation", total=n_folds)
        for fold, (train, test) in enumerate(folds_of(y, n_folds, given["seed"])):
            left = None if limit is None else max(limit - (time.perf_counter() - began), 1e-3) / (n_folds - fold)
            correct += int((_predicted(make(left), X, y, train, test) == y[test]).sum())
            bar.advance(task)
    return correct


def _predicted(model: Any, X: Any, y: np.ndarray, train: np.ndarray, test: np.ndarray) -> np.ndarray:
    if len(np.unique(y[train])) == 1:  # nothing to train: LIBSVM predicts the only class there is
        return np.full(len(test), y[train[0]])
    rows, points = _take(X, train), _take(X, test)
    if getattr(model, "kernel", None) == "precomputed":
        rows, points = rows[:, train], points[:, train]
    model.set_params(verbose=False, class_weight=_present(model.class_weight, y[train]))
    predicted: np.ndarray = model.fit(rows, y[train]).predict(points)
    return predicted


def _present(class_weight: Any, y: np.ndarray) -> Any:
    """Return the weights of the classes that occur; SVC refuses others."""
    if not isinstance(class_weight, dict):
        return class_weight
    labels = set(np.unique(y))
    return {label: factor for label, factor in class_weight.items() if label in labels} or None


def _take(X: Any, rows: np.ndarray) -> Any:
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]


def _bar(quiet: bool) -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed}/{task.total}"))
    watched = on_terminal() and not quiet
    return Progress(*columns, TimeElapsedColumn(), console=Console(stderr=True), transient=True, disable=not watched)
