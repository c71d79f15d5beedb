"""The binary solver's general form: other machines with a box and one equality, against scikit-learn's."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import make_friedman1, make_moons
from sklearn.svm import SVR, OneClassSVM

from multimargin import _core
from multimargin._typing import FloatArray, IntArray
from multimargin.kernels.spec import KernelSpec
from multimargin.kernels.store import KernelStore
from multimargin.solvers.options import SolverChoice, SolverOptions

GAMMA = 0.5


def solve_general(
    X: FloatArray, rows: IntArray, n_positive: int, C: FloatArray, targets: FloatArray, total: float
) -> tuple[FloatArray, float, _core.Report]:
    """Solve max p'b - 1/2 b'Kb, sum b = total; returns b, the bias and the report."""
    store = KernelStore(X, KernelSpec("rbf", gamma=GAMMA))
    options = SolverOptions(solver=SolverChoice.TWO_LEVEL, tol=1e-6)
    given = (rows, n_positive, C, targets)
    a, report, bias, error = _core.solve_binary_general(store.core, given, total, options.to_core(), None)
    assert error is None
    assert report.stop_reason is _core.StopReason.converged
    assert report.verified
    signs = np.where(np.arange(len(rows)) < n_positive, 1.0, -1.0)
    assert (a >= 0).all()
    assert (a <= C).all()
    assert abs((signs * a).sum() - total) <= 1e-12 * max(1.0, a.sum())
    assert report.dual <= report.primal <= report.dual + 1e-5 * max(1.0, abs(report.primal))
    return signs * a, bias, report


@pytest.mark.parametrize("n", [300, 4500])  # single pairs, and blocks
@pytest.mark.parametrize("nu", [0.1, 0.5])
def test_one_class(n: int, nu: float) -> None:
    X = make_moons(n, noise=0.2, random_state=0)[0]
    b, bias, _ = solve_general(X, np.arange(n), n, np.full(n, 1.0 / (nu * n)), np.zeros(n), 1.0)
    K = np.exp(-GAMMA * ((X[:, None] - X[None]) ** 2).sum(axis=2))
    theirs = OneClassSVM(gamma=GAMMA, nu=nu, tol=1e-8).fit(X)
    coef = np.zeros(n)
    coef[theirs.support_] = theirs.dual_coef_[0] / (nu * n)
    assert b @ K @ b <= coef @ K @ coef * (1 + 1e-5)
    assert np.allclose(K @ b + bias, theirs.decision_function(X) / (nu * n), atol=2e-5)


@pytest.mark.parametrize("n", [200, 2500])
def test_regression(n: int) -> None:
    X, y = make_friedman1(n, n_features=5, noise=0.5, random_state=1)
    C, epsilon = 3.0, 0.2
    rows = np.concatenate([np.arange(n), np.arange(n)])
    b, bias, report = solve_general(X, rows, n, np.full(2 * n, C), np.concatenate([y - epsilon, y + epsilon]), 0.0)
    K = np.exp(-GAMMA * ((X[:, None] - X[None]) ** 2).sum(axis=2))
    beta = b[:n] + b[n:]
    f = K @ beta + bias
    theirs = SVR(gamma=GAMMA, C=C, epsilon=epsilon, tol=1e-7).fit(X, y)
    assert np.allclose(f, theirs.predict(X), atol=2e-4)
    primal = 0.5 * beta @ K @ beta + C * np.maximum(np.abs(y - f) - epsilon, 0).sum()
    assert report.primal == pytest.approx(primal, rel=1e-9)
    assert report.dual == pytest.approx(primal, rel=1e-6)


def test_bounds_that_do_not_allow_the_sum_are_refused() -> None:
    X = make_moons(10, random_state=0)[0]
    with pytest.raises(ValueError, match="have this sum"):
        solve_general(X, np.arange(10), 10, np.full(10, 0.05), np.zeros(10), 1.0)
    with pytest.raises(ValueError, match="one target per example"):
        solve_general(X, np.arange(10), 10, np.full(10, 1.0), np.zeros(9), 1.0)
