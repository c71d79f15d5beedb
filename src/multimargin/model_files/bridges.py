"""One-vs-one models to and from scikit-learn's SVC, without training again."""

from __future__ import annotations

from typing import Any

import numpy as np
import sklearn
from scipy import sparse
from sklearn import svm
from sklearn.utils.validation import check_is_fitted

from multimargin.base.matrices import as_published, is_sparse, public_coefficients, tidy
from multimargin.estimators.svc import SVC
from multimargin.fitting.spec import FitSpec
from multimargin.kernels.spec import KernelSpec
from multimargin.kernels.table import LIBSVM_NAMES
from multimargin.models.pair_model import PairModel
from multimargin.problems.schemes import ONE_VS_ONE
from multimargin.solvers.certificate import Certificate
from multimargin.solvers.report import StopReason

# Parameters of the same name that do not mean the same: scikit-learn's cache_size is a number, its probabilities are
# not ours.
NOT_SHARED = ("cache_size", "probability")
# Private attributes that its predict and decision_function read.
READ = ("_dual_coef_", "_intercept_", "_n_support", "_gamma", "_sparse")
REMARK = "the model was taken from scikit-learn: call verify with the training data for its numbers"


def to_sklearn(clf: SVC) -> svm.SVC:
    """Return a fitted one-vs-one model as a scikit-learn SVC with the same scores.

    Parameters
    ----------
    clf : multimargin.SVC
        Fitted, with ``multi_class="ovo"``, a kernel that scikit-learn has (linear, rbf, poly, sigmoid, precomputed)
        and no calibration.

    Returns
    -------
    svc : sklearn.svm.SVC
        Predicts, pickles and clones as if it had been trained by scikit-learn. Fitted again it has a hinge loss and
        an exact bias, for any ``loss`` and ``bias`` of ``clf``.
    """
    check_is_fitted(clf)
    model: Any = clf._model
    _refuse_what_theirs_is_not(clf)
    ours = clf.get_params(deep=False)
    shared = set(svm.SVC().get_params()) & set(ours) - set(NOT_SHARED)
    svc = svm.SVC(**{name: ours[name] for name in shared})
    pattern = _fitted_pattern(is_sparse(model.support_vectors))
    known = _their_attributes(clf, model, pattern)
    unknown = sorted(set(vars(pattern)) - set(vars(svc)) - set(known))
    if unknown:
        raise RuntimeError(
            f"to_sklearn does not know the attribute {unknown[0]!r} that SVC has in scikit-learn "
            f"{sklearn.__version__}; use a version that is supported."
        )
    names = set(vars(pattern)) | {"feature_names_in_"}
    svc.__dict__.update({name: value for name, value in known.items() if name in names})
    return svc


def _refuse_what_theirs_is_not(clf: SVC) -> None:
    model = clf._model
    scheme = model.scheme if isinstance(model, PairModel) else clf._spec.machine.name
    if scheme != ONE_VS_ONE:
        raise ValueError(
            f"to_sklearn got a model of multi_class={scheme!r}; scikit-learn's SVC has one-vs-one votes only, so fit "
            "with multi_class='ovo'."
        )
    if model.kernel.name not in LIBSVM_NAMES:
        raise ValueError(
            f"to_sklearn got a model with kernel={model.kernel.name!r}; it can hand over {', '.join(LIBSVM_NAMES)}, so "
            "fit with one of these."
        )
    if clf._gives_probabilities():
        raise ValueError(
            f"to_sklearn got a model with calibration={clf.calibration!r}, whose predictions follow probabilities that "
            "scikit-learn's SVC does not have; set calibration=None, so that they follow the votes."
        )


def _fitted_pattern(as_sparse: bool) -> svm.SVC:
    """Return a tiny model that the installed scikit-learn has trained; it shows which attributes there are."""
    X = np.array([[0.0, 1.0], [1.0, 0.0]])
    return svm.SVC().fit(sparse.csr_array(X) if as_sparse else X, [0, 1])


def _their_attributes(clf: SVC, model: PairModel, pattern: svm.SVC) -> dict[str, Any]:
    """Return all attributes that scikit-learn's fit sets; those with a leading underscore have LIBSVM's signs, which
    are reversed in the public ones of two classes."""
    coef, intercept = np.array(model.dual_coef), np.array(model.intercept)
    as_sparse = is_sparse(model.support_vectors)
    sign = -1.0 if model.n_classes == 2 else 1.0
    n_iter = clf.n_iter_.astype(np.int32)
    known = {
        "_sparse": as_sparse,
        "_gamma": 0.0 if model.kernel.name == "precomputed" else model.kernel.gamma,
        "_effective_probability": False,
        "_probA": np.empty(0),
        "_probB": np.empty(0),
        "_n_support": model.n_support.astype(np.int32),
        "_num_iter": n_iter,
        "_dual_coef_": _all_entries(coef, pattern._dual_coef_),
        "_intercept_": intercept,
        "dual_coef_": _all_entries(sign * coef, pattern.dual_coef_),
        "intercept_": sign * intercept,
        "n_iter_": n_iter,
        "support_": clf.support_.astype(np.int32),
        "support_vectors_": _their_rows(model.support_vectors, pattern.support_vectors_),
    }
    same = ("classes_", "class_weight_", "fit_status_", "shape_fit_", "n_features_in_", "feature_names_in_")
    return known | {name: getattr(clf, name) for name in same if hasattr(clf, name)}


def _all_entries(coef: np.ndarray, pattern: Any) -> Any:
    """Return coefficients in the pattern's storage; a sparse matrix stores every entry, zeros too, as LIBSVM's."""
    if not is_sparse(pattern):
        return np.ascontiguousarray(coef)
    n_rows, width = coef.shape
    indices = np.tile(np.arange(width, dtype=np.int32), n_rows)
    return type(pattern)((coef.ravel(), indices, width * np.arange(n_rows + 1, dtype=np.int32)), shape=coef.shape)


def _their_rows(rows: Any, pattern: Any) -> Any:
    if not is_sparse(rows):
        return np.array(rows, dtype=np.float64, order="C")
    tidied = tidy(rows)
    parts = (tidied.data.astype(np.float64), tidied.indices.astype(np.int32), tidied.indptr.astype(np.int32))
    return type(pattern)(parts, shape=rows.shape)


def from_sklearn(svc: svm.SVC) -> SVC:
    """Return a fitted scikit-learn SVC as a one-vs-one model of ours with the same scores.

    Parameters
    ----------
    svc : sklearn.svm.SVC
        Fitted, with a kernel that is not a callable. Its probabilities are not copied.

    Returns
    -------
    clf : multimargin.SVC
        ``verify(clf, X, y)`` on the training data measures the solution; until then ``certificate_`` is marked as not
        verified.
    """
    if not isinstance(svc, svm.SVC):
        raise TypeError(f"from_sklearn got {type(svc).__name__}; it takes a fitted sklearn.svm.SVC.")
    check_is_fitted(svc)
    if not isinstance(svc.kernel, str):
        raise ValueError("from_sklearn got a model with a callable kernel; fit multimargin.SVC with it instead.")
    missing = [name for name in READ if not hasattr(svc, name)]
    if missing:
        raise RuntimeError(
            f"from_sklearn does not find the attribute {missing[0]!r} in the SVC of scikit-learn "
            f"{sklearn.__version__}; use a version that is supported."
        )
    theirs = svc.get_params(deep=False)
    shared = set(SVC().get_params()) & set(theirs) - {"probability"}
    clf = SVC(**{name: theirs[name] for name in shared}, multi_class=ONE_VS_ONE)
    model = _our_model(svc)
    spec = FitSpec.from_params(clf.get_params(deep=False), model.kernel)
    clf.__dict__.update(_our_attributes(svc, model) | {"_spec": spec})
    return clf


def _our_attributes(svc: svm.SVC, model: PairModel) -> dict[str, Any]:
    sign = -1.0 if model.n_classes == 2 else 1.0
    same = ("classes_", "class_weight_", "support_", "shape_fit_", "n_features_in_", "feature_names_in_", "fit_status_")
    return {name: getattr(svc, name) for name in same if hasattr(svc, name)} | {
        "support_vectors_": as_published(model.support_vectors),
        "n_support_": model.n_support,
        "dual_coef_": public_coefficients(sign * model.dual_coef, as_sparse=is_sparse(model.support_vectors)),
        "intercept_": sign * model.intercept,
        "certificate_": _their_certificate(svc),
        "n_iter_": np.atleast_1d(svc.n_iter_),
        "_model": model,
        "_calibrator": None,
        "_state": None,
    }


def _our_model(svc: svm.SVC) -> PairModel:
    coef = svc._dual_coef_.toarray() if is_sparse(svc._dual_coef_) else svc._dual_coef_
    name = svc.kernel
    kernel = KernelSpec(name)
    if name != "precomputed":
        kernel = KernelSpec(name, gamma=float(svc._gamma), degree=int(svc.degree), coef0=float(svc.coef0))
    return PairModel(
        support=svc.support_.astype(np.int64),
        support_vectors=np.empty((0, 0)) if name == "precomputed" else tidy(svc.support_vectors_),
        n_support=svc._n_support.astype(np.int32),
        dual_coef=np.ascontiguousarray(coef, dtype=np.float64),
        intercept=np.array(svc._intercept_, dtype=np.float64),
        kernel=kernel,
        scheme=ONE_VS_ONE,
    )


def _their_certificate(svc: svm.SVC) -> Certificate:
    reason = StopReason.MAX_ITER if svc.fit_status_ else StopReason.CONVERGED
    return Certificate(
        primal=np.nan,
        dual=np.nan,
        gap=np.nan,
        relative_gap=np.nan,
        kkt_violation=np.nan,
        tol=float(svc.tol),
        verified=False,
        stop_reason=reason.value,
        n_iter=int(np.sum(svc.n_iter_)),
        seconds=0.0,
        kernel_rows=0,
        cache_hits=0,
        solver="libsvm",
        solver_reason=f"trained by scikit-learn {sklearn.__version__}",
        remark=REMARK,
    )
