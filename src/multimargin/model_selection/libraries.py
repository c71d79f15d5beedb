"""Which code belongs to an installed library, which is known by its version, and which is the user's own."""

from __future__ import annotations

import hashlib
import importlib.metadata
import pickle
import site
import sys
import sysconfig
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from multimargin._core import __version__

OWN_NAME = __name__.partition(".")[0]
PYTHON = f"{sys.implementation.cache_tag} {sys.version_info.major}.{sys.version_info.minor}.{sys.version_info.micro}"


def module_of(value: Any, name: str) -> str:
    """Return the name of the module that a function, a class or a compiled object is from."""
    if isinstance(value, np.ufunc):  # their module is unknown, and other modules import them
        return next((module for module in ("numpy", "scipy.special") if find(module, name) is value), "")
    module = getattr(value, "__module__", None)
    return module if isinstance(module, str) else str(pickle.whichmodule(value, name))  # type: ignore[attr-defined]


def find(module: str, name: str) -> Any:
    """Return what a module has under a name, which may have dots; None if nothing."""
    found = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


@cache
def library_version(module: str) -> str | None:
    """Return the version of the library that a module belongs to; None for the user's own modules."""
    package = module.partition(".")[0]
    if package == OWN_NAME:
        return __version__
    if package in sys.stdlib_module_names:
        return PYTHON
    file = getattr(sys.modules.get(module), "__file__", None)
    if file is None or not any(Path(file).is_relative_to(folder) for folder in _library_folders()):
        return None
    version = getattr(sys.modules.get(package), "__version__", None)
    if isinstance(version, str):
        return version
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def file_digest(module: str) -> bytes:
    """Return the digest of a module's file; nothing where it has none, as in a notebook."""
    file = getattr(sys.modules.get(module), "__file__", None)
    # The file of a module in Python need not be as it was loaded: its functions are read one by one instead.
    if not isinstance(file, str) or file.endswith((".py", ".pyc")) or not Path(file).is_file():
        return b""
    return hashlib.sha256(Path(file).read_bytes()).digest()


@cache
def _library_folders() -> tuple[Path, ...]:
    names = [sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), site.getusersitepackages()]
    given = {Path(name) for name in (*names, *site.getsitepackages())}
    return tuple(given | {folder.resolve() for folder in given})
