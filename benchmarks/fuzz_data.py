"""Damaged data files: bytes of valid ones are changed, and the readers must refuse them or read them correctly.

    python -m benchmarks.fuzz data --count 100000

Every file is also read by a slow and simple reader; a different result is an error.
"""

from __future__ import annotations

import csv
import gzip
import io
import math
import re
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import numpy as np
from scipy import sparse

from multimargin.data_files import DataFileError, Table, read_data
from multimargin.data_files.scaling import read_ranges

NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
# Bytes that a mutation inserts: with a meaning in one of the formats, and without one.
PIECES = (
    b":",
    b" ",
    b"\n",
    b"#",
    b"-",
    b".",
    b"e",
    b"nan",
    b"inf",
    b"1e999",
    b"0:",
    b"\x00",
    b"\xff",
    b'"',
    b",",
    b";",
    b"_",
    b"99999999999",
)
SECONDS_PER_FILE = 5.0


class WrongSuccessError(AssertionError):
    """A reader returned something else than the damaged file contains."""


def mutate(content: bytes, rng: np.random.Generator) -> bytes:
    """Return the content with a few bytes changed, taken out, put in, repeated or cut off."""
    for _ in range(int(rng.integers(1, 5))):
        at = int(rng.integers(0, len(content) + 1))
        span = int(rng.integers(1, 9))
        kind = int(rng.integers(0, 6))
        if kind == 0:
            content = content[:at] + bytes([int(rng.integers(0, 256))]) + content[at + 1 :]
        elif kind == 1:
            content = content[:at] + content[at + span :]
        elif kind == 2:
            content = content[:at] + PIECES[int(rng.integers(0, len(PIECES)))] + content[at:]
        elif kind == 3:
            content = content[:at] + content[at : at + span] + content[at:]
        elif kind == 4:
            content = content[:at]
        else:
            content = (
                content[:at] + bytes([content[at] ^ (1 << int(rng.integers(0, 8)))]) + content[at + 1 :]
                if at < len(content)
                else content
            )
    return content


def number_of(token: bytes) -> float:
    """Read a finite number, in the simplest way."""
    if not NUMBER.fullmatch(token) or not math.isfinite(float(token)):
        raise ValueError(token)
    return float(token)


def slow_text(content: bytes) -> Table:
    """Read LIBSVM's text."""
    labels, rows = [], []
    for line in content.removeprefix(b"\xef\xbb\xbf").split(b"\n"):
        tokens = re.split(rb"[ \t\r\f\v]+", line.split(b"#")[0].strip(b" \t\r\f\v"))
        if tokens == [b""]:
            continue
        labels.append(number_of(tokens[0]))
        row: dict[int, float] = {}
        for token in tokens[1:]:
            index, _, value = token.partition(b":")
            if not re.fullmatch(rb"\d+", index) or not max(row, default=0) < int(index) < 2**31:
                raise ValueError(token)
            row[int(index)] = number_of(value)
        rows.append(row)
    width = max((max(row, default=0) for row in rows), default=0)
    if not rows:
        raise ValueError("no rows")
    starts = np.cumsum([0, *map(len, rows)])
    columns = [index - 1 for row in rows for index in row]
    values = [value for row in rows for value in row.values()]
    X = sparse.csr_array(
        (np.array(values, dtype=float), np.array(columns, dtype=int), starts), shape=(len(rows), width)
    )
    return Table(X, np.array(labels))


def slow_gzip(content: bytes) -> Table:
    """Read compressed text of LIBSVM."""
    return slow_text(gzip.decompress(content))


def slow_csv(content: bytes) -> Table:
    """Read a CSV file whose label is called y, cell by cell."""
    text = content.decode("utf-8-sig")
    separator = max(",;\t", key=io.StringIO(text, newline="").readline().count)
    rows = [row for row in csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True) if row]
    names = [cell.strip().lower() for cell in rows[0]]
    (label,) = [i for i, name in enumerate(names) if name in ("label", "class", "target", "y")]
    if any(len(row) != len(names) for row in rows):
        raise ValueError("cells")
    X = [[number_of(cell.strip().encode()) for i, cell in enumerate(row) if i != label] for row in rows[1:]]
    return Table(np.array(X), np.array([row[label].strip() for row in rows[1:]]))


def slow_npz(content: bytes) -> Table:
    """Read X and y of an npz file, by numpy."""
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        return Table(np.array(arrays["X"], dtype=float), np.array(arrays["y"]))


def valid_files(rng: np.random.Generator) -> dict[str, tuple[bytes, Callable[[bytes], Table]]]:
    """Return a small valid file of each kind, and its slow reader."""
    X = np.round(rng.normal(size=(6, 3)), 3)
    y = rng.integers(0, 3, 6)
    text = "".join(
        f"{label} " + " ".join(f"{j + 1}:{v:g}" for j, v in enumerate(row) if v > -1) + "\n"
        for label, row in zip(y, X, strict=True)
    ).encode()
    table = "a,b,y,c\n" + "".join(f"{u},{v},{k},{w}\n" for (u, v, w), k in zip(X.tolist(), y, strict=True))
    buffer = io.BytesIO()
    np.savez(buffer, X=X, y=y)
    return {
        "data.svm": (text, slow_text),
        "data.svm.gz": (gzip.compress(text), slow_gzip),
        "data.csv": (table.encode(), slow_csv),
        "data.npz": (buffer.getvalue(), slow_npz),
    }


def check_file(path: Path, slow: Callable[[bytes], Table]) -> bool:
    """Read a file; True where it is valid. Raises for other errors than DataFileError, and for wrong results."""
    began = time.perf_counter()
    try:
        table = read_data(path)
    except DataFileError:
        return False
    finally:
        if time.perf_counter() - began > SECONDS_PER_FILE:
            raise WrongSuccessError(f"{path} took more than {SECONDS_PER_FILE} s")
    try:
        expected = slow(path.read_bytes())
    except Exception as error:
        raise WrongSuccessError(f"{path} was read, but is wrong: {error!r}") from error
    _compare(path, table, expected)
    return True


def _compare(path: Path, found: Table, expected: Table) -> None:
    assert found.y is not None
    assert expected.y is not None
    values = [_entries(table.X) for table in (found, expected)]
    same = all(np.array_equal(a, b) for a, b in zip(*values, strict=True)) and len(found.y) == len(expected.y)
    if expected.y.dtype.kind == "U" and found.y.dtype.kind != "U":
        same = same and np.array_equal(found.y.astype(float), expected.y.astype(float))
    else:
        same = same and np.array_equal(found.y, expected.y)
    if not same or not np.isfinite(values[0][-1]).all():
        raise WrongSuccessError(f"{path} was read as something that it does not say")


def _entries(X: Any) -> tuple[Any, ...]:
    """Return shape, places and values, without making wide rows dense."""
    if not sparse.issparse(X):
        return X.shape, X
    return X.shape, X.indptr, X.indices, X.data


def check_ranges(path: Path) -> bool:
    """Read a range file; True where it is valid."""
    try:
        scaling = read_ranges(path)
    except DataFileError:
        return False
    if not np.isfinite(scaling.low).all() or not np.isfinite(scaling.high).all():
        raise WrongSuccessError(f"{path} was read with ranges that are not finite")
    return True


def run(count: int, seed: int, folder: Path) -> dict[str, tuple[int, int]]:
    """Read so many damaged files; returns (read, refused) by kind, and keeps a file that is handled wrongly in the
    folder."""
    rng = np.random.default_rng(seed)
    files = valid_files(rng)
    ranges = b"y\n0 1\n1 3\nx\n-1 1\n1 0.5 2\n3 -1 1e3\n"
    tally = {name: [0, 0] for name in [*files, "ranges"]}
    names = list(tally)
    for number in range(count):
        name = names[number % len(names)]
        path = folder / name
        if name == "ranges":
            path.write_bytes(mutate(ranges, rng))
            valid = check_ranges(path)
        else:
            content, slow = files[name]
            path.write_bytes(mutate(content, rng))
            valid = check_file(path, slow)
        tally[name][0 if valid else 1] += 1
    return {name: (read, refused) for name, (read, refused) in tally.items()}


@click.command()
@click.option("--count", default=100_000, show_default=True, help="Number of damaged files.")
@click.option("--seed", default=0, show_default=True)
def data(count: int, seed: int) -> None:
    """Damage data files, and check that each is refused or read correctly."""
    folder = Path(tempfile.mkdtemp(prefix="multimargin-fuzz-"))
    try:
        tally = run(count, seed, folder)
    except Exception:
        click.echo(f"The file that went wrong is in {folder}", err=True)
        raise
    for name, (read, refused) in tally.items():
        click.echo(f"{name:<12} {read:>8} read  {refused:>8} refused")


if __name__ == "__main__":
    data()
