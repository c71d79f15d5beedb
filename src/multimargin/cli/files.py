"""The paths of files that commands write."""

from __future__ import annotations

import os
from pathlib import Path

import click


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
