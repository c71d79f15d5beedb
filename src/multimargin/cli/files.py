"""The paths of files that commands write."""

from __future__ import annotations

from pathlib import Path

import click

from multimargin.base.files import REMEDY, fault_of


def check_writable(option: str, path: Path) -> None:
    """Raise an error, before any long work, for a path that cannot be written."""
    fault = fault_of(path)
    if fault is not None:
        raise click.ClickException(f"{option} {path} {fault}; {REMEDY}.")
