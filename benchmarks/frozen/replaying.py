"""Fits of the stored problems by all estimators, compared with their optima."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from benchmarks.check.cases import Case, solvers_of
from benchmarks.frozen.problems import Optimum, Problem

FORMATS = ("dense64", "dense32", "csr64", "fortran64")
TOLERANCES = (1e-2, 1e-5, 1e-8)
# Those of two classes alone, by loss and bias.
LINEAR_SOLVERS = {
    ("hinge", "exact"): ("most-violating-pair", "working-set"),
    ("squared_hinge", "regularized"): ("asvm", "lsvm"),
}
STOPPED = ("stalled", "max_time", "max_iter")
LIMIT = 0.2  # seconds for a solver that was chosen by name: some are very slow
MARGIN = 4  # times the bound of rounding at the stored optimum: other points have other sums


@dataclass(frozen=True)
class Way:
    """How to fit a problem."""

    linear: bool
    solver: str
    storage: str
    tol: float

    def __str__(self) -> str:
        return f"{'LinearSVC' if self.linear else 'SVC'} solver={self.solver} {self.storage} tol={self.tol:g}"


@dataclass(frozen=True)
class Replay:
    """The result of a fit."""

    problem: Problem
    way: Way
    outcome: str
    complaints: tuple[str, ...]

    def text(self) -> str:
        case = self.problem.case
        head = f"problem {case.name} ({case.machine} {case.loss} bias={case.bias} {case.kernel}), {self.way}"
        return "\n".join([f"{head}: {self.outcome}", *(f"    {line}" for line in self.complaints)])


def ways_of(case: Case) -> Iterator[Way]:
    """Yield every estimator, solver, format and tolerance that a problem can be fitted by."""
    loss = case.loss if case.kernel.semidefinite else None
    solvers = [(False, solver) for solver in dict.fromkeys(["auto", *solvers_of(case.machine, case.bias, loss)])]
    if case.kernel.name == "linear":
        solvers += [(True, solver) for solver in _linear_solvers(case)]
    formats = [name for name in FORMATS if case.kernel.name != "precomputed" or not name.startswith("csr")]
    for linear, solver in solvers:
        for storage in formats:
            for tol in TOLERANCES:
                yield Way(linear, solver, storage, tol)


def _linear_solvers(case: Case) -> list[str]:
    solvers = ["auto", "newton"] if case.bias == "exact" else ["auto", "descent", "newton"]
    if len(np.unique(case.y)) == 2 and case.machine in ("ova", "ww"):
        solvers += LINEAR_SOLVERS.get((case.loss, case.bias), ())
    return solvers


def replay(problem: Problem, way: Way) -> Replay:
    """Fit a problem and compare the certificate with the stored optima."""
    case = replace(problem.case, storage=way.storage, linear=way.linear, tol=way.tol)
    clf = case.estimator().set_params(solver=way.solver, max_time=None if way.solver == "auto" else LIMIT)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            clf.fit(case.stored(), case.y, sample_weight=case.weight)
        except Exception as error:  # any error is a disagreement
            return Replay(problem, way, type(error).__name__, (str(error),))
    whole = clf.certificate_
    claims = (whole.parts or (whole,)) if case.machine in ("ovo", "dag") else (whole,)
    complaints = []
    if not whole.optimal and (way.solver == "auto" or whole.stop_reason not in STOPPED):
        complaints.append(f"not optimal: {whole}")
    for claim, optimum, largest in zip(claims, problem.optima, _largest_gaps(case), strict=True):
        complaints += _compare(claim, optimum, largest)
    return Replay(problem, way, str(whole.stop_reason), tuple(complaints))


def _compare(claim: Any, optimum: Optimum, largest_gap: float) -> list[str]:
    """A dual is at most the optimum and a primal at least; so the optimum lies within the certificate's gap."""
    allowed = MARGIN * optimum.rounding + 1e-12 * abs(optimum.primal)
    # A sigmoid kernel may be indefinite, so its certificates have no primal: what tol allows stands in for the gap.
    gap = claim.gap if math.isfinite(claim.primal) else largest_gap if claim.optimal else math.inf
    complaints = []
    if not claim.dual <= optimum.primal + allowed:
        complaints.append(f"dual {claim.dual!r} above the optimum {optimum.primal!r} by more than {allowed:.2g}")
    if claim.primal < optimum.dual - allowed:
        complaints.append(f"primal {claim.primal!r} below the optimum {optimum.dual!r} by more than {allowed:.2g}")
    if not claim.dual + gap >= optimum.dual - allowed:
        complaints.append(f"dual {claim.dual!r} below the optimum {optimum.dual!r} by more than the gap {gap:.3g}")
    if claim.optimal and not gap <= largest_gap + allowed:
        complaints.append(f"optimal at a gap of {gap:.3g}, where tol allows {largest_gap:.3g}")
    return complaints


def _largest_gaps(case: Case) -> list[float]:
    """With the hinge each variable's term of the gap is at most its bound times the violation; otherwise infinite."""
    codes = np.unique(case.y, return_inverse=True)[1]
    d, C = int(codes.max()) + 1, case.bounds.astype(np.float64)
    if case.machine in ("ovo", "dag"):
        totals = [C[(codes == i) | (codes == j)].sum() for i in range(d) for j in range(i + 1, d)]
    else:
        totals = [C.sum() * d]
    return [float(case.tol * total) if case.loss == "hinge" else np.inf for total in totals]
