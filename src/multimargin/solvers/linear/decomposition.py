"""Decomposition for LinearSVC, q variables at a time: two classes, hinge loss, an exact bias (KCSL04 section 4)."""

from __future__ import annotations

import sys
import time

import numpy as np

from multimargin._typing import FloatArray
from multimargin.base.interrupts import poll
from multimargin.problems.coupling import coefficients
from multimargin.problems.machines import MACHINES
from multimargin.problems.problem import Bias, DualProblem, Loss
from multimargin.solvers.certificate import evaluate
from multimargin.solvers.core import SolverState
from multimargin.solvers.linear.types import LinearLimits, LinearPoint, LinearSolution
from multimargin.solvers.monitor import FitMonitor, Watch
from multimargin.solvers.reference.linear import LinearDual, linear_decomposition
from multimargin.solvers.report import Progress, StopReason, report_without_kernel

# Variables of a working set: LIBSVM's pairs, and the 30 with which KCSL04's Table 5.2 compares them.
SIZES = {"most-violating-pair": 2, "working-set": 30}
SECONDS_BETWEEN_CALLS = 0.05


def check_decomposition(name: str, problem: DualProblem) -> None:
    """Refuse what these solvers are not for."""
    binary = problem.n_classes == 2 and problem.machine in (MACHINES["ova"], MACHINES["ww"])
    if not binary or problem.loss is not Loss.HINGE or problem.bias is not Bias.EXACT:
        raise ValueError(
            f"solver={name!r} is for two classes (multi_class='ova' or 'ww') with loss='hinge' and bias='exact'; use "
            "solver='auto' for anything else."
        )


def solve_by_decomposition(
    name: str, problem: DualProblem, limits: LinearLimits, start: SolverState | None, watch: Watch[LinearPoint] | None
) -> LinearSolution:
    """Solve with working sets of the size that the name stands for, stopped at m - M <= tol, KCSL04 (C.1)."""
    run = _Run(problem, limits, watch)
    seed = None if start is None else start.amounts[:, 0]
    most = sys.maxsize if limits.max_iter < 0 else limits.max_iter
    try:
        found = linear_decomposition(run.dual, SIZES[name], limits.tol, most, seed, run.check)
    except (KeyboardInterrupt, Exception) as error:  # Ctrl-C, or a callback that fails
        return run.solution(StopReason.INTERRUPTED, name, error)
    at_limit = StopReason.MAX_ITER if found.n_steps >= most else StopReason.STALLED
    return run.solution(StopReason.CONVERGED if found.converged else run.ended or at_limit, name, None)


class _Run:
    """What is known of a run between its steps; ``beta`` is the array that the steps change."""

    def __init__(self, problem: DualProblem, limits: LinearLimits, watch: Watch[LinearPoint] | None) -> None:
        self.problem, self.limits, self.monitor = problem, limits, FitMonitor(watch)
        self.X = problem.data.X[problem.data.rows]
        self.dual = LinearDual.of(self.X, 2.0 * problem.data.y - 1.0, problem.data.C)
        self.beta = np.zeros(problem.n_examples)
        self.n_steps = 0
        self.ended: StopReason | None = None
        self.began = time.perf_counter()
        self.called = self.began - SECONDS_BETWEEN_CALLS  # the first check reports

    def check(self, n_steps: int, violation: float, beta: FloatArray) -> bool:
        self.n_steps, self.beta = n_steps, beta
        poll()
        now = time.perf_counter()
        if now - self.began > 0.95 * self.limits.max_time:
            self.ended = StopReason.MAX_TIME
        elif self.monitor.active and now - self.called >= SECONDS_BETWEEN_CALLS:
            self.called = now
            used = int(np.count_nonzero(beta))
            moment = Progress(n_steps, now - self.began, violation, np.nan, np.nan, len(beta), used, 0, 0)
            if self.monitor(moment, self.point):
                self.ended = StopReason.CALLBACK
        return self.ended is not None

    def point(self) -> LinearPoint:
        """The machine's own variables at beta, with the bias in the middle of what the conditions allow."""
        problem, slopes = self.problem, self.dual.slopes(self.beta)
        lowest, highest = self.dual.bounds()
        up, down = slopes[self.beta < highest], slopes[self.beta > lowest]
        b = 0.5 * float(up.max() + down.min()) if len(up) and len(down) else 0.0
        amounts = np.repeat(np.abs(self.beta)[:, None], problem.n_components, axis=1)
        coefs = coefficients(problem.machine, amounts, problem.data.y, 2)
        weights = np.asarray(self.X.T @ coefs, dtype=np.float64)
        bias = np.array([-b, b])
        scores = np.asarray(self.X @ weights)
        return LinearPoint(SolverState(amounts, scores, 2, bias), weights, evaluate(problem, amounts, scores, bias))

    def solution(self, reason: StopReason, name: str, error: BaseException | None) -> LinearSolution:
        point = self.point()
        numbers, seconds = point.numbers, time.perf_counter() - self.began
        report = report_without_kernel(reason, self.n_steps, seconds, numbers.violation, (numbers.dual, numbers.primal))
        return LinearSolution(point, report, error, name)
