"""The first phase of a linear machine without an exact bias: coordinate steps on the dual, within a budget."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from multimargin import linear_core
from multimargin.linear_core import BinarySetting, LinearOptions, solve_linear_binary
from multimargin.machines import MACHINES, FloatArray
from multimargin.one_vs_all import join_classes, part_of_class
from multimargin.problem import DualProblem, Loss
from multimargin.resources import n_threads
from multimargin.schemes import BinaryProblem, class_problems
from multimargin.solver import Progress, SolverState, StopReason

# Newton's method takes about so many passes over scores and variables; a descent that needs more is given up.
NEWTON_STEPS = 30
PRODUCTS_A_STEP = 4
WORK_ON_A_VARIABLE = 60


@dataclass(frozen=True, eq=False)
class Descent:
    """Where the descent ended: dual variables of the problem, passes, why; and an exception, if one ended it."""

    amounts: FloatArray
    passes: int
    stop_reason: StopReason
    error: BaseException | None


# Told a moment and how to get the dual variables then; True stops.
DescentWatch = Callable[[Progress, Callable[[], FloatArray]], bool]


def budget(problem: DualProblem, n_entries: int, n_columns: int) -> float:
    """Return the multiply-adds that Newton's method would need for all columns of scores, by a rough count."""
    variables = problem.n_examples * (1 if n_columns == 1 else problem.n_components)
    return float(NEWTON_STEPS * (PRODUCTS_A_STEP * n_entries * n_columns + WORK_ON_A_VARIABLE * variables))


def descend(
    problem: DualProblem, options: LinearOptions, start: FloatArray | None, watch: DescentWatch | None
) -> Descent:
    """Solve by steps on one example after the other; one versus all, and two classes, as binary problems.

    Solves   the dual of ``problem``, whose bias is none or an offset of its linear kernel.
    See      linear_core.py.
    """
    if problem.machine is MACHINES["ova"]:
        return _by_class(problem, options, start, watch)
    if problem.n_classes == 2 and problem.machine is MACHINES["ww"]:
        return _two_classes(problem, options, start, watch)

    def told(progress: Progress, snapshot: Callable[[], SolverState]) -> bool:
        return watch is not None and watch(progress, lambda: snapshot().amounts)

    state = None if start is None else SolverState(start, None, problem.n_classes)
    result = linear_core.solve_linear(problem, options, state, None if watch is None else told)
    return Descent(result.amounts, result.report.passes, result.report.stop_reason, result.error)


def _by_class(
    problem: DualProblem, options: LinearOptions, start: FloatArray | None, watch: DescentWatch | None
) -> Descent:
    binaries = class_problems(problem.data)
    twice = len(binaries) == 2  # the second class is the first with the sign turned
    parts = binaries[1:] if twice else binaries
    starts = None if start is None else [part_of_class(problem, b, c, start) for c, b in enumerate(binaries)]

    def whole(found: list[FloatArray]) -> FloatArray:
        if twice:
            positive, negative = np.split(found[0], [binaries[1].n_positive])
            found = [np.concatenate([negative, positive]), found[0]]
        return join_classes(problem, binaries, found)

    return _batch(problem, parts, options, None if starts is None else starts[-len(parts) :], whole, watch)


def _two_classes(
    problem: DualProblem, options: LinearOptions, start: FloatArray | None, watch: DescentWatch | None
) -> Descent:
    """The machine "ww" of two classes, whose violations are twice as large."""
    binary = class_problems(problem.data)[1]
    order = np.concatenate([binary.positive, binary.negative])
    if problem.loss is Loss.SQUARED_HINGE:
        binary = replace(binary, C=2 * binary.C)

    def whole(found: list[FloatArray]) -> FloatArray:
        amounts = np.zeros((problem.n_examples, 1))
        amounts[order, 0] = found[0]
        return amounts

    starts = None if start is None else [np.ascontiguousarray(start[order, 0])]
    return _batch(problem, [binary], replace(options, tol=options.tol / 2), starts, whole, watch)


def _batch(
    problem: DualProblem,
    parts: list[BinaryProblem],
    options: LinearOptions,
    starts: list[FloatArray] | None,
    whole: Callable[[list[FloatArray]], FloatArray],
    watch: DescentWatch | None,
) -> Descent:
    def told(progress: Progress, snapshot: Callable[[], list[FloatArray | None]]) -> bool:
        def amounts() -> FloatArray:
            return whole([np.zeros(len(p.rows)) if a is None else a for a, p in zip(snapshot(), parts, strict=True)])

        return watch is not None and watch(progress, amounts)

    setting = BinarySetting(problem.data.X, problem.loss, problem.kernel.offset)
    own = replace(options, n_threads=n_threads())
    batch = solve_linear_binary(setting, parts, own, starts, None if watch is None else told)
    reasons = [part.report.stop_reason for part in batch.results]
    unfinished = [reason for reason in reasons if reason is not StopReason.CONVERGED]
    return Descent(
        whole([part.amounts for part in batch.results]),
        max(part.report.passes for part in batch.results),
        unfinished[0] if unfinished else StopReason.CONVERGED,
        batch.error,
    )
