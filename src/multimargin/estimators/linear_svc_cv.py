"""LinearSVCCV: C by cross-validation, folds seeded from each other."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.utils.multiclass import check_classification_targets

from multimargin._typing import FloatArray, IntArray
from multimargin.base.errors import shown_label
from multimargin.base.interrupts import deferred
from multimargin.estimators.declared import document_fit, parameter
from multimargin.estimators.linear_svc import LinearSVC
from multimargin.estimators.svc import DATA, old_state_unless_done
from multimargin.fitting import parameters as check
from multimargin.fitting.driver import Fitted
from multimargin.fitting.early_ends import warn_if_unfinished
from multimargin.fitting.linear import check_linear_control, run_seeded_fit, with_weights
from multimargin.fitting.pairs import ENDS
from multimargin.fitting.parameters import validate_data
from multimargin.fitting.progress import FitTask, with_callbacks
from multimargin.fitting.spec import FitSpec, linear_spec
from multimargin.fitting.warm_starts import State, check_costs, scaled, transferred
from multimargin.models.linear_model import LinearModel
from multimargin.problems.machines import Machine
from multimargin.problems.schemes import find_scheme, pair_list
from multimargin.problems.training_set import TrainingSet
from multimargin.solvers.certificate_table import stop_reasons
from multimargin.solvers.report import Progress, StopReason


class LinearSVCCV(LinearSVC):
    """LinearSVC with C chosen by cross-validation, as scikit-learn's LogisticRegressionCV chooses its own.

    In each fold C goes up a path. The first fold starts each point from the one before, every other fold from the dual
    variables that the fold before has for the rows they share, at the same C. Each point is certified, so that scores
    are those of separate fits.

    Attributes
    ----------
    C_ : ndarray of shape (n_classes,) or (1,)
        The chosen value, repeated; with ``refit=False`` the mean of those of the folds.
    Cs_ : ndarray of shape (n_Cs,)
        Ascending.
    scores_ : dict of class to ndarray of shape (n_folds, n_Cs)
        The same scores for every class, for two classes only the second; nan where a search was stopped before.
    coefs_paths_ : dict of class to ndarray of shape (n_folds, n_Cs, n_features + 1)
        Weights and, unless there is none, the intercept. For "ovo" and "dag" the keys are pairs of classes.
    fold_certificates_ : list of lists of Certificate
        For each fold those of its points.
    coef_, intercept_, classes_, n_features_in_, feature_names_in_
        As in LinearSVC; with ``refit=True`` also ``certificate_``, ``n_iter_``, ``support_`` and what else it has.

    See Also
    --------
    LinearSVC : A single fit.
    SVCCV : C and gamma of kernel machines.
    svm_path : Models for many C.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from multimargin import LinearSVCCV
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = LinearSVCCV(Cs=[0.1, 1, 10], multi_class="cs").fit(X, y)
    >>> clf.scores_[0].shape, clf.C_.shape
    ((5, 3), (3,))
    """

    Cs: int | ArrayLike = parameter(
        default=10,
        kind="int or array-like of float",
        doc="A number of values between 1e-4 and 1e4, evenly on a logarithmic scale, or the values.",
    )
    cv: Any = parameter(
        default=None, kind="int, splitter or iterable", doc="As in scikit-learn; None means five stratified folds."
    )
    scoring: Any = parameter(default=None, kind="str, callable or None", doc="As in scikit-learn; None means accuracy.")
    refit: bool = parameter(
        default=True,
        kind="bool",
        doc="""
        Whether to train on all rows with the C of the best mean score; else weights are the means over the folds, each
        at its own best C.
        """,
    )
    C: float = parameter(init=False)
    warm_start: bool = parameter(init=False)
    class_weight: Any = parameter(
        default=None,
        kind='dict, "balanced" or None',
        doc='Factors on C by class; "balanced" weights are those of the rows that a fold trains on.',
    )
    max_iter: int = parameter(
        default=-1,
        kind="int",
        doc="""
        Limit on passes over the data and Newton's steps together of each fit, for "ovo" and "dag" of each pair; -1 for
        none.
        """,
    )
    max_time: float | None = parameter(
        default=None, kind="float or None", doc="Seconds for all fits together; each gets its share of what is left."
    )
    on_progress: Callable[[Progress], bool | None] | None = parameter(
        default=None,
        kind="callable or None",
        doc="""
        Called at first and then about every 50 ms with a ``Progress`` of the fit at work; returning True ends the
        search. A search that is stopped has the model of a fold with the best of the scores that it has.
        """,
    )
    on_interrupt: str = parameter(
        default="raise",
        kind='{"raise", "keep"}',
        doc="""
        On Ctrl-C everything stays as it was ("raise"), or the search ends as one that is stopped ("keep").
        """,
    )

    @with_callbacks
    @document_fit("LinearSVCCV", scores="They are also passed to the scorer, for the rows held out.")
    def fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None, groups: ArrayLike | None = None
    ) -> Self:
        """Choose C and train on X and y."""
        own = {name: getattr(self, name, default) for name, default in LinearSVC().get_params(deep=False).items()}
        params: dict[str, Any] = own | {"C": 1.0, "warm_start": False}
        with deferred(keep=self.on_interrupt == "keep"):
            with old_state_unless_done(self):
                check_linear_control(params)
                check.check_flag("refit", self.refit)
                spec = linear_spec(params)
                Cs = _read_costs(self.Cs)
                checked_X, labels = validate_data(self, X, y, **DATA)
                check_classification_targets(labels)
                whole = TrainingSet.from_arrays(
                    checked_X, labels, C=1.0, class_weight=self.class_weight, sample_weight=sample_weight
                )
                weight = None if sample_weight is None else np.zeros(len(labels))
                if weight is not None:
                    weight[whole.rows] = whole.weight
                folds = list(check_cv(self.cv, labels, classifier=True).split(checked_X, labels, groups))
                scorer = check_scoring(LinearSVC(), scoring=self.scoring)
                task = FitTask(self, checked_X, labels)
                search = _Search(params, spec, (checked_X, labels, weight), Cs, folds, scorer, task)
                search.run()
                fitted, attributes = search.choose(whole, refit=bool(self.refit))
                if search.error is not None and self.on_interrupt == "raise":
                    raise search.error
            self.__dict__.update(attributes)
            task.end(lambda: attributes)
            warn_if_unfinished(fitted, checked_X, spec)
        return self


def _read_costs(Cs: Any) -> FloatArray:
    if isinstance(Cs, int | np.integer) and not isinstance(Cs, bool):
        return np.logspace(-4, 4, check.check_integer("Cs", Cs, low=1, meaning="or a list of numbers > 0"))
    return check_costs(Cs)


@dataclass(eq=False)
class _Search:
    """All fits of a cross-validation."""

    params: dict[str, Any]
    spec: FitSpec
    rows: tuple[Any, np.ndarray, FloatArray | None]  # X, y, sample weights
    Cs: FloatArray
    folds: list[tuple[IntArray, IntArray]]
    scorer: Any
    task: FitTask
    cells: dict[tuple[int, int], Fitted] = field(default_factory=dict)
    stopped: bool = False
    error: BaseException | None = None

    def __post_init__(self) -> None:
        self.began = time.perf_counter()
        self.scores = np.full((len(self.folds), len(self.Cs)), np.nan)
        self.last: tuple[TrainingSet, IntArray] | None = None

    def run(self) -> None:
        """Train and score fold by fold, until all is done or something stops it."""
        for fold, (train, test) in enumerate(self.folds):
            data = self._training_set(train)
            here = (data, np.asarray(train))
            for index in range(len(self.Cs)):
                self._cell(fold, index, here, test)
                if self.stopped:
                    return
            self.last = here

    def _training_set(self, train: IntArray) -> TrainingSet:
        X, y, weight = self.rows
        missing = np.setdiff1d(y, y[train])
        if len(missing):
            raise ValueError(
                f"A training part of cv has no example of class {shown_label(missing[0])}; use stratified folds, "
                "fewer folds, or leave out classes with very few examples."
            )
        own = None if weight is None else weight[train]
        return TrainingSet.from_arrays(
            X[train], y[train], C=1.0, class_weight=self.params["class_weight"], sample_weight=own
        )

    def _cell(self, fold: int, index: int, here: tuple[TrainingSet, IntArray], test: IntArray) -> None:
        start: State | None = None
        if self.last is not None:
            near = self.cells[fold - 1, index]
            start = with_weights(transferred(near.state, self.last, here), near.attributes["_model"])
        elif index:
            near = self.cells[fold, index - 1]
            seed = scaled(near.state, float(self.Cs[index] / self.Cs[index - 1]))
            start = with_weights(seed, near.attributes["_model"])
        fitted = self.cells[fold, index] = self.fit(here[0], index, start)
        X, y, weight = self.rows
        model = LinearSVC()
        model.__dict__.update(fitted.attributes | {"n_features_in_": X.shape[1]})
        weights = {} if weight is None else {"sample_weight": weight[test]}
        self.scores[fold, index] = self.scorer(model, X[test], y[test], **weights)

    def fit(self, data: TrainingSet, index: int, start: State | None) -> Fitted:
        """Train one machine with its share of the time that is left."""
        C, limit = float(self.Cs[index]), self.params["max_time"]
        if limit is not None:
            fits_left = self.scores.size + 1 - len(self.cells)
            limit = max(1e-9, (float(limit) - (time.perf_counter() - self.began)) / fits_left)
        params = self.params | {"C": C, "max_time": limit}
        fitted = run_seeded_fit(params, data.at(C), replace(self.spec, C=C), start, self.task)
        reasons = stop_reasons(fitted.certificate)
        ends = {reason.value for reason in ENDS} - {StopReason.MAX_TIME.value}
        self.error, self.stopped = self.error or fitted.error, bool(reasons & ends) or fitted.error is not None
        return fitted

    def choose(self, whole: TrainingSet, *, refit: bool) -> tuple[Fitted, dict[str, Any]]:
        """Return the last fit and the attributes of the estimator."""
        present = np.isfinite(self.scores).any(axis=0)
        mean = np.full(len(self.Cs), -np.inf)
        mean[present] = np.nanmean(self.scores[:, present], axis=0)
        best = int(np.argmax(mean))
        chosen = float(self.Cs[best])
        last_fold = max(fold for fold, index in self.cells if index == best)
        fitted = self.cells[last_fold, best]
        attributes = fitted.attributes
        if not self.stopped and refit:
            assert self.last is not None
            start = transferred(fitted.state, self.last, (whole, np.arange(len(self.rows[1]))))
            fitted = self.fit(whole, best, with_weights(start, attributes["_model"]))
            attributes = fitted.attributes
        elif not self.stopped:
            each = np.argmax(self.scores, axis=1)
            models = [self.cells[fold, int(index)].attributes["_model"] for fold, index in enumerate(each)]
            attributes, chosen = _mean_attributes(models, attributes), float(self.Cs[each].mean())
        return fitted, attributes | self._search_attributes(whole, chosen)

    def _search_attributes(self, whole: TrainingSet, chosen: float) -> dict[str, Any]:
        classes = whole.classes
        keys = list(classes[1:] if len(classes) == 2 else classes)
        rows: list[Any] = keys
        if len(classes) > 2 and not isinstance(find_scheme(self.params["multi_class"]), Machine):
            rows = [(classes[i], classes[j]) for i, j in pair_list(len(classes))]
        with_intercept = bool(self.params["fit_intercept"]) and self.params["bias"] != "none"
        n_features = self.rows[0].shape[1]
        paths = np.full((len(rows), *self.scores.shape, n_features + with_intercept), np.nan)
        for (fold, index), fitted in self.cells.items():
            paths[:, fold, index, :n_features] = fitted.attributes["coef_"]
            if with_intercept:
                paths[:, fold, index, -1] = fitted.attributes["intercept_"]
        certificates: list[list[Any]] = [[] for _ in self.folds]
        for (fold, _), fitted in self.cells.items():
            certificates[fold].append(fitted.certificate)
        return {
            "C_": np.full(len(keys), chosen),
            "Cs_": self.Cs,
            "scores_": {key: self.scores.copy() for key in keys},
            "coefs_paths_": dict(zip(rows, paths, strict=True)),
            "fold_certificates_": certificates,
        }


def _mean_attributes(models: list[LinearModel], attributes: dict[str, Any]) -> dict[str, Any]:
    """Return the attributes of the mean of the models, which is no solution and has no certificate."""
    mean = replace(
        models[0],
        coef=np.mean([model.coef for model in models], axis=0),
        intercept=np.mean([model.intercept for model in models], axis=0),
    )
    coef, intercept = mean.public_weights()
    kept = {name: attributes[name] for name in ("classes_", "n_iter_")}
    return kept | {"coef_": coef, "intercept_": intercept, "_model": mean}
