"""Data files as the commands read them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import click
import numpy as np

from multimargin.cli.command import tell
from multimargin.data_files import Table, read_data
from multimargin.data_files.errors import MissingLabelError
from multimargin.data_files.reading import SVMLIGHT, kind_of
from multimargin.data_files.svmlight import read_precomputed


def read_training(path: Path, given: dict[str, Any], *, precomputed: bool = False) -> tuple[Any, np.ndarray]:
    """Return X, dense where it is full, and y."""
    table = training_table(path, given, precomputed=precomputed)
    assert table.y is not None
    return named(table), table.y


def training_table(path: Path, given: dict[str, Any], *, precomputed: bool = False) -> Table:
    """Return rows with labels."""
    if precomputed and kind_of(path) == SVMLIGHT:
        return read_precomputed(path, square=True)
    return read_table(path, given)


def read_table(
    path: Path, given: dict[str, Any], *, precomputed: bool = False, label_needed: bool = True, n_features: int = 0
) -> Table:
    """Return the rows of a file by the options of the command."""
    if precomputed and kind_of(path) == SVMLIGHT:
        return read_precomputed(path)
    options = {"label_needed": label_needed, "n_features": n_features, "zero_based": given["zero_based"]}
    return read_data(path, label=given["label"], **options).compact()


def read_as_trained(path: Path, model: Any, given: dict[str, Any], **options: Any) -> Table:
    """Return the rows of a file for a model, which may know the name of the label's column; it may be missing."""
    known = getattr(model, "_label_column", None)
    if given["label"] is not None or known is None or kind_of(path) == SVMLIGHT:
        return read_table(path, given, **options)
    try:
        return read_table(path, given | {"label": known}, **options)
    except MissingLabelError:
        return read_table(path, given, **options)


def named(table: Table) -> Any:
    """Return X, as a data frame where columns have names and pandas is installed, so that models store the names."""
    if table.feature_names is None:
        return table.X
    try:
        import pandas as pd
    except ImportError:
        return table.X
    return pd.DataFrame(table.X, columns=list(table.feature_names))


def default_model_path(data: Path) -> Path:
    """Return svm-train's name for the model: that of the data file in the current folder, with .model."""
    return Path(f"{data.name}.model")


def on_terminal() -> bool:
    """Return whether stderr is a terminal."""
    return sys.stderr is not None and sys.stderr.isatty()


def say(line: str, *, quiet: bool = False) -> None:
    """Print a line of the results."""
    if not quiet:
        click.echo(line)


def save_then_say(save: Callable[[], None], lines: Sequence[str], *, elsewhere: bool = False) -> None:
    """Save the results, then print the lines, so that an error of stdout loses nothing.

    The lines are printed even if saving fails. ``elsewhere``: results were saved to stdout, so do not print there.
    """
    try:
        save()
    except Exception:
        with suppress(OSError):
            _say_all(lines, elsewhere)
        raise
    _say_all(lines, elsewhere)


def _say_all(lines: Sequence[str], elsewhere: bool) -> None:
    for line in lines:
        tell(line) if elsewhere else say(line)
