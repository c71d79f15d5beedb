"""Shared by all displays: new axes, and the check of choices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def choice_of(name: str, value: Any, choices: Mapping[str, str]) -> str:
    """Return the value if it is one of the choices."""
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{name}={value!r} is not allowed; choose one of {', '.join(map(repr, choices))}.")
    return value


def new_axes(display: str) -> Any:
    """Return the axes of a new figure for a display of this name."""
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError(
            f"{display} needs matplotlib, which is not installed; run pip install 'multimargin[plots]'."
        ) from error
    return pyplot.subplots()[1]
