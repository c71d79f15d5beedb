"""Pairwise coupling: the optimality conditions, two independent solvers, and invariants for any r."""

from __future__ import annotations

import clarabel
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import sparse
from threadpoolctl import threadpool_limits

from multimargin.models.coupling_probabilities import MAX_CHUNK, SMALLEST, couple_pairs

Array = NDArray[np.float64]


@st.composite
def pair_probabilities(draw: st.DrawFn) -> tuple[Array, int]:
    """r of up to eight classes; the second kind is full of certainties, contradictions and even chances."""
    n_classes = draw(st.integers(2, 8))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    shape = (draw(st.integers(1, 20)), n_classes * (n_classes - 1) // 2)
    if draw(st.booleans()):
        return rng.uniform(size=shape), n_classes
    return rng.choice([0.0, 1e-9, 1e-3, 0.5, 1.0], size=shape), n_classes


def as_matrix(r: Array, n_classes: int) -> Array:
    """Return r_ij at (i, j), after LIBSVM's clipping; 0 on the diagonal."""
    matrix = np.zeros((n_classes, n_classes))
    matrix[np.triu_indices(n_classes, 1)] = np.clip(r, SMALLEST, 1 - SMALLEST)
    return matrix + np.tril(1 - matrix.T, -1)


def objective(R: Array, p: Array) -> float:
    """WLW04's sum as printed."""
    pairs = [(i, j) for i in range(len(p)) for j in range(len(p)) if i != j]
    return float(sum((R[j, i] * p[i] - R[i, j] * p[j]) ** 2 for i, j in pairs))


def gradient(R: Array, p: Array) -> Array:
    """The derivative of the objective, pair by pair."""
    result = np.zeros(len(p))
    for i in range(len(p)):
        for j in range(len(p)):
            difference = R[j, i] * p[i] - R[i, j] * p[j]
            result[i] += 2 * difference * R[j, i]
            result[j] -= 2 * difference * R[i, j]
    return result


@given(case=pair_probabilities())
def test_optimality_conditions(case: tuple[Array, int]) -> None:
    r, n_classes = case
    p = couple_pairs(r)
    assert p.shape == (len(r), n_classes)
    assert (p > 0).all()
    np.testing.assert_allclose(p.sum(axis=1), 1, rtol=0, atol=1e-14)
    for row, distribution in zip(r, p, strict=True):
        slope = gradient(as_matrix(row, n_classes), distribution)
        # Stationary on the simplex: one multiplier for all entries, which are all positive.
        assert np.ptp(slope) <= 1e-10


def solve_with_clarabel(R: Array) -> Array:
    n_classes = len(R)
    basis = np.eye(n_classes)
    hessian = np.array([gradient(R, column) for column in basis])  # the objective is quadratic
    constraints = sparse.csc_matrix(np.vstack([np.ones(n_classes), -basis]))
    cones = [clarabel.ZeroConeT(1), clarabel.NonnegativeConeT(n_classes)]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-12
    right = np.append(1.0, np.zeros(n_classes))
    upper = sparse.csc_matrix(np.triu(hessian))
    solution = clarabel.DefaultSolver(upper, np.zeros(n_classes), constraints, right, cones, settings).solve()
    assert solution.status == clarabel.SolverStatus.Solved
    return np.array(solution.x)


@given(seed=st.integers(0, 2**32), n_classes=st.integers(2, 8))
def test_agrees_with_an_interior_point_solver(seed: int, n_classes: int) -> None:
    r = np.random.default_rng(seed).uniform(size=(1, n_classes * (n_classes - 1) // 2))
    R = as_matrix(r[0], n_classes)
    expected = solve_with_clarabel(R)
    found = couple_pairs(r)[0]
    assert objective(R, found) <= objective(R, expected) + 1e-12
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)


def iterate(R: Array) -> Array:
    """WLW04's own iteration, which LIBSVM stops early: p_t from its equation, then normalised."""
    n_classes = len(R)
    Q = -R * R.T + np.diag((R.T**2).sum(axis=1))
    p = np.full(n_classes, 1 / n_classes)
    for sweep in range(5_000):
        t = sweep % n_classes
        p[t] = (p @ Q @ p - Q[t] @ p + Q[t, t] * p[t]) / Q[t, t]
        p /= p.sum()
    return p


@given(case=pair_probabilities())
def test_is_where_the_iteration_of_the_paper_ends(case: tuple[Array, int]) -> None:
    r, n_classes = case
    np.testing.assert_allclose(couple_pairs(r)[0], iterate(as_matrix(r[0], n_classes)), rtol=0, atol=1e-10)


def test_two_classes_give_r_itself() -> None:
    r = np.append(np.random.default_rng(0).uniform(size=50), [0.0, 1.0])
    clipped = np.clip(r, 1e-7, 1 - 1e-7)
    np.testing.assert_allclose(couple_pairs(r[:, None]), np.stack([clipped, 1 - clipped], axis=1), rtol=0, atol=1e-15)


@given(case=pair_probabilities(), data=st.data())
def test_renaming_the_classes_renames_the_probabilities(case: tuple[Array, int], data: st.DataObject) -> None:
    r, n_classes = case
    order = np.array(data.draw(st.permutations(range(n_classes))))
    i, j = np.triu_indices(n_classes, 1)
    renamed = np.stack([as_matrix(row, n_classes)[order][:, order][i, j] for row in r])
    np.testing.assert_allclose(couple_pairs(renamed), couple_pairs(r)[:, order], rtol=0, atol=1e-13)


@given(seed=st.integers(0, 2**32), n_classes=st.integers(2, 40))
def test_consistent_pairs_give_the_true_probabilities(seed: int, n_classes: int) -> None:
    p = np.random.default_rng(seed).dirichlet(np.ones(n_classes), size=5) + 1e-5
    p /= p.sum(axis=1, keepdims=True)
    i, j = np.triu_indices(n_classes, 1)
    np.testing.assert_allclose(couple_pairs(p[:, i] / (p[:, i] + p[:, j])), p, rtol=0, atol=1e-13)


def test_a_row_does_not_depend_on_its_chunk() -> None:
    r = np.random.default_rng(0).uniform(size=(2 * MAX_CHUNK + 3, 3))
    p = couple_pairs(r)
    for row in (0, MAX_CHUNK - 1, MAX_CHUNK, 2 * MAX_CHUNK + 2):
        np.testing.assert_array_equal(p[row], couple_pairs(r[row : row + 1])[0])
    assert couple_pairs(r[:0]).shape == (0, 3)


@pytest.mark.parametrize("n_classes", [10, 60])
def test_same_bits_for_any_number_of_threads(n_classes: int) -> None:
    r = np.random.default_rng(0).uniform(size=(50, n_classes * (n_classes - 1) // 2))
    with threadpool_limits(1):
        expected = couple_pairs(r)
    with threadpool_limits(2):
        np.testing.assert_array_equal(couple_pairs(r), expected)


@pytest.mark.parametrize("n_pairs", [0, 2, 5])
def test_refuses_a_number_of_pairs_that_no_classes_have(n_pairs: int) -> None:
    with pytest.raises(ValueError, match=rf"r has {n_pairs} columns; d classes have d \(d - 1\) / 2 pairs"):
        couple_pairs(np.full((4, n_pairs), 0.5))
