"""The inverse of a positive definite matrix in place, in steps between which a solve may be stopped."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri, spotrf, spotri

PANEL = 256


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
    the Schur complement; the next panel goes the same way. Signs are turned at the end.
    """
    n = len(matrix)
    for first in range(0, n, PANEL):
        poll()
        part = slice(first, min(n, first + PANEL))
        inverse = small_inverse(matrix[part, part])
        if inverse is None:
            return False
        rows = matrix[part].copy()
        scaled = inverse @ rows
        for begin in range(0, n, 4 * PANEL):  # a panel of rows at a time, which bounds the memory
            some = slice(begin, min(n, begin + 4 * PANEL))
            matrix[some] -= rows[:, some].T @ scaled
        matrix[part] = scaled
        matrix[:, part] = scaled.T
        matrix[part, part] = -inverse
    np.negative(matrix, out=matrix)
    return True
