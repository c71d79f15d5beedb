"""Ctrl-C during a fit: it waits until a solver looks, so that it finds nothing half done.

Python raises KeyboardInterrupt between any two instructions. A fit that has checked its data, or solved and not yet
made its model, then has nothing to show. So for the time of a fit the handler of SIGINT notes the interrupt, and the
solvers, which can end with a feasible point at any moment, ask for it: those in C++ about every 50 ms, those in Python
at every step. What nobody has asked for by the end is raised there, with the model complete.

A second Ctrl-C is raised at once, wherever it finds the fit, and leaves the estimator as it was before.

Only the default handler, or one that raises KeyboardInterrupt, is put off: a handler of the caller is called at once,
and what else it raises goes on. Threads other than the main one never see a signal and change nothing here.
"""

from __future__ import annotations

import os
import signal
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import ContextDecorator, contextmanager
from types import FrameType, TracebackType
from typing import Any

from sklearn.exceptions import ConvergenceWarning

__all__ = ["allowed", "deferred", "poll"]


class _Waiting:
    """The handler of SIGINT while an outermost ``deferred`` lasts, and the interrupt that it noted."""

    def __init__(self, previous: Callable[[int, FrameType | None], Any]) -> None:
        self.previous = previous
        self.thread, self.process = threading.get_ident(), os.getpid()
        self.noted: KeyboardInterrupt | None = None
        self.heard = False  # one has come, and the next is raised at once
        self.n_allowed = 0

    def handle(self, number: int, frame: FrameType | None) -> None:
        try:
            self.previous(number, frame)
        except KeyboardInterrupt as interrupt:
            # A process that was forked, or a caller who kept this handler for longer, is not within the fit.
            within = _waiting is self and os.getpid() == self.process
            if self.heard or self.n_allowed or not within:
                self.heard = True
                raise
            self.heard, self.noted = True, interrupt.with_traceback(None)


_waiting: _Waiting | None = None


class deferred(ContextDecorator):  # noqa: N801 - used as a statement
    """For the time of a ``with`` block or a function a first Ctrl-C waits for ``poll``; within another nothing changes.

    What was not asked for is raised at the end of the outermost block or, with ``keep``, told in a warning.
    """

    def __init__(self, *, keep: bool = False) -> None:
        self._keep = keep
        self._own: _Waiting | None = None

    def __enter__(self) -> deferred:
        global _waiting  # noqa: PLW0603 - there is one handler of a signal in a process
        if threading.current_thread() is not threading.main_thread():
            return self
        previous = signal.getsignal(signal.SIGINT)
        if _waiting is not None and previous == _waiting.handle:
            return self
        # What an interrupt between two instructions of an earlier __enter__ or __exit__ left behind is taken down.
        if isinstance(getattr(previous, "__self__", None), _Waiting):
            previous = previous.__self__.previous  # type: ignore[union-attr]
        if not callable(previous):  # ignored, or not Python's
            return self
        own = _Waiting(previous)
        try:
            signal.signal(signal.SIGINT, own.handle)
        except ValueError:  # an interpreter beside the main one
            return self
        self._own = _waiting = own
        return self

    def _recreate_cm(self) -> deferred:
        return deferred(keep=self._keep)  # for each call of a decorated function

    def take(self) -> KeyboardInterrupt | None:
        """Return what waits, which then is the caller's to raise."""
        return _take()

    def again(self) -> None:
        """Let the next Ctrl-C wait, too: what was heard has been dealt with, and other long work begins."""
        if self._own is not None:
            self._own.heard = False

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        global _waiting
        own = self._own
        if own is None:
            return
        if signal.getsignal(signal.SIGINT) == own.handle:
            signal.signal(signal.SIGINT, own.previous)
        noted, own.noted, _waiting, self._own = own.noted, None, None, None
        if noted is None or isinstance(error, KeyboardInterrupt):
            return
        if not self._keep:
            raise noted
        if error is None:
            text = "Ctrl-C came after the last step of the solver; the model is complete."
            warnings.warn(text, ConvergenceWarning, stacklevel=4)


def poll() -> None:
    """Raise the KeyboardInterrupt that waits, if one does; solvers call it where they can end."""
    noted = _take()
    if noted is not None:
        raise noted


def _take() -> KeyboardInterrupt | None:
    own = _waiting
    if own is None or own.noted is None or threading.get_ident() != own.thread:
        return None
    noted, own.noted = own.noted, None
    return noted


@contextmanager
def allowed() -> Iterator[None]:
    """Within a deferral: raise an interrupt at once, for waits and passes whose callers expect it."""
    own = _waiting
    if own is None or threading.get_ident() != own.thread:
        yield
        return
    own.n_allowed += 1
    try:
        poll()
        yield
    finally:
        own.n_allowed -= 1
