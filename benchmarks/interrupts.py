"""How long a fit takes to stop: signal, time limit and callback at random moments.

    python -m benchmarks.interrupts [--trials 100]

Fits a problem that would run for hours (optdigits when the papers' data are there, else a made one), stops it at a
random moment, and measures from that moment to the return of ``fit``. The model must be usable (finite scores, a dual
objective that ``verify`` confirms) or the one from before. Prints the slowest stop of each kind.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable

import click
import numpy as np
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning

from multimargin import MACHINES, SVC, Progress, verify
from multimargin.datasets import data_directory, load_benchmark

Arrays = tuple[np.ndarray, np.ndarray]


def load() -> Arrays:
    if data_directory() is not None:
        benchmark = load_benchmark("optdigits")
        return benchmark.X, benchmark.y
    X, y = make_classification(4000, 40, n_informative=20, n_classes=10, flip_y=0.2, random_state=0)
    return X, y


def stop_by_signal(clf: SVC, data: Arrays, delay: float) -> float:
    sent: list[float] = []

    def send() -> None:
        sent.append(time.perf_counter())
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(delay, send)
    try:
        timer.start()
        clf.fit(*data)
        timer.join()  # the fit was faster than the signal
        time.sleep(0.01)
    except KeyboardInterrupt:
        pass
    return time.perf_counter() - sent[0]


def stop_by_time(clf: SVC, data: Arrays, delay: float) -> float:
    begin = time.perf_counter()
    clf.set_params(max_time=delay).fit(*data)
    return time.perf_counter() - begin - delay


def stop_by_callback(clf: SVC, data: Arrays, delay: float) -> float:
    """From the callback's True to the return."""
    said: list[float] = []

    def on_progress(progress: Progress) -> bool:
        if progress.seconds >= delay:
            said.append(time.perf_counter())
        return progress.seconds >= delay

    clf.set_params(on_progress=on_progress).fit(*data)
    return time.perf_counter() - said[0] if said else 0.0


def usable(clf: SVC, data: Arrays) -> bool:
    if clf.shape_fit_[0] == 30:
        return bool(clf.predict(data[0][:5]).shape == (5,))
    certificate = verify(clf, *data)
    honest = clf.certificate_.stop_reason != "converged" or certificate.optimal
    return bool(np.isfinite(clf.decision_function(data[0][:50])).all()) and np.isfinite(certificate.dual) and honest


KINDS: dict[str, Callable[[SVC, Arrays, float], float]] = {
    "SIGINT": stop_by_signal,
    "max_time": stop_by_time,
    "callback": stop_by_callback,
}


@click.command()
@click.option("--trials", default=100)
def main(trials: int) -> None:
    """Stop fits at random moments."""
    warnings.simplefilter("ignore", ConvergenceWarning)
    X, y = load()
    rng = np.random.default_rng(0)
    slowest = dict.fromkeys(KINDS, 0.0)
    broken = 0
    for trial in range(trials):
        kind = list(KINDS)[trial % len(KINDS)]
        clf = SVC().fit(X[:30], y[:30])
        name, solver = rng.choice(list(MACHINES)), rng.choice(["auto", "s2do"])
        clf.set_params(C=1e7, gamma=1e-3, multi_class=name, solver=solver)
        slowest[kind] = max(slowest[kind], KINDS[kind](clf, (X, y), float(rng.uniform(0.01, 1.0))))
        clf.set_params(on_progress=None)
        broken += not usable(clf, (X, y))
    for kind, seconds in slowest.items():
        print(f"{kind:9} slowest of {trials // len(KINDS)}: {seconds * 1000:.0f} ms after the moment")
    print(f"{trials - broken} usable, {broken} broken")
    sys.exit(1 if broken else 0)


if __name__ == "__main__":
    main()
