"""Sparse data: the same kernel values, models and certificates as for dense data."""

from __future__ import annotations

import copy
import pickle
import tracemalloc
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn import svm
from sklearn.exceptions import ConvergenceWarning

from multimargin import SVC, verify
from multimargin.base.matrices import distinct_rows, same_values, variance
from multimargin.kernels.spec import KernelSpec
from multimargin.kernels.store import KernelStore, pays_as_sparse
from multimargin.kernels.table import KERNELS
from multimargin.problems.problem import Loss
from multimargin.solvers.options import PAIR_CHOICES, SolverChoice
from support.helpers import duals, each_loss, each_machine

each_kernel = pytest.mark.parametrize("kernel", KERNELS)
each_container = pytest.mark.parametrize("container", [sparse.csr_array, sparse.csr_matrix])


def draw_sparse(n: int = 60, width: int = 25, seed: int = 0, share: float = 0.25) -> tuple[np.ndarray, np.ndarray]:
    """Return dense data with many zeros and two empty rows, and labels of three classes that depend on them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, width)) * (rng.uniform(size=(n, width)) < share)
    X[[3, n - 1]] = 0.0
    y = np.argmax(X[:, :3] + 0.3 * rng.normal(size=(n, 3)), axis=1)
    y[:3] = [0, 1, 2]
    return X, y


def with_integers(X: np.ndarray, integer: type) -> Any:
    rows = sparse.csr_array(X)
    rows.indices, rows.indptr = rows.indices.astype(integer), rows.indptr.astype(integer)
    return rows


def assert_same_model(ours: SVC, other: SVC, points: np.ndarray) -> None:
    """Compare optimal models: dual objectives and scores, which are unique."""
    for clf in (ours, other):
        assert clf.certificate_.optimal
    assert duals(ours) == pytest.approx(duals(other), rel=1e-9)
    scale = np.abs(other.decision_function(points)).max()
    np.testing.assert_allclose(ours.decision_function(points), other.decision_function(points), atol=1e-7 * scale)


@each_kernel
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("integer", [np.int32, np.int64])
def test_kernel_values(kernel: str, dtype: type, integer: type) -> None:
    X: np.ndarray = draw_sparse(n=150)[0].astype(dtype)
    spec = KernelSpec(kernel, gamma=0.1, coef0=0.5, offset=1.0)
    store = KernelStore(with_integers(X, integer), spec)
    assert store.sparse
    assert len(store) == 150
    rows, columns = np.array([3, 0, 149, 70, 1]), np.arange(149, 10, -1)
    expected = spec.gram(X[rows], X[columns])
    np.testing.assert_allclose(store.block(rows, columns), expected, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(store.block(rows, columns, float32=True), expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(store.diagonal(), np.diag(spec.gram(X, X)), rtol=1e-12)
    np.testing.assert_allclose(store.row(3), spec.gram(X[[3]], X)[0], rtol=1e-5, atol=1e-6)


@each_kernel
@pytest.mark.parametrize("stored_sparse", [False, True])
@pytest.mark.parametrize("points_sparse", [False, True])
def test_scores_of_either_kind(
    kernel: str, stored_sparse: bool, points_sparse: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, points = draw_sparse()[0], draw_sparse(n=70, seed=1)[0]
    spec = KernelSpec(kernel, gamma=0.1, coef0=0.5)
    beta = np.random.default_rng(2).normal(size=(5, 2))
    rows = np.array([7, 3, 20, 59, 1])
    monkeypatch.setattr("multimargin.kernels.store.CONVERTED_ENTRIES", 25 * 16)  # several blocks
    store = KernelStore(sparse.csr_array(X) if stored_sparse else X, spec)
    found = store.scores(rows, beta, sparse.csr_matrix(points) if points_sparse else points, 2)
    np.testing.assert_allclose(found, spec.gram(points, X[rows]) @ beta, rtol=1e-11, atol=1e-12)


@each_machine
@each_loss
@each_kernel
def test_every_machine_and_kernel(name: str, loss: Loss, kernel: str) -> None:
    if kernel == "sigmoid" and loss is Loss.SQUARED_HINGE:
        pytest.skip("refused: the dual may be unbounded")
    X, y = draw_sparse()
    params: dict[str, Any] = {"multi_class": name, "loss": loss.value, "kernel": kernel, "gamma": 0.2, "coef0": 0.5}
    params |= {"bias": "regularized", "degree": 2, "tol": 1e-9 if kernel == "sigmoid" else 1e-3}
    ours, dense = SVC(**params).fit(sparse.csr_array(X), y), SVC(**params).fit(X, y)
    assert_same_model(ours, dense, X)
    np.testing.assert_allclose(ours.decision_function(sparse.csr_array(X)), ours.decision_function(X), atol=1e-11)
    assert verify(ours, sparse.csr_array(X), y).optimal
    assert verify(ours, X, y).optimal
    assert verify(dense, sparse.csr_array(X), y).optimal


@pytest.mark.parametrize("solver", list(SolverChoice), ids=lambda choice: choice.value)
def test_every_solver(solver: SolverChoice) -> None:
    X, y = draw_sparse(n=200)
    multi_class = "ovo" if solver in PAIR_CHOICES else "ww"
    params: dict[str, Any] = {"solver": solver.value, "tol": 1e-8, "gamma": 0.1, "multi_class": multi_class}
    assert_same_model(SVC(**params).fit(sparse.csr_array(X), y), SVC(**params).fit(X, y), X)


@each_container
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("multi_class", "bias"), [("ww", "regularized"), ("ovo", "regularized"), ("ovo", "exact")])
def test_what_a_fit_leaves(container: Any, dtype: type, multi_class: str, bias: str) -> None:
    X, y = draw_sparse()
    rows = container(X.astype(dtype))
    clf = SVC(kernel="linear", bias=bias, multi_class=multi_class).fit(rows, y)
    if multi_class == "ovo":
        clf.set_params(decision_function_shape="ovo")
    assert type(clf.support_vectors_) is sparse.csr_matrix  # scikit-learn's setting, not the class of X
    assert clf.support_vectors_.dtype == dtype
    assert same_values(clf.support_vectors_, X.astype(dtype)[clf.support_])
    assert type(clf.coef_) is type(clf.dual_coef_) is sparse.csr_matrix
    np.testing.assert_allclose(X @ clf.coef_.toarray().T + clf.intercept_, clf.decision_function(rows), atol=1e-5)
    expected = clf.decision_function(rows)
    for other in (pickle.loads(pickle.dumps(clf)), copy.deepcopy(clf)):
        np.testing.assert_array_equal(other.decision_function(rows), expected)
    assert clf.__sklearn_tags__().input_tags.sparse


def test_gamma_is_scikit_learns() -> None:
    X, y = draw_sparse()
    rows = sparse.csr_matrix(X)
    assert SVC().fit(rows, y)._spec.kernel.gamma == svm.SVC().fit(rows, y)._gamma
    assert variance(rows) == pytest.approx(X.var(), rel=1e-12)
    repetitions = np.random.default_rng(0).integers(0, 4, len(X))
    repetitions[:3] = 1
    weighted = SVC().fit(rows, y, sample_weight=repetitions)
    repeated = SVC().fit(sparse.csr_array(np.repeat(X, repetitions, axis=0)), np.repeat(y, repetitions))
    assert weighted._spec.kernel.gamma == pytest.approx(repeated._spec.kernel.gamma, rel=1e-12)
    np.testing.assert_allclose(weighted.decision_function(rows), repeated.decision_function(rows), atol=1e-6)
    assert verify(weighted, rows, y, sample_weight=repetitions).optimal


def test_unsorted_and_repeated_entries() -> None:
    """They are sorted in a copy; the caller's arrays do not change."""
    X, y = draw_sparse()
    entries = sparse.coo_array(X)
    order = np.random.default_rng(0).permutation(entries.nnz)
    order = order[np.argsort(entries.row[order], kind="stable")]
    row, column, value = (np.repeat(part[order], 2) for part in (entries.row, entries.col, entries.data / 2))
    starts = np.searchsorted(row, np.arange(len(X) + 1)).astype(np.int32)
    messy = sparse.csr_array((value, column.astype(np.int32), starts), shape=X.shape)
    before = messy.indices.copy()
    assert_same_model(SVC(gamma=0.1).fit(messy, y), SVC(gamma=0.1).fit(X, y), X)
    np.testing.assert_array_equal(messy.indices, before)


def test_memory_that_is_read_only() -> None:
    X, y = draw_sparse()
    rows = sparse.csr_array(X)
    for part in (rows.data, rows.indices, rows.indptr):
        part.flags.writeable = False
    clf = SVC().fit(rows, y)
    np.testing.assert_array_equal(clf.dual_coef_.data, SVC().fit(sparse.csr_array(X), y).dual_coef_.data)
    assert verify(clf, rows, y).optimal


@each_kernel
def test_wide_data_stay_sparse(kernel: str) -> None:
    """200,000 features with 20 entries each row: dense rows of the training set would take half a gigabyte."""
    rng = np.random.default_rng(0)
    n, width = 300, 200_000
    X = sparse.random_array((n, width), density=1e-4, format="csr", rng=rng)
    X = sparse.csr_array(sparse.hstack([sparse.csr_array(rng.normal(size=(n, 2))), X[:, 2:]]))
    y = (X[:, [0]].toarray().ravel() > 0).astype(int) + (X[:, [1]].toarray().ravel() > 0)
    narrow = X[:, np.unique(X.indices)]
    clf = SVC(kernel=kernel, gamma=0.01, bias="regularized", tol=1e-6)
    tracemalloc.start()
    clf.fit(X, y)
    scores = clf.decision_function(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 30_000_000
    other = clf.__class__(**clf.get_params()).fit(narrow, y)
    assert clf.certificate_.dual == pytest.approx(other.certificate_.dual, rel=1e-9)
    np.testing.assert_allclose(scores, other.decision_function(narrow.toarray()), atol=1e-5)


def test_hard_margin() -> None:
    X, y = draw_sparse(width=80)
    rows = sparse.csr_array(X)
    for kernel in ("linear", "poly", "rbf"):
        distinct, labels = rows[: len(X) - 1], y[:-1]  # only one empty row
        clf = SVC(C=np.inf, kernel=kernel, gamma=0.1, coef0=1.0, bias="regularized").fit(distinct, labels)
        assert clf.certificate_.optimal
        assert_same_model(clf, SVC(**clf.get_params()).fit(distinct.toarray(), labels), X)
    twice = sparse.vstack([rows[:3], rows[:3]], format="csr")
    assert len(np.unique(distinct_rows(twice))) == 3
    same_label_twice = sparse.vstack([rows[:2], rows[:1], rows[4:5]], format="csr")
    assert SVC(C=np.inf, gamma=0.1).fit(same_label_twice, [0, 1, 0, 2]).certificate_.optimal
    for kernel in ("linear", "rbf"):
        with pytest.raises(ValueError, match="the classes cannot be separated"):
            SVC(C=np.inf, kernel=kernel).fit(twice, [0, 1, 2, 1, 2, 0])


def test_warning_names_the_column() -> None:
    X, y = draw_sparse()
    X[:, 4] *= 1e4
    with pytest.warns(ConvergenceWarning, match="column 4 of X varies"):
        SVC(multi_class="ww", max_iter=1, solver="s2do").fit(sparse.csr_array(X), y)


@pytest.mark.parametrize("integer", [np.int32, np.int64])
@pytest.mark.parametrize("multi_class", ["ovo", "ww"])
def test_bits_do_not_depend_on_threads(integer: type, multi_class: str, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = draw_sparse(n=700, width=40)
    fits = []
    for n_threads in (1, 2):
        monkeypatch.setattr("multimargin.fitting.machine.n_threads", lambda n=n_threads: n)
        monkeypatch.setattr("multimargin.models.kernel_model.n_threads", lambda n=n_threads: n)
        monkeypatch.setattr("multimargin.models.pair_model.n_threads", lambda n=n_threads: n)
        clf = SVC(multi_class=multi_class, gamma=0.1).fit(with_integers(X, integer), y)
        fits.append((clf.dual_coef_.toarray(), clf.decision_function(X)))
    for first, second in zip(*fits, strict=True):
        np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_dense_data_with_many_zeros(kernel: str, dtype: type, monkeypatch: pytest.MonkeyPatch) -> None:
    """Computed from sparse rows internally: the same model, and the caller sees dense data only."""
    X, y = draw_sparse(n=120, width=40, share=0.1)
    X = X.astype(dtype)
    spec = KernelSpec(kernel, gamma=0.05, coef0=1.0)
    assert KernelStore(X, spec).sparse
    params: dict[str, Any] = {"kernel": kernel, "gamma": 0.05, "coef0": 1.0, "tol": 1e-6}
    clf = SVC(**params).fit(X, y)
    assert type(clf.support_vectors_) is np.ndarray
    assert verify(clf, X, y).optimal
    monkeypatch.setattr("multimargin.kernels.store.SPARSE_SHARE", 0.0)
    assert not KernelStore(X, spec).sparse
    assert_same_model(clf, SVC(**params).fit(X, y), X)


def test_dense_data_that_stay_dense() -> None:
    X = draw_sparse(n=120, width=40, share=0.1)[0]
    assert pays_as_sparse(X, KernelSpec("rbf", gamma=0.05))
    assert not pays_as_sparse(X, KernelSpec("rbf", gamma=5.0))  # float32 would lose digits
    assert not pays_as_sparse(X, KernelSpec("laplacian", gamma=0.05))
    assert not pays_as_sparse(X[:, :31], KernelSpec("linear"))
    assert not pays_as_sparse(draw_sparse(width=40, share=0.5)[0], KernelSpec("linear"))
    X = np.zeros((400, 40))
    X[1::3] = 1.0  # a sample of every third row would miss it
    assert not pays_as_sparse(X, KernelSpec("linear"))


def test_float32_values_of_dense_data_with_many_zeros() -> None:
    """At the limit of the rule the error in float32 is that of a few roundings."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 100)) * (rng.uniform(size=(300, 100)) < 0.2)
    gamma = 0.999 * 8.0 / (2 * (X**2).sum(axis=1).max())
    store, every = KernelStore(X, KernelSpec("rbf", gamma=gamma)), np.arange(300)
    assert store.sparse
    error = store.block(every, every, float32=True) - store.block(every, every)
    assert np.abs(error).max() < 5e-7


def test_wrong_width() -> None:
    X, y = draw_sparse()
    clf = SVC().fit(sparse.csr_array(X), y)
    with pytest.raises(ValueError, match="X has 24 features, but SVC is expecting 25"):
        clf.predict(sparse.csr_array(X[:, 1:]))
    with pytest.raises(ValueError, match="contains NaN"):
        clf.fit(sparse.csr_array(np.where(X == 0, 0, np.nan)), y)
