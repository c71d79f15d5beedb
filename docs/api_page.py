"""Writes the page that lists every public name, so that none is forgotten."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

from sklearn.base import BaseEstimator

import multimargin


def kind_of(name: str, value: Any) -> str:
    """Return the heading under which a public name stands."""
    if inspect.isclass(value) and issubclass(value, BaseEstimator):
        return "Estimators"
    if name.endswith("Display"):
        return "Plots"
    if inspect.isclass(value):
        return "Data classes and enumerations"
    return "Functions" if callable(value) else ""


def page() -> str:
    """Return the page as reStructuredText."""
    groups: dict[str, list[str]] = {
        "Estimators": [],
        "Functions": [],
        "Plots": [],
        "Data classes and enumerations": [],
    }
    for name in sorted(multimargin.__all__):
        kind = kind_of(name, getattr(multimargin, name))
        if kind:  # constants such as MACHINES are described in the guide
            groups[kind].append(name)
    lines = ["API reference", "=============", "", ".. currentmodule:: multimargin", ""]
    for kind, names in groups.items():
        lines += [
            kind,
            "-" * len(kind),
            "",
            ".. autosummary::",
            "   :toctree: generated",
            "   :nosignatures:",
            "",
        ]
        lines += [*(f"   {name}" for name in names), ""]
    return "\n".join(lines)


def write(path: Path) -> None:
    """Write the page if it changed: Sphinx rebuilds changed files."""
    text = page()
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
