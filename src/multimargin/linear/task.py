"""A linear machine as a value: rows, margins, bounds, bias rule; and what follows from its scores.

Scores are F = X W + b with one column for each class, or with a single one for two classes. All else is as in the dual
problem of a kernel: margins m(f), targets t, dual variables a, coefficients beta = Pi nu' a; and W = X' beta.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from multimargin.machines import Bound, ComponentTable, FloatArray, IntArray, Machine
from multimargin.matrices import DataMatrix, is_sparse
from multimargin.problem import Loss

# Numbers that are kept to have them at hand in every step: 80 MB.
MOST_PRODUCTS = 10_000_000

# y f >= 1 on one column: what two groups of examples need, code 0 for y = -1.
BINARY = ComponentTable(
    class1=np.zeros((2, 1), dtype=np.int64),
    value1=np.array([[-1.0], [1.0]]),
    class2=np.full((2, 1), -1, dtype=np.int64),
    value2=np.zeros((2, 1)),
    target=np.ones((2, 1)),
    n_components=np.ones(2, dtype=np.int64),
)


def one_versus_all(n_classes: int) -> ComponentTable:
    """Return the machine "ova" with its components in the order of the classes, not the own one first."""
    classes = np.broadcast_to(np.arange(n_classes), (n_classes, n_classes)).copy()
    return ComponentTable(
        class1=classes,
        value1=2.0 * np.eye(n_classes) - 1.0,
        class2=np.full((n_classes, n_classes), -1, dtype=np.int64),
        value2=np.zeros((n_classes, n_classes)),
        target=np.ones((n_classes, n_classes)),
        n_components=np.full(n_classes, n_classes, dtype=np.int64),
    )


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

    @cached_property
    def largest(self) -> FloatArray:
        """The largest absolute value of each feature, the constant's last, (n_weights,)."""
        found = abs(self.X).max(axis=0)
        dense: FloatArray = (found.toarray() if is_sparse(found) else np.asarray(found)).ravel().astype(np.float64)
        return np.append(dense, self.constant) if self.constant else dense

    @property
    def simplex(self) -> bool:
        return self.bound is Bound.SIMPLEX

    @cached_property
    def separable(self) -> bool:
        """Whether no example couples two columns, so that each column is a problem of its own."""
        return not (self.simplex or self.sum_to_zero or (self.table.class2 >= 0).any())

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
    def aligned(self) -> bool:
        """Whether component p of every example is about column p alone, so that nothing needs to be looked up."""
        width = self.table.class1.shape[1]
        same = width == self.n_columns and bool((self.table.class1 == np.arange(width)).all())
        return same and self.separable and bool((self.table.n_components == width).all())

    @cached_property
    def _values(self) -> FloatArray:
        return np.ascontiguousarray(self.table.value1[self.y])

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

    @cached_property
    def products(self) -> FloatArray | None:
        """Products of all pairs of features, the constant included, (n_examples, n_pairs); None where too many."""
        first, second = np.triu_indices(self.n_weights)
        if is_sparse(self.X) or self.n_examples * len(first) > MOST_PRODUCTS:
            return None
        rows = self.rows_with_constant(np.arange(self.n_examples))
        return np.asarray(rows[:, first] * rows[:, second])

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
        if self.aligned:
            return self._values * scores
        first, second, value1, value2 = self._places
        flat = np.ascontiguousarray(scores).ravel()
        found: FloatArray = value1 * flat[first]
        if self._pairs:
            found = found + value2 * flat[second]
        return found

    def coefficients(self, amounts: FloatArray) -> FloatArray:
        """Return beta = Pi nu' a, (n_examples, n_columns)."""
        if self.aligned:
            return self._values * amounts
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
