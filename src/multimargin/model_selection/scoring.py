"""Scores of held-out rows: the decisions of a machine, evaluated by scikit-learn's scorers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from inspect import signature
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from multimargin._typing import FloatArray, IntArray
from multimargin.models.voting import dag_path, dag_scores, ovr_scores, vote
from multimargin.problems.schemes import DAG, pair_list
from multimargin.solvers.report import Progress

Scorer = Any  # of scikit-learn, or None for accuracy


@dataclass(frozen=True, eq=False)
class Decision:
    """Decisions of one machine: class codes, and ``decision_function`` if needed."""

    codes: IntArray
    scores: FloatArray


@dataclass(frozen=True, eq=False)
class Point:
    """A machine at one C: what it decides for the rows held out, and what it cost."""

    decision: Decision
    n_support: int
    n_iter: int
    fit_seconds: float
    score_seconds: float
    converged: bool


# Called with the progress and the share of the work that is done; True ends the work.
Stop = Callable[[Progress, float], bool]


def breaks_ties(n_classes: int, params: dict[str, Any]) -> bool:
    """Return whether tied votes go by the scores."""
    return bool(params["break_ties"] and params["decision_function_shape"] == "ovr" and n_classes > 2)


def votes_only(n_classes: int, params: dict[str, Any], scheme: str, *, detail: bool) -> bool:
    """Return whether votes decide and no scores are needed."""
    return scheme != DAG and not detail and not breaks_ties(n_classes, params)


def decide_pairs(D: FloatArray, n_classes: int, params: dict[str, Any], scheme: str, *, detail: bool) -> Decision:
    """Return the decision of a one-vs-one machine from the scores of its pairs, (n, n_pairs), as SVC's."""
    tied = breaks_ties(n_classes, params)
    combine = dag_scores if scheme == DAG else ovr_scores
    scores = combine(D, n_classes) if (tied or detail) and n_classes > 2 else -D[:, 0]
    codes = np.argmax(scores, axis=1) if tied else (dag_path if scheme == DAG else vote)(D, n_classes)
    shown = D if params["decision_function_shape"] == "ovo" and n_classes > 2 else scores
    return Decision(codes, shown)


def decide_scores(F: FloatArray) -> Decision:
    """Return the decision of a machine with one score for each class, (n, n_classes), as SVC's."""
    return Decision(F.argmax(axis=1), (F[:, 1] - F[:, 0]) / 2 if F.shape[1] == 2 else F)


def pair_scores(sums: Sequence[FloatArray], biases: FloatArray) -> FloatArray:
    """Return the scores of all pairs, (n_pairs, n_Cs, n_points), from each class's share in those it belongs to.

    ``sums`` has for each class (n_classes - 1, n_Cs, n_points) in LIBSVM's order of the others; ``biases`` is
    (n_pairs, n_Cs).
    """
    pairs = pair_list(len(sums))
    D = np.empty((len(pairs), *sums[0].shape[1:]))
    for p, (i, j) in enumerate(pairs):
        np.add(sums[i][j - 1], sums[j][i], out=D[p])
    D += biases[:, :, None]
    return D


class Decided(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier with precomputed decisions, passed to scikit-learn's scorers instead of a model."""

    def __init__(self, decision: Decision | None = None, classes: Any = None) -> None:
        self.decision = decision
        self.classes = classes

    def __sklearn_is_fitted__(self) -> bool:
        return True

    @property
    def classes_(self) -> np.ndarray:
        """The labels."""
        return np.asarray(self.classes)

    def predict(self, X: Any) -> np.ndarray:
        """Return the labels of the rows that were decided; X is ignored."""
        assert self.decision is not None
        labels: np.ndarray = self.classes_[self.decision.codes]
        return labels

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the scores of the rows that were decided; X is ignored."""
        assert self.decision is not None
        return self.decision.scores


def score_all(
    scorers: dict[str, Scorer],
    decisions: Sequence[Decision],
    classes: np.ndarray,
    rows: tuple[Any, IntArray, FloatArray | None],
) -> dict[str, FloatArray]:
    """Return the scores of decisions by each metric; ``rows`` are X, class codes and weights of the rows held out."""
    X, codes, weight = rows
    found: dict[str, FloatArray] = {}
    for name, scorer in scorers.items():
        if scorer is None:
            found[name] = accuracies(decisions, codes, weight)
            continue
        keywords = {} if weight is None or not takes_weights(scorer) else {"sample_weight": weight}
        values = [scorer(Decided(decision, classes), X, classes[codes], **keywords) for decision in decisions]
        found[name] = np.array(values, dtype=np.float64)
    return found


def accuracies(decisions: Sequence[Decision], codes: IntArray, weight: FloatArray | None) -> FloatArray:
    """Return the accuracy of each decision, vectorised because a search calls it thousands of times."""
    right = np.array([decision.codes for decision in decisions]).reshape(len(decisions), len(codes)) == codes
    if weight is None:
        return np.asarray(np.count_nonzero(right, axis=1) / len(codes))
    return np.asarray(np.average(right, axis=1, weights=weight))


def takes_weights(scorer: Scorer) -> bool:
    """Return whether a scorer takes sample weights; accuracy does."""
    if hasattr(scorer, "_accept_sample_weight"):
        return bool(scorer._accept_sample_weight())
    return scorer is None or "sample_weight" in signature(scorer).parameters
