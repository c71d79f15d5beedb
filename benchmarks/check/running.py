"""Fits and checks one case, and many of them in processes that may die."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field

import numpy as np

from benchmarks.check.cases import make_case
from benchmarks.check.judging import judge
from multimargin import verify

SLOW = 2.0  # seconds of processor time of a fit
PATIENCE = 30.0  # seconds of the clock for a case, on a busy machine too; then its process is ended
CHUNK = 200  # cases of a process


@dataclass(frozen=True)
class Result:
    """The result of a case."""

    index: int
    case: str
    outcome: str  # a stop reason, refused, died, hung, or an exception's name
    seconds: float = 0.0
    complaints: list[str] = field(default_factory=list)

    @property
    def wrong(self) -> bool:
        return bool(self.complaints)

    def text(self) -> str:
        lines = [f"{self.case} [{self.outcome}, {self.seconds:.2f} s]", *(f"    {line}" for line in self.complaints)]
        return "\n".join(lines)


def check_case(seed: int, index: int, extremes: float) -> Result:
    """Fit one case and check its certificate."""
    with np.errstate(all="ignore"):
        case = make_case(seed, index, extremes)
    clf, X = case.estimator(), case.stored()
    begin = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            clf.fit(X, case.y, sample_weight=case.weight)
        except ValueError as error:
            complaints = [] if case.extreme else [f"refused: {error}"]
            return Result(index, str(case), "refused", time.process_time() - begin, complaints)
        except Exception as error:  # any error is a finding
            return Result(index, str(case), type(error).__name__, 0.0, [f"{type(error).__name__}: {error}"])
        seconds = time.process_time() - begin
        with np.errstate(all="ignore"):
            complaints = judge(clf, case)
        again = verify(clf, X, case.y, sample_weight=case.weight)
    if again.optimal and complaints and any(line.startswith("optimal") for line in complaints):
        complaints.append("verify says optimal, too")
    if clf.certificate_.optimal and not again.optimal:
        complaints.append(f"optimal, but verify finds {again}")
    if seconds > SLOW:
        complaints.append(f"took {seconds:.1f} s of processor time")
    return Result(index, str(case), clf.certificate_.stop_reason, seconds, complaints)


def run_all(seed: int, count: int, extremes: float, jobs: int) -> Iterator[Result]:
    """Yield the results of all cases, in any order, from processes that are replaced when they die or hang."""
    chunks: queue.SimpleQueue[tuple[int, int]] = queue.SimpleQueue()
    for begin in range(0, count, CHUNK):
        chunks.put((begin, min(begin + CHUNK, count)))
    results: queue.SimpleQueue[Result | None] = queue.SimpleQueue()

    def work() -> None:
        try:
            while True:
                begin, end = chunks.get_nowait()
                while begin < end:
                    begin = _run_range(seed, begin, end, extremes, results)
        except queue.Empty:
            pass
        finally:
            results.put(None)

    threads = [threading.Thread(target=work, daemon=True) for _ in range(jobs)]
    for thread in threads:
        thread.start()
    running = jobs
    while running:
        result = results.get()
        if result is None:
            running -= 1
        else:
            yield result


def _run_range(seed: int, begin: int, end: int, extremes: float, results: queue.SimpleQueue[Result | None]) -> int:
    """Run cases in one process until the end or its death; return the first case that is left."""
    command = [sys.executable, "-m", "benchmarks.check.running", str(seed), str(begin), str(end), str(extremes)]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment)
    assert process.stdout is not None
    watchdog = _Watchdog(process)
    for line in process.stdout:
        watchdog.alive()
        result = Result(**json.loads(line))
        results.put(result)
        begin = result.index + 1
    code = process.wait()
    watchdog.stop()
    if begin < end:
        outcome = "hung" if watchdog.fired else "died"
        results.put(
            Result(begin, str(make_case(seed, begin, extremes)), outcome, 0.0, [f"{outcome}, exit code {code}"])
        )
        begin += 1
    return begin


class _Watchdog:
    """Kills a process that printed nothing for too long."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.fired = False
        self._process = process
        self._timer = threading.Timer(PATIENCE, self._fire)
        self.alive()

    def alive(self) -> None:
        self._timer.cancel()
        self._timer = threading.Timer(PATIENCE, self._fire)
        self._timer.daemon = True
        self._timer.start()

    def stop(self) -> None:
        self._timer.cancel()

    def _fire(self) -> None:
        self.fired = True
        self._process.kill()


def _worker(arguments: list[str]) -> None:
    seed, begin, end = (int(text) for text in arguments[:3])
    for index in range(begin, end):
        print(json.dumps(asdict(check_case(seed, index, float(arguments[3])))), flush=True)


if __name__ == "__main__":
    _worker(sys.argv[1:])
