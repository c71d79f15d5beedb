"""Frank-Wolfe: exact steps to the vertices of the linear program, and the same optimum as other solvers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, reject, settings

from multimargin import SVC, Bound, Machine, verify
from multimargin._typing import FloatArray
from multimargin.problems.coupling import coefficients
from multimargin.problems.machines import ComponentTable
from multimargin.problems.problem import Bias, DualProblem, Loss
from multimargin.problems.zero_sums import balance, is_balanced, movable_support
from multimargin.solvers.certificate import dual_gradient, evaluate
from multimargin.solvers.core import Solution
from multimargin.solvers.frank_wolfe.driver import FrankWolfeOptions, solve
from multimargin.solvers.frank_wolfe.steps import (
    Hull,
    LinearProgram,
    Variant,
    best_bias,
    choose_block,
    exact_step,
    pushed_to_bounds,
)
from multimargin.solvers.options import Precision, SolverChoice, SolverOptions
from multimargin.solvers.proximal_bias import solve_by_bias_rule as solve_by_default
from multimargin.solvers.report import StopReason
from support.helpers import (
    RBF,
    Case,
    OracleError,
    cases,
    draw_data,
    each_machine,
    make_problem,
    random_amounts,
    solve_dual_densely,
)

ROUNDING = 1e-9
each_rule = pytest.mark.parametrize("bias", list(Bias), ids=lambda bias: bias.value)
each_variant = pytest.mark.parametrize("variant", list(Variant), ids=lambda variant: variant.value)


def small_problem(name: str | Machine = "ww", bias: Bias = Bias.EXACT, n: int = 24, **changes: Any) -> DualProblem:
    X, y = draw_data(5, n, 3)
    given_: dict[str, Any] = {"C": 2.0, "bias": bias} | changes
    return make_problem(X, y, name, **given_)


def some_point(problem: DualProblem, seed: int = 0) -> FloatArray:
    """Feasible amounts, sums included."""
    amounts = random_amounts(problem, np.random.default_rng(seed))
    if problem.bias is not Bias.EXACT:
        return amounts
    found = balance(problem, amounts, movable_support(amounts), 200)
    assert found is not None
    return found


def scores_of(problem: DualProblem, amounts: FloatArray) -> FloatArray:
    beta = coefficients(problem.machine, amounts, problem.data.y, problem.n_classes)
    rows = problem.data.rows
    return problem.store.scores(rows, beta, problem.data.kernel_data[rows], 1)


def dual_of(problem: DualProblem, amounts: FloatArray) -> float:
    return evaluate(problem, amounts, scores_of(problem, amounts)).dual


def assert_feasible(problem: DualProblem, amounts: FloatArray) -> None:
    used = amounts.sum(axis=1) if problem.machine.bound is Bound.SIMPLEX else amounts.max(axis=1)
    assert amounts.min() >= 0
    assert (used <= problem.cap * (1 + 1e-12)).all()
    if problem.bias is Bias.EXACT:
        assert is_balanced(coefficients(problem.machine, amounts, problem.data.y, problem.n_classes), ROUNDING)


def assert_optimal(problem: DualProblem, solution: Solution, tol: float) -> None:
    """Converged, by numbers recomputed here."""
    state, report = solution.state, solution.report
    assert report.stop_reason is StopReason.CONVERGED
    assert report.verified
    assert_feasible(problem, state.amounts)
    assert state.scores is not None
    np.testing.assert_allclose(state.scores, scores_of(problem, state.amounts), atol=1e-12)
    reached = evaluate(problem, state.amounts, state.scores, state.bias)
    assert reached.violation <= tol
    assert 0 <= reached.primal - reached.dual + 1e-10 * reached.primal <= tol * reached.primal + 2e-10 * reached.primal
    assert (report.violation, report.dual, report.primal) == (reached.violation, reached.dual, reached.primal)


def default_dual(problem: DualProblem) -> float:
    solver = SolverChoice.TWO_LEVEL if problem.structure.structured else SolverChoice.S2DO
    options = SolverOptions(solver=solver, tol=1e-8, precision=Precision.FLOAT64)
    return solve_by_default(problem, options).report.dual


@each_machine
@settings(max_examples=2)
@given(case=cases(n=(5, 12), log10_C=(-2, 1)))
def test_optimum_of_clarabel_and_of_the_default_solver(name: str, case: Case) -> None:
    problem = case.problem(name, Loss.HINGE, Bias.EXACT)
    try:
        dual, scores = solve_dual_densely(problem)
    except OracleError:  # a kernel matrix of low rank under equality constraints can be too much for it
        reject()
    solution = solve(problem, SolverOptions(tol=1e-6))
    assert_optimal(problem, solution, 1e-6)
    assert solution.report.dual == pytest.approx(dual, rel=1e-6, abs=1e-9)
    assert solution.report.dual == pytest.approx(default_dual(problem), rel=1e-6, abs=1e-9)
    assert solution.state.scores is not None
    size = max(1.0, float(np.abs(scores).max()))
    np.testing.assert_allclose(solution.state.scores, scores, atol=1e-4 * size)


@each_machine
@pytest.mark.parametrize("bias", [Bias.NONE, Bias.REGULARIZED], ids=lambda bias: bias.value)
@settings(max_examples=2)
@given(case=cases(n=(5, 12), log10_C=(-2, 1)))
def test_without_the_sums_the_vertices_are_known(name: str, bias: Bias, case: Case) -> None:
    problem = case.problem(name, Loss.HINGE, bias)
    solution = solve(problem, SolverOptions(tol=1e-6))
    assert_optimal(problem, solution, 1e-6)
    assert solution.state.bias is None
    assert solution.report.dual == pytest.approx(default_dual(problem), rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("name", ["ww", "cs"])
@each_rule
@each_variant
def test_each_variant_converges(name: str, bias: Bias, variant: Variant) -> None:
    problem = small_problem(name, bias, n=9, C=0.5)
    solution = solve(problem, SolverOptions(tol=0.1, max_iter=2000), how=FrankWolfeOptions(variant))
    assert_optimal(problem, solution, 0.1)


def test_corrective_steps_are_the_fewest() -> None:
    problem = small_problem(bias=Bias.NONE, n=15)
    options = SolverOptions(tol=1e-3, max_iter=600)
    steps = {v: solve(problem, options, how=FrankWolfeOptions(v)).report.n_iter for v in Variant}
    others = (steps[Variant.AWAY], steps[Variant.PAIRWISE])
    assert steps[Variant.CORRECTIVE] < min(others) / 3
    assert max(others) < 600
    assert steps[Variant.PLAIN] == 600


@pytest.mark.parametrize("name", ["ww", "llw", "cs"])
@each_rule
@pytest.mark.parametrize("size", [6, 10])
def test_blocks_find_the_same_optimum(name: str, bias: Bias, size: int) -> None:
    X, y = draw_data(5, 14, 3)
    order = np.argsort(y, kind="stable")  # blocks of one class could not move
    problem = make_problem(X[order], y[order], name, C=0.5, bias=bias)
    solution = solve(problem, SolverOptions(tol=1e-2), how=FrankWolfeOptions(block_size=size, relative_gap=1e-4))
    assert_optimal(problem, solution, 1e-2)
    assert solution.report.dual == pytest.approx(default_dual(problem), rel=1e-4)


def test_a_block_is_made_of_all_classes_and_of_what_is_free() -> None:
    problem = small_problem()
    amounts = np.zeros((24, 2))
    amounts[[3, 4], 0] = 1.0
    shares = np.where(problem.data.y == 0, 10.0, 1.0)
    block = choose_block(problem, amounts, shares, np.array([3, 4, 5]), 8)
    assert len(block) == len(set(block.tolist())) == 8
    assert {3, 4} <= set(block.tolist())
    np.testing.assert_array_equal(np.bincount(problem.data.y[np.setdiff1d(block, [3, 4])]), [2, 2, 2])


@pytest.mark.parametrize("variant", [Variant.AWAY, Variant.PAIRWISE, Variant.CORRECTIVE], ids=lambda v: v.value)
def test_steps_of_other_variants_in_blocks(variant: Variant) -> None:
    problem = small_problem(n=15, C=0.5)
    solution = solve(problem, SolverOptions(tol=0.05), how=FrankWolfeOptions(variant, block_size=8))
    assert_optimal(problem, solution, 0.05)


@each_machine
@each_rule
def test_gap_of_the_linear_program_is_the_duality_gap(name: str, bias: Bias) -> None:
    problem = small_problem(name, bias)
    amounts = some_point(problem)
    scores = scores_of(problem, amounts)
    gradient = dual_gradient(problem, amounts, scores)
    vertex = LinearProgram(problem, amounts).vertex(gradient)
    assert_feasible(problem, vertex.amounts)
    gap = float(np.sum(gradient * (vertex.amounts - amounts)))
    reached = evaluate(problem, amounts, scores, vertex.bias)
    assert gap == pytest.approx(reached.primal - reached.dual, rel=1e-9)
    # a vertex: as many variables between their bounds as there are sums
    between = (vertex.amounts > 0) & (vertex.amounts < problem.cap[:, None])
    per_sum = 2 if problem.machine.bound is Bound.SIMPLEX else 1  # two may share an example's C
    assert between.sum() <= (per_sum * problem.n_classes if bias is Bias.EXACT else 0)


def test_no_bias_is_better_than_the_multipliers() -> None:
    problem = small_problem()
    amounts = some_point(problem)
    scores = scores_of(problem, amounts)
    vertex = LinearProgram(problem, amounts).vertex(dual_gradient(problem, amounts, scores))
    assert vertex.bias is not None
    best = evaluate(problem, amounts, scores, vertex.bias).primal
    rng = np.random.default_rng(0)
    for size in (1e-3, 0.1, 1.0):
        assert evaluate(problem, amounts, scores, vertex.bias + size * rng.normal(size=3)).primal >= best - 1e-12


@pytest.mark.parametrize("name", ["ww", "llw", "ova"])
def test_free_variables_know_the_bias(name: str) -> None:
    problem = small_problem(name)
    state = solve(problem, SolverOptions(tol=1e-9)).state
    assert state.scores is not None
    assert state.bias is not None
    off = state.bias + np.array([0.01, -0.01, 0.0])
    found, numbers = best_bias(problem, state.amounts, state.scores, off, 1e-6)
    assert found is not None
    np.testing.assert_allclose(found, state.bias, atol=1e-7)
    assert numbers.violation <= 1e-6
    moved = 0.9 * state.amounts  # where no b meets tol the one that is given stays
    assert best_bias(problem, moved, 0.9 * state.scores, off, 1e-6)[0] is off


@pytest.mark.parametrize("name", ["ww", "atm"])
@each_rule
@each_variant
def test_step_is_the_exact_optimum_of_its_line(name: str, bias: Bias, variant: Variant) -> None:
    problem = small_problem(name, bias)
    amounts = some_point(problem)
    hull = Hull(
        problem,
        RBF.gram(problem.data.X, problem.data.X) + (bias is Bias.REGULARIZED),
        amounts,
        scores_of(problem, amounts),
    )
    program = LinearProgram(problem, amounts)
    start = dual_of(problem, amounts)
    for _ in range(6):
        before = hull.amounts()
        vertex = program.vertex(dual_gradient(problem, before, hull.scores())).amounts
        hull.step(variant, hull.add(vertex))
        after = hull.amounts()
        assert_feasible(problem, after)
        np.testing.assert_allclose(hull.scores(), scores_of(problem, after), atol=1e-10)
        assert start + hull.gain() == pytest.approx(dual_of(problem, after), rel=1e-10)
        best = dual_of(problem, after)
        assert best > dual_of(problem, before)
        for share in (0.5, 0.9, 0.99, 1.01, 1.1):
            point = before + share * (after - before)
            used = point.sum(axis=1) if problem.machine.bound is Bound.SIMPLEX else point.max(axis=1)
            if point.min() >= 0 and (used <= problem.cap).all():
                assert dual_of(problem, point) <= best + 1e-10 * abs(best)


def test_corrective_step_is_the_optimum_of_the_hull() -> None:
    problem = small_problem()
    amounts = some_point(problem)
    hull = Hull(problem, RBF.gram(problem.data.X, problem.data.X), amounts, scores_of(problem, amounts))
    rng = np.random.default_rng(1)
    for number in range(8):
        hull.add(some_point(problem, number + 1))
    hull.step(Variant.CORRECTIVE, 0)
    best = hull.gain()
    slopes = hull.slopes()
    np.testing.assert_allclose(slopes, slopes[0], atol=1e-8 * abs(best))
    for _ in range(20):
        weights = rng.dirichlet(np.ones(len(hull)))
        assert weights @ hull.linear - 0.5 * weights @ hull.gram @ weights <= best + 1e-10 * abs(best)


@pytest.mark.parametrize(
    ("slope", "curvature", "most", "theta"),
    [(2.0, 4.0, 1.0, 0.5), (2.0, 1.0, 1.0, 1.0), (2.0, 0.0, 0.3, 0.3), (-1.0, 4.0, 1.0, 0.0), (0.0, 0.0, 1.0, 0.0)],
)
def test_closed_form_of_the_step(slope: float, curvature: float, most: float, theta: float) -> None:
    assert exact_step(np.array([slope]), np.array([[curvature]]), np.ones(1), most) == theta


@pytest.mark.parametrize("name", ["ww", "cs"])
def test_variables_are_pushed_to_the_bounds_of_the_optimum(name: str) -> None:
    problem = small_problem(name, Bias.NONE)
    state = solve(problem, SolverOptions(tol=1e-9)).state
    assert state.scores is not None
    gradient = dual_gradient(problem, state.amounts, state.scores)
    moved = 0.99 * state.amounts + 0.01 * random_amounts(problem, np.random.default_rng(0))
    pushed = pushed_to_bounds(problem, moved, gradient, 1e-6)
    assert_feasible(problem, pushed)
    cap = problem.cap[:, None]
    settled = np.abs(gradient - np.maximum(gradient.max(axis=1, keepdims=True), 0) * (name == "cs")) > 1e-6
    at_bound = (state.amounts == 0) | (state.amounts == cap)
    np.testing.assert_array_equal(pushed[settled & at_bound], state.amounts[settled & at_bound])
    assert (moved != pushed).any()


def test_a_machine_of_ones_own() -> None:
    nu = np.zeros((3, 3, 3))
    for y in range(3):
        p, q = [c for c in range(3) if c != y]
        nu[y, 0, [y, p]], nu[y, 1, [y, q]], nu[y, 2, [p, q]] = (1, -1), (2, -1), (-1, -0.5)
    machine = Machine("pairs", Bound.BOX, False, ComponentTable.from_dense(nu, np.array([[1.0, 0.5, 0.3]] * 3)))
    problem = small_problem(machine, n=12)
    solution = solve(problem, SolverOptions(tol=1e-6))
    assert_optimal(problem, solution, 1e-6)
    assert solution.report.dual == pytest.approx(solve_dual_densely(problem)[0], rel=1e-6)


@each_machine
@pytest.mark.parametrize("n_classes", [2, 3])
def test_estimator(name: str, n_classes: int) -> None:
    X, y = draw_data(11, 15, n_classes)
    weight = np.random.default_rng(0).integers(1, 3, 15).astype(float)
    given_: dict[str, Any] = {"multi_class": name, "bias": "exact", "gamma": 0.5, "class_weight": "balanced"}
    clf = SVC(**given_, tol=1e-5, solver="frank-wolfe").fit(X, y, weight)
    other = SVC(**given_, tol=1e-9).fit(X, y, weight)
    assert (clf.certificate_.solver, clf.certificate_.solver_reason) == ("frank-wolfe", "asked for")
    assert clf.certificate_.optimal
    assert verify(clf, X, y, weight).optimal
    duals = [sum(part.dual for part in fit.certificate_.parts or (fit.certificate_,)) for fit in (clf, other)]
    if name != "ova" or n_classes == 2:  # which the default solves class by class
        assert duals[0] == pytest.approx(duals[1], rel=1e-6)
    np.testing.assert_allclose(clf.decision_function(X), other.decision_function(X), atol=1e-2)
