"""Reading a data file; the suffix of its name gives the format."""

from __future__ import annotations

import os
from pathlib import Path

from multimargin.data_files.csv_files import read_csv
from multimargin.data_files.npz import read_npz
from multimargin.data_files.parquet import read_parquet
from multimargin.data_files.svmlight import read_svmlight
from multimargin.data_files.table import Table
from multimargin.data_files.text_blocks import plain_name

CSV_ENDINGS = (".csv", ".tsv")
PARQUET_ENDINGS = (".parquet", ".pq")
NPZ_ENDINGS = (".npz",)
SVMLIGHT = "svmlight"


def kind_of(path: Path) -> str:
    """Return "csv", "parquet", "npz" or "svmlight", which stands for all other suffixes."""
    ending = Path(plain_name(path)).suffix.lower()
    if ending in CSV_ENDINGS:
        return "csv"
    if path.suffix.lower() in PARQUET_ENDINGS:
        return "parquet"
    return "npz" if path.suffix.lower() in NPZ_ENDINGS else SVMLIGHT


def read_data(
    path: str | os.PathLike[str],
    *,
    label: str | None = None,
    label_needed: bool = True,
    n_features: int = 0,
    zero_based: bool = False,
) -> Table:
    """Read rows and labels from a file.

    Parameters
    ----------
    path : path
        .csv, .tsv (both also compressed), .parquet or .npz; any other ending is LIBSVM's and svmlight's text. Text may
        be compressed: .gz, .bz2, .xz.
    label : str, default=None
        For .csv and .parquet: the name of the label's column, or its number from 1 (-1: the last). By default the one
        that is called label, class, target or y.
    label_needed : bool, default=True
        Whether a file without labels is an error; text of LIBSVM always has labels.
    n_features : int, default=0
        At least so many columns, for LIBSVM's text, which leaves out zeros.
    zero_based : bool, default=False
        Whether indices of LIBSVM's text begin at 0 rather than 1.

    Returns
    -------
    table : Table
        ``X`` (sparse for LIBSVM's text, else dense, float64), ``y`` and ``feature_names``.

    Raises
    ------
    DataFileError
        A ValueError that says "file:line: what is wrong".
    """
    checked = Path(path)
    kind = kind_of(checked)
    if kind == "csv":
        return read_csv(checked, label=label, label_needed=label_needed)
    if kind == "parquet":
        return read_parquet(checked, label=label, label_needed=label_needed)
    if kind == "npz":
        return read_npz(checked, label_needed=label_needed)
    return read_svmlight(checked, n_features=n_features, zero_based=zero_based)
