"""Writing a file so that it is there whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """Yield a file under a temporary name in the same folder; it gets its own name when all went well."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("xb") as handle:
            yield handle
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def check_path(path: Any) -> Path:
    """Return the path of a file that can be written; refuse others before any long work."""
    remedy = "give the name of a file in a folder that exists and that you may write to"
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"path={path!r} is not a path; {remedy}.")
    checked = Path(path)
    if checked.is_dir() or not checked.name:
        raise ValueError(f"path={str(path)!r} is a folder; {remedy}.")
    if not checked.parent.is_dir():
        raise ValueError(f"path={str(path)!r} is in a folder that does not exist; {remedy}.")
    if not os.access(checked.parent, os.W_OK):
        raise ValueError(f"path={str(path)!r} is in a folder that cannot be written; {remedy}.")
    return checked


def write_text(path: Path, text: str) -> None:
    """Write text as UTF-8, whole or not at all; what UTF-8 cannot hold (lone surrogates) is written as \\udXXX."""
    with whole_file(path) as handle:
        handle.write(text.encode("utf-8", errors="backslashreplace"))
