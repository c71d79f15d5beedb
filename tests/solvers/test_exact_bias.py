"""The exact bias: the constrained optimum for every machine, sums of beta at zero, and a true stop reason of every
fit."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from sklearn import svm
from sklearn.datasets import make_classification

from multimargin import MACHINES, SVC, Bound, ComponentTable, Machine, verify
from multimargin._typing import FloatArray, IntArray
from multimargin.kernels.spec import KernelSpec
from multimargin.problems.coupling import coefficients
from multimargin.problems.problem import Bias, DualProblem, Loss
from multimargin.problems.zero_sums import Movable, balance, is_balanced, movable_support
from multimargin.solvers.certificate import certify, evaluate
from multimargin.solvers.core import run_core
from multimargin.solvers.core import solve as solve_without_constraints
from multimargin.solvers.options import Precision, SolverChoice, SolverOptions
from multimargin.solvers.proximal_bias import solve_by_bias_rule as solve
from multimargin.solvers.report import StopReason
from support.helpers import (
    Case,
    OracleError,
    beta_map,
    cases,
    draw_data,
    each_loss,
    each_machine,
    each_machine_and_solver,
    exact_scores,
    make_problem,
    random_amounts,
    run_clarabel,
    solve_dual_densely,
)

TOL = 1e-7
ROUNDING = 1e-9
FEW = settings(max_examples=5)
seeds = st.integers(0, 10**6)
SEVERAL = pytest.mark.parametrize("name", ["ww", "cs", "llw", "atm", "ova"])


def assert_feasible(problem: DualProblem, amounts: FloatArray) -> None:
    used = amounts.sum(axis=1) if problem.machine.bound is Bound.SIMPLEX else amounts.max(axis=1)
    assert amounts.min() >= 0
    assert (used <= problem.cap * (1 + 1e-12)).all()
    beta = coefficients(problem.machine, amounts, problem.data.y, problem.n_classes)
    assert is_balanced(beta, ROUNDING)


@each_machine
@each_loss
@settings(max_examples=8)
@given(case=cases())
def test_optimum_of_clarabel(name: str, loss: Loss, case: Case) -> None:
    problem = case.problem(name, loss, Bias.EXACT)
    check_against_clarabel(problem)


def check_against_clarabel(problem: DualProblem) -> None:
    try:
        dual, scores = solve_dual_densely(problem)
    except OracleError:  # a kernel matrix of low rank under equality constraints can be too much for it
        reject()
    solver = SolverChoice.TWO_LEVEL if problem.structure.structured else SolverChoice.S2DO
    solution = solve(problem, SolverOptions(solver=solver, tol=TOL, precision=Precision.FLOAT64, max_iter=300_000))
    state = solution.state
    assert state.scores is not None
    assert state.bias is not None
    assert_feasible(problem, state.amounts)
    reached = evaluate(problem, state.amounts, state.scores, state.bias)
    assert reached.dual <= dual + 1e-8 * abs(dual)
    assert reached.primal >= dual - 1e-8 * abs(dual)
    if solution.report.stop_reason is StopReason.MAX_ITER:
        return  # a nearly singular kernel matrix; the bracket of the optimum holds
    assert solution.report.stop_reason is StopReason.CONVERGED
    assert reached.violation <= TOL
    assert (solution.report.violation, solution.report.dual) == (reached.violation, reached.dual)
    assert reached.dual == pytest.approx(dual, rel=1e-6, abs=1e-9)
    scale = max(1.0, float(np.abs(scores).max()))
    np.testing.assert_allclose(state.scores, scores, atol=1e-5 * scale)
    if problem.machine.sum_to_zero or problem.machine.name in ("ww", "cs"):
        assert abs(state.bias.sum()) <= 1e-12 * max(1.0, float(np.abs(state.bias).max()))


def pairs_with_costs() -> Machine:
    """Margins that share more than one class: the core has no closed form for them."""
    nu = np.zeros((3, 3, 3))
    target = np.zeros((3, 3))
    for y in range(3):
        p, q = [c for c in range(3) if c != y]
        nu[y, 0, [y, p]], nu[y, 1, [y, q]], nu[y, 2, [p, q]] = (1, -1), (2, -1), (-1, -0.5)
        target[y] = [1.0, 0.5 + y, 0.3]
    return Machine("pairs", Bound.BOX, False, ComponentTable.from_dense(nu, target))


@pytest.mark.parametrize(
    "machine",
    [
        pairs_with_costs(),
        Machine(
            "costs", Bound.SIMPLEX, False, ComponentTable.relative(3, np.array([[0, 1, 4], [2, 0, 1], [1, 3, 0.0]]))
        ),
        Machine("lop-sided", Bound.BOX, True, ComponentTable.absolute(3, own=[2.0, 1.0, 0.5], others=0.7)),
    ],
    ids=lambda machine: machine.name,
)
@each_loss
@FEW
@given(seed=seeds)
def test_machines_of_ones_own(machine: Machine, loss: Loss, seed: int) -> None:
    X, y = draw_data(seed, 20, 3)
    check_against_clarabel(make_problem(X, y, machine, C=2.0, loss=loss, bias=Bias.EXACT))


@each_machine_and_solver
def test_every_solver_serves_the_rounds(name: str, solver: SolverChoice) -> None:
    X, y = draw_data(5, 40, 3)
    problem = make_problem(X, y, name, C=2.0, bias=Bias.EXACT)
    solution = solve(problem, SolverOptions(solver=solver, tol=1e-4))
    assert solution.report.stop_reason is StopReason.CONVERGED
    assert solution.report.violation <= 1e-4
    assert_feasible(problem, solution.state.amounts)


def test_sums_that_nothing_may_mend() -> None:
    X, y = draw_data(0, 12, 3)
    problem = make_problem(X, y, "ww", bias=Bias.EXACT)
    amounts = random_amounts(problem, np.random.default_rng(0))
    fixed = Movable(np.zeros_like(problem.mask), np.zeros(len(amounts), dtype=np.bool_))
    assert balance(problem, amounts, fixed) is None  # and no warning of numbers that overflow
    zero = np.zeros_like(amounts)
    np.testing.assert_array_equal(balance(problem, zero, fixed), zero)


@each_machine
@FEW
@given(case=cases())
def test_balance_is_the_nearest_point(name: str, case: Case) -> None:
    problem = case.problem(name, Loss.HINGE, Bias.EXACT)
    amounts = random_amounts(problem, np.random.default_rng(case.seed))
    found = balance(problem, amounts, movable_support(amounts))
    assert found is not None
    assert_feasible(problem, found)
    assert (found[amounts == 0] == 0).all()
    B, _, examples = beta_map(problem)
    here, C = amounts[problem.mask], problem.data.C
    weight = C[examples]
    sums = B.reshape(problem.n_examples, problem.n_classes, -1).sum(axis=0)
    values, rows = np.linalg.svd(sums, full_matrices=False)[1:]
    equal = [rows[values > 1e-9 * values.max()], np.eye(len(here))[here == 0]]
    n_equal = sum(len(part) for part in equal)
    member = (examples[None, :] == np.arange(problem.n_examples)[:, None]).astype(np.float64)
    upper, cap = (member, C) if problem.machine.bound is Bound.SIMPLEX else (np.eye(len(here)), weight)
    A = np.vstack([*equal, -np.eye(len(here)), upper])
    b = np.concatenate([np.zeros(n_equal + len(here)), cap])
    expected = run_clarabel(np.diag(1 / weight), -here / weight, A, b, n_equal)
    np.testing.assert_allclose(found[problem.mask], expected, atol=1e-5 * C.max())


scores = partial(exact_scores, bias="exact")


def data_of(seed: int, n: int = 24, n_classes: int = 3) -> tuple[FloatArray, IntArray]:
    return draw_data(seed, n, n_classes)


@SEVERAL
@each_loss
@FEW
@given(seed=seeds)
def test_order_of_the_examples_and_names_of_the_classes(name: str, loss: Loss, seed: int) -> None:
    X, y = data_of(seed)
    rng = np.random.default_rng(seed)
    order, place = rng.permutation(len(y)), rng.permutation(3)
    one = scores(name, X, y, loss=loss.value)
    other = scores(name, X[order], place[y[order]], at=X, loss=loss.value)
    np.testing.assert_allclose(differences(other[:, place]), differences(one), atol=1e-6)


def differences(f: FloatArray) -> FloatArray:
    """Differences of scores, which predictions depend on."""
    return np.asarray(f - f.mean(axis=1, keepdims=True))


@each_machine
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@pytest.mark.parametrize("C", [0.3, 5.0])
def test_two_classes_are_the_machine_of_scikit_learn(name: str, kernel: str, C: float) -> None:
    X, y = make_classification(120, 6, n_informative=4, flip_y=0.15, weights=[0.7], random_state=3)
    machine = MACHINES[name]
    assert machine.binary_factor is not None
    binary = svm.SVC(kernel=kernel, gamma=0.2, C=C, tol=1e-9).fit(X, y)
    ours = SVC(multi_class=name, kernel=kernel, gamma=0.2, C=C / machine.binary_factor, tol=1e-8, bias="exact").fit(
        X, y
    )
    scale = 0.5 if name == "cs" else 1.0  # LIBSVM keeps kernel values in float32, which costs it 1e-5 here
    np.testing.assert_allclose(ours.decision_function(X), scale * binary.decision_function(X), atol=1e-4)
    np.testing.assert_allclose(ours.intercept_, scale * binary.intercept_, atol=1e-4)


def test_scores_of_ova_are_separate_machines_of_scikit_learn() -> None:
    X, y = data_of(1, n=60, n_classes=4)
    together = scores("ova", X, y)
    for c in range(4):
        binary = svm.SVC(gamma=0.5, C=2.0, tol=1e-9).fit(X, y == c)
        np.testing.assert_allclose(together[:, c], binary.decision_function(X), atol=1e-5)


@each_machine
@each_loss
@pytest.mark.parametrize("n_classes", [2, 4])
def test_verify_confirms_the_certificate_of_the_fit(name: str, loss: Loss, n_classes: int) -> None:
    X, y = draw_data(11, 300, n_classes)
    weight = np.random.default_rng(0).integers(1, 3, 300).astype(float)
    clf = SVC(multi_class=name, loss=loss.value, bias="exact", C=5.0, class_weight="balanced", tol=1e-4)
    clf.fit(X, y, weight)
    certificate, checked = clf.certificate_, verify(clf, X, y, weight)
    assert certificate.optimal
    assert checked.optimal
    size = abs(certificate.primal)
    assert checked.primal == pytest.approx(certificate.primal, abs=1e-9 * size)
    assert checked.dual == pytest.approx(certificate.dual, abs=1e-9 * size)
    assert certificate.gap >= -1e-9 * size
    sums = np.abs(clf._model.beta.sum(axis=0)).max()
    assert sums <= ROUNDING * np.abs(clf._model.beta).sum()
    assert clf.intercept_.shape == ((1,) if n_classes == 2 else (n_classes,))


@pytest.mark.parametrize("change", ["intercept", "longer", "shorter", "one entry"])
@each_machine
def test_tampered_model_is_not_optimal(name: str, change: str) -> None:
    X, y = draw_data(12, 60, 3)
    clf = SVC(multi_class=name, C=2.0, bias="exact").fit(X, y)
    assert verify(clf, X, y).optimal
    beta, intercept = clf._model.beta.copy(), clf._model.intercept.copy()
    if change == "intercept":
        intercept += [0.01, -0.01, 0.0]
    elif change == "one entry":
        beta[0, 1] += 0.01
    else:
        beta *= 1.01 if change == "longer" else 0.99
    clf._model = replace(clf._model, beta=beta, intercept=intercept)
    checked = verify(clf, X, y)
    assert not checked.optimal
    assert checked.stop_reason == "stalled"


def test_coefficients_that_do_not_sum_to_zero_are_infeasible() -> None:
    X, y = draw_data(12, 60, 3)
    clf = SVC(multi_class="ova", C=2.0, bias="exact").fit(X, y)
    inside = np.flatnonzero((np.abs(clf._model.beta) > 0.1) & (np.abs(clf._model.beta) < 1.9))[0]
    beta = clf._model.beta.copy()
    beta.flat[inside] *= 1 + 1e-6  # within its bounds, and hardly seen by any gradient
    clf._model = replace(clf._model, beta=beta)
    assert verify(clf, X, y).kkt_violation == np.inf


@each_machine
@each_loss
def test_gap_shrinks_with_tol(name: str, loss: Loss) -> None:
    X, y = draw_data(7, 60, 3)
    problem = make_problem(X, y, name, C=3.0, loss=loss, bias=Bias.EXACT)
    gaps = []
    for tol in (1e-2, 1e-6):
        solution = solve(problem, SolverOptions(tol=tol, precision=Precision.FLOAT64))
        certificate = certify(problem, solution, tol=tol, solver="s2do", reason="test")
        assert certificate.optimal
        assert certificate.gap >= -1e-10 * certificate.primal
        gaps.append(certificate.relative_gap)
    assert gaps[1] < 1e-5
    assert gaps[1] <= gaps[0] + 1e-12


def test_indefinite_kernel_gives_a_kkt_point() -> None:
    X, y = draw_data(3, 30, 3)
    clf = SVC(multi_class="ww", kernel="sigmoid", gamma=0.8, coef0=-0.5, bias="exact").fit(X, y)
    assert clf.certificate_.optimal
    assert np.isnan(clf.certificate_.gap)
    assert verify(clf, X, y).optimal


@each_machine
@each_loss
def test_hard_margin_is_the_limit_of_large_penalties(name: str, loss: Loss) -> None:
    X = np.array([[0.0, 3.0], [0.5, 2.0], [3.0, 0.0], [2.0, 0.5], [-3.0, -3.0], [-2.0, -2.5]])
    y = np.array([0, 0, 1, 1, 2, 2])
    hard = SVC(multi_class=name, C=np.inf, loss=loss.value, gamma=0.5, tol=1e-8, bias="exact").fit(X, y)
    soft = SVC(multi_class=name, C=1e4, gamma=0.5, tol=1e-8, bias="exact").fit(X, y)
    np.testing.assert_allclose(hard.decision_function(X), soft.decision_function(X), atol=1e-5)
    assert hard.certificate_.optimal
    assert verify(hard, X, y).optimal
    assert 0 <= hard.certificate_.relative_gap + 1e-9 < 1e-5


def test_hard_margin_may_need_the_bias() -> None:
    X, y = np.array([[1.0], [2.0], [3.0], [4.0]]), np.array([0, 0, 1, 1])
    with pytest.raises(ValueError, match=r"cannot be separated"):
        SVC(multi_class="ww", C=np.inf, kernel="linear", bias="none").fit(X, y)
    clf = SVC(multi_class="ww", C=np.inf, kernel="linear", bias="exact", tol=1e-8).fit(X, y)
    # the margin is between 2 and 3: f(x) = 2 x - 5
    np.testing.assert_allclose(clf.decision_function(X), [-3, -1, 1, 3], atol=1e-7)
    with pytest.raises(ValueError, match=r"cannot be separated"):
        SVC(multi_class="ww", C=np.inf, kernel="linear", bias="exact").fit(X, [0, 1, 0, 1])
    with pytest.raises(ValueError, match=r"cannot be separated"):
        SVC(multi_class="ww", C=np.inf, kernel="poly", degree=2, bias="exact").fit(X, [0, 1, 0, 1])


@each_machine
@pytest.mark.parametrize("case", ["tiny C", "one example per class", "all points equal", "one heavy class", "far away"])
def test_edges(name: str, case: str) -> None:
    X, y = draw_data(1, 40, 3)
    C, kernel = 1.0, "rbf"
    if case == "tiny C":
        C = 1e-8
    elif case == "one example per class":
        X, y = X[np.unique(y, return_index=True)[1]], np.arange(3)
    elif case == "all points equal":
        X = np.ones_like(X)
    elif case == "one heavy class":
        y = np.where(np.arange(40) < 38, 0, np.arange(40) - 37)
    else:
        X, kernel = X + 30.0, "linear"
    clf = SVC(multi_class=name, C=C, bias="exact", gamma=0.5, kernel=kernel).fit(X, y)
    assert clf.certificate_.optimal
    assert -1e-9 * abs(clf.certificate_.primal) <= clf.certificate_.gap
    assert verify(clf, X, y).optimal


def test_constant_data_predict_the_heavier_class() -> None:
    clf = SVC(multi_class="ww", gamma=0.5, bias="exact").fit(np.ones((5, 2)), [0, 1, 1, 1, 2])
    assert (clf.predict(np.ones((2, 2))) == 1).all()


def test_the_other_solver_refuses_the_constraints() -> None:
    X, y = draw_data(4, 20, 3)
    problem = make_problem(X, y, "ww", bias=Bias.EXACT, kernel=KernelSpec("linear"))
    with pytest.raises(ValueError, match=r"use proximal_bias\.solve"):
        solve_without_constraints(problem, SolverOptions())


@pytest.mark.parametrize("name", ["ww", "atm", "ova"])
def test_known_scores_of_a_start_are_those_that_would_be_computed(name: str) -> None:
    X, y = draw_data(4, 80, 3)
    problem = make_problem(X, y, name, C=2.0)
    half = run_core(problem, SolverOptions(max_iter=60), None, None).state
    assert half.scores is not None
    options = SolverOptions(max_iter=0)
    known = run_core(problem, options, half, None)
    computed = run_core(problem, options, replace(half, scores=None), None)
    assert known.report.violation == pytest.approx(computed.report.violation, abs=1e-12)
    assert known.report.primal == pytest.approx(computed.report.primal, rel=1e-12)
    with pytest.raises(ValueError, match="one row per example and one column per class"):
        run_core(problem, options, replace(half, scores=half.scores[:, :2]), None)
