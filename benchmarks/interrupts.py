"""How long a fit takes to stop: signal, time limit and callback at random moments.

    python -m benchmarks.interrupts [--trials 100]
    python -m benchmarks.interrupts --data adult --C 32 --after 0.3 [--trials 3]

Fits a problem that would run for hours (optdigits when the papers' data are there, else a made one), stops it at a
random moment, and measures from that moment to the return of ``fit``. The model must be usable (finite scores, a dual
objective that ``verify`` confirms) or the one from before. Prints the slowest stop of each kind.

With --data: one-vs-one on that set with that C and gamma = 1 / n_features (adult: 1/123), Ctrl-C after some seconds,
with on_interrupt="raise" and "keep"; the time from the signal to the end of ``fit``, of which 0.1 s is wanted.
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
WANTED = 0.1  # seconds from the signal to the end of fit


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


def interrupt(data: Arrays, C: float, after: float, mode: str) -> bool:
    """One Ctrl-C during a one-vs-one fit; print the result and return whether the promises hold."""
    sent: list[float] = []
    raised = False

    def send() -> None:
        sent.append(time.perf_counter())
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(after, send)
    begun: list[bool] = []

    def begin(_: Progress) -> None:  # the clock runs from the first moment of the solve, however long validation took
        if not begun:
            begun.append(True)
            timer.start()

    clf = SVC(C=C, gamma="auto", on_interrupt=mode, on_progress=begin)
    try:
        clf.fit(*data)
    except KeyboardInterrupt:
        raised = True
    end = time.perf_counter()
    if not sent:
        timer.cancel()
        if begun:
            timer.join()
        print(f"{mode:5}: the fit ended before the signal; take a smaller --after or a larger --C")
        return False
    certificate = verify(clf, *data)
    stopped = clf.certificate_.stop_reason == "interrupted" and raised == (mode == "raise")
    good = stopped and usable(clf, data) and bool(np.isfinite(certificate.kkt_violation))
    seconds = end - sent[0]
    kept = "within" if seconds <= WANTED else "OVER"
    print(
        f"{mode:5}: fit ended {seconds:.3f} s after the signal ({kept} {WANTED} s), "
        f"{'raised' if raised else 'returned'}, {clf.certificate_.stop_reason}, {len(clf.support_)} SVs, "
        f"true violation {certificate.kkt_violation:.1e}, {'usable' if good else 'BROKEN'}",
        flush=True,
    )
    return good


def interrupt_some(name: str, C: float, after: float, trials: int) -> int:
    """Return how many stops broke a promise."""
    benchmark = load_benchmark(name)
    data = benchmark.X, benchmark.y
    print(f"{name}, C={C:g}, gamma=1/{data[0].shape[1]}, Ctrl-C after {after} s")
    return sum(not interrupt(data, C, after, mode) for _ in range(trials) for mode in ("raise", "keep"))


def stop_by_time(clf: SVC, data: Arrays, delay: float) -> float:
    begin = time.perf_counter()
    clf.set_params(max_time=delay).fit(*data)
    return time.perf_counter() - begin - delay


def stop_by_callback(clf: SVC, data: Arrays, delay: float) -> float:
    """Seconds from the callback's True to the return."""
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
@click.option("--trials", default=None, type=int, help="Default 100, with --data 3 of each kind.")
@click.option("--data", default=None, help="Interrupt one-vs-one on this set.")
@click.option("--C", "C", default=32.0, help="With --data.")
@click.option("--after", default=0.3, help="Seconds before the signal, with --data.")
def main(trials: int | None, data: str | None, C: float, after: float) -> None:
    """Stop fits at random moments, or one-vs-one on a data set by Ctrl-C."""
    warnings.simplefilter("ignore", ConvergenceWarning)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore Ctrl-C
    broken = stop_at_random(trials or 100) if data is None else interrupt_some(data, C, after, trials or 3)
    sys.exit(1 if broken else 0)


def stop_at_random(trials: int) -> int:
    """Return how many models were broken."""
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
    return broken


if __name__ == "__main__":
    main()
