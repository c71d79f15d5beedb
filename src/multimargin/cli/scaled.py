"""Models that scale their columns: a pipeline in memory, and in the file the scaler beside the machine."""

from __future__ import annotations

from typing import Any

import click
import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

from multimargin.base.matrices import is_sparse
from multimargin.cli.command import option, tell
from multimargin.cli.data import named
from multimargin.data_files import Table
from multimargin.fitting.advice import wide_columns

STANDARD, RANGE = "standard", "range"
DATA = "Data files"

scale_option = option(
    "--scale",
    type=click.Choice([STANDARD, RANGE]),
    metavar="HOW",
    panel=DATA,
    help="Scale the columns, within the model: standard (mean 0, deviation 1) or range (to [-1, 1]).",
)


def scaling(given: dict[str, Any], X: Any) -> tuple[Any, Any]:
    """Return the scaler that --scale asks for, fitted, or None; and the rows as the machine gets them."""
    how = given["scale"]
    if how is None:
        return None, X
    sparse = is_sparse(X)  # whose zeros stay zeros
    if how == STANDARD:
        scaler = StandardScaler(with_mean=not sparse)
    else:
        scaler = MaxAbsScaler() if sparse else MinMaxScaler(feature_range=(-1.0, 1.0))
    return scaler, scaler.fit_transform(X)


def whole_model(scaler: Any, model: Any, label: str | None) -> Any:
    """Return what is saved: the machine, after its scaler if there is one; it knows the label's column."""
    whole = model if scaler is None else Pipeline([("scaler", scaler), ("classifier", model)])
    if label is not None:
        whole._label_column = label
    return whole


def needs_own_format(given: dict[str, Any], scaler: Any) -> bool:
    """Return whether the model has what LIBSVM's text does not hold; refuse the text for a model that scales."""
    if scaler is not None and given["model_format"] == "libsvm":
        raise click.ClickException(
            "--scale is kept in our own format only; leave out --format, or scale the file first (multimargin scale)."
        )
    return scaler is not None or given["label"] is not None or bool(given.get("linear"))


def parts_of(model: Any) -> tuple[Any, Any]:
    """Return the scaler of a model, or None, and its machine."""
    return (model[0], model[-1]) if isinstance(model, Pipeline) else (None, model)


def scaled_table(table: Table, scaler: Any) -> Table:
    """Return the rows as the machine gets them; columns beyond those of the training data are left out."""
    if scaler is None:
        return table
    wanted = int(scaler.n_features_in_)
    X = named(table) if table.n_features == wanted else table.X[:, :wanted]
    if not hasattr(scaler, "feature_names_in_"):
        X = np.asarray(X) if hasattr(X, "columns") else X
    if is_sparse(X) and (isinstance(scaler, MinMaxScaler) or getattr(scaler, "with_mean", False)):
        X = X.toarray()
    return Table(scaler.transform(X), table.y)


def advise_scaling(X: Any, given: dict[str, Any], *, precomputed: bool = False) -> None:
    """Say in a line that a column should be scaled, where one decides all distances."""
    if given["scale"] is not None or given["quiet"] or precomputed:
        return
    wide = wide_columns(X.to_numpy() if hasattr(X, "to_numpy") else X)
    if wide:
        column, ratio = wide[0]
        name = repr(str(X.columns[column])) if hasattr(X, "columns") else str(column + 1)
        tell(f"Advice: column {name} varies {ratio:.0f} times as much as a typical one; add --scale standard.")


def advise_wider_grid(cost: float, gamma: float, given: dict[str, Any]) -> None:
    """Say in a line that the best cell lies at the edge of the grid, and which grid to try."""
    if given["quiet"]:
        return
    for name, value, flag in (("C", cost, "log2c"), ("gamma", gamma, "log2g")):
        grid = sorted(given[flag])
        if not np.isfinite(value) or len(grid) < 2:
            continue
        step, at = grid[1] - grid[0], float(np.log2(value))
        if np.isclose(at, grid[-1]):
            what, first, last = "largest", grid[0], grid[-1] + 3 * step
        elif np.isclose(at, grid[0]):
            what, first, last = "smallest", grid[0] - 3 * step, grid[-1]
        else:
            continue
        tell(f"Advice: the best {name}, {value:g}, is the {what} of the grid; try -{flag} {first:g},{last:g},{step:g}.")
