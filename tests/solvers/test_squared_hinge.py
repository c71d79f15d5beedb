"""ASVM and LSVM: the optimum of the squared hinge, by certificates and compared with SVC; every stop reason; hard
data."""

from __future__ import annotations

import itertools
import os
import signal
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from threadpoolctl import threadpool_info, threadpool_limits

from multimargin import SVC, Progress
from multimargin._typing import FloatArray
from multimargin.kernels.spec import KernelSpec
from multimargin.problems.coupling import coefficients
from multimargin.problems.problem import Bias, Loss
from multimargin.solvers.certificate import evaluate
from multimargin.solvers.linear import lsvm, squared_hinge
from multimargin.solvers.linear.asvm import solve_asvm
from multimargin.solvers.linear.lsvm import solve_lsvm
from multimargin.solvers.linear.squared_hinge import LinearSolution, SquaredHinge, stopping_gap
from multimargin.solvers.options import SolverOptions
from multimargin.solvers.report import StopReason
from support.helpers import make_problem

LINEAR = KernelSpec("linear")
RNG = np.random.default_rng(3)
X = RNG.normal(size=(120, 5))
Y = np.where(X @ np.arange(1.0, 6.0) + 4 * RNG.normal(size=120) > 1, 1.0, -1.0)  # half of them are no support vectors
each_solver = pytest.mark.parametrize("solve", [solve_asvm, solve_lsvm])
Solver = Callable[..., LinearSolution]


def options(tol: float = 1e-8, **limits: Any) -> SolverOptions:
    return SolverOptions(tol=tol, **limits)


def assert_true(problem: SquaredHinge, found: LinearSolution) -> None:
    """The point is feasible, its weights are right, and the report describes it."""
    assert found.amounts.min() >= 0
    numbers = problem.judge(found.amounts)
    report = found.report
    assert (report.violation, report.dual, report.primal) == (numbers.violation, numbers.dual, numbers.primal)
    np.testing.assert_array_equal(np.append(found.coef, found.intercept), problem.transposed(found.amounts))
    assert report.primal >= report.dual - 1e-9 * found.amounts.sum()


def violation_of(rows: FloatArray, y: FloatArray, C: float, a: FloatArray) -> float:
    """The KKT violation by the certificate of the package: "ww" on two classes, whose margins are twice as large."""
    problem = make_problem(
        rows, (y > 0).astype(int), "ww", C=C / 2, kernel=LINEAR, loss=Loss.SQUARED_HINGE, bias=Bias.REGULARIZED
    )
    beta = coefficients(problem.machine, a[:, None], problem.data.y, 2)
    return evaluate(problem, a[:, None], (rows @ rows.T + 1.0) @ beta).violation / 2


@each_solver
@pytest.mark.parametrize("C", [2.0**-8, 1.0, 2.0**8])
def test_same_optimum_as_svc(solve: Solver, C: float) -> None:
    found = solve(SquaredHinge.of(X, Y, C), options())
    peer = SVC(kernel="linear", C=C, loss="squared_hinge", bias="regularized", tol=1e-8).fit(X, Y)
    assert found.report.stop_reason is StopReason.CONVERGED
    assert found.report.dual == pytest.approx(peer.certificate_.dual, rel=1e-9)
    np.testing.assert_allclose(found.coef, peer.coef_[0], atol=1e-6)
    assert found.intercept == pytest.approx(peer.intercept_[0], abs=1e-6)
    assert violation_of(X, Y, C, found.amounts) <= 1.1e-8  # the sums of another order
    assert_true(SquaredHinge.of(X, Y, C), found)


@each_solver
def test_one_price_per_example(solve: Solver) -> None:
    weight = np.random.default_rng(0).uniform(0.01, 30.0, len(Y))
    found = solve(SquaredHinge.of(X, Y, 2.0 * weight), options())
    peer = SVC(kernel="linear", C=2.0, loss="squared_hinge", bias="regularized", tol=1e-8)
    peer.fit(X, Y, sample_weight=weight)
    assert found.report.stop_reason is StopReason.CONVERGED
    np.testing.assert_allclose(found.coef, peer.coef_[0], atol=1e-6)


@each_solver
def test_sparse_rows_give_the_same(solve: Solver) -> None:
    thin = np.where(np.abs(X) < 0.8, 0.0, X)
    dense = solve(SquaredHinge.of(thin, Y, 3.0), options())
    for form in (sparse.csr_matrix, sparse.csr_array):
        found = solve(SquaredHinge.of(form(thin), Y, 3.0), options())
        assert found.report.n_iter == dense.report.n_iter
        np.testing.assert_allclose(found.amounts, dense.amounts, atol=1e-8)


def hard_data() -> dict[str, tuple[FloatArray, FloatArray, float]]:
    constant = np.column_stack([X, np.full(len(Y), 3.0), np.zeros(len(Y))])
    return {
        "duplicate rows": (np.vstack([X, X, X]), np.concatenate([Y, Y, -Y]), 2.0**8),
        "constant columns": (constant, Y, 2.0**8),
        "more features than rows": (np.random.default_rng(1).normal(size=(12, 40)), Y[:12], 2.0**8),
        "one class": (X, np.ones(len(Y)), 1.0),
        "one row": (X[:1], Y[:1], 1.0),
        "columns of different size": (X * 10.0 ** np.arange(-2, 3), Y, 2.0**4),
    }


@each_solver
@pytest.mark.parametrize("case", hard_data())
def test_hard_data(solve: Solver, case: str) -> None:
    rows, y, C = hard_data()[case]
    problem = SquaredHinge.of(rows, y, C)
    found = solve(problem, options(1e-6, max_time=30.0))
    assert found.report.stop_reason is StopReason.CONVERGED
    assert found.report.violation <= 1e-6
    assert found.report.primal - found.report.dual <= 1e-5 * max(1.0, found.amounts.sum())
    assert_true(problem, found)


def test_separable_data_are_easy_for_one_and_slow_for_the_other() -> None:
    problem = SquaredHinge.of(X + 20 * Y[:, None], Y, 2.0**8)
    quick = solve_asvm(problem, options(1e-6))
    assert quick.report.stop_reason is StopReason.CONVERGED
    slow = solve_lsvm(problem, options(1e-6, max_iter=1000))  # KCSL04 ends LSVM after 1,000 iterations, too
    assert slow.report.stop_reason is StopReason.MAX_ITER
    assert slow.report.violation > 0.1
    assert slow.report.dual <= quick.report.dual
    assert_true(problem, slow)


@each_solver
def test_random_problems(solve: Solver) -> None:
    rng = np.random.default_rng(7)
    for _ in range(30):
        n, m = rng.integers(2, 40), rng.integers(1, 8)
        rows, y = rng.normal(size=(n, m)), rng.choice([-1.0, 1.0], n)
        problem = SquaredHinge.of(rows, y, 2.0 ** rng.uniform(-8, 8, n))
        found = solve(problem, options(1e-7))
        assert found.report.stop_reason is StopReason.CONVERGED
        assert found.report.violation <= 1e-7


def test_the_data_are_not_too_easy() -> None:
    for C in (1.0, 2.0**8):
        asvm, lsvm = (solve(SquaredHinge.of(X, Y, C), options()) for solve in (solve_asvm, solve_lsvm))
        assert 0.3 < np.mean(asvm.amounts > 0) < 0.7
        assert (asvm.report.n_iter > 6, lsvm.report.n_iter > 100) == (True, True)


def test_asvm_never_goes_back() -> None:
    problem = SquaredHinge.of(X, Y, 2.0**8)
    duals = [solve_asvm(problem, options(max_iter=n)).report.dual for n in range(40)]
    assert (np.diff(duals) >= -1e-12 * abs(duals[-1])).all()
    assert duals[-1] > duals[1] > duals[0] == 0.0


@each_solver
@pytest.mark.parametrize("steps", [0, 1, 5])
def test_max_iter(solve: Solver, steps: int) -> None:
    problem = SquaredHinge.of(X, Y, 2.0**8)
    found = solve(problem, options(max_iter=steps))
    assert (found.report.stop_reason, found.report.n_iter) == (StopReason.MAX_ITER, steps)
    assert_true(problem, found)


@each_solver
def test_max_time(solve: Solver) -> None:
    problem = SquaredHinge.of(X, Y, 1.0)
    found = solve(problem, options(max_time=0.0))
    assert (found.report.stop_reason, found.report.n_iter) == (StopReason.MAX_TIME, 0)
    assert_true(problem, found)


@each_solver
def test_a_stall_is_no_convergence(solve: Solver) -> None:
    problem = SquaredHinge.of(X, Y, 1.0)
    found = solve(problem, options(1e-300))
    assert found.report.stop_reason is StopReason.STALLED
    assert 0 < found.report.violation < 1e-11
    assert_true(problem, found)


@each_solver
def test_watch_sees_progress_and_stops(solve: Solver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(squared_hinge, "SECONDS_BETWEEN_CALLS", 0.0)
    problem, seen = SquaredHinge.of(X, Y, 2.0**8), []

    def watch(moment: Progress, amounts: Callable[[], FloatArray]) -> bool:
        assert problem.judge(amounts()).dual == moment.dual
        seen.append(moment)
        return len(seen) == 4

    found = solve(problem, options(), watch=watch)
    assert (found.report.stop_reason, found.report.n_iter) == (StopReason.CALLBACK, 3)
    assert [moment.iteration for moment in seen] == [0, 1, 2, 3]
    assert found.error is None
    assert_true(problem, found)


@each_solver
def test_a_failing_watch_is_kept(solve: Solver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(squared_hinge, "SECONDS_BETWEEN_CALLS", 0.0)
    failure = RuntimeError("no more")

    def watch(*_: Any) -> bool:
        raise failure

    found = solve(SquaredHinge.of(X, Y, 1.0), options(), watch=watch)
    assert found.report.stop_reason is StopReason.CALLBACK
    assert found.error is failure


@each_solver
@pytest.mark.parametrize("moment", [0, 1, 2, 9, 10, 11, 12])
def test_interrupt_keeps_the_last_iterate(solve: Solver, moment: int, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = SquaredHinge.of(X, Y, 2.0**8)
    calls, times = itertools.count(), SquaredHinge.times

    def interrupted(self: SquaredHinge, z: FloatArray) -> FloatArray:
        if next(calls) == moment:
            raise KeyboardInterrupt
        return times(self, z)

    monkeypatch.setattr(SquaredHinge, "times", interrupted)
    found = solve(problem, options())
    assert found.report.stop_reason is StopReason.INTERRUPTED
    assert isinstance(found.error, KeyboardInterrupt)
    assert_true(problem, found)
    same = solve(problem, options(max_iter=found.report.n_iter)).amounts
    if found.report.n_iter > 0:
        np.testing.assert_array_equal(found.amounts, same)


@each_solver
def test_ctrl_c(solve: Solver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(squared_hinge, "SECONDS_BETWEEN_CALLS", 0.0)
    calls = itertools.count()

    def watch(*_: Any) -> bool:
        if next(calls) == 3:
            os.kill(os.getpid(), signal.SIGINT)
        return False

    problem = SquaredHinge.of(X, Y, 2.0**8)
    found = solve(problem, options(), watch=watch)
    assert found.report.stop_reason is StopReason.INTERRUPTED
    assert found.report.n_iter == 3
    assert_true(problem, found)


@each_solver
def test_start(solve: Solver) -> None:
    problem = SquaredHinge.of(X, Y, 2.0**4)
    cold = solve(problem, options())
    again = solve(problem, options(), start=cold.amounts)
    assert (again.report.stop_reason, again.report.n_iter) == (StopReason.CONVERGED, 0)
    np.testing.assert_array_equal(again.amounts, cold.amounts)
    afar = np.linspace(-5.0, 100.0, len(Y))
    assert_true(problem, solve(problem, options(max_iter=0), start=afar))
    from_afar = solve(problem, options(), start=afar)
    assert from_afar.report.stop_reason is StopReason.CONVERGED
    np.testing.assert_allclose(from_afar.coef, cold.coef, atol=1e-7)


@each_solver
def test_tolerance_times_price(solve: Solver) -> None:
    problem = SquaredHinge.of(X, Y, 2.0**8)
    loose, tight = (solve(problem, options(1e-3), tol_times_C=scaled) for scaled in (True, False))
    assert (loose.tol, tight.tol) == (0.256, 1e-3)
    assert loose.report.violation <= 0.256
    assert loose.report.n_iter <= tight.report.n_iter
    with pytest.raises(ValueError, match=r"tol=0.01 times C=256 is 2.56, which a = 0 meets already; give a tol below"):
        solve(problem, options(0.01), tol_times_C=True)


def test_the_rule_as_printed_would_hold_at_zero() -> None:
    gradient = -np.ones(4)
    assert stopping_gap(gradient, np.zeros(4, dtype=bool)) == 1.0  # (C.3) as printed: minus infinity
    assert stopping_gap(np.full(4, 5.0), np.ones(4, dtype=bool)) == 5.0  # as printed: 0


def test_lsvm_needs_a_step_below_two(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = SquaredHinge.of(X, Y, np.geomspace(0.01, 100.0, len(Y)))
    for step in (0.5, 1.9, 1.99):
        monkeypatch.setattr(lsvm, "STEP", step)
        assert solve_lsvm(problem, options(1e-6)).report.stop_reason is StopReason.CONVERGED
    monkeypatch.setattr(lsvm, "STEP", 2.1)  # the iteration contracts no more, and is given up
    assert solve_lsvm(problem, options(1e-6)).report.stop_reason is StopReason.STALLED


@each_solver
def test_sums_are_made_by_one_thread(solve: Solver, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that the bits do not depend on the number of threads."""
    monkeypatch.setattr(squared_hinge, "SECONDS_BETWEEN_CALLS", 0.0)
    seen: list[int] = []

    def watch(*_: Any) -> bool:  # not at every iteration: the check takes longer than an iteration
        if len(seen) < 20:
            seen.extend(pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas")
        return False

    rows = np.random.default_rng(2).normal(size=(1000, 30))
    problem = SquaredHinge.of(rows, np.where(rows[:, :3].sum(axis=1) > 0, 1.0, -1.0), 1.0)
    found = []
    for n_threads in (1, 2):
        with threadpool_limits(limits=n_threads):
            found.append(solve(problem, options(1e-4), watch=watch).amounts)
    np.testing.assert_array_equal(found[0], found[1])
    assert set(seen) == {1}


def test_lsvm_believes_the_returned_point_only() -> None:
    problem = SquaredHinge.of(X, Y, 1.0)
    method = lsvm._Lagrangian(problem, solve_lsvm(problem, options(1e-10)).amounts)
    assert method.is_done(1e-6)
    u, image = method.point
    method.point = (1.01 * u, image)  # the rule of appendix C sees the image alone
    assert stopping_gap(image - 1.0, u > 1e-8) <= 1e-6
    assert not method.is_done(1e-6)


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ({"y": Y > 0}, r"y has the values \[0\. 1\.\] in shape \(120,\); it must have one entry of -1 or 1"),
        ({"y": Y[:5]}, r"in shape \(5,\); it must have one entry of -1 or 1 for each of the 120 rows"),
        ({"C": 0.0}, "C has values from 0.0 to 0.0"),
        ({"C": np.inf}, "give one finite number > 0, or one for each of the 120 rows"),
        ({"C": np.ones(3)}, r"in shape \(3,\)"),
        ({"X": sparse.csr_matrix((120, 10_001))}, "X has 10001 features; .* take at most 10000"),
    ],
)
def test_refusals(wrong: dict[str, Any], text: str) -> None:
    given: dict[str, Any] = {"X": X, "y": Y, "C": 1.0, **wrong}
    with pytest.raises(ValueError, match=text):
        SquaredHinge.of(**given)


@each_solver
def test_a_start_that_does_not_fit_is_refused(solve: Solver) -> None:
    problem = SquaredHinge.of(X, Y, 1.0)
    with pytest.raises(ValueError, match=r"start has shape \(3,\) .* one finite value for each of the 120 rows"):
        solve(problem, options(), start=np.ones(3))
    with pytest.raises(ValueError, match="and 120 values that are not finite"):
        solve(problem, options(), start=np.full(120, np.nan))
