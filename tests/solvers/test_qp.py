"""Every machine, loss, bias rule, kernel and solver against an independent quadratic programming solver."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, reject, settings

from multimargin.kernels.spec import KernelSpec
from multimargin.problems.problem import Bias, DualProblem, Loss
from multimargin.solvers.certificate import evaluate
from multimargin.solvers.core import Solution, solve
from multimargin.solvers.options import Precision, SolverChoice, SolverOptions
from multimargin.solvers.reference.algorithms import gram_matrix, objectives, violation
from multimargin.solvers.report import StopReason
from support.helpers import (
    Case,
    OracleError,
    cases,
    draw_data,
    each_bias,
    each_loss,
    each_machine,
    make_problem,
    solve_dual_densely,
    solvers_for,
)

TOL = 1e-8
STEPS = 100_000  # a nearly singular kernel matrix can need more; then only the bracket of the optimum is checked


def solve_to(problem: DualProblem, solver: SolverChoice, tol: float = TOL) -> Solution:
    options = SolverOptions(solver=solver, tol=tol, precision=Precision.FLOAT64, max_iter=STEPS)
    return solve(problem, options)


@each_machine
@each_loss
@each_bias
@settings(max_examples=5)
@given(case=cases())
def test_all_solvers_reach_the_optimum_of_clarabel(name: str, loss: Loss, bias: Bias, case: Case) -> None:
    problem = case.problem(name, loss, bias)
    try:
        dual, scores = solve_dual_densely(problem)
    except OracleError:  # a kernel matrix of low rank can be too much for it
        reject()
    for solver in solvers_for(name):
        solution = solve_to(problem, solver)
        assert solution.state.scores is not None
        reached = evaluate(problem, solution.state.amounts, solution.state.scores)
        assert reached.dual <= dual * (1 + 1e-8)
        assert reached.primal >= dual * (1 - 1e-8)
        if solution.report.stop_reason is StopReason.MAX_ITER:
            continue
        assert solution.report.stop_reason is StopReason.CONVERGED, solver
        assert violation(problem, solution.state.amounts) <= TOL + rounding(problem, solution)
        assert reached.dual == pytest.approx(dual, rel=1e-6)
        scale = max(1.0, float(np.abs(scores).max()))
        # Where our dual is the larger one clarabel's scores are off by up to this: |f - f*|^2 <= 2 k (D* - D).
        excess = np.sqrt(2 * float(np.abs(gram_matrix(problem)).max()) * max(0.0, reached.dual - dual))
        np.testing.assert_allclose(solution.state.scores, scores, atol=1e-5 * scale + excess, err_msg=solver.value)


def rounding(problem: DualProblem, solution: Solution) -> float:
    """The rounding error of a gradient in float64, a sum of kernel values times variables."""
    mass = float(solution.state.amounts.sum()) * float(np.abs(gram_matrix(problem)).max())
    return 10 * float(np.finfo(float).eps) * mass


@pytest.mark.parametrize("name", ["ww", "llw", "ats", "ova"])
@pytest.mark.parametrize("solver", [SolverChoice.SMO, SolverChoice.S2DO], ids=lambda choice: choice.value)
def test_indefinite_kernel_gives_a_kkt_point(name: str, solver: SolverChoice) -> None:
    X, y = draw_data(3, 15, 3)
    kernel = KernelSpec("sigmoid", gamma=0.8, coef0=-0.5)
    problem = make_problem(X, y, name, C=5.0, kernel=kernel)
    assert np.linalg.eigvalsh(gram_matrix(problem))[0] < -0.1
    solution = solve_to(problem, solver, tol=1e-6)
    assert solution.report.stop_reason is StopReason.CONVERGED
    assert violation(problem, solution.state.amounts) <= 1e-6
    assert objectives(problem, solution.state.amounts)[1] > 0.0
