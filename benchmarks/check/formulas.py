"""Kernels and machines in extended precision, implemented from the documentation's formulas alone.

Nothing here imports multimargin: so that the checker does not repeat a fault of its tables, kernels or sums. A machine
is a table over (example, class): an example of class y has at most one margin component for each class, f_y - f_c
(relative machines) or -f_c and, in its own column, f_y (absolute ones).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Extended = np.longdouble
Array = NDArray[Any]

EPSILON = float(np.finfo(np.float64).eps)

NORMS_LIMIT = 1e-10

RELATIVE = {"ww": 2.0, "cs": 1.0}
SIMPLEX = ("cs", "adm", "atm", "cost-simplex")
SUM_TO_ZERO = ("llw", "adm", "ats", "atm", "rm", "mmr")
# Their own component and those of the others can move against each other without changing a score.
WITH_A_FREE_SHIFT = ("ats", "atm", "rm")


@dataclass(frozen=True)
class Kernel:
    """A kernel function and its numbers; ``name`` may be "precomputed", then X is the matrix."""

    name: str
    gamma: float = 1.0
    degree: int = 3
    coef0: float = 0.0

    @property
    def semidefinite(self) -> bool:
        return self.name != "sigmoid" and not (self.name == "poly" and self.coef0 < 0)

    def matrix(self, X: Array, by_norms: bool = False) -> tuple[Array, Array]:
        """Return K among the rows of X, and a bound on the error of float64 arithmetic, entry by entry.

        Distances of sparse rows come ``by_norms``, |x|^2 + |z|^2 - 2 x'z, which is accepted while that keeps ten
        digits.
        """
        if self.name == "precomputed":
            return X.astype(Extended), np.zeros(X.shape, dtype=Extended)
        rows, gamma = X.astype(Extended), Extended(self.gamma)
        unit = EPSILON * (X.shape[1] + 8)
        if self.name in ("rbf", "laplacian"):
            distance = np.zeros((len(X), len(X)), dtype=Extended)
            for column in rows.T:
                difference = np.abs(column[:, None] - column)
                distance += difference * difference if self.name == "rbf" else difference
            K = np.exp(-gamma * distance)
            error = gamma * distance + 1
            if by_norms:
                norm = np.sum(rows * rows if self.name == "rbf" else np.abs(rows), axis=1)
                error = np.maximum(error, np.minimum(gamma * (norm[:, None] + norm), NORMS_LIMIT / unit))
            return K, unit * K * error
        dot, size = rows @ rows.T, np.abs(rows) @ np.abs(rows).T
        if self.name == "linear":
            return dot, unit * size
        inner = gamma * dot + Extended(self.coef0)
        error = unit * (gamma * size + abs(self.coef0))
        if self.name == "sigmoid":
            return np.tanh(inner), error + EPSILON
        K = inner**self.degree
        return K, unit * np.abs(K) + self.degree * error * (np.abs(inner) + error) ** (self.degree - 1)


@dataclass(frozen=True)
class Table:
    """The margins of a machine at its examples: their targets, and the classes whose scores they contain."""

    machine: str
    y: Array
    targets: Array  # (n, d); 0 where there is no component
    present: Array  # (n, d) of bool

    @property
    def relative(self) -> bool:
        return self.machine in RELATIVE or self.machine.startswith("cost")

    @property
    def simplex(self) -> bool:
        return self.machine in SIMPLEX

    def own(self) -> Array:
        return np.asarray(np.arange(self.targets.shape[1]) == self.y[:, None])

    def margins(self, f: Array) -> Array:
        """Return the margin of every component at scores f, both (n, d)."""
        if self.relative:
            return np.asarray(np.take_along_axis(f, self.y[:, None], axis=1) - f)
        return np.where(self.own(), f, -f)

    def scale(self, size: Array) -> Array:
        """Return a bound on the error of each margin for errors of at most ``size`` in each score."""
        if self.relative:
            return np.asarray(np.take_along_axis(size, self.y[:, None], axis=1) + size)
        return size

    def coefficients(self, a: Array) -> Array:
        """Return beta = Pi nu' a, (n, d)."""
        if self.relative:
            beta = -a
            beta[np.arange(len(a)), self.y] = a.sum(axis=1)
            return beta
        beta = np.where(self.own(), a, -a)
        if self.machine in SUM_TO_ZERO:
            beta = beta - beta.mean(axis=1, keepdims=True)
        return beta


def table_of(machine: str, y: Array, n_classes: int, cost: Array | None = None) -> Table:
    """Return the margins of a machine by its name; "cost" and "cost-simplex" are f_y - f_p with targets [y, p]."""
    own = np.arange(n_classes) == y[:, None]
    if machine in RELATIVE:
        targets, present = np.full(own.shape, RELATIVE[machine]), ~own
    elif cost is not None:
        targets, present = cost[y], ~own
    elif machine in ("llw", "adm"):
        targets, present = np.full(own.shape, 1.0 / (n_classes - 1) if machine == "llw" else 1.0), ~own
    elif machine == "mmr":
        targets, present = np.ones(own.shape), own
    elif machine in ("ats", "atm", "rm", "ova"):
        targets = np.where(own, n_classes - 1.0 if machine == "rm" else 1.0, 1.0)
        present = np.ones(own.shape, dtype=bool)
    else:
        raise ValueError(f"machine={machine!r} is none that the checker knows; add its margins to table_of.")
    return Table(machine, y, np.where(present, targets, 0.0).astype(Extended), present)
