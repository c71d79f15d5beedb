"""The C++ solvers against the NumPy reference: step by step where there are no ties, and at the optimum."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings

from multimargin._typing import FloatArray
from multimargin.kernels.spec import KernelSpec
from multimargin.problems.machines import MACHINES, Bound
from multimargin.problems.problem import Bias, DualProblem, Loss
from multimargin.solvers.core import SolverState, solve
from multimargin.solvers.options import Precision, SolverChoice, SolverOptions
from multimargin.solvers.reference.algorithms import (
    METHODS,
    densify,
    gradient,
    gram_matrix,
    objectives,
    pair_gain,
    solve_reference,
    violation,
    violations,
)
from support.helpers import Case, cases, draw_data, each_bias, each_loss, each_machine, make_problem, random_amounts

AIM = 0.9  # the core descends to this share of tol before it checks all examples again


def core_steps(
    problem: DualProblem, method: str, start: FloatArray | None = None, *, tol: float, max_iter: int = -1
) -> tuple[FloatArray, int]:
    options = SolverOptions(
        solver=SolverChoice(method),
        precision=Precision.FLOAT64,
        tol=tol,
        max_iter=max_iter,
        shrink_variables=False,
        shrink_examples=False,
    )
    state = None if start is None else SolverState(start, None, problem.n_classes)
    solution = solve(problem, options, state)
    return solution.state.amounts, solution.report.n_iter


def has_unique_amounts(problem: DualProblem) -> bool:
    return problem.machine.name not in ("ats", "atm", "rm")


def is_tied(values: FloatArray) -> bool:
    """Whether the two largest values are equal within rounding, so that either choice is right."""
    ordered = np.sort(np.asarray(values))[::-1]
    return len(ordered) > 1 and bool(ordered[0] - ordered[1] <= 1e-9 * abs(ordered[0]))


def choice_is_tied(problem: DualProblem, amounts: FloatArray, method: str) -> bool:
    """Whether another choice of variables would do as well at this point."""
    dual = densify(problem)
    a = dual.flatten(amounts)
    g = dual.gradient(a)
    if dual.simplex or method == "whole-example":
        by_example = [np.sort(g[dual.of_example(i)]) for i in range(problem.n_examples)]
        return is_tied(np.array(violations(dual, g, a))) or any(is_tied(each) for each in by_example)
    cap = dual.cap[dual.example]
    violating = np.where(a < cap, np.maximum(g, 0), 0) + np.where(a > 0, np.maximum(-g, 0), 0)
    if method == "smo":
        return is_tied(violating**2 / np.diag(dual.Q))
    first = int(np.argmax(violating))
    partners = [b for b in range(len(a)) if b != first and violating[b] > 0]
    gains = [pair_gain(g[[first, b]], dual.Q[[first, b]][:, [first, b]]) for b in partners]
    return is_tied(violating) or is_tied(np.array(gains))


@each_machine
@each_loss
@pytest.mark.parametrize("method", ["smo", "s2do", "whole-example"])
@settings(max_examples=8)
@given(case=cases(n=(4, 9), n_classes=(2, 4), log10_C=(-1, 1)))
def test_one_step_from_anywhere_is_the_same(name: str, loss: Loss, method: str, case: Case) -> None:
    problem = case.problem(name, loss, Bias.REGULARIZED)
    start = random_amounts(problem, np.random.default_rng(case.seed))
    assume(not choice_is_tied(problem, start, method))
    twin = solve_reference(problem, method, tol=1e-9, max_iter=1, start=start).amounts
    core, n_iter = core_steps(problem, method, start, tol=1e-9, max_iter=1)
    assert n_iter <= 1
    if method == "whole-example" and not has_unique_amounts(problem):
        assert objectives(problem, core)[1] == pytest.approx(objectives(problem, twin)[1], rel=1e-9)
    else:
        np.testing.assert_allclose(core, twin, atol=1e-9 * float(problem.data.C.max()))


# Not where ties between equal gradients, or variables that are not unique, part the ways
SAME_WAY = [("smo", name) for name in ("ww", "llw", "ats", "rm", "mmr", "ova")]
SAME_WAY += [("whole-example", name) for name in ("ww", "llw", "mmr", "ova")]


@pytest.mark.parametrize(("method", "name"), SAME_WAY)
@each_loss
@each_bias
def test_the_whole_way_is_the_same(method: str, name: str, loss: Loss, bias: Bias) -> None:
    X, y = draw_data(1, 8, 3)
    weight = np.random.default_rng(1).uniform(0.5, 2.0, 8)  # no two examples alike, so that nothing is tied
    problem = make_problem(X, y, name, C=3.0, loss=loss, bias=bias, weight=weight)
    twin = solve_reference(problem, method, tol=AIM * 1e-4)
    core, n_iter = core_steps(problem, method, tol=1e-4)
    assert twin.converged
    assert n_iter == twin.n_steps
    np.testing.assert_allclose(core, twin.amounts, atol=1e-9)


@each_machine
@each_loss
@each_bias
def test_all_methods_reach_one_optimum(name: str, loss: Loss, bias: Bias) -> None:
    X, y = draw_data(2, 8, 3)
    problem = make_problem(X, y, name, C=2.0, loss=loss, bias=bias)
    core, _ = core_steps(problem, "s2do", tol=1e-6)
    best = objectives(problem, core)[1]
    for method in METHODS:
        if method == "pair" and problem.machine.bound is Bound.BOX:
            continue
        solution = solve_reference(problem, method, tol=1e-5)
        assert solution.converged
        assert violation(problem, solution.amounts) <= 1e-5
        primal, dual = objectives(problem, solution.amounts)
        assert dual <= best * (1 + 1e-9) + 1e-9
        assert primal >= best * (1 - 1e-9)
        assert dual == pytest.approx(best, rel=1e-5)


@each_machine
@each_loss
@each_bias
def test_gradient_is_the_derivative_of_the_dual(name: str, loss: Loss, bias: Bias) -> None:
    X, y = draw_data(4, 6, 3)
    problem = make_problem(X, y, name, C=2.0, loss=loss, bias=bias)
    rng = np.random.default_rng(0)
    a, direction = random_amounts(problem, rng), random_amounts(problem, rng)
    h = 1e-4  # central differences of a quadratic function are exact but for rounding
    slope = (objectives(problem, a + h * direction)[1] - objectives(problem, a - h * direction)[1]) / (2 * h)
    assert slope == pytest.approx(float(np.sum(gradient(problem, a) * direction)), rel=1e-7, abs=1e-8)


def test_steps_on_examples_without_curvature() -> None:
    X = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 0.0], [-1.0, 0.5]])
    for name in MACHINES:
        problem = make_problem(X, np.array([0, 1, 1, 0]), name, C=2.0, kernel=KernelSpec("linear"))
        assert gram_matrix(problem)[0, 0] == 0.0
        for method in ("smo", "s2do", "whole-example"):
            solution = solve_reference(problem, method, tol=1e-9)
            assert solution.converged, (name, method)
            core, _ = core_steps(problem, method, tol=1e-9)
            assert objectives(problem, core)[1] == pytest.approx(objectives(problem, solution.amounts)[1])


def test_limit_on_steps_is_kept() -> None:
    X, y = draw_data(2, 8, 3)
    solution = solve_reference(make_problem(X, y, "ww"), "smo", tol=1e-9, max_iter=3)
    assert (solution.n_steps, solution.converged) == (3, False)


def test_unknown_method() -> None:
    X, y = draw_data(2, 8, 3)
    with pytest.raises(ValueError, match=r"method='newton' is not allowed; choose one of 'smo', 's2do'"):
        solve_reference(make_problem(X, y, "ww"), "newton")


def test_pair_needs_a_simplex() -> None:
    X, y = draw_data(2, 8, 3)
    with pytest.raises(ValueError, match=r"method='pair' is for a simplex, the machine 'ww' has a box; use 's2do'"):
        solve_reference(make_problem(X, y, "ww"), "pair")


def test_reference_refuses_the_hard_margin() -> None:
    X, y = draw_data(2, 8, 3)
    with pytest.raises(ValueError, match=r"C=inf is not for the reference; use a large finite C"):
        solve_reference(make_problem(X, y, "ww", C=np.inf))
