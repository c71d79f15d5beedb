"""The interpreter ends while a daemon thread is fitting: the process exits without an error."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import threading, time, warnings
import numpy as np
from multimargin import SVC, LinearSVC, OnlineSVC

warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
X, y = rng.normal(size=(3000, 20)), rng.integers(0, 6, 3000)
begun = threading.Event()

def heard(progress):
    begun.set()
    time.sleep(0.001)

def work(model):
    while True:
        begun.set()
        getattr(model, "partial_fit", model.fit)(X, y)

for model in (
    SVC(multi_class="ww", C=100, tol=1e-9, on_progress=heard),
    SVC(C=1e4, tol=1e-9, on_progress=heard),
    SVC(C=1e4, tol=1e-9, bias="none"),
    LinearSVC(multi_class="ww", C=1e4, tol=1e-12, on_progress=heard),
    OnlineSVC(multi_class="ww"),
):
    threading.Thread(target=work, args=(model,), daemon=True).start()
begun.wait()
time.sleep(0.5)
"""


def test_daemon_threads_that_fit_do_not_abort_the_exit() -> None:
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")
