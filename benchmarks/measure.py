"""Timing two things side by side on a machine that others use too."""

from __future__ import annotations

import json
import os
import platform
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from multimargin import _core
from multimargin.base.resources import n_threads

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


def seconds_once(run: Callable[[], Any]) -> float:
    """Return wall seconds of a single run."""
    begin = time.perf_counter()
    run()
    return time.perf_counter() - begin


@dataclass(frozen=True)
class Pair:
    """Medians of two interleaved measurements."""

    ours: float
    theirs: float

    @property
    def ratio(self) -> float:
        return self.ours / self.theirs


def interleaved(ours: Callable[[], Any], theirs: Callable[[], Any], rounds: int) -> Pair:
    """Measure both in turn, so that noise affects both."""
    times = in_turn({"ours": ours, "theirs": theirs}, rounds)
    return Pair(times["ours"], times["theirs"])


def in_turn(
    runs: Mapping[str, Callable[[], Any]], rounds: int, measure: Callable[[Callable[[], Any]], float] = seconds_of
) -> dict[str, float]:
    """Measure all of them one after the other, some rounds of that; return the medians."""
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            times[name].append(measure(run))
    return {name: statistics.median(values) for name, values in times.items()}


def load() -> float:
    """Return how many processes were running in the last minute, on the average; nan where it is not available."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")


def processor() -> str:
    """Return the processor's name, where it is known."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def surroundings() -> dict[str, Any]:
    """Return the conditions of the measurement."""
    packages = {name: version(name) for name in ("multimargin", "numpy", "scipy", "scikit-learn")}
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "load": load(),
        "threads": n_threads(),
        "instruction_set": _core.simd_targets()[-1],
        "processor": processor(),
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
