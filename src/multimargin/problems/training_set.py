"""The data of a fit: validated once, then trusted."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.class_weight import compute_class_weight

from multimargin._typing import DataArray, DataMatrix, FloatArray, IntArray
from multimargin.base.errors import shown_label
from multimargin.base.matrices import variance


@dataclass(frozen=True, eq=False)
class TrainingSet:
    """Examples with class codes and one C each.

    Parameters
    ----------
    X : ndarray (C-contiguous) or CSR matrix of shape (n_samples, n_features), float32 or float64
    classes : ndarray of shape (n_classes,)
        The labels, sorted.
    rows : ndarray of shape (n_kept,)
        The rows of X with positive weight.
    y : ndarray of shape (n_kept,)
        Codes 0..n_classes-1 of these rows.
    C : ndarray of shape (n_kept,)
        C times class weight times sample weight.
    class_weight : ndarray of shape (n_classes,)
    weight : ndarray of shape (n_kept,)
        The sample weights.
    gram : ndarray of shape (n_samples, n_samples) or None
        The kernel matrix, where the caller computes it.
    """

    X: DataMatrix
    classes: np.ndarray
    rows: IntArray
    y: IntArray
    C: FloatArray
    class_weight: FloatArray
    weight: FloatArray
    gram: DataArray | None = None

    @property
    def kernel_data(self) -> DataMatrix:
        """The data from which kernel values are computed or taken."""
        return self.X if self.gram is None else self.gram

    @property
    def kernel_rows(self) -> DataMatrix:
        """The examples with positive weight, or the diagonal of a precomputed kernel matrix at them."""
        return self.examples(self.rows)

    def examples(self, rows: IntArray) -> DataMatrix:
        """Return these rows of X, or k(x, x) at them where the caller computes the kernel matrix."""
        if self.gram is not None:
            return self.gram[rows, rows]
        return self.X if len(rows) == self.X.shape[0] and (np.diff(rows) == 1).all() else self.X[rows]

    @property
    def is_table(self) -> bool:
        """Whether X has rows of numbers; a callable kernel takes other data, too."""
        return bool(self.X.ndim == 2 and self.X.dtype.kind == "f")

    def variance(self) -> float:
        """Return the variance of all entries of X; a weight counts as that many repetitions of its row."""
        if len(self.rows) == self.X.shape[0] and (self.weight == self.weight[0]).all():
            with np.errstate(over="ignore", invalid="ignore"):
                found = variance(self.X)
                # float32 overflows before the kernel values do
                return found if np.isfinite(found) else variance(self.X.astype(np.float64))
        with np.errstate(over="ignore", invalid="ignore"):
            return variance(self.X[self.rows], self.weight)

    def subset(self, positions: IntArray) -> TrainingSet:
        """Return the examples at these positions, with the classes, weights and data of the whole."""
        return replace(
            self,
            rows=self.rows[positions],
            y=self.y[positions],
            C=self.C[positions],
            weight=self.weight[positions],
        )

    def at(self, C: float) -> TrainingSet:
        """Return the same examples at another C."""
        return replace(self, C=C * self.class_weight[self.y] * self.weight)

    @property
    def n_classes(self) -> int:
        return len(self.classes)

    @classmethod
    def from_arrays(
        cls,
        X: DataMatrix,
        y: np.ndarray,
        *,
        C: float,
        class_weight: Any = None,
        sample_weight: ArrayLike | None = None,
    ) -> TrainingSet:
        """Return the training set of checked X and y; weights are checked here."""
        classes, codes = np.unique(y, return_inverse=True)
        if len(classes) < 2:
            raise ValueError(
                f"y has one class only ({shown_label(classes[0])}); a classifier needs at least two classes, so "
                "check the labels or the split."
            )
        weight = np.ones(len(y)) if sample_weight is None else _checked_weights(sample_weight, len(y))
        rows = np.flatnonzero(weight > 0)
        _refuse_too_few(codes[rows])
        missing = np.flatnonzero(np.bincount(codes[rows], minlength=len(classes)) == 0)
        if len(missing):
            raise ValueError(
                f"Every sample_weight of class {shown_label(classes[missing[0]])} is zero or negative; give one of "
                "its examples a positive weight or remove the class from y."
            )
        per_class = _class_weights(class_weight, classes, y, weight)
        with np.errstate(over="ignore", under="ignore"):
            each_C = C * per_class[codes[rows]] * weight[rows]
        if not (each_C > 0).all() or (np.isinf(each_C).any() and np.isfinite(C)):
            raise ValueError(
                f"C={C:g} times the weights of class and sample is {'0' if not (each_C > 0).all() else 'infinite'} for "
                "some rows, beyond the range of float64; give weights nearer to 1."
            )
        return cls(
            X=X,
            classes=classes,
            rows=rows,
            y=codes[rows].astype(np.int64),
            C=each_C,
            class_weight=per_class,
            weight=weight[rows],
        )


def _checked_weights(sample_weight: ArrayLike, n_samples: int) -> FloatArray:
    weight = np.asarray(sample_weight, dtype=np.float64)
    if weight.ndim == 0:
        weight = np.full(n_samples, float(weight))
    if weight.shape != (n_samples,):
        raise ValueError(
            f"sample_weight has shape {weight.shape}; it must have one entry per row of X, that is ({n_samples},)."
        )
    if not np.isfinite(weight).all():
        raise ValueError("sample_weight contains NaN or infinity; every weight must be a finite number.")
    return np.maximum(weight, 0.0)  # one that is negative leaves a row out, as zero does and as in scikit-learn


def _refuse_too_few(codes: IntArray) -> None:
    """Refuse weights that leave fewer than two classes; the messages begin as LIBSVM's, because scripts match them."""
    if not len(codes):
        raise ValueError(
            "Invalid input - all samples have zero or negative weights, which leave every row out; give some of them a "
            "weight > 0."
        )
    if (codes == codes[0]).all():
        raise ValueError(
            "Invalid input - all samples with positive weights belong to the same class; give rows of two classes or "
            "more a weight > 0."
        )


def _class_weights(choice: Any, classes: np.ndarray, y: np.ndarray, weight: FloatArray) -> FloatArray:
    if isinstance(choice, str) and choice == "balanced":
        # Weighted, so that a weight of two means the same as a repeated row.
        totals = np.array([weight[y == label].sum() for label in classes])
        balanced: FloatArray = weight.sum() / (len(classes) * totals)
        return balanced
    if choice is None:
        return np.ones(len(classes))
    per_class = np.asarray(compute_class_weight(choice, classes=classes, y=y), dtype=np.float64)
    if not (np.isfinite(per_class).all() and (per_class > 0).all()):
        raise ValueError(
            f"class_weight={choice!r} contains a value that is not a positive number; give every class a weight > 0."
        )
    return per_class
