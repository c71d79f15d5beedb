"""Scores K b Pi of signed variables: from a matrix in memory while float32 carries a change, else anew in float64."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np

from multimargin._typing import FloatArray, IntArray
from multimargin.base.interrupts import allowed
from multimargin.problems.problem import DualProblem
from multimargin.solvers.splitting.sets import centred

# A score errs by about this share of the sum of magnitudes of the coefficients it is made of (see float32_too_coarse).
FLOAT32_ERROR = 1e-8
ROWS_AT_A_TIME = 512


class KernelProducts:
    """Products with the kernel matrix among a problem's examples."""

    def __init__(self, problem: DualProblem, cache_bytes: float, n_threads: int, poll: Callable[[], None]) -> None:
        self.problem, self.n_threads, self.poll = problem, n_threads, poll
        n = problem.n_examples
        self.kept = 4.0 * n * n <= cache_bytes
        self.kernel_values = 0
        self.drift = 0.0  # by how much scores may err

    @cached_property
    def diagonal(self) -> FloatArray:
        return np.asarray(self.problem.store.diagonal()[self.problem.data.rows], dtype=np.float64)

    @cached_property
    def matrix(self) -> np.ndarray:
        """K in float32."""
        rows, n = self.problem.data.rows, self.problem.n_examples
        self.kernel_values += n * n
        out = np.empty((n, n), dtype=np.float32)
        for first in range(0, n, ROWS_AT_A_TIME):
            self.poll()
            part = rows[first : first + ROWS_AT_A_TIME]
            out[first : first + ROWS_AT_A_TIME] = self.problem.store.block(part, rows, float32=True)
        return out

    def columns(self, positions: IntArray) -> FloatArray:
        """Return columns of K in float64."""
        rows = self.problem.data.rows
        self.kernel_values += len(positions) * len(rows)
        return np.asarray(self.problem.store.block(rows, rows[positions]))

    def scores(self, b: FloatArray) -> FloatArray:
        """Return K b Pi in float64."""
        data, beta = self.problem.data, centred(b)
        used = np.flatnonzero(beta.any(axis=1))
        self.kernel_values += len(used) * len(b)
        self.drift = 0.0
        with allowed():
            within = self.problem.store.scores_within(data.rows[used], beta[used].T, data.rows, self.n_threads)
        return np.ascontiguousarray(within.T)

    def scores_after(self, change: FloatArray, b: FloatArray, scores: FloatArray, error: float) -> FloatArray:
        """Return the scores of b, given those before a change, with at most this error since the last exact ones."""
        mass = float(np.abs(change).sum(axis=0).max()) * float(self.diagonal.max())
        self.drift += FLOAT32_ERROR * mass
        if not self.kept or self.drift > error:
            return self.scores(b)
        return np.asarray(scores + self.matrix @ centred(change).astype(np.float32))
