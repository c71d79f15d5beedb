"""How much of the memory the rows of a file may take, which a small compressed file does not show."""

from __future__ import annotations

from pathlib import Path

from multimargin.base.resources import MEGABYTE, available_bytes, exceeds_room
from multimargin.data_files.errors import DataFileError, fault


class Room:
    """Counts what was read of a file, and refuses what would be too much before it is there."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._taken = 0
        self._asked_at = 0

    def take(self, n_bytes: int) -> None:
        """Note that so many bytes will be kept, together with what was taken before."""
        self._taken += n_bytes
        if self._taken < self._asked_at:
            return
        self._asked_at = self._taken + MEGABYTE  # what is available changes slowly
        if exceeds_room(self._taken):
            raise self.fault()

    def fault(self) -> DataFileError:
        """Return what is told of the file."""
        taken, available = self._taken / MEGABYTE, available_bytes() / MEGABYTE
        return fault(
            self._path,
            f"holds rows that take at least {taken:.0f} MB, more than half of the {available:.0f} MB that are "
            "available; give fewer rows or columns",
        )
