"""Precomputed and callable kernels: the same models as the kernel itself, and the errors of bad matrices and
functions."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics.pairwise import linear_kernel, rbf_kernel
from sklearn.model_selection import GridSearchCV, cross_val_predict

from multimargin import SVC, verify
from multimargin.kernels.spec import KernelSpec
from multimargin.kernels.store import KernelStore
from multimargin.problems.given_kernels import BLOCK_ROWS, check_definiteness, evaluate_blocks, symmetric
from multimargin.problems.problem import Loss
from multimargin.solvers.options import PAIR_CHOICES, SolverChoice
from support.helpers import draw_data, duals, each_loss, each_machine

X, y = draw_data(0, 60, 3, n_features=4)
POINTS = draw_data(1, 25, 3, n_features=4)[0]
GAMMA = 0.3


def gaussian(A: Any, B: Any) -> np.ndarray:
    return np.asarray(rbf_kernel(A, B, gamma=GAMMA))


K, K_POINTS = gaussian(X, X), gaussian(POINTS, X)
BUILT_IN: dict[str, Any] = {"kernel": "rbf", "gamma": GAMMA}


def assert_same_scores(found: np.ndarray, expected: np.ndarray) -> None:
    np.testing.assert_allclose(found, expected, atol=1e-7 * np.abs(expected).max())


@each_machine
@each_loss
def test_every_machine(name: str, loss: Loss) -> None:
    params: dict[str, Any] = {"multi_class": name, "loss": loss.value, "bias": "regularized", "C": 3.0}
    expected = SVC(**params, **BUILT_IN).fit(X, y)
    matrix = SVC(**params, kernel="precomputed").fit(K, y)
    function = SVC(**params, kernel=gaussian).fit(X, y)
    for clf in (matrix, function):
        assert clf.certificate_.optimal
        assert clf.certificate_.dual == pytest.approx(expected.certificate_.dual, rel=1e-9)
        assert "found positive semi-definite on all rows" in clf.certificate_.remark
    assert_same_scores(matrix.decision_function(K_POINTS), expected.decision_function(POINTS))
    assert_same_scores(function.decision_function(POINTS), expected.decision_function(POINTS))
    assert verify(matrix, K, y).optimal
    assert verify(function, X, y).optimal


@pytest.mark.parametrize("solver", list(SolverChoice), ids=lambda choice: choice.value)
@pytest.mark.parametrize("multi_class", ["ww", "ovo"])
def test_every_solver(multi_class: str, solver: SolverChoice) -> None:
    bias = "exact" if solver in PAIR_CHOICES else "none"
    if bias == "exact" and multi_class == "ww":
        pytest.skip("pairs of variables are for binary problems")
    params: dict[str, Any] = {"multi_class": multi_class, "bias": bias, "solver": solver.value, "tol": 1e-8}
    expected = SVC(**params, **BUILT_IN).fit(X, y)
    clf = SVC(**params, kernel="precomputed").fit(K, y)
    assert clf.certificate_.optimal
    assert clf.certificate_.solver == solver.value
    assert_same_scores(clf.decision_function(K_POINTS), expected.decision_function(POINTS))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_matrix_is_read_in_place(dtype: type) -> None:
    matrix: Any = K.astype(dtype)
    matrix.flags.writeable = False
    assert symmetric(matrix, "X") is matrix
    store = KernelStore(matrix, KernelSpec("precomputed", offset=1.0))
    rows, columns = np.array([5, 0, 59]), np.arange(59, -1, -1)
    np.testing.assert_array_equal(store.block(rows, columns), matrix[np.ix_(rows, columns)].astype(np.float64) + 1)
    np.testing.assert_array_equal(store.diagonal(), np.diag(matrix).astype(np.float64) + 1)
    clf = SVC(kernel="precomputed").fit(matrix, y)
    assert clf.certificate_.optimal
    assert clf.decision_function(K_POINTS.astype(dtype)).dtype == np.float64


def test_attributes_of_a_precomputed_kernel() -> None:
    clf = SVC(kernel="precomputed").fit(K, y)
    assert clf.support_vectors_.shape == (0, 0)
    assert clf.n_features_in_ == 60
    assert clf.shape_fit_ == (60, 60)
    tags = clf.__sklearn_tags__().input_tags
    assert tags.pairwise
    assert not tags.sparse
    assert not SVC().__sklearn_tags__().input_tags.pairwise
    assert SVC(kernel=gaussian).__sklearn_tags__().input_tags.sparse
    with pytest.raises(AttributeError, match="linear kernel"):
        _ = SVC(kernel=gaussian).fit(X, y).coef_


def test_only_columns_of_support_vectors_are_read() -> None:
    clf = SVC(kernel="precomputed", C=100.0).fit(K, y)
    unused = np.setdiff1d(np.arange(60), clf.support_)
    assert len(unused)
    holes = K_POINTS.copy()
    holes[:, unused] = np.nan
    np.testing.assert_array_equal(clf.decision_function(holes), clf.decision_function(K_POINTS))
    sentence = "X contains NaN or infinity, first in row {}, column {}; give finite kernel values, or NaN throughout"
    for row, column, value in ((3, clf.support_[0], np.inf), (2, clf.support_[1], np.nan), (0, unused[0], np.inf)):
        bad = holes.copy()
        bad[row, column] = value
        with pytest.raises(ValueError, match=sentence.format(row, column)):
            clf.predict(bad)
    bad = K_POINTS.copy()
    bad[:, clf.support_[0]] = np.nan  # throughout, but it is read
    with pytest.raises(ValueError, match=sentence.format(0, clf.support_[0])):
        clf.predict(bad)
    bad = holes.copy()
    bad[1:, unused[0]] = K_POINTS[1:, unused[0]]  # NaN, but not throughout
    with pytest.raises(ValueError, match=sentence.format(0, unused[0])):
        clf.predict(bad)


@pytest.mark.parametrize("given", ["precomputed", gaussian], ids=["precomputed", "callable"])
def test_weights_and_subsets(given: Any) -> None:
    weight = np.random.default_rng(0).uniform(0.2, 2.0, 60)
    weight[10:20] = 0.0
    data, points = (K, K_POINTS) if given == "precomputed" else (X, POINTS)
    clf = SVC(kernel=given).fit(data, y, sample_weight=weight)
    expected = SVC(**BUILT_IN).fit(X, y, sample_weight=weight)
    assert not np.isin(np.arange(10, 20), clf.support_).any()
    assert_same_scores(clf.decision_function(points), expected.decision_function(POINTS))
    assert verify(clf, data, y, sample_weight=weight).optimal


def test_inside_cross_validation() -> None:
    search = GridSearchCV(SVC(kernel="precomputed"), {"C": [0.1, 10.0]}, cv=3).fit(K, y)
    expected = GridSearchCV(SVC(**BUILT_IN), {"C": [0.1, 10.0]}, cv=3).fit(X, y)
    np.testing.assert_array_equal(search.cv_results_["mean_test_score"], expected.cv_results_["mean_test_score"])
    predicted = cross_val_predict(SVC(kernel=gaussian), X, y, cv=3)
    np.testing.assert_array_equal(predicted, cross_val_predict(SVC(**BUILT_IN), X, y, cv=3))


@pytest.mark.parametrize("multi_class", ["ovo", "ww"])
def test_hard_margin(multi_class: str) -> None:
    params: dict[str, Any] = {"multi_class": multi_class, "C": np.inf}
    clf = SVC(kernel="precomputed", **params).fit(K, y)
    assert clf.certificate_.optimal
    assert verify(clf, K, y).optimal
    assert_same_scores(clf.decision_function(K_POINTS), SVC(**params, **BUILT_IN).fit(X, y).decision_function(POINTS))
    with pytest.raises(ValueError, match="the classes cannot be separated"):
        SVC(kernel="precomputed", **params).fit(np.ones((60, 60)), y)


BAD_MATRICES: list[tuple[Any, type[Exception], str]] = [
    (K[:, :50], ValueError, r"X has shape \(60, 50\); with kernel='precomputed' fit needs the square matrix"),
    (np.where(np.arange(60) == 7, 2.0, K), ValueError, r"X is not symmetric: entry \(\d+, 7\) is|entry \(7, \d+\) is"),
    (sparse.csr_array(K), TypeError, r"sparse matrix, kernel='precomputed' needs a dense one; pass X.toarray\(\)"),
    (np.where(np.eye(60) > 0, np.nan, K), ValueError, "contains NaN"),
]


@pytest.mark.parametrize(("matrix", "error", "sentence"), BAD_MATRICES)
def test_bad_matrix(matrix: Any, error: type[Exception], sentence: str) -> None:
    clf = SVC(kernel="precomputed").fit(K, y)
    before = clf.decision_function(K_POINTS)
    with pytest.raises(error, match=sentence):
        clf.fit(matrix, y)
    np.testing.assert_array_equal(clf.decision_function(K_POINTS), before)


def test_bad_points() -> None:
    clf = SVC(kernel="precomputed").fit(K, y)
    with pytest.raises(ValueError, match="X has 59 features, but SVC is expecting 60"):
        clf.predict(K_POINTS[:, 1:])
    with pytest.raises(TypeError, match="needs a dense one"):
        clf.predict(sparse.csr_array(K_POINTS))
    with pytest.raises(ValueError, match="X has 50 features, but SVC is expecting 60"):
        verify(clf, K[:50, :50], y[:50])
    with pytest.raises(ValueError, match="verify needs the training data"):
        verify(clf, K[:50], y[:50])


def test_symmetry_is_checked_in_every_block() -> None:
    n = 2 * BLOCK_ROWS + 10
    matrix = np.eye(n)
    matrix[n - 1, 3], matrix[3, n - 1] = 0.5, 0.4
    with pytest.raises(ValueError, match=rf"entry \(3, {n - 1}\) is 0.4 and entry \({n - 1}, 3\) is 0.5"):
        symmetric(matrix, "X")
    matrix[n - 1, 3] = 0.4 + 5e-7
    averaged = symmetric(matrix, "X")
    assert averaged[3, n - 1] == averaged[n - 1, 3] == pytest.approx(0.4 + 2.5e-7, abs=1e-12)
    assert matrix[3, n - 1] == 0.4
    matrix[n - 1, 3] = 0.4 + 1e-15
    assert symmetric(matrix, "X") is matrix


@pytest.mark.parametrize(("multi_class", "solver"), [("ww", "s2do"), ("ovo", "smo"), ("ova", "smo")])
def test_indefinite_matrix(multi_class: str, solver: str) -> None:
    """Treated as the sigmoid kernel is: a KKT point, without a gap."""
    indefinite = np.tanh(X @ X.T - 1.0)
    clf = SVC(multi_class=multi_class, kernel="precomputed", tol=1e-6).fit(indefinite, y)
    assert clf.certificate_.solver == solver
    assert clf.certificate_.optimal
    assert np.isnan(clf.certificate_.gap)
    assert np.isnan(verify(clf, indefinite, y).gap)
    assert "not positive semi-definite" in clf.certificate_.remark
    expected = SVC(multi_class=multi_class, kernel="sigmoid", gamma=1.0, coef0=-1.0, tol=1e-6).fit(X, y)
    assert duals(clf) == pytest.approx(duals(expected), rel=1e-6)
    for params, sentence in (
        ({"loss": "squared_hinge"}, "use loss='hinge'"),
        ({"solver": "two-level", "bias": "none"}, "needs a positive semi-definite kernel"),
        ({"C": np.inf}, "not positive semi-definite; use a finite C"),
    ):
        with pytest.raises(ValueError, match=sentence):
            SVC(multi_class=multi_class, kernel="precomputed", **params).fit(indefinite, y)


def test_definiteness_is_tested_on_a_sample() -> None:
    n = 700
    values = np.random.default_rng(0).normal(size=(n, 3))
    low_rank = values @ values.T
    every = np.arange(n)
    shifted = low_rank - 0.01 * np.eye(n)
    for semidefinite, indefinite in ((low_rank, shifted), (low_rank.astype(np.float32), shifted.astype(np.float32))):
        assert check_definiteness(semidefinite, every) == (True, 512)
        assert check_definiteness(indefinite, every) == (False, 512)
    assert check_definiteness(np.zeros((5, 5)), np.arange(5)) == (True, 5)
    assert check_definiteness(-np.eye(5), np.arange(5)) == (False, 5)
    labels = (values[:, 0] > 0).astype(int)
    clf = SVC(kernel="precomputed").fit(low_rank, labels)
    assert "on a sample of 512 rows" in clf.certificate_.remark
    part = low_rank - 1e3 * np.eye(n) * (every >= 50)
    assert check_definiteness(part, np.arange(50)) == (True, 50)  # only the rows that take part


def test_function_is_asked_by_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("multimargin.problems.given_kernels.BLOCK_ROWS", 16)
    asked: list[tuple[int, int]] = []

    def counting(A: Any, B: Any) -> np.ndarray:
        asked.append((len(A), len(B)))
        return gaussian(A, B)

    clf = SVC(kernel=counting).fit(X, y)
    assert asked == [(16, 60)] * 3 + [(12, 60)]
    asked.clear()
    scores = clf.decision_function(POINTS)
    assert asked == [(16, len(clf.support_)), (9, len(clf.support_))]
    assert_same_scores(scores, SVC(**BUILT_IN).fit(X, y).decision_function(POINTS))


def test_function_of_whole_matrices_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("multimargin.problems.given_kernels.BLOCK_ROWS", 16)

    def whole(A: Any, B: Any) -> np.ndarray:
        return K if len(A) == 60 else np.zeros(3)

    np.testing.assert_array_equal(np.vstack([values for _, values in evaluate_blocks(whole, X, X)]), K)


def test_function_gets_what_the_user_gave() -> None:
    rows = sparse.csr_array(np.where(np.abs(X) < 0.5, 0.0, X))
    kinds = set()

    def looking(A: Any, B: Any) -> np.ndarray:
        kinds.add((type(A), A.dtype, type(B)))
        return np.asarray(linear_kernel(A, B))

    clf = SVC(kernel=looking).fit(rows, y)
    assert clf.certificate_.optimal
    expected = SVC(kernel="linear").fit(rows, y)
    assert_same_scores(clf.decision_function(rows), expected.decision_function(rows))
    assert kinds == {(sparse.csr_array, np.dtype(np.float64), sparse.csr_array)}
    assert sparse.issparse(clf.support_vectors_)
    kinds.clear()
    clf.fit(X.astype(np.float32), y).predict(POINTS.astype(np.float32))
    assert kinds == {(np.ndarray, np.dtype(np.float32), np.ndarray)}


def test_function_travels_with_the_model() -> None:
    clf = SVC(kernel=gaussian).fit(X, y)
    other = pickle.loads(pickle.dumps(clf))
    np.testing.assert_array_equal(other.decision_function(POINTS), clf.decision_function(POINTS))
    assert verify(other, X, y).optimal


BAD_FUNCTIONS: list[tuple[Any, type[Exception], str]] = [
    (lambda A, B: np.zeros(len(A)), ValueError, r"returned shape \(60,\) for 60 rows against 60.*shape \(60, 60\)"),
    (lambda A, B: None, ValueError, r"returned shape \(\)"),
    (lambda A, B: np.full((len(A), len(B)), "a"), TypeError, "array of real numbers"),
    (lambda A, B: np.full((len(A), len(B)), np.nan), ValueError, "returned NaN or infinity"),
    (lambda A, B: A[:, :1] + 2 * B[:, 0], ValueError, "The matrix that kernel returned is not symmetric"),
]


@pytest.mark.parametrize(("function", "error", "sentence"), BAD_FUNCTIONS)
def test_bad_function(function: Any, error: type[Exception], sentence: str) -> None:
    with pytest.raises(error, match=sentence):
        SVC(kernel=function).fit(X, y)


def test_function_whose_values_do_not_fit() -> None:
    asked = []

    def kernel(A: Any, B: Any) -> np.ndarray:
        asked.append(len(A))
        return gaussian(A, B)

    with pytest.raises(MemoryError, match=r"cache_size=0.01 allows 0; set cache_size=1 or fit on fewer rows"):
        SVC(kernel=kernel, cache_size=0.01).fit(X, y)
    assert not asked
    assert SVC(kernel=kernel, cache_size=1).fit(X, y).certificate_.optimal


@pytest.mark.parametrize("multi_class", ["ovo", "ww"])
def test_bits_do_not_depend_on_threads(multi_class: str, monkeypatch: pytest.MonkeyPatch) -> None:
    labels = np.random.default_rng(0).integers(0, 3, 600)
    rows = np.random.default_rng(1).normal(size=(600, 3))
    results = []
    for n_threads in (1, 2):
        monkeypatch.setattr("multimargin.fitting.machine.n_threads", lambda n=n_threads: n)
        monkeypatch.setattr("multimargin.models.kernel_model.n_threads", lambda n=n_threads: n)
        clf = SVC(multi_class=multi_class, kernel="precomputed").fit(gaussian(rows, rows), labels)
        results.append((clf.dual_coef_, clf.decision_function(gaussian(rows, rows))))
    for first, second in zip(*results, strict=True):
        np.testing.assert_array_equal(first, second)
