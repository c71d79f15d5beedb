"""Contradictory input raises an error of one sentence, and the caller's arrays are never changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_iris

from multimargin import (
    SVC,
    SVCCV,
    LinearSVC,
    LinearSVCCV,
    OnlineSVC,
    diagnose,
    load_model,
    save_model,
    svm_path,
    verify,
)
from multimargin.model_selection.pair_selection import PerPairSVC

X, Y = load_iris(return_X_y=True)


@pytest.mark.parametrize("scheme", ["ovo", "dag"])
@pytest.mark.parametrize("weighted", [False, True])
def test_verify_of_a_machine_with_own_parameters_for_each_pair(tmp_path: Any, scheme: str, weighted: bool) -> None:
    weight = np.random.default_rng(0).integers(0, 3, size=len(Y)).astype(float) if weighted else None
    template = SVC(multi_class=scheme, class_weight="balanced" if weighted else None, tol=1e-6)
    clf = PerPairSVC(C=[1.0, 10.0, 100.0], gamma=[0.1, 1.0, 0.5], estimator=template).fit(X, Y, weight)
    save_model(clf, tmp_path / "model")
    for model in (clf, load_model(tmp_path / "model")):
        certificate = verify(model, X, Y, weight)
        assert certificate.optimal
        parts, own = certificate.parts or (), clf.certificate_.parts or ()
        assert len(parts) == 3
        np.testing.assert_allclose([part.dual for part in parts], [part.dual for part in own], rtol=1e-9)
    clf.estimators_[1]._model.dual_coef[:] *= 1.5
    assert not verify(clf, X, Y, weight).optimal


def test_verify_refuses_other_data_and_other_models() -> None:
    clf = PerPairSVC().fit(X, Y)
    with pytest.raises(ValueError, match="y has the classes"):
        verify(clf, X[Y < 2], Y[Y < 2])
    with pytest.raises(ValueError, match="verify needs the training data"):
        verify(clf, X + 1.0, Y)
    search = SVCCV(Cs=[1.0], gammas=[0.1], cv=2).fit(X, Y)
    with pytest.raises(TypeError, match=r"model is a SVCCV, .* of a search its best_estimator_"):
        verify(search, X, Y)


def broken(kind: str) -> Any:
    """Return iris as a sparse matrix whose arrays contradict each other."""
    rows = sparse.csc_array(X) if kind.startswith("csc") else sparse.csr_array(X)
    if kind == "coo":
        rows = rows.tocoo()
        rows.coords[1][3] = -1
    elif kind == "negative":
        rows.indices[3] = -1
    elif kind in ("beyond", "csc beyond"):
        rows.indices[7] = 1_000_000
    elif kind == "descending":
        rows.indptr[5] = rows.indptr[-1]
    elif kind == "long":
        rows.indptr[-1] += 10_000
    else:
        rows.indptr[0] = -8
    return rows


KINDS = ["negative", "beyond", "coo", "csc beyond", "descending", "long", "before"]
FITTED: dict[str, Any] = {
    "SVC": SVC(multi_class="ww"),
    "ovo": SVC(),
    "LinearSVC": LinearSVC(),
    "LinearSVC ovo": LinearSVC(multi_class="ovo"),
    "PerPairSVC": PerPairSVC(),
    "OnlineSVC": OnlineSVC(),
    "SVCCV": SVCCV(Cs=[1.0], gammas=[0.1], cv=2),
    "LinearSVCCV": LinearSVCCV(Cs=[1.0], cv=2),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", list(FITTED))
def test_sparse_matrices_with_impossible_indices(name: str, kind: str) -> None:
    clf = FITTED[name]
    clf.fit(sparse.csr_array(X), Y)
    before = clf.predict(X)
    calls: list[Callable[..., Any]] = [clf.predict, lambda rows: clf.fit(rows, Y), lambda rows: clf.score(rows, Y)]
    calls += [getattr(clf, other) for other in ("decision_function",) if hasattr(clf, other)]
    calls += [lambda rows: clf.partial_fit(rows, Y)] if name == "OnlineSVC" else []
    calls += [lambda rows: verify(clf, rows, Y)] if "CV" not in name and name != "OnlineSVC" else []
    for call in calls:
        with pytest.raises(ValueError, match=r"X is a sparse matrix .*; rebuild it, and see X\.check_format\(\)\."):
            call(broken(kind))
    np.testing.assert_array_equal(clf.predict(X), before)


@pytest.mark.parametrize("kind", KINDS)
def test_other_calls_with_impossible_indices(kind: str) -> None:
    for call in (diagnose, lambda rows, y: svm_path(rows, y, Cs=[1.0])):
        with pytest.raises(ValueError, match="X is a sparse matrix"):
            call(broken(kind), Y)


@pytest.mark.parametrize(
    "make", [sparse.csr_array, sparse.csc_array, sparse.coo_array, sparse.csr_matrix, sparse.lil_array]
)
def test_sound_sparse_matrices_stay_as_they_are(make: Any) -> None:
    rows = make(X)
    copy = rows.copy()
    np.testing.assert_array_equal(SVC().fit(rows, Y).predict(rows), SVC().fit(sparse.csr_array(X), Y).predict(X))
    assert (rows != copy).nnz == 0


def writing(kind: str) -> Callable[[Any, Any], Any]:
    """Return a kernel that modifies its arguments."""

    def kernel(A: Any, B: Any) -> Any:
        if kind == "item":
            A[0, 0] = 7.0
        elif kind == "in place":
            B *= 2.0
        elif kind == "out":
            np.multiply(A, 2.0, out=A)
        elif kind == "sparse":
            A.data[:] = 1.0
        return A @ B.T

    return kernel


@pytest.mark.parametrize("kind", ["item", "in place", "out", "sparse"])
def test_a_kernel_that_writes_is_refused_and_the_data_stay(kind: str) -> None:
    rows = sparse.csr_array(X) if kind == "sparse" else X.copy()
    read: Any = lambda A, B: (A @ B.T).toarray() if kind == "sparse" else A @ B.T  # noqa: E731
    fitted = SVC(kernel=read).fit(rows, Y)
    before = fitted.predict(rows)
    match = "The callable kernel wrote to the rows that it was given .*let it compute with copies"
    with pytest.raises(ValueError, match=match):
        SVC(kernel=writing(kind)).fit(rows, Y)
    fitted._model = type(fitted._model)(
        **{**fitted._model.__dict__, "kernel": type(fitted._model.kernel)("callable", function=writing(kind))}
    )
    with pytest.raises(ValueError, match=match):
        fitted.predict(rows)
    np.testing.assert_array_equal(rows.toarray() if kind == "sparse" else rows, X)
    fitted = SVC(kernel=read).fit(rows, Y)
    np.testing.assert_array_equal(fitted.predict(rows), before)


def test_compiled_kernels_that_ask_for_writable_rows_get_copies() -> None:
    def kernel(A: np.ndarray, B: np.ndarray) -> np.ndarray:
        if not A.flags.writeable:
            raise ValueError("buffer source array is read-only")
        A *= 1.0
        product: np.ndarray = A @ B.T
        return product

    rows = X.copy()
    expected = SVC(kernel="linear").fit(rows, Y)
    np.testing.assert_array_equal(SVC(kernel=kernel).fit(rows, Y).predict(rows), expected.predict(rows))
    np.testing.assert_array_equal(rows, X)


HUGE = 10**30
BEYOND = 10**5000  # which Python does not write as text


@pytest.mark.parametrize("value", [HUGE, BEYOND, -BEYOND], ids=["huge", "beyond", "below"])
@pytest.mark.parametrize(
    ("estimator", "name"),
    [
        (SVC(), "max_iter"),
        (SVC(kernel="poly"), "degree"),
        (LinearSVC(), "max_iter"),
        (OnlineSVC(), "reprocess"),
        (OnlineSVC(), "passes"),
        (OnlineSVC(), "budget"),
        (OnlineSVC(), "random_state"),
    ],
)
def test_integers_beyond_what_can_be_counted(estimator: Any, name: str, value: int) -> None:
    estimator.set_params(**{name: value})
    with pytest.raises(ValueError, match=rf"^{name}=.* is not allowed; {name} must be an integer .*\.$"):
        estimator.fit(X, Y)
    estimator.set_params(**{name: type(estimator)().get_params()[name]})
    estimator.fit(X, Y)


@pytest.mark.parametrize("name", ["C", "gamma", "coef0", "tol", "cache_size", "max_time"])
def test_numbers_beyond_all_floats(name: str) -> None:
    with pytest.raises(ValueError, match=rf"^{name}=.* is not allowed; {name} must be a number .*\.$"):
        SVC(kernel="poly").set_params(**{name: BEYOND}).fit(X, Y)


@pytest.mark.parametrize("cache_size", [1e300, 1e18, HUGE])
def test_a_cache_larger_than_all_memory_is_no_error(cache_size: float) -> None:
    assert SVC(multi_class="ww", cache_size=cache_size).fit(X, Y).certificate_.optimal
    assert SVC(cache_size=cache_size).fit(X, Y).certificate_.optimal
    OnlineSVC(cache_size=cache_size).fit(X, Y)
