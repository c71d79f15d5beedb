"""Newton's equations of the multiplier method: (R + sum_i S_i (x) x_i x_i') D = G.

R is the regularisation of each row of the weights; S_i, (n_columns, n_columns), is the derivative of example i's
coefficients, zero unless it has a free variable. Solved by a Cholesky factor of whichever side is smaller, weights or
free variables, and by conjugate gradients where both are large.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dposv

from multimargin._typing import DataMatrix, FloatArray, IntArray
from multimargin.base.matrices import is_sparse
from multimargin.base.resources import n_threads
from multimargin.solvers.linear.core import linear_data, weighted_gram
from multimargin.solvers.linear.proximal import slopes_at
from multimargin.solvers.linear.task import LinearTask

# Unknowns of a factor that is still cheap beside a pass over the data.
MOST_WEIGHTS = 3000
MOST_FREE = 4000
CG_STEPS = 200
CG_TOL = 1e-6


@dataclass(frozen=True, eq=False)
class Factors:
    """S_i = L_i' L_i, one row of L for each free variable; ``owner`` is its example among those of the equations."""

    owner: IntArray
    rows: FloatArray  # (n_free, n_columns)

    @classmethod
    def of(cls, task: LinearTask, labels: IntArray, slope: FloatArray, share: FloatArray | None) -> Factors:
        owner, p = np.nonzero(slope)
        table, each, y = task.table, np.arange(len(owner)), labels[owner]
        nu = np.zeros((len(owner), task.n_columns))
        nu[each, table.class1[y, p]] = table.value1[y, p]
        two = table.class2[y, p] >= 0
        nu[each[two], table.class2[y, p][two]] = table.value2[y, p][two]
        if task.sum_to_zero:
            nu -= nu.mean(axis=1, keepdims=True)
        if share is not None:  # nu_p - gamma sum_q nu_q, so that the squares make up for share times that sum's
            total = np.zeros((len(labels), task.n_columns))
            np.add.at(total, owner, nu)
            count = np.bincount(owner, minlength=len(labels))
            gamma = (1.0 - np.sqrt(np.maximum(0.0, 1.0 - share * count))) / np.maximum(count, 1)
            nu = nu - gamma[owner, None] * total[owner]
        return cls(owner, np.sqrt(slope[owner, p])[:, None] * nu)

    def solve(self, X: DataMatrix, regularization: FloatArray, right: FloatArray) -> FloatArray:
        """Solve by Sherman, Morrison and Woodbury."""
        inverse = 1.0 / regularization
        if not len(self.owner):
            return np.asarray(right * inverse[:, None])
        between = X @ (X.multiply(inverse) if is_sparse(X) else X * inverse).T
        between = between.toarray() if is_sparse(between) else np.asarray(between)
        inner = between[np.ix_(self.owner, self.owner)] * (self.rows @ self.rows.T)
        inner[np.diag_indices(len(inner))] += 1.0
        start = right * inverse[:, None]
        z = solve_symmetric(inner, np.einsum("rc,rc->r", self.rows, np.asarray(X @ start)[self.owner]))
        changes = np.zeros((X.shape[0], right.shape[1]))
        np.add.at(changes, self.owner, z[:, None] * self.rows)
        return np.asarray(inverse[:, None] * (right - np.asarray(X.T @ changes)))


@dataclass(frozen=True, eq=False)
class Equations:
    """The equations at a point of the dual variables: regularisation by row of the weights, and a damping.

    The damping is (n_weights, n_weights), or its diagonal where weights are many: directions that no free example sees
    are held by the regularisation alone, and their steps change other scores by far more than the range of the step.
    """

    task: LinearTask
    point: FloatArray
    width: float
    regularization: FloatArray  # (n_weights,)
    damping: FloatArray | None = None

    def solve(self, right: FloatArray) -> FloatArray:
        """Return D of right sides G, both (n_weights, n_columns)."""
        if right.size <= MOST_WEIGHTS:
            return self._by_weights(right)
        task = self.task
        sigma = self.width * scale_of(task)
        slopes = slopes_at(task, self.point, sigma)
        rows = np.flatnonzero(slopes.slope.any(axis=1))
        slope, labels, X = sigma[rows, None] * slopes.slope[rows], task.y[rows], task.rows_with_constant(rows)
        share = None if slopes.share is None else slopes.share[rows]
        # By free variables only where weights are too many: at a large sigma that way loses digits.
        if np.count_nonzero(slope) <= MOST_FREE:
            return Factors.of(task, labels, slope, share).solve(X, self._diagonal(), right)
        S = _derivatives(task, labels, slope, share)
        return _conjugate_gradients(X, S, self._diagonal()[:, None], right)

    def _diagonal(self) -> FloatArray:
        if self.damping is None:
            return self.regularization
        return self.regularization + (self.damping if self.damping.ndim == 1 else np.diag(self.damping))

    def _by_weights(self, right: FloatArray) -> FloatArray:
        task, (n, k) = self.task, right.shape
        blocks = np.empty((k * n, k * n))
        task.passes.matrix(task.data, task.constant, self.point, self.width, blocks, n_threads())
        matrix = blocks.reshape(k, n, k, n)
        if task.sum_to_zero:  # Pi on both sides
            matrix -= matrix.mean(axis=0, keepdims=True)
            matrix -= matrix.mean(axis=2, keepdims=True)
        own = np.diag(self._diagonal())
        if self.damping is not None and self.damping.ndim == 2:
            own = np.diag(self.regularization) + self.damping
        for c in range(k):
            matrix[c, :, c, :] += own
        return solve_symmetric(blocks, right.T.ravel()).reshape(k, n).T


def scale_of(task: LinearTask) -> FloatArray:
    """Return sigma of each example in units of the width."""
    return np.where(np.isfinite(task.C), task.C, 1.0)


def gram(X: DataMatrix, weight: FloatArray) -> FloatArray:
    """Return sum_i weight_i x_i x_i'."""
    if is_sparse(X):
        out = np.empty((X.shape[1], X.shape[1]))
        return weighted_gram(linear_data(X), np.arange(X.shape[0]), weight, out)
    scaled = X * np.sqrt(weight)[:, None]
    return np.asarray(scaled.T @ scaled)


def score_metric(task: LinearTask, weight: FloatArray) -> FloatArray:
    """Return sum_i weight_i x_i x_i' over all examples, the constant included; its diagonal where it is too large."""
    X = task.X
    if task.n_weights > MOST_WEIGHTS:
        squares = np.asarray((X.multiply(X) if is_sparse(X) else X * X).T @ weight)
        return np.append(squares, task.constant**2 * weight.sum()) if task.constant else squares
    metric = np.zeros((task.n_weights, task.n_weights))
    n = task.n_features
    metric[:n, :n] = gram(X, weight)
    if task.constant:
        metric[-1, :n] = metric[:n, -1] = task.constant * np.asarray(X.T @ weight)
        metric[-1, -1] = task.constant**2 * weight.sum()
    return metric


def solve_symmetric(matrix: FloatArray, right: FloatArray) -> FloatArray:
    """Solve a positive definite system, scaled to a unit diagonal; rounding is answered by a larger diagonal."""
    scale = 1.0 / np.sqrt(np.diag(matrix))
    scaled = matrix * scale[:, None] * scale
    extra = 0.0
    for _ in range(8):
        _, found, info = dposv(scaled, scale * right)
        if info == 0:
            return np.asarray(scale * found)
        scaled[np.diag_indices(len(scale))] += max(extra, 1e-14)
        extra = 100 * max(extra, 1e-14)
    return np.asarray(scale * scale * right)


def _derivatives(task: LinearTask, labels: IntArray, slope: FloatArray, share: FloatArray | None) -> FloatArray:
    """Return S = Pi nu' (diag(slope) - share slope slope') nu Pi of each example."""
    n, k = len(labels), task.n_columns
    S = np.zeros((n, k, k))
    direction = np.zeros((n, k))
    each = np.arange(n)
    for p in range(slope.shape[1]):
        c1, v1 = task.table.class1[labels, p], task.table.value1[labels, p]
        c2, v2 = task.table.class2[labels, p], task.table.value2[labels, p]
        d = slope[:, p]
        two = c2 >= 0
        S[each, c1, c1] += d * v1 * v1
        direction[each, c1] += d * v1
        if two.any():
            i, a, b = each[two], c1[two], c2[two]
            S[i, b, b] += (d * v2 * v2)[two]
            S[i, a, b] += (d * v1 * v2)[two]
            S[i, b, a] += (d * v1 * v2)[two]
            direction[i, b] += (d * v2)[two]
    if share is not None:
        sigma = slope.max(axis=1)  # slopes of a simplex are 0 or 1
        factor = share / sigma
        S -= factor[:, None, None] * direction[:, :, None] * direction[:, None, :]
    if task.sum_to_zero:
        S -= S.mean(axis=1, keepdims=True)
        S -= S.mean(axis=2, keepdims=True)
    return S


def _conjugate_gradients(X: DataMatrix, S: FloatArray, regularization: FloatArray, right: FloatArray) -> FloatArray:
    """Solve by products with X alone, preconditioned by the diagonal."""
    squares = X.multiply(X) if is_sparse(X) else X * X
    inverse = 1.0 / (regularization + squares.T @ np.diagonal(S, axis1=1, axis2=2))

    def product(D: FloatArray) -> FloatArray:
        return np.asarray(regularization * D + X.T @ np.einsum("ice,ie->ic", S, X @ D))

    found = np.zeros_like(right)
    rest = right.copy()
    step = inverse * rest
    size = float(np.sum(rest * step))
    first = size
    for _ in range(CG_STEPS):
        image = product(step)
        length = size / float(np.sum(step * image))
        found += length * step
        rest -= length * image
        preconditioned = inverse * rest
        next_size = float(np.sum(rest * preconditioned))
        if next_size <= CG_TOL**2 * first:
            break
        step = preconditioned + (next_size / size) * step
        size = next_size
    return found
