"""ASVM and LSVM for LinearSVC: two classes, squared hinge loss, a regularised bias (KCSL04 (5.1))."""

from __future__ import annotations

import numpy as np

from multimargin._typing import FloatArray
from multimargin.problems.coupling import coefficients
from multimargin.problems.machines import MACHINES
from multimargin.problems.problem import DualProblem, Loss
from multimargin.solvers.certificate import evaluate
from multimargin.solvers.core import SolverState
from multimargin.solvers.linear.asvm import solve_asvm
from multimargin.solvers.linear.lsvm import solve_lsvm
from multimargin.solvers.linear.squared_hinge import SquaredHinge
from multimargin.solvers.linear.types import LinearLimits, LinearPoint, LinearSolution
from multimargin.solvers.monitor import FitMonitor, Watch
from multimargin.solvers.options import SolverOptions

METHODS = {"asvm": solve_asvm, "lsvm": solve_lsvm}


def check_squared(name: str, problem: DualProblem) -> None:
    """Refuse what these solvers are not for."""
    binary = problem.n_classes == 2 and problem.machine in (MACHINES["ova"], MACHINES["ww"])
    if not binary or problem.loss is not Loss.SQUARED_HINGE or problem.kernel.offset != 1.0:
        raise ValueError(
            f"solver={name!r} is for two classes (multi_class='ova' or 'ww') with loss='squared_hinge', "
            "bias='regularized' and intercept_scaling=1; use solver='auto' for anything else."
        )


def solve_squared(
    name: str, problem: DualProblem, limits: LinearLimits, start: SolverState | None, watch: Watch[LinearPoint] | None
) -> LinearSolution:
    """Solve by the method of that name, and see the result as the machine's.

    "ww" of two classes has twice the violations of the binary machine, and half its C.
    """
    ww = problem.machine is MACHINES["ww"]
    X = problem.data.X[problem.data.rows]
    statement = SquaredHinge.of(X, 2.0 * problem.data.y - 1.0, (2.0 if ww else 1.0) * problem.data.C)
    options = SolverOptions(tol=limits.tol / (2.0 if ww else 1.0), max_iter=limits.max_iter, max_time=limits.max_time)

    def point_of(amounts: FloatArray) -> LinearPoint:
        own = np.repeat(amounts[:, None], problem.n_components, axis=1)
        beta = coefficients(problem.machine, own, problem.data.y, 2)
        weights = np.asarray(X.T @ beta, dtype=np.float64)
        scores = np.asarray(X @ weights) + problem.kernel.offset * beta.sum(axis=0)
        return LinearPoint(SolverState(own, scores, 2), weights, evaluate(problem, own, scores))

    seed = None if start is None else start.amounts[:, 0]
    found = METHODS[name](statement, options, seed, FitMonitor(watch).map(point_of))
    return LinearSolution(point_of(found.amounts), found.report, found.error, name)
