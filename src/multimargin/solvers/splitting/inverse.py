"""The inverse of a positive definite matrix in place, in steps between which a solve may be stopped."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri, spotrf, spotri

PANEL, LEAST_PANEL = 256, 32
WORK_OF_PANEL = 2.4e9  # multiply-adds at most, so that a stop is heard of


def small_inverse(matrix: np.ndarray) -> np.ndarray | None:
    """Return the inverse by LAPACK, None where rounding leaves none."""
    single = matrix.dtype == np.float32
    factor, info = (spotrf if single else dpotrf)(matrix, lower=1)
    if info != 0:
        return None
    inverse, info = (spotri if single else dpotri)(factor, lower=1, overwrite_c=1)
    strict = np.tril(inverse, -1)
    return np.asarray(strict + strict.T + np.diag(np.diag(inverse))) if info == 0 else None


def invert(matrix: np.ndarray, poll: Callable[[], None]) -> bool:
    """Replace a symmetric matrix by its inverse, a panel of rows and columns at a time; False where there is none.

    The sweep operator: with blocks A (swept), B, D of the matrix [A B; B' D], A becomes -A^-1, B becomes A^-1 B and D
    the Schur complement; the next panel goes the same way. Signs are turned at the end. Only the lower half is kept up.
    """
    n = len(matrix)
    width = int(min(PANEL, max(LEAST_PANEL, WORK_OF_PANEL / max(1, n * n))))
    for first in range(0, n, width):
        poll()
        last = min(n, first + width)
        part = slice(first, last)
        inverse = small_inverse(matrix[part, part])
        if inverse is None:
            return False
        rows = np.concatenate([matrix[part, :last], matrix[last:, part].T], axis=1)
        scaled = inverse @ rows
        for begin in range(0, n, PANEL):
            end = min(n, begin + PANEL)
            matrix[begin:end, :end] -= rows[:, begin:end].T @ scaled[:, :end]
        matrix[part, :last] = scaled[:, :last]
        matrix[last:, part] = scaled[:, last:].T
        matrix[part, part] = -inverse
    for first in range(0, n, PANEL):  # mirrored, by tiles that stay in the cache
        last = min(n, first + PANEL)
        matrix[first:last, last:] = matrix[last:, first:last].T
    np.negative(matrix, out=matrix)
    return True
