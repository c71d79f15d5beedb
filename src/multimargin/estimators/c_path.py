"""The path of a machine along C: each point starts from the one before (alpha seeding, KCSL04 section 3)."""

from __future__ import annotations

import time
import warnings
from bisect import bisect_left
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.multiclass import check_classification_targets

from multimargin._typing import FloatArray, IntArray
from multimargin.base.interrupts import deferred
from multimargin.estimators.linear_svc import LinearSVC
from multimargin.estimators.svc import DATA, SVC
from multimargin.fitting import parameters as check
from multimargin.fitting.driver import Fitted, run_fit
from multimargin.fitting.linear import check_linear_control, run_seeded_fit, with_weights
from multimargin.fitting.machine import make_attributes
from multimargin.fitting.pairs import ENDS, PairFit, PairState, kernel_fit
from multimargin.fitting.parameters import check_control, validate_data
from multimargin.fitting.progress import FitTask
from multimargin.fitting.spec import FitSpec, linear_spec, prepare
from multimargin.fitting.warm_starts import State, check_costs, extrapolated, scaled
from multimargin.models.linear_model import LinearModel
from multimargin.models.pair_model import PairModel, model_attributes
from multimargin.problems.given_kernels import refuse_sparse_gram
from multimargin.problems.machines import Bound
from multimargin.problems.problem import DualProblem, Loss
from multimargin.problems.schemes import pair_problems
from multimargin.problems.training_set import TrainingSet
from multimargin.solvers.certificate import Certificate
from multimargin.solvers.certificate_table import stop_reasons
from multimargin.solvers.linear.saturation import LinearKind, weights_are_final
from multimargin.solvers.report import StopReason

# A variable within this share of C of a bound is at it, as in verify.
AT_BOUND = 1e-12


@dataclass(frozen=True, eq=False)
class _Point:
    """What a model of the path is made of again: the fitted attributes but those that hold support vectors."""

    attributes: dict[str, Any]
    state: State | None
    intercept: FloatArray | None  # of the pairs' machines


@dataclass(frozen=True, eq=False)
class SVMPath:
    """Machines along C, in ascending order of C; of a path that was stopped the points that were finished.

    Attributes
    ----------
    Cs : ndarray of shape (n_points,)
    certificates : tuple of Certificate
        One for each point.
    n_iter : ndarray of shape (n_points,)
        Steps of each point, those of all its binary problems together.
    seconds : ndarray of shape (n_points,)
    face_changes : ndarray of shape (n_points,)
        How many dual variables are of another kind (lower bound, free, upper bound) than at the point before; 0 for the
        first. Where a bound holds the sum of an example's variables, that sum counts as one more.
    coefs : ndarray of shape (n_points, n_rows, n_features) or None
        ``coef_`` of each point, for linear machines.
    intercepts : ndarray of shape (n_points, n_rows)
    saturation_C : float or None
        KCSL04's C*, proved: the smallest C of the path whose weights are optimal, within tol, for every larger C. None
        where that is not proved: the weights still change, a linear program found no proof or would be too large, the
        loss is the squared hinge, or the kernel is not linear.
    stop_reason : str
        "converged"; what ended the path early ("max_time", "interrupted", "callback"); or why the first point that did
        not reach tol did not ("max_iter", "stalled").
    """

    Cs: FloatArray
    certificates: tuple[Certificate, ...]
    n_iter: IntArray
    seconds: FloatArray
    face_changes: IntArray
    coefs: FloatArray | None
    intercepts: FloatArray
    saturation_C: float | None  # noqa: N815 - C is a name that scikit-learn's users know
    stop_reason: str
    _estimator: Any = field(repr=False)
    _data: TrainingSet | None = field(repr=False)
    _points: tuple[_Point, ...] = field(repr=False)

    def __len__(self) -> int:
        return len(self.Cs)

    def model(self, index: int) -> Any:
        """Return the fitted estimator of a point, made from what was kept and not trained again."""
        if not self._points:
            raise ValueError("This path has no models; make it with keep_models=True, and with time for a point.")
        point, C = self._points[index], float(self.Cs[index])
        model = _with_params(self._estimator, C)
        names = ("n_features_in_", "feature_names_in_")
        model.__dict__.update({k: v for k, v in self._estimator.__dict__.items() if k in names})
        model.__dict__.update(self._support(point, C) | point.attributes)
        return model

    def _support(self, point: _Point, C: float) -> dict[str, Any]:
        """Return the attributes of a kernel machine with its support vectors, from the dual variables."""
        if point.state is None or self._data is None:
            return {}
        spec, data = point.attributes["_spec"], self._data.at(C)
        if isinstance(point.state, PairState):
            assert point.intercept is not None
            fit = PairFit.of(data, spec)
            return model_attributes(data, fit.model(point.state.amounts, point.intercept))
        return make_attributes(_problem(data, spec), point.state)


def _problem(data: TrainingSet, spec: FitSpec) -> DualProblem:
    return DualProblem(data, spec.machine, spec.kernel, spec.loss, spec.bias)


def svm_path(  # noqa: PLR0913 - the arguments of a fit
    X: ArrayLike,
    y: ArrayLike,
    *,
    Cs: ArrayLike,
    estimator: Any = None,
    sample_weight: ArrayLike | None = None,
    scale: bool = True,
    keep_models: bool = True,
) -> SVMPath:
    """Train a machine for each C, in ascending order, each from the dual variables of the one before.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
    Cs : array-like of shape (n_points,)
        Positive numbers; their order does not matter.
    estimator : LinearSVC or SVC, default=None
        Whose parameters to use, but for C; ``LinearSVC()`` by default. Its ``max_time`` is for the whole path. It stays
        as it is.
    sample_weight : array-like of shape (n_samples,), default=None
    scale : bool, default=True
        Whether the dual variables are multiplied by the ratio of the two C, so that those at C stay there (alpha
        seeding, KCSL04); else they are taken as they are.
    keep_models : bool, default=True
        Whether to keep the dual variables of all points, for ``SVMPath.model``.

    Returns
    -------
    path : SVMPath
        On Ctrl-C with the finished points, if the estimator has ``on_interrupt="keep"``; else the KeyboardInterrupt
        goes on, with this path as its attribute ``path``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from multimargin import LinearSVC, svm_path
    >>> X, y = load_iris(return_X_y=True)
    >>> path = svm_path(X, y, Cs=[0.1, 1, 10], estimator=LinearSVC(multi_class="ww"))
    >>> path.coefs.shape, path.model(1).C
    ((3, 3, 4), 1.0)
    """
    ordered = check_costs(Cs)
    check.check_flag("scale", scale)
    own = LinearSVC() if estimator is None else _unfitted(estimator)
    with deferred(keep=own.on_interrupt == "keep") as waiting:
        walk = _Walk(own, X, y, sample_weight, keep_models=keep_models)
        error = walk.along(ordered, scale=scale)
        return _end(walk.path(), len(ordered), None if own.on_interrupt == "keep" else error or waiting.take())


def _end(path: SVMPath, n_wanted: int, error: BaseException | None) -> SVMPath:
    """Raise the error with the path, or warn if something is missing."""
    if error is not None:
        error.path = path  # type: ignore[attr-defined]
        raise error
    if path.stop_reason != StopReason.CONVERGED.value:
        warnings.warn(
            f"The path has {len(path)} of {n_wanted} points or some that did not reach tol ({path.stop_reason}); "
            "see its certificates, and raise max_time or max_iter, scale X or leave out large Cs.",
            ConvergenceWarning,
            stacklevel=3,
        )
    return path


def _unfitted(estimator: Any) -> Any:
    if not isinstance(estimator, LinearSVC | SVC):
        raise TypeError(
            f"estimator={estimator!r} has no path; give a multimargin.LinearSVC, a multimargin.SVC or None."
        )
    params = estimator.get_params(deep=False)
    if isinstance(estimator, SVC) and check.resolve_calibration(params) is not None:
        raise ValueError(
            f"estimator has calibration={params['calibration']!r}, but a path trains no probabilities; leave it out, "
            "and calibrate the model that you choose."
        )
    return _with_params(estimator, estimator.C)


def _with_params(estimator: Any, C: float) -> Any:
    """Return an unfitted estimator; unlike scikit-learn's clone, with the same objects for its parameters."""
    return type(estimator)(**(estimator.get_params(deep=False) | {"C": C}))


class _Walk:
    """From point to point."""

    def __init__(self, estimator: Any, X: Any, y: Any, sample_weight: Any, *, keep_models: bool) -> None:
        self.estimator, self.keep_models = estimator, check.check_flag("keep_models", keep_models)
        self.linear = isinstance(estimator, LinearSVC)
        params: dict[str, Any] = estimator.get_params(deep=False)
        (check_linear_control if self.linear else check_control)(params)
        if params.get("kernel") is not None and isinstance(params["kernel"], str) and params["kernel"] == "precomputed":
            refuse_sparse_gram(X)
        checked_X, labels = validate_data(estimator, X, y, **DATA)
        check_classification_targets(labels)
        self.data = TrainingSet.from_arrays(
            checked_X, labels, C=1.0, class_weight=params["class_weight"], sample_weight=sample_weight
        )
        if self.linear:
            self.spec = linear_spec(params)
        else:
            self.data, self.spec = prepare(params, self.data)
        self.params, self.task = params, FitTask(None, checked_X, labels)
        self.done: list[tuple[float, Fitted, float]] = []
        self.points: list[_Point] = []
        self.states: list[State] = []  # of the last two points
        self.kinds: list[np.ndarray] = []
        self.face_changes: list[int] = []
        self.ended = ""

    def along(self, Cs: FloatArray, *, scale: bool) -> BaseException | None:
        """Train one after the other; returns the Ctrl-C that ended it, if one did."""
        began = time.perf_counter()
        limit = np.inf if self.params["max_time"] is None else float(self.params["max_time"])
        start: State | None = None
        for index, C in enumerate(Cs.tolist()):
            before = time.perf_counter()
            left = limit - (before - began)
            if left <= 0:
                self.ended = StopReason.MAX_TIME.value
                return None
            if scale:
                start = self._seed(Cs[: index + 1])
            if self.linear and self.done:
                start = with_weights(start, self.last_model)
            try:
                fitted = self._train(C, start, left)
            except KeyboardInterrupt as interrupt:  # outside the solvers, which keep what they raise
                self.ended = StopReason.INTERRUPTED.value
                return interrupt
            ended = _what_ended(fitted.certificate)
            if ended:
                self.ended = ended
                return fitted.error
            self._keep(C, fitted, time.perf_counter() - before)
            start, self.states = fitted.state, [*self.states[-1:], fitted.state]
            if fitted.error is not None:  # while a point that had reached tol was made better
                self.ended = StopReason.INTERRUPTED.value
                return fitted.error
        return None

    def _seed(self, Cs: FloatArray) -> State | None:
        """Return the start for the last C: scaled or, for weights by Newton's method, which finds bounds by itself,
        along the line through two points.
        """
        if not self.states:
            return None
        if len(self.states) == 1 or not self.linear:
            return scaled(self.states[-1], float(Cs[-1] / Cs[-2]))
        return extrapolated(self.states[0], self.states[1], float((Cs[-1] - Cs[-2]) / (Cs[-2] - Cs[-3])))

    def _train(self, C: float, start: Any, seconds: float) -> Fitted:
        params = self.params | {"C": C, "max_time": seconds, "warm_start": False}
        data, spec = self.data.at(C), replace(self.spec, C=C)
        if self.linear:
            return run_seeded_fit(params, data, spec, start, self.task)
        store = self.done[0][1].store if self.done else None
        return run_fit(kernel_fit(params, data, spec, store), params, start, self.task)

    def _keep(self, C: float, fitted: Fitted, seconds: float) -> None:
        kinds = kinds_of(self.data.at(C), self.spec, fitted.state)
        self.face_changes.append(int((kinds != self.kinds[-1]).sum()) if self.kinds else 0)
        self.kinds = [kinds]
        attributes = dict(fitted.attributes)
        self.last_model = attributes["_model"]
        self.coef_and_intercept(attributes)
        if self.keep_models:
            intercept = None
            if not self.linear:  # support vectors are taken from the data again
                model = attributes.pop("_model")
                attributes.pop("support_vectors_")
                intercept = model.intercept
            self.points.append(_Point(attributes, None if self.linear else fitted.state, intercept))
        self.done.append((C, replace(fitted, attributes={}, state=None), seconds))

    def coef_and_intercept(self, attributes: dict[str, Any]) -> None:
        """Note the weights of a linear machine."""
        if not self.done:
            self.coefs: list[FloatArray] = []
            self.intercepts: list[FloatArray] = []
            self.weights: list[tuple[FloatArray, FloatArray]] = []
        self.intercepts.append(attributes["intercept_"])
        if self.linear:
            self.coefs.append(attributes["coef_"])
        elif self.params["kernel"] == "linear":
            model = _with_params(self.estimator, 1.0)
            model.__dict__.update(attributes, n_features_in_=self.data.X.shape[1])
            self.coefs.append(np.asarray(_dense(model.coef_)))
        else:
            return
        self.weights.append(_weights_of(attributes["_model"]))

    def saturation(self) -> float | None:
        """Return the smallest C from which on the weights are proved to stay; a proof at one C holds at larger ones."""
        if not self.done or not self.weights:
            return None
        spec = self.spec
        kind = LinearKind(spec.machine, bool(spec.scheme), spec.loss, spec.bias, spec.kernel.offset)

        def proved(index: int) -> bool:
            converged = self.done[index][1].certificate.stop_reason == StopReason.CONVERGED.value
            return converged and weights_are_final(self.data, *self.weights[index], kind, spec.tol)

        if not proved(len(self.done) - 1):
            return None
        first = bisect_left(range(len(self.done) - 1), True, key=proved)
        return self.done[first][0]

    def path(self) -> SVMPath:
        Cs = np.array([C for C, _, _ in self.done])
        certificates = tuple(fitted.certificate for _, fitted, _ in self.done)
        early = [c.stop_reason for c in certificates if c.stop_reason != StopReason.CONVERGED.value]
        coefs = np.stack(self.coefs) if self.done and self.coefs else None
        return SVMPath(
            Cs=Cs,
            certificates=certificates,
            n_iter=np.array([c.n_iter for c in certificates], dtype=np.int64),
            seconds=np.array([seconds for _, _, seconds in self.done]),
            face_changes=np.array(self.face_changes, dtype=np.int64),
            coefs=coefs,
            intercepts=np.stack(self.intercepts) if self.done else np.zeros((0, 0)),
            saturation_C=self.saturation(),
            stop_reason=self.ended or (early[0] if early else StopReason.CONVERGED.value),
            _estimator=self.estimator,
            _data=self.data if self.keep_models else None,
            _points=tuple(self.points),
        )


def _dense(coef: Any) -> Any:
    return coef.toarray() if hasattr(coef, "toarray") else coef


def _what_ended(certificate: Certificate) -> str:
    reasons = stop_reasons(certificate)
    return next((reason.value for reason in ENDS if reason.value in reasons), "")


def _weights_of(model: Any) -> tuple[FloatArray, FloatArray]:
    """Return weights and intercepts of the functions that were trained, one row for each class or pair."""
    if isinstance(model, LinearModel):
        return model.coef, model.intercept
    if isinstance(model, PairModel):
        return np.asarray(_dense(model.weights())), model.intercept
    return np.asarray(_dense(model.beta.T @ model.support_vectors)), model.intercept


def kinds_of(data: TrainingSet, spec: FitSpec, state: State) -> np.ndarray:
    """Return for each dual variable whether it is at its lower bound (0), free (1) or at its upper bound (2)."""
    if isinstance(state, PairState):
        pairs = zip(pair_problems(data), state.amounts, strict=True)
        return np.concatenate([_kinds(a, pair.C, spec.loss) for pair, a in pairs])
    if spec.machine.bound is Bound.BOX:
        return _kinds(state.amounts, data.C[:, None], spec.loss).ravel()
    total = state.amounts.sum(axis=1, keepdims=True)
    return np.concatenate(
        [
            (state.amounts > AT_BOUND * data.C[:, None]).astype(np.int8).ravel(),
            _kinds(total, data.C[:, None], spec.loss).ravel(),
        ]
    )


def _kinds(amounts: FloatArray, C: FloatArray, loss: Loss) -> np.ndarray:
    used = (amounts > AT_BOUND * C).astype(np.int8)
    return used if loss is not Loss.HINGE else used + (amounts >= (1 - AT_BOUND) * C)
