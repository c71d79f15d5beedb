"""Class probabilities from the probabilities of pairs of classes: the second approach of WLW04, as in LIBSVM."""

from __future__ import annotations

import math

import numpy as np

from multimargin._typing import FloatArray

SMALLEST = 1e-7  # LIBSVM keeps the probabilities of pairs this far from 0 and 1
MAX_CHUNK = 4_096  # rows at a time ...
CHUNK_ENTRIES = 1 << 22  # ... and entries of their matrices: 32 MB


def couple_pairs(r: FloatArray) -> FloatArray:
    """Return the distribution over d classes that agrees best with the probabilities of all pairs.

    Solves    min  sum_i sum_{j != i} (r_ji p_i - r_ij p_j)^2 = 2 p'Qp  over p >= 0, e'p = 1, for each row
    Given     r (n, d (d - 1) / 2), r_ij = P(class i | class i or j) for the pairs (0, 1), (0, 2), ..., (d - 2, d - 1);
              r_ji = 1 - r_ij
    Returns   p (n, d)
    See       WLW04: without p >= 0 the solution is nonnegative anyway, so that Q p + b e = 0, e'p = 1 decides it.

    WLW04 and LIBSVM iterate; one elimination is exact and always possible. For v_i > 0 > v_j the term of the pair is
    at least min(v_i, -v_j)^2, as r_ij + r_ji = 1, so that v'Qv >= v'v / (d (d - 1)) wherever e'v = 0, for every r.
    Clipping keeps each p_i above about 1e-7 / d (row i of the system), far from where rounding could turn its sign.
    """
    n_classes = _n_classes(r.shape[1])
    p = np.empty((len(r), n_classes))
    chunk = min(MAX_CHUNK, max(1, CHUNK_ENTRIES // (n_classes + 1) ** 2))
    for start in range(0, len(r), chunk):
        p[start : start + chunk] = _solve(quadratic_form(r[start : start + chunk], n_classes))
    return p


def quadratic_form(r: FloatArray, n_classes: int) -> FloatArray:
    """Return Q, shape (n, d, d): Q_ii = sum_{j != i} r_ji^2 and Q_ij = -r_ij r_ji."""
    i, j = np.triu_indices(n_classes, k=1)
    first = np.clip(r, SMALLEST, 1 - SMALLEST)
    second = 1 - first
    opposed = np.zeros((len(r), n_classes, n_classes))  # r_ji at (i, j)
    opposed[:, i, j] = second
    opposed[:, j, i] = first
    Q: FloatArray = -opposed * opposed.transpose(0, 2, 1)
    diagonal = np.arange(n_classes)
    Q[:, diagonal, diagonal] = (opposed**2).sum(axis=2)
    return Q


def _n_classes(n_pairs: int) -> int:
    n_classes = (1 + math.isqrt(1 + 8 * n_pairs)) // 2
    if n_pairs < 1 or n_classes * (n_classes - 1) // 2 != n_pairs:
        raise ValueError(f"r has {n_pairs} columns; d classes have d (d - 1) / 2 pairs: 1, 3, 6, 10, ...")
    return n_classes


def _solve(Q: FloatArray) -> FloatArray:
    n, n_classes, _ = Q.shape
    system = np.ones((n, n_classes + 1, n_classes + 1))
    system[:, :n_classes, :n_classes] = Q
    system[:, n_classes, n_classes] = 0
    right = np.zeros((n, n_classes + 1, 1))
    right[:, n_classes] = 1
    p: FloatArray = np.linalg.solve(system, right)[:, :n_classes, 0]
    return p
