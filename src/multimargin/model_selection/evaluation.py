"""Units of work of a search: one gamma and one fold, along all C, over kernels that are shared."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from multimargin import _core
from multimargin._typing import BoolArray, DataMatrix, FloatArray, IntArray
from multimargin.base.errors import shown_label
from multimargin.base.interrupts import allowed
from multimargin.fitting.spec import FitSpec, kernel_spec
from multimargin.kernels.store import KernelStore
from multimargin.model_selection.binary_paths import BinaryPaths, follows_binary_paths
from multimargin.model_selection.machine_paths import MachinePath, PairPath
from multimargin.model_selection.scoring import Point, Scorer, Stop, score_all
from multimargin.model_selection.shared_kernels import SharedKernels
from multimargin.problems.problem import Bias
from multimargin.problems.training_set import TrainingSet


@dataclass(frozen=True, eq=False)
class SelectionProblem:
    """Common data of all cells of a search; may be pickled and sent to other processes.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_samples, n_features)
    y : ndarray of shape (n_samples,)
        Codes of the classes.
    classes : ndarray of shape (n_classes,)
    sample_weight : ndarray of shape (n_samples,) or None
    params : dict
        SVC's parameters, without C and gamma.
    folds : tuple of (train, test)
        Rows of X.
    scorers : dict of name to scorer
        scikit-learn scorers; None stands for accuracy.
    """

    X: DataMatrix
    y: IntArray
    classes: np.ndarray
    sample_weight: FloatArray | None
    params: dict[str, Any]
    folds: tuple[tuple[IntArray, IntArray], ...]
    scorers: dict[str, Scorer]

    @cached_property
    def workplace(self) -> Workplace:
        """Data that are computed once in each process."""
        return Workplace(self)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "workplace"}


@dataclass(frozen=True, eq=False)
class UnitResult:
    """Results of one gamma and one fold; arrays of shape (n_Cs,).

    ``scores`` is nan where ``stopped``: there the work ended before. ``seconds`` are those of the solves, added up over
    threads.
    """

    gamma: float
    fold: int
    Cs: FloatArray
    scores: dict[str, FloatArray]
    n_support: IntArray
    n_iter: IntArray
    fit_seconds: FloatArray
    score_seconds: FloatArray
    converged: BoolArray
    stopped: BoolArray


def evaluate_unit(
    problem: SelectionProblem, gamma: float, fold: int, Cs: FloatArray, *, stop: Stop | None = None
) -> UnitResult:
    """Train for each C, ascending, on the fold's training part and score on its other part."""
    return evaluate_gamma(problem, gamma, [fold], Cs, stop=stop)[0]


def evaluate_gamma(
    problem: SelectionProblem, gamma: float, folds: Sequence[int], Cs: FloatArray, *, stop: Stop | None = None
) -> list[UnitResult]:
    """Evaluate several folds of one gamma together; the results do not depend on the others.

    ``stop`` is called about every 50 ms with a Progress and the share of the work that is done; True ends it, and what
    is not done is marked as stopped. KeyboardInterrupt has the units that were finished as its attribute ``units``.
    """
    work, Cs = problem.workplace, np.asarray(Cs, dtype=np.float64)
    units: list[UnitResult] = []
    try:
        if work.binary:
            units.extend(_score_all(problem, gamma, Cs, BinaryPaths(work, gamma, folds, Cs, stop).run()))
        else:
            for position, fold in enumerate(folds):
                path = (PairPath if work.spec(gamma).scheme else MachinePath)(work, gamma, fold, stop)
                points = path.along(Cs, (position, len(folds)))
                units.extend(_score_all(problem, gamma, Cs, [(fold, points)]))
    except KeyboardInterrupt as interrupt:
        done = _score_all(problem, gamma, Cs, getattr(interrupt, "points", []))
        interrupt.units = units + done  # type: ignore[attr-defined]
        raise
    return units


def _score_all(
    problem: SelectionProblem, gamma: float, Cs: FloatArray, paths: Sequence[tuple[int, list[Point]]]
) -> list[UnitResult]:
    return [_unit(problem, gamma, fold, Cs, points) for fold, points in paths]


def _unit(problem: SelectionProblem, gamma: float, fold: int, Cs: FloatArray, points: list[Point]) -> UnitResult:
    """Score the points of one fold; those that are missing were stopped."""
    n, done = len(Cs), len(points)
    began = time.perf_counter()
    decisions, held_out = [point.decision for point in points], problem.workplace.held_out(fold)
    with allowed():  # scorers are the caller's, and may take long
        found = score_all(problem.scorers, decisions, problem.classes, held_out)
    each = (time.perf_counter() - began) / max(1, done)
    missing = np.full(n - done, np.nan)
    scores = {name: np.concatenate([values, missing]) for name, values in found.items()}

    def along(name: str, dtype: Any) -> Any:
        return np.array([getattr(point, name) for point in points] + [0] * (n - done), dtype=dtype)

    return UnitResult(
        gamma=float(gamma),
        fold=int(fold),
        Cs=Cs,
        scores=scores,
        n_support=along("n_support", np.int64),
        n_iter=along("n_iter", np.int64),
        fit_seconds=along("fit_seconds", np.float64),
        score_seconds=np.array([point.score_seconds + each for point in points] + [0.0] * (n - done)),
        converged=along("converged", np.bool_),
        stopped=np.arange(n) >= done,
    )


class Workplace:
    """Rows sorted by class and fold, so that pairs of classes are contiguous, and everything that units share."""

    def __init__(self, problem: SelectionProblem) -> None:
        self.problem, self.params = problem, problem.params
        self.order = np.lexsort((_first_folds(problem), problem.y))  # a fold's rows of a class are contiguous, too
        given = self.params["kernel"] == "precomputed" if isinstance(self.params["kernel"], str) else False
        rows = problem.X[self.order]
        self.X = np.ascontiguousarray(rows[:, self.order]) if given else rows
        self.y = problem.y[self.order]
        n = len(self.y)
        self.weight = np.ones(n) if problem.sample_weight is None else problem.sample_weight[self.order]
        self.place = np.empty(n, dtype=np.int64)
        self.place[self.order] = np.arange(n)
        self._data: dict[int, TrainingSet] = {}
        self._spec = kernel_spec(self.params | {"C": 1.0, "gamma": 1.0}, self.data(0))
        self.binary = follows_binary_paths(self._spec, self.params)
        self.kernels = SharedKernels(self.X, self._spec.kernel, self.params["cache_size"], on_reading=self.binary)
        self.statements: dict[int, Any] = {}
        self.pool = _core.PathPool()

    @property
    def n_classes(self) -> int:
        return len(self.problem.classes)

    @property
    def scheme(self) -> str:
        return self._spec.scheme

    @property
    def needs_scores(self) -> bool:
        """Whether a scorer may call ``decision_function``."""
        return any(scorer is not None for scorer in self.problem.scorers.values())

    def spec(self, gamma: float) -> FitSpec:
        """Return the spec with this gamma."""
        kernel = self._spec.kernel
        return replace(self._spec, kernel=replace(kernel, gamma=gamma) if kernel.has_gamma else kernel)

    def store(self, gamma: float) -> KernelStore:
        """Return the store of the trained kernel: that of a regularised bias has an offset."""
        return self.kernels.at(gamma, 1.0 if self._spec.bias is Bias.REGULARIZED else 0.0)

    def data(self, fold: int) -> TrainingSet:
        """Return the training part of a fold at C = 1, as rows of the sorted X; class weights are those of the part."""
        if fold not in self._data:
            self._data[fold] = self.training_set(fold)
        return self._data[fold]

    def training_set(self, fold: int) -> TrainingSet:
        """Compute the result of ``data``."""
        train = self.place[self.problem.folds[fold][0]]
        weight = np.zeros(len(self.y))
        weight[train] = self.weight[train]
        present = np.bincount(self.y[train], weights=weight[train], minlength=self.n_classes) > 0
        if not present.all():
            missing = self.problem.classes[int(np.argmin(present))]
            raise ValueError(
                f"A training part of cv has no example of class {shown_label(missing)}; use stratified folds, fewer "
                "folds, or leave out classes with very few examples."
            )
        return TrainingSet.from_arrays(
            self.X, self.problem.classes[self.y], C=1.0, class_weight=self.params["class_weight"], sample_weight=weight
        )

    def check_folds(self) -> None:
        """Raise where a training part lacks a class."""
        for fold in range(len(self.problem.folds)):
            self.data(fold)

    def test_rows(self, fold: int) -> IntArray:
        """Return the rows of the sorted X that are held out, ascending."""
        return np.sort(self.place[self.problem.folds[fold][1]])

    def held_out(self, fold: int) -> tuple[DataMatrix, IntArray, FloatArray | None]:
        """Return X, class codes and weights of the rows that are held out, in the order of ``test_rows``."""
        test = self.order[self.test_rows(fold)]
        weight = self.problem.sample_weight
        rows = self.problem.X[test] if self.needs_scores else None
        return rows, self.problem.y[test], None if weight is None else weight[test]


def _first_folds(problem: SelectionProblem) -> IntArray:
    """Return for each row the first fold that holds it out; as many as there are folds where none does."""
    first = np.full(len(problem.y), len(problem.folds))
    for fold, (_, test) in reversed(list(enumerate(problem.folds))):
        first[test] = fold
    return first
