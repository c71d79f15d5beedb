"""Newton's method of linear machines: the core's, by column; the passes of the coupled one; and both against others."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import normalize

from multimargin import SVC, LinearSVC, verify
from multimargin._typing import FloatArray
from multimargin.kernels.spec import KernelSpec
from multimargin.problems.coupling import coefficients
from multimargin.problems.machines import MACHINES
from multimargin.problems.problem import Bias, DualProblem, Loss
from multimargin.problems.schemes import BinaryProblem, class_problems, pair_problems
from multimargin.problems.training_set import TrainingSet
from multimargin.solvers.binary import evaluate_binary
from multimargin.solvers.certificate import evaluate
from multimargin.solvers.linear.core import (
    BinarySetting,
    LinearOptions,
    NewtonStart,
    linear_data,
    solve_linear_binary,
    solve_newton_binary,
)
from multimargin.solvers.linear.newton import MultiplierMethod, stop_after
from multimargin.solvers.linear.rounds import descend_with_bias
from multimargin.solvers.linear.systems import Equations
from multimargin.solvers.linear.task import LinearTask
from multimargin.solvers.report import StopReason
from support.helpers import STORAGES, each_loss, noisy_classes, stored, thin_out

COUPLED = ("ww", "cs", "llw", "adm", "ats", "atm", "rm", "mmr")


def zeros(problems: Sequence[BinaryProblem], **more: float) -> list[NewtonStart]:
    return [NewtonStart(np.zeros(len(p.rows)), **more) for p in problems]  # type: ignore[arg-type]


@each_loss
@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("offset", [0.0, 1.0])
@pytest.mark.parametrize("C", [0.3, 300.0])
def test_core_reaches_the_optimum(loss: Loss, storage: str, offset: float, C: float) -> None:
    X, y = noisy_classes(90, 4)
    rows = stored(thin_out(X), storage)
    weight = np.random.default_rng(0).uniform(0.2, 2.0, len(y))
    data = TrainingSet.from_arrays(rows, y, C=C, sample_weight=weight)
    problems, setting = [*pair_problems(data), *class_problems(data)], BinarySetting(rows, loss, offset)
    found = solve_newton_binary(setting, problems, LinearOptions(tol=1e-6), zeros(problems))
    for problem, part in zip(problems, found.results, strict=True):
        assert part.report.stop_reason is StopReason.CONVERGED
        assert part.report.violation <= 1e-6
        dense = np.asarray(rows[problem.rows].toarray() if sparse.issparse(rows) else rows[problem.rows], dtype=float)
        dense = np.column_stack([dense, np.ones(len(dense))]) if offset else dense
        y_ = np.where(np.arange(len(part.amounts)) < problem.n_positive, 1.0, -1.0)
        bias = Bias.REGULARIZED if offset else Bias.NONE
        scores = dense @ ((part.amounts * y_) @ dense)
        reached = evaluate_binary(problem, part.amounts, scores, 0.0, loss, bias)
        assert reached.violation <= 1e-6 * (1 + 1e-6)
        assert reached.primal - reached.dual <= 1e-5 * reached.primal
        assert part.report.dual == pytest.approx(reached.dual, rel=1e-6)
    if C < 1:
        peers = solve_linear_binary(setting, problems, LinearOptions(tol=1e-7)).results
        for part, peer in zip(found.results, peers, strict=True):
            np.testing.assert_allclose(part.weights, peer.weights, atol=1e-4 * np.abs(peer.weights).max())


@each_loss
@pytest.mark.parametrize("storage", ["dense32", "csr64-int32"])
def test_core_with_an_exact_bias_agrees_with_the_kernel_machine(loss: Loss, storage: str) -> None:
    X, y = noisy_classes(150, 2)
    rows = stored(X, storage)
    problems = pair_problems(TrainingSet.from_arrays(rows, y, C=0.5))
    setting = BinarySetting(rows, loss, exact_bias=True)
    part = solve_newton_binary(setting, problems, LinearOptions(tol=1e-7), zeros(problems)).results[0]
    peer = SVC(kernel="linear", C=0.5, loss=loss.value, bias="exact", multi_class="ova", tol=1e-7).fit(X, y)
    weights = peer.dual_coef_ @ X[peer.support_]
    np.testing.assert_allclose(np.abs(part.weights[:-1]), np.abs(weights[0]), atol=1e-4)
    assert abs(part.weights[-1]) == pytest.approx(abs(peer.intercept_[0]), abs=1e-4)
    signs = np.where(np.arange(len(part.amounts)) < problems[0].n_positive, 1.0, -1.0)
    assert abs(part.amounts @ signs) <= 1e-6


def test_core_from_near_weights_takes_few_steps_on_few_examples() -> None:
    X, y = noisy_classes(5000, 2)
    problems = pair_problems(TrainingSet.from_arrays(X, y, C=1.0))
    setting, options = BinarySetting(X, offset=1.0), LinearOptions(tol=1e-4)
    first = solve_newton_binary(setting, problems, options, zeros(problems)).results[0]
    more = pair_problems(TrainingSet.from_arrays(X, y, C=1.5))
    cold = solve_newton_binary(setting, more, options, zeros(more)).results[0]
    seed = NewtonStart(1.5 * first.amounts, weights=first.weights)
    warm = solve_newton_binary(setting, more, options, [seed]).results[0]
    assert warm.report.stop_reason is StopReason.CONVERGED
    assert warm.report.violation <= 1e-4
    assert warm.report.dual == pytest.approx(cold.report.dual, rel=1e-6)
    again = solve_newton_binary(setting, more, options, [NewtonStart(cold.amounts, weights=cold.weights)]).results[0]
    assert again.report.passes < cold.report.passes


@pytest.mark.parametrize("storage", ["dense64", "csr32-int64"])
@pytest.mark.parametrize("n_problems", [1, 6])
def test_core_has_the_same_bits_with_two_threads(storage: str, n_problems: int) -> None:
    X, y = noisy_classes(6000, 4)
    rows = stored(thin_out(np.hstack([X] * 4) * np.linspace(0.5, 1.5, X.shape[1] * 4)), storage)
    problems = pair_problems(TrainingSet.from_arrays(rows, y, C=10.0))[:n_problems]
    one, two = (
        solve_newton_binary(
            BinarySetting(rows, exact_bias=True), problems, LinearOptions(n_threads=n), zeros(problems)
        ).results
        for n in (1, 2)
    )
    for a, b in zip(one, two, strict=True):
        np.testing.assert_array_equal(a.amounts, b.amounts)
        np.testing.assert_array_equal(a.weights, b.weights)


def test_core_limits_and_refusals() -> None:
    X, y = noisy_classes(300, 3)
    problems, setting = pair_problems(TrainingSet.from_arrays(X, y, C=50.0)), BinarySetting(X, offset=1.0)
    limited = solve_newton_binary(setting, problems, LinearOptions(max_passes=2), zeros(problems)).results
    assert {part.report.stop_reason for part in limited} == {StopReason.MAX_ITER}
    assert all((part.amounts >= 0).all() and (part.amounts <= 50).all() for part in limited)
    late = solve_newton_binary(setting, problems, LinearOptions(max_time=0.0), zeros(problems)).results
    assert {part.report.stop_reason for part in late} == {StopReason.MAX_TIME}
    ended = solve_newton_binary(setting, problems, LinearOptions(tol=1e-300), zeros(problems)).results
    assert {part.report.stop_reason for part in ended} <= {StopReason.STALLED, StopReason.CONVERGED}
    starts = [NewtonStart(np.zeros(len(p.rows)), weights=np.zeros(3)) for p in problems]
    with pytest.raises(ValueError, match="one entry per feature"):
        solve_newton_binary(setting, problems, LinearOptions(), starts)
    with pytest.raises(ValueError, match="one entry per example"):
        solve_newton_binary(setting, problems, LinearOptions(), [NewtonStart(np.zeros(1)) for _ in problems])
    with pytest.raises(ValueError, match="no exact bias"):
        solve_linear_binary(BinarySetting(X, exact_bias=True), problems, LinearOptions())


def make_task(name: str, loss: Loss, n: int = 60, C: float = 0.7) -> LinearTask:
    X, y = noisy_classes(n, 4)
    weight = np.random.default_rng(1).uniform(0.2, 2.0, n)
    return LinearTask.of_machine(X, y, C * weight, MACHINES[name], 4, loss, offset=1.0, free_bias=False)


def random_point(task: LinearTask, seed: int) -> tuple[FloatArray, FloatArray]:
    rng = np.random.default_rng(seed)
    weights = 0.5 * rng.standard_normal((task.n_weights, task.n_columns))
    if task.sum_to_zero:
        weights -= weights.mean(axis=1, keepdims=True)
    amounts = rng.uniform(0.0, 1.0, (task.n_examples, task.table.class1.shape[1])) * task.C[:, None] * task.mask
    return weights, amounts / amounts.shape[1]


@each_loss
@pytest.mark.parametrize("name", COUPLED)
def test_a_step_is_the_best_point_within_the_bounds(name: str, loss: Loss) -> None:
    task = make_task(name, loss)
    weights, amounts = random_point(task, 3)
    scores, width = task.scores(weights), 0.8
    point, beta, moved = task.passes.step(scores, amounts, width, 1)
    np.testing.assert_allclose(beta, task.coefficients(point), atol=1e-14)
    sigma = width * task.C[:, None]
    assert moved == pytest.approx(np.sum((point - amounts) ** 2 / sigma))
    # The KKT conditions of the step: its own gradient, with the distance to the start as one more charge.
    gradient = np.where(task.mask, task.targets - task.margins(scores) - (point - amounts) / sigma, -np.inf)
    assert task.violation(point, gradient) <= 1e-12
    assert (point >= 0).all()
    assert not point[~task.mask].any()
    assert 0 < np.count_nonzero(point) < task.mask.sum()


@each_loss
@pytest.mark.parametrize("name", COUPLED)
def test_equations_are_the_derivative_of_the_gradient(name: str, loss: Loss) -> None:
    task = make_task(name, loss)
    weights, amounts = random_point(task, 5)
    regularization = np.linspace(0.5, 1.5, task.n_weights)
    width, h = 0.8, 1e-6
    point, _, _ = task.passes.step(task.scores(weights), amounts, width, 1)
    rng = np.random.default_rng(0)
    right = rng.standard_normal(weights.shape)
    right -= right.mean(axis=1, keepdims=True) if task.sum_to_zero else 0.0
    found = Equations(task, point, width, regularization).solve(right)

    def gathered(t: float) -> FloatArray:
        return task.gather(task.passes.step(task.scores(weights + t * found), amounts, width, 1)[1])

    image = regularization[:, None] * found - (gathered(h) - gathered(-h)) / (2 * h)
    image -= image.mean(axis=1, keepdims=True) if task.sum_to_zero else 0.0
    np.testing.assert_allclose(image, right, atol=1e-5)


@each_loss
@pytest.mark.parametrize("name", COUPLED)
def test_both_ways_to_solve_the_equations_agree(name: str, loss: Loss, monkeypatch: pytest.MonkeyPatch) -> None:
    task = make_task(name, loss)
    weights, amounts = random_point(task, 6)
    point, _, _ = task.passes.step(task.scores(weights), amounts, 0.8, 1)
    equations = Equations(task, point, 0.8, np.ones(task.n_weights), damping=np.full(task.n_weights, 0.1))
    right = np.random.default_rng(0).standard_normal(weights.shape)
    right -= right.mean(axis=1, keepdims=True) if task.sum_to_zero else 0.0
    by_weights = equations.solve(right)
    monkeypatch.setattr("multimargin.solvers.linear.systems.MOST_WEIGHTS", 0)
    np.testing.assert_allclose(equations.solve(right), by_weights, atol=1e-9)
    monkeypatch.setattr("multimargin.solvers.linear.systems.MOST_FREE", 0)
    np.testing.assert_allclose(equations.solve(right), by_weights, atol=1e-5)


@each_loss
@pytest.mark.parametrize("name", COUPLED)
def test_a_length_is_where_the_slope_vanishes(name: str, loss: Loss) -> None:
    task = make_task(name, loss)
    weights, amounts = random_point(task, 7)
    scores, width = task.scores(weights), 0.8
    _, beta, _ = task.passes.step(scores, amounts, width, 1)
    gradient = weights - task.gather(beta)
    direction = -gradient

    def slope(t: float) -> float:
        moved = weights + t * direction
        return float(
            np.vdot(moved - task.gather(task.passes.step(task.scores(moved), amounts, width, 1)[1]), direction)
        )

    linear, square = float(np.vdot(weights, direction)), float(np.vdot(direction, direction))
    t = task.passes.length((scores, task.scores(direction), amounts), width, linear, square, 1)
    assert t > 0
    assert abs(slope(t)) <= 0.101 * abs(slope(0.0))
    assert task.passes.length((scores, task.scores(-direction), amounts), width, -linear, square, 1) == 0.0


def test_a_step_far_beyond_the_bound_keeps_its_sum() -> None:
    """Whether the sum is C decides what is free; with a wide step v is far beyond C and rounding must not decide."""
    task = make_task("cs", Loss.HINGE)
    weights, amounts = random_point(task, 3)
    for width in (1e6, 1e12):
        point, _, _ = task.passes.step(task.scores(weights), amounts, width, 1)
        used = point.any(axis=1)
        np.testing.assert_allclose(point.sum(axis=1)[used], task.C[used], rtol=1e-14)


@pytest.mark.parametrize("name", ["ww", "cs", "llw"])
def test_passes_have_the_same_bits_with_two_threads(name: str) -> None:
    task = make_task(name, Loss.HINGE, n=8000)
    weights, amounts = random_point(task, 3)
    scores = task.scores(weights)
    found = []
    for n in (1, 2):
        point, beta, moved = task.passes.step(scores, amounts, 0.8, n)
        matrix = np.empty((task.n_weights * 4,) * 2)
        task.passes.matrix(task.data, task.constant, point, 0.8, matrix, n)
        t = task.passes.length((scores, task.scores(-weights), amounts), 0.8, -float(np.sum(weights**2)), 1.0, n)
        found.append((point, beta, moved, matrix, t))
    for one, two in zip(*found, strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("name", ["ova", "ww", "cs", "ovo"])
@pytest.mark.parametrize("bias", ["exact", "regularized"])
def test_estimators_have_the_same_bits_with_two_threads(name: str, bias: str, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = noisy_classes(4000, 3)
    fits = []
    for n in (1, 2):
        for module in ("solvers.linear.newton", "solvers.linear.systems", "solvers.linear.coordinate"):
            monkeypatch.setattr(f"multimargin.{module}.n_threads", lambda n=n: n)
        fits.append(LinearSVC(multi_class=name, bias=bias, C=30.0).fit(X, y))
    np.testing.assert_array_equal(fits[0].coef_, fits[1].coef_)
    np.testing.assert_array_equal(fits[0].intercept_, fits[1].intercept_)


@pytest.mark.parametrize("name", ["cs", "ww"])
def test_unequal_bounds_do_not_stall(name: str) -> None:
    """Examples of a rare class weigh more: bounds of different sizes side by side."""
    X, y = noisy_classes(240, 3)
    weight = np.where(y == 0, 7.0, 0.3)
    task = LinearTask.of_machine(X, y, 10 * weight, MACHINES[name], 3, Loss.HINGE, offset=0.0, free_bias=True)
    found = MultiplierMethod(task).run(1e-4, stop_after(2000, 60.0))
    assert found.stop_reason is StopReason.CONVERGED
    assert found.violation <= 1e-4


@pytest.mark.parametrize("bias", ["exact", "regularized", "none"])
def test_a_single_pair_is_the_binary_machine(bias: str) -> None:
    """Its rows are all of X, but in an order of their own."""
    X, y = noisy_classes(80, 2)
    pair, whole = (LinearSVC(multi_class=name, bias=bias, tol=1e-6).fit(X, y) for name in ("ovo", "ova"))
    assert pair.certificate_.stop_reason == "converged"
    np.testing.assert_allclose(pair.coef_, whole.coef_, atol=1e-5)
    np.testing.assert_allclose(pair.intercept_, whole.intercept_, atol=1e-5)


def documents(n: int, n_words: int, n_classes: int) -> tuple[sparse.csr_matrix, np.ndarray]:
    """Rows of a few frequent and some topical words, of length one."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, n_classes, n)
    topics = [rng.permutation(n_words) for _ in range(n_classes)]
    X = sparse.lil_matrix((n, n_words))
    for i, label in enumerate(y):
        words = np.minimum((5 * rng.pareto(1.0, 40)).astype(int), n_words - 1)
        X[i, np.where(rng.random(40) < 0.3, topics[label][words], words)] = 1.0
    return normalize(X.tocsr()), y


@pytest.mark.parametrize("C", [1.0, 30.0])
@pytest.mark.parametrize("name", ["ova", "ovo", "cs", "ww", "llw", "mmr"])
def test_wide_data_with_an_exact_bias(name: str, C: float) -> None:
    """With more features than a factor may have, b is found by rounds of coordinate steps."""
    X, y = documents(300, 4000, 3)
    found = LinearSVC(multi_class=name, C=C, tol=1e-4).fit(X, y)
    assert found.certificate_.stop_reason == "converged"
    assert "descent" in found.certificate_.solver
    assert verify(found, X, y).optimal
    peer = SVC(kernel="linear", multi_class=name, bias="exact", C=C, tol=1e-5).fit(X, y)
    own, wanted = ([part.dual for part in (c.parts or [c])] for c in (found.certificate_, peer.certificate_))
    np.testing.assert_allclose(own, wanted, rtol=1e-3)
    np.testing.assert_allclose(found.decision_function(X), peer.decision_function(X), atol=0.02)


def test_rounds_on_b_keep_limits() -> None:
    X, y = documents(200, 4000, 3)
    for limit, reason in (({"max_iter": 3}, "max_iter"), ({"max_time": 1e-6}, "max_time")):
        model = LinearSVC(C=30.0, tol=1e-9, **limit)
        with pytest.warns(ConvergenceWarning, match=reason):
            model.fit(X, y)
        assert not verify(model, X, y).optimal


@each_loss
@pytest.mark.parametrize("name", ["ova", "cs", "ww", "llw"])
def test_rounds_on_b_reach_tol_by_themselves(name: str, loss: Loss) -> None:
    X, y = documents(200, 3000, 3)
    data = TrainingSet.from_arrays(X, y, C=1.0)
    problem = DualProblem(data, MACHINES[name], KernelSpec("linear"), loss, Bias.EXACT)
    zero = (np.zeros((problem.n_examples, problem.n_components)), np.zeros(3))
    found = descend_with_bias(problem, LinearOptions(tol=1e-4), zero, None, linear_data(X))
    assert found.stop_reason is StopReason.CONVERGED
    assert found.bias is not None
    beta = coefficients(problem.machine, found.amounts, problem.data.y, 3)
    numbers = evaluate(problem, found.amounts, X @ (X.T @ beta), found.bias)
    assert numbers.violation <= 3e-4  # b has gone on by a tenth of tol, and counts in two scores
    assert np.abs(beta.sum(axis=0)).max() <= 1e-4 * np.abs(beta).sum()


@pytest.mark.parametrize("name", ["cs", "ww"])
@pytest.mark.parametrize("C", [10.0, 1000.0])
def test_unequal_classes_at_a_tight_tolerance(name: str, C: float) -> None:
    """Where steps are as wide as C and tol ask for, rounding of scores must not undo them."""
    X, y = make_classification(240, 6, n_informative=4, n_redundant=0, n_classes=3, flip_y=0.1, random_state=0)
    for rows in (slice(0, 180), slice(60, 240)):
        model = LinearSVC(multi_class=name, tol=1e-6, class_weight="balanced", C=C).fit(X[rows], y[rows])
        assert model.certificate_.stop_reason == "converged"
        assert verify(model, X[rows], y[rows]).optimal
