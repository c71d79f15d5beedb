"""Writing a file so that it is there whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import click


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


def check_writable(option: str, path: Path) -> None:
    """Refuse, before any long work, a path that could not be written."""
    remedy = "give the name of a file in a folder that exists and that you may write to"
    if path.is_dir():
        raise click.ClickException(f"{option} {path} is a folder; {remedy}.")
    probe = path.with_name(f".{path.name}.{os.getpid()}.probe")
    try:
        probe.touch(exist_ok=False)
        probe.unlink()
    except OSError as error:
        raise click.ClickException(f"{option} {path} cannot be written ({error.strerror}); {remedy}.") from error
