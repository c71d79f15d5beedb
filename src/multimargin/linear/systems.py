"""Newton's equations of the multiplier method: (R + sum_i S_i (x) x_i x_i') D = G.

R is the regularisation of each row of the weights; S_i, (n_columns, n_columns), is the derivative of example i's
coefficients, zero unless it has a free variable. Solved by a Cholesky factor of whichever side is smaller, weights or
free variables, and by conjugate gradients where both are large.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.linalg.lapack import dposv

from multimargin.linear.proximal import Proximal
from multimargin.linear.task import LinearTask
from multimargin.linear_core import linear_data, weighted_gram
from multimargin.machines import FloatArray, IntArray
from multimargin.matrices import DataMatrix, is_sparse

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
    """The examples with free variables, their derivatives, and the regularisation by row of the weights."""

    rows: IntArray
    X: DataMatrix  # of these rows, with the constant
    derivative: FloatArray  # S: (n, n_columns, n_columns), or its diagonals (n, n_columns) where columns are separable
    regularization: FloatArray  # (n_weights,)
    products: FloatArray | None  # of pairs of features of these rows, where features are few
    factors: Factors | None = None  # of S, where free variables may be fewer than weights
    damping: FloatArray | None = None  # (n_weights, n_weights) or its diagonal

    @classmethod
    def at(cls, task: LinearTask, point: Proximal, sigma: FloatArray, regularization: FloatArray) -> Equations:
        rows = np.flatnonzero(point.slope.any(axis=1))
        slope, labels = sigma[rows, None] * point.slope[rows], task.y[rows]
        derivative = (
            _diagonals(task, labels, slope) if task.separable else _derivatives(task, labels, slope, point, rows)
        )
        X = task.rows_with_constant(rows)
        if task.separable:
            return cls(rows, X, derivative, regularization, None)
        products = None if task.products is None else task.products[rows]
        # By weights where that is possible: at a large sigma the other way loses digits.
        few = np.count_nonzero(slope) <= MOST_FREE and task.n_weights * task.n_columns > MOST_WEIGHTS
        factors = Factors.of(task, labels, slope, None if point.share is None else point.share[rows]) if few else None
        return cls(rows, X, derivative, regularization, products, factors)

    def damped(self, share: float, metric: FloatArray) -> Equations:
        """Return the equations with a share of a metric of the weights, or of its diagonal, added to each column.

        Directions that no free example sees are held by the regularisation alone, and their steps change other scores
        by far more than the range of the projection.
        """
        return self if share == 0.0 else replace(self, damping=share * metric)

    def solve(self, right: FloatArray) -> FloatArray:
        """Return D of right sides G, both (n_weights, n_columns)."""
        n_weights, n_columns = right.shape
        if self.derivative.ndim == 2:
            return np.stack([self._solve_column(c, right[:, c]) for c in range(n_columns)], axis=1)
        if self.factors is not None:
            return self.factors.solve(self.X, self._diagonal(), right)
        if n_weights * n_columns <= MOST_WEIGHTS:
            return self._by_weights(right)
        return _conjugate_gradients(self.X, self.derivative, self._diagonal()[:, None], right)

    def _solve_column(self, c: int, right: FloatArray) -> FloatArray:
        weight = self.derivative[:, c]
        used = np.flatnonzero(weight)
        X, weight = self.X[used], weight[used]
        if len(right) <= MOST_WEIGHTS:
            return solve_symmetric(self._own() + gram(X, weight), right)
        if len(used) <= MOST_FREE:
            return _by_examples(X, weight, self._diagonal(), right)
        return _conjugate_gradients(X, weight[:, None], self._diagonal()[:, None], right[:, None])[:, 0]

    def _diagonal(self) -> FloatArray:
        if self.damping is None:
            return self.regularization
        return self.regularization + (self.damping if self.damping.ndim == 1 else np.diag(self.damping))

    def _own(self) -> FloatArray:
        """The part of the matrix that no free example makes, (n_weights, n_weights)."""
        if self.damping is None or self.damping.ndim == 1:
            return np.diag(self._diagonal())
        return np.diag(self.regularization) + self.damping

    def _by_weights(self, right: FloatArray) -> FloatArray:
        n, k = right.shape
        blocks = _blocks(self.X, self.derivative, self.products)  # (k, k, n, n)
        matrix = blocks.transpose(0, 2, 1, 3).reshape(k * n, k * n)
        own = self._own()
        for c in range(k):
            matrix[c * n : (c + 1) * n, c * n : (c + 1) * n] += own
        return solve_symmetric(matrix, right.T.ravel()).reshape(k, n).T


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


def _by_examples(X: DataMatrix, weight: FloatArray, regularization: FloatArray, right: FloatArray) -> FloatArray:
    """Sherman, Morrison and Woodbury, where fewer examples are free than there are weights."""
    start = right / regularization
    inverse = 1.0 / regularization
    scaled = X.multiply(inverse) if is_sparse(X) else X * inverse
    inner = X @ scaled.T
    inner = inner.toarray() if is_sparse(inner) else np.asarray(inner)
    inner[np.diag_indices(len(weight))] += 1.0 / weight
    return np.asarray(start - inverse * (X.T @ cho_solve(cho_factor(inner), X @ start)))


def _diagonals(task: LinearTask, labels: IntArray, slope: FloatArray) -> FloatArray:
    value = task.table.value1[labels] ** 2 * slope
    if task.aligned:
        return value
    where = (np.arange(len(labels)) * task.n_columns)[:, None] + task.table.class1[labels]
    size = len(labels) * task.n_columns
    sums = np.bincount(where.ravel(), weights=value.ravel(), minlength=size).astype(np.float64)
    return sums.reshape(len(labels), task.n_columns)


def _derivatives(task: LinearTask, labels: IntArray, slope: FloatArray, point: Proximal, rows: IntArray) -> FloatArray:
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
    if point.share is not None:
        sigma = slope.max(axis=1)  # slopes of a simplex are 0 or 1
        factor = point.share[rows] / sigma
        S -= factor[:, None, None] * direction[:, :, None] * direction[:, None, :]
    if task.sum_to_zero:
        S -= S.mean(axis=1, keepdims=True)
        S -= S.mean(axis=2, keepdims=True)
    return S


def _blocks(X: DataMatrix, S: FloatArray, products: FloatArray | None) -> FloatArray:
    """Return sum_i S_i[c, e] x_i x_i' for all columns c, e: (k, k, n, n)."""
    n, k = X.shape[1], S.shape[1]
    upper = np.triu_indices(k)
    weights = np.ascontiguousarray(S[:, upper[0], upper[1]])
    if products is None:
        parts = np.stack([_signed_gram(X, weights[:, j]) for j in range(weights.shape[1])])
    else:
        pairs = np.triu_indices(n)
        sums = weights.T @ products
        parts = np.empty((weights.shape[1], n, n))
        parts[:, pairs[0], pairs[1]] = sums
        parts[:, pairs[1], pairs[0]] = sums
    blocks = np.empty((k, k, n, n))
    blocks[upper] = parts
    blocks[upper[1], upper[0]] = parts
    return blocks


def _signed_gram(X: DataMatrix, weight: FloatArray) -> FloatArray:
    used = np.flatnonzero(weight)
    X, weight = X[used], weight[used]
    product = X.T @ (X.multiply(weight[:, None]).tocsr() if is_sparse(X) else X * weight[:, None])
    return product.toarray() if is_sparse(product) else np.asarray(product)


def _conjugate_gradients(X: DataMatrix, S: FloatArray, regularization: FloatArray, right: FloatArray) -> FloatArray:
    """Solve by products with X alone, preconditioned by the diagonal."""
    squares = X.multiply(X) if is_sparse(X) else X * X
    diagonal = S if S.ndim == 2 else np.diagonal(S, axis1=1, axis2=2)
    inverse = 1.0 / (regularization + squares.T @ diagonal)

    def product(D: FloatArray) -> FloatArray:
        scores = X @ D
        changes = scores * S if S.ndim == 2 else np.einsum("ice,ie->ic", S, scores)
        return np.asarray(regularization * D + X.T @ changes)

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
