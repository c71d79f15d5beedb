"""Results of units on disk, so that a search that was interrupted goes on where it was.

A directory belongs to one search: a fingerprint of data, folds and parameters is written first, and another search is
refused. Each unit is an npz of plain arrays and a json beside it, which is written last and holds the other's digest:
a file that was cut short counts as missing. Nothing is unpickled.
"""

from __future__ import annotations

import dataclasses
import hashlib
import io
import json
import os
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from multimargin.files import whole_file
from multimargin.selection.cells import Outcome, Unit

FORMAT = 1
MARKER = "search.json"
# Parameters that do not change a score: a search may go on with others.
INDIFFERENT = (
    "cache_size", "max_time", "n_jobs", "on_interrupt", "on_progress", "random_state", "trace", "verbose", "warm_start",
)  # fmt: skip


def fingerprint(problem: Any) -> str:
    """Return a digest of all that the scores of a problem depend on, but for C and gamma."""
    digest = hashlib.sha256()
    params = {name: value for name, value in problem.params.items() if name not in INDIFFERENT}
    for part in (problem.X, problem.y, problem.classes, problem.sample_weight, problem.folds, params, problem.scorers):
        for piece in _pieces(part):
            digest.update(len(piece).to_bytes(8, "little"))
            digest.update(piece)
    return digest.hexdigest()


def _pieces(value: Any) -> Iterator[bytes]:
    """Yield bytes that are the same for the same value in every process."""
    if hasattr(value, "indptr"):
        yield f"csr {value.shape}".encode()
        for array in (value.data, value.indices.astype(np.int64), value.indptr.astype(np.int64)):
            yield from _pieces(array)
    elif isinstance(value, np.ndarray) and value.dtype != object:
        yield f"array {value.shape} {value.dtype.str}".encode()
        yield np.ascontiguousarray(value).tobytes()
    elif isinstance(value, dict):
        yield f"dict {len(value)}".encode()
        for key in sorted(value, key=repr):
            yield repr(key).encode()
            yield from _pieces(value[key])
    elif isinstance(value, list | tuple | np.ndarray):
        yield f"list {len(value)}".encode()
        for each in value:
            yield from _pieces(each)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        yield type(value).__qualname__.encode()
        for each in dataclasses.fields(value):
            yield from _pieces(getattr(value, each.name))
    elif hasattr(value, "__qualname__"):
        yield f"{value.__module__}.{value.__qualname__}".encode()
    else:
        plain = repr(value)
        # The default repr tells an address, which is another one in the next process.
        yield (type(value).__qualname__ if " at 0x" in plain else plain).encode()


@dataclass(frozen=True, eq=False)
class ResumeDirectory:
    """Where the units of one search are kept.

    Parameters
    ----------
    path : Path
    fingerprint : str
        Of the search.
    part : str
        The fingerprint of the problem that units belong to: that of the search or, where it tries fewer rows or single
        pairs of classes, another one.
    make : callable
        Makes an outcome of its fields.
    """

    path: Path
    fingerprint: str
    part: str
    make: Callable[..., Outcome]

    @classmethod
    def open(cls, path: str | os.PathLike[str], problem: Any, make: Callable[..., Outcome]) -> ResumeDirectory:
        """Return the directory, made if there is none; refuse one that belongs to something else."""
        own = fingerprint(problem)
        directory = cls(Path(path), own, own, make)
        if directory.path.exists() and not directory.path.is_dir():
            raise ValueError(f"resume={str(path)!r} is a file; give a directory, which is made if there is none.")
        directory.path.mkdir(parents=True, exist_ok=True)
        if directory.is_ours():
            return directory
        if (directory.path / MARKER).exists():
            raise ValueError(
                f"resume={str(path)!r} holds a search on other data, folds or parameters; give the same X, y, cv and "
                "parameters as then, or another directory."
            )
        if any(directory.path.iterdir()):
            raise ValueError(
                f"resume={str(path)!r} is not empty and holds no search; give an empty directory or a new name."
            )
        text = json.dumps({"format": FORMAT, "fingerprint": directory.fingerprint})
        _write(directory.path / MARKER, text.encode())
        return directory

    def at(self, problem: Any) -> ResumeDirectory:
        """Return the directory for the units of a problem that is part of the search."""
        return dataclasses.replace(self, part=fingerprint(problem))

    def is_ours(self) -> bool:
        """Whether the directory is here and belongs to this search; on another machine it may not be."""
        try:
            told = json.loads((self.path / MARKER).read_text())
        except (OSError, ValueError):
            return False
        return bool(told == {"format": FORMAT, "fingerprint": self.fingerprint})

    def save(self, outcome: Outcome) -> None:
        """Write a finished unit; one that was stopped is left to be done again."""
        if np.asarray(outcome.stopped).any():
            return
        arrays, plain = _split(outcome)
        buffer = io.BytesIO()
        save: Any = np.savez  # its annotations take the names of arrays for those of options
        save(buffer, **arrays)
        data = buffer.getvalue()
        place = self._place(float(outcome.gamma), int(outcome.fold), outcome.Cs)
        plain["digest"] = hashlib.sha256(data).hexdigest()
        _write(place.with_suffix(".npz"), data)
        _write(place.with_suffix(".json"), json.dumps(plain).encode())

    def load(self, unit: Unit) -> Outcome | None:
        """Return what was kept for a unit, or None."""
        place = self._place(unit.gamma, unit.fold, unit.Cs)
        try:
            plain = json.loads(place.with_suffix(".json").read_text())
            data = place.with_suffix(".npz").read_bytes()
            if hashlib.sha256(data).hexdigest() != plain.pop("digest"):
                return None
            with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
                return self.make(**_join(dict(arrays), plain))
        except (OSError, ValueError, KeyError, zipfile.BadZipFile):
            return None

    def _place(self, gamma: float, fold: int, Cs: Any) -> Path:
        values = np.ascontiguousarray(Cs, dtype=np.float64)
        digest = hashlib.sha256(self.part.encode() + np.float64(gamma).tobytes() + values.tobytes()).hexdigest()
        return self.path / f"unit-{fold}-{digest[:24]}"


def _split(outcome: Any) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Return the arrays of an outcome by name, and its other fields; a dict of arrays is spelled out."""
    arrays: dict[str, np.ndarray] = {}
    plain: dict[str, Any] = {"names": {}, "values": {}}
    for each in dataclasses.fields(outcome):
        value = getattr(outcome, each.name)
        if isinstance(value, np.ndarray):
            arrays[each.name] = value
        elif isinstance(value, dict):
            plain["names"][each.name] = list(value)
            arrays |= {f"{each.name}/{index}": np.asarray(array) for index, array in enumerate(value.values())}
        else:
            plain["values"][each.name] = value.item() if isinstance(value, np.generic) else value
    return arrays, plain


def _join(arrays: dict[str, np.ndarray], plain: dict[str, Any]) -> dict[str, Any]:
    fields: dict[str, Any] = dict(plain["values"])
    for field, names in plain["names"].items():
        fields[field] = {name: arrays.pop(f"{field}/{index}") for index, name in enumerate(names)}
    return fields | arrays


def _write(path: Path, data: bytes) -> None:
    """Write under another name first, so that a reader finds the whole file or none."""
    with whole_file(path) as handle:
        handle.write(data)
