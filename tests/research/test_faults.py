"""Failing memory, failing threads and shared streams: no crash, no hang, and objects that are usable after it."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import make_classification

from multimargin import SVC, OnlineSVC

X, Y = make_classification(400, 5, n_informative=4, n_redundant=0, n_classes=3, flip_y=0.1, random_state=0)

SHARED = """
import pickle, sys, threading
import numpy as np
from sklearn.datasets import make_classification
from multimargin import OnlineSVC
X, y = make_classification(3000, 5, n_informative=4, n_redundant=0, n_classes=3, flip_y=0.1, random_state=0)
clf = OnlineSVC(multi_class=sys.argv[1], gamma=0.2).partial_fit(X[:60], y[:60])
errors = []
def learn(first):
    try:
        for begin in range(60 + first * 100, 3000, 400):
            rows = slice(begin, min(begin + 100, 3000))
            clf.partial_fit(X[rows], y[rows])
    except BaseException as error:
        errors.append(error)
def look():
    try:
        for _ in range(30):
            clf.predict(X[:50]), clf.support_, pickle.dumps(clf)
    except BaseException as error:
        errors.append(error)
threads = [threading.Thread(target=learn, args=(k,)) for k in range(4)] + [threading.Thread(target=look)] * 1
for thread in threads: thread.start()
for thread in threads: thread.join()
assert not errors, errors
assert clf.n_seen_ == 3000, clf.n_seen_
assert len(set(clf.support_)) == len(clf.support_)
assert clf.finalize(X, y).certificate_.optimal
print("good")
"""


@pytest.mark.timeout(120)
@pytest.mark.parametrize("machine", ["ovo", "ww"])
def test_threads_take_turns_with_a_stream(machine: str) -> None:
    done = subprocess.run([sys.executable, "-c", SHARED, machine], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "good\n"), done.stderr


@pytest.fixture
def handler_that_looks() -> Iterator[tuple[OnlineSVC, list[BaseException]]]:
    clf = OnlineSVC(gamma=0.2)
    errors: list[BaseException] = []

    def look(number: int, frame: object) -> None:
        try:
            clf.predict(X[:2])
        except RuntimeError as error:
            errors.append(error)

    before = signal.signal(signal.SIGUSR1, look)
    yield clf, errors
    signal.signal(signal.SIGUSR1, before)


@pytest.mark.timeout(60)
@pytest.mark.skipif(not hasattr(signal, "SIGUSR1"), reason="needs POSIX signals")
def test_a_signal_handler_that_comes_back_is_refused(
    handler_that_looks: tuple[OnlineSVC, list[BaseException]], monkeypatch: pytest.MonkeyPatch
) -> None:
    clf, errors = handler_that_looks
    clf.partial_fit(X[:100], Y[:100])
    stream = clf._stream
    settle = stream.settle

    def interrupted() -> None:
        signal.raise_signal(signal.SIGUSR1)
        settle()

    monkeypatch.setattr(stream, "settle", interrupted)
    clf.partial_fit(X[100:], Y[100:])
    assert errors
    assert "in the middle of a change" in str(errors[0])
    monkeypatch.undo()
    assert clf.n_seen_ == 400


@pytest.mark.timeout(60)
@pytest.mark.parametrize("machine", ["ovo", "ww"])
def test_threads_may_share_a_classifier(machine: str) -> None:
    clf = SVC(multi_class=machine).fit(X, Y)
    expected = clf.predict(X)
    wrong: list[object] = []

    def use(*, fit: bool) -> None:
        for _ in range(5):
            try:
                if fit:
                    clf.fit(X, Y)
                elif not np.array_equal(clf.predict(X), expected):
                    wrong.append("a prediction")
            except Exception as error:
                wrong.append(error)

    for fit in (False, True):
        threads = [threading.Thread(target=use, kwargs={"fit": fit}) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not wrong
    assert np.array_equal(clf.predict(X), expected)


@pytest.mark.timeout(300)
@pytest.mark.skipif(sys.platform != "linux", reason="calls are made to fail by LD_PRELOAD")
@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
@pytest.mark.parametrize("kind", ["memory", "threads"])
@pytest.mark.parametrize("call", ["SVC.fit ww", "LinearSVC.fit ovo", "OnlineSVC.partial_fit ovo", "svm_path"])
def test_a_failed_request_is_a_memory_error_or_nothing(call: str, kind: str) -> None:
    assert (Path(__file__).parents[2] / "benchmarks" / "faults" / "failing_calls.c").exists()
    from benchmarks.faults.running import run_loop

    for in_row in (1, 10**9):
        tally = run_loop(call, kind, in_row, 6, 120.0)
        assert not tally.faults
        assert tally.tried == tally.good + tally.refused
