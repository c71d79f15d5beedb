"""What scikit-learn's SVC shows of a fitted model beside its documented attributes: exporters and scripts read it."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.svm import SVC as TheirSVC  # noqa: N811 - two classes of this name
from sklearn.utils.validation import check_is_fitted

from multimargin._typing import DataMatrix, FloatArray
from multimargin.base.matrices import as_published, dense, is_sparse, public_coefficients, weighted_sums_of_rows
from multimargin.base.resources import check_room
from multimargin.models.calibration import Calibrator, PairCalibrator
from multimargin.models.kernel_model import KernelModel
from multimargin.models.pair_model import PairModel
from multimargin.solvers.certificate import Certificate


class LibsvmNames:
    """Names of scikit-learn's SVC, computed from the model; for two classes those with an underscore turn the sign."""

    _impl = "c_svc"
    # Tools read what a parameter may be; of ours they know nothing.
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **getattr(TheirSVC, "_parameter_constraints", {}),
        **{name: ["no_validation"] for name in ("kernel", "shrinking", "cache_size")},
    }

    # What a fit sets.
    classes_: np.ndarray
    class_weight_: FloatArray
    support_: NDArray[np.int32]
    support_vectors_: DataMatrix
    n_support_: NDArray[np.int32]
    dual_coef_: Any  # an array, or CSR
    intercept_: FloatArray
    n_iter_: NDArray[np.int32]
    fit_status_: int
    shape_fit_: tuple[int, ...]
    n_features_in_: int
    feature_names_in_: np.ndarray
    certificate_: Certificate
    trace_: Any  # a Trace, or a list of them
    _model: KernelModel | PairModel
    _calibrator: Calibrator | None
    _fitted_dense: bool = False
    # Parameters that are read here.
    kernel: str | Callable[[Any, Any], Any]

    def _refuse_altered(self) -> None:
        """Refuse a model whose counts of support vectors do not sum to their number any more."""
        if int(np.sum(self.n_support_)) != len(self._model.support):
            raise ValueError(
                f"The internal representation of {type(self).__name__} was altered: n_support_ does not sum to the "
                "number of support vectors; fit again."
            )

    def _refuse_sparse_after_dense(self, points: Any) -> None:
        """As scikit-learn does; a model that was read from a file takes both, as a file may hold either."""
        if is_sparse(points) and self._fitted_dense and not callable(self.kernel):
            raise ValueError(
                f"cannot use sparse input in {type(self).__name__!r} trained on dense data; pass X.toarray(), or fit "
                "on sparse data."
            )

    @property
    def _gamma(self) -> float:
        """Gamma as a number; 0 where the caller computes the kernel."""
        kernel = self._fitted_model().kernel
        return 0.0 if kernel.given else float(kernel.gamma)

    @property
    def _sparse(self) -> bool:
        model = self._fitted_model()
        return is_sparse(model.support_vectors) and model.kernel.function is None

    @property
    def _n_support(self) -> np.ndarray:
        self._fitted_model()
        counts: np.ndarray = self.n_support_
        return counts

    @property
    def _num_iter(self) -> np.ndarray:
        self._fitted_model()
        counts: np.ndarray = self.n_iter_
        return counts

    @property
    def _intercept_(self) -> np.ndarray:
        self._fitted_model()
        intercept: np.ndarray = -self.intercept_ if len(self.classes_) == 2 else self.intercept_
        return intercept

    @property
    def _dual_coef_(self) -> Any:
        self._fitted_model()
        return -self.dual_coef_ if len(self.classes_) == 2 else self.dual_coef_

    @_dual_coef_.setter
    def _dual_coef_(self, values: Any) -> None:
        """Change what the model predicts with, as scikit-learn's does."""
        model = self._fitted_model()
        entries = np.ascontiguousarray(values.toarray() if is_sparse(values) else values, dtype=np.float64)
        if not isinstance(model, PairModel) or entries.shape != model.dual_coef.shape:
            raise AttributeError(
                "_dual_coef_ can be set for multi_class='ovo' and 'dag', with an array of the shape that it has."
            )
        self._model = model.with_dual_coef(entries)
        self.dual_coef_ = public_coefficients(
            -entries if len(self.classes_) == 2 else entries, as_sparse=is_sparse(model.support_vectors)
        )

    @property
    def _probA(self) -> FloatArray:  # noqa: N802 - scikit-learn's name
        return np.array([-curve.slope for curve in self._pair_curves()])

    @property
    def _probB(self) -> FloatArray:  # noqa: N802 - scikit-learn's name
        return np.array([-curve.offset for curve in self._pair_curves()])

    @property
    def probA_(self) -> FloatArray:  # noqa: N802 - scikit-learn's name
        """Slopes of the pairs' sigmoids, LIBSVM's A; empty without calibration="coupling". Deprecated."""
        return self._deprecated_curve("probA")

    @property
    def probB_(self) -> FloatArray:  # noqa: N802 - scikit-learn's name
        """Offsets of the pairs' sigmoids, LIBSVM's B; empty without calibration="coupling". Deprecated."""
        return self._deprecated_curve("probB")

    def _deprecated_curve(self, name: str) -> FloatArray:
        found: FloatArray = getattr(self, f"_{name}")
        warnings.warn(
            f"Attribute `{name}_` was deprecated in scikit-learn 1.9, with the `probability` parameter.",
            FutureWarning,
            stacklevel=3,
        )
        return found

    def _pair_curves(self) -> tuple[Any, ...]:
        self._fitted_model()
        calibrator = self._calibrator
        return calibrator.curves if isinstance(calibrator, PairCalibrator) else ()

    def _fitted_model(self) -> Any:
        """Return the model; before a fit an AttributeError, as of any attribute that is not there yet."""
        if "_model" not in self.__dict__:
            raise AttributeError(f"This {type(self).__name__} is not fitted yet; call fit first.")
        return self._model

    @property
    def coef_(self) -> Any:
        """Weight vectors of the linear kernel, read-only; CSR after a fit on sparse data."""
        if not isinstance(self.kernel, str) or self.kernel != "linear":
            raise AttributeError("coef_ is only available when using a linear kernel")
        check_is_fitted(self)
        if not is_sparse(self.support_vectors_):
            needed, remedy = 8.0 * len(self.intercept_) * self.n_features_in_, "use dual_coef_ and support_vectors_"
            check_room(needed, f"coef_ for each of {self.n_features_in_} columns", remedy)
        weights = self._weights()
        (weights.data if is_sparse(weights) else weights).flags.writeable = False
        return weights

    def _weights(self) -> Any:
        model = self._model
        if isinstance(model, PairModel):
            weights = -model.weights() if len(self.classes_) == 2 else model.weights()
        else:
            weights = weighted_sums_of_rows(dense(self.dual_coef_), self.support_vectors_)
        return as_published(weights)
