"""The course of a solve: points recorded on the way, as arrays; and how solvers in Python record them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from multimargin._typing import FloatArray, IntArray

# As in cpp/core/base/trace.hpp.
MOST_POINTS = 2000


@dataclass(frozen=True, eq=False)
class Trace:
    """What a solver had reached and spent, point by point; all arrays have shape (n_points,).

    A point is a block of the two-level solver, else an iteration. At most about 2,000 are kept, evenly in
    iterations; the first and the last always. The last one is that of the certificate, of all examples.

    Parameters
    ----------
    seconds, iterations, kernel_rows : ndarray
        What was spent: time, steps, kernel rows computed. None of them falls.
    violation, dual : ndarray
        KKT violation of the active examples, and the dual objective, as the solver knows them. Only the last point and
        those of a float64 check are exact. For machines with an exact bias that are solved by rounds they belong to the
        round's own problem, whose optimum tends to that of the whole one.
    primal : ndarray
        The primal objective, an estimate while examples are shrunk; nan unless ``trace="primal"``.
    n_active, n_variables : ndarray of int
        Examples and dual variables that the solver was working on.
    n_free, n_bounded : ndarray of int
        Of all dual variables those between their bounds, and those at the upper one, C_i.
    """

    seconds: FloatArray
    iterations: IntArray
    kernel_rows: IntArray
    violation: FloatArray
    dual: FloatArray
    primal: FloatArray
    n_active: IntArray
    n_variables: IntArray
    n_free: IntArray
    n_bounded: IntArray

    def __len__(self) -> int:
        return len(self.seconds)

    @property
    def gap(self) -> FloatArray:
        """``primal - dual``; nan unless ``trace="primal"``."""
        return np.asarray(self.primal - self.dual)

    @property
    def relative_gap(self) -> FloatArray:
        """The gap divided by the larger of the two objectives."""
        larger = np.maximum(np.maximum(np.abs(self.primal), np.abs(self.dual)), 1e-300)
        with np.errstate(invalid="ignore"):  # a hard margin has no primal point before its end
            return np.asarray(self.gap / larger)

    def to_frame(self) -> Any:
        """Return a pandas data frame, one row for each point."""
        import pandas as pd

        return pd.DataFrame(dict(self.columns()))

    def columns(self) -> dict[str, np.ndarray]:
        """Return the arrays by name."""
        return {name: getattr(self, name) for name in NAMES}

    def ending_at(self, *, violation: float, dual: float, primal: float) -> Trace:
        """Return the trace with these numbers in its last point; without primal objectives it stays without."""
        known = not np.isnan(self.primal).all()
        ends = {"violation": violation, "dual": dual, "primal": primal if known else np.nan}
        return replace(self, **{name: np.append(getattr(self, name)[:-1], value) for name, value in ends.items()})

    def in_units_of(self, unit: float) -> Trace:
        """Return the trace with violations and objectives divided by ``unit``."""
        scaled = {name: getattr(self, name) / unit for name in ("violation", "dual", "primal")}
        return replace(self, **scaled)


NAMES = tuple(entry.name for entry in fields(Trace))
COUNTS = ("iterations", "kernel_rows", "n_active", "n_variables", "n_free", "n_bounded")


class TraceBuilder:
    """Records a trace from Python: keeps the first point, then every second, fourth, ... one as they become many.

    ``wants_next`` says whether the next point would be kept, for points that are dear to compute:

    >>> builder = TraceBuilder()
    >>> for step in range(5):
    ...     if builder.wants_next():
    ...         builder.keep(seconds=0.1 * step, iterations=step, violation=1 / (step + 1), dual=float(step))
    >>> trace = builder.end(seconds=0.5, iterations=5, violation=0.1, dual=5.0)
    >>> trace.iterations
    array([0, 1, 2, 3, 4, 5])
    """

    def __init__(self, most_points: int = MOST_POINTS) -> None:
        self._most = most_points
        self._points: list[dict[str, float]] = []
        self._offered, self._stride = 0, 1

    def wants_next(self) -> bool:
        """Return whether the moment at hand is one to keep; every call counts as one moment."""
        wanted = self._offered % self._stride == 0
        self._offered += 1
        return wanted

    def keep(self, **point: float) -> None:
        """Keep a point. Counts that are left out are 0, objectives and the violation nan."""
        self._points.append(_complete(point))
        if len(self._points) >= self._most:
            self._points = self._points[::2]
            self._stride *= 2

    def extend(self, part: Trace, spent: Mapping[str, float]) -> None:
        """Offer the points of a solve that began when this much had been spent: seconds, iterations, kernel_rows."""
        columns = part.columns()
        for k in range(len(part)):
            if self.wants_next():
                self.keep(**{name: column[k] + spent.get(name, 0) for name, column in columns.items()})

    def end(self, **last: float) -> Trace:
        """Return the trace with its last point, which is always kept."""
        points = [*self._points, _complete(last)]
        arrays: dict[str, Any] = {
            name: np.array([point[name] for point in points], dtype=np.int64 if name in COUNTS else np.float64)
            for name in NAMES
        }
        return Trace(**arrays)


def _complete(point: Mapping[str, float]) -> dict[str, float]:
    unknown = set(point) - set(NAMES)
    if unknown:
        raise TypeError(f"A point of a trace has no {', '.join(sorted(unknown))}; it has {', '.join(NAMES)}.")
    return {name: point.get(name, 0 if name in COUNTS else np.nan) for name in NAMES}


def count_variables(amounts: FloatArray, cap: FloatArray) -> dict[str, int]:
    """Return how many dual variables (n_examples, n_components) are free and bounded, by their names in a point."""
    limit = cap.reshape(-1, *[1] * (amounts.ndim - 1))
    positive = amounts > 0
    at_bound = amounts >= limit
    return {"n_free": int((positive & ~at_bound).sum()), "n_bounded": int((positive & at_bound).sum())}
