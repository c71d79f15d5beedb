"""An exact bias by coordinate steps: rounds of the proximal point method on b, as in proximal_bias.py for kernels.

For data with so many features that Newton's equations are large. A round solves the machine with the kernel x'z + rho
and targets t - m(b) by coordinate steps from where the last one ended, and then b moves by rho sum_i beta_i.
See bias_step.py.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from multimargin._core import LinearData
from multimargin._typing import DataMatrix, FloatArray
from multimargin.base.matrices import is_sparse
from multimargin.problems.problem import DualProblem
from multimargin.problems.zero_sums import imbalance
from multimargin.solvers.bias_step import FIRST_RHO, FIRST_TOL, TOL_FACTOR, BiasStep, growth_of_rho
from multimargin.solvers.core import SolverState
from multimargin.solvers.linear import core as linear_core
from multimargin.solvers.linear.coordinate import Descent
from multimargin.solvers.linear.core import LinearOptions
from multimargin.solvers.linear.types import Clock
from multimargin.solvers.monitor import FitMonitor, Watch
from multimargin.solvers.report import StopReason

LATER_FACTOR, LEAST_TOL = 0.5, 1e-3  # of the tol of rounds beyond tol; the last as a share of it
# b has arrived when it went no further than this share of tol.
SHIFT_SHARE = 0.1
MAX_ROUNDS = 60


@dataclass
class _Round:
    """Where the rounds are."""

    amounts: FloatArray
    bias: FloatArray
    rho: float
    tol: float
    size: float = np.inf  # the largest sum
    passes: int = 0
    cost: float = 0.0
    clock: Clock = field(default_factory=Clock)


def descend_with_bias(
    problem: DualProblem,
    options: LinearOptions,
    start: tuple[FloatArray, FloatArray],
    watch: Watch[FloatArray] | None,
    data: LinearData,
) -> Descent:
    """Solve by rounds of coordinate steps within the limits of ``options``, which hold for all rounds together.

    Given    the machine's dual variables and biases to start from.
    Returns  dual variables whose sums are small, not zero, and b.
    """
    table = problem.machine.table(problem.n_classes)
    loose = FIRST_TOL * float(np.abs(table.target).max())
    step = BiasStep(problem)
    now = _Round(start[0], start[1], FIRST_RHO * _mean_square(problem.data.X), max(options.tol, loose))
    monitor: FitMonitor[SolverState] = FitMonitor(watch).map(lambda state: state.amounts)
    for _ in range(MAX_ROUNDS):
        left = _left(options, now)
        if isinstance(left, StopReason):
            return _found(now, left, None)
        inner = step.inner_problem(now.bias, now.rho)
        state = SolverState(now.amounts, None, problem.n_classes)
        result = linear_core.solve_linear(inner, left, state, monitor, data)
        now.amounts, report = result.amounts, result.report
        now.passes, now.cost = now.passes + report.passes, now.cost + report.cost
        if report.stop_reason is not StopReason.CONVERGED:
            return _found(now, report.stop_reason, result.error)
        sums, _ = imbalance(problem, now.amounts)
        now.bias = step.next_bias(now.bias, now.rho, sums)
        size = float(np.abs(sums).max())
        if now.tol <= options.tol and now.rho * size <= SHIFT_SHARE * options.tol:
            return _found(now, StopReason.CONVERGED, None)
        _adapt(now, size, options.tol)
    return _found(now, StopReason.STALLED, None)


def _adapt(now: _Round, size: float, tol: float) -> None:
    now.rho *= growth_of_rho(size, now.size) if now.size > 0 else 1.0
    # What a round leaves undone moves its sums, and b with them: where b goes on moving the next is more exact.
    now.size = size
    now.tol = max(tol, TOL_FACTOR * now.tol) if now.tol > tol else max(LEAST_TOL * tol, LATER_FACTOR * now.tol)


def _left(options: LinearOptions, now: _Round) -> LinearOptions | StopReason:
    passes = options.max_passes if options.max_passes < 0 else options.max_passes - now.passes
    cost, seconds = options.max_cost - now.cost, options.max_time - now.clock.spent
    if options.max_passes >= 0 and passes <= 0 and now.passes:
        return StopReason.MAX_ITER
    if cost <= 0:
        return StopReason.UNFINISHED
    if seconds <= 0 and now.passes:
        return StopReason.MAX_TIME
    return replace(options, tol=now.tol, max_passes=passes, max_cost=cost, max_time=max(seconds, 1e-9))


def _found(now: _Round, reason: StopReason, error: BaseException | None) -> Descent:
    return Descent(now.amounts, now.passes, reason, error, bias=now.bias)


def _mean_square(X: DataMatrix) -> float:
    squares = X.multiply(X).sum() if is_sparse(X) else np.einsum("ij,ij->", X, X, dtype=np.float64)
    return max(float(squares) / int(X.shape[0]), 1e-300)
