"""The trace of a fit: true, thinned, complete; recording changes nothing."""

from __future__ import annotations

import os
import pickle
import signal
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning

from multimargin import SVC, Progress, Trace, verify
from multimargin.kernels.spec import KernelSpec
from multimargin.solvers.binary import solve_batch
from multimargin.solvers.certificate import Certificate
from multimargin.solvers.core import solve
from multimargin.solvers.options import Precision, SolverChoice, SolverOptions
from multimargin.solvers.trace import MOST_POINTS, NAMES, TraceBuilder, count_variables
from support.helpers import make_problem, noisy_classes

SPENT = ("seconds", "iterations", "kernel_rows")
ONE_LEVEL = ("smo", "s2do", "whole-example", "semi-greedy")

# The dual belongs to one problem from the first point to the last.
FITS: dict[str, dict[str, Any]] = {
    **{f"ww-{solver}": {"multi_class": "ww", "solver": solver} for solver in (*ONE_LEVEL, "two-level")},
    "ww-smo-not-shrunk": {"multi_class": "ww", "solver": "smo", "shrinking": False},
    "cs-two-level": {"multi_class": "cs"},
    "cs-s2do": {"multi_class": "cs", "solver": "s2do"},
    "llw-two-level": {"multi_class": "llw", "C": 0.1, "solver": "two-level"},
    "llw-splitting": {"multi_class": "llw", "C": 0.1, "solver": "splitting"},
    "ats-s2do-squared": {"multi_class": "ats", "solver": "s2do", "loss": "squared_hinge", "C": 0.1},
    "large-C": {"multi_class": "ww", "C": 1e4, "gamma": 0.01},
    "indefinite": {"multi_class": "ww", "kernel": "sigmoid", "gamma": 0.01, "max_iter": 3000},
    "ovo": {},
    "ovo-large-C": {"C": 200.0},  # the free variables are solved for at once
    "ovo-squared": {"loss": "squared_hinge"},
    "ovo-no-bias": {"bias": "none"},
    "ova": {"multi_class": "ova"},
    "hard-margin": {"C": float("inf"), "gamma": 10.0, "multi_class": "ww"},
}
ROUNDS = {
    "ww-exact": {"multi_class": "ww", "bias": "exact"},
    "cs-exact-s2do": {"multi_class": "cs", "bias": "exact", "solver": "s2do"},
}

each_fit = pytest.mark.parametrize("name", [*FITS, *ROUNDS])
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture(scope="module")
def data() -> tuple[np.ndarray, np.ndarray]:
    return noisy_classes(n=1100, n_classes=4)  # ww: more than 3,000 variables, so that tol ends it


def estimator(name: str, **params: Any) -> SVC:
    return SVC(**{"C": 2.0, **(FITS | ROUNDS)[name], **params})


def traces_of(clf: SVC) -> list[Trace]:
    return [clf.trace_] if isinstance(clf.trace_, Trace) else list(clf.trace_)


def certificates_of(clf: SVC) -> list[Certificate]:
    return list(clf.certificate_.parts) or [clf.certificate_]


def fitted_numbers(clf: SVC) -> dict[str, Any]:
    spent = {name: getattr(clf.certificate_, name) for name in ("n_iter", "kernel_rows", "cache_hits")}
    reached = {name: getattr(clf.certificate_, name) for name in ("primal", "dual", "kkt_violation")}
    return {"dual_coef": clf.dual_coef_, "intercept": clf.intercept_, "support": clf.support_} | spent | reached


@each_fit
@pytest.mark.parametrize("trace", [True, "primal"])
def test_nothing_changes(data: tuple[np.ndarray, np.ndarray], name: str, trace: bool | str) -> None:
    without = estimator(name).fit(*data)
    traced = estimator(name, trace=trace).fit(*data)
    assert not hasattr(without, "trace_")
    for key, value in fitted_numbers(without).items():
        np.testing.assert_array_equal(fitted_numbers(traced)[key], value, err_msg=key)


@each_fit
def test_what_a_trace_holds(data: tuple[np.ndarray, np.ndarray], name: str) -> None:
    clf = estimator(name, trace="primal").fit(*data)
    for trace in traces_of(clf):
        assert 2 <= len(trace) <= MOST_POINTS + 1
        assert {getattr(trace, column).shape for column in NAMES} == {(len(trace),)}
        assert trace.iterations[0] == 0
        for column in SPENT:
            assert (np.diff(getattr(trace, column)) >= 0).all(), column
        assert (trace.violation >= 0).all()
        assert (trace.n_active <= len(data[0])).all()
        assert (trace.n_variables <= trace.n_active * (trace.n_variables[-1] / trace.n_active[-1])).all()
        assert (trace.n_free + trace.n_bounded <= trace.n_variables[-1]).all()


@each_fit
def test_last_point_is_the_certificate(data: tuple[np.ndarray, np.ndarray], name: str) -> None:
    clf = estimator(name, trace="primal").fit(*data)
    traces, certificates = traces_of(clf), certificates_of(clf)
    if name == "ova":  # classes have no certificates of their own; the fit's is their sum, and the worst violation
        for column, own in (("dual", "dual"), ("primal", "primal"), ("iterations", "n_iter"), ("seconds", "seconds")):
            total = sum(getattr(trace, column)[-1] for trace in traces)
            assert total == pytest.approx(getattr(clf.certificate_, own), rel=1e-14)
        assert max(trace.violation[-1] for trace in traces) == clf.certificate_.kkt_violation
        return
    for trace, certificate in zip(traces, certificates, strict=True):
        assert trace.violation[-1] == certificate.kkt_violation
        assert trace.dual[-1] == certificate.dual
        np.testing.assert_equal(trace.primal[-1], certificate.primal)
        assert trace.iterations[-1] == certificate.n_iter
        assert trace.seconds[-1] == certificate.seconds
        assert trace.kernel_rows[-1] == certificate.kernel_rows


@pytest.mark.parametrize("name", FITS)
def test_dual_does_not_fall(data: tuple[np.ndarray, np.ndarray], name: str) -> None:
    for trace in traces_of(estimator(name, trace=True).fit(*data)):
        rounding = 1e-5 * abs(trace.dual[-1])  # scores are in float32 and rounded in every step
        assert (np.diff(trace.dual) >= -rounding).all()
        assert trace.dual[0] == 0.0
        assert np.mean(np.diff(trace.dual) > 0) >= 0.5


@each_fit
def test_gap_bounds_the_distance_to_the_optimum(data: tuple[np.ndarray, np.ndarray], name: str) -> None:
    for trace in traces_of(estimator(name, trace="primal", shrinking=False).fit(*data)):
        if name in ROUNDS:  # rounds have their own problems
            continue
        if name == "indefinite":
            assert np.isnan(trace.primal).all()
            continue
        rounding = 1e-5 * abs(trace.dual[-1])
        assert (trace.primal >= trace.dual[-1] - rounding).all()
        assert (trace.gap >= -rounding).all()
        # the primal of the way, not that of the start or the end
        assert trace.primal[0] > trace.primal[-1]
        one_block = name in ("hard-margin", "large-C")  # solved at once: there is nothing between start and end
        assert one_block or (trace.relative_gap[1:-2] < 0.2).any()


def test_primal_is_known_only_when_asked_for(data: tuple[np.ndarray, np.ndarray]) -> None:
    trace = estimator("ww-two-level", trace=True).fit(*data).trace_
    assert np.isnan(trace.primal).all()
    assert np.isnan(trace.gap).all()


@pytest.mark.parametrize("name", ["ww-smo", "cs-two-level", "large-C", "ww-exact", "ovo", "ovo-no-bias", "hard-margin"])
def test_counts_are_those_of_the_final_state(data: tuple[np.ndarray, np.ndarray], name: str) -> None:
    clf = estimator(name, trace=True, warm_start=True).fit(*data)
    state = clf._state[0].amounts
    for trace, amounts in zip(traces_of(clf), (state,) if isinstance(state, np.ndarray) else state, strict=True):
        n_free = int(((amounts > 0) & (amounts < clf.C)).sum())
        n_bounded = int((amounts == clf.C).sum())
        assert (trace.n_free[-1], trace.n_bounded[-1]) == (n_free, n_bounded)
        assert trace.n_active[-1] == len(amounts)
        assert trace.n_variables[-1] == amounts.size


@pytest.mark.parametrize("solver", [SolverChoice.SMO, SolverChoice.S2DO, SolverChoice.WHOLE_EXAMPLE])
@pytest.mark.parametrize("machine", ["ww", "cs"])
def test_shrunk_examples_are_counted(data: tuple[np.ndarray, np.ndarray], machine: str, solver: SolverChoice) -> None:
    """The last step before a limit and the float64 check after it have the same variables."""
    problem = make_problem(*data, machine, C=0.5, kernel=KernelSpec("rbf", gamma=0.2))
    options = SolverOptions(solver=solver, tol=1e-6, trace=True, precision=Precision.FLOAT64)
    whole = solve(problem, options).report
    shrunk = whole.traces[0].iterations[whole.traces[0].n_active < 0.8 * problem.n_examples]
    assert len(shrunk) > 0
    limited = SolverOptions(**{**vars(options), "max_iter": int(shrunk[len(shrunk) // 2])})
    solution = solve(problem, limited)
    trace = solution.report.traces[0]
    assert (trace.iterations[-2], trace.n_active[-2] < problem.n_examples) == (trace.iterations[-1], True)
    truth = count_variables(solution.state.amounts, problem.cap)
    for point in (-2, -1):
        assert {"n_free": trace.n_free[point], "n_bounded": trace.n_bounded[point]} == truth
    assert truth["n_bounded"] > 0


def test_shrunk_variables_are_not_active(data: tuple[np.ndarray, np.ndarray]) -> None:
    trace = estimator("ww-s2do", trace=True).fit(*data).trace_
    assert trace.n_variables[0] == trace.n_variables[-1] == 3 * len(data[0])
    assert (trace.n_variables[1:-1] < 3 * trace.n_active[1:-1]).any()
    whole = estimator("ww-s2do", trace=True, shrinking=False).fit(*data).trace_
    assert (whole.n_variables == 3 * len(data[0])).all()


def test_large_pair_is_traced_by_blocks() -> None:
    X, y = make_classification(4400, 8, n_informative=6, flip_y=0.05, random_state=0)
    clf, without = SVC(trace="primal").fit(X, y), SVC().fit(X, y)
    (trace,) = clf.trace_
    assert clf.certificate_.blocks > 1
    assert len(trace) >= clf.certificate_.blocks
    assert (trace.n_active[1:-1] < len(X)).any()
    assert len(np.unique(trace.dual)) > clf.certificate_.blocks
    assert (trace.relative_gap[:-2] < 0.2).any()
    assert (np.diff(trace.dual) >= -1e-6 * trace.dual[-1]).all()
    assert trace.dual[-1] == clf.certificate_.dual
    for key, value in fitted_numbers(without).items():
        np.testing.assert_array_equal(fitted_numbers(clf)[key], value, err_msg=key)


@pytest.mark.parametrize(("name", "C"), [("ww-s2do", 100.0), ("ovo", 1e4)])
def test_long_solves_are_thinned_evenly(data: tuple[np.ndarray, np.ndarray], name: str, C: float) -> None:
    clf = estimator(name, trace=True, C=C, tol=1e-4).fit(*data)
    trace = max(traces_of(clf), key=lambda each: int(each.iterations[-1]))
    assert trace.iterations[-1] > 2 * MOST_POINTS
    assert MOST_POINTS // 2 < len(trace) <= MOST_POINTS + 1
    strides = np.diff(trace.iterations[:-1])
    usual = int(np.median(strides))
    assert usual & (usual - 1) == 0  # a power of two
    assert usual > 1
    assert np.mean(strides == usual) > 0.8  # checks and shrinking are moments without a step
    assert strides.max() == usual


def test_every_step_of_a_short_solve_is_there(data: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = data
    trace = SVC(multi_class="ww", solver="s2do", max_iter=100, trace=True).fit(X, y).trace_
    np.testing.assert_array_equal(np.unique(trace.iterations), np.arange(101))


def test_a_solve_that_begins_at_its_end(data: tuple[np.ndarray, np.ndarray]) -> None:
    clf = estimator("ww-two-level", warm_start=True, trace=True).fit(*data).fit(*data)
    assert clf.trace_.violation[-1] == clf.certificate_.kkt_violation
    assert clf.trace_.dual[0] == pytest.approx(clf.certificate_.dual, rel=1e-9)


def test_same_points_for_any_number_of_threads(
    data: tuple[np.ndarray, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ovo", "ww-two-level"):
        found = []
        for n in (1, 2):
            monkeypatch.setattr("multimargin.fitting.machine.n_threads", lambda n=n: n)
            found.append(traces_of(estimator(name, trace="primal").fit(*data)))
        for one, two in zip(*found, strict=True):
            for column in set(NAMES) - {"seconds"}:
                np.testing.assert_array_equal(getattr(one, column), getattr(two, column), err_msg=column)


def test_rounds_are_joined(data: tuple[np.ndarray, np.ndarray]) -> None:
    """The violation restarts with each round; seconds and steps accumulate."""
    clf = estimator("ww-exact", trace=True, solver="s2do").fit(*data)
    trace = clf.trace_
    assert trace.iterations[-1] == clf.n_iter_[0]
    assert (np.diff(trace.violation) > 0).any()
    assert trace.n_active[-1] == len(data[0])


def test_folds_are_not_traced(data: tuple[np.ndarray, np.ndarray], monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def spy(*args: Any) -> Any:
        asked.append(next(arg.trace for arg in args if isinstance(arg, SolverOptions)))
        return solve_batch(*args)

    monkeypatch.setattr("multimargin.fitting.pairs.solve_batch", spy)
    clf = estimator("ovo", trace=True, calibration="sigmoid").fit(*data)
    assert asked == [True, *[False] * 5]
    assert len(clf.trace_) == 6


SLOW = make_classification(1500, 12, n_informative=6, n_classes=4, flip_y=0.3, class_sep=0.3, random_state=0)
each_slow = pytest.mark.parametrize(
    "params",
    [
        {"multi_class": "ww"},
        {"multi_class": "ww", "solver": "s2do"},
        {"multi_class": "ww", "bias": "exact"},
        {"tol": 1e-6},
        {"bias": "none"},
        {"multi_class": "ova", "tol": 1e-6},
    ],
    ids=str,
)


def assert_ends(clf: SVC, reason: str) -> None:
    assert clf.certificate_.stop_reason == reason
    for trace in traces_of(clf):
        assert len(trace) >= 1
        assert (np.diff(trace.seconds) >= 0).all()
    if clf.certificate_.parts:
        for trace, part in zip(clf.trace_, clf.certificate_.parts, strict=True):
            assert (trace.violation[-1], trace.iterations[-1]) == (part.kkt_violation, part.n_iter)
    assert sum(int(trace.iterations[-1]) for trace in traces_of(clf)) == clf.certificate_.n_iter


@each_slow
def test_kept_at_a_time_limit(params: dict[str, Any]) -> None:
    clf = SVC(C=1e6, gamma=0.01, trace=True, max_time=0.1, **params).fit(*SLOW)
    assert_ends(clf, "max_time")


@each_slow
def test_kept_when_interrupted(params: dict[str, Any]) -> None:
    def interrupt(_: Progress) -> None:
        os.kill(os.getpid(), signal.SIGINT)

    clf = SVC(C=1e6, gamma=0.01, trace="primal", on_progress=interrupt, **params)
    with pytest.raises(KeyboardInterrupt):
        clf.fit(*SLOW)
    assert_ends(clf, "interrupted")
    assert np.isfinite(verify(clf, *SLOW).dual)


def test_kept_when_a_callback_stops() -> None:
    def stop(progress: Progress) -> bool:
        return progress.iteration > 0

    with pytest.warns(ConvergenceWarning, match="callback"):
        clf = SVC(multi_class="ww", C=1e6, gamma=0.01, trace=True, on_progress=stop).fit(*SLOW)
    assert_ends(clf, "callback")


def test_estimator_contract(data: tuple[np.ndarray, np.ndarray]) -> None:
    clf = SVC(multi_class="ww", trace="primal")
    assert clone(clf).get_params()["trace"] == "primal"
    clf.fit(*data)
    again = pickle.loads(pickle.dumps(clf))
    for column in NAMES:
        np.testing.assert_array_equal(getattr(again.trace_, column), getattr(clf.trace_, column))
    assert not hasattr(clone(clf), "trace_")
    clf.set_params(trace=False).fit(*data)
    assert not hasattr(clf, "trace_")
    clf.set_params(trace=np.True_).fit(*data)
    assert isinstance(clf.trace_, Trace)


def test_frame(data: tuple[np.ndarray, np.ndarray]) -> None:
    trace = estimator("ww-two-level", trace=True).fit(*data).trace_
    frame = trace.to_frame()
    assert list(frame.columns) == list(NAMES)
    np.testing.assert_array_equal(frame["dual"], trace.dual)


def test_builder_thins() -> None:
    for n in (1, 7, 8, 9, 100, 12345):
        builder = TraceBuilder(most_points=8)
        for step in range(n):
            if builder.wants_next():
                builder.keep(iterations=step)
        trace = builder.end(iterations=n)
        assert (trace.iterations[0], trace.iterations[-1]) == (0, n)
        assert len(trace) <= 9
        assert n < 9 or len(trace) >= 5
        assert len(set(np.diff(trace.iterations[:-1]))) <= 1


def test_builder_joins_parts() -> None:
    first = TraceBuilder().end(seconds=1.0, iterations=10, kernel_rows=3, dual=1.0)
    builder = TraceBuilder()
    builder.extend(first, {})
    builder.extend(first, {"seconds": 2.0, "iterations": 10, "kernel_rows": 3})
    joined = builder.end(seconds=9.0, iterations=25, kernel_rows=6, dual=2.0)
    np.testing.assert_array_equal(joined.seconds, [1.0, 3.0, 9.0])
    np.testing.assert_array_equal(joined.iterations, [10, 20, 25])
    np.testing.assert_array_equal(joined.kernel_rows, [3, 6, 6])
    np.testing.assert_array_equal(joined.dual, [1.0, 1.0, 2.0])
    assert joined.iterations.dtype == np.int64


def test_builder_refuses_what_a_point_does_not_have() -> None:
    with pytest.raises(TypeError, match=r"A point of a trace has no loss, time; it has seconds, iterations"):
        TraceBuilder().end(time=1.0, loss=2.0)
