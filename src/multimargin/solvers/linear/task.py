"""A linear machine as a value: rows, margins, bounds, bias rule; and what follows from its scores.

Scores are F = X W + b with one column for each class, or with a single one for two classes. All else is as in the dual
problem of a kernel: margins m(f), targets t, dual variables a, coefficients beta = Pi nu' a; and W = X' beta.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from multimargin import _core
from multimargin._typing import DataMatrix, FloatArray, IntArray
from multimargin.base.matrices import is_sparse
from multimargin.problems.machines import Bound, ComponentTable, Machine
from multimargin.problems.problem import Loss
from multimargin.solvers.linear.core import linear_data

# y f >= 1 on one column: what two groups of examples need, code 0 for y = -1.
BINARY = ComponentTable(
    class1=np.zeros((2, 1), dtype=np.int64),
    value1=np.array([[-1.0], [1.0]]),
    class2=np.full((2, 1), -1, dtype=np.int64),
    value2=np.zeros((2, 1)),
    target=np.ones((2, 1)),
    n_components=np.ones(2, dtype=np.int64),
)


def as_scores_sum(machine: Machine, weights: FloatArray) -> FloatArray:
    """Return weights or biases, a column for each class, whose rows sum to zero where the machine's scores do.

    Large coefficients leave rounding in that sum, and it counts as often as there are dual variables: the dual would be
    that of scores which the machine does not have.
    """
    return weights - weights.mean(axis=-1, keepdims=True) if machine.sum_to_zero else weights


@dataclass(frozen=True, eq=False)
class LinearTask:
    """Minimise 1/2 |W|^2 + sum_i C_i loss(t - m(X_i W + b)) over W and, by the bias rule, b.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_examples, n_features)
    y : ndarray of int
        Rows of ``table``, one for each example.
    C : ndarray
    table : ComponentTable
        Its classes are columns of F.
    n_columns : int
    bound, sum_to_zero, loss
        As of the machine.
    offset : float
        Square of a constant feature, for a regularised bias; 0 for none.
    free_bias : bool
        Whether there is an exact (unregularised) b.
    """

    X: DataMatrix
    y: IntArray
    C: FloatArray
    table: ComponentTable
    n_columns: int
    bound: Bound = Bound.BOX
    sum_to_zero: bool = False
    loss: Loss = Loss.HINGE
    offset: float = 0.0
    free_bias: bool = False

    @classmethod
    def of_machine(  # noqa: PLR0913 - what a problem is made of
        cls,
        X: DataMatrix,
        y: IntArray,
        C: FloatArray,
        machine: Machine,
        n_classes: int,
        loss: Loss,
        *,
        offset: float,
        free_bias: bool,
    ) -> LinearTask:
        """Return the task of a machine that sees all classes."""
        table = machine.table(n_classes)
        return cls(X, y, C, table, n_classes, machine.bound, machine.sum_to_zero, loss, offset, free_bias)

    @property
    def n_examples(self) -> int:
        return len(self.y)

    @property
    def n_features(self) -> int:
        return int(self.X.shape[1])

    @property
    def constant(self) -> float:
        """The constant feature, 0 for none."""
        return 1.0 if self.free_bias else float(np.sqrt(self.offset))

    @property
    def n_weights(self) -> int:
        """Rows of the weights: features and, where there is one, the constant."""
        return self.n_features + (1 if self.constant else 0)

    @property
    def simplex(self) -> bool:
        return self.bound is Bound.SIMPLEX

    @cached_property
    def largest_square(self) -> float:
        """The largest squared length of a row."""
        squares = self.X.multiply(self.X).sum(axis=1) if is_sparse(self.X) else np.einsum("ij,ij->i", self.X, self.X)
        return float(np.asarray(squares, dtype=np.float64).max(initial=0.0))

    @cached_property
    def cap(self) -> FloatArray:
        return self.C if self.loss is Loss.HINGE else np.full(self.n_examples, np.inf)

    @cached_property
    def mask(self) -> np.ndarray:
        """Which components an example has, (n_examples, n_components)."""
        width = self.table.class1.shape[1]
        present: np.ndarray = np.arange(width) < self.table.n_components[self.y][:, None]
        return present

    @cached_property
    def targets(self) -> FloatArray:
        """Target margins, -inf where an example has no such component: its gradient says that it stays at zero."""
        return np.where(self.mask, self.table.target[self.y], -np.inf)

    @cached_property
    def _places(self) -> tuple[IntArray, IntArray, FloatArray, FloatArray]:
        start = (np.arange(self.n_examples) * self.n_columns)[:, None]
        first = start + self.table.class1[self.y]
        second = start + np.maximum(self.table.class2[self.y], 0)
        return (
            first,
            second,
            self.table.value1[self.y],
            np.where(self.table.class2[self.y] >= 0, self.table.value2[self.y], 0.0),
        )

    @cached_property
    def _pairs(self) -> bool:
        return bool((self.table.class2 >= 0).any())

    @cached_property
    def passes(self) -> _core.ProximalPasses:
        """What the core does on all examples in a step of Newton's method."""
        table = self.table
        parts = [table.class1, table.value1, table.class2, table.value2, table.target]
        entries = np.ascontiguousarray(np.stack(parts, axis=2, dtype=np.float64))
        bound = _core.Bound.simplex if self.simplex else _core.Bound.box
        kind = (bound, self.sum_to_zero, getattr(_core.Loss, self.loss.value))
        counts, y = table.n_components.astype(np.int64), np.ascontiguousarray(self.y, dtype=np.int64)
        return _core.ProximalPasses(entries, counts, self.n_columns, kind, y, np.ascontiguousarray(self.C))

    @cached_property
    def data(self) -> _core.LinearData:
        """X as the core reads it."""
        return linear_data(self.X)

    def scores(self, weights: FloatArray) -> FloatArray:
        """Return F, (n_examples, n_columns), of weights (n_weights, n_columns)."""
        found: FloatArray = np.asarray(self.X @ weights[: self.n_features], dtype=np.float64)
        if self.constant:
            found = found + self.constant * weights[-1]
        return found

    def gather(self, beta: FloatArray) -> FloatArray:
        """Return X' beta, (n_weights, n_columns)."""
        found: FloatArray = np.asarray(self.X.T @ beta, dtype=np.float64)
        if self.constant:
            found = np.concatenate([found, self.constant * beta.sum(axis=0, keepdims=True)])
        return found

    def centred(self, weights: FloatArray) -> FloatArray:
        """Return weights whose rows sum to zero where the machine asks for that: in sums, rounding adds up.

        The last row may be an exact bias. Off zero its scores are none of the machine's, and the primal no bound.
        """
        return weights - weights.mean(axis=-1, keepdims=True) if self.sum_to_zero else weights

    @cached_property
    def _sparse_with_constant(self) -> DataMatrix:
        constant = np.full((self.n_examples, 1), self.constant)
        return sparse.hstack([self.X, constant], format="csr") if self.constant else self.X

    def rows_with_constant(self, rows: IntArray) -> DataMatrix:
        """Return rows of X in float64 with the constant feature behind them."""
        if is_sparse(self.X):
            return self._sparse_with_constant[rows]
        chosen = np.asarray(self.X[rows], dtype=np.float64)
        return np.concatenate([chosen, np.full((len(rows), 1), self.constant)], axis=1) if self.constant else chosen

    def margins(self, scores: FloatArray) -> FloatArray:
        """Return m(f), (n_examples, n_components)."""
        first, second, value1, value2 = self._places
        flat = np.ascontiguousarray(scores).ravel()
        found: FloatArray = value1 * flat[first]
        if self._pairs:
            found = found + value2 * flat[second]
        return found

    def coefficients(self, amounts: FloatArray) -> FloatArray:
        """Return beta = Pi nu' a, (n_examples, n_columns)."""
        first, second, value1, value2 = self._places
        size = self.n_examples * self.n_columns
        flat = np.bincount(first.ravel(), weights=(value1 * amounts).ravel(), minlength=size).astype(np.float64)
        if self._pairs:
            flat = flat + np.bincount(second.ravel(), weights=(value2 * amounts).ravel(), minlength=size)
        beta = flat.reshape(self.n_examples, self.n_columns)
        return beta - beta.mean(axis=1, keepdims=True) if self.sum_to_zero else beta

    def violation(self, amounts: FloatArray, gradient: FloatArray) -> float:
        """Return the largest KKT violation, as certificate.violation does."""
        gradient = gradient - self.charge(amounts)
        if self.simplex:
            total = amounts.sum(axis=1)
            rise = gradient.max(axis=1)
            fall = np.where(amounts > 0, gradient, np.inf).min(axis=1)
            open_ = total < self.cap * (1 - 1e-12)
            rise = np.maximum(rise, np.where(total > 0, 0.0, -np.inf))  # towards the slack
            fall = np.minimum(fall, np.where(open_, 0.0, np.inf))
            return float(np.maximum(rise - fall, 0.0).max(initial=0.0))
        up = np.where(amounts < self.cap[:, None], gradient, -np.inf).max(initial=0.0)
        down = np.where(amounts > 0, gradient, np.inf).min(initial=0.0)
        return float(max(up, -down))

    def charge(self, amounts: FloatArray) -> FloatArray | float:
        """Return what the squared hinge takes off the gradient."""
        if self.loss is Loss.HINGE:
            return 0.0
        used = amounts.sum(axis=1, keepdims=True) if self.simplex else amounts
        return np.asarray(used / (2 * self.C[:, None]))
