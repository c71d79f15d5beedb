"""A fit on few rows ends: converged, or stalled after a counted amount of work, for any machine, kernel and C."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning

from benchmarks.check.cases import make_case
from multimargin import SVC
from multimargin._typing import FloatArray, IntArray
from multimargin.fitting import machine as fitting
from multimargin.problems.problem import Bias, Loss
from multimargin.solvers import effort
from multimargin.solvers.core import solve
from multimargin.solvers.options import SolverOptions
from multimargin.solvers.report import StopReason
from support.helpers import draw_data, make_problem, own_machines

# A guard against fits that never end; each takes about a second.
pytestmark = [pytest.mark.timeout(60), pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")]

OWN = {machine.name: machine for machine in own_machines()}


def steep_data(n: int, n_classes: int, n_features: int) -> tuple[FloatArray, IntArray]:
    """Return classes that overlap, with one column a thousand times as large as the others."""
    X, y = draw_data(n, n, n_classes, n_features)
    X[:, 0] *= 1000.0
    return X, y


CASES: dict[str, tuple[tuple[int, int, int], dict[str, Any]]] = {
    "ats, indefinite": (
        (13, 10, 3),
        {"multi_class": "ats", "bias": "exact", "kernel": "sigmoid", "C": 1e8, "gamma": 1e-4},
    ),
    "ats, squared": (
        (244, 5, 3),
        {"multi_class": "ats", "bias": "exact", "C": 1e8, "tol": 1e-6, "loss": "squared_hinge"},
    ),
    "atm": ((114, 6, 3), {"multi_class": "atm", "bias": "exact", "kernel": "poly", "gamma": 1.0, "C": 1.0}),
    "ats, few features": (
        (231, 6, 3),
        {"multi_class": "ats", "bias": "none", "kernel": "linear", "C": 1e5, "loss": "squared_hinge"},
    ),
    "cost": (
        (150, 3, 3),
        {"multi_class": OWN["cost"], "bias": "regularized", "kernel": "linear", "C": 1e5, "tol": 2e-6},
    ),
    "ring": ((88, 3, 3), {"multi_class": OWN["ring"], "bias": "none", "C": 1e5, "loss": "squared_hinge"}),
    "below rounding": (
        (120, 4, 3),
        {"multi_class": "ww", "bias": "none", "kernel": "poly", "gamma": 1.0, "C": 10.0, "tol": 1e-9},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_fit_ends_converged_or_stalled(name: str) -> None:
    (n, n_classes, n_features), params = CASES[name]
    X, y = steep_data(n, n_classes, n_features)
    clf = SVC(**params).fit(X, y)
    assert clf.certificate_.stop_reason in ("converged", "stalled")
    assert (clf.certificate_.stop_reason == "converged") == (clf.fit_status_ == 0)
    assert np.isfinite(clf.decision_function(X)).all()


def options(**changes: Any) -> SolverOptions:
    return SolverOptions(tol=1e-8, **changes)


def test_budget_is_counted_and_ends_a_solve_as_stalled() -> None:
    X, y = steep_data(60, 3, 3)
    problem = make_problem(X, y, "ww", C=1e4, loss=Loss.HINGE, bias=Bias.NONE)
    report = solve(problem, options(max_work=1e6)).report
    again = solve(problem, options(max_work=1e6)).report
    assert report.stop_reason is StopReason.STALLED
    assert report.verified
    # At most one step and the checks of all examples go beyond it: 60 rows, three scores.
    assert 1e6 < report.phases["work"] < 1.1e6
    assert (again.n_iter, again.dual) == (report.n_iter, report.dual)


def test_stalled_fit_goes_on_by_a_warm_start(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = draw_data(1, 120, 4, 3)
    monkeypatch.setattr(effort, "WORK_ON_300_ROWS", 1e5)
    clf = SVC(multi_class="ww", C=100.0, warm_start=True)
    with pytest.warns(ConvergenceWarning, match="stalled"):
        clf.fit(X, y)
    dual = clf.certificate_.dual
    monkeypatch.setattr(effort, "WORK_ON_300_ROWS", float("inf"))
    clf.fit(X, y)
    assert clf.certificate_.stop_reason == "converged"
    assert clf.certificate_.dual > dual


def test_named_solver_has_no_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = draw_data(1, 120, 4, 3)
    monkeypatch.setattr(effort, "WORK_ON_300_ROWS", 1e3)
    clf = SVC(multi_class="ww", C=100.0, solver="two-level").fit(X, y)
    assert clf.certificate_.stop_reason == "converged"


def test_solves_for_a_narrow_gap_share_one_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights over 24 orders leave a gap that rounding lets no solve narrow: each would use up a budget."""
    spent: list[float] = []

    def counted(*args: Any) -> Any:
        solution = solve(*args)
        spent.append(solution.report.phases["work"])
        return solution

    monkeypatch.setattr(fitting, "solve_by_bias_rule", counted)
    case = make_case(1, 15482)
    case.estimator().fit(case.stored(), case.y, sample_weight=case.weight)
    assert len(spent) > 1
    assert max(spent) < sum(spent) < 1.01 * effort.work_limit(len(case.y))


def test_steps_that_search_for_two_scalars_count_as_what_they_cost() -> None:
    """Those of "atm" search one scalar within the search of another, each time for some thousand multiply-adds."""
    case = make_case(5, 1680, 0.6)
    clf = case.estimator().fit(case.stored(), case.y, sample_weight=case.weight)
    assert clf.certificate_.stop_reason == "stalled"
    assert effort.work_limit(len(case.y)) / clf.certificate_.n_iter > 10_000  # 4,700 when they counted as any others


def test_ridges_beyond_a_factor_do_not_loop() -> None:
    """Squared losses add 1 / (2 C_i) to the diagonal: over 24 orders of C_i a factor overflows."""
    X, y = draw_data(120, 4, 3)
    weights = 10.0 ** np.linspace(-12, 12, len(y))
    clf = SVC(multi_class="cs", loss="squared_hinge", C=1e-8, gamma=0.4).fit(X, y, sample_weight=weights)
    assert np.isfinite(clf.dual_coef_).all()
    assert clf.certificate_.stop_reason in ("converged", "stalled")


def test_a_tolerance_that_proves_little_is_made_smaller() -> None:
    """A violation within tol bounds the gap by tol sum C: with C=1e4 the dual may be next to nothing."""
    X, y = load_digits(return_X_y=True)
    clf = SVC(multi_class="llw", C=1e4, gamma=0.1).fit(X[:400] / 16, y[:400])
    assert clf.certificate_.optimal
    assert clf.certificate_.stop_reason == "converged"
    assert clf.certificate_.tol == 1e-3
    assert clf.certificate_.relative_gap <= 0.5
