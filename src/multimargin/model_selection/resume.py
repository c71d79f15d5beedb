"""Results of units on disk, so that an interrupted search can resume.

A directory belongs to one search: a fingerprint of data, folds, parameters and versions is written first, and another
search is refused. Each unit is an npz of plain arrays and a json beside it, which is written last and holds the other's
digest and its own. A file with any fault, one flipped bit included, counts as missing. Nothing is unpickled.
"""

from __future__ import annotations

import dataclasses
import hashlib
import io
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from multimargin._core import __version__
from multimargin.base.files import whole_file
from multimargin.model_selection.fingerprints import OpaqueError, digest_of
from multimargin.model_selection.search_table import Unit, UnitScores, key_of

FORMAT = 2
MARKER = "search.json"
UNIT = "unit-"
# Parameters that do not change a score: a search may resume with other values.
INDIFFERENT = (
    "cache_size", "max_time", "n_jobs", "on_interrupt", "on_progress", "random_state", "trace", "verbose", "warm_start",
)  # fmt: skip


def fingerprint(problem: Any) -> str:
    """Return a digest of all that the scores of a problem depend on, but for C and gamma."""
    params = {name: value for name, value in problem.params.items() if name not in INDIFFERENT}
    names = ("X", "y", "classes", "sample_weight", "folds")
    parts = {name: getattr(problem, name) for name in names} | params | {"scoring": problem.scorers}
    digests = {"version": __version__}
    for name, value in parts.items():
        try:
            digests[name] = digest_of(value)
        except OpaqueError as error:
            raise ValueError(
                f"resume= cannot tell whether a search is the one before: {name} depends on {error}; give a function "
                "that takes all it needs as arguments, bound by functools.partial, or leave resume out."
            ) from error
    return hashlib.sha256(json.dumps(digests, sort_keys=True).encode()).hexdigest()


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
    make: Callable[..., UnitScores]

    @classmethod
    def open(cls, path: str | os.PathLike[str], problem: Any, make: Callable[..., UnitScores]) -> ResumeDirectory:
        """Return the directory, created if needed; refuse one that belongs to something else."""
        own = fingerprint(problem)
        directory = cls(Path(path), own, own, make)
        if directory.path.exists() and not directory.path.is_dir():
            raise ValueError(f"resume={str(path)!r} is a file; give a directory; it is created if needed.")
        directory.path.mkdir(parents=True, exist_ok=True)
        marker = directory._read_marker()
        if marker is None:  # none, or one that is damaged: units are bound to the fingerprint by their names, too
            if not all(_is_own_name(each.name) for each in directory.path.iterdir()):
                raise ValueError(
                    f"resume={str(path)!r} is not empty and holds no search; give an empty directory or a new name."
                )
            _write(directory.path / MARKER, _sealed(directory._marker))
        elif (marker.get("format"), marker.get("version")) != (FORMAT, __version__):
            raise ValueError(
                f"resume={str(path)!r} holds a search of multimargin {marker.get('version', 'before this format')}, "
                f"this is {__version__}; resume with that version, or give another directory."
            )
        elif marker != directory._marker:
            raise ValueError(
                f"resume={str(path)!r} holds a search on other data, folds or parameters; give the same X, y, cv and "
                "parameters (functions with the same code and state) as then, or another directory."
            )
        return directory

    def at(self, problem: Any) -> ResumeDirectory:
        """Return the directory for the units of a problem that is part of the search."""
        return dataclasses.replace(self, part=fingerprint(problem))

    @property
    def _marker(self) -> dict[str, Any]:
        return {"format": FORMAT, "version": __version__, "fingerprint": self.fingerprint}

    def _read_marker(self) -> dict[str, Any] | None:
        try:
            data = (self.path / MARKER).read_bytes()
            content = _unsealed(data)
            if content is None and json.loads(data).keys() == {"format", "fingerprint"}:  # of the first format
                return {"format": 1}
        except Exception:  # any kind of damage
            return None
        return content

    def is_ours(self) -> bool:
        """Whether the directory is here and belongs to this search; on another machine it may not be."""
        return self._read_marker() == self._marker

    def save(self, outcome: UnitScores) -> None:
        """Write a finished unit; one that was stopped is left to be done again."""
        if np.asarray(outcome.stopped).any():
            return
        arrays, plain = _split(outcome)
        buffer = io.BytesIO()
        save: Any = np.savez  # its annotations take the names of arrays for those of options
        save(buffer, **arrays)
        data = buffer.getvalue()
        place = self._place(float(outcome.gamma), int(outcome.fold), outcome.Cs)
        plain |= {"unit": place.name, "digest": hashlib.sha256(data).hexdigest()}
        _write(place.with_suffix(".npz"), data)
        _write(place.with_suffix(".json"), _sealed(plain))

    def load(self, unit: Unit) -> UnitScores | None:
        """Return what was kept for a unit, or None."""
        place = self._place(unit.gamma, unit.fold, unit.Cs)
        try:
            plain = _unsealed(place.with_suffix(".json").read_bytes())
            data = place.with_suffix(".npz").read_bytes()
            digest = hashlib.sha256(data).hexdigest()
            if plain is None or (plain["unit"], plain["digest"]) != (place.name, digest):
                return None
            with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
                outcome = self.make(**_join(dict(arrays), plain))
            return outcome if _is_sound(outcome, unit) else None
        except Exception:  # there is no fault for which the unit could not be computed again
            return None

    def _place(self, gamma: float, fold: int, Cs: Any) -> Path:
        values = np.ascontiguousarray(Cs, dtype=np.float64)
        digest = hashlib.sha256(self.part.encode() + np.float64(gamma).tobytes() + values.tobytes()).hexdigest()
        return self.path / f"{UNIT}{fold}-{digest[:24]}"


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


def _is_sound(outcome: Any, unit: Unit) -> bool:
    """Whether an outcome is one of this unit, with fields of the right kind and length."""
    columns = {name: getattr(outcome, name) for name in ("n_support", "n_iter", "fit_seconds", "score_seconds")}
    columns |= {name: getattr(outcome, name) for name in ("converged", "stopped")}
    kinds = {name: "i" if name.startswith("n_") else "f" if name.endswith("seconds") else "b" for name in columns}
    columns |= {("score", name): values for name, values in outcome.scores.items()}
    return (
        key_of(outcome) == unit.key
        and bool(outcome.scores)
        and all(values.shape == unit.Cs.shape for values in columns.values())
        and all(values.dtype.kind == kinds.get(name, "f") for name, values in columns.items())
        and all((columns[name] >= 0).all() for name in kinds)  # not so for nan
        and not outcome.stopped.any()
    )


def _is_own_name(name: str) -> bool:
    """Whether a file may be one of ours, or what is left of one whose writer was killed."""
    return name.removeprefix(".").startswith((UNIT, MARKER))


def _sealed(content: dict[str, Any]) -> bytes:
    """Return content as JSON with its digest."""
    return json.dumps({"sha256": _seal(content), "content": content}).encode()


def _unsealed(data: bytes) -> dict[str, Any] | None:
    """Return the content; None if its digest does not match."""
    sealed = json.loads(data)
    if (
        not isinstance(sealed, dict)
        or sealed.keys() != {"sha256", "content"}
        or sealed["sha256"] != _seal(sealed["content"])
    ):
        return None
    return dict(sealed["content"])


def _seal(content: Any) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _write(path: Path, data: bytes) -> None:
    """Write so that a reader finds the whole file or none."""
    with whole_file(path) as handle:
        handle.write(data)
