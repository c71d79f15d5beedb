"""Linear machines on weights: the optimum by an independent certificate, by the kernel solver and by scikit-learn."""

from __future__ import annotations

import itertools
import os
import signal
import threading
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.svm import LinearSVC

from helpers import draw_data, each_loss, each_machine, make_problem, noisy_classes, own_machines, random_amounts
from multimargin import _core
from multimargin.binary import evaluate_binary
from multimargin.certificate import Objectives, evaluate
from multimargin.kernels import KernelSpec
from multimargin.linear_core import (
    BinarySetting,
    LinearOptions,
    LinearResult,
    linear_data,
    solve_linear,
    solve_linear_binary,
    weighted_gram,
)
from multimargin.machines import FloatArray, Machine
from multimargin.matrices import DataMatrix
from multimargin.problem import Bias, DualProblem, Loss
from multimargin.schemes import BinaryProblem, class_problems, pair_problems
from multimargin.solver import SolverChoice, SolverOptions, SolverState, StopReason, solve
from multimargin.training_set import TrainingSet

LINEAR = KernelSpec("linear")
STORAGES = ("dense64", "dense32", "csr64-int32", "csr32-int64", "csr32-int32", "csr64-int64")


def stored(X: FloatArray, storage: str) -> DataMatrix:
    """Return X, rounded to float32, in one of the forms that the core reads."""
    value: Any = np.float32 if "32" in storage.split("-", maxsplit=1)[0] else np.float64
    rounded = np.ascontiguousarray(X.astype(np.float32).astype(value))
    if storage.startswith("dense"):
        return rounded
    rows = sparse.csr_array(rounded)
    integer: Any = np.int32 if storage.endswith("int32") else np.int64
    rows.indices, rows.indptr = rows.indices.astype(integer), rows.indptr.astype(integer)
    return rows


def thin_out(X: FloatArray, seed: int = 0) -> FloatArray:
    """Return X with zeros, among them an empty row."""
    kept = np.where(np.random.default_rng(seed).uniform(size=X.shape) < 0.4, 0.0, X)
    kept[3] = 0.0
    return kept


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
    """Assert that the result is feasible and optimal by its own weights, and that the report says so."""
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
    assert 5000 <= run(problem, tol=1e-6, max_cost=5000.0).report.cost <= 5100
    assert run(problem, tol=1e-6, max_time=0.0).report.n_iter == 0


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
    data = TrainingSet.from_arrays(X, y, C=0.1)
    parts = solve_linear_binary(BinarySetting(X), pair_problems(data), LinearOptions(tol=1e-300)).results
    assert all(part.report.violation < 1e-14 for part in parts)
    # Where the last violation is 0 exactly, the tolerance was met.
    reasons = {part.report.stop_reason for part in parts}
    assert StopReason.STALLED in reasons
    assert reasons <= {StopReason.STALLED, StopReason.CONVERGED}


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
    setting = BinarySetting(X, Loss.HINGE)
    batch = solve_linear_binary(setting, [endless_pair(problem.data)], LinearOptions(tol=1e-300), watch=fail)
    assert isinstance(batch.error, RuntimeError)
    assert batch.results[0].report.stop_reason is StopReason.INTERRUPTED


def endless_pair(data: TrainingSet) -> BinaryProblem:
    """Return a problem whose C is so large that coordinate descent takes for ever."""
    pair = pair_problems(data)[0]
    return BinaryProblem(pair.positive, pair.negative, pair.rows, np.full(len(pair.rows), 1e9))


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_interrupt_ends_a_batch_on_two_threads() -> None:
    X, y = noisy_classes(400, 3)
    data = TrainingSet.from_arrays(X, y, C=1.0)
    problems = [endless_pair(data)] * 3
    timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    batch = solve_linear_binary(BinarySetting(X), problems, LinearOptions(tol=1e-300, n_threads=2))
    timer.join()
    assert isinstance(batch.error, KeyboardInterrupt)
    for problem, part in zip(problems, batch.results, strict=True):
        assert part.report.stop_reason is StopReason.INTERRUPTED
        reached = check_binary(X, problem, part.amounts, part.weights, Loss.HINGE)
        assert part.report.dual == pytest.approx(reached.dual, rel=1e-6)


def check_binary(
    X: DataMatrix, problem: BinaryProblem, amounts: FloatArray, weights: FloatArray, loss: Loss
) -> Objectives:
    """Return the objectives by the weights, after checking that these belong to the amounts."""
    rows = X[problem.rows]
    dense = np.asarray(rows.toarray() if sparse.issparse(rows) else rows, dtype=np.float64)
    if len(weights) > dense.shape[1]:
        dense = np.column_stack([dense, np.ones(len(dense))])
    y = np.where(np.arange(len(amounts)) < problem.n_positive, 1.0, -1.0)
    np.testing.assert_allclose(weights, (amounts * y) @ dense, rtol=1e-7, atol=1e-9 * np.abs(amounts).max())
    bias = Bias.REGULARIZED if len(weights) > X.shape[1] else Bias.NONE
    return evaluate_binary(problem, amounts, dense @ weights, 0.0, loss, bias)


@each_loss
@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("offset", [0.0, 1.0])
def test_binary_problems_of_pairs_and_classes(loss: Loss, storage: str, offset: float) -> None:
    X, y = noisy_classes(90, 4)
    rows = stored(thin_out(X), storage)
    weight = np.random.default_rng(0).uniform(0.2, 2.0, len(y))
    data = TrainingSet.from_arrays(rows, y, C=0.3, sample_weight=weight)
    problems = [*pair_problems(data), *class_problems(data)]
    batch = solve_linear_binary(BinarySetting(rows, loss, offset), problems, LinearOptions(tol=1e-6))
    for problem, part in zip(problems, batch.results, strict=True):
        reached = check_binary(rows, problem, part.amounts, part.weights, loss)
        assert part.report.stop_reason is StopReason.CONVERGED
        assert reached.violation <= 1e-6 * (1 + 1e-6)
        assert part.report.violation == pytest.approx(reached.violation, rel=1e-6, abs=1e-12)
        assert part.report.dual == pytest.approx(reached.dual, rel=1e-12)
        assert (reached.primal - reached.dual) / reached.primal <= 1e-5
        assert part.report.n_support == np.count_nonzero(part.amounts)


@each_loss
@pytest.mark.parametrize("storage", ["dense64", "csr64-int32"])
def test_binary_agrees_with_scikit_learn(loss: Loss, storage: str) -> None:
    X, y = noisy_classes(150, 2)
    rows = stored(X, storage)
    data = TrainingSet.from_arrays(rows, y, C=0.5)
    part = solve_linear_binary(BinarySetting(rows, loss, 1.0), pair_problems(data), LinearOptions(tol=1e-8)).results[0]
    peer = LinearSVC(C=0.5, loss=loss.value, dual=True, intercept_scaling=1, tol=1e-8, max_iter=1_000_000)
    peer.fit(rows, y)
    np.testing.assert_allclose(-part.weights[:-1], peer.coef_[0], atol=1e-6)
    assert -part.weights[-1] == pytest.approx(peer.intercept_[0], abs=1e-6)


def test_one_vs_all_is_as_many_binary_problems() -> None:
    X, y = noisy_classes(120, 4)
    problem = linear_problem(X, y, "ova", Loss.HINGE, C=0.2, bias=Bias.REGULARIZED)
    machine = run(problem, tol=1e-7)
    setting = BinarySetting(X, Loss.HINGE, 1.0)
    batch = solve_linear_binary(setting, class_problems(problem.data), LinearOptions(tol=1e-7))
    together = np.column_stack([part.weights for part in batch.results])
    np.testing.assert_allclose(together, machine.weights, atol=1e-5)
    assert sum(part.report.dual for part in batch.results) == pytest.approx(machine.report.dual, rel=1e-8)


@pytest.mark.parametrize("storage", ["dense64", "dense32", "csr64-int32"])
def test_number_of_threads_changes_no_bit(storage: str) -> None:
    X, y = noisy_classes(3000, 5)
    rows = stored(thin_out(np.hstack([X] * 4) * np.linspace(0.5, 1.5, 24)), storage)
    data = TrainingSet.from_arrays(rows, y, C=0.3)
    problems = pair_problems(data)
    batches = [
        solve_linear_binary(BinarySetting(rows, offset=1.0), problems, LinearOptions(tol=1e-2, n_threads=n)).results
        for n in (1, 2)
    ]
    for one, two in zip(*batches, strict=True):
        np.testing.assert_array_equal(one.amounts, two.amounts)
        np.testing.assert_array_equal(one.weights, two.weights)
        assert one.report.n_iter == two.report.n_iter


def test_binary_limits_and_starts() -> None:
    X, y = noisy_classes(300, 3)
    data = TrainingSet.from_arrays(X, y, C=0.5)
    problems, setting = pair_problems(data), BinarySetting(X, Loss.HINGE, 1.0)
    whole = solve_linear_binary(setting, problems, LinearOptions(tol=1e-6)).results
    limits: list[tuple[dict[str, float], StopReason]] = [
        ({"max_iter": 7}, StopReason.MAX_ITER),
        ({"max_passes": 2}, StopReason.MAX_ITER),
        ({"max_time": 0.0}, StopReason.MAX_TIME),
        ({"max_cost": 5000.0}, StopReason.UNFINISHED),
    ]
    for limit, reason in limits:
        parts = solve_linear_binary(setting, problems, LinearOptions(tol=1e-6, **limit)).results  # type: ignore[arg-type]
        assert {part.report.stop_reason for part in parts} == {reason}
        for problem, part in zip(problems, parts, strict=True):
            check_binary(X, problem, part.amounts, part.weights, Loss.HINGE)
        starts = [part.amounts for part in parts]
        rest = solve_linear_binary(setting, problems, LinearOptions(tol=1e-6), starts).results
        for one, other in zip(whole, rest, strict=True):
            assert one.report.dual == pytest.approx(other.report.dual, rel=1e-8)
    again = solve_linear_binary(setting, problems, LinearOptions(tol=1e-6), [part.amounts for part in whole]).results
    assert [(part.report.passes, part.report.n_iter) for part in again] == [(1, 0)] * 3


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("n_features", [1, 5, 16, 39])
def test_weighted_gram_is_that_of_numpy(storage: str, n_features: int) -> None:
    rng = np.random.default_rng(n_features)
    X = rng.normal(size=(700, n_features))
    X[rng.uniform(size=X.shape) < 0.8] = 0.0
    rows, weights = rng.integers(0, 700, 1500), rng.normal(size=1500)
    data = stored(X, storage)
    out = np.full((n_features, n_features), np.nan)
    assert weighted_gram(_core.LinearData(data) if storage.startswith("dense") else data, rows, weights, out) is out
    dense = X.astype(np.float32).astype(np.float64)[rows]
    np.testing.assert_allclose(out, dense.T @ (weights[:, None] * dense), atol=1e-11)
    np.testing.assert_array_equal(out, out.T)


@pytest.mark.parametrize("storage", ["dense64", "csr64-int32"])
def test_weighted_gram_does_not_depend_on_threads(storage: str) -> None:
    rng = np.random.default_rng(0)
    data = _core.LinearData(stored(rng.normal(size=(9000, 120)), "dense64"))
    if storage != "dense64":
        data = linear_data(stored(rng.normal(size=(3000, 120)), storage))
    rows, weights = rng.integers(0, 3000, 9500), rng.uniform(size=9500)
    one, two = (weighted_gram(data, rows, weights, np.empty((120, 120)), n) for n in (1, 2))
    np.testing.assert_array_equal(one, two)


def test_dense_data_with_many_zeros_become_sparse_rows() -> None:
    X = np.zeros((50, 30))
    X[:, 0], X[::2, 1] = 1.0, 1.0
    y = np.arange(50) % 2
    setting = BinarySetting(X)
    part = solve_linear_binary(
        setting, pair_problems(TrainingSet.from_arrays(X, y, C=1.0)), LinearOptions(max_passes=1)
    ).results[0]
    assert part.report.cost < 50 * 30


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
    pairs = pair_problems(problem.data)
    with pytest.raises(ValueError, match="start needs one entry per example"):
        solve_linear_binary(BinarySetting(X), pairs[:1], LinearOptions(), [np.zeros(1)])
    with pytest.raises(ValueError, match="offset"):
        solve_linear_binary(BinarySetting(X, offset=-1.0), pairs, LinearOptions())
    with pytest.raises(ValueError, match="row does not exist"):
        solve_linear_binary(BinarySetting(X[:2]), pairs, LinearOptions())
    with pytest.raises(ValueError, match="one row and column per feature"):
        weighted_gram(X, np.arange(3), np.ones(3), np.empty((2, 2)))
    with pytest.raises(ValueError, match="same length"):
        weighted_gram(X, np.arange(3), np.ones(2), np.empty((6, 6)))
    with pytest.raises(ValueError, match="row does not exist"):
        weighted_gram(X, np.array([40]), np.ones(1), np.empty((6, 6)))


def test_empty_batch_and_empty_side() -> None:
    X, _ = noisy_classes(20, 3)
    assert solve_linear_binary(BinarySetting(X), [], LinearOptions()).results == ()
    none = np.arange(0)
    for positive, negative in itertools.permutations([none, np.arange(5)]):
        problem = BinaryProblem(positive, negative, np.arange(5), np.ones(5))
        part = solve_linear_binary(BinarySetting(X, offset=1.0), [problem], LinearOptions(tol=1e-6)).results[0]
        assert check_binary(X, problem, part.amounts, part.weights, Loss.HINGE).violation <= 1.1e-6
