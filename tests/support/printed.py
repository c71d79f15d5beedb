"""Compares what a page of the documentation shows with what was printed."""

from __future__ import annotations

import re


def matches(shown: list[str], printed: str) -> bool:
    """Compare; "..." stands for anything, on a line of its own for any lines."""
    pattern = "".join(
        r"(?:.*\n)*" if line == "..." else re.escape(line).replace(r"\.\.\.", ".*") + "\n" for line in shown
    )
    return re.fullmatch(pattern, printed) is not None
