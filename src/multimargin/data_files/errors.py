"""The error of data files: the message names file, line and fault."""

from __future__ import annotations

from pathlib import Path

SHOWN = 40


class DataFileError(ValueError):
    """A data file that cannot be read or holds no data; the text is "file:line: what is wrong"."""


class MissingLabelError(DataFileError):
    """A data file without the column that was named as the label's."""


def fault(path: Path, what: str, line: int | None = None) -> DataFileError:
    """Return the error of a file, at a line counted from 1."""
    return DataFileError(f"{path}: {what}" if line is None else f"{path}:{line}: {what}")


def shown(token: bytes | str) -> str:
    """Return a piece of a file between quotes, shortened and without control characters."""
    text = token.decode("utf-8", errors="backslashreplace") if isinstance(token, bytes) else token
    return repr(text if len(text) <= SHOWN else f"{text[:SHOWN]}...")
