"""A lock for each OnlineSVC: one thread at a time uses it."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, TypeVar, cast
from weakref import WeakKeyDictionary

Method = TypeVar("Method", bound=Callable[..., Any])


class _Turns:
    """The lock of one estimator."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.changing = False


# Outside the estimators, because locks can be neither pickled nor copied.
_turns: WeakKeyDictionary[Any, _Turns] = WeakKeyDictionary()

if hasattr(os, "register_at_fork"):  # the threads that had a turn do not live in the child
    os.register_at_fork(after_in_child=_turns.clear)


@contextmanager
def turn_of(estimator: Any) -> Iterator[_Turns]:
    """Wait until no other thread uses the estimator.

    A signal handler that comes back to an estimator while its own thread is in the middle of a change cannot wait for
    that: it is refused.
    """
    turns = _turns.setdefault(estimator, _Turns())
    with turns.lock:
        if turns.changing:
            raise RuntimeError(
                f"This {type(estimator).__name__} is in the middle of a change that a signal handler of the same "
                "thread interrupted; use it after the change has ended."
            )
        yield turns


def in_turn(method: Method) -> Method:
    """Make a method hold the estimator's lock."""

    @wraps(method)
    def waiting(self: Any, *args: Any, **kwargs: Any) -> Any:
        with turn_of(self) as turns:
            turns.changing = True
            try:
                return method(self, *args, **kwargs)
            finally:
                turns.changing = False

    return cast(Method, waiting)
