"""What the tests share that stop a fit: data on which a fit is slow, and Ctrl-C from another thread."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from sklearn.datasets import make_classification


def slow_data() -> tuple[np.ndarray, np.ndarray]:
    """Noisy labels and a huge C: millions of steps from the optimum."""
    X, y = make_classification(1500, 12, n_informative=6, n_classes=4, flip_y=0.3, class_sep=0.3, random_state=0)
    return X, y


@contextmanager
def ctrl_c_after(seconds: float) -> Iterator[None]:
    timer = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
