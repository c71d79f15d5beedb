"""SVCCV: C and gamma by cross-validation over shared kernels, each machine started from the one before."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import check_cv
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from multimargin._typing import FloatArray
from multimargin.base.interrupts import deferred
from multimargin.base.typed import available_if
from multimargin.estimators.declared import document_fit, parameter
from multimargin.estimators.shared import FitParameters, KernelParameters, LossParameter, PrecomputedKernels
from multimargin.estimators.svc import DATA, SVC, old_state_unless_done
from multimargin.fitting import parameters as check
from multimargin.fitting.parameters import check_control, validate_data
from multimargin.fitting.warm_starts import check_costs
from multimargin.kernels.table import has_gamma
from multimargin.model_selection import run as searching
from multimargin.model_selection.distribute import leaves_this_machine, local
from multimargin.model_selection.evaluation import SelectionProblem, UnitResult, evaluate_gamma
from multimargin.model_selection.forecast import Forecast, forecast
from multimargin.model_selection.parameters import best_cell, read_gammas, read_scorers
from multimargin.model_selection.progress import SearchMonitor, search_line
from multimargin.model_selection.results import SelectionResults
from multimargin.problems.given_kernels import refuse_sparse_gram
from multimargin.problems.training_set import TrainingSet
from multimargin.solvers.report import Progress

DEFAULT_CS: FloatArray = np.exp2(np.arange(-2.0, 13.0, 2.0))
DEFAULT_GAMMAS: FloatArray = np.exp2(np.arange(-10.0, 5.0, 2.0))
# Parameters of the search; all others are SVC's.
OWN = ("Cs", "gammas", "cv", "search", "scoring", "refit", "n_jobs", "resume", "per_pair")


class SVCCV(PrecomputedKernels, KernelParameters, LossParameter, FitParameters):
    """SVC with C and gamma chosen by cross-validation, at a small multiple of the cost of one fit.

    What GridSearchCV over ``SVC`` does, and with the same scores: every cell is trained to ``tol``, confirmed in
    float64. But distances are computed once, the kernel matrix of a gamma serves all C, folds and pairs of classes, and
    each machine starts from the one at the C before. Where the matrices do not fit ``cache_size`` rows are computed on
    demand.

    Attributes
    ----------
    cv_results_ : dict
        GridSearchCV's, with C and gamma as parameters; beyond it ``stopped`` and ``mean_n_support``.
    Cs_, gammas_ : ndarray
        Ascending.
    scores_ : dict of metric to ndarray of shape (n_gammas, n_Cs, n_folds)
        nan where a cell was stopped.
    stop_reason_ : {"finished", "max_time", "callback", "interrupted"}
        Why the search came to its end.
    stopped_ : ndarray of bool of shape (n_gammas, n_Cs)
    best_params_, best_score_, best_index_, n_splits_, scorer_, multimetric_
        As in GridSearchCV.
    best_estimator_ : SVC
        Trained on all rows, with ``refit``.
    pair_selection_ : PairSelection
        With ``per_pair``: C, gamma and score of each pair.
    certificate_, n_iter_
        Those of ``best_estimator_``.
    refit_time_, search_seconds_ : float
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)

    See Also
    --------
    SVC : A single fit.
    compare_machines : Machines compared on the same folds.
    SelectionDisplay : Plots of a search.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from multimargin import SVCCV
    >>> X, y = load_iris(return_X_y=True)
    >>> search = SVCCV(Cs=[1, 10, 100], gammas=[0.01, 0.1]).fit(X, y)
    >>> search.best_params_
    {'C': 1.0, 'gamma': 0.1}
    >>> search.certificate_.stop_reason
    'converged'
    """

    Cs: Any = parameter(default=None, kind="array-like of float", doc="None means 2^-2, 2^0, ..., 2^12.")
    gammas: Any = parameter(
        default=None,
        kind="array-like of float",
        doc="None means 2^-10, 2^-8, ..., 2^4; kernels without gamma take none.",
    )
    cv: Any = parameter(
        default=5,
        kind="int, splitter or iterable",
        doc="As in scikit-learn. Every training part must have all classes.",
    )
    search: str = parameter(
        default="grid",
        kind="str",
        doc="""
        "grid": all cells. "nested": the grid, then finer ones around the best. "two-line": the best linear C, then a
        line of cells (rbf only; KCSL04). "halving": all cells on the first fold, the better half on the next.
        "racing": cells are abandoned only when they cannot beat the best any more; finds the grid's best.
        """,
    )
    scoring: Any = parameter(
        default=None,
        kind="str, callable, list, tuple, dict or None",
        doc="""
        As in GridSearchCV; None means accuracy. Callables get a classifier that has ``predict``,
        ``decision_function`` and ``classes_`` for the rows held out.
        """,
    )
    refit: Any = parameter(
        default=True,
        kind="bool, str or callable",
        doc="""
        As in GridSearchCV: whether to train on all rows with the best cell; with several metrics the name of the one
        that decides; or a function of ``cv_results_`` that returns an index.
        """,
    )
    n_jobs: int | None = parameter(
        default=None,
        kind="int or None",
        doc="""
        None: the threads of this process share each gamma. Else units of a gamma and a fold go through joblib. Within
        ``joblib.parallel_config("dask")`` or "ray" they always do, and units of dead workers are repeated.
        """,
    )
    class_weight: Any = parameter(
        default=None,
        kind='dict, "balanced" or None',
        doc='Factors on C by class; "balanced" weights are those of the rows that a fold trains on.',
    )
    max_time: float | None = parameter(
        default=None,
        kind="float or None",
        doc="Seconds after which the search ends with the cells that it has; the refit of the best one follows.",
    )
    verbose: bool | int = parameter(
        default=False, kind="bool or int", doc="Show a line of progress on stderr, with the time left."
    )
    on_progress: Callable[[Progress], bool | None] | None = parameter(
        default=None,
        kind="callable or None",
        doc="Called at first and then about every 50 ms with a ``Progress``; returning True ends the search.",
    )
    on_interrupt: str = parameter(
        default="raise",
        kind='{"raise", "keep"}',
        doc="""
        On Ctrl-C the results of the finished cells are set; then KeyboardInterrupt is raised ("raise"), or the best of
        them is trained on all rows with a warning ("keep").
        """,
    )
    resume: Any = parameter(
        default=None, kind="path or None", doc="A directory for the results of units, from which a search resumes."
    )
    per_pair: bool = parameter(
        default=False,
        kind="bool",
        doc="""
        Whether each pair of classes has its own cell, by a search of its own; for "ovo" and "dag". Then scores are
        means over the pairs, and ``best_estimator_`` is a ``PerPairSVC``.
        """,
    )
    random_state: Any = parameter(default=None, kind="int, RandomState or None", doc="For searches that draw.")

    @document_fit("SVCCV", scores="They are also passed to scorers that take weights, for the rows held out.")
    def fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None, groups: ArrayLike | None = None
    ) -> Self:
        """Choose C and gamma, and train with them on all rows."""
        with deferred(keep=self.on_interrupt == "keep") as waiting:
            with old_state_unless_done(self):
                scorers, multimetric = read_scorers(self.scoring, self.refit)
                Cs, gammas = self._read_grid()
                problem, labels = self._problem(X, y, sample_weight, groups, scorers)
                began = time.perf_counter()
                results, error, reason = self._search(problem, Cs, gammas)
                attributes = self._attributes(problem, results, multimetric=multimetric)
                attributes["search_seconds_"] = time.perf_counter() - began
                attributes["stop_reason_"] = reason or "finished"
                if error is None or self.on_interrupt == "keep":
                    waiting.again()
                    model, error = self._refit(problem, labels, attributes.get("best_params_"), results)
                    attributes |= model
            for name in ("best_params_", "best_score_", "best_index_", "best_estimator_", "refit_time_"):
                self.__dict__.pop(name, None)  # of an earlier fit
            for name in ("certificate_", "n_iter_", "pair_selection_"):
                self.__dict__.pop(name, None)
            self.__dict__.update(attributes)
            if error is not None and self.on_interrupt == "raise":
                raise error
            if reason:
                warnings.warn(
                    f"The search ended early ({reason}) with {int((~results.stopped).sum())} of {results.stopped.size} "
                    "cells; raise max_time, or set resume to a directory to continue from there.",
                    ConvergenceWarning,
                    stacklevel=2,
                )
        return self

    def forecast(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None, groups: ArrayLike | None = None
    ) -> Forecast:
        """Estimate the seconds and the memory of ``fit`` as a grid in this process, from the same grid on few rows.

        Parameters are those of ``fit``, which leaves the estimator unchanged. Expect an error of a factor of two.
        """
        other = type(self)(**self.get_params(deep=False))
        Cs, gammas = other._read_grid()
        problem, _ = other._problem(X, y, sample_weight, groups, read_scorers(self.scoring, self.refit)[0])
        return forecast(problem, Cs, gammas, local(evaluate_gamma))

    def report(self, path: Any, X: ArrayLike | None = None, y: ArrayLike | None = None) -> None:
        """Write the results of the search as one HTML file; with X and y also the confusions of rows left out."""
        from multimargin.model_selection.html_report import write_report

        check_is_fitted(self)
        write_report(self, path, X, y)

    def _read_grid(self) -> tuple[FloatArray, FloatArray]:
        """Check the parameters that need no data."""
        check_control(self._svc_params(1.0, 1.0))
        check.check_flag("per_pair", self.per_pair)
        if not isinstance(self.search, str):
            raise TypeError(f"search={self.search!r} is not a string; choose 'grid' or another search by its name.")
        Cs = check_costs(DEFAULT_CS if self.Cs is None else self.Cs)
        return Cs, read_gammas(self.gammas, DEFAULT_GAMMAS, self.kernel, with_gamma=has_gamma(self.kernel))

    def _svc_params(self, C: float, gamma: float) -> dict[str, Any]:
        """Return the parameters of a single SVC."""
        own = {name: value for name, value in self.get_params(deep=False).items() if name not in OWN}
        params: dict[str, Any] = SVC().get_params(deep=False) | own | {"C": C, "gamma": gamma}
        return params

    def _problem(
        self, X: Any, y: Any, sample_weight: Any, groups: Any, scorers: dict[str, Any]
    ) -> tuple[SelectionProblem, np.ndarray]:
        """Check the data and split them."""
        if self._precomputed:
            refuse_sparse_gram(X)
        checked_X, labels = validate_data(self, X, y, **DATA)
        check_classification_targets(labels)
        whole = TrainingSet.from_arrays(
            checked_X, labels, C=1.0, class_weight=self.class_weight, sample_weight=sample_weight
        )
        weight = None if sample_weight is None else np.zeros(len(labels))
        if weight is not None:
            weight[whole.rows] = whole.weight
        splits = check_cv(self.cv, labels, classifier=True).split(checked_X, labels, groups)
        folds = tuple((np.asarray(train), np.asarray(test)) for train, test in splits)
        params = self._svc_params(1.0, 1.0) | {"verbose": False, "max_time": None, "on_progress": None}
        params = {name: value for name, value in params.items() if name not in ("C", "gamma")}
        codes = np.searchsorted(whole.classes, labels)
        return SelectionProblem(checked_X, codes, whole.classes, weight, params, folds, scorers), labels

    def _search(
        self, problem: SelectionProblem, Cs: FloatArray, gammas: FloatArray
    ) -> tuple[SelectionResults, BaseException | None, str]:
        """Return the results, the Ctrl-C that ended the search, and why it did not go to its end, if it did not."""
        plain = self.search == "grid" and self.n_jobs is None and self.resume is None and not self.per_pair
        if not plain or leaves_this_machine():
            return searching.run(self, problem, Cs, gammas)
        problem.workplace.check_folds()  # before the long work
        units: list[UnitResult] = []
        error: BaseException | None = None
        reason = ""
        with search_line(int(self.verbose), f"{self.multi_class} grid") as show:
            monitor = SearchMonitor(len(gammas), self.max_time, self.on_progress, show)
            monitored = bool(self.verbose) or self.max_time is not None or self.on_progress is not None
            for gamma in gammas.tolist():
                try:
                    folds = range(len(problem.folds))
                    units += evaluate_gamma(problem, gamma, folds, Cs, stop=monitor.stop if monitored else None)
                except KeyboardInterrupt as interrupt:
                    units += getattr(interrupt, "units", [])
                    error, reason = interrupt, "interrupted"
                    break
                if not monitor.part_done():
                    break
        results = SelectionResults.of_grid(Cs, gammas, len(problem.folds), problem.scorers, units)
        return results, error, reason or monitor.reason

    def _attributes(self, problem: SelectionProblem, results: SelectionResults, *, multimetric: bool) -> dict[str, Any]:
        cv_results = results.to_cv_results()
        attributes: dict[str, Any] = {
            "cv_results_": cv_results,
            "Cs_": results.Cs,
            "gammas_": results.gammas,
            "scores_": results.scores,
            "stopped_": results.stopped,
            "n_splits_": len(problem.folds),
            "classes_": problem.classes,
            "multimetric_": multimetric,
            "scorer_": problem.scorers if multimetric else problem.scorers["score"],
        }
        attributes |= results.own_attributes()
        return attributes | best_cell(cv_results, self.refit, problem.scorers, multimetric=multimetric)

    def _refit(
        self,
        problem: SelectionProblem,
        labels: np.ndarray,
        chosen: dict[str, float] | None,
        results: SelectionResults,
    ) -> tuple[dict[str, Any], BaseException | None]:
        """Train on all rows with the chosen cell, or with that of each pair; returns the Ctrl-C that ended it, too."""
        if chosen is None or (isinstance(self.refit, bool | np.bool_) and not self.refit):
            return {}, None
        params = self._svc_params(**chosen) | {"verbose": False, "max_time": None, "on_progress": None}
        began = time.perf_counter()
        model, error = results.make_model(SVC(**params)), None
        try:
            model.fit(problem.X, labels, sample_weight=problem.sample_weight)
        except KeyboardInterrupt as interrupt:  # the search is done, and its results are kept
            error = interrupt
            if not hasattr(model, "certificate_"):
                return {}, error
        if hasattr(self, "feature_names_in_"):
            model.feature_names_in_ = self.feature_names_in_
        seconds = time.perf_counter() - began
        attributes = {"best_estimator_": model, "refit_time_": seconds}
        return attributes | {name: getattr(model, name) for name in ("certificate_", "n_iter_")}, error

    def _refits(self) -> bool:
        """Whether there is a model; otherwise raises an error that explains why not."""
        if isinstance(self.refit, bool | np.bool_) and not self.refit:
            raise AttributeError(
                f"This {type(self).__name__} has refit=False and no model; fit it with refit=True, or train "
                "SVC(**search.best_params_)."
            )
        return True

    @available_if(_refits)
    def predict(self, X: ArrayLike) -> np.ndarray:
        """Return the class of each row of X by ``best_estimator_``, shape (n_samples,)."""
        check_is_fitted(self, "best_estimator_")
        predicted: np.ndarray = self.best_estimator_.predict(X)
        return predicted

    @available_if(_refits)
    def decision_function(self, X: ArrayLike) -> np.ndarray:
        """Return the scores of ``best_estimator_``, as ``SVC.decision_function``."""
        check_is_fitted(self, "best_estimator_")
        decision: np.ndarray = self.best_estimator_.decision_function(X)
        return decision

    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return the score of ``best_estimator_`` by the metric that chose it."""
        check_is_fitted(self, "best_estimator_")
        scorer = self.scorer_[self.refit] if self.multimetric_ and isinstance(self.refit, str) else self.scorer_
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        if scorer is None or isinstance(scorer, dict):
            return float(self.best_estimator_.score(X, y, **weights))
        return float(scorer(self.best_estimator_, X, y, **weights))
