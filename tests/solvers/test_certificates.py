"""Certificates: right numbers and remarks, and no model counts as optimal that is not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from multimargin import SVC, verify
from multimargin.kernels.spec import KernelSpec
from multimargin.problems.coupling import coefficients
from multimargin.problems.machines import Bound
from multimargin.problems.problem import Bias, Loss
from multimargin.problems.recovery import recover_amounts
from multimargin.solvers.certificate import certify, evaluate
from multimargin.solvers.core import solve
from multimargin.solvers.options import Precision, SolverChoice, SolverOptions
from multimargin.solvers.reference.algorithms import gram_matrix, objectives, violation
from multimargin.solvers.report import StopReason
from support.helpers import (
    Case,
    cases,
    draw_data,
    each_bias,
    each_loss,
    each_machine,
    make_problem,
    noisy_classes,
    random_amounts,
    solvers_for,
)


@each_machine
@each_loss
@each_bias
@settings(max_examples=5)
@given(case=cases())
def test_numbers_are_those_of_the_reference(name: str, loss: Loss, bias: Bias, case: Case) -> None:
    problem = case.problem(name, loss, bias)
    amounts = random_amounts(problem, np.random.default_rng(case.seed))
    beta = coefficients(problem.machine, amounts, problem.data.y, problem.n_classes)
    scores = gram_matrix(problem) @ beta
    found = evaluate(problem, amounts, scores)
    primal, dual = objectives(problem, amounts)
    size = abs(primal) + float(np.sum(problem.targets * amounts))
    assert found.primal == pytest.approx(primal, rel=1e-10)
    assert found.dual == pytest.approx(dual, abs=1e-10 * size)
    assert found.violation == pytest.approx(violation(problem, amounts), rel=1e-9, abs=1e-9)
    assert found.primal - found.dual >= -1e-10 * size  # weak duality, at any feasible point


@each_machine
@each_loss
@each_bias
@pytest.mark.parametrize("tol", [1e-2, 1e-5])
def test_gap_is_bounded_by_the_violation(name: str, loss: Loss, bias: Bias, tol: float) -> None:
    X, y = draw_data(7, 40, 3)
    problem = make_problem(X, y, name, C=3.0, loss=loss, bias=bias)
    options = SolverOptions(tol=tol, precision=Precision.FLOAT64)
    solution = solve(problem, options)
    certificate = certify(problem, solution, tol=tol, solver="s2do", reason="test")
    assert (certificate.stop_reason, certificate.verified, certificate.optimal) == ("converged", True, True)
    assert certificate.kkt_violation == pytest.approx(violation(problem, solution.state.amounts), abs=1e-10)
    # By concavity primal - dual <= sum of (what each variable may still move) * (its violation). That is at most C
    # for a hinge; for the squared one a and 2 C xi differ by 2 C violation.
    reach = problem.data.C.sum() * problem.n_components
    if loss is Loss.SQUARED_HINGE:
        reach = float(solution.state.amounts.sum()) + 2 * tol * reach
    assert -1e-9 * certificate.primal <= certificate.gap <= tol * reach * (1 + 1e-6)


@each_machine
@each_loss
@pytest.mark.parametrize("bias", ["none", "regularized"])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_verify_confirms_the_certificate_of_the_fit(name: str, loss: Loss, bias: str, n_classes: int) -> None:
    X, y = draw_data(11, 40, n_classes)
    weight = np.random.default_rng(0).integers(0, 3, 40).astype(float)
    weight[:n_classes] = [1.0] * n_classes
    weight[np.unique(y, return_index=True)[1]] = 1.0  # every class keeps an example
    clf = SVC(multi_class=name, loss=loss.value, bias=bias, C=5.0, class_weight="balanced", tol=1e-4)
    clf.fit(X, y, weight)
    checked = verify(clf, X, y, weight)
    assert clf.certificate_.optimal
    assert checked.optimal
    assert (checked.stop_reason, checked.solver) == ("converged", "verify")
    size = abs(clf.certificate_.primal)
    assert checked.primal == pytest.approx(clf.certificate_.primal, abs=1e-9 * size)
    assert checked.dual == pytest.approx(clf.certificate_.dual, abs=1e-9 * size)


@each_machine
@each_loss
@settings(max_examples=8)
@given(case=cases())
def test_recovered_amounts_are_feasible_and_as_good(name: str, loss: Loss, case: Case) -> None:
    problem = case.problem(name, loss, Bias.NONE)
    amounts = random_amounts(problem, np.random.default_rng(case.seed))
    beta = coefficients(problem.machine, amounts, problem.data.y, problem.n_classes)
    found = recover_amounts(problem, beta)
    C = float(problem.data.C.max())
    again = coefficients(problem.machine, found, problem.data.y, problem.n_classes)
    np.testing.assert_allclose(again, beta, atol=1e-11 * C)
    assert found.min() >= -1e-11 * C
    used = found.sum(axis=1, keepdims=True) if problem.machine.bound is Bound.SIMPLEX else found
    assert (used <= problem.cap[:, None] + 1e-11 * C).all()
    if loss is Loss.HINGE:
        gain = np.sum(problem.targets * (found - amounts), axis=1)
        assert gain.min() >= -1e-10 * C
    else:
        assert objectives(problem, found)[1] >= objectives(problem, amounts)[1] - 1e-9 * C


@pytest.mark.parametrize("name", ["ats", "atm", "rm"])
@each_loss
@settings(max_examples=10)
@given(seed=st.integers(0, 10**6))
def test_verify_finds_variables_as_good_as_the_trained_ones(name: str, loss: Loss, seed: int) -> None:
    # a is not unique here: the one that verify recovers must not violate more than the one that was trained
    X, y = draw_data(seed, 40, 3)
    clf = SVC(multi_class=name, C=2.0, loss=loss.value, gamma=0.5, solver="s2do").fit(X, y)
    assert verify(clf, X, y).optimal


@pytest.mark.parametrize("name", ["ats", "atm"])
@pytest.mark.parametrize("exponent", range(-16, -10))
@pytest.mark.parametrize("size", [0.01, 0.02, 0.03])
def test_a_variable_beside_its_bound_is_recovered_as_it_is_judged(name: str, exponent: int, size: float) -> None:
    # The own variable is 0 and must be, another is nearly 0: no shift makes both 0, and which one is left beside its
    # bound decides on the violation, however near that is. The gradients lure to the wrong end of the line.
    X, y = draw_data(1, 12, 3)
    problem = make_problem(X, y, name, C=0.01, loss=Loss.SQUARED_HINGE, bias=Bias.EXACT)
    table, first = problem.machine.table(3), int(np.flatnonzero(y == 0)[0])
    own = int(np.flatnonzero(table.class1[0] == 0)[0])
    others = [p for p in range(3) if p != own]
    amounts = np.zeros((12, 3))
    small = 3 * 10.0**exponent * size
    amounts[first, others] = [small, size]
    charge = amounts / 0.02 if name == "ats" else np.full((12, 3), amounts.sum() / 0.02)
    margin = problem.targets + 1.0
    margin[first] = (problem.targets - charge)[first]
    margin[first] += small / 0.02
    margin[first, own] += 0.01
    scores = np.zeros((12, 3))
    for p in range(3):
        scores[np.arange(12), table.class1[y, p]] = table.value1[y, p] * margin[:, p]
    assert evaluate(problem, amounts, scores).violation < 1e-9
    beta = coefficients(problem.machine, amounts, y, 3)
    assert evaluate(problem, recover_amounts(problem, beta, scores), scores).violation < 1e-8


@pytest.mark.parametrize("change", ["longer", "shorter", "one entry"])
@each_machine
def test_tampered_model_is_not_optimal(name: str, change: str) -> None:
    X, y = draw_data(12, 40, 3)
    clf = SVC(multi_class=name, C=2.0).fit(X, y)
    assert verify(clf, X, y).optimal
    beta = clf._model.beta.copy()
    if change == "one entry":
        beta[0, 1] += 0.01
    else:  # longer leaves the bounds, which gradients alone do not show
        beta *= 1.01 if change == "longer" else 0.99
    clf._model = replace(clf._model, beta=beta)
    checked = verify(clf, X, y)
    assert not checked.optimal
    assert checked.stop_reason == "stalled"


def test_verify_refuses_other_data() -> None:
    X, y = draw_data(12, 40, 3)
    clf = SVC(multi_class="ww").fit(X, y)
    with pytest.raises(ValueError, match=r"does not hold the model's support vectors"):
        verify(clf, X[::-1].copy(), y)
    with pytest.raises(ValueError, match=r"y has the classes \[0, 1\], the model was trained on \[0, 1, 2\]"):
        verify(clf, X, np.minimum(y, 1))


@pytest.mark.parametrize("solver", [choice.value for choice in solvers_for("ww")])
def test_limit_on_steps_is_told(solver: str) -> None:
    X, y = draw_data(13, 60, 3)
    clf = SVC(multi_class="ww", C=100.0, max_iter=5, solver=solver)
    with pytest.warns(ConvergenceWarning, match=r"ended early \(max_iter\) after \d+ steps.*raise max_iter"):
        clf.fit(X, y)
    certificate = clf.certificate_
    assert (certificate.stop_reason, clf.fit_status_, certificate.optimal) == ("max_iter", 1, False)
    assert certificate.verified
    assert certificate.kkt_violation > clf.tol
    assert certificate.gap > 0
    assert clf.n_iter_[0] <= 5
    assert np.isfinite(clf.decision_function(X)).all()


def test_convergence_is_told() -> None:
    X, y = draw_data(13, 60, 3)
    clf = SVC(multi_class="ww").fit(X, y)
    assert (clf.certificate_.stop_reason, clf.fit_status_, clf.certificate_.optimal) == ("converged", 0, True)
    assert str(clf.certificate_).startswith("converged, verified, KKT violation")


def test_callback_that_stops_leaves_unverified_numbers() -> None:
    X, y = draw_data(14, 400, 4)
    clf = SVC(multi_class="ww", C=1e5, gamma=0.01, tol=1e-9, on_progress=lambda progress: True)
    with pytest.warns(ConvergenceWarning, match=r"ended early \(callback\)"):
        clf.fit(X, y)
    certificate = clf.certificate_
    assert (certificate.stop_reason, certificate.verified, certificate.optimal) == ("callback", False, False)
    assert "the numbers are the solver's own" in str(certificate)
    assert "not verified" in str(certificate)


@pytest.mark.parametrize("name", ["ww", "cs", "llw", "ats"])
@pytest.mark.parametrize("tol", [1e-3, 1e-6])
def test_float32_rows_never_pass_for_more_than_they_carry(name: str, tol: float) -> None:
    X, y = draw_data(15, 60, 3)
    problem = make_problem(X, y, name, C=2.0**12, kernel=KernelSpec("rbf", gamma=0.05))
    options = SolverOptions(solver=SolverChoice.S2DO, precision=Precision.FLOAT32, tol=tol, max_iter=200_000)
    solution = solve(problem, options)
    certificate = certify(problem, solution, tol=tol, solver="s2do", reason="test")
    true = violation(problem, solution.state.amounts)
    assert not solution.report.float64_rows
    assert certificate.verified
    assert certificate.kkt_violation == pytest.approx(true, abs=1e-7)
    assert (certificate.stop_reason == "converged") == (true <= tol)
    assert certificate.optimal == (true <= tol)


def test_automatic_precision_goes_over_to_float64() -> None:
    X, y = draw_data(15, 60, 3)
    problem = make_problem(X, y, "ww", C=2.0**12, kernel=KernelSpec("rbf", gamma=0.5))
    solution = solve(problem, SolverOptions(tol=1e-6, max_iter=2_000_000))
    assert solution.report.float64_rows
    assert solution.report.stop_reason is StopReason.CONVERGED
    assert violation(problem, solution.state.amounts) <= 1e-6 + 1e-9


def test_indefinite_kernel_is_told() -> None:
    X, y = draw_data(3, 30, 3)
    clf = SVC(multi_class="ww", kernel="sigmoid", gamma=0.8, coef0=-0.5).fit(X, y)
    assert clf.certificate_.optimal
    assert np.isnan(clf.certificate_.primal)
    assert np.isnan(clf.certificate_.gap)
    assert "only a KKT point is promised" in clf.certificate_.remark


@each_machine
@each_loss
def test_hard_margin_is_the_limit_of_large_penalties(name: str, loss: Loss) -> None:
    X = np.array([[0.0, 3.0], [0.5, 2.0], [3.0, 0.0], [2.0, 0.5], [-3.0, -3.0], [-2.0, -2.5]])
    y = np.array([0, 0, 1, 1, 2, 2])
    hard = SVC(multi_class=name, C=np.inf, loss=loss.value, gamma=0.5, tol=1e-8).fit(X, y)
    soft = SVC(multi_class=name, C=1e4, gamma=0.5, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(hard.decision_function(X), soft.decision_function(X), atol=1e-5)
    assert hard.certificate_.optimal
    assert verify(hard, X, y).optimal
    assert 0 <= hard.certificate_.relative_gap + 1e-9 < 1e-5


@each_machine
def test_hard_margin_refuses_conflicting_labels(name: str) -> None:
    X = np.array([[0.0, 1.0], [0.0, 1.0], [1.0, 0.0], [-1.0, -1.0]])
    with pytest.raises(ValueError, match=r"C=inf asks for a hard margin, but the classes cannot be separated"):
        SVC(multi_class=name, C=np.inf, gamma=0.5).fit(X, [0, 1, 1, 2])


@pytest.mark.parametrize("name", ["ww", "cs", "ova"])
def test_hard_margin_refuses_what_a_line_cannot_separate(name: str) -> None:
    X = np.array([[-1.0], [0.0], [1.0], [2.0]])
    with pytest.raises(ValueError, match=r"use a finite C or a kernel that separates them"):
        SVC(multi_class=name, C=np.inf, kernel="linear", bias="regularized").fit(X, [0, 1, 0, 1])


def test_certificate_tells_what_the_solver_went_over_to() -> None:
    data = noisy_classes(n=1100, n_classes=4)
    plain = SVC(multi_class="ww", C=2.0).fit(*data).certificate_
    assert (plain.float64_rows, plain.exact_blocks) == (False, 0)
    assert f"active set in 0 of {plain.blocks} blocks" in str(plain)
    hard = SVC(multi_class="ww", C=1e4, gamma=0.01, tol=1e-2).fit(*data).certificate_
    assert hard.float64_rows
    assert 0 < hard.exact_blocks <= hard.blocks
    assert f"float64 rows at the end, active set in {hard.exact_blocks} of {hard.blocks} blocks" in str(hard)
    assert f"{hard.solver} ({hard.solver_reason})" in str(hard)
    pairs = SVC(C=1e4).fit(*data).certificate_
    assert pairs.exact_blocks == sum(part.exact_blocks for part in pairs.parts) > 0
    assert f"{pairs.exact_blocks} linear systems" in str(pairs)
