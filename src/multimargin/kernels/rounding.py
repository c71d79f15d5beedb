"""Bounds on rounding errors in the scores and objectives of a point, in float64.

A score is a sum of terms beta_j k(x_j, x), and every term is rounded in proportion to its size, even if the sum is
small. Where C k(x, x) is huge the terms cancel, and the sum may be rounding error alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from multimargin._typing import DataMatrix, FloatArray
from multimargin.base.matrices import is_sparse
from multimargin.kernels.spec import KernelSpec
from multimargin.kernels.table import KERNELS

EPSILON = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Rounding:
    """Bounds on what rounding may change: a score, the dual, and the primal beyond the dual's share."""

    score: float = 0.0
    dual: float = 0.0
    primal: float = 0.0

    def times(self, factor: float) -> Rounding:
        """Return bounds so many times as wide."""
        return Rounding(factor * self.score, factor * self.dual, factor * self.primal)


UNKNOWN = Rounding()


def squared_lengths(X: DataMatrix) -> FloatArray:
    """Return |x|^2 of every row in float64, infinite where that is too large for it."""
    with np.errstate(over="ignore"):
        if is_sparse(X):
            entries = X.astype(np.float64)
            return np.asarray(entries.multiply(entries).sum(axis=1), dtype=np.float64).ravel()
        return np.asarray(np.einsum("ij,ij->i", X, X, dtype=np.float64))


def kernel_sizes(kernel: KernelSpec, rows: DataMatrix) -> FloatArray:
    """Return s with \\|k(x_i, x_j)\\| at most s_i s_j, and its rounding at most that times epsilon.

    ``rows`` are examples or, for a kernel that is given, the diagonal of its matrix. This is Cauchy's inequality for a
    positive semi-definite kernel; the table of kernels has s for each of them.
    """
    n = rows.shape[0]
    if kernel.given:
        squares = np.abs(np.asarray(rows, dtype=np.float64))
        if kernel.indefinite:
            squares = np.full(n, squares.max(initial=1.0))
    else:
        sizes = KERNELS[kernel.name].sizes
        with np.errstate(over="ignore", invalid="ignore"):
            squares = np.ones(n) if sizes is None else sizes(squared_lengths(rows), kernel)
    return np.sqrt(squares + kernel.offset)


def fits_float32(kernel: KernelSpec, rows: DataMatrix) -> bool:
    """Whether float32 holds what kernel values are computed from: squares of lengths, gamma and the values.

    Where it does not, values in float32 are no approximation at all. ``rows`` as for ``kernel_sizes``.
    """
    single = np.finfo(np.float32)
    largest = float(kernel_sizes(kernel.with_offset(0.0), rows).max(initial=0.0)) ** 2
    numbers = [largest]
    if not kernel.given:
        numbers.append(4.0 * float(squared_lengths(rows).max(initial=0.0)))  # a squared distance
        numbers.append(abs(kernel.scale))
    return all(number == 0 or float(single.tiny) <= number <= float(single.max) for number in numbers)


def rounding_of(
    sizes: FloatArray, beta: FloatArray, amounts: FloatArray, C: FloatArray, *, squared: bool, level: float
) -> Rounding:
    """Return the bounds at a point: beta (n_examples, n_scores), amounts (n_examples, n_variables), C (n_examples,).

    ``level`` is the size of what a score is compared with, targets and an exact bias, which are rounded as its terms
    are. The primal adds C_i times the missing margin: for a free variable, whose margin is met, this is rounding alone.
    The ``squared`` hinge adds the square; its error that is proportional to the variables is part of the dual's.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        mass = np.abs(beta).T @ sizes  # sum_j |beta_j| s_j, one for each column of scores
        each = EPSILON * (sizes * mass.max(initial=0.0) + level)
        C = np.where(np.isfinite(C), C, 0.0)[:, None]
        charge = C * each[:, None] if squared else np.maximum(C - amounts, 0.0)
        return Rounding(
            score=2.0 * float(each.max(initial=0.0)),
            dual=EPSILON * float(mass @ mass),
            primal=float(np.sum(np.where(amounts > 0, charge, 0.0) * each[:, None])),
        )
