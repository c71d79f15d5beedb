"""Binary linear machines in batches, and weighted Gram matrices of features."""

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

from multimargin import _core
from multimargin._typing import DataMatrix, FloatArray
from multimargin.kernels.spec import KernelSpec
from multimargin.problems.problem import Bias, Loss
from multimargin.problems.schemes import BinaryProblem, class_problems, pair_problems
from multimargin.problems.training_set import TrainingSet
from multimargin.solvers.binary import evaluate_binary
from multimargin.solvers.certificate import Objectives
from multimargin.solvers.linear.core import (
    BinarySetting,
    LinearOptions,
    linear_data,
    solve_linear,
    solve_linear_binary,
    weighted_gram,
)
from multimargin.solvers.report import StopReason
from support.helpers import STORAGES, each_loss, make_problem, noisy_classes, stored, thin_out


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
    problem = make_problem(X, y, "ova", C=0.2, kernel=KernelSpec("linear"), bias=Bias.REGULARIZED)
    machine = solve_linear(problem, LinearOptions(tol=1e-7))
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


def test_a_tolerance_below_rounding_stalls() -> None:
    X, y = noisy_classes(40, 3)
    data = TrainingSet.from_arrays(X, y, C=0.1)
    parts = solve_linear_binary(BinarySetting(X), pair_problems(data), LinearOptions(tol=1e-300)).results
    assert all(part.report.violation < 1e-14 for part in parts)
    # Where the last violation is 0 exactly, the tolerance was met.
    reasons = {part.report.stop_reason for part in parts}
    assert StopReason.STALLED in reasons
    assert reasons <= {StopReason.STALLED, StopReason.CONVERGED}


def endless_pair(data: TrainingSet) -> BinaryProblem:
    """Return a problem whose C is so large that coordinate descent does not finish."""
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


def test_exception_of_the_callback_is_kept() -> None:
    X, y = noisy_classes(200, 3)

    def fail(progress: Any, snapshot: Any) -> bool:
        raise RuntimeError("enough")

    setting = BinarySetting(X, Loss.HINGE)
    batch = solve_linear_binary(
        setting, [endless_pair(TrainingSet.from_arrays(X, y, C=1.0))], LinearOptions(tol=1e-300), watch=fail
    )
    assert isinstance(batch.error, RuntimeError)
    assert batch.results[0].report.stop_reason is StopReason.INTERRUPTED


def test_errors() -> None:
    X, y = noisy_classes(30, 3)
    pairs = pair_problems(TrainingSet.from_arrays(X, y, C=1.0))
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
