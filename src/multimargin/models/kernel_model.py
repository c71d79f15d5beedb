"""A trained machine: support vectors, coefficients, intercept. Predicts; independent of how it was trained."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from multimargin._typing import DataMatrix, FloatArray, IntArray
from multimargin.base.resources import n_threads
from multimargin.kernels.spec import KernelSpec
from multimargin.kernels.store import KernelStore, weighted_sums
from multimargin.problems.coupling import coefficients
from multimargin.problems.given_kernels import support_values
from multimargin.problems.problem import Bias, DualProblem


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
    whole : ndarray, default=None
        All rows of the training data, if they are not a table of numbers: a callable kernel is then called with these,
        as scikit-learn's SVC does, because what it makes of a few strings may depend on the others.
    """

    support: IntArray
    support_vectors: DataMatrix
    n_support: np.ndarray
    beta: FloatArray
    intercept: FloatArray
    kernel: KernelSpec
    whole: np.ndarray | None = None

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
            whole=None if data.is_table else data.X,
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
            blocks = support_values(self, X)
            return np.concatenate([weighted_sums(self.beta.T, values) for values in blocks]) + self.intercept
        if self.kernel.given:
            return weighted_sums(self.beta.T, np.ascontiguousarray(X[:, self.support])) + self.intercept
        return self._store.scores(np.arange(n), self.beta, X, n_threads()) + self.intercept

    def codes(self, X: DataMatrix) -> IntArray:
        """Return the codes of the classes with the largest scores, shape (n_samples,)."""
        return np.asarray(self.scores(X).argmax(axis=1))

    def decision(self, X: DataMatrix, *, pairwise: bool = False) -> FloatArray:
        """Return the scores, or for two classes (f_1 - f_0) / 2, shape (n_samples,)."""
        if pairwise:
            raise ValueError(
                "decision_function_shape='ovo' does not exist for this machine: only multi_class='ovo' and 'dag' have "
                "pairwise scores; use decision_function_shape='ovr'."
            )
        scores = self.scores(X)
        return (scores[:, 1] - scores[:, 0]) / 2 if scores.shape[1] == 2 else scores


def _intercept(problem: DualProblem, beta: FloatArray, bias: FloatArray | None) -> FloatArray:
    if problem.bias is Bias.REGULARIZED:  # the weight of the constant feature: HL02 (10)
        return np.asarray(beta.sum(axis=0))
    return np.zeros(problem.n_classes) if bias is None or problem.bias is Bias.NONE else bias.copy()
