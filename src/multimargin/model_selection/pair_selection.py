"""One (C, gamma) for each pair of classes: KCSL04 section 6 and Table 6.1.

Every pair of classes is a problem of its own, validated on its own rows of the same folds. A ``PairModel`` has one
kernel for all pairs, so the result is an estimator of its own: binary machines that vote as one
versus one does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from multimargin._typing import FloatArray
from multimargin.base.errors import shown_label
from multimargin.base.interrupts import deferred
from multimargin.estimators.svc import DATA, SVC, old_state_unless_done
from multimargin.fitting.parameters import validate_data
from multimargin.model_selection.search_table import Evaluate, SearchTable, is_precomputed, restricted
from multimargin.model_selection.strategies import SearchOptions, run_search
from multimargin.models.voting import dag_path, dag_scores, ovr_scores, vote
from multimargin.problems.schemes import DAG, SCHEMES, pair_list
from multimargin.problems.training_set import TrainingSet
from multimargin.solvers.certificate import Certificate
from multimargin.solvers.certificate_table import worst_of
from multimargin.solvers.report import StopReason


@dataclass(frozen=True, eq=False)
class PairSelection:
    """What was chosen for each pair of classes.

    Attributes
    ----------
    classes : ndarray of shape (n_classes,)
    C, gamma, score : ndarray of shape (n_pairs,)
        Pairs in the order (0, 1), (0, 2), ..., (1, 2), ...; the score is the mean over the folds.
    tables : tuple of SearchTable
        The search of each pair.
    """

    classes: np.ndarray
    C: FloatArray
    gamma: FloatArray
    score: FloatArray
    tables: tuple[SearchTable, ...]

    def rows(self) -> list[dict[str, Any]]:
        """Return one dict for each pair: its two classes, C, gamma and score."""
        return [
            {"first": self.classes[i], "second": self.classes[j], "C": C, "gamma": gamma, "score": score}
            for (i, j), C, gamma, score in zip(
                pair_list(len(self.classes)), self.C.tolist(), self.gamma.tolist(), self.score.tolist(), strict=True
            )
        ]

    def mean_table(self, n_folds: int) -> SearchTable:
        """Return the means over the pairs that have a cell; sums of seconds, steps and support vectors."""
        Cs = np.unique(np.concatenate([table.Cs for table in self.tables]))
        gammas = np.unique(np.concatenate([table.gammas for table in self.tables]))
        wide = [_widened(table, Cs, gammas, n_folds) for table in self.tables]
        names = ("fit_seconds", "score_seconds", "n_support", "n_iter")
        return SearchTable(
            Cs=Cs,
            gammas=gammas,
            scores={metric: _mean([part["scores", metric] for part in wide]) for metric in self.tables[0].scores},
            asked=np.any([part["asked"] for part in wide], axis=0),
            stopped=np.any([part["stopped"] for part in wide], axis=0),
            **{name: np.nansum([part[name] for part in wide], axis=0) for name in names},
            converged=np.all([part["converged"] | np.isnan(part["n_iter"]) for part in wide], axis=0),
            details={},
        )

    def estimator(self, template: SVC) -> PerPairSVC:
        """Return the unfitted machine with these parameters, and all others from ``template``."""
        return PerPairSVC(C=self.C, gamma=self.gamma, estimator=template)


def _widened(table: SearchTable, Cs: FloatArray, gammas: FloatArray, n_folds: int) -> dict[Any, np.ndarray]:
    """Return the arrays of a table on a larger grid and more folds, nan or False where it has nothing."""
    rows, columns = np.searchsorted(gammas, table.gammas), np.searchsorted(Cs, table.Cs)
    arrays: dict[Any, np.ndarray] = {("scores", metric): values for metric, values in table.scores.items()}
    arrays |= {name: getattr(table, name) for name in ("asked", "stopped", "converged")}
    arrays |= {name: getattr(table, name) for name in ("fit_seconds", "score_seconds", "n_support", "n_iter")}
    wide = {}
    for name, values in arrays.items():
        shape = (len(gammas), len(Cs)) if values.ndim == 2 else (len(gammas), len(Cs), n_folds)
        wide[name] = np.full(shape, False if values.dtype == np.bool_ else np.nan)
        part = np.ix_(rows, columns) if values.ndim == 2 else np.ix_(rows, columns, np.arange(values.shape[2]))
        wide[name][part] = values
    return wide


def _mean(parts: list[np.ndarray]) -> FloatArray:
    """Return the mean of those that have a value; nan where none has."""
    known = np.sum(~np.isnan(parts), axis=0)
    return np.asarray(np.where(known > 0, np.nansum(parts, axis=0) / np.maximum(known, 1), np.nan))


def select_pairs(
    search: str,
    problem: Any,
    Cs: ArrayLike,
    gammas: ArrayLike,
    evaluate: Evaluate,
    options: SearchOptions | None = None,
) -> PairSelection:
    """Search for the best (C, gamma) of each pair of classes, on its own rows.

    Parameters are those of ``run_search``; the problem's multi_class must be "ovo" or "dag". Weights
    class_weight="balanced" are those of all rows.
    """
    scheme = problem.params.get("multi_class", "ovo")
    if not isinstance(scheme, str) or scheme not in SCHEMES:
        raise ValueError(
            f"per_pair=True with multi_class={scheme!r} does not exist: only multi_class='ovo' and 'dag' consist of "
            "pairs of classes; use per_pair=False."
        )
    if is_precomputed(problem):
        raise ValueError(
            "per_pair=True with kernel='precomputed' does not exist, as there is no gamma to choose; use "
            "per_pair=False, or give X and a kernel by name."
        )
    options = options or SearchOptions()
    metric = options.metric or str(next(iter(problem.scorers)))
    tables, chosen = [], []
    for part in pair_parts(problem):
        table = run_search(search, part, Cs, gammas, evaluate, options)
        C, gamma = table.best(metric)
        means = table.scores[metric].mean(axis=2)
        score = means[np.searchsorted(table.gammas, gamma), np.searchsorted(table.Cs, C)]
        tables.append(table)
        chosen.append((C, gamma, float(score)))
    best = np.array(chosen)
    return PairSelection(problem.classes, best[:, 0], best[:, 1], best[:, 2], tuple(tables))


def pair_parts(problem: Any) -> Iterator[Any]:
    """Yield the problem of each pair of classes: its rows, and its part of every fold that validates some of them."""
    params = dict(problem.params)
    if params.get("class_weight") is not None:
        params["class_weight"] = _weights_of(problem.params["class_weight"], problem)
    for i, j in pair_list(len(problem.classes)):
        part = restricted(problem, np.flatnonzero((problem.y == i) | (problem.y == j)))
        codes = (part.y == j).astype(np.int64)
        first, second = problem.classes[[i, j]].tolist()
        if not part.folds or any(len(np.unique(codes[train])) < 2 for train, _ in part.folds):
            raise ValueError(
                f"A training part of cv has no example of class {shown_label(first)} or {shown_label(second)}, or no "
                "part validates them; use stratified folds, fewer folds, or leave out classes with very few examples."
            )
        own = params
        if params.get("class_weight") is not None:
            own = params | {"class_weight": {label: params["class_weight"][label] for label in (first, second)}}
        yield replace(part, y=codes, classes=problem.classes[[i, j]], params=own)


def _weights_of(choice: Any, problem: Any) -> dict[Any, float]:
    data = TrainingSet.from_arrays(
        problem.X, problem.classes[problem.y], C=1.0, class_weight=choice, sample_weight=problem.sample_weight
    )
    return dict(zip(data.classes.tolist(), data.class_weight.tolist(), strict=True))


class PerPairSVC(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """One versus one with its own C and gamma for each pair of classes.

    Parameters
    ----------
    C, gamma : float or array-like of shape (n_pairs,)
        For the pairs (0, 1), (0, 2), ..., (1, 2), ... of the classes in sorted order.
    estimator : SVC, default=None
        All other parameters; its multi_class is "ovo" (votes) or "dag".

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    estimators_ : list of SVC
        The binary machine of each pair.
    certificate_ : Certificate
        That of the worst pair; ``certificate_.parts`` has all.
    n_iter_ : ndarray of shape (n_pairs,)
    n_features_in_ : int
    """

    def __init__(self, C: Any = 1.0, gamma: Any = "scale", estimator: SVC | None = None) -> None:
        self.C = C
        self.gamma = gamma
        self.estimator = estimator

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Train the machines of all pairs on X of shape (n_samples, n_features) and y of shape (n_samples,)."""
        template = SVC() if self.estimator is None else self.estimator
        if template.multi_class not in SCHEMES:
            raise ValueError(
                f"estimator has multi_class={template.multi_class!r}, which is not built from pairs of classes; "
                "use 'ovo' or 'dag'."
            )
        with deferred(keep=template.on_interrupt == "keep"):
            with old_state_unless_done(self):
                checked_X, labels = validate_data(self, X, y, **DATA)
                check_classification_targets(labels)
                data = TrainingSet.from_arrays(
                    checked_X, labels, C=1.0, class_weight=template.class_weight, sample_weight=sample_weight
                )
                pairs = pair_list(data.n_classes)
                Cs, gammas = _for_each("C", self.C, len(pairs)), _for_each("gamma", self.gamma, len(pairs))
                weights = dict(zip(data.classes.tolist(), data.class_weight.tolist(), strict=True))
                machines: list[SVC] = []
                for (i, j), chosen, C, gamma in zip(pairs, pair_rows(data), Cs, gammas, strict=True):
                    own = {c: weights[c] for c in data.classes[[i, j]].tolist()}
                    machine = clone(template).set_params(C=C, gamma=gamma)
                    machine.set_params(class_weight=None if template.class_weight is None else own)
                    # After a Ctrl-C that keeps what there is, the pairs that are left are not begun.
                    ended = any(each.certificate_.stop_reason == StopReason.INTERRUPTED.value for each in machines)
                    machine.set_params(max_time=1e-9 if ended else template.max_time)
                    rows = data.rows[chosen]
                    machine.fit(checked_X[rows], labels[rows], sample_weight=data.weight[chosen])
                    machines.append(machine.set_params(max_time=template.max_time))
            self.__dict__.update(
                {
                    "classes_": data.classes,
                    "estimators_": machines,
                    "certificate_": _worst([machine.certificate_ for machine in machines]),
                    "n_iter_": np.concatenate([machine.n_iter_ for machine in machines]),
                    "_scheme": template.multi_class,
                    "_break_ties": template.break_ties,
                }
            )
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def binary_parts(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Iterator[tuple[SVC, Any, np.ndarray, FloatArray]]:
        """Yield the machine of each pair with its rows, labels and weights of the data that all were trained on."""
        check_is_fitted(self)
        checked_X, labels = validate_data(self, X, y, reset=False, **DATA)
        data = TrainingSet.from_arrays(checked_X, labels, C=1.0, sample_weight=sample_weight)
        if not np.array_equal(data.classes, self.classes_):
            raise ValueError(
                f"y has the classes {data.classes.tolist()}, the model was trained on {self.classes_.tolist()}; give "
                "the training data."
            )
        for machine, chosen in zip(self.estimators_, pair_rows(data), strict=True):
            rows = data.rows[chosen]
            yield machine, checked_X[rows], labels[rows], data.weight[chosen]

    def pair_scores(self, X: ArrayLike) -> FloatArray:
        """Return the scores of all pairs, shape (n_samples, n_pairs); > 0 is a vote for the first class of a pair."""
        check_is_fitted(self)
        points = validate_data(self, X, reset=False, **DATA)
        # With two classes a positive score of SVC is for the second.
        return np.stack([-machine.decision_function(points) for machine in self.estimators_], axis=1)

    def decision_function(self, X: ArrayLike) -> FloatArray:
        """Return scores as SVC does: one per class, shape (n_samples, n_classes), or one for two classes."""
        D = self.pair_scores(X)
        n_classes = len(self.classes_)
        if n_classes == 2:
            return -D[:, 0]
        return (dag_scores if self._scheme == DAG else ovr_scores)(D, n_classes)

    def predict(self, X: ArrayLike) -> np.ndarray:
        """Return the class of each row, shape (n_samples,): by votes, or by the path through the DAG."""
        D = self.pair_scores(X)
        n_classes = len(self.classes_)
        if self._break_ties and n_classes > 2 and self._scheme != DAG:
            codes = np.argmax(ovr_scores(D, n_classes), axis=1)
        else:
            codes = (dag_path if self._scheme == DAG else vote)(D, n_classes)
        predicted: np.ndarray = self.classes_[codes]
        return predicted


def pair_rows(data: TrainingSet) -> list[np.ndarray]:
    """Return which examples are of either class, for each pair of classes."""
    return [np.flatnonzero((data.y == i) | (data.y == j)) for i, j in pair_list(data.n_classes)]


def _worst(certificates: list[Certificate]) -> Certificate:
    return worst_of([part for each in certificates for part in each.parts or (each,)])


def _for_each(name: str, value: Any, n_pairs: int) -> list[Any]:
    """Return one value for each pair."""
    if isinstance(value, str) or np.ndim(value) == 0:
        return [value] * n_pairs
    values = np.asarray(value, dtype=np.float64)
    if values.shape != (n_pairs,):
        raise ValueError(
            f"{name} has shape {values.shape}; give one number, or one for each of the {n_pairs} pairs of classes."
        )
    return list(values.tolist())
