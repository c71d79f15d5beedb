"""``multimargin info``: what a bug report needs."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

import click

from multimargin import __version__, _core
from multimargin.resources import MEGABYTE, available_bytes, cache_bytes, n_threads

PACKAGES = ("scikit-learn", "numpy", "scipy", "joblib", "matplotlib")


def facts() -> dict[str, str]:
    """Return what is known of this installation, in the order of display."""
    targets = _core.simd_targets()
    found = {
        "multimargin": __version__,
        "instruction set": f"{targets[-1]} (of {', '.join(targets)})",
        "threads": str(n_threads()),
        "available memory": f"{available_bytes() // MEGABYTE:,} MB",
        "cache_size='auto'": f"{cache_bytes('auto') // MEGABYTE:,} MB",
        "Python": f"{platform.python_version()} ({platform.python_implementation()})",
        "platform": platform.platform(),
    }
    return found | {package: _version_of(package) for package in PACKAGES}


def _version_of(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


@click.command()
def info() -> None:
    """Show versions, instruction set, threads and memory: paste it into a bug report."""
    known = facts()
    width = max(map(len, known))
    for name, value in known.items():
        click.echo(f"{name:<{width}}  {value}")
