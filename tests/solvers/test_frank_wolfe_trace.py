"""The trace of a Frank-Wolfe fit: all steps, with true numbers; recording changes nothing."""

from __future__ import annotations

import os
import signal
import threading
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from multimargin import SVC, ConvergenceDisplay, Progress, Trace, verify
from multimargin.problems.problem import Bias, DualProblem
from multimargin.solvers.frank_wolfe import bookkeeping
from multimargin.solvers.frank_wolfe import driver as frank_wolfe
from multimargin.solvers.frank_wolfe.driver import FrankWolfeOptions, solve
from multimargin.solvers.options import SolverOptions
from multimargin.solvers.report import StopReason
from multimargin.solvers.trace import NAMES, TraceBuilder, count_variables
from support.helpers import draw_data, make_problem

X, Y = draw_data(5, 30, 3)
SPENT = ("seconds", "iterations", "kernel_rows")
BLOCKS = FrankWolfeOptions(block_size=12)

each_bias = pytest.mark.parametrize("bias", ["none", "regularized", "exact"])
each_machine = pytest.mark.parametrize("machine", ["ww", "cs"])
each_size = pytest.mark.parametrize("how", [None, BLOCKS], ids=["whole", "blocks"])
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def estimator(**params: Any) -> SVC:
    return SVC(**{"multi_class": "ww", "C": 2.0, "gamma": 0.5, "solver": "frank-wolfe", **params})


def traced(problem: DualProblem, how: FrankWolfeOptions | None, **options: Any) -> tuple[Trace, Any]:
    solution = solve(problem, SolverOptions(trace=True, trace_primal=True, **options), how=how)
    (trace,) = solution.report.traces
    return trace, solution


def assert_in_order(trace: Trace) -> None:
    assert {getattr(trace, column).shape for column in NAMES} == {(len(trace),)}
    for column in SPENT:
        assert (np.diff(getattr(trace, column)) >= 0).all(), column
    assert (trace.violation >= 0).all()
    assert (trace.n_variables == trace.n_active * (trace.n_variables[-1] // trace.n_active[-1])).all()
    assert (trace.n_free + trace.n_bounded <= trace.n_variables[-1]).all()


@each_bias
@each_machine
@pytest.mark.parametrize("trace", [True, "primal"])
def test_nothing_changes(machine: str, bias: str, trace: bool | str) -> None:
    without = estimator(multi_class=machine, bias=bias).fit(X, Y)
    clf = estimator(multi_class=machine, bias=bias, trace=trace).fit(X, Y)
    assert not hasattr(without, "trace_")
    np.testing.assert_array_equal(clf.dual_coef_, without.dual_coef_)
    np.testing.assert_array_equal(clf.intercept_, without.intercept_)
    for key in ("n_iter", "kernel_rows", "primal", "dual", "kkt_violation", "stop_reason"):
        assert getattr(clf.certificate_, key) == getattr(without.certificate_, key), key


@each_bias
@each_machine
@pytest.mark.parametrize("trace", [True, "primal"])
def test_what_a_trace_holds(machine: str, bias: str, trace: bool | str) -> None:
    clf = estimator(multi_class=machine, bias=bias, trace=trace, warm_start=True).fit(X, Y)
    found, certificate = clf.trace_, clf.certificate_
    assert certificate.optimal
    assert_in_order(found)
    np.testing.assert_array_equal(np.unique(found.iterations), np.arange(certificate.n_iter + 1))
    assert (found.n_active == len(X)).all()
    for column, own in (("violation", "kkt_violation"), ("dual", "dual"), ("iterations", "n_iter")):
        assert getattr(found, column)[-1] == getattr(certificate, own), column
    assert (found.seconds[-1], found.kernel_rows[-1]) == (certificate.seconds, certificate.kernel_rows)
    counts = count_variables(clf._state[0].amounts, np.full(len(X), clf.C))
    assert {name: getattr(found, name)[-1] for name in counts} == counts
    if trace == "primal":
        assert found.primal[-1] == certificate.primal
    else:
        assert np.isnan(found.primal).all()


@each_bias
@each_machine
@each_size
def test_objectives_enclose_the_optimum(machine: str, bias: str, how: FrankWolfeOptions | None) -> None:
    problem = make_problem(X, Y, machine, C=2.0, bias=Bias(bias))
    trace, solution = traced(problem, how)
    assert solution.report.stop_reason is StopReason.CONVERGED
    assert_in_order(trace)
    rounding = 1e-9 * trace.dual[-1]
    assert trace.dual[0] == 0.0
    assert (np.diff(trace.dual) >= -rounding).all()
    assert np.mean(np.diff(trace.dual) > 0) > 0.5
    assert (trace.primal >= trace.dual[-1] - rounding).all()
    assert (np.diff(trace.primal[:-1]) <= 0).all()  # the lowest met
    assert (trace.relative_gap[1:-2] < 0.2).any()


@each_bias
@each_machine
def test_a_point_tells_where_its_steps_lead(machine: str, bias: str) -> None:
    """A solve that ends there, with recomputed scores, has the same numbers."""
    problem = make_problem(X, Y, machine, C=2.0, bias=Bias(bias))
    trace, _ = traced(problem, None)
    for steps in np.unique(trace.iterations)[1:-1:4]:
        point = int(np.flatnonzero(trace.iterations == steps)[0])
        end = solve(problem, SolverOptions(max_iter=int(steps)))
        assert end.report.n_iter == steps
        assert trace.dual[point] == pytest.approx(end.report.dual, rel=1e-9)
        counts = count_variables(end.state.amounts, problem.cap)
        assert {name: getattr(trace, name)[point] for name in counts} == counts
        if bias != "exact":  # whose b is found by one linear program more
            assert trace.violation[point] == pytest.approx(end.report.violation, rel=1e-6)


def test_blocks_are_told_from_looks() -> None:
    problem = make_problem(X, Y, "ww", C=2.0, bias=Bias.EXACT)
    trace, _ = traced(problem, BLOCKS)
    assert set(trace.n_active) == {12, len(X)}
    inside = np.flatnonzero(trace.n_active == 12)
    assert len(np.unique(trace.violation[inside])) > 0.9 * len(inside)  # of the block at this step, not of a check
    assert len(np.unique(trace.primal[inside])) <= np.count_nonzero(trace.n_active == len(X))


def test_long_solves_are_thinned(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = make_problem(X, Y, "ww", C=2.0, bias=Bias.NONE)
    whole, _ = traced(problem, None)
    monkeypatch.setattr(bookkeeping, "TraceBuilder", lambda: TraceBuilder(most_points=8))
    thinned, _ = traced(problem, None)
    assert 4 < len(thinned) <= 9
    assert 4 * len(thinned) < len(whole)
    for column in ("iterations", "dual", "violation"):
        moments = getattr(whole, column)
        expected = np.append(moments[:-1][::8], moments[-1])  # every eighth, and the end
        np.testing.assert_array_equal(getattr(thinned, column), expected, err_msg=column)


def test_all_classes_of_one_vs_all_have_one_trace() -> None:
    clf = estimator(multi_class="ova", bias="exact", trace="primal").fit(X, Y)
    assert isinstance(clf.trace_, Trace)
    assert clf.trace_.dual[-1] == clf.certificate_.dual


def test_a_start_is_where_the_trace_begins() -> None:
    clf = estimator(bias="exact", trace=True, warm_start=True).fit(X, Y).fit(X, Y)
    assert clf.trace_.iterations[-1] == 0
    assert clf.trace_.dual[0] == pytest.approx(clf.certificate_.dual, rel=1e-9)


def test_picture() -> None:
    pytest.importorskip("matplotlib")
    from matplotlib.figure import Figure

    clf = estimator(bias="exact", trace="primal").fit(X, Y)
    display = ConvergenceDisplay.from_estimator(clf, x="iterations", y="relative_gap", ax=Figure().subplots())
    (line,) = display.ax_.get_lines()
    assert len(line.get_xdata()) == len(clf.trace_)


def assert_ends(clf: SVC, reason: str) -> None:
    trace, certificate = clf.trace_, clf.certificate_
    assert certificate.stop_reason == reason
    assert_in_order(trace)
    assert trace.iterations[-1] == certificate.n_iter
    assert (trace.violation[-1], trace.dual[-1]) == (certificate.kkt_violation, certificate.dual)
    assert trace.n_active[-1] == len(X)
    assert np.isfinite(verify(clf, X, Y).dual)


@each_bias
def test_kept_at_limits(bias: str) -> None:
    hard = {"C": 1e6, "tol": 1e-12, "bias": bias, "trace": "primal"}
    assert_ends(estimator(**hard, max_iter=7).fit(X, Y), "max_iter")
    assert_ends(estimator(**hard, max_time=0.05).fit(X, Y), "max_time")


@each_bias
def test_kept_when_interrupted(bias: str) -> None:
    clf = estimator(C=1e6, tol=1e-12, bias=bias, trace="primal")
    timer = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            clf.fit(X, Y)
    finally:
        timer.cancel()
    assert_ends(clf, "interrupted")


@pytest.mark.parametrize("verified", [True, False])
def test_kept_when_a_callback_stops(verified: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bookkeeping, "SECONDS_BETWEEN_CALLS", 0.0)
    if not verified:
        monkeypatch.setattr(frank_wolfe, "QUICK_PASS", 0.0)

    def stop(progress: Progress) -> bool:
        return progress.iteration >= 5

    clf = estimator(C=100.0, bias="exact", trace="primal", on_progress=stop)
    with pytest.warns(ConvergenceWarning, match="callback"):
        clf.fit(X, Y)
    assert clf.certificate_.verified is verified
    assert np.isnan(clf.trace_.primal[-1]) == (not verified)
    assert_ends(clf, "callback")


def test_limits_before_the_first_look() -> None:
    """A solve without progress has a trace, too: its end."""
    problem = make_problem(X, Y, "ww", bias=Bias.EXACT)
    options = SolverOptions(trace=True, max_time=1e-9)
    for start in (None, solve(problem, replace(options, max_time=np.inf)).state):
        (trace,) = solve(problem, options, start).report.traces
        assert_in_order(trace)
        assert trace.iterations[-1] == 0
