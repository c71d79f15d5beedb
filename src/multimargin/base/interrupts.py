"""Ctrl-C during a fit: it is deferred until a solver polls for it, so that no object is left half updated.

Python raises KeyboardInterrupt between any two instructions. A fit that has checked its data, or solved and not yet
made its model, would lose its result there. So during a fit the handler of SIGINT records the interrupt, and the
solvers, which can end with a feasible point at any moment, poll for it: those in C++ about every 50 ms, those in Python
at every step. An interrupt that was not polled by the end of the fit is raised there, with the model complete.

A second Ctrl-C is raised at once and leaves the estimator as it was before the fit.

Only the default handler, or one that raises KeyboardInterrupt, is deferred: another handler of the caller is called at
once, and any other exception that it raises propagates. Threads other than the main one never see a signal and change
nothing here.
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
    """The handler of SIGINT while an outermost ``deferred`` is active, and the interrupt that it recorded."""

    def __init__(self, previous: Callable[[int, FrameType | None], Any]) -> None:
        self.previous = previous
        self.thread, self.process = threading.get_ident(), os.getpid()
        self.noted: KeyboardInterrupt | None = None
        self.heard = False  # one was recorded; the next is raised at once
        self.n_allowed = 0

    def handle(self, number: int, frame: FrameType | None) -> None:
        try:
            self.previous(number, frame)
        except KeyboardInterrupt as interrupt:
            # A forked process, or a caller that kept this handler after the fit, is not within the fit.
            within = _waiting is self and os.getpid() == self.process
            if self.heard or self.n_allowed or not within:
                self.heard = True
                raise
            self.heard, self.noted = True, interrupt.with_traceback(None)


_waiting: _Waiting | None = None


class deferred(ContextDecorator):  # noqa: N801 - used as a statement
    """Defer a first Ctrl-C during a ``with`` block or a function until ``poll``; nested blocks change nothing.

    One that was not polled is raised at the end of the outermost block or, with ``keep``, reported in a warning.
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
        # Remove what an interrupt in the middle of an earlier __enter__ or __exit__ left behind.
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
        """Return the deferred interrupt; the caller must raise it."""
        return _take()

    def again(self) -> None:
        """Defer the next Ctrl-C, too: the last one was handled, and other long work begins."""
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
    """Raise the deferred KeyboardInterrupt, if there is one; solvers call it where they can stop."""
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
    """Within a deferral, raise an interrupt at once: for waits whose callers expect it."""
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
