"""Stopping a Frank-Wolfe solve: every reason, a feasible point and true numbers each time; starts, refusals, bits."""

from __future__ import annotations

import itertools
import os
import signal
import threading
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from multimargin import SVC, Progress, verify
from multimargin.problems.problem import Bias, DualProblem
from multimargin.solvers.certificate import evaluate
from multimargin.solvers.core import Solution, SolverState
from multimargin.solvers.frank_wolfe import bookkeeping
from multimargin.solvers.frank_wolfe import driver as frank_wolfe
from multimargin.solvers.frank_wolfe.driver import FrankWolfeOptions, solve
from multimargin.solvers.frank_wolfe.steps import LinearProgram, Variant
from multimargin.solvers.options import SolverOptions
from multimargin.solvers.report import StopReason
from support.helpers import draw_data, make_problem

X, Y = draw_data(5, 40, 3)
each_size = pytest.mark.parametrize("size", [None, 12], ids=["whole", "blocks"])


def hard_problem(name: str = "ww", bias: Bias = Bias.EXACT) -> DualProblem:
    return make_problem(X, Y, name, C=100.0, bias=bias)


def estimator(**params: Any) -> SVC:
    return SVC(**{"multi_class": "ww", "C": 100.0, "gamma": 0.5, "bias": "exact", "solver": "frank-wolfe", **params})


def assert_true(problem: DualProblem, solution: Solution) -> None:
    """The point is feasible, and the report describes it."""
    state, report = solution.state, solution.report
    sums = state.amounts.sum()
    assert state.amounts.min() >= 0
    assert (state.amounts <= problem.cap[:, None]).all()
    assert state.scores is not None
    reached = evaluate(problem, state.amounts, state.scores, state.bias)
    assert (report.violation, report.dual, report.primal) == (reached.violation, reached.dual, reached.primal)
    assert reached.primal >= reached.dual - 1e-9 * sums


@each_size
@pytest.mark.parametrize("steps", [0, 1, 7])
def test_max_iter(size: int | None, steps: int) -> None:
    problem = hard_problem()
    solution = solve(problem, SolverOptions(max_iter=steps), how=FrankWolfeOptions(block_size=size))
    assert (solution.report.stop_reason, solution.report.n_iter) == (StopReason.MAX_ITER, steps)
    assert_true(problem, solution)


@each_size
def test_max_time(size: int | None) -> None:
    problem = hard_problem()
    solution = solve(problem, SolverOptions(max_time=0.1), how=FrankWolfeOptions(block_size=size))
    assert solution.report.stop_reason is StopReason.MAX_TIME
    assert_true(problem, solution)


def test_max_time_ends_a_linear_program(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = hard_problem()
    with pytest.raises(TimeoutError, match="linear program"):
        LinearProgram(problem, np.zeros((40, 2))).vertex(problem.targets, 0.0)
    calls = itertools.count()
    vertex = LinearProgram.vertex

    def late(program: LinearProgram, gradient: np.ndarray, seconds: float) -> Any:
        return vertex(program, gradient, seconds if next(calls) < 3 else 0.0)

    monkeypatch.setattr(LinearProgram, "vertex", late)
    solution = solve(problem, SolverOptions())
    assert (solution.report.stop_reason, solution.report.n_iter) == (StopReason.MAX_TIME, 2)
    assert_true(problem, solution)


def test_a_failed_linear_program_is_a_stall(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any) -> None:
        raise FloatingPointError

    monkeypatch.setattr(LinearProgram, "vertex", fails)
    solution = solve(hard_problem(), SolverOptions())
    assert solution.report.stop_reason is StopReason.STALLED
    assert_true(hard_problem(), solution)


@pytest.mark.parametrize("bias", [Bias.NONE, Bias.EXACT], ids=lambda bias: bias.value)
def test_stall(bias: Bias) -> None:
    problem = make_problem(X[:12], Y[:12], "ww", bias=bias)
    solution = solve(problem, SolverOptions(tol=1e-300))
    assert solution.report.stop_reason is StopReason.STALLED
    assert 0 < solution.report.violation < 1e-10
    assert_true(problem, solution)


def test_a_small_gap_alone_is_no_convergence() -> None:
    problem = hard_problem(bias=Bias.NONE)
    loose = solve(problem, SolverOptions(tol=1e-6), how=FrankWolfeOptions(relative_gap=1.0)).report
    assert loose.stop_reason is StopReason.CONVERGED
    assert loose.violation <= 1e-6
    options = SolverOptions(tol=1e-6, max_iter=300)
    plain = solve(problem, options, how=FrankWolfeOptions(Variant.PLAIN, relative_gap=1.0)).report
    assert plain.primal - plain.dual < plain.primal
    assert (plain.stop_reason, plain.violation > 1e-6) == (StopReason.MAX_ITER, True)


def test_a_small_violation_alone_is_no_convergence() -> None:
    problem = hard_problem(bias=Bias.NONE)
    report = solve(problem, SolverOptions(tol=10.0), how=FrankWolfeOptions(relative_gap=1e-3)).report
    assert report.stop_reason is StopReason.CONVERGED
    assert report.primal - report.dual <= 1e-3 * report.primal


@each_size
def test_callback_sees_a_falling_gap_and_stops(size: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bookkeeping, "SECONDS_BETWEEN_CALLS", 0.0)
    problem = hard_problem()
    seen: list[Progress] = []

    def watch(progress: Progress, state: Any) -> bool:
        seen.append(progress)
        found: SolverState = state()
        assert found.amounts.shape == (40, 2)
        return progress.iteration >= 60

    solution = solve(problem, SolverOptions(), None, watch, FrankWolfeOptions(block_size=size))
    assert (solution.report.stop_reason, solution.report.n_iter) == (StopReason.CALLBACK, 60)
    assert_true(problem, solution)
    assert len(seen) >= 60
    for earlier, later in itertools.pairwise(seen):
        assert later.dual >= earlier.dual - 1e-9 * abs(later.dual)
        assert later.gap <= earlier.gap + 1e-9 * abs(later.primal)
        assert later.iteration >= earlier.iteration
    assert seen[-1].gap < 0.5 * seen[0].gap
    assert solution.report.dual == pytest.approx(seen[-1].dual, rel=1e-9)


def test_ctrl_c_and_failing_callbacks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bookkeeping, "SECONDS_BETWEEN_CALLS", 0.0)

    def raises(error: type[BaseException]) -> Any:
        def on_progress(progress: Progress) -> bool:
            if progress.iteration == 5:
                raise error("enough")
            return False

        return on_progress

    clf = estimator(on_progress=raises(KeyboardInterrupt), on_interrupt="keep")
    with pytest.warns(ConvergenceWarning, match=r"ended early \(interrupted\) after 5 steps"):
        clf.fit(X, Y)
    assert np.isfinite(verify(clf, X, Y).kkt_violation)
    with pytest.raises(RuntimeError, match="enough"):
        clf.set_params(on_progress=raises(RuntimeError)).fit(X, Y)
    assert clf.certificate_.stop_reason == "interrupted"  # of the fit before


@each_size
def test_ctrl_c_at_any_moment(size: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bookkeeping, "SECONDS_BETWEEN_CALLS", 0.0)
    problem = make_problem(X, Y, "ww", C=1e6, bias=Bias.EXACT)
    for after in (0.003, 0.01, 0.03, 0.1):
        timer = threading.Timer(after, os.kill, (os.getpid(), signal.SIGINT))

        def begin(progress: Progress, state: Any, timer: threading.Timer = timer) -> bool:
            if progress.iteration == 1:
                timer.start()
            return False

        solution = solve(problem, SolverOptions(tol=1e-9), None, begin, FrankWolfeOptions(block_size=size))
        assert solution.report.stop_reason is StopReason.INTERRUPTED
        assert isinstance(solution.error, KeyboardInterrupt)
        assert_true(problem, solution)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_large_problems_are_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frank_wolfe, "QUICK_PASS", 0.0)
    monkeypatch.setattr(bookkeeping, "SECONDS_BETWEEN_CALLS", 0.0)
    clf = estimator(on_progress=lambda progress: progress.iteration >= 5).fit(X, Y)
    assert (clf.certificate_.stop_reason, clf.certificate_.verified) == ("callback", False)
    assert np.isnan(clf.certificate_.gap)
    assert np.isfinite(verify(clf, X, Y).kkt_violation)


@pytest.mark.parametrize("bias", list(Bias), ids=lambda bias: bias.value)
def test_a_start_is_gone_on_from(bias: Bias) -> None:
    problem = make_problem(X, Y, "ww", bias=bias)
    first = solve(problem, SolverOptions(tol=1e-5))
    again = solve(problem, SolverOptions(tol=1e-4), first.state)
    assert again.report.stop_reason is StopReason.CONVERGED
    assert again.report.n_iter == 0
    tighter = make_problem(X, Y, "ww", C=0.3, bias=bias)  # the start is outside these bounds
    found = solve(tighter, SolverOptions(tol=1e-5), first.state)
    assert found.report.stop_reason is StopReason.CONVERGED
    assert_true(tighter, found)
    assert found.report.dual == pytest.approx(solve(tighter, SolverOptions(tol=1e-5)).report.dual, rel=1e-6)
    with pytest.raises(ValueError, match="state to start from has 40 examples"):
        solve(make_problem(X[:30], Y[:30], "ww", bias=bias), SolverOptions(), first.state)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_stopped_fit_goes_on() -> None:
    whole = estimator(C=1.0).fit(X, Y)
    clf = estimator(C=1.0, max_iter=10, warm_start=True).fit(X, Y)
    assert clf.fit_status_ == 1
    clf.set_params(max_iter=-1).fit(X, Y)
    assert clf.certificate_.optimal
    assert clf.certificate_.dual == pytest.approx(whole.certificate_.dual, rel=1e-3)


@each_size
def test_same_bits_for_any_number_of_threads(size: int | None) -> None:
    found = []
    for n in (1, 2):
        with threadpool_limits(n):
            options = SolverOptions(n_threads=n, max_iter=40)
            found.append(solve(hard_problem(), options, how=FrankWolfeOptions(block_size=size)).state)
    np.testing.assert_array_equal(found[0].amounts, found[1].amounts)
    np.testing.assert_array_equal(found[0].bias, found[1].bias)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"loss": "squared_hinge"}, r"needs bounded dual variables, which loss='squared_hinge' has not; use"),
        ({"C": np.inf}, r"needs bounded dual variables, which C=inf has not; use loss='hinge' with a finite C"),
        ({"kernel": "sigmoid"}, r"needs a positive semi-definite kernel, kernel='sigmoid' is none; use"),
        ({"multi_class": "ovo"}, r"solver='frank-wolfe' does not apply to multi_class='ovo'.*such as multi_class='ww'"),
        ({"multi_class": "dag", "bias": "none"}, r"solver='frank-wolfe' does not apply to multi_class='dag'"),
    ],
)
def test_what_is_refused(params: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        estimator(**params).fit(X, Y)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"block_size": 1}, r"block_size=1 is not allowed; give at least 2"),
        ({"relative_gap": 0.0}, r"relative_gap=0.0 is not allowed; give a number > 0"),
    ],
)
def test_bad_options(params: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        FrankWolfeOptions(**params)


def test_sparse_and_given_kernels_and_probabilities() -> None:
    from scipy import sparse

    dense = estimator(C=1.0, calibration="sigmoid").fit(X, Y)
    assert dense.predict_proba(X).shape == (40, 3)
    for data, kernel in ((sparse.csr_array(X), "rbf"), (np.exp(-0.5 * ((X[:, None] - X) ** 2).sum(2)), "precomputed")):
        clf = estimator(C=1.0, kernel=kernel).fit(data, Y)
        np.testing.assert_allclose(clf.certificate_.dual, dense.certificate_.dual, rtol=1e-5)
