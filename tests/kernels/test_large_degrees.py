"""A polynomial kernel of any degree costs about the same: powers of many factors go by repeated squaring."""

from __future__ import annotations

import numpy as np
import pytest

from multimargin import SVC
from multimargin.kernels.spec import KernelSpec
from multimargin.kernels.store import KernelStore

X = np.random.default_rng(0).normal(size=(40, 3))
X /= np.linalg.norm(X, axis=1, keepdims=True)
y = np.arange(40) % 2


@pytest.mark.timeout(60)
def test_a_degree_of_a_billion_ends() -> None:
    clf = SVC(kernel="poly", degree=10**9, gamma=1.0, max_time=5.0).fit(X, y)
    assert clf.certificate_.stop_reason == "converged"
    assert np.isfinite(clf.decision_function(X)).all()


@pytest.mark.parametrize("degree", [1, 2, 3, 7, 63, 64, 65, 66, 100, 127, 128, 1000])
def test_powers_on_both_sides_of_the_change_are_right(degree: int) -> None:
    rows = np.arange(len(X))
    store = KernelStore(X, KernelSpec("poly", gamma=0.5, coef0=0.5, degree=degree))
    found = store.block(rows, rows)
    wanted = (0.5 * X @ X.T + 0.5) ** degree
    # each factor may be off by some rounding of the dot product, which the power repeats degree times
    np.testing.assert_allclose(found, wanted, rtol=8 * (degree + 4) * np.finfo(float).eps, atol=1e-300)
