"""``multimargin predict``: svm-predict's files and lines; reads LIBSVM's text block by block."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click
import numpy as np

from multimargin.base.files import is_stdout
from multimargin.cli import models
from multimargin.cli.command import Command, option, tell
from multimargin.cli.data import read_as_trained, say
from multimargin.cli.files import check_writable
from multimargin.cli.options import LIBSVM, LIMITS, DataPath, data_options, threads, zero_or_one
from multimargin.cli.scaled import parts_of, scaled_table
from multimargin.cli.scoring import aligned, predictions
from multimargin.data_files import Table
from multimargin.data_files.reading import SVMLIGHT, kind_of
from multimargin.data_files.results import STDOUT, Columns, result_file
from multimargin.data_files.svmlight import row_blocks
from multimargin.data_files.table import labels_from_numbers


@click.command(cls=Command, context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("test_file", type=DataPath)
@click.argument("model_file", type=DataPath)
@click.argument("output_file", type=DataPath, required=False)
@zero_or_one("-b", "probability", 0, "Whether to write probabilities: 0 or 1.")
@option("-q", "quiet", is_flag=True, panel=LIBSVM, help="Print nothing.")
@option("--scores", is_flag=True, help="Write the scores of all classes (or of all pairs, as the model was trained).")
@option(
    "--threads",
    "n_threads",
    type=click.IntRange(min=1),
    panel=LIMITS,
    help="Maximum number of threads; all by default.",
)
@data_options
def predict(test_file: Path, model_file: Path, output_file: Path | None, **given: Any) -> None:
    """Predict the rows of a data file, as svm-predict does, and print the accuracy.

    OUTPUT_FILE gets a line for each row; .csv and .npz get columns with names, - is stdout. Without it only the
    accuracy is printed.
    """
    if output_file is not None and output_file != STDOUT:
        check_writable("output_file", output_file)
    if given["probability"] and given["scores"]:
        raise click.ClickException("-b 1 and --scores were both given; choose one of them.")
    whole = models.load(model_file)
    scaler, model = parts_of(whole)
    if given["probability"] and not hasattr(model, "predict_proba"):
        raise click.ClickException(f"the model {model_file} has no probabilities; train it with -b 1.")
    counts = _Counts()
    with threads(given["n_threads"]), ExitStack() as stack:
        written = None
        if output_file is not None:
            columns = Columns.of(model, probabilities=bool(given["probability"]), scores=given["scores"])
            written = stack.enter_context(result_file(output_file, columns))
        for rows in _tables(test_file, whole, given):
            table = scaled_table(rows, scaler)
            labels, numbers = predictions(model, table, given)
            counts.add(table.y, labels)
            if written is not None:
                written.add(labels, numbers)
    if not given["quiet"]:
        elsewhere = output_file == STDOUT or is_stdout(output_file)  # then stdout has the predictions
        tell(counts.sentence()) if elsewhere else say(counts.sentence())


def _tables(path: Path, model: Any, given: dict[str, Any]) -> Iterator[Table]:
    """Yield the rows to predict with the columns of the model, some at a time where the format allows that."""
    precomputed = getattr(parts_of(model)[1], "kernel", None) == "precomputed"
    if kind_of(path) != SVMLIGHT or precomputed:
        table = read_as_trained(path, model, given, precomputed=precomputed, label_needed=False)
        yield aligned(table, model, path)
        return
    first_index = 0 if given["zero_based"] else 1
    empty = True
    for block in row_blocks(path, first_index=first_index):
        empty = False
        rows = block.rows(first_index, model.n_features_in_)
        yield Table(rows, labels_from_numbers(block.labels)).compact()
    if empty:
        raise click.ClickException(f"{path} has no rows; a row is a line such as '1 1:0.5 3:-2'.")


class _Counts:
    """The number of rows, and of those predicted correctly."""

    def __init__(self) -> None:
        self.total, self.known, self.correct = 0, 0, 0

    def add(self, truth: np.ndarray | None, labels: np.ndarray) -> None:
        self.total += len(labels)
        if truth is not None:
            self.known += len(labels)
            comparable = (truth.dtype.kind in "US") == (labels.dtype.kind in "US")
            pairs = (truth, labels) if comparable else (truth.astype(np.str_), labels.astype(np.str_))
            self.correct += int((pairs[0] == pairs[1]).sum())

    def sentence(self) -> str:
        """Return svm-predict's line, or the number of rows where there are no labels to compare with."""
        if not self.known:
            return f"{self.total} rows predicted; the file has no labels to compare with"
        return f"Accuracy = {100.0 * self.correct / self.known:g}% ({self.correct}/{self.known}) (classification)"
