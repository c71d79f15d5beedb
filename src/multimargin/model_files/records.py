"""Records of a model file: written into a document and its arrays, validated when they are read."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from multimargin._typing import FloatArray
from multimargin.model_files.container import NAMES
from multimargin.model_files.errors import require

LARGEST_INTEGER = 2**63 - 1


class Writer:
    """Collects the arrays of a document under the names of the records that hold them."""

    def __init__(self) -> None:
        self.arrays: dict[str, np.ndarray] = {}

    def put(self, name: str, array: Any) -> str:
        """Keep an array of numbers; return the name by which the document refers to it."""
        values = np.asarray(array)
        if values.dtype.newbyteorder("<") not in NAMES:
            raise TypeError(
                f"{name} has the dtype {values.dtype}, which a model file does not hold; use numbers of up to 64 bits."
            )
        self.arrays[name] = values
        return name


class Record:
    """One object of the document. Each method returns a field of the requested kind, or raises a fault."""

    def __init__(self, fields: Any, arrays: dict[str, np.ndarray], name: str = "model") -> None:
        require(isinstance(fields, dict), f"its record {name!r} is missing")
        self.fields: dict[str, Any] = fields
        self.arrays = arrays
        self.name = name

    def raw(self, field: str) -> Any:
        """Return a field as it is; it must be there."""
        require(field in self.fields, f"its record {self.name!r} has no {field!r}")
        return self.fields[field]

    def _check(self, holds: bool, field: str, wanted: str) -> None:
        require(holds, f"{field!r} of its record {self.name!r} is not {wanted}")

    def child(self, field: str) -> Record:
        return Record(self.raw(field), self.arrays, f"{self.name}.{field}")

    def children(self, field: str) -> Iterator[Record]:
        values = self.raw(field)
        self._check(isinstance(values, list), field, "a list")
        for number, value in enumerate(values):
            yield Record(value, self.arrays, f"{self.name}.{field}[{number}]")

    def flag(self, field: str) -> bool:
        value = self.raw(field)
        self._check(isinstance(value, bool), field, "true or false")
        return bool(value)

    def text(self, field: str, choices: tuple[str, ...] | None = None) -> str:
        value = self.raw(field)
        self._check(isinstance(value, str), field, "a text")
        self._check(choices is None or value in choices, field, f"one of {choices}")
        return str(value)

    def integer(self, field: str, low: int = 0, high: int = LARGEST_INTEGER) -> int:
        value = self.raw(field)
        good = isinstance(value, int) and not isinstance(value, bool) and low <= value <= high
        self._check(good, field, f"an integer from {low} to {high}")
        return int(value)

    def number(self, field: str, *, low: float = -math.inf, finite: bool = True) -> float:
        """Return a float; without ``finite`` infinity and nan are allowed, nan for any ``low``."""
        value = self.raw(field)
        if isinstance(value, dict) and not finite:
            self._check(list(value) == ["float"] and value["float"] in ("inf", "-inf", "nan"), field, "a number")
            value = float(value["float"])
        self._check(isinstance(value, int | float) and not isinstance(value, bool), field, "a number")
        self._check(not isinstance(value, int) or abs(value) <= LARGEST_INTEGER, field, "a number of this size")
        self._check(not finite or math.isfinite(value), field, "a finite number")
        self._check(math.isnan(value) or value >= low, field, f"a number >= {low:g}")
        return float(value)

    def array(
        self, field: str, kinds: str, shape: tuple[int, ...] | None = None, *, low: float = -math.inf
    ) -> np.ndarray:
        """Return an array whose dtype.kind is one of ``kinds``, of this shape, finite and at least ``low``."""
        name = self.text(field)
        require(name in self.arrays, f"its array {name[:60]!r} is missing")
        found = self.arrays[name]
        self._check(found.dtype.kind in kinds, field, "an array of the right type")
        self._check(shape is None or found.shape == shape, field, f"an array of shape {shape}")
        self._check(bool(np.isfinite(found).all()), field, "an array of finite numbers")
        self._check(not found.size or found.min() >= low, field, f"an array of numbers >= {low:g}")
        return found

    def floats(self, field: str, shape: tuple[int, ...], *, low: float = -math.inf) -> FloatArray:
        found = self.array(field, "f", shape, low=low)
        self._check(found.dtype == np.float64, field, "an array of float64")
        return found

    def indices(self, field: str, high: int, *, low: int = 0) -> np.ndarray:
        """Return a vector of integers from ``low`` to below ``high``."""
        found = self.array(field, "i", low=low)
        self._check(
            found.ndim == 1 and (not found.size or bool(found.max() < high)), field, f"within {low}..{high - 1}"
        )
        return found


def tagged(value: float) -> Any:
    """Return a float as JSON can hold it; ``Record.number`` reads it."""
    number = float(value)
    return number if math.isfinite(number) else {"float": repr(number)}
