"""Linear machines on weights: the optimum by an independent certificate, by the kernel solver and by scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from multimargin._typing import DataMatrix, FloatArray
from multimargin.kernels.spec import KernelSpec
from multimargin.problems.machines import Machine
from multimargin.problems.problem import Bias, DualProblem, Loss
from multimargin.problems.training_set import TrainingSet
from multimargin.solvers.certificate import Objectives, evaluate
from multimargin.solvers.core import SolverState, solve
from multimargin.solvers.linear.core import LinearOptions, LinearResult, solve_linear
from multimargin.solvers.options import SolverChoice, SolverOptions
from multimargin.solvers.report import StopReason
from support.helpers import (
    STORAGES,
    draw_data,
    each_loss,
    each_machine,
    make_problem,
    noisy_classes,
    own_machines,
    random_amounts,
    stored,
    thin_out,
)

LINEAR = KernelSpec("linear")


def linear_problem(
    X: DataMatrix, y: np.ndarray, machine: str | Machine, loss: Loss, *, weight: FloatArray | None = None, **kw: Any
) -> DualProblem:
    if not sparse.issparse(X):
        return make_problem(X, y, machine, kernel=LINEAR, loss=loss, weight=weight, **kw)
    dense = make_problem(X.toarray(), y, machine, kernel=LINEAR, loss=loss, weight=weight, **kw)
    data = TrainingSet.from_arrays(X, y, C=kw.get("C", 1.0), sample_weight=weight)
    return DualProblem(data, dense.machine, dense.kernel, loss, dense.bias)


def scores(problem: DualProblem, result: LinearResult) -> FloatArray:
    rows = problem.data.X[problem.data.rows]
    X = np.asarray(rows.toarray() if sparse.issparse(rows) else rows, dtype=np.float64)
    offset = problem.trained_kernel.offset
    if offset:
        X = np.column_stack([X, np.full(len(X), np.sqrt(offset))])
    assert result.weights.shape == (X.shape[1], problem.n_classes)
    found: FloatArray = X @ result.weights
    return found


def check(problem: DualProblem, result: LinearResult, tol: float) -> Objectives:
    """Assert that the result is feasible and optimal by its own weights, and that the report agrees."""
    report = result.report
    reached = evaluate(problem, result.amounts, scores(problem, result))
    assert report.stop_reason is StopReason.CONVERGED
    assert report.verified
    assert reached.violation <= tol * (1 + 1e-6) + 1e-12
    assert report.violation == pytest.approx(reached.violation, rel=1e-6, abs=1e-12)
    assert report.dual == pytest.approx(reached.dual, rel=1e-12)
    assert report.n_support == np.count_nonzero(result.amounts.sum(axis=1))
    assert -1e-9 <= (reached.primal - reached.dual) / reached.primal <= 1e-3
    return reached


def run(problem: DualProblem, **options: Any) -> LinearResult:
    return solve_linear(problem, LinearOptions(**options))


@each_machine
@each_loss
@pytest.mark.parametrize("storage", STORAGES[:3])
def test_machine_reaches_the_optimum_of_the_kernel_solver(name: str, loss: Loss, storage: str) -> None:
    X, y = noisy_classes(90, 4)
    weight = np.random.default_rng(0).uniform(0.2, 2.0, len(y))
    weight[5] = 0.0
    problem = linear_problem(
        stored(thin_out(X) / 3, storage), y, name, loss, C=0.3, bias=Bias.REGULARIZED, weight=weight
    )
    reached = check(problem, run(problem, tol=1e-6), 1e-6)
    other = solve(problem, SolverOptions(SolverChoice.S2DO, tol=1e-6))
    assert other.report.stop_reason is StopReason.CONVERGED
    assert reached.dual == pytest.approx(other.report.dual, rel=1e-6)


@pytest.mark.parametrize("storage", STORAGES)
def test_every_storage_gives_the_same_machine(storage: str) -> None:
    X, y = noisy_classes(60, 3)
    X = thin_out(X)
    first = run(linear_problem(stored(X, "dense64"), y, "ww", Loss.HINGE, C=0.1), tol=1e-8)
    result = run(linear_problem(stored(X, storage), y, "ww", Loss.HINGE, C=0.1), tol=1e-8)
    np.testing.assert_allclose(result.weights, first.weights, atol=1e-6)


@pytest.mark.parametrize("n_classes", [2, 4, 5, 9, 17, 21])
@pytest.mark.parametrize("name", ["llw", "cs"])
def test_any_number_of_classes(name: str, n_classes: int) -> None:
    X, y = draw_data(n_classes, 90, n_classes, 7)
    problem = linear_problem(X, y, name, Loss.HINGE, C=0.1, bias=Bias.REGULARIZED)
    check(problem, run(problem, tol=1e-5), 1e-5)


@pytest.mark.parametrize("machine", own_machines(), ids=lambda machine: machine.name)
@each_loss
def test_own_machine_reaches_the_optimum_of_the_kernel_solver(machine: Machine, loss: Loss) -> None:
    X, y = draw_data(5, 40, 3, 4)
    problem = linear_problem(X, y, machine, loss, C=0.5, bias=Bias.REGULARIZED)
    reached = check(problem, run(problem, tol=1e-6), 1e-6)
    other = solve(problem, SolverOptions(SolverChoice.S2DO, tol=1e-6))
    assert reached.dual == pytest.approx(other.report.dual, rel=1e-6)


@each_machine
@each_loss
def test_shrinking_does_not_move_the_optimum(name: str, loss: Loss) -> None:
    X, y = noisy_classes(120, 3)
    problem = linear_problem(X, y, name, loss, C=0.5)
    with_it, without = (check(problem, run(problem, tol=1e-6, shrinking=on), 1e-6) for on in (True, False))
    assert with_it.dual == pytest.approx(without.dual, rel=1e-8)


def test_shrinking_saves_visits() -> None:
    X, y = noisy_classes(400, 3)
    problem = linear_problem(X, y, "ww", Loss.HINGE, C=0.5)
    cost = [run(problem, tol=1e-4, shrinking=on).report.cost for on in (True, False)]
    assert cost[0] < 0.5 * cost[1]


def test_targets_shifted_by_a_given_bias_and_any_offset() -> None:
    X, y = noisy_classes(80, 3)
    data = TrainingSet.from_arrays(X, y, C=0.4)
    bias = np.array([0.3, -0.1, -0.2])
    kernel = LINEAR.with_offset(2.5)
    shifted = DualProblem(data, make_problem(X, y, "ww").machine, kernel, given_bias=bias)
    result = run(shifted, tol=1e-6)
    assert result.report.stop_reason is StopReason.CONVERGED
    reached = evaluate(shifted, result.amounts, scores(shifted, result))
    assert reached.violation <= 1e-6 * (1 + 1e-6)
    other = solve(shifted, SolverOptions(SolverChoice.TWO_LEVEL, tol=1e-6))
    assert reached.dual == pytest.approx(other.report.dual, rel=1e-6)


@pytest.mark.parametrize("name", ["ww", "cs", "ova"])
def test_hard_margin(name: str) -> None:
    X = np.array([[0.0, 2.0], [0.3, 2.5], [2.0, -1.0], [2.2, -1.3], [-2.0, -1.0], [-2.5, -1.2]])
    y = np.array([0, 0, 1, 1, 2, 2])
    problem = linear_problem(X, y, name, Loss.HINGE, C=np.inf, bias=Bias.REGULARIZED)
    result = run(problem, tol=1e-6)
    reached = evaluate(problem, result.amounts, scores(problem, result))
    assert reached.violation <= 1e-6 * (1 + 1e-6)
    assert reached.primal == pytest.approx(reached.dual, rel=1e-4)


def test_limits_and_going_on() -> None:
    X, y = noisy_classes(100, 3)
    problem = linear_problem(X, y, "ww", Loss.HINGE)
    whole = run(problem, tol=1e-6)
    limits: list[tuple[dict[str, float], StopReason]] = [
        ({"max_iter": 7}, StopReason.MAX_ITER),
        ({"max_passes": 3}, StopReason.MAX_ITER),
        ({"max_time": 0.0}, StopReason.MAX_TIME),
        ({"max_cost": 5000.0}, StopReason.UNFINISHED),
    ]
    for limit, reason in limits:
        part = run(problem, tol=1e-6, **limit)
        assert part.report.stop_reason is reason
        assert not part.report.verified
        assert (part.amounts >= 0).all()
        assert (part.amounts <= problem.data.C[:, None]).all()
        reached = evaluate(problem, part.amounts, scores(problem, part))  # weights belong to amounts
        assert part.report.dual == pytest.approx(reached.dual, rel=1e-9, abs=1e-12)
        start = SolverState(part.amounts, None, problem.n_classes)
        rest = solve_linear(problem, LinearOptions(tol=1e-6), start)
        assert check(problem, rest, 1e-6).dual == pytest.approx(whole.report.dual, rel=1e-8)
    assert run(problem, tol=1e-6, max_iter=7).report.n_iter == 7
    assert run(problem, tol=1e-6, max_passes=3).report.passes == 3
    assert run(problem, tol=1e-6, max_cost=5000.0).report.cost <= 5100
    assert run(problem, tol=1e-6, max_time=0.0).report.n_iter == 0


def test_what_is_hopeless_is_given_up_early() -> None:
    X, y = noisy_classes(200, 3)
    easy, hard = (linear_problem(X, y, "cs", Loss.HINGE, C=C) for C in (0.01, 1e6))
    enough = 4 * run(easy, tol=1e-4).report.cost
    assert run(easy, tol=1e-4, max_cost=enough).report.stop_reason is StopReason.CONVERGED
    given_up = run(hard, tol=1e-4, max_cost=enough)
    assert given_up.report.stop_reason is StopReason.UNFINISHED
    assert 0.1 * enough <= given_up.report.cost < 0.5 * enough
    assert (given_up.amounts >= 0).all()


@each_machine
def test_a_solution_is_recognised_in_one_pass(name: str) -> None:
    X, y = noisy_classes(100, 3)
    problem = linear_problem(X, y, name, Loss.HINGE, C=0.5, bias=Bias.REGULARIZED)
    first = run(problem, tol=1e-5)
    again = solve_linear(problem, LinearOptions(tol=1e-5), SolverState(first.amounts, None, problem.n_classes))
    assert (again.report.passes, again.report.n_iter) == (1, 0)
    np.testing.assert_array_equal(again.amounts, first.amounts)


@each_machine
def test_any_start_is_made_feasible(name: str) -> None:
    X, y = noisy_classes(60, 3)
    problem = linear_problem(X, y, name, Loss.HINGE)
    amounts = 3.0 * random_amounts(problem, np.random.default_rng(1)) - 0.5
    amounts[2] = np.nan
    start = SolverState(amounts, None, problem.n_classes)
    stopped = solve_linear(problem, LinearOptions(max_iter=1), start)
    assert (stopped.amounts >= 0).all()
    used = stopped.amounts.sum(axis=1, keepdims=True) if name in ("cs", "adm", "atm") else stopped.amounts
    assert (used <= problem.data.C[:, None] * (1 + 1e-12)).all()
    check(problem, solve_linear(problem, LinearOptions(tol=1e-5), start), 1e-5)


def test_a_tolerance_below_rounding_stalls() -> None:
    X, y = noisy_classes(40, 3)
    result = run(linear_problem(X, y, "ww", Loss.HINGE, C=0.1), tol=1e-300)
    assert result.report.stop_reason is StopReason.STALLED
    assert result.report.violation < 1e-10


def test_same_seed_same_bits_other_seed_same_optimum() -> None:
    X, y = noisy_classes(80, 3)
    problem = linear_problem(X, y, "cs", Loss.HINGE)
    one, same, other = (run(problem, tol=1e-6, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.weights, same.weights)
    assert not np.array_equal(one.weights, other.weights)
    assert one.report.dual == pytest.approx(other.report.dual, rel=1e-7)


def test_callback_stops_and_sees_feasible_amounts() -> None:
    X, y = noisy_classes(200, 3)
    problem = linear_problem(X, y, "cs", Loss.SQUARED_HINGE, C=100.0)
    seen: list[tuple[Any, SolverState]] = []

    def watch(progress: Any, snapshot: Any) -> bool:
        seen.append((progress, snapshot()))
        return len(seen) == 3

    result = solve_linear(problem, LinearOptions(tol=1e-300), watch=watch)
    assert result.report.stop_reason is StopReason.CALLBACK
    progress, state = seen[-1]
    np.testing.assert_array_equal(state.amounts, result.amounts)
    assert progress.iteration == result.report.n_iter
    assert progress.dual == pytest.approx(result.report.dual, rel=1e-12)
    assert seen[0][0].dual <= progress.dual
    reached = evaluate(problem, result.amounts, scores(problem, result))
    assert reached.dual == pytest.approx(result.report.dual, rel=1e-9)


def test_exception_of_the_callback_is_kept() -> None:
    X, y = noisy_classes(200, 3)
    problem = linear_problem(X, y, "cs", Loss.SQUARED_HINGE, C=100.0)

    def fail(progress: Any, snapshot: Any) -> bool:
        raise RuntimeError("enough")

    result = solve_linear(problem, LinearOptions(tol=1e-300), watch=fail)
    assert result.report.stop_reason is StopReason.INTERRUPTED
    assert isinstance(result.error, RuntimeError)


def test_errors() -> None:
    X, y = noisy_classes(30, 3)
    with pytest.raises(ValueError, match=r"kernel is 'rbf'.*'linear'"):
        run(make_problem(X, y, "ww"))
    with pytest.raises(ValueError, match="exact bias"):
        run(linear_problem(X, y, "ww", Loss.HINGE, bias=Bias.EXACT))
    with pytest.raises(ValueError, match=r"C=inf|hard margin"):
        run(linear_problem(X, y, "ww", Loss.HINGE, C=np.inf))
    problem = linear_problem(X, y, "ww", Loss.HINGE)
    with pytest.raises(ValueError, match="start from has 3 examples"):
        solve_linear(problem, LinearOptions(), SolverState(np.zeros((3, 2)), None, 3))
