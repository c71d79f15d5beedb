"""Sparse data whose columns have large offsets: the digits of small distances are kept."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_iris

from multimargin import SVC, SVCCV, OnlineSVC, verify
from multimargin.base.matrices import column_deviations, variance
from multimargin.kernels.spec import KernelSpec
from multimargin.kernels.store import KernelStore, offsets_of
from multimargin.kernels.table import KERNELS
from support.helpers import duals

EPSILON = float(np.finfo(np.float64).eps)


def invariant(kernel: str, X: np.ndarray, spread: float) -> dict[str, Any]:
    """Return parameters under which the problem is about the same for every scale of X."""
    norm = float((X**2).sum(axis=1).max())
    params: dict[str, Any] = {"kernel": kernel, "degree": 2, "tol": 1e-4}
    if kernel == "linear":
        return params | {"C": 1.0 / norm}
    gammas = {"rbf": 0.1 / spread**2, "laplacian": 0.1 / spread}
    return params | {"gamma": gammas.get(kernel, 1.0 / norm)}


def mixed_data(n: int = 120, offset: float = 1e6) -> tuple[np.ndarray, np.ndarray]:
    """Return a few full columns with offsets among many sparse ones, and labels that need both."""
    rng = np.random.default_rng(3)
    full = rng.normal(size=(n, 4))
    rare = rng.normal(size=(n, 1000)) * (rng.uniform(size=(n, 1000)) < 0.01)
    y = np.argmax(full[:, :3] + 0.1 * rare[:, :3], axis=1)
    return np.hstack([full + offset * np.array([1.0, -1.0, 2.0, 0.5]), rare]), y


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("multi_class", ["ovo", "ww"])
@pytest.mark.parametrize("offset", [0.0, 1.0, 1e2, 1e3, 1e4, 1e6])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_same_as_dense(kernel: str, multi_class: str, offset: float, scale: float) -> None:
    X, y = load_iris(return_X_y=True)
    X = (X + offset) * scale
    rows = sparse.csr_array(X)
    params = invariant(kernel, X, scale) | {"multi_class": multi_class}
    ours, dense = SVC(**params).fit(rows, y), SVC(**params).fit(X, y)
    assert ours.certificate_.optimal
    assert dense.certificate_.optimal
    # An optimum at tol has a dual within tol times the sum of the upper bounds of the best one.
    bound = params["tol"] * params.get("C", 1.0) * len(y) * 2
    np.testing.assert_allclose(duals(ours), duals(dense), rtol=0, atol=bound)
    for data in (rows, X):
        assert verify(ours, data, y).optimal
    difference = np.abs(ours.decision_function(rows) - ours.decision_function(X))
    # Distances may cost 1e-10 before they come from differences. Products have rounding alone: gamma or C is one over
    # the largest of them, so that k is at most that (linear) or about 1.
    largest = float((X**2).sum(axis=1).max()) if kernel == "linear" else 1.0
    error = 1e-10 if kernel in ("rbf", "laplacian") else 64 * EPSILON
    assert difference.max() <= error * (1 + np.abs(ours.dual_coef_).sum() * largest)


@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
@pytest.mark.parametrize("offset", [1e3, 1e6, 1e8])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_kernel_values_of_mixed_data(kernel: str, offset: float, dtype: type) -> None:
    """A few full columns with offsets among many sparse ones: values as from the differences."""
    X: np.ndarray = mixed_data(offset=offset)[0].astype(dtype)
    spec = KernelSpec(kernel, gamma=0.05)
    store, every = KernelStore(sparse.csr_matrix(X), spec), np.arange(len(X))
    expected = spec.gram(X, X)
    found = store.block(every, every)
    # Squared distances beside squared offsets are centred or come from differences: rounding of the exponent remains.
    # For sums of absolute values gamma times the norms (450 at an offset of 1e3) times epsilon is small enough to stay.
    exact = kernel == "rbf"
    np.testing.assert_allclose(found, expected, rtol=0, atol=8 * EPSILON if exact else 1e-12)
    np.testing.assert_array_equal(found, found.T)
    np.testing.assert_array_equal(np.diag(found), 1.0)
    single = store.block(every, every, float32=True)
    np.testing.assert_allclose(single, expected, rtol=0, atol=1e-6 if exact else 1e-4)  # 1e-4: what norms may cost
    np.testing.assert_array_equal(np.diag(single), 1.0)


@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
@pytest.mark.parametrize("share", [0.05, 0.3, 0.6, 1.0])
def test_kernel_values_where_no_centre_helps(kernel: str, share: float) -> None:
    """Entries that are absent or near 1e6: only differences tell those that are present apart."""
    rng = np.random.default_rng(0)
    X = (1e6 + rng.normal(size=(90, 40))) * (rng.uniform(size=(90, 40)) < share)
    X[40:80] = np.where(X[:40] == 0, 0.0, X[:40] + 0.5 * rng.normal(size=(40, 40)))
    spec = KernelSpec(kernel, gamma=0.05, offset=1.0)
    store, every = KernelStore(sparse.csr_array(X), spec), np.arange(90)
    expected = spec.gram(X, X)
    assert np.count_nonzero((expected > 1) & (expected < 2)) >= 40
    # gamma times squared norms times epsilon is 2e-5 at least: differences, always. Norms of absolute values are below
    # 1e8 and cost 1e-10 at most, which is allowed. float32 rounds the exponent: 1e-7 times its size.
    double = 64 * EPSILON if kernel == "rbf" else 1e-10
    for float32, error in ((False, double), (True, 1e-6)):
        found = store.block(every, every, float32=float32)
        np.testing.assert_allclose(found, expected, rtol=0, atol=error)
        np.testing.assert_array_equal(np.diag(found), 2.0)
        for row in (0, 45, 89):
            alone = store.block([row], every, float32=float32)
            np.testing.assert_array_equal(alone[0], found[row])
            np.testing.assert_array_equal(alone[0], found[:, row])
    beta = rng.normal(size=(90, 2))
    # Errors of either sign: of 90 terms about the length of beta, not its sum, is left.
    np.testing.assert_allclose(
        store.scores(every, beta, sparse.csr_array(X[::-1]), 1),
        expected[::-1] @ beta,
        rtol=1e-13,
        atol=double * float(np.linalg.norm(beta)),
    )


@pytest.mark.parametrize("multi_class", ["ovo", "ww"])
@pytest.mark.parametrize("offset", [1e4, 1e6])
def test_fits_of_mixed_data(multi_class: str, offset: float) -> None:
    X, y = mixed_data(offset=offset)
    rows = sparse.csr_matrix(X)
    params: dict[str, Any] = {"multi_class": multi_class, "gamma": 0.05, "C": 10.0}
    ours, dense = SVC(**params).fit(rows, y), SVC(**params).fit(X, y)
    assert ours.certificate_.optimal
    assert verify(ours, X, y).optimal
    assert verify(ours, rows, y).optimal
    assert verify(dense, rows, y).optimal
    np.testing.assert_allclose(duals(ours), duals(dense), rtol=1e-4)
    np.testing.assert_array_equal(ours.predict(rows), ours.predict(X))


def test_offsets_that_are_taken_away() -> None:
    """Ordinary data are not changed; only columns that are mostly an offset are filled."""
    X = mixed_data()[0]
    offsets = offsets_of(sparse.csr_array(X), KernelSpec("rbf", gamma=0.05))
    assert offsets is not None
    np.testing.assert_allclose(offsets[:4], X[:, :4].mean(axis=0), rtol=1e-14)
    assert not offsets[4:].any()
    rng = np.random.default_rng(0)
    ordinary = sparse.csr_array(rng.normal(size=(60, 25)) * (rng.uniform(size=(60, 25)) < 0.25))
    for gamma in (0.04, 1.0, 1e4):
        assert offsets_of(ordinary, KernelSpec("rbf", gamma=gamma)) is None
    assert offsets_of(sparse.csr_array(X), KernelSpec("linear")) is None
    assert offsets_of(sparse.csr_matrix((0, 3)), KernelSpec("rbf", gamma=1.0)) is None
    assert offsets_of(sparse.csr_array(np.full((5, 2), 1e300)), KernelSpec("rbf", gamma=1.0)) is None


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scale_of_data_with_offsets(dtype: type) -> None:
    """gamma="scale" is that of the dense data; the mean of squares less the squared mean would be far from it."""
    X = (load_iris().data * 64 + 2.0**20).astype(dtype)
    weight = np.arange(1.0, 151.0)
    for offset in (0.0, 2.0**27) if dtype is np.float64 else (0.0,):
        rows = sparse.csr_matrix(X + offset)
        assert variance(rows) == pytest.approx(np.float64(X + offset).var(), rel=1e-6)
        assert variance(rows, weight) == pytest.approx(variance(np.float64(X + offset), weight), rel=1e-6)
        np.testing.assert_allclose(column_deviations(rows), column_deviations(X + offset), rtol=1e-6)
    constant = sparse.csr_array(np.column_stack([np.full(9, 0.1), np.zeros(9), np.arange(9.0)]))
    assert np.flatnonzero(column_deviations(constant) == 0).tolist() == [0, 1]


def test_search_and_stream() -> None:
    """Estimators with other code paths: SVCCV and OnlineSVC."""
    X, y = load_iris(return_X_y=True)
    X = X + 1e5
    rows = sparse.csr_array(X)
    grid: dict[str, Any] = {"Cs": [1.0, 10.0], "gammas": [0.1, 1.0], "cv": 3}
    searches = [SVCCV(**grid).fit(data, y) for data in (rows, X)]
    np.testing.assert_allclose(
        searches[0].cv_results_["mean_test_score"], searches[1].cv_results_["mean_test_score"], rtol=0, atol=1e-12
    )
    assert verify(searches[0].best_estimator_, X, y).optimal
    streams = [OnlineSVC(gamma=0.1).fit(data, y) for data in (rows, X)]
    np.testing.assert_allclose(streams[0].decision_function(rows), streams[1].decision_function(X), atol=1e-9)


@pytest.mark.parametrize("multi_class", ["ovo", "ww"])
@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
def test_dense_data_with_the_largest_offsets(kernel: str, multi_class: str) -> None:
    """At 2^28 entries have 24 bits behind the point; shifted data without rounding are the same problem."""
    X, y = load_iris(return_X_y=True)
    X = np.round(X * 16) / 16
    params: dict[str, Any] = {"kernel": kernel, "multi_class": multi_class, "gamma": 0.2}
    ours, plain = SVC(**params).fit(X + 2.0**28, y), SVC(**params).fit(X, y)
    assert ours.certificate_.optimal
    assert duals(ours) == pytest.approx(duals(plain), rel=1e-4)
    assert verify(ours, X + 2.0**28, y).optimal
