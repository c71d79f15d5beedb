"""Decomposition for linear kernels in plain NumPy, beside KCSL04 section 4; see algorithms.py.

The gradient changes by X'(X da), whatever the number q of variables that move, so that a working set may be larger than
two. Made for counting iterations, as KCSL04's Table 5.2 does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from multimargin._typing import DataMatrix, FloatArray, IntArray
from multimargin.base.matrices import is_sparse
from multimargin.solvers.reference.algorithms import CURVATURE_FLOOR, ReferenceSolution

INNER_SHARE = 0.1  # of tol: so well a working set is solved
INNER_STEPS = 100_000


@dataclass(frozen=True, eq=False)
class LinearDual:
    """Minimise (ya)'XX'(ya)/2 - sum a under 0 <= a <= C and y'a = 0: KCSL04 (1.2) with a linear kernel."""

    X: DataMatrix
    y: FloatArray
    C: FloatArray

    @classmethod
    def of(cls, X: Any, y: ArrayLike, C: ArrayLike) -> LinearDual:
        rows = X.astype(np.float64) if is_sparse(X) else np.asarray(X, dtype=np.float64)
        labels = np.asarray(y, dtype=np.float64)
        if not np.isin(labels, (-1.0, 1.0)).all():
            raise ValueError(f"y has the values {np.unique(labels)[:5]}; every entry must be -1 or 1.")
        return cls(rows, labels, np.broadcast_to(np.asarray(C, dtype=np.float64), labels.shape))

    def slopes(self, beta: FloatArray) -> FloatArray:
        """Return -y times the gradient at beta = ya, through w = X'beta: O(l n) operations."""
        slopes: FloatArray = self.y - np.asarray(self.X @ (self.X.T @ beta))
        return slopes

    def bounds(self) -> tuple[FloatArray, FloatArray]:
        """Return the smallest and the largest beta."""
        return np.where(self.y > 0, 0.0, -self.C), np.where(self.y > 0, self.C, 0.0)


def working_set(slopes: FloatArray, rises: np.ndarray, falls: np.ndarray, q: int) -> IntArray:
    """Return q/2 variables that may rise with the largest slopes and q/2 that may fall with the smallest."""
    up, down = np.flatnonzero(rises), np.flatnonzero(falls)
    upper = up[np.argsort(-slopes[up], kind="stable")][: q // 2]
    lower = down[np.argsort(slopes[down], kind="stable")]
    return np.concatenate([upper, lower[~np.isin(lower, upper)][: q // 2]])


def solve_few(K: FloatArray, slopes: FloatArray, room: tuple[FloatArray, FloatArray], tol: float) -> FloatArray:
    """Return the change of beta that is best for a few variables whose sum stays: pairs of largest gain (IGEL)."""
    change, slopes = np.zeros(len(slopes)), slopes.copy()
    (down, up), diagonal = room, np.diag(K)
    for _ in range(INNER_STEPS):
        i = int(np.argmax(np.where(change < up, slopes, -np.inf)))
        differences = np.where(change > down, slopes[i] - slopes, -np.inf)
        if differences.max() <= tol:
            break
        bends = np.maximum(diagonal[i] + diagonal - 2 * K[i], CURVATURE_FLOOR)
        j = int(np.argmax(np.where(differences > 0, differences**2 / bends, -np.inf)))
        room_i, room_j = up[i] - change[i], change[j] - down[j]
        step = min(differences[j] / bends[j], room_i, room_j)
        change[i] = up[i] if step == room_i else change[i] + step
        change[j] = down[j] if step == room_j else change[j] - step
        slopes -= step * (K[i] - K[j])
    return change


# Called before each step with the number of steps, the violation and beta, which later steps change; True stops.
Check = Callable[[int, float, FloatArray], bool]


def linear_decomposition(
    dual: LinearDual,
    q: int = 2,
    tol: float = 1e-3,
    max_iter: int = 1_000_000,
    start: FloatArray | None = None,
    check: Check | None = None,
) -> ReferenceSolution:
    """Solve a binary problem with an exact bias q variables at a time, from a feasible point or from zero.

    Stops by KCSL04 (C.1). With q = 2 the working set is the most violating pair, as in LIBSVM of 2004; with more it is
    SVMlight's.
    """
    if q < 2 or q % 2:
        raise ValueError(f"q={q} is not allowed; half of a working set rises and half falls, so give 2, 4, 6, ...")
    lowest, highest = dual.bounds()
    beta = np.zeros(len(dual.y)) if start is None else dual.y * start
    slopes = dual.slopes(beta)
    n_steps = 0
    while True:
        rises, falls = beta < highest, beta > lowest
        violation = float(np.max(slopes[rises], initial=-np.inf) - np.min(slopes[falls], initial=np.inf))
        if (check is not None and check(n_steps, violation, beta)) or violation <= tol or n_steps >= max_iter:
            break
        B = working_set(slopes, rises, falls, q)
        few = dual.X[B]
        room = lowest[B] - beta[B], highest[B] - beta[B]
        between = few @ few.T
        change = solve_few(between.toarray() if is_sparse(between) else between, slopes[B], room, INNER_SHARE * tol)
        moved = np.where(change == room[0], lowest[B], np.where(change == room[1], highest[B], beta[B] + change))
        if (moved == beta[B]).all():
            break  # the rounding of the gradient is larger than tol
        beta[B] = moved
        slopes -= np.asarray(dual.X @ (few.T @ change))  # KCSL04 section 4
        n_steps += 1
    return ReferenceSolution(np.abs(beta), n_steps, violation <= tol)
