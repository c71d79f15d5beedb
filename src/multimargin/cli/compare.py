"""``multimargin compare``: every machine at its own best C and gamma, on the same folds, as a table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import numpy as np

from multimargin import compare_machines
from multimargin.base.files import is_stdout
from multimargin.cli.command import Command, option
from multimargin.cli.cross_validation import folds_of
from multimargin.cli.data import named, on_terminal, read_table, read_training, save_then_say
from multimargin.cli.files import check_writable
from multimargin.cli.options import MULTI_CLASS, DataPath, data_options, joined, limit_options, threads
from multimargin.cli.scaled import advise_scaling, advise_wider_grid, scale_option, scaling
from multimargin.cli.select import grid_options
from multimargin.model_selection.compare import DEFAULT_MACHINES

WRITERS = {".csv": "to_csv", ".json": "to_json", ".md": "to_markdown"}


@click.command(cls=Command, context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("training_set_file", type=DataPath)
@click.argument("test_file", type=DataPath, required=False)
@joined(
    option(
        "--machines",
        multiple=True,
        default=(",".join(DEFAULT_MACHINES),),
        show_default=True,
        help=f"Which, of {', '.join(MULTI_CLASS)}; with commas, or the option again.",
    ),
    option("--out", type=DataPath, help="Write the table to this file: .csv, .json or .md."),
    option("-q", "quiet", is_flag=True, help="No progress."),
    grid_options,
    limit_options,
    data_options,
    scale_option,
)
def compare(training_set_file: Path, test_file: Path | None, **given: Any) -> None:
    """Choose C and gamma of each machine on the same folds, and compare them; TEST_FILE takes no part in the choice."""
    out = given["out"]
    if out is not None:
        check_writable("--out", out)
        if out.suffix.lower() not in WRITERS:
            raise click.ClickException(f"--out {out} has no known ending; use one of {', '.join(WRITERS)}.")
    X, y = read_training(training_set_file, given)
    X_test, y_test = (None, None) if test_file is None else _test_data(test_file, given, X)
    advise_scaling(X, given)
    scaler, X = scaling(given, X)
    if scaler is not None and X_test is not None:
        X_test = scaler.transform(X_test)
    with threads(given["threads"]):
        comparison = compare_machines(
            X,
            y,
            machines=[name.strip() for names in given["machines"] for name in names.split(",")],
            Cs=np.exp2(given["log2c"]),
            gammas=np.exp2(given["log2g"]),
            cv=folds_of(y, given["n_folds"], given["seed"]),
            max_time=given["max_time"],
            verbose=int(on_terminal() and not given["quiet"]),
            X_test=X_test,
            y_test=y_test,
        )
    write = (lambda: None) if out is None else (lambda: getattr(comparison, WRITERS[out.suffix.lower()])(out))
    save_then_say(write, [str(comparison)], elsewhere=is_stdout(out))
    if comparison.best:
        row = comparison.row(comparison.best)
        advise_wider_grid(row.C, row.gamma, given)


def _test_data(path: Path, given: dict[str, Any], X: Any) -> tuple[Any, np.ndarray | None]:
    width = int(X.shape[1])
    table = read_table(path, given, n_features=width)
    if table.n_features > width:
        raise click.ClickException(
            f"{path} has {table.n_features} columns, but the training data have {width}; give files with the same ones."
        )
    frame = named(table)
    return (frame[list(X.columns)] if hasattr(X, "columns") else frame), table.y
