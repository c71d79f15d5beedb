"""A trained machine: support vectors, coefficients, intercept. Predicts; knows nothing of how it was trained."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from multimargin import _core
from multimargin.coupling import coefficients
from multimargin.given_kernels import evaluate_blocks
from multimargin.kernels import KernelSpec, KernelStore
from multimargin.machines import FloatArray, IntArray
from multimargin.matrices import DataArray, DataMatrix
from multimargin.problem import Bias, DualProblem
from multimargin.resources import n_threads


@dataclass(frozen=True, eq=False)
class KernelModel:
    """Scores f_c(x) = sum_s beta_sc k(x_s, x) + intercept_c.

    Parameters
    ----------
    support : ndarray of shape (n_SV,)
        Rows of the training data, grouped by class, ascending within a class.
    support_vectors : ndarray or CSR matrix of shape (n_SV, n_features)
        Empty, of shape (0, 0), for a precomputed kernel.
    n_support : ndarray of shape (n_classes,)
    beta : ndarray of shape (n_SV, n_classes)
    intercept : ndarray of shape (n_classes,)
    kernel : KernelSpec
    """

    support: IntArray
    support_vectors: DataMatrix
    n_support: np.ndarray
    beta: FloatArray
    intercept: FloatArray
    kernel: KernelSpec

    @classmethod
    def from_amounts(cls, problem: DualProblem, amounts: FloatArray, bias: FloatArray | None = None) -> KernelModel:
        """Return the model of dual variables a and, for Bias.EXACT, b; no coefficient means no support vector."""
        data = problem.data
        beta = coefficients(problem.machine, amounts, data.y, problem.n_classes)
        used = np.flatnonzero((beta != 0).any(axis=1))
        used = used[np.argsort(data.y[used], kind="stable")]
        rows = data.rows[used]
        return cls(
            support=rows,
            support_vectors=np.empty((0, 0)) if problem.kernel.name == "precomputed" else data.X[rows],
            n_support=np.bincount(data.y[used], minlength=problem.n_classes).astype(np.int32),
            beta=np.ascontiguousarray(beta[used]),
            intercept=_intercept(problem, beta, bias),
            kernel=problem.kernel,
        )

    @cached_property
    def _store(self) -> KernelStore:
        return KernelStore(self.support_vectors, self.kernel)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_store"}

    def scores(self, X: DataMatrix) -> FloatArray:
        """Return f, shape (n_samples, n_classes), in tiles over all threads."""
        n = len(self.support)
        if n == 0:
            return np.tile(self.intercept, (X.shape[0], 1))
        if self.kernel.function is not None:
            blocks = evaluate_blocks(self.kernel.function, X, self.support_vectors)
            return np.concatenate([self._weighted(values) for _, values in blocks])
        if self.kernel.given:
            return self._weighted(np.ascontiguousarray(X[:, self.support]))
        return self._store.scores(np.arange(n), self.beta, X, n_threads()) + self.intercept

    def _weighted(self, values: DataArray) -> FloatArray:
        """Return the scores of points whose kernel values with the support vectors are given, (n_points, n_SV).

        A product with beta, written as the linear kernel with its columns: the core's sums have the same bits for any
        number of threads.
        """
        n_classes = self.beta.shape[1]
        columns = _core.Store(np.ascontiguousarray(self.beta.T), KernelSpec("linear").to_core())
        return columns.scores(np.arange(n_classes), np.eye(n_classes), values, n_threads()) + self.intercept


def _intercept(problem: DualProblem, beta: FloatArray, bias: FloatArray | None) -> FloatArray:
    if problem.bias is Bias.REGULARIZED:  # the weight of the constant feature: HL02 (10)
        return np.asarray(beta.sum(axis=0))
    return np.zeros(problem.n_classes) if bias is None or problem.bias is Bias.NONE else bias.copy()
