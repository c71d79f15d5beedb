"""A trained one-vs-one machine: predicts by votes or by the decision DAG; independent of how it was trained."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from multimargin import _core
from multimargin._typing import DataMatrix, FloatArray, IntArray
from multimargin.base.matrices import as_published, is_sparse, public_coefficients, weighted_sums_of_rows
from multimargin.base.resources import n_threads
from multimargin.kernels.spec import KernelSpec
from multimargin.kernels.store import KernelStore, weighted_sums
from multimargin.models.voting import dag_path, dag_scores, ovr_scores, vote, vote_in_order
from multimargin.problems.given_kernels import support_values
from multimargin.problems.schemes import DAG, BinaryProblem, BinaryProblems, Slices, pair_at, pair_list
from multimargin.problems.training_set import TrainingSet


@dataclass(frozen=True, eq=False)
class PairModel:
    """Scores of all pairs of classes, D_ij(x) = sum_s coef_s k(x_s, x) + intercept_ij; > 0 is a vote for i, i < j.

    Parameters
    ----------
    support : ndarray of shape (n_SV,)
        Rows of the training data, grouped by class, ascending within a class.
    support_vectors : ndarray or CSR matrix of shape (n_SV, n_features)
        Each once, however many pairs use it.
    n_support : ndarray of shape (n_classes,)
    dual_coef : ndarray of shape (n_classes - 1, n_SV)
        LIBSVM's layout: for a support vector of class i the coefficient in the pair with j is entry j - 1 if i < j,
        else entry j.
    intercept : ndarray of shape (n_pairs,)
    kernel : KernelSpec
    scheme : {"ovo", "dag"}
    label_order : tuple of int, default=None
        Codes of the classes in the order in which equally many votes are decided, where it is not their own: a model
        that was read from a LIBSVM file votes as LIBSVM does.
    whole : ndarray, default=None
        As in ``KernelModel``.
    """

    support: IntArray
    support_vectors: DataMatrix
    n_support: np.ndarray
    dual_coef: FloatArray
    intercept: FloatArray
    kernel: KernelSpec
    scheme: str
    label_order: tuple[int, ...] | None = None
    whole: np.ndarray | None = None

    @classmethod
    def from_amounts(
        cls,
        data: TrainingSet,
        problems: Sequence[BinaryProblem],
        amounts: Sequence[FloatArray],
        intercept: FloatArray,
        kernel: KernelSpec,
        scheme: str,
    ) -> PairModel:
        """Return the model of each pair's dual variables; an example without a coefficient is no support vector."""
        coef = np.zeros((data.n_classes - 1, len(data.y)))
        flat = BinaryProblems.of(problems)
        pairs = np.repeat(np.arange(len(flat)), flat.sizes)
        i, j = np.triu_indices(data.n_classes, k=1)
        coef[np.where(flat.signs > 0, j[pairs] - 1, i[pairs]), flat.positions] = flat.signs * Slices.of(amounts).flat
        used = np.flatnonzero(coef.any(axis=0))
        used = used[np.argsort(data.y[used], kind="stable")]
        rows = data.rows[used]
        return cls(
            support=rows,
            support_vectors=np.empty((0, 0)) if kernel.name == "precomputed" else data.X[rows],
            n_support=np.bincount(data.y[used], minlength=data.n_classes).astype(np.int32),
            dual_coef=np.ascontiguousarray(coef[:, used]),
            intercept=intercept,
            kernel=kernel,
            scheme=scheme,
            whole=None if data.is_table else data.X,
        )

    @property
    def n_classes(self) -> int:
        return len(self.n_support)

    @property
    def blocks(self) -> list[slice]:
        """Where each class's support vectors are."""
        ends = np.cumsum(self.n_support)
        return [slice(int(end - n), int(end)) for n, end in zip(self.n_support, ends, strict=True)]

    @cached_property
    def _store(self) -> KernelStore:
        return KernelStore(self.support_vectors, self.kernel)

    @cached_property
    def _predictor(self) -> _core.PairPredictor:
        counts = self.n_support.astype(np.int64)
        return _core.PairPredictor(self._store.core, counts, self.dual_coef, self.intercept)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in ("_store", "_predictor")}

    def pair_scores(self, X: DataMatrix) -> FloatArray:
        """Return D, shape (n_samples, n_pairs), pairs in the order (0, 1), (0, 2), ..., in tiles over all threads."""
        if not len(self.support):
            return np.tile(self.intercept, (X.shape[0], 1))
        if self.kernel.function is not None:
            return np.concatenate([self._weighted(values) for values in support_values(self, X)])
        if self.kernel.given:
            return self._weighted(np.ascontiguousarray(X[:, self.support]))
        blocks = [self._predictor.scores(points, n_threads()) for points in self._store.points(X)]
        return blocks[0] if len(blocks) == 1 else np.concatenate(blocks)

    def codes(self, X: DataMatrix) -> IntArray:
        """Return the codes of the classes, shape (n_samples,): most votes, or the result of the DAG."""
        dag = self.scheme == DAG
        if self.label_order is not None and not dag:
            return vote_in_order(self.pair_scores(X), self.label_order)
        if not len(self.support) or self.kernel.given:
            return (dag_path if dag else vote)(self.pair_scores(X), self.n_classes)
        blocks = [self._predictor.classes(points, dag, n_threads()) for points in self._store.points(X)]
        return blocks[0] if len(blocks) == 1 else np.concatenate(blocks)

    def _weighted(self, values: DataMatrix) -> FloatArray:
        """Return the pair scores of points whose kernel values with the support vectors are given, (n_points, n_SV)."""
        sums = [
            weighted_sums(self.dual_coef[:, block], np.ascontiguousarray(values[:, block])) for block in self.blocks
        ]
        pairs = [sums[i][:, j - 1] + sums[j][:, i] for i, j in pair_list(self.n_classes)]
        return np.stack(pairs, axis=1) + self.intercept

    def scores(self, X: DataMatrix) -> FloatArray:
        """Return one score per class, shape (n_samples, n_classes): scikit-learn's, or the DAG's rounds."""
        combine = dag_scores if self.scheme == DAG else ovr_scores
        return combine(self.pair_scores(X), self.n_classes)

    def decision(self, X: DataMatrix, *, pairwise: bool = False) -> FloatArray:
        """Return one score per class or per pair; for two classes one score, positive for the second."""
        if self.n_classes == 2:
            return -self.pair_scores(X)[:, 0]
        return self.pair_scores(X) if pairwise else self.scores(X)

    def pair_beta(self, pair: int) -> tuple[IntArray, FloatArray]:
        """Return the positions of a pair's support vectors, and their coefficients."""
        i, j = pair_at(pair, self.n_classes)
        first, second = self.blocks[i], self.blocks[j]
        positions = np.r_[first, second]
        return positions, np.concatenate([self.dual_coef[j - 1, first], self.dual_coef[i, second]])

    def weights(self) -> DataMatrix:
        """Return the weight vectors of the pairs, (n_pairs, n_features), for a linear kernel; CSR of sparse vectors."""
        pairs = map(self.pair_beta, range(len(self.intercept)))
        rows = [weighted_sums_of_rows(beta[None, :], self.support_vectors[positions]) for positions, beta in pairs]
        if is_sparse(self.support_vectors):
            return sparse.csr_array(sparse.vstack(rows))
        return np.asarray(np.vstack(rows))

    def with_dual_coef(self, values: FloatArray) -> PairModel:
        """Return the model with other coefficients of the same shape."""
        return replace(self, dual_coef=values)


def model_attributes(data: TrainingSet, model: PairModel) -> dict[str, Any]:
    """Return the fitted attributes of a model that was trained on these data."""
    made = pair_model_attributes(model, data.classes, data.class_weight, data.X.shape)
    return made | {"_fitted_dense": not is_sparse(data.X)}


def pair_model_attributes(
    model: PairModel, classes: np.ndarray, class_weight: np.ndarray, shape: tuple[int, int]
) -> dict[str, Any]:
    """Return the fitted attributes in scikit-learn's layout: with two classes both signs are turned."""
    sign = -1.0 if model.n_classes == 2 else 1.0
    return {
        "classes_": classes,
        "class_weight_": class_weight,
        "support_": model.support.astype(np.int32),
        "support_vectors_": as_published(model.support_vectors),
        "n_support_": model.n_support,
        "dual_coef_": public_coefficients(sign * model.dual_coef, as_sparse=is_sparse(model.support_vectors)),
        "intercept_": sign * model.intercept,
        "shape_fit_": shape,
        "_model": model,
        "_calibrator": None,
    }
