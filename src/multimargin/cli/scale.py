"""``multimargin scale``: svm-scale's options, range file and output."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click
import numpy as np

from multimargin.base.files import write_text
from multimargin.cli.command import Command, option, tell
from multimargin.cli.files import check_writable
from multimargin.cli.options import LIBSVM, DataPath
from multimargin.data_files.errors import fault
from multimargin.data_files.results import open_stdout
from multimargin.data_files.scaling import RangeFinder, Scaling, read_ranges, widened
from multimargin.data_files.svmlight import RowBlock, row_blocks
from multimargin.data_files.writing import text_file

CELLS_AT_ONCE = 1 << 14


@click.command(cls=Command, context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("data_filename", type=DataPath)
@option("-l", "lower", type=float, default=-1.0, show_default=True, panel=LIBSVM, help="Lower end of the values.")
@option("-u", "upper", type=float, default=1.0, show_default=True, panel=LIBSVM, help="Upper end of the values.")
@option(
    "-y",
    "label_interval",
    type=float,
    nargs=2,
    metavar="LOWER UPPER",
    panel=LIBSVM,
    help="Ends of the labels, which are else not scaled.",
)
@option("-s", "save_filename", type=DataPath, panel=LIBSVM, help="Write the ranges to this file.")
@option("-r", "restore_filename", type=DataPath, panel=LIBSVM, help="Take the ranges from this file.")
@option(
    "--digits", type=click.IntRange(1, 17), default=6, show_default=True, help="Digits of the values; 17 lose nothing."
)
@option("--out", type=DataPath, help="Write the rows to this file (also .gz, .bz2, .xz) instead of stdout.")
def scale(data_filename: Path, **given: Any) -> None:
    """Scale the columns of a data file to an interval, as svm-scale does.

    Scale test data with the ranges of the training data: scale -s ranges train.svm, then scale -r ranges test.svm.
    """
    check(given)
    finder = RangeFinder(data_filename)
    for block in row_blocks(data_filename):
        finder.add(block)
    if not finder.n_rows:
        raise fault(data_filename, "has no rows; a row is a line such as '1 1:0.5 3:-2'")
    restored = given["restore_filename"]
    if restored is None:
        scaling = finder.scaling((given["lower"], given["upper"]), given["label_interval"])
    else:
        scaling = restore(finder, read_ranges(restored), restored)
    if given["save_filename"] is not None:
        write_text(given["save_filename"], scaling.to_text())
    n_written = 0
    with ExitStack() as stack:
        handle = open_stdout() if given["out"] is None else stack.enter_context(text_file(given["out"]))
        for block in row_blocks(data_filename):
            for count, lines in scaled_lines(block, scaling, given["digits"]):
                n_written += count
                handle.write(lines)
    if n_written > finder.n_values:
        tell(
            f"WARNING: original #nonzeros {finder.n_values}\n         new      #nonzeros {n_written}\n"
            "Use -l 0 if many original feature values are zeros"
        )


def check(given: dict[str, Any]) -> None:
    """Refuse what contradicts itself, before any reading."""
    ends = given["label_interval"]
    if not given["upper"] > given["lower"] or (ends is not None and not ends[1] > ends[0]):
        raise click.ClickException(
            "inconsistent lower/upper specification; give -l below -u, and the ends of -y in order."
        )
    if given["restore_filename"] is not None and given["save_filename"] is not None:
        raise click.ClickException("cannot use -r and -s simultaneously; -r takes the ranges, -s writes them.")
    for name in ("save_filename", "out"):
        if given[name] is not None:
            check_writable("-s" if name == "save_filename" else "--out", given[name])


def restore(finder: RangeFinder, scaling: Scaling, source: Path) -> Scaling:
    """Return the map of a range file for this data; columns that it does not have are left out, with a message."""
    scaling = widened(scaling, len(finder.low))
    found = finder.scaling((0.0, 1.0), None)
    unknown = (scaling.low == scaling.high)[: len(found.low)] & (found.low != found.high)
    for column in np.flatnonzero(unknown):
        tell(
            f"WARNING: feature index {column + 1} appeared in file {finder.path} was not seen in the scaling factor "
            f"file {source}. The feature is scaled to 0."
        )
    return scaling


def scaled_lines(block: RowBlock, scaling: Scaling, digits: int) -> Iterator[tuple[int, str]]:
    """Yield (number of values, text) of some rows at a time: a row has a value for every column that is not zero."""
    kept = np.flatnonzero(scaling.low != scaling.high)
    zeros = scaling.columns(np.zeros(len(kept)), kept)
    rows = block.rows(1, scaling.n_features)
    labels = scaling.labels(block.labels)
    step = max(1, CELLS_AT_ONCE // max(1, len(kept)))
    sparse_result = not zeros.any()
    for begin in range(0, len(labels), step):
        part = rows[begin : begin + step]
        lines, count = [], 0
        for i in range(part.shape[0]):
            span = slice(part.indptr[i], part.indptr[i + 1])
            columns, values = part.indices[span], part.data[span]
            if sparse_result:
                used = scaling.low[columns] != scaling.high[columns]
                columns, values = columns[used], scaling.columns(values[used], columns[used])
            else:
                full = np.zeros(scaling.n_features)
                full[columns] = values
                columns, values = kept, scaling.columns(full[kept], kept)
            pairs = [f"{j + 1}:{v:.{digits}g} " for j, v in zip(columns, values, strict=True) if v != 0]
            count += len(pairs)
            lines.append(f"{labels[begin + i]:.17g} {''.join(pairs)}\n")
        yield count, "".join(lines)
