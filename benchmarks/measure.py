"""Timing two things side by side on a machine that others use too."""

from __future__ import annotations

import json
import os
import platform
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from multimargin import _core
from multimargin.resources import n_threads

LEAST_SECONDS = 0.3


def seconds_of(run: Callable[[], Any]) -> float:
    """Return wall seconds of one run, repeated until at least 0.3 s have passed."""
    repeats = 0
    begin = time.perf_counter()
    while True:
        run()
        repeats += 1
        passed = time.perf_counter() - begin
        if passed >= LEAST_SECONDS:
            return passed / repeats


@dataclass(frozen=True)
class Pair:
    """Medians of two interleaved measurements."""

    ours: float
    theirs: float

    @property
    def ratio(self) -> float:
        return self.ours / self.theirs


def interleaved(ours: Callable[[], Any], theirs: Callable[[], Any], rounds: int) -> Pair:
    """Measure both in turn, so that a noisy moment hits both."""
    mine, other = [], []
    for _ in range(rounds):
        mine.append(seconds_of(ours))
        other.append(seconds_of(theirs))
    return Pair(statistics.median(mine), statistics.median(other))


def surroundings() -> dict[str, Any]:
    """Return what a reader needs to judge the numbers."""
    packages = {name: version(name) for name in ("multimargin", "numpy", "scipy", "scikit-learn")}
    return {
        "load": os.getloadavg()[0],
        "threads": n_threads(),
        "instruction_set": _core.simd_targets()[-1],
        "processor": platform.processor() or platform.machine(),
        "python": platform.python_version(),
        **packages,
    }


def write_report(name: str, out: str | None, table: list[str], rows: list[dict[str, Any]]) -> None:
    """Print the table; with ``out`` also write NAME.md and NAME.json there."""
    print("\n".join(table))
    if out is None:
        return
    directory = Path(out)
    directory.mkdir(parents=True, exist_ok=True)
    (directory / f"{name}.md").write_text("\n".join(table) + "\n")
    (directory / f"{name}.json").write_text(json.dumps({"surroundings": surroundings(), "rows": rows}, indent=1))


def geometric_mean(values: list[float]) -> float:
    return statistics.geometric_mean(values) if values else float("nan")
