"""Errors of model files: one exception for users, and one for internal use."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class ModelFileError(ValueError):
    """A model file that is damaged, malicious, or of an unknown kind; the message names file and fault."""


class FaultError(Exception):
    """A fault of a file's contents, raised where the name of the file is not known."""


def require(holds: bool, fault: str) -> None:
    """Raise a fault unless the condition holds."""
    if not holds:
        raise FaultError(fault)


@contextmanager
def faults_of(path: Path) -> Iterator[None]:
    """Turn faults into a ModelFileError that names the file."""
    try:
        yield
    except FaultError as fault:
        raise ModelFileError(f"{path}: {fault}; nothing was loaded.") from None
    except RecursionError:
        raise ModelFileError(f"{path}: it is nested too deeply; nothing was loaded.") from None
