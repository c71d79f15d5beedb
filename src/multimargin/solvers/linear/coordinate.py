"""The work that the C++ core does for linear machines: coordinate steps within a budget, and Newton's method by column.

Coordinate steps come first, where the bias is none or an offset of the kernel. What they do not finish goes to Newton's
method: here, where each column of scores is a binary problem of its own, else to newton.py.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from multimargin._core import LinearData
from multimargin._typing import FloatArray
from multimargin.base.resources import n_threads
from multimargin.problems.binary_parts import BinaryParts
from multimargin.problems.problem import Bias, DualProblem
from multimargin.solvers.core import SolverState
from multimargin.solvers.linear import core as linear_core
from multimargin.solvers.linear.core import (
    BinarySetting,
    LinearBatch,
    LinearOptions,
    NewtonStart,
    solve_linear_binary,
    solve_newton_binary,
)
from multimargin.solvers.monitor import FitMonitor, Watch
from multimargin.solvers.report import StopReason

# Newton's method takes about so many passes over scores and variables; a descent that needs more is given up.
NEWTON_STEPS = 3
COUPLED = 9  # times as many where the columns of scores depend on each other
PRODUCTS_A_STEP = 4
WORK_ON_A_VARIABLE = 60


@dataclass(frozen=True, eq=False)
class Descent:
    """Where it ended: dual variables, passes or steps, why; and an exception, if one ended it.

    Of binary problems the variables are by column; also which of them are unfinished, and from Newton's method their
    biases and widths.
    """

    amounts: FloatArray
    passes: int
    stop_reason: StopReason
    error: BaseException | None
    unfinished: tuple[int, ...] = ()
    bias: FloatArray | None = None
    width: float = 1.0


def budget(problem: DualProblem, n_entries: int, n_columns: int, *, coupled: bool) -> float:
    """Return the multiply-adds that Newton's method would need for all columns of scores, by a rough count."""
    variables = problem.n_examples * (1 if n_columns == 1 else problem.n_components)
    return (COUPLED if coupled else 1) * budget_of_entries(n_entries * n_columns, variables)


def budget_of_entries(n_entries: float, n_variables: int) -> float:
    """The same from what a pass over scores multiplies, and the dual variables."""
    return float(NEWTON_STEPS * (PRODUCTS_A_STEP * n_entries + WORK_ON_A_VARIABLE * n_variables))


def descend(
    problem: DualProblem,
    separated: BinaryParts | None,
    options: LinearOptions,
    start: FloatArray,
    watch: Watch[FloatArray] | None,
    data: LinearData,
) -> Descent:
    """Solve by steps on one example after the other.

    Solves   the dual of ``problem``, whose bias is none or an offset of its linear kernel.
    See      core.py.
    """
    if separated is not None:
        starts = separated.split(start)
        found_parts: FitMonitor[list[FloatArray | None]] = FitMonitor(watch).map(
            lambda found: _joined(separated, starts, range(len(starts)), found)
        )
        batch = solve_linear_binary(
            _setting(problem, data), separated.parts, _own(options, separated), starts, found_parts
        )
        return _found(separated, batch)

    state = SolverState(start, None, problem.n_classes)
    monitor: FitMonitor[SolverState] = FitMonitor(watch).map(lambda state: state.amounts)
    result = linear_core.solve_linear(problem, options, state, monitor, data)
    return Descent(result.amounts, result.report.passes, result.report.stop_reason, result.error)


def newton_by_column(
    separated: BinaryParts,
    options: LinearOptions,
    start: FloatArray,
    own: dict[int, NewtonStart],
    watch: Watch[FloatArray] | None,
    data: LinearData,
) -> Descent:
    """Solve the columns that have a start of their own by Newton's method; the others stay as they are."""
    parts, wanted = separated.split(start), tuple(own)
    monitor: FitMonitor[list[FloatArray | None]] = FitMonitor(watch).map(
        lambda found: _joined(separated, parts, wanted, found)
    )
    batch = solve_newton_binary(
        _setting(separated.problem, data),
        [separated.parts[c] for c in wanted],
        _own(options, separated),
        list(own.values()),
        monitor,
    )
    for c, part in zip(wanted, batch.results, strict=True):
        parts[c] = part.amounts
    found = _found(separated, batch)
    bias = np.array([part.weights[-1] for part in batch.results])
    return replace(
        found,
        amounts=separated.join(parts),
        bias=bias if separated.problem.bias is Bias.EXACT else None,
        width=min(part.report.width for part in batch.results),
    )


def _setting(problem: DualProblem, data: LinearData) -> BinarySetting:
    return BinarySetting(data, problem.loss, problem.kernel.offset, problem.bias is Bias.EXACT)


def _own(options: LinearOptions, separated: BinaryParts) -> LinearOptions:
    return replace(options, tol=options.tol / separated.violations, n_threads=n_threads())


def _found(separated: BinaryParts, batch: LinearBatch) -> Descent:
    reasons = [part.report.stop_reason for part in batch.results]
    unfinished = tuple(c for c, reason in enumerate(reasons) if reason is not StopReason.CONVERGED)
    whole = len(batch.results) == len(separated.parts)
    return Descent(
        separated.join([part.amounts for part in batch.results]) if whole else np.empty((0, 0)),
        max(part.report.passes for part in batch.results),
        reasons[unfinished[0]] if unfinished else StopReason.CONVERGED,
        batch.error,
        unfinished,
    )


def _joined(
    separated: BinaryParts, parts: list[FloatArray], wanted: tuple[int, ...] | range, found: list[FloatArray | None]
) -> FloatArray:
    """Return the dual variables by column while some of the columns are solved; the others are at their start."""
    now = list(parts)
    for c, own in zip(wanted, found, strict=True):
        now[c] = parts[c] if own is None else own
    return separated.join(now)
