"""A limit on the memory that the rows of a file take: a small compressed file may hold huge ones."""

from __future__ import annotations

from pathlib import Path

from multimargin.base.resources import MEGABYTE, available_bytes, exceeds_room
from multimargin.data_files.errors import DataFileError, fault


class Room:
    """Counts the bytes read from a file, and raises an error before they exceed the limit."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._taken = 0
        self._asked_at = 0

    def take(self, n_bytes: int) -> None:
        """Add so many bytes to those that are kept."""
        self._taken += n_bytes
        if self._taken < self._asked_at:
            return
        self._asked_at = self._taken + MEGABYTE  # what is available changes slowly
        if exceeds_room(self._taken):
            raise self.fault()

    def fault(self) -> DataFileError:
        """Return the message about the file."""
        taken, available = self._taken / MEGABYTE, available_bytes() / MEGABYTE
        return fault(
            self._path,
            f"holds rows that take at least {taken:.0f} MB, more than half of the {available:.0f} MB that are "
            "available; give fewer rows or columns",
        )
