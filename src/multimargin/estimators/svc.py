"""The estimators: scikit-learn's contract, no numerics."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d

from multimargin.base.interrupts import deferred
from multimargin.base.typed import available_if
from multimargin.estimators.declared import document_fit, parameter
from multimargin.estimators.libsvm_names import LibsvmNames
from multimargin.estimators.probabilities import Probabilities
from multimargin.estimators.shared import KernelParameters, LossParameter, PrecomputedKernels, SingleFitParameters
from multimargin.fitting.calibrated import fit_and_calibrate
from multimargin.fitting.driver import run_fit
from multimargin.fitting.early_ends import SVC_ENDED, warn_if_unfinished
from multimargin.fitting.pairs import PairState, kernel_fit
from multimargin.fitting.parameters import check_array, check_control, resolve_calibration, validate_data
from multimargin.fitting.progress import CallbackSupportMixin, FitTask, with_callbacks
from multimargin.fitting.spec import FitSpec, prepare
from multimargin.problems.given_kernels import as_objects, check_values, holds_objects, refuse_sparse_gram
from multimargin.problems.training_set import TrainingSet

# How scikit-learn's validation hands data over: dense rows in C order or CSR, float32 stays float32.
DATA: dict[str, Any] = {"dtype": [np.float64, np.float32], "order": "C", "accept_sparse": "csr"}


class SVC(
    Probabilities,
    LibsvmNames,
    CallbackSupportMixin,
    PrecomputedKernels,
    KernelParameters,
    LossParameter,
    SingleFitParameters,
):
    r"""Support vector classifier: every multi-class machine, trained to a certified optimum.

    The default is scikit-learn's: one binary machine for each pair of classes, with votes. The other machines see all
    classes at once and solve

    .. math::
        \min_{w, b} \tfrac12 \sum_c \|w_c\|^2 + \sum_i C_i \,\mathrm{loss}(\xi_i), \qquad
        \sum_c \nu_{y_i p c} f_c(x_i) \ge t_{y_i p} - \xi_{ip}

    in dual form. Training time grows with the number of rows times the number of support vectors. Where classes
    hardly overlap, half a million rows take seconds; where they overlap, the time grows with the square of the rows.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    support_ : ndarray of shape (n_SV,)
        Rows of the support vectors, grouped by class.
    support_vectors_ : ndarray, or CSR matrix when X was sparse, of shape (n_SV, n_features)
        Empty, of shape (0, 0), for kernel="precomputed".
    n_support_ : ndarray of shape (n_classes,)
    dual_coef_ : ndarray of shape (n_classes - 1, n_SV) for "ovo" and "dag", else (n_classes, n_SV); CSR of sparse X
        One row for each class; (1, n_SV) for two classes. "ovo" and "dag" have LIBSVM's layout: the coefficient of a
        support vector of class i in the pair with j is in row j - 1 if i < j, else in row j.
    intercept_ : ndarray of shape (n_pairs,) for "ovo" and "dag", else (n_classes,); (1,) for two classes
        Pairs in the order (0, 1), (0, 2), ..., (1, 2), ...; a score > 0 speaks for the first class of the pair, but
        with two classes for ``classes_[1]``.
    coef_ : ndarray of shape (n_pairs, n_features) for "ovo" and "dag", else (n_classes, n_features)
        Weights, (1, n_features) for two classes; for kernel="linear" only. Read-only; CSR when X was sparse.
    certificate_ : Certificate
        Objectives, gap, KKT violation, why the fit ended. For "ovo" and "dag" those of the worst pair, and
        ``certificate_.parts`` holds one certificate for each pair, in the order of ``intercept_``.
    trace_ : Trace, or a list of one for each pair ("ovo", "dag") or class ("ova" with an exact bias)
        One with solver="frank-wolfe". Only after a fit with ``trace``; ``ConvergenceDisplay.from_estimator`` draws it.
    n_iter_ : ndarray of shape (n_pairs,) for "ovo" and "dag", else (1,)
    fit_status_ : int
        0 converged, else 1.
    class_weight_ : ndarray of shape (n_classes,)
    shape_fit_ : tuple
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)

    See Also
    --------
    LinearSVC : The same machines with a linear kernel, by weight vectors.
    SVCCV : C and gamma chosen by cross-validation.
    verify : The certificate, recomputed from the model and its data.
    diagnose : Checks of data and parameters before a fit.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from multimargin import SVC, verify
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = SVC(C=2).fit(X, y)
    >>> clf.certificate_.stop_reason, len(clf.certificate_.parts)
    ('converged', 3)
    >>> verify(clf, X, y).optimal
    True
    """

    gamma: float | str = parameter(
        default="scale",
        kind='{"scale", "auto"} or float',
        doc="""
        1 / (n_features * X.var()), 1 / n_features, or a number. The variance counts a row as often as its
        ``sample_weight`` says (scikit-learn's does not), so that weights and repetitions mean the same.
        """,
    )
    shrinking: bool | str = parameter(
        default=True,
        kind='bool, "variables" or "examples"',
        doc="""
        Leave out variables and examples that have come to rest, until the final check; or only one of the two levels.
        Single pairs of variables know none, "two-level" chooses its examples itself: both ignore it.
        """,
    )
    probability: Any = parameter(
        default="deprecated",
        kind='bool or "deprecated"',
        doc="""
        As in scikit-learn. True means ``calibration="coupling"``, or "sigmoid" where that does not exist.
        """,
    )
    solver: str = parameter(
        default="auto",
        kind="str",
        doc="""
        "auto" is the fastest that applies; the certificate says which and why. The others are for counting steps as
        the papers do. For "ovo", "dag" and "ova" with an exact bias: "maximum-gain" (or "smo") and
        "most-violating-pair", single pairs of variables at every size, where "auto" helps them by a linear system of
        the free variables and by blocks. For all else: "two-level", blocks of examples ("auto" takes it, or "s2do" if
        the kernel is not positive semi-definite or the machine one of your own with margins of another form);
        "splitting", all examples at once ("auto" takes it for "llw", "ats", "rm", "adm", "atm" and "mmr" unless the
        data are few);
        "smo", one variable; "s2do", two; "working-set", ten (not for "cs", "adm", "atm"); "whole-example", all
        variables of the worst example; "semi-greedy", those of many examples for each scan; "frank-wolfe", steps to
        vertices found by linear programs, as a second opinion on small problems (hinge loss).
        """,
    )
    calibration: str | None = parameter(
        default=None,
        kind='{"sigmoid", "isotonic", "coupling"} or None',
        doc="""
        How ``predict_proba`` makes probabilities of scores: one curve for each class, fitted on the scores of five
        fold models, or one for each pair ("ovo" and "dag" only), put together as in LIBSVM. ``predict`` follows them.
        """,
    )
    trace: bool | str = parameter(
        default=False,
        kind='bool or "primal"',
        doc="""
        Record the course of the fit in ``trace_``; "primal" with the primal objective, which costs a pass over all
        examples for each point. The model is the same bit by bit.
        """,
    )

    @with_callbacks
    @document_fit("SVC")
    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Train on X and y."""
        params = self.get_params(deep=False)
        if isinstance(self.probability, bool | np.bool_):
            warnings.warn(
                f"probability={self.probability}: the `probability` parameter is deprecated as in scikit-learn; write "
                "calibration='coupling' (or 'sigmoid') for probabilities, and nothing for none.",
                FutureWarning,
                stacklevel=3,
            )
        with deferred(keep=self.on_interrupt == "keep"):
            with old_state_unless_done(self):
                check_control(params)
                checked_X, labels = self._read(X, y)
                data = TrainingSet.from_arrays(
                    checked_X, labels, C=self.C, class_weight=self.class_weight, sample_weight=sample_weight
                )
                data, spec = prepare(params, data)
                task = FitTask(self, checked_X, labels)
                run = run_fit if resolve_calibration(params) is None else fit_and_calibrate
                fitted = run(kernel_fit(params, data, spec), params, start_of(self, data, spec), task)
                attributes = fitted.attributes
            self.__dict__.pop("trace_", None)  # of an earlier fit
            # One call, so that a signal finds the old state or the new one.
            self.__dict__.update(attributes)
            task.end(lambda: attributes)
            if fitted.error is not None and self.on_interrupt == "raise":
                raise fitted.error
            warn_if_unfinished(fitted, checked_X, spec, SVC_ENDED.format(max_iter=self.max_iter))
        return self

    def _read(self, X: Any, y: Any) -> tuple[Any, np.ndarray]:
        """Return data and labels, checked; a callable kernel may have rows that are no numbers."""
        if self._precomputed:
            refuse_sparse_gram(X)
        if callable(self.kernel) and holds_objects(X):
            checked_X, labels = as_objects(X), column_or_1d(y, warn=True)
            check_consistent_length(checked_X, labels)
        else:
            checked_X, labels = validate_data(self, X, y, **DATA)
        check_classification_targets(labels)
        return checked_X, labels

    def _points(self, X: ArrayLike) -> Any:
        """Points to score, checked; precomputed kernel values may lack the columns that are not read."""
        check_is_fitted(self)
        self._refuse_altered()
        if self._model.kernel.name == "callable" and holds_objects(X):
            return as_objects(X)
        if self._model.kernel.name != "precomputed":
            points = validate_data(self, X, reset=False, **DATA)
            self._refuse_sparse_after_dense(points)
            return points
        refuse_sparse_gram(X)
        points = check_array(X, ensure_all_finite=False, **DATA)
        check_values(points, self._model.support)
        validate_data(self, X, reset=False, skip_check_array=True)  # names and number of columns
        return points

    def _scores_decide(self) -> bool:
        """Curves fitted to each class may prefer another class than the scores do: then these are not shown."""
        return self.calibration not in ("sigmoid", "isotonic")

    @available_if(_scores_decide)
    def decision_function(self, X: ArrayLike) -> np.ndarray:
        """Return the scores that decide; not there with calibration="sigmoid" or "isotonic", where probabilities do.

        Two classes: one score, shape (n_samples,), positive for ``classes_[1]``; (f_1 - f_0) / 2 where a machine has
        one function per class. More: shape (n_samples, n_classes), for "ovo" and "dag" made of votes and a bounded
        confidence; or with ``decision_function_shape="ovo"`` the scores of all pairs, shape (n_samples, n_pairs).
        """
        points = self._points(X)
        decision: np.ndarray = self._model.decision(points, pairwise=self.decision_function_shape == "ovo")
        return decision

    def predict(self, X: ArrayLike) -> np.ndarray:
        """Return the class of each row of X, shape (n_samples,).

        "ovo" counts votes, ties go to the class that comes first (``break_ties=True``: to the larger score); "dag"
        follows its path; every other machine takes the largest score. With ``calibration`` it is the class of the
        largest probability.
        """
        check_is_fitted(self)
        if self.break_ties and self.decision_function_shape == "ovo":
            raise ValueError("break_ties must be False when decision_function_shape is 'ovo'")
        if self._gives_probabilities():
            likeliest: np.ndarray = self.classes_[np.argmax(self.predict_proba(X), axis=1)]
            return likeliest
        points = self._points(X)
        tied = self.break_ties and len(self.classes_) > 2
        codes = np.argmax(self._model.scores(points), axis=1) if tied else self._model.codes(points)
        predicted: np.ndarray = self.classes_[codes]
        return predicted


@contextmanager
def old_state_unless_done(estimator: Any) -> Iterator[None]:
    """Undo what validation sets, when a fit fails: the old fitted state stays as it was."""
    names = ("n_features_in_", "feature_names_in_")
    before = {name: estimator.__dict__[name] for name in names if name in estimator.__dict__}
    try:
        yield
    except BaseException:
        for name in names:
            estimator.__dict__.pop(name, None)
        estimator.__dict__.update(before)
        raise


def start_of(estimator: Any, data: TrainingSet, spec: FitSpec) -> Any:
    """Return the state of the estimator's last fit, for warm_start; refuse one of other classes or another machine."""
    kept = getattr(estimator, "_state", None) if estimator.warm_start else None
    if kept is None:
        return None
    state, classes = kept
    if not np.array_equal(classes, data.classes):
        raise ValueError(
            f"warm_start=True, but y has the classes {data.classes.tolist()} and the last fit had "
            f"{classes.tolist()}; fit with warm_start=False."
        )
    if isinstance(state, PairState) != bool(spec.scheme):
        raise ValueError(
            f"warm_start=True with multi_class={estimator.multi_class!r}, but the last fit's machine "
            f"{'was not' if spec.scheme else 'was'} made of pairs of classes; fit with warm_start=False."
        )
    return state
