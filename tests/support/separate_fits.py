"""A problem and its units by separate fits of SVC: what every faster way must agree with. Workers import it."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import make_classification
from sklearn.model_selection import StratifiedKFold

from multimargin import SVC
from multimargin._typing import FloatArray, IntArray
from multimargin.model_selection.evaluation import UnitResult
from multimargin.model_selection.resume import ResumeDirectory
from multimargin.model_selection.search_table import SearchTable, UnitScores

CS = np.array([0.5, 2.0, 8.0])
GAMMAS = np.array([0.1, 0.5])


@dataclass(frozen=True, eq=False)
class Problem:
    """Stands in for a SelectionProblem."""

    X: Any
    y: IntArray
    classes: np.ndarray
    sample_weight: FloatArray | None
    params: dict[str, Any]
    folds: tuple[Any, ...]
    scorers: dict[str, Any]


def make_problem(n_samples: int = 120, n_folds: int = 3, **params: Any) -> Problem:
    """Return three noisy classes with folds."""
    X, y = make_classification(
        n_samples, 5, n_informative=4, n_redundant=0, n_classes=3, flip_y=0.02, class_sep=2.0, random_state=1
    )
    folds = tuple(StratifiedKFold(n_folds, shuffle=True, random_state=0).split(X, y))
    return Problem(X, y.astype(np.int64), np.array(["a", "b", "c"]), None, params, folds, {"score": None})


def evaluate_unit(problem: Any, gamma: float, fold: int, Cs: FloatArray) -> UnitScores:
    """Train and score each cell by itself."""
    train, test = problem.folds[fold]
    labels, weight = problem.classes[problem.y], problem.sample_weight
    models = [
        SVC(**problem.params, C=C, gamma=gamma).fit(
            problem.X[train], labels[train], None if weight is None else weight[train]
        )
        for C in Cs.tolist()
    ]
    scores = {}
    for name, scorer in problem.scorers.items():
        judge = scorer or (lambda model, X, y: model.score(X, y))
        scores[name] = np.array([judge(model, problem.X[test], labels[test]) for model in models])
    return UnitResult(
        gamma=gamma,
        fold=fold,
        Cs=Cs,
        scores=scores,
        n_support=np.array([len(model.support_) for model in models]),
        n_iter=np.array([model.n_iter_.sum() for model in models]),
        fit_seconds=np.full(len(Cs), 0.001),
        score_seconds=np.full(len(Cs), 0.0001),
        converged=np.array([model.fit_status_ == 0 for model in models]),
        stopped=np.zeros(len(Cs), dtype=np.bool_),
    )


def evaluate_gamma(problem: Any, gamma: float, folds: list[int], Cs: FloatArray) -> list[UnitScores]:
    """Evaluate all folds of a gamma."""
    return [evaluate_unit(problem, gamma, fold, Cs) for fold in folds]


def wait_to_be_killed(directory: str, problem: Any, gamma: float, fold: int, Cs: FloatArray) -> UnitScores:
    """The first unit writes the id of its process and waits; its second attempt is an ordinary one."""
    pid_file = Path(directory) / "pid"
    try:
        with pid_file.open("x") as file:
            file.write(f"{os.getpid()} {gamma} {fold}\n")
    except FileExistsError:
        with (Path(directory) / "done").open("a") as file:
            file.write(f"{gamma} {fold}\n")
        return evaluate_unit(problem, gamma, fold, Cs)
    time.sleep(60)
    raise AssertionError("the process was not killed")


def die(problem: Any, gamma: float, fold: int, Cs: FloatArray) -> UnitScores:
    """One unit that no worker survives."""
    if fold == 1:
        time.sleep(0.3)
        os._exit(1)
    return evaluate_unit(problem, gamma, fold, Cs)


def assert_same(table: SearchTable, expected: SearchTable) -> None:
    """Assert that two searches gave the same, but for the time they took."""
    for name in ("Cs", "gammas", "asked", "stopped", "n_support", "n_iter", "converged"):
        np.testing.assert_array_equal(getattr(table, name), getattr(expected, name), err_msg=name)
    np.testing.assert_array_equal(table.scores["score"], expected.scores["score"])


def open_directory(path: Path, problem: Problem) -> ResumeDirectory:
    """Return a directory for the results of a problem."""
    return ResumeDirectory.open(path, problem, UnitResult)


def refuse(*_: Any) -> Any:
    """Evaluate nothing."""
    raise AssertionError("this was computed before")
