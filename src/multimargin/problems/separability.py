"""Existence of a hard margin (C = inf), checked before training: without one the dual is unbounded."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from multimargin._typing import DataMatrix
from multimargin.base.matrices import distinct_rows, is_sparse
from multimargin.problems.problem import Bias, DualProblem

# Beyond this many examples a kernel without explicit features is checked on a sample: if a part is
# not separable, the whole is not.
SAMPLE = 1_000


def refuse_if_inseparable(problem: DualProblem) -> None:
    """Raise ValueError when C is infinite and no weights reach all target margins."""
    if not np.isinf(problem.data.C).any():
        return
    if not np.isinf(problem.data.C).all():
        raise ValueError("C=inf with a finite C for some examples; use C=inf for all of them or for none.")
    if not problem.kernel.positive_semidefinite:
        raise ValueError(
            f"C=inf with kernel={problem.kernel.name!r} may have no solution, because the kernel is not positive "
            "semi-definite; use a finite C or another kernel."
        )
    if problem.kernel.shift_invariant and problem.kernel.scale != 0:
        # A function of the distance that is positive semi-definite for any number of features, and not constant, is
        # strictly so (Schoenberg): distinct points are independent in feature space.
        separable = not _same_point_in_two_classes(problem)
    else:
        features, examples = _features(problem)
        separable = _margins_exist(problem, features, examples)
    if not separable:
        raise ValueError(
            "C=inf asks for a hard margin, but the classes cannot be separated without error; use a finite C or a "
            "kernel that separates them."
        )


def _same_point_in_two_classes(problem: DualProblem) -> bool:
    data = problem.data
    points = distinct_rows(data.X[data.rows])
    classes_at_point = np.unique(np.stack([points, data.y], axis=1), axis=0)
    return len(classes_at_point) > len(np.unique(points))


def _features(problem: DualProblem) -> tuple[DataMatrix, np.ndarray]:
    """Features whose products are the kernel on the examples judged, and these examples."""
    data = problem.data
    n = len(data.rows)
    if problem.kernel.name == "linear":
        X = data.X[data.rows].astype(np.float64)
        constant = np.full((n, 1), np.sqrt(problem.trained_kernel.offset))
        joined = sparse.hstack([X, constant], format="csr") if is_sparse(X) else np.hstack([X, constant])
        return _with_bias(problem, joined), np.arange(n)
    chosen = np.random.default_rng(0).permutation(n)[:SAMPLE]
    values, vectors = np.linalg.eigh(problem.store.block(data.rows[chosen], data.rows[chosen]))
    kept = values > values.max() * 1e-12
    return _with_bias(problem, vectors[:, kept] * np.sqrt(values[kept])), chosen


def _with_bias(problem: DualProblem, features: DataMatrix) -> DataMatrix:
    """The features and, for an exact bias, a constant one."""
    if problem.bias is not Bias.EXACT:
        return features
    ones = np.ones((features.shape[0], 1))
    return sparse.hstack([features, ones], format="csr") if is_sparse(features) else np.hstack([features, ones])


def _margins_exist(problem: DualProblem, features: DataMatrix, examples: np.ndarray) -> bool:
    """A linear program without objective: weights (n_features, n_classes) with nu Pi W'x >= t for every component."""
    nu = problem.machine.table(problem.n_classes).dense()
    if problem.machine.sum_to_zero:
        nu = nu - nu.mean(axis=2, keepdims=True)
    targets, mask = problem.targets[examples], problem.mask[examples]
    rows, bounds = [], []
    for number, example in enumerate(examples):
        present = nu[problem.data.y[example]][mask[number]]
        rows.append(sparse.kron(sparse.csr_array(present), features[[number]], format="csr"))
        bounds.append(targets[number][mask[number]])
    constraints = sparse.vstack(rows)
    found = linprog(
        np.zeros(constraints.shape[1]), A_ub=-constraints, b_ub=-np.concatenate(bounds), bounds=(None, None)
    )
    return bool(found.status != 2)
