"""A search while it runs: the time limit, the caller's function, and a line with the time that is left."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from math import nan
from typing import Any

import numpy as np
from rich.console import Console
from rich.live import Live
from rich.text import Text

from multimargin.fitting.progress import SECONDS_BETWEEN_LINES
from multimargin.solvers.report import Progress

# Seconds before which the remaining time is not estimated.
LEAST_SECONDS = 0.5


class SearchMonitor:
    """Called about every 50 ms; decides whether to continue.

    Parameters
    ----------
    n_parts : int
        Parts of the work that are taken as equal.
    max_time : float or None
    on_progress : callable or None
    show : callable
        Takes seconds and a line.
    """

    def __init__(
        self,
        n_parts: int,
        max_time: float | None,
        on_progress: Callable[[Progress], bool | None] | None,
        show: Callable[[float, str], None],
    ) -> None:
        self.n_parts, self.on_progress, self.show = n_parts, on_progress, show
        self.limit = float("inf") if max_time is None else float(max_time)
        self.began = time.perf_counter()
        self.n_done = 0
        self.steps = 0
        self.reason = ""  # why the work was ended, if it was

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self.began

    def stop(self, progress: Progress, share: float) -> bool:
        """Return whether to end the part that runs, of which ``share`` is done."""
        seconds = self.seconds
        self.show(seconds, describe_search((self.n_done + share) / self.n_parts, seconds))
        self.steps = max(self.steps, progress.iteration)
        if seconds >= self.limit:
            self.reason = "max_time"
        elif self.on_progress is not None and self.on_progress(replace(progress, seconds=seconds)):
            self.reason = "callback"
        return bool(self.reason)

    def report(self, outcome: Any) -> None:
        """Call ``on_progress`` with the steps and support vectors of a unit that a worker has finished."""
        if self.on_progress is None or self.reason:
            return
        self.steps += int(np.sum(outcome.n_iter))
        progress = Progress(self.steps, self.seconds, nan, nan, nan, 0, int(np.max(outcome.n_support)), 0, 0)
        if self.on_progress(progress):
            self.reason = "callback"

    def part_done(self) -> bool:
        """Count a part; return whether to continue with the next."""
        self.n_done += 1
        seconds = self.seconds
        self.show(seconds, describe_search(self.n_done / self.n_parts, seconds))
        if seconds >= self.limit and self.n_done < self.n_parts:
            self.reason = self.reason or "max_time"
        return not self.reason


def describe_search(share: float, seconds: float) -> str:
    """Return one line: how much is done, and how much longer it will take."""
    left = "" if share <= 0 or seconds < LEAST_SECONDS else f"  about {seconds * (1 - share) / share:.1f} s left"
    return f"{seconds:7.1f} s  {100 * share:5.1f} % of the search{left}"


@contextmanager
def search_line(verbose: int, label: str) -> Iterator[Callable[[float, str], None]]:
    """Yield a function that shows a line on stderr; it does nothing when ``verbose`` is 0."""
    if not verbose:
        yield lambda seconds, text: None
        return
    console = Console(file=sys.stderr)
    if console.is_terminal:
        with Live(Text(f"{label}  starting"), console=console, refresh_per_second=10) as live:
            yield lambda seconds, text: live.update(Text(f"{label}  {text}"))
        return
    next_line = 0.0

    def show(seconds: float, text: str) -> None:
        nonlocal next_line
        if seconds >= next_line:
            next_line = seconds + SECONDS_BETWEEN_LINES
            console.print(f"{label}  {text}", highlight=False, soft_wrap=True)

    yield show
