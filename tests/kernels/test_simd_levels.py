"""The environment variable that chooses a lower instruction set: every level trains, certified, to the same optimum."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from multimargin import _core

SCRIPT = """
import json
import numpy as np
from scipy import sparse
from multimargin import SVC, LinearSVC, OnlineSVC, _core, verify

rng = np.random.default_rng(0)
X = rng.normal(size=(90, 37))
y = np.argmax(X[:, :3] + 0.3 * rng.normal(size=(90, 3)), axis=1)
zeros = X * (rng.uniform(size=X.shape) < 0.2)
found = {"targets": _core.simd_targets(), "duals": [], "optimal": []}
for data in (X, X.astype(np.float32), sparse.csr_array(zeros)):
    for kernel in ("linear", "rbf", "poly", "sigmoid", "laplacian"):
        for machine in ("ovo", "ww"):
            clf = SVC(kernel=kernel, multi_class=machine, gamma=0.02, coef0=1.0, tol=1e-6).fit(data, y)
            parts = clf.certificate_.parts or [clf.certificate_]  # of one-vs-one the worst pair is shown, any of them
            found["duals"] += [part.dual for part in parts]
            found["optimal"] += [bool(clf.certificate_.optimal), bool(verify(clf, data, y).optimal)]
linear = LinearSVC(tol=1e-6).fit(X, y)
found["duals"] += [part.dual for part in linear.certificate_.parts or [linear.certificate_]]
found["optimal"] += [bool(linear.certificate_.optimal), bool(verify(linear, X, y).optimal)]
stream = OnlineSVC(gamma=0.02).fit(X, y)
found["finite"] = bool(np.isfinite(stream.decision_function(X)).all())
print(json.dumps(found))
"""


def run_at(level: str, script: str = SCRIPT) -> subprocess.CompletedProcess[str]:
    """Run a script under the variable; without this process's settings of coverage and warnings."""
    environment = os.environ | {"MULTIMARGIN_SIMD": level}
    return subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, timeout=240, check=False
    )


def results_at(level: str) -> dict[str, Any]:
    done = run_at(level)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.fixture(scope="module")
def usual() -> dict[str, Any]:
    return results_at("")


@pytest.mark.parametrize("level", _core.simd_targets())
def test_every_level(level: str, usual: dict[str, Any]) -> None:
    found = results_at(level)
    assert found["targets"][-1] == level
    assert found["targets"] == usual["targets"][: len(found["targets"])]
    assert all(found["optimal"])
    assert found["finite"]
    assert found["duals"] == pytest.approx(usual["duals"], rel=1e-5)


def test_an_empty_value_is_none(usual: dict[str, Any]) -> None:
    assert usual["targets"] == _core.simd_targets()


@pytest.mark.parametrize("level", ["avx1024", "AVX2", " "])
def test_a_level_that_is_not_there(level: str) -> None:
    done = run_at(level, "import multimargin")
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    names = ", ".join(_core.simd_targets())
    assert last == (
        f"ImportError: MULTIMARGIN_SIMD={level} names no instruction set that this machine runs: "
        f"it must be one of {names}, or not be set."
    )
