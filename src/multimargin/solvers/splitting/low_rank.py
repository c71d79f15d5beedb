"""A kernel matrix as G G' and a rest, by a Cholesky decomposition with pivots chosen many at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh, solve_triangular
from scipy.linalg.lapack import dpstrf

from multimargin._typing import FloatArray, IntArray

# Columns taken at a time: those with the largest rest, of which the dependent ones are left out again.
AT_A_TIME = 48
# Of the largest rest of a batch, what a pivot must have.
WORTH = 0.1
LEAST_RANK = 96  # before the pace is judged


@dataclass(frozen=True, eq=False)
class LowRank:
    """K = G G' + R: G (n_examples, rank), and R's diagonal."""

    G: FloatArray
    rest: FloatArray

    @property
    def rank(self) -> int:
        return int(self.G.shape[1])


def compressed(found: LowRank, least: float) -> FloatArray:
    """Return G in the directions whose eigenvalue of G G' is above ``least``: the fewest that leave no more."""
    values, vectors = eigh(found.G.T @ found.G, check_finite=False, driver="evd")
    return np.ascontiguousarray(found.G @ vectors[:, values > least])


def decompose(
    column: Callable[[IntArray], FloatArray],
    diagonal: FloatArray,
    goal: float,
    most_rank: int,
    poll: Callable[[], None],
) -> LowRank:
    """Take columns of K until no rest on the diagonal exceeds ``goal``; fewer where ``most_rank`` would not do."""
    n = len(diagonal)
    G = np.empty((n, most_rank), order="F")
    rest = diagonal.astype(np.float64).copy()
    rank = 0
    first = float(rest.max(initial=0.0))
    while rank < most_rank and (largest := float(rest.max())) > goal:
        poll()
        # Half the pace that would get there is enough: the rest falls faster later. Slower, it never will.
        if rank >= LEAST_RANK and largest > first * (goal / first) ** (0.5 * rank / most_rank):
            break
        count = min(AT_A_TIME, most_rank - rank)
        pivots = np.sort(np.argpartition(-rest, count - 1)[:count])
        pivots = pivots[rest[pivots] > max(WORTH * largest, goal)]
        left = column(pivots) - G[:, :rank] @ G[pivots, :rank].T
        chosen, factor = _independent(left[pivots], max(WORTH * largest, goal))
        new = solve_triangular(factor, left[:, chosen].T, lower=True, check_finite=False).T
        G[:, rank : rank + len(chosen)] = new
        rank += len(chosen)
        rest = np.maximum(rest - np.einsum("ij,ij->i", new, new), 0.0)
        rest[pivots[chosen]] = 0.0
    return LowRank(np.ascontiguousarray(G[:, :rank]), rest)


def _independent(block: FloatArray, least: float) -> tuple[IntArray, FloatArray]:
    """Return which of a block's rows to take, by pivots of at least this size, and their factor."""
    factor, order, rank, _ = dpstrf(np.asfortranarray(0.5 * (block + block.T)), tol=least, lower=1)
    rank = max(1, int(rank))
    return order[:rank] - 1, np.tril(factor[:rank, :rank])
