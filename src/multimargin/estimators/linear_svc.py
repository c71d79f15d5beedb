"""LinearSVC: scikit-learn's contract for linear machines, no numerics."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from multimargin._typing import FloatArray
from multimargin.base.interrupts import deferred
from multimargin.base.matrices import as_published, dense
from multimargin.estimators.declared import document_fit, parameter
from multimargin.estimators.shared import SingleFitParameters
from multimargin.estimators.svc import DATA, old_state_unless_done, start_of
from multimargin.fitting.driver import run_fit
from multimargin.fitting.early_ends import LINEAR_SVC_ENDED, warn_if_unfinished
from multimargin.fitting.linear import LinearDual, check_linear_control, linear_fit
from multimargin.fitting.parameters import validate_data
from multimargin.fitting.progress import CallbackSupportMixin, FitTask, with_callbacks
from multimargin.fitting.spec import linear_spec
from multimargin.models.linear_model import LinearModel
from multimargin.problems.machines import Machine
from multimargin.problems.training_set import TrainingSet
from multimargin.solvers.certificate import Certificate


class FittedLinear:
    """What a fit of LinearSVC sets; apart from it, as a declaration there would be a parameter."""

    coef_: Any  # an array, or CSR after sparsify
    intercept_: FloatArray
    classes_: np.ndarray
    class_weight_: FloatArray
    support_: NDArray[np.int32]
    certificate_: Certificate
    n_iter_: int
    fit_status_: int
    shape_fit_: tuple[int, int]
    n_features_in_: int
    feature_names_in_: np.ndarray
    _model: LinearModel
    _dual: LinearDual


class LinearSVC(FittedLinear, CallbackSupportMixin, SingleFitParameters):
    r"""Linear support vector classifier: every multi-class machine by its weight vectors, certified.

    The same machines as ``SVC(kernel="linear")``, with the same ``coef_`` and ``intercept_``; but training goes by the
    weights, in a time that grows with the number of rows and hardly with C.

    Attributes
    ----------
    coef_ : ndarray of shape (n_classes, n_features), (n_pairs, n_features) for "ovo" and "dag"
        One row for two classes.
    intercept_ : ndarray of shape (n_classes,), (n_pairs,) for "ovo" and "dag"
    classes_ : ndarray of shape (n_classes,)
    support_ : ndarray of shape (n_SV,)
        Rows with a dual coefficient.
    certificate_ : Certificate
        Objectives, gap, KKT violation, why the fit ended; for "ovo" and "dag" the worst pair's, all in ``parts``.
    n_iter_ : int
        Passes and Newton's steps; of "ovo" and "dag" those of the pair that took most.
    fit_status_ : int
        0 converged, else 1.
    class_weight_ : ndarray of shape (n_classes,)
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)

    See Also
    --------
    SVC : The same machines with any kernel.
    LinearSVCCV : C chosen by cross-validation.
    svm_path : Models for many C.

    Notes
    -----
    Where it differs from scikit-learn's LinearSVC, and how to get theirs:

    ======================  ===============================  =========================================
    here                    scikit-learn                     to get scikit-learn's
    ======================  ===============================  =========================================
    loss="hinge"            loss="squared_hinge"             loss="squared_hinge"
    bias="exact"            the intercept is regularised     bias="regularized"
    tol=1e-3 (KKT)          tol=1e-4 (LIBLINEAR's own)       a smaller tol
    max_iter=-1             max_iter=1000                    nothing: there is no such limit
    penalty="l2" only       "l1" too                         scikit-learn's LinearSVC
    multi_class="ova"       multi_class="ovr"                the same; "crammer_singer" is "cs"
    ======================  ===============================  =========================================

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from multimargin import LinearSVC, verify
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = LinearSVC(multi_class="cs").fit(X, y)
    >>> clf.coef_.shape, clf.certificate_.stop_reason
    ((3, 4), 'converged')
    >>> verify(clf, X, y).optimal
    True
    """

    penalty: str = parameter(
        default="l2", kind='{"l2"}', doc='Accepted for compatibility; "l1" is refused.', kw_only=False
    )
    loss: str = parameter(default="hinge", kind='{"hinge", "squared_hinge"}', kw_only=False)
    dual: bool | str = parameter(
        default="auto",
        kind='"auto" or bool',
        doc="""
        Accepted for compatibility, as ``solver`` chooses how to solve; False with the hinge loss is refused as there.
        """,
    )
    multi_class: str | Machine = parameter(
        default="ova",
        kind="str or Machine",
        doc="""
        "ova" (also "ovr"), "ovo", "dag", "ww", "cs" (also "crammer_singer"), "llw", "adm", "ats", "atm", "rm", "mmr" or
        your own.
        """,
    )
    bias: str = parameter(
        default="exact",
        kind='{"exact", "regularized", "none"}',
        doc="""
        "exact" leaves b free; "regularized" adds (b / intercept_scaling)^2 / 2 to the objective, as LIBLINEAR does.
        """,
    )
    fit_intercept: bool = parameter(default=True, kind="bool", doc='False means ``bias="none"``.')
    intercept_scaling: float = parameter(default=1.0, kind="float", doc="The constant feature of a regularised bias.")
    max_iter: int = parameter(
        default=-1,
        kind="int",
        doc="""
        Limit on passes over the data and Newton's steps together, for "ovo" and "dag" of each pair; -1 for none.
        """,
    )
    solver: str = parameter(
        default="auto",
        kind='{"auto", "descent", "newton", "most-violating-pair", "working-set", "asvm", "lsvm"}',
        doc="""
        "descent": exact steps on one example after the other (not for an exact bias); "newton": the multiplier method
        with Newton's method inside. "auto" begins with the first, where it applies, and goes over to the second when
        that has cost as much as the second would. The others are those of KCSL04, for comparison, with two classes:
        decomposition by pairs or 30 variables at a time (hinge, an exact bias), "asvm" and "lsvm" (active set and
        Lagrangian methods; squared hinge, a regularised bias).
        """,
    )

    @with_callbacks
    @document_fit("LinearSVC")
    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Train on X and y."""
        params = self.get_params(deep=False)
        with deferred(keep=self.on_interrupt == "keep"):
            with old_state_unless_done(self):
                check_linear_control(params)
                checked_X, labels = validate_data(self, X, y, **DATA)
                check_classification_targets(labels)
                data = TrainingSet.from_arrays(
                    checked_X, labels, C=self.C, class_weight=self.class_weight, sample_weight=sample_weight
                )
                spec = linear_spec(params)
                task = FitTask(self, checked_X, labels)
                fitted = run_fit(linear_fit(params, data, spec), params, start_of(self, data, spec), task)
                attributes = fitted.attributes
            self.__dict__.update(attributes)  # one call, so that a signal finds the old state or the new one
            task.end(lambda: attributes)
            if fitted.error is not None and self.on_interrupt == "raise":
                raise fitted.error
            warn_if_unfinished(fitted, checked_X, spec, LINEAR_SVC_ENDED)
        return self

    def sparsify(self) -> Self:
        """Make ``coef_`` a CSR matrix, which takes less memory where most weights are 0; predictions stay the same."""
        check_is_fitted(self)
        self.coef_ = as_published(sparse.csr_array(self.coef_))
        return self

    def densify(self) -> Self:
        """Make ``coef_`` an array again."""
        check_is_fitted(self)
        self.coef_ = dense(self.coef_)
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _points(self, X: ArrayLike) -> Any:
        check_is_fitted(self)
        return validate_data(self, X, reset=False, **DATA)

    def decision_function(self, X: ArrayLike) -> np.ndarray:
        """Return the scores that decide.

        Two classes: one score, shape (n_samples,), positive for ``classes_[1]``. More: shape (n_samples, n_classes).
        """
        points = self._points(X)
        decision: np.ndarray = self._model.decision(points)
        return decision

    def predict(self, X: ArrayLike) -> np.ndarray:
        """Return the class of each row of X, shape (n_samples,)."""
        points = self._points(X)
        predicted: np.ndarray = self.classes_[self._model.codes(points)]
        return predicted
