"""Our numbers compared with a paper's, as Markdown and as rows for CSV."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Entry:
    """One of our numbers and the paper's.

    Parameters
    ----------
    row, column : str
        Its place in the table: mostly a data set and a machine.
    ours : float or None
        None where nothing was measured.
    paper : float, str or None
        A str where the paper prints words or a bound; None where it prints nothing.
    kind : {"points", "count", "seconds", "log2", "number"}
        How it is formatted and compared: counts and seconds by a ratio, all others by a difference.
    limited : bool
        Whether it reached a limit: printed as "> n".
    quantity : str
        What it is, for the CSV file; the kind unless given.
    """

    row: str
    column: str
    ours: float | None
    paper: float | str | None = None
    kind: str = "points"
    limited: bool = False
    quantity: str = ""

    @property
    def difference(self) -> float | None:
        """Ours minus the paper's, or ours divided by the paper's for counts and seconds."""
        if self.ours is None or self.paper is None or isinstance(self.paper, str) or math.isnan(self.ours):
            return None
        if self.kind in ("count", "seconds"):
            return self.ours / self.paper if self.paper else None
        return self.ours - self.paper

    def text(self) -> str:
        """Ours / the paper's (the difference)."""
        if self.ours is None:
            return "-" if self.paper is None else f"- / {self._written(self.paper)}"
        ours = f"{'> ' if self.limited else ''}{self._written(self.ours)}"
        if self.paper is None:
            return ours
        return f"{ours} / {self._written(self.paper)}{self._difference_text()}"

    def _written(self, value: float | str) -> str:
        return value if isinstance(value, str) else WRITTEN[self.kind](value)

    def _difference_text(self) -> str:
        difference = self.difference
        if difference is None or (self.limited and difference < 1):
            return ""
        if self.kind in ("count", "seconds"):
            return f" ({difference:.2g}x)"
        return f" ({difference:+.2f})" if self.kind != "log2" else f" ({difference:+g})"

    def as_row(self) -> dict[str, Any]:
        return {
            "row": self.row,
            "column": self.column,
            "quantity": self.quantity or self.kind,
            "ours": self.ours,
            "paper": self.paper,
            "difference_or_ratio": self.difference,
            "limited": self.limited,
        }


WRITTEN: dict[str, Callable[[float], str]] = {
    "points": lambda value: f"{value:.2f}",
    "count": lambda value: f"{value:,.0f}",
    "seconds": lambda value: f"{value:.3g}",
    "log2": lambda value: f"2^{value:g}",
    "number": lambda value: f"{value:.4g}",
}


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return a table."""
    return [f"| {' | '.join(line)} |" for line in (header, ["---"] * len(header), *rows)]


def pivot(entries: Sequence[Entry], corner: str = "data") -> list[str]:
    """Return entries as a table, rows and columns in the order in which they come first."""
    rows = list(dict.fromkeys(entry.row for entry in entries))
    columns = list(dict.fromkeys(entry.column for entry in entries))
    found = {(entry.row, entry.column): entry.text() for entry in entries}
    cells = [[row, *(found.get((row, column), "-") for column in columns)] for row in rows]
    return markdown([corner, *columns], cells)


def worst(entries: Iterable[Entry]) -> Entry | None:
    """Return the entry that differs most from the paper's, of those that can be compared."""
    known = [entry for entry in entries if entry.difference is not None]
    return max(known, key=lambda entry: abs(entry.difference or 0.0)) if known else None
