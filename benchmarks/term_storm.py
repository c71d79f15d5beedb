"""SIGTERM at random moments of every public call: the process ends by it, and a file is the old one or the new one.

`python -m benchmarks.interrupt_storm --signal term` runs it. Each call is made again and again in a process forked for
it; a process that hangs, or ends by another signal, is an error.
"""

from __future__ import annotations

import os
import signal
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

from benchmarks.interrupt_storm import Case, files, fits, reads, streams

SECONDS_TO_END = 10.0


def run_until_killed(case: Case) -> None:
    """The forked process: repeats the call until a signal comes."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        while True:
            case.call(case.make())
    except BaseException as error:
        print(f"{case.name}: {type(error).__name__}: {error}", flush=True)
    finally:
        os._exit(1)


def kill_after(case: Case, seconds: float) -> str:
    """Return the fault of a process that gets SIGTERM so long after its start, or ''."""
    child = os.fork()
    if child == 0:
        run_until_killed(case)
    time.sleep(seconds)
    os.kill(child, signal.SIGTERM)
    given_up = time.monotonic() + SECONDS_TO_END
    while time.monotonic() < given_up:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            code = os.waitstatus_to_exitcode(status)
            return "" if code == -signal.SIGTERM else f"ended with {code}"
        time.sleep(0.002)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "hangs"


def term_storm(count: int, seed: int = 0) -> tuple[int, list[str]]:
    """Return how many processes were asked to end and what broke, all calls take turns."""
    rng = np.random.default_rng(seed)
    broken: list[str] = []
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as directory:
        warnings.simplefilter("ignore")
        written = [*files(Path(directory))]
        cases = [*fits(), *streams(), *reads(), *written]
        chosen = [cases[i] for i in rng.permutation(len(cases))]
        for number in range(count):
            case = chosen[number % len(chosen)]
            if case in written:
                case.make()  # so that there is a file, however early the signal comes
            what = kill_after(case, float(rng.uniform(0.0, 0.08)))
            if not what and case in written:
                what = whole(case, Path(directory) / "model")
            broken += [f"{case.name}: {what}"] if what else []
    return count, broken


def whole(case: Case, path: Path) -> str:
    """Return what is wrong with the file that a killed process was writing."""
    for each in path.parent.glob("*.tmp"):
        each.unlink()  # a killed process cannot remove it
    try:
        return case.check(path) if path.exists() else ""  # between two of its files the call had none
    except Exception as error:
        return f"left a file that is broken: {type(error).__name__}: {error}"
