"""All examples at once: splitting and Newton steps in features, for machines whose scores sum to zero."""

from __future__ import annotations

import threading
import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from multimargin import SVC, Progress, verify
from multimargin._typing import FloatArray, IntArray
from multimargin.kernels.spec import KernelSpec
from multimargin.problems.problem import Bias, DualProblem
from multimargin.solvers.certificate import evaluate
from multimargin.solvers.core import Solution, run_core
from multimargin.solvers.options import Precision, SolverChoice, SolverOptions
from multimargin.solvers.report import StopReason
from multimargin.solvers.splitting import driver
from multimargin.solvers.splitting.anderson import Anderson
from multimargin.solvers.splitting.inverse import invert
from multimargin.solvers.splitting.low_rank import compressed, decompose
from multimargin.solvers.splitting.resolvents import WholeKernel
from multimargin.solvers.splitting.sets import ExampleSets
from support.control import assert_usable, ctrl_c_after
from support.helpers import draw_data, make_problem, solve_dual_densely

MACHINES = ("llw", "ats", "rm", "adm", "atm", "mmr")
each = pytest.mark.parametrize("name", MACHINES)
WAYS = {"splitting": (1e9, 1.0), "newton": (1e-9, 1e9)}  # usual steps, usual iterations: what goes first


@pytest.fixture(params=list(WAYS))
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    steps, iterations = WAYS[request.param]
    monkeypatch.setattr(driver, "USUAL_STEPS", steps)
    monkeypatch.setattr(driver, "USUAL_ITERATIONS", iterations)
    monkeypatch.setattr(driver, "TRIAL_PASSES", 1e-9)  # blocks get no chance before
    return str(request.param)


def solve(problem: DualProblem, **options: Any) -> Solution:
    return driver.solve(problem, SolverOptions(solver=SolverChoice.TWO_LEVEL, **options))


def counts(solution: Solution) -> tuple[float, float]:
    first, second = (solution.report.phases[name] for name in driver.COUNTS)
    return first, second


@each
@pytest.mark.parametrize("C", [0.5, 30.0])
@pytest.mark.parametrize("gamma", [0.05, 2.0])
def test_the_optimum_of_clarabel(name: str, C: float, gamma: float, way: str) -> None:
    X, y = draw_data(3, 40, 4)
    problem = make_problem(X, y, machine=name, C=C, kernel=KernelSpec("rbf", gamma=gamma))
    dual, _ = solve_dual_densely(problem)
    solution = solve(problem, tol=1e-6, precision=Precision.FLOAT64)
    assert solution.report.stop_reason is StopReason.CONVERGED
    assert solution.state.scores is not None
    reached = evaluate(problem, solution.state.amounts, solution.state.scores)
    assert reached.violation <= 1e-6
    assert reached.dual == pytest.approx(dual, rel=1e-6)
    first, second = counts(solution)
    assert (first if way == "splitting" else second) > 0


@each
@pytest.mark.parametrize("bias", [Bias.NONE, Bias.REGULARIZED], ids=lambda bias: bias.value)
def test_the_dual_of_the_blocks(name: str, bias: Bias, way: str) -> None:
    X, y = draw_data(5, 150, 5, n_features=3)
    problem = make_problem(X, y, machine=name, C=8.0, kernel=KernelSpec("rbf", gamma=0.3), bias=bias)
    options = SolverOptions(solver=SolverChoice.TWO_LEVEL, tol=1e-6, precision=Precision.FLOAT64)
    blocks = run_core(problem, options, None, None)
    found = driver.solve(problem, options)
    assert found.report.stop_reason is StopReason.CONVERGED
    assert found.report.dual == pytest.approx(blocks.report.dual, rel=1e-6)


@each
def test_degenerate_data(name: str, way: str) -> None:
    X, y = draw_data(7, 60, 4)
    X = np.concatenate([X, X[:20], X[:20]])  # examples three times, some of them with other labels
    y = np.concatenate([y, y[:20], (y[:20] + 1) % 4])
    X = np.column_stack([X, np.zeros(len(X)), np.ones(len(X))])
    X, y = np.concatenate([X, X[:1] + 0.5]), np.append(y, 4)  # a class of one example
    problem = make_problem(X, y, machine=name, C=4.0, kernel=KernelSpec("rbf", gamma=0.5))
    solution = solve(problem, tol=1e-4)
    assert solution.report.stop_reason is StopReason.CONVERGED
    assert solution.report.violation <= 1e-4


def test_bits_do_not_depend_on_threads(way: str) -> None:
    X, y = draw_data(11, 300, 4)
    problem = make_problem(X, y, machine="llw", C=4.0, kernel=KernelSpec("rbf", gamma=0.5))
    one, two = (solve(problem, n_threads=n) for n in (1, 2))
    assert np.array_equal(one.state.amounts, two.state.amounts)
    assert one.report.n_iter == two.report.n_iter


def overlapping(n: int = 1500) -> tuple[FloatArray, IntArray]:
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, 3)), rng.integers(0, 6, n)


def fit(X: FloatArray, y: IntArray, **params: Any) -> SVC:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        defaults: dict[str, Any] = {"multi_class": "llw", "C": 2.0, "gamma": 1.0}
        return SVC(**defaults | params).fit(X, y)


@pytest.mark.parametrize("bias", ["none", "regularized", "exact"])
def test_auto_takes_it_and_says_so(bias: str) -> None:
    X, y = overlapping(800)
    clf = fit(X, y, bias=bias)
    found = clf.certificate_
    assert found.optimal
    assert found.solver == "splitting"
    assert "so that most variables may be free; " in found.solver_reason
    assert "iterations of splitting" in found.solver_reason or "Newton steps in features" in found.solver_reason
    assert verify(clf, X, y).optimal
    assert SVC(multi_class="ww").fit(X[:200], y[:200]).certificate_.solver == "two-level"


def test_small_memory_leaves_it_to_the_blocks() -> None:
    X, y = draw_data(2, 100, 3)
    problem = make_problem(X, y, machine="llw", C=1.0)
    solution = solve(problem, cache_bytes=1000.0)
    assert counts(solution) == (0.0, 0.0)
    assert solution.report.stop_reason is StopReason.CONVERGED
    assert solution.report.phases["blocks"] > 0


def test_a_near_start_is_left_to_the_blocks() -> None:
    X, y = draw_data(2, 200, 4)
    problem = make_problem(X, y, machine="ats", C=1.0)
    options = SolverOptions(solver=SolverChoice.TWO_LEVEL)
    first = driver.solve(problem, options)
    again = driver.solve(problem, options, first.state)
    assert counts(first) != (0.0, 0.0)
    assert counts(again) == (0.0, 0.0)
    assert again.report.stop_reason is StopReason.CONVERGED


@each
@pytest.mark.parametrize(("limit", "reason"), [({"max_iter": 13}, "max_iter"), ({"max_time": 0.05}, "max_time")])
def test_limits(name: str, limit: dict[str, float], reason: str) -> None:
    X, y = overlapping()
    clf = fit(X, y, multi_class=name, solver="splitting", C=1e3, **limit)
    assert clf.certificate_.stop_reason == reason
    for own, true in assert_usable(clf, X, y):
        assert true.dual >= 0
        assert not own.verified or own.dual == pytest.approx(true.dual, rel=1e-6)


def test_limits_after_the_blocks_tried() -> None:
    X, y = overlapping(600)
    clf = fit(X, y, multi_class="adm", C=1e4, gamma=0.3, max_iter=10_000)
    assert clf.n_iter_[0] <= 10_000 + 600  # the blocks may finish a pass


def test_progress_and_callback() -> None:
    X, y = overlapping()
    moments: list[Progress] = []

    def stop_at_third(moment: Progress) -> bool:
        moments.append(moment)
        return len(moments) == 3

    clf = fit(X, y, C=1e3, on_progress=stop_at_third)
    assert clf.certificate_.stop_reason == "callback"
    assert [moment.iteration for moment in moments] == sorted(moment.iteration for moment in moments)
    assert_usable(clf, X, y)


@pytest.mark.skipif(threading.current_thread() is not threading.main_thread(), reason="signals come to the main thread")
def test_ctrl_c() -> None:
    X, y = overlapping()
    clf = SVC(multi_class="llw", C=1e4, gamma=1.0, on_interrupt="keep")
    with ctrl_c_after(0.3), pytest.warns(ConvergenceWarning):
        clf.fit(X, y)
    assert clf.certificate_.stop_reason == "interrupted"
    assert_usable(clf, X, y)


def test_trace_of_all_parts() -> None:
    X, y = overlapping(400)
    trace = fit(X, y, multi_class="adm", trace=True, C=100.0, solver="splitting").trace_
    for spent in (trace.seconds, trace.iterations, trace.kernel_rows):
        assert (np.diff(spent) >= 0).all()
    assert trace.violation[-1] <= 1e-3


@pytest.mark.parametrize(
    ("params", "text"),
    [
        ({"multi_class": "ww"}, "whose scores sum to zero"),
        ({"multi_class": "ovo"}, "whose scores sum to zero"),
        ({"loss": "squared_hinge"}, "needs loss='hinge'"),
        ({"C": np.inf}, "a finite C"),
    ],
)
def test_what_it_refuses(params: dict[str, Any], text: str) -> None:
    X, y = draw_data(0, 30, 3)
    with pytest.raises(ValueError, match=text):
        SVC(**{"multi_class": "llw", "solver": "splitting"} | params).fit(X, y)


@each
def test_projection(name: str) -> None:
    X, y = draw_data(1, 40, 5)
    problem = make_problem(X, y, machine=name, C=1.5)
    sets = ExampleSets(problem)
    v = np.random.default_rng(0).normal(size=(40, 5)) * 2
    nearest = sets.project(v)
    amounts = sets.amounts(nearest)
    assert (amounts >= 0).all()
    used = amounts.sum(axis=1) if sets.simplex else amounts.max(axis=1)
    assert (used <= 1.5 * (1 + 1e-15)).all()
    assert np.array_equal(sets.signed(amounts), nearest)
    for seed in range(20):  # the angle with the way to any other point is not acute
        other = sets.project(np.random.default_rng(seed + 1).normal(size=v.shape) * 3)
        assert (((v - nearest) * (other - nearest)).sum(axis=1) <= 1e-12).all()


@pytest.mark.parametrize("n", [1, 300, 700])
def test_inverse(n: int) -> None:
    matrix = np.random.default_rng(n).normal(size=(n, n))
    matrix = matrix @ matrix.T + np.eye(n)
    inverse = matrix.copy()
    assert invert(inverse, lambda: None)
    assert np.allclose(inverse @ matrix, np.eye(n), atol=1e-6)
    assert not invert(-np.eye(n), lambda: None)


@pytest.mark.parametrize("rho", [1e-3, 0.3])
def test_systems_of_the_whole_kernel(rho: float) -> None:
    X = np.random.default_rng(1).normal(size=(400, 3))
    K = KernelSpec("rbf", gamma=0.5).gram(X, X)
    values, vectors = np.linalg.eigh(K)
    top = vectors[:, -40:] * np.sqrt(values[-40:]) + 1e-4  # near the eigenvectors, as features are
    right = np.random.default_rng(2).normal(size=(400, 5))
    exact = np.linalg.solve(K + rho * np.eye(400), right)
    for given in (top, None):
        resolvent = WholeKernel(K.astype(np.float32), lambda: None, given)
        assert resolvent.prepare(rho)
        found = resolvent.solve(right)
        assert np.abs(found - exact).max() <= 0.05 * np.abs(exact).max()
        assert np.abs(K @ (found - exact)).max() <= 0.05 * np.abs(K @ exact).max()


def test_features_leave_what_they_say() -> None:
    X = np.random.default_rng(0).normal(size=(200, 2))
    X[150:] = X[:50]  # columns that depend on others
    K = KernelSpec("rbf", gamma=0.3).gram(X, X)
    found = decompose(lambda columns: K[:, columns], np.diag(K).copy(), 1e-6, 150, lambda: None)
    assert found.rest.max() <= 1e-6
    rest = K - found.G @ found.G.T
    assert np.allclose(np.diag(rest), found.rest, atol=1e-12)
    assert np.linalg.eigvalsh(rest).min() >= -1e-10
    fewer = compressed(found, 1e-3)
    assert fewer.shape[1] < found.rank
    assert np.linalg.eigvalsh(K - fewer @ fewer.T).max() <= 1e-3 + 200 * 1e-6


def test_acceleration_solves_linear_equations() -> None:
    rng = np.random.default_rng(0)
    A = rng.normal(size=(12, 12))
    A = A @ A.T
    A /= 1.05 * np.linalg.eigvalsh(A).max()
    b = rng.normal(size=12)
    exact = np.linalg.solve(A, b)
    x, method = np.zeros((4, 3)), Anderson(12, 12)
    for _ in range(25):
        x = method.next(x, (b - A @ x.ravel()).reshape(4, 3))
    plain = np.zeros(12)
    for _ in range(25):
        plain += b - A @ plain
    assert np.linalg.norm(x.ravel() - exact) < 0.1 * np.linalg.norm(plain - exact)
