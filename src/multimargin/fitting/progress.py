"""Showing progress: a live line on a terminal, plain lines elsewhere, scikit-learn's callbacks where they exist."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.text import Text

from multimargin.base.typed import CallbackSupportMixin, with_callbacks
from multimargin.solvers.report import Progress

__all__ = ["CallbackSupportMixin", "FitTask", "describe", "progress_line", "with_callbacks"]

SECONDS_BETWEEN_LINES = 1.0


def describe(progress: Progress) -> str:
    """Return one line: seconds, steps, violation, gap, active examples, support vectors."""
    return (
        f"{progress.seconds:7.1f} s  {progress.iteration:>9,} steps  violation {progress.violation:.1e}  "
        f"gap {progress.relative_gap:.1e}  active {progress.n_active:,}  support vectors {progress.n_support:,}"
    )


@contextmanager
def progress_line(verbose: int, label: str) -> Iterator[Callable[[Progress], None]]:
    """Yield a function that shows a moment on stderr; it does nothing when ``verbose`` is 0."""
    if not verbose:
        yield lambda progress: None
        return
    console = Console(file=sys.stderr)
    if not console.is_terminal:
        yield _PlainLines(console, label)
        return
    with Live(Text(f"{label}  starting"), console=console, refresh_per_second=10) as live:
        yield lambda progress: live.update(Text(f"{label}  {describe(progress)}"))


class _PlainLines:
    """Writes a line at most once a second, for logs."""

    def __init__(self, console: Console, label: str) -> None:
        self._console, self._label, self._next = console, label, 0.0

    def __call__(self, progress: Progress) -> None:
        if progress.seconds >= self._next:
            self._next = progress.seconds + SECONDS_BETWEEN_LINES
            self._console.print(f"{self._label}  {describe(progress)}", highlight=False, soft_wrap=True)


class FitTask:
    """scikit-learn's callbacks around one fit: a root task, and a task for each moment that is shown.

    Does nothing when the estimator has no callbacks or scikit-learn is older than 1.9.
    """

    def __init__(self, estimator: Any, X: Any, y: Any) -> None:
        self._estimator, self._X, self._y = estimator, X, y
        self._context = None
        if hasattr(estimator, "_init_callback_context"):
            self._context = estimator._init_callback_context(max_subtasks=None)
            self._context.call_on_fit_task_begin(estimator=estimator, X=X, y=y)
        self.active = self._context is not None and bool(getattr(estimator, "_skl_callbacks", None))

    def moment(self, attributes: Callable[[], dict[str, Any]]) -> bool:
        """Tell the callbacks that some iterations are done; True when one of them asks to stop."""
        if not self.active or self._context is None:
            return False
        task = self._context.subcontext(task_name="iterations")
        shared = {"estimator": self._estimator, "X": self._X, "y": self._y}
        task.call_on_fit_task_begin(**shared)
        return bool(task.call_on_fit_task_end(**shared, reconstruction_attributes=attributes))

    def end(self, attributes: Callable[[], dict[str, Any]]) -> None:
        """Tell the callbacks that the fit is done."""
        if self._context is not None:
            self._context.call_on_fit_task_end(
                estimator=self._estimator, X=self._X, y=self._y, reconstruction_attributes=attributes
            )
