"""Extreme data, compared with a problem of known solution: rescaled, repeated, reformulated, or in closed form.

A fit is right, or does not end as converged, or raises an error of one sentence; test_extreme_scale.py and the
independent checker hold the last two.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning

from multimargin import SVC, LinearSVC, OnlineSVC, verify

X, Y = (part[::3].copy() for part in load_iris(return_X_y=True))
MACHINES = ("ovo", "dag", "ova", "ww", "cs", "llw", "adm", "ats", "atm", "rm", "mmr")
BEYOND = 248  # 2^248 squared is more than the kernel may have


def fitted(model: Any, rows: Any, labels: Any = Y, weight: Any = None) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", "The number of unique classes", UserWarning)
        return model.fit(rows, labels) if weight is None else model.fit(rows, labels, weight)


def optimum(model: Any) -> float:
    """The dual objective, of all pairs together."""
    certificate = model.certificate_
    return float(sum(part.dual for part in certificate.parts or (certificate,)))


def gap(model: Any) -> float:
    certificate = model.certificate_
    return float(sum(part.gap for part in certificate.parts or (certificate,)))


def assert_claims_hold(model: Any, rows: Any, labels: Any = Y, weight: Any = None) -> None:
    """Fits that end as converged are optimal, by the fit and by ``verify``; nothing is NaN."""
    certificate = model.certificate_
    assert np.isfinite(model.decision_function(rows)).all()
    if certificate.stop_reason == "converged":
        assert certificate.optimal
        assert verify(model, rows, labels, sample_weight=weight).optimal


@pytest.mark.parametrize("machine", MACHINES)
def test_scaled_rows_with_the_inverse_bound_are_the_same_problem(machine: str) -> None:
    """The solution depends on K / C alone: s X and C / s^2 have the dual variables a / s^2 and the same scores."""
    usual = fitted(SVC(kernel="linear", multi_class=machine, tol=1e-4), X)
    for power in (-400, -200, -30, -10, 10, 30, 200):
        s = 2.0**power
        scaled = fitted(SVC(kernel="linear", multi_class=machine, tol=1e-4, C=1 / s**2, max_time=5), X * s)
        assert_claims_hold(scaled, X * s)
        if power >= -30 or scaled.certificate_.stop_reason == "converged":
            assert optimum(scaled) * s * s == pytest.approx(optimum(usual), rel=1e-3)
            assert np.abs(scaled.decision_function(X * s) - usual.decision_function(X)).max() < 0.02


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
def test_scaled_rows_with_the_inverse_gamma_are_the_same_problem(machine: str, kernel: str) -> None:
    usual = fitted(SVC(kernel=kernel, gamma=0.5, multi_class=machine), X)
    for power in (-400, -200, -40, 40, 200, BEYOND):
        s = 2.0**power
        gamma = 0.5 / (s * s if kernel == "rbf" else s)
        if power == BEYOND:
            with pytest.raises(ValueError, match="scale the columns"):
                fitted(SVC(kernel=kernel, gamma=gamma, multi_class=machine), X * s)
            break
        scaled = fitted(SVC(kernel=kernel, gamma=gamma, multi_class=machine), X * s)
        assert scaled.certificate_.optimal
        assert optimum(scaled) == pytest.approx(optimum(usual), rel=1e-3)
        assert np.abs(scaled.decision_function(X * s) - usual.decision_function(X)).max() < 0.02


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("bias", ["none", "exact"])
def test_bounds_over_24_orders(machine: str, bias: str) -> None:
    """For small C every variable is at its bound; for large C a hard margin ends it, or rounding does."""
    last = 0.0
    for exponent in range(-12, 13, 3):
        model = fitted(SVC(C=10.0**exponent, gamma=0.5, multi_class=machine, bias=bias, max_time=5), X)
        assert_claims_hold(model, X)
        if not model.certificate_.optimal:
            continue
        assert optimum(model) + gap(model) >= last * (1 - 1e-6)  # the optimum grows with C
        if exponent in (-9, -6) and bias == "none":  # each example is charged its targets, whatever the kernel
            assert optimum(model) == pytest.approx(1e3 * last, rel=1e-3)
        last = optimum(model)


@pytest.mark.parametrize("machine", MACHINES)
def test_gamma_over_24_orders(machine: str) -> None:
    """Compared with the same machine on NumPy's kernel matrix, up to constant and identity matrices."""
    rows = X + np.arange(len(X))[:, None] * 1e-3  # no two are the same
    squares = ((rows[:, None, :] - rows[None, :, :]) ** 2).sum(axis=2)
    for exponent in range(-12, 13, 3):
        gamma = 10.0**exponent
        model = fitted(SVC(gamma=gamma, multi_class=machine, max_time=5), rows)
        assert_claims_hold(model, rows)
        given = fitted(SVC(kernel="precomputed", multi_class=machine, max_time=5), np.exp(-gamma * squares))
        assert model.certificate_.optimal
        assert given.certificate_.optimal
        assert abs(optimum(model) - optimum(given)) <= max(gap(model), gap(given)) + 1e-6 * optimum(given)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("exponent", [-12, -6, 6, 12])
def test_weights_that_the_bound_takes_back(machine: str, exponent: int) -> None:
    w = 2.0 ** (3.25 * exponent // 1)
    usual = fitted(SVC(C=4.0, gamma=0.5, multi_class=machine), X)
    weighted = fitted(SVC(C=4.0 / w, gamma=0.5, multi_class=machine), X, weight=np.full(len(X), w))
    assert np.array_equal(weighted.dual_coef_, usual.dual_coef_)
    assert np.array_equal(weighted.intercept_, usual.intercept_)


@pytest.mark.parametrize("machine", MACHINES)
def test_weights_over_24_orders(machine: str) -> None:
    """An example of nearly no weight has no effect, for any weights of the others."""
    weight = np.ones(len(X))
    weight[::5] = 1e-12
    kept = weight == 1.0
    usual = fitted(SVC(gamma=0.5, multi_class=machine, tol=1e-5), X[kept], Y[kept])
    model = fitted(SVC(gamma=0.5, multi_class=machine, tol=1e-5), X, weight=weight)
    assert_claims_hold(model, X, weight=weight)
    assert np.abs(model.decision_function(X) - usual.decision_function(X)).max() < 2e-2
    heavy = np.where(kept, 1e12, 1.0)
    assert_claims_hold(fitted(SVC(gamma=0.5, multi_class=machine, max_time=5), X, weight=heavy), X, weight=heavy)


@pytest.mark.parametrize("machine", MACHINES)
def test_rows_many_times_over(machine: str) -> None:
    """A row repeated a hundred times equals a row of weight 100."""
    few, labels = X[::4], Y[::4]
    once = fitted(SVC(gamma=0.5, multi_class=machine, tol=1e-5), few, labels, np.full(len(few), 100.0))
    often = fitted(SVC(gamma=0.5, multi_class=machine, tol=1e-5), np.repeat(few, 100, axis=0), np.repeat(labels, 100))
    assert_claims_hold(often, np.repeat(few, 100, axis=0), np.repeat(labels, 100))
    assert optimum(often) == pytest.approx(optimum(once), rel=1e-2)
    assert np.abs(often.decision_function(few) - once.decision_function(few)).max() < 5e-2


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly", "sigmoid", "laplacian"])
@pytest.mark.parametrize("value", [0.0, 1.0, 5e-324, 1e-310])
def test_one_column_that_tells_nothing(machine: str, kernel: str, value: float) -> None:
    """All rows the same: the scores are the same everywhere, and the certificate says what is true."""
    rows = np.full((len(X), 1), value)
    model = fitted(SVC(kernel=kernel, multi_class=machine), rows)
    assert_claims_hold(model, rows)
    assert len(np.unique(model.predict(rows))) == 1


@pytest.mark.parametrize("machine", MACHINES)
def test_denormal_entries_are_zeros_beside_others(machine: str) -> None:
    tiny = np.where(np.arange(X.shape[1]) % 2 == 0, X, 1e-310)
    zero = np.where(np.arange(X.shape[1]) % 2 == 0, X, 0.0)
    for kind in (np.asarray, sparse.csr_array):
        model = fitted(SVC(gamma=0.5, multi_class=machine), kind(tiny))
        assert_claims_hold(model, kind(tiny))
        assert np.allclose(
            model.decision_function(kind(zero)),
            fitted(SVC(gamma=0.5, multi_class=machine), kind(zero)).decision_function(kind(zero)),
            atol=1e-6,
        )


OTHER_FORMS: dict[str, Callable[[np.ndarray], Any]] = {
    "every other row": lambda a: np.repeat(a, 2, axis=0)[::2],
    "every other column": lambda a: np.repeat(a, 2, axis=1)[:, ::2],
    "backwards": lambda a: a[::-1, ::-1].copy()[::-1, ::-1],
    "by columns": np.asfortranarray,
    "other byte order": lambda a: a.astype(a.dtype.newbyteorder()),
    "read only": lambda a: np.frombuffer(a.tobytes()).reshape(a.shape),
    "unaligned": lambda a: np.frombuffer(b"x" + a.tobytes(), offset=1).reshape(a.shape),
    "one row for all": lambda a: np.broadcast_to(a[None], (1, *a.shape))[0],
    "list": lambda a: a.tolist(),
}


@pytest.mark.parametrize("form", OTHER_FORMS)
@pytest.mark.parametrize("make", [SVC, LinearSVC, OnlineSVC, lambda: SVC(multi_class="cs", kernel="linear")])
def test_forms_of_arrays_change_no_bit(form: str, make: Any) -> None:
    change = OTHER_FORMS[form]
    usual = fitted(make(), X)
    labels = Y.tolist() if form == "list" else change(Y[:, None].astype(float))[:, 0]
    other = fitted(make(), change(X), labels)
    assert np.array_equal(other.intercept_, usual.intercept_)
    assert np.array_equal(other.decision_function(X), usual.decision_function(X))
    assert np.allclose(other.decision_function(change(X)), usual.decision_function(X), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", ">i4", ">f4", "f2", "g", "?"])
def test_types_of_numbers(dtype: str) -> None:
    rows = np.round(X).astype(dtype)
    same = rows.astype(np.float32 if rows.dtype.itemsize < 8 and rows.dtype.kind == "f" else np.float64)
    usual = fitted(SVC(), same)
    other = fitted(SVC(), rows)
    assert np.allclose(other.decision_function(rows), usual.decision_function(same), atol=1e-5)


@pytest.mark.parametrize("dtype", [np.int64, np.int8, np.float32, np.longdouble])
def test_types_of_sparse_numbers(dtype: Any) -> None:
    rows = np.round(X)
    usual = fitted(SVC(), sparse.csr_array(rows))
    for form in (sparse.csr_array, sparse.csc_array, sparse.coo_array, sparse.csr_matrix):
        other = fitted(SVC(), form(rows.astype(dtype)))
        assert np.allclose(other.decision_function(form(rows.astype(dtype))), usual.decision_function(rows), atol=1e-5)


@pytest.mark.parametrize(
    "model",
    [
        SVC(max_time=0.5),
        SVC(multi_class="ova", max_time=0.5),
        SVC(multi_class="ww", max_time=0.5),
        SVC(multi_class="cs", max_time=0.5),
        LinearSVC(max_time=0.5),
    ],
    ids=lambda model: f"{type(model).__name__}-{model.multi_class}",
)
def test_a_thousand_classes_of_one_row(model: Any) -> None:
    rows = np.random.default_rng(0).normal(size=(1000, 3))
    labels = np.arange(1000)
    clf = fitted(model, rows, labels)
    assert np.isfinite(clf.decision_function(rows[:3])).all()
    assert clf.certificate_.stop_reason in ("converged", "max_time", "stalled")
