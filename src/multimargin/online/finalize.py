"""From the online state to the certified optimum: SVC's solvers, started from what was learned."""

from __future__ import annotations

from typing import Any

import numpy as np

from multimargin._typing import DataMatrix, FloatArray, IntArray
from multimargin.base.matrices import dense
from multimargin.estimators.svc import SVC
from multimargin.fitting.driver import Fitted, run_fit
from multimargin.fitting.early_ends import warn_if_unfinished
from multimargin.fitting.pairs import PairState, kernel_fit
from multimargin.fitting.progress import FitTask
from multimargin.fitting.spec import prepare
from multimargin.online.learner import ONE_VS_ALL, Kept, Learner
from multimargin.online.stream import Stream
from multimargin.problems.schemes import pair_list, pair_problems
from multimargin.problems.training_set import TrainingSet
from multimargin.solvers.core import SolverState
from multimargin.solvers.separable import components_by_class

# Parameters that OnlineSVC and SVC share.
SHARED = ("C", "kernel", "degree", "coef0", "tol", "multi_class", "bias", "decision_function_shape", "break_ties")
# Rows of sparse data that are compared at once.
BLOCK = 1_000


Given = tuple[DataMatrix, np.ndarray, FloatArray]  # rows, labels, weights


def finish(estimator: Any, stream: Stream, given: Given | None) -> tuple[Fitted, Learner, IntArray]:
    """Solve from the online state, on given data or on the kept examples.

    Returns the fit, a learner at its solution, and the position of each row in order of arrival.
    """
    learner = stream.learner
    assert learner is not None
    kept = learner.kept()
    if given is None:
        rows, labels, weight = kept.X, stream.classes[kept.codes], kept.caps / estimator.C
        by_class, ids, places = None, kept.ids, np.arange(len(kept.ids))
    else:
        rows, labels, weight = given
        by_class, ids = estimator.class_weight, np.arange(len(labels))
        places = find_rows(kept, rows, np.asarray(np.searchsorted(stream.classes, labels)))
    if not np.array_equal(np.unique(labels), stream.classes):
        raise ValueError(
            f"finalize has the classes {np.unique(labels).tolist()}, the classes seen are {stream.classes.tolist()}; "
            "give X and y with examples of the same classes."
        )
    data = TrainingSet.from_arrays(rows, labels, C=estimator.C, class_weight=by_class, sample_weight=weight)
    return *_solve(estimator, learner, data, (places, ids)), ids


def _solve(
    estimator: Any, learner: Learner, data: TrainingSet, matching: tuple[IntArray, IntArray]
) -> tuple[Fitted, Learner]:
    """``matching``: the row of each kept example in the data or -1, and each row's position in order of arrival."""
    places, ids = matching
    shared = {name: getattr(estimator, name) for name in SHARED}
    cache: Any = max(estimator.cache_size, 64.0)
    params = SVC(**shared, gamma=learner.spec.kernel.gamma, cache_size=cache).get_params(deep=False)
    data, spec = prepare(params, data)
    kept = learner.kept()
    duals = np.zeros((len(data.y), kept.duals.shape[1]))
    positions = np.full(data.X.shape[0], -1)
    positions[data.rows] = np.arange(len(data.rows))
    found = np.flatnonzero(places >= 0)
    found = found[positions[places[found]] >= 0]
    duals[positions[places[found]]] = kept.duals[found]
    start = _start(learner, data, duals)
    task = FitTask(estimator, data.X, data.y)
    fitted = run_fit(kernel_fit(params, data, spec), params, start, task)
    warn_if_unfinished(fitted, data.X, spec)
    solution = _duals_of(learner, data, fitted.state)
    X = data.X[data.rows]
    rows = dense(X)
    return fitted, learner.restarted(Kept(rows, data.y, data.C, ids[data.rows], solution))


def _start(learner: Learner, data: TrainingSet, duals: FloatArray) -> PairState | SolverState:
    """The dual variables in the layout of SVC's solvers."""
    d = learner.n_classes
    if learner.spec.scheme == ONE_VS_ALL:
        places = components_by_class(data.y, d)
        amounts = np.zeros((len(data.y), d))
        np.put_along_axis(amounts, places, np.abs(duals), axis=1)
        return SolverState(amounts, None, d)
    if not learner.binary:
        return SolverState(duals, None, d)
    amounts_of_pairs = []
    for (i, j), problem in zip(pair_list(d), pair_problems(data), strict=True):
        parts = [np.abs(duals[problem.positive, j]), np.abs(duals[problem.negative, i])]
        amounts_of_pairs.append(np.concatenate(parts))
    return PairState(tuple(amounts_of_pairs))


def _duals_of(learner: Learner, data: TrainingSet, state: Any) -> FloatArray:
    """A solver's state in the learner's layout."""
    d, n = learner.n_classes, len(data.y)
    if learner.spec.scheme == ONE_VS_ALL:
        by_class = np.take_along_axis(state.amounts, components_by_class(data.y, d), axis=1)
        return np.where(data.y[:, None] == np.arange(d), by_class, -by_class)
    if not learner.binary:
        return np.asarray(state.amounts)
    duals = np.zeros((n, d))
    for (i, j), problem, amounts in zip(pair_list(d), pair_problems(data), state.amounts, strict=True):
        duals[problem.positive, j] = amounts[: problem.n_positive]
        duals[problem.negative, i] = -amounts[problem.n_positive :]
    return duals


def find_rows(kept: Kept, X: DataMatrix, codes: IntArray) -> IntArray:
    """Return the row of X that equals each kept example in features and class, -1 where there is none."""
    waiting: dict[tuple[bytes, int], list[int]] = {}
    for k in range(len(kept.codes) - 1, -1, -1):
        waiting.setdefault(((kept.X[k] + 0.0).tobytes(), int(kept.codes[k])), []).append(k)
    places = np.full(len(kept.codes), -1, dtype=np.int64)
    for first in range(0, X.shape[0], BLOCK):
        block = X[first : first + BLOCK]
        rows = dense(block) + 0.0
        for offset, row in enumerate(rows):
            found = waiting.get((row.tobytes(), int(codes[first + offset])))
            if found:
                places[found.pop()] = first + offset
    return places
