"""Starts the processes of a fault loop, and continues after a crash or hang."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.faults.library import build

ROOT = Path(__file__).parents[2]
# Crashes and hangs of one call after which it is given up.
ENOUGH = 5


@dataclass
class Tally:
    """The results of the failures of one call."""

    total: int = 0
    tried: int = 0
    good: int = 0
    refused: int = 0
    faults: list[str] = field(default_factory=list)

    def read(self, lines: list[str]) -> int:
        """Take in the lines of a process; return the number of the last try."""
        last = 0
        for line in lines:
            word, _, rest = line.partition(" ")
            if word == "total":
                self.total = int(rest)
            elif word == "try":
                last = int(rest)
                self.tried += 1
            elif word in ("good", "refused"):
                setattr(self, word, getattr(self, word) + 1)
            elif word == "bad":
                self.faults.append(f"request {last}: {rest}")
        return last


def _run(arguments: list[str], timeout: float, **options: object) -> tuple[list[str], str]:
    """Return the lines that a process printed, and the way it crashed, if it did."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as errors:
        streams = {"stdout": out, "stderr": errors, "cwd": ROOT}
        try:
            done = subprocess.run([sys.executable, *arguments], timeout=timeout, check=False, **streams, **options)  # type: ignore[call-overload]
            ended = "" if done.returncode == 0 else f"ended with code {done.returncode}"
        except subprocess.TimeoutExpired:
            ended = "hangs"
        for stream in (out, errors):
            stream.seek(0)
        lines, said = out.read().splitlines(), errors.read().strip().splitlines()
        return lines, f"{ended}: {said[-1] if said else ''}" if ended else ""


def run_loop(name: str, kind: str, in_row: int, count: int, timeout: float) -> Tally:
    """Let requests of a call fail one by one, ``in_row`` at a time and at most ``count`` of them."""
    library = build()
    if library is None:
        raise RuntimeError("No C compiler was found; the fault loops need one.")
    environment = os.environ | {"LD_PRELOAD": str(library)}
    tally = Tally()
    first = 1
    for _ in range(ENOUGH):
        arguments = ["-m", "benchmarks.faults.worker", name, kind, str(first), str(-count), str(in_row)]
        lines, ended = _run(arguments, timeout, env=environment)
        last = tally.read(lines)
        if not ended:
            return tally
        tally.faults.append(f"request {last}: {ended}")
        first = last + 1 + tally.total // count
    return tally


def _limited(megabytes: int) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (megabytes << 20, megabytes << 20))


def run_limits(name: str, count: int, timeout: float) -> Tally:
    """Run a call in processes with less and less memory."""
    tally = Tally(total=count)
    for k in range(count):
        lines, ended = _run(["-m", "benchmarks.faults.limited", name, str(k), str(count)], timeout)
        tally.read([f"try {k}", *lines])
        if ended:
            tally.faults.append(f"limit {k}: {ended}")
    return tally
