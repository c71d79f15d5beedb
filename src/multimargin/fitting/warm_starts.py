"""Values of C, and starts made from other solutions: of another C on the same rows, or of other rows at the same C."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from multimargin._typing import FloatArray, IntArray
from multimargin.fitting.pairs import PairState
from multimargin.problems.schemes import pair_problems
from multimargin.problems.training_set import TrainingSet
from multimargin.solvers.core import SolverState

State = SolverState | PairState


def check_costs(Cs: Any) -> FloatArray:
    """Return the values in ascending order, each once."""
    wanted = "Cs must be a list of finite numbers > 0"
    try:
        values = np.asarray(Cs, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"Cs={Cs!r} are not numbers; {wanted}.") from error
    if values.ndim != 1 or not values.size:
        raise ValueError(f"Cs={Cs!r} is {'empty' if not values.size else 'not one list'}; {wanted}.")
    bad = values[~(np.isfinite(values) & (values > 0))]
    if len(bad):
        raise ValueError(f"Cs contains {bad[0]:g}; {wanted}, so leave it out.")
    return np.unique(values)


def scaled(state: State, ratio: float) -> State:
    """Return the start for C times ``ratio``: variables at their bounds stay there (KCSL04 section 3)."""
    if isinstance(state, PairState):
        return PairState(tuple(a * ratio for a in state.amounts))
    return replace(state, amounts=state.amounts * ratio, scores=None)


def extrapolated(before: State, state: State, share: float) -> State:
    """Return the start at a C that is ``share`` times as far from the last one as that is from the one before.

    While the face stays, a = A C + B (KCSL04 Theorem 3), so that this is the solution there.
    """
    if isinstance(before, PairState) and isinstance(state, PairState):
        pairs = zip(before.amounts, state.amounts, strict=True)
        return PairState(tuple(_further(a, b, share) for a, b in pairs))
    assert isinstance(before, SolverState)
    assert isinstance(state, SolverState)
    return replace(state, amounts=_further(before.amounts, state.amounts, share), scores=None)


def _further(before: FloatArray, now: FloatArray, share: float) -> FloatArray:
    return np.maximum(now + share * (now - before), 0.0)


def transferred(state: State, source: tuple[TrainingSet, IntArray], target: tuple[TrainingSet, IntArray]) -> State:
    """Return the start for other rows: the variables of rows that both have, zero for the others.

    ``source`` and ``target`` are training sets of the same classes, each with the numbers that its rows have in common.
    """
    size = 1 + int(max(source[1].max(), target[1].max()))
    if isinstance(state, PairState):
        places = zip(_pair_rows(*source), _pair_rows(*target), state.amounts, strict=True)
        return PairState(tuple(_moved(a, here, there, size) for here, there, a in places))
    amounts = _moved(state.amounts, source[1][source[0].rows], target[1][target[0].rows], size)
    return replace(state, amounts=amounts, scores=None)


def _pair_rows(data: TrainingSet, numbers: IntArray) -> list[IntArray]:
    return [numbers[problem.rows] for problem in pair_problems(data)]


def _moved(amounts: FloatArray, here: IntArray, there: IntArray, size: int) -> FloatArray:
    whole = np.zeros((size, *amounts.shape[1:]))
    whole[here] = amounts
    return np.asarray(whole[there])
