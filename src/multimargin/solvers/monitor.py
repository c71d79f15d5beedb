"""One type for what watches a solve, from the core's moments to the functions of the user."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any, Generic, TypeVar

from multimargin import _core
from multimargin.solvers.report import Progress

S = TypeVar("S")
T = TypeVar("T")

# Called about every 50 ms with the progress and a function that returns the current state; True stops.
Watch = Callable[[Progress, Callable[[], S]], bool]

_FIELDS = tuple(entry.name for entry in fields(Progress))


class FitMonitor(Generic[S]):
    """Asked about every 50 ms whether to stop, with the progress and a function that returns the current state.

    Parameters
    ----------
    watch : callable or None
        None for a solve that nobody watches: then nothing is called, and the core calls nothing back.
    """

    def __init__(self, watch: Watch[S] | None = None) -> None:
        self._watch: Watch[S] | None = watch._watch if isinstance(watch, FitMonitor) else watch

    @property
    def active(self) -> bool:
        return self._watch is not None

    def __call__(self, progress: Progress, snapshot: Callable[[], S]) -> bool:
        """Return whether to stop."""
        return self._watch is not None and bool(self._watch(progress, snapshot))

    def map(
        self, snapshot: Callable[[T], S], progress: Callable[[Progress], Progress] = lambda moment: moment
    ) -> FitMonitor[T]:
        """Return the monitor of an inner solve, whose states and progress are seen as those of the outer one.

        A state is only read and converted when it is asked for.
        """
        if self._watch is None:
            return FitMonitor(None)
        return FitMonitor(lambda moment, state: self(progress(moment), lambda: snapshot(state())))

    def when(self, is_due: Callable[[], bool]) -> FitMonitor[S]:
        """Return a monitor that asks only when it is due, and else goes on."""
        if self._watch is None:
            return self
        return FitMonitor(lambda moment, state: is_due() and self(moment, state))

    def for_core(self) -> Callable[[_core.Progress, Callable[[], Any]], bool] | None:
        """Return what the core calls, None where nobody watches; its states are those of this monitor."""
        if self._watch is None:
            return None
        return lambda progress, snapshot: self(Progress(*(getattr(progress, name) for name in _FIELDS)), snapshot)
