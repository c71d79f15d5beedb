"""The solvers of the literature: the same optimum for all, the papers' choices of variables, and the effect of each
option."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, reject, settings
from sklearn.exceptions import ConvergenceWarning

from multimargin import SVC, Progress, verify
from multimargin._typing import FloatArray
from multimargin.problems.machines import MACHINES, Bound
from multimargin.problems.problem import Bias, DualProblem, Loss
from multimargin.problems.schemes import pair_problems
from multimargin.solvers.binary import signs, solve_batch
from multimargin.solvers.certificate import evaluate
from multimargin.solvers.core import SolverState, solve
from multimargin.solvers.options import PAIR_CHOICES, Precision, SolverChoice, SolverOptions
from multimargin.solvers.reference.algorithms import densify, gradient, gram_matrix, solve_reference
from multimargin.solvers.reference.working_sets import (
    BinaryDual,
    choose_pair,
    solve_by_pairs,
    solve_by_working_sets,
    working_set,
)
from multimargin.solvers.report import StopReason
from multimargin.solvers.separable import solve_one_vs_all
from support.helpers import (
    Case,
    OracleError,
    cases,
    draw_data,
    duals,
    each_bias,
    each_loss,
    each_machine,
    make_problem,
    noisy_classes,
    random_amounts,
    solve_dual_densely,
    solvers_for,
)

AIM = 0.9  # the core descends to this share of tol before it checks all examples again
BOXES = [name for name, machine in MACHINES.items() if machine.bound is Bound.BOX]
each_box = pytest.mark.parametrize("name", BOXES)
each_pair_choice = pytest.mark.parametrize("choice", PAIR_CHOICES, ids=lambda choice: choice.value)


def exactly(solver: SolverChoice, tol: float, q: int = 10, max_iter: int = -1) -> SolverOptions:
    return SolverOptions(
        solver=solver,
        precision=Precision.FLOAT64,
        tol=tol,
        max_iter=max_iter,
        shrink_variables=False,
        shrink_examples=False,
        working_set_size=q,
    )


# One optimum


@each_machine
@each_bias
@settings(max_examples=5)
@given(case=cases(n=(10, 40), log10_C=(-1, 1)))
def test_all_solvers_reach_one_dual(name: str, bias: Bias, case: Case) -> None:
    problem = case.problem(name, Loss.HINGE, bias)
    reached = {}
    for solver in solvers_for(name):
        solution = solve(problem, SolverOptions(solver=solver, tol=1e-6, max_iter=300_000))
        assume(solution.report.stop_reason is not StopReason.MAX_ITER)
        assert solution.report.stop_reason is StopReason.CONVERGED, solver
        assert solution.report.violation <= 1e-6
        assert solution.state.scores is not None
        reached[solver] = evaluate(problem, solution.state.amounts, solution.state.scores).dual
    best = max(reached.values())
    assert reached == {solver: pytest.approx(best, rel=1e-6) for solver in reached}


@each_loss
@settings(max_examples=10)
@given(case=cases(n=(8, 30), log10_C=(-1, 1)))
def test_pairs_reach_the_optimum_of_clarabel(loss: Loss, case: Case) -> None:
    problem = case.problem("ova", loss, Bias.EXACT)
    try:
        dual, _ = solve_dual_densely(problem)
    except OracleError:
        reject()
    for choice in (*PAIR_CHOICES, SolverChoice.SMO, SolverChoice.TWO_LEVEL):
        report = solve_one_vs_all(problem, SolverOptions(solver=choice, tol=1e-6, max_iter=300_000)).report
        assume(report.stop_reason is not StopReason.MAX_ITER)
        assert (report.stop_reason, report.verified) == (StopReason.CONVERGED, True)
        assert report.violation <= 1e-6
        assert report.dual == pytest.approx(dual, rel=1e-6)


@pytest.mark.parametrize("multi_class", ["ovo", "dag", "ova"])
@each_loss
def test_named_pairs_through_the_estimator(multi_class: str, loss: Loss) -> None:
    X, y = noisy_classes(n_classes=3)
    auto = SVC(multi_class=multi_class, loss=loss.value, tol=1e-6).fit(X, y)
    steps = {}
    for solver in ("smo", "maximum-gain", "most-violating-pair"):
        clf = SVC(multi_class=multi_class, loss=loss.value, tol=1e-6, solver=solver).fit(X, y)
        assert (clf.certificate_.solver, clf.certificate_.solver_reason) == (solver, "asked for")
        assert verify(clf, X, y).optimal
        np.testing.assert_allclose(duals(clf), duals(auto), rtol=1e-6)
        steps[solver] = int(clf.n_iter_.sum())
    assert steps["smo"] == steps["maximum-gain"] < steps["most-violating-pair"]


@pytest.mark.parametrize("multi_class", ["ovo", "ova"])
@each_pair_choice
def test_named_pairs_of_a_small_problem_end_at_tol(multi_class: str, choice: SolverChoice) -> None:
    """Only "auto" takes small problems further: the steps counted are those that tol takes."""
    X, y = noisy_classes(n=90)
    loose, tight = (SVC(multi_class=multi_class, solver=choice.value, tol=tol).fit(X, y) for tol in (1e-2, 1e-6))
    assert loose.certificate_.kkt_violation > 1e-4
    assert (loose.n_iter_ < tight.n_iter_).all()
    assert SVC(multi_class=multi_class, tol=1e-2).fit(X, y).certificate_.kkt_violation < 1e-8


@each_box
@pytest.mark.parametrize("bias", ["none", "regularized", "exact"])
def test_working_sets_through_the_estimator(name: str, bias: str) -> None:
    if name == "ova" and bias == "exact":
        pytest.skip("binary problems")
    X, y = noisy_classes(n=120)
    clf = SVC(multi_class=name, bias=bias, solver="working-set", tol=1e-6).fit(X, y)
    assert (clf.certificate_.solver, clf.certificate_.stop_reason) == ("working-set", "converged")
    assert verify(clf, X, y).optimal
    auto = SVC(multi_class=name, bias=bias, tol=1e-6).fit(X, y)
    assert clf.certificate_.dual == pytest.approx(auto.certificate_.dual, rel=1e-6)


# What an iteration is


@each_box
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_more_variables_in_a_step_need_fewer_steps(name: str, seed: int) -> None:
    X, y = noisy_classes(n=150, seed=seed)
    problem = make_problem(X, y, name, C=10.0)
    order = (SolverChoice.SMO, SolverChoice.S2DO)
    one, two = (solve(problem, exactly(solver, 1e-4)).report.n_iter for solver in order)
    assert two < one
    few, many = (solve(problem, exactly(SolverChoice.WORKING_SET, 1e-4, q)).report.n_iter for q in (2, 10))
    assert many < min(few, one)


def working_set_is_tied(problem: DualProblem, amounts: FloatArray, q: int) -> bool:
    """Whether rounding could choose otherwise: violations of variables that are equal, or a bound of 0."""
    dual = densify(problem)
    a = dual.flatten(amounts)
    g = dual.gradient(a)
    cap = dual.cap[dual.example]
    violation = np.maximum(np.where(a < cap, g, 0), np.where(a > 0, -g, 0)).clip(0)
    free, ordered = np.sort(violation[(a > 0) & (a < cap)]), np.sort(violation)[::-1]
    margins = [*np.diff(free[: q // 2 + 1]), *-np.diff(ordered[: q + 1])]
    return bool(np.min(margins, initial=np.inf) <= 1e-9)


@each_box
@each_loss
@pytest.mark.parametrize("q", [2, 5, 10])
@settings(max_examples=8)
@given(case=cases(n=(6, 12), n_classes=(2, 4), log10_C=(-1, 1)))
def test_one_step_of_a_working_set(name: str, loss: Loss, q: int, case: Case) -> None:
    problem = case.problem(name, loss, Bias.REGULARIZED)
    start = random_amounts(problem, np.random.default_rng(case.seed))
    assume(not working_set_is_tied(problem, start, q))
    twin = solve_by_working_sets(problem, q, tol=1e-9, max_iter=1, start=start).amounts
    solution = solve(
        problem, exactly(SolverChoice.WORKING_SET, 1e-9, q, max_iter=1), SolverState(start, None, problem.n_classes)
    )
    assert solution.report.n_iter <= 1
    core, dual = solution.state.amounts, densify(problem)
    a = dual.flatten(start)
    chosen = working_set(dual.gradient(a), a, dual.cap[dual.example], q)
    others = np.setdiff1d(np.arange(len(a)), chosen)
    np.testing.assert_array_equal(dual.flatten(core)[others], a[others])
    size = float(np.abs(dual.Q).max() * np.abs(np.concatenate([a, dual.flatten(twin)])).max())

    def violation(amounts: FloatArray) -> float:
        b, cap = dual.flatten(amounts)[chosen], dual.cap[dual.example][chosen]
        g = dual.gradient(dual.flatten(amounts))[chosen]
        return float(np.maximum(np.where(b < cap, g, 0), np.where(b > 0, -g, 0)).max())

    assert violation(core) <= 1e-9 * (1 + size)
    if violation(twin) <= 1e-9 * (1 + size):  # a singular set is too much for the twin's sweeps at times
        # The optimum of the chosen ones need not be unique, but its gradient is.
        np.testing.assert_allclose(gradient(problem, core), gradient(problem, twin), atol=1e-8 * (1 + size))


@each_pair_choice
@each_loss
@pytest.mark.parametrize("seed", range(5))
def test_steps_on_pairs(choice: SolverChoice, loss: Loss, seed: int) -> None:
    """Each step of the core is the reference's, from where the core stands: after a step two slopes are equal."""
    X, y = draw_data(seed, 16, 2)
    weight = np.random.default_rng(seed).uniform(0.5, 2.0, 16)
    data = make_problem(X, y, "ova", C=3.0, loss=loss, bias=Bias.EXACT, weight=weight)
    (problem,) = pair_problems(data.data)
    dual = BinaryDual.of(data.kernel.gram(X[problem.rows], X[problem.rows]), signs(problem), problem.C, loss)
    a, compared = np.zeros(16), 0
    for _ in range(60):
        (core,) = solve_batch(data.store, [problem], loss, exactly(choice, 1e-6, max_iter=1), [a]).solutions
        if core.report.n_iter == 0:
            break
        if not pair_is_tied(dual, a, choice.value):
            twin = solve_by_pairs(dual, choice.value, tol=0.0, max_iter=1, start=a).amounts
            np.testing.assert_allclose(core.amounts, twin, atol=1e-10)
            compared += 1
        a = core.amounts
    assert compared >= 5
    whole = solve_by_pairs(dual, choice.value, tol=1e-8)
    (core,) = solve_batch(data.store, [problem], loss, exactly(choice, 1e-8)).solutions
    assert whole.converged
    np.testing.assert_allclose(core.amounts, whole.amounts, atol=1e-5)


def pair_is_tied(dual: BinaryDual, a: FloatArray, choice: str) -> bool:
    """Whether another pair would do as well within rounding."""
    i, j, _ = choose_pair(dual, a, choice)
    slope, up, down = dual.slopes(a), dual.may_rise(a), dual.may_fall(a)
    if np.sum(np.abs(slope[up] - slope[i]) <= 1e-9) > 1:
        return True
    if choice == "most-violating-pair":
        return bool(np.sum(np.abs(slope[down] - slope[j]) <= 1e-9) > 1)
    gains = np.array([max(0.0, slope[i] - slope[k]) ** 2 / dual.curvature(i, int(k)) for k in down])
    return bool(np.sum(gains >= gains.max() * (1 - 1e-9)) > 1)


def test_choices_of_pairs_differ() -> None:
    """By hand: the second variable that gains most is near the first, and violates less than another."""
    K = np.array([[1.0, 0.1, 0.9], [0.1, 1.0, 0.0], [0.9, 0.0, 1.0]])
    dual = BinaryDual(K, np.array([1.0, -1.0, -1.0]), np.ones(3))
    a = np.array([0.2, 0.0, 0.2])
    slopes = dual.slopes(a)
    assert slopes[2] > slopes[1]  # the most violating of those that fall is 1
    assert choose_pair(dual, a, "most-violating-pair")[:2] == (0, 1)
    gains = [(slopes[0] - slopes[j]) ** 2 / (2 - 2 * K[0, j]) for j in (1, 2)]
    assert gains[1] > gains[0]
    assert choose_pair(dual, a, "maximum-gain")[:2] == (0, 2)
    with pytest.raises(ValueError, match=r"choice='newton' is not allowed; choose one of 'most-violating-pair'"):
        solve_by_pairs(dual, "newton")


def test_working_sets_of_the_reference_are_for_boxes() -> None:
    X, y = draw_data(2, 8, 3)
    with pytest.raises(ValueError, match=r"'cs' has a simplex; use solve_reference"):
        solve_by_working_sets(make_problem(X, y, "cs"))


@pytest.mark.parametrize("seed", range(6))
def test_whole_example_takes_the_worst_example_of_crammer_and_singer(seed: int) -> None:
    """HL02 (20) in its notation: alpha_i^m <= 0 for m != y_i, alpha_i^y <= C, e_i^m = 1 - delta."""
    X, y = draw_data(seed, 12, 4)
    problem = make_problem(X, y, "cs", C=2.0)
    amounts = solve_reference(problem, "whole-example", tol=1e-9, max_iter=3 + seed).amounts
    for _ in range(6):
        alpha = np.zeros((12, 4))
        for i, m in np.ndindex(12, 4):
            if m != y[i]:
                alpha[i, m] = -amounts[i, m - (m > y[i])]
        alpha[np.arange(12), y] = -alpha.sum(axis=1)
        own = y[:, None] == np.arange(4)
        gradient = gram_matrix(problem) @ alpha + np.where(own, 0.0, 1.0)
        bound = np.where(own, 2.0, 0.0)
        below = np.where(alpha < bound - 1e-12, gradient, np.inf)
        worst = int(np.argmax(gradient.max(axis=1) - below.min(axis=1)))
        options = exactly(SolverChoice.WHOLE_EXAMPLE, 1e-9, max_iter=1)
        solution = solve(problem, options, SolverState(amounts, None, 4))
        changed = np.flatnonzero((np.abs(solution.state.amounts - amounts) > 1e-12).any(axis=1))
        assert changed.tolist() == [worst]
        assert solution.report.n_iter == 1
        amounts = solution.state.amounts
        # (18) is solved exactly: the example violates no more
        scores = problem.store.scores(problem.data.rows, _beta(problem, amounts), X, 1)
        margins = scores[worst, y[worst]] - np.delete(scores[worst], y[worst])
        rises, held = 1.0 - margins, amounts[worst]
        low = min([*rises[held > 0], *([0.0] if held.sum() < 2.0 * (1 - 1e-12) else [])])
        assert max(0.0, rises.max()) - low <= 1e-10


def _beta(problem: DualProblem, amounts: FloatArray) -> FloatArray:
    nu = problem.machine.table(problem.n_classes).dense()
    return np.asarray(np.einsum("ip,ipc->ic", amounts, nu[problem.data.y]))


# Options


@pytest.mark.parametrize("shrinking", [True, False, "variables", "examples"])
@pytest.mark.parametrize("solver", ["smo", "s2do", "working-set", "whole-example", "semi-greedy", "two-level"])
def test_shrinking_on_either_level(shrinking: bool | str, solver: str) -> None:
    X, y = noisy_classes(n=400, n_classes=4)
    clf = SVC(multi_class="ww", C=20.0, solver=solver, shrinking=shrinking, tol=1e-5).fit(X, y)
    assert (clf.certificate_.stop_reason, clf.certificate_.verified) == ("converged", True)
    best = SVC(multi_class="ww", C=20.0, tol=1e-6).fit(X, y).certificate_.dual
    assert clf.certificate_.dual == pytest.approx(best, rel=1e-6)


def test_levels_of_shrinking_are_seen_in_the_active_examples() -> None:
    """Only the level of examples removes examples; each level alone finds the optimum."""
    X, y = noisy_classes(n=600, n_classes=4)
    least = {}
    for shrinking in (False, "variables", "examples", True):
        seen = [len(y)]

        def look(progress: Progress, seen: list[int] = seen) -> None:
            seen.append(progress.n_active)

        SVC(
            multi_class="ww",
            C=200.0,
            gamma=0.5,
            solver="smo",
            tol=1e-7,
            shrinking=shrinking,
            on_progress=look,
        ).fit(X, y)
        least[shrinking] = min(seen)
    assert least[False] == least["variables"] == len(y)
    assert max(least["examples"], least[True]) < len(y)


@pytest.mark.parametrize("name", ["ww", "cs"])
@pytest.mark.parametrize("solver", ["smo", "s2do", "whole-example", "semi-greedy", "two-level", "working-set"])
def test_without_a_cache(name: str, solver: str) -> None:
    if name == "cs" and solver == "working-set":
        pytest.skip("working sets are for boxes")
    X, y = noisy_classes(n=150)
    kept = SVC(multi_class=name, solver=solver, shrinking=False).fit(X, y)
    uncached = SVC(multi_class=name, solver=solver, shrinking=False, cache_size=0).fit(X, y)
    np.testing.assert_array_equal(uncached.dual_coef_, kept.dual_coef_)
    assert uncached.n_iter_.tolist() == kept.n_iter_.tolist()
    if solver in ("smo", "s2do", "whole-example", "working-set"):
        assert uncached.certificate_.kernel_rows >= uncached.n_iter_[0]
        assert uncached.certificate_.kernel_rows > kept.certificate_.kernel_rows


@pytest.mark.parametrize("multi_class", ["ovo", "ova"])
@pytest.mark.parametrize("solver", ["auto", "smo", "maximum-gain", "most-violating-pair"])
def test_pairs_without_a_cache(multi_class: str, solver: str) -> None:
    X, y = noisy_classes(n=300)
    kept = SVC(multi_class=multi_class, solver=solver).fit(X, y)
    uncached = SVC(multi_class=multi_class, solver=solver, cache_size=0).fit(X, y)
    np.testing.assert_array_equal(uncached.dual_coef_, kept.dual_coef_)
    if solver != "auto":
        # two rows for each step, and the first of the pair that is no longer needed at the end of a stretch
        assert uncached.certificate_.kernel_rows >= 2 * uncached.n_iter_.sum()
        assert uncached.certificate_.cache_hits == 0


def test_size_of_working_sets_is_checked() -> None:
    X, y = draw_data(2, 8, 3)
    with pytest.raises(ValueError, match=r"a working set needs two variables at least"):
        solve(make_problem(X, y, "ww"), exactly(SolverChoice.WORKING_SET, 1e-3, q=1))


def test_the_core_refuses_what_it_cannot_solve() -> None:
    X, y = draw_data(2, 8, 3)
    with pytest.raises(ValueError, match=r"working sets are for boxes; a simplex is solved by whole examples"):
        solve(make_problem(X, y, "cs"), exactly(SolverChoice.WORKING_SET, 1e-3))
    for choice in PAIR_CHOICES:
        with pytest.raises(ValueError, match=r"for binary problems with an exact bias"):
            solve(make_problem(X, y, "ww"), exactly(choice, 1e-3))


@each_pair_choice
def test_pairs_of_an_indefinite_kernel(choice: SolverChoice) -> None:
    X, y = noisy_classes(n=120)
    clf = SVC(kernel="sigmoid", gamma=0.3, coef0=-0.5, C=5.0, solver=choice.value).fit(X, y)
    assert clf.certificate_.stop_reason == "converged"
    assert verify(clf, X, y).kkt_violation <= 1.001e-3


def test_max_iter_counts_pairs_of_a_large_problem() -> None:
    """More examples than blocks begin at: named pairs stay single pairs."""
    X, y = noisy_classes(n=4500, n_classes=2)
    clf = SVC(solver="maximum-gain", max_iter=25)
    with pytest.warns(ConvergenceWarning, match=r"\(max_iter\) after 25 steps"):
        clf.fit(X, y)
    assert clf.n_iter_.tolist() == [25]
