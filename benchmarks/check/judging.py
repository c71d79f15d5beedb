"""Checks of a fitted model's certificate: each claim is compared with numbers from public attributes."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks.check.cases import Case
from benchmarks.check.duals import Dual, recover
from benchmarks.check.formulas import EPSILON, SUM_TO_ZERO, Array, Extended, table_of
from benchmarks.check.oracle import MOST_VARIABLES, best_dual

ROUNDING = 64  # times epsilon times the sum of magnitudes
FEASIBLE = 1e-9  # of C, and of sum |beta|: what rounding may leave of bounds and sums
LARGEST_GAP = 0.5  # relative; what is optimal to a tolerance is not twice as dear as its bound


@dataclass(frozen=True)
class Part:
    """One quadratic program of a model, from public attributes, and its certificate."""

    dual: Dual
    rows: Array  # of the training data
    beta: Array  # (n, d) over these rows
    intercept: Array  # (d,)
    certificate: Any
    halved: bool = False  # the binary form of a machine with two mirrored columns: half its objective


@dataclass(frozen=True)
class Numbers:
    """Objectives and violation in extended precision, with bounds on the error of float64."""

    primal: float
    dual: float
    violation: float
    objective_error: float
    violation_error: float
    outside: float
    sums: float


def judge(clf: Any, case: Case) -> list[str]:
    """Return every complaint about a fitted SVC; an empty list means that no fault was found."""
    published = [clf.intercept_, *((clf.coef_,) if case.linear else (clf.dual_coef_,))]
    published = [item.toarray() if sparse.issparse(item) else np.asarray(item) for item in published]
    if not all(np.isfinite(item).all() for item in published):
        return [f"coefficients are not finite, optimal={clf.certificate_.optimal}"]
    if (off := _off_zero(clf, case)) != 0.0:
        return [f"the intercepts sum to {off:.2g}, not to zero"]
    if case.linear:
        return _judge_linear(clf, case)
    K, error = case.kernel.matrix(case.X, by_norms=case.storage.startswith("csr"))
    constant = 1 if case.bias == "regularized" else 0
    complaints = []
    for part in parts_of(clf, case):
        block = np.ix_(part.rows, part.rows)
        numbers = numbers_of(part, K[block], error[block] + EPSILON * np.abs(K[block]), constant, case)
        complaints += _compare(part, numbers, case)
        if not complaints and case.kernel.semidefinite and part.dual.table.present.sum() <= MOST_VARIABLES:
            complaints += _beside_the_oracle(part, K[block] + constant, case, numbers)
    return complaints


def _off_zero(clf: Any, case: Case) -> float:
    """Return the sum of the exact biases of a machine whose scores sum to zero, 0 where rounding alone left it.

    Any other b is none of the machine's points, and the primal there no bound. (A regularised one is a sum of
    coefficients like any score, rounded in proportion to them.)
    """
    b = np.asarray(clf.intercept_, dtype=Extended)
    if case.machine not in SUM_TO_ZERO or case.bias != "exact" or len(b) == 1:
        return 0.0
    total = float(b.sum())
    return total if abs(total) > FEASIBLE * float(np.abs(b).sum()) else 0.0


def parts_of(clf: Any, case: Case) -> list[Part]:
    """Return the quadratic programs of a fitted SVC: one, or one for each pair of classes."""
    coef = np.asarray(clf.dual_coef_.toarray() if sparse.issparse(clf.dual_coef_) else clf.dual_coef_, dtype=Extended)
    intercept = np.asarray(clf.intercept_, dtype=Extended)
    codes = np.searchsorted(clf.classes_, case.y)
    d, n, support = len(clf.classes_), len(codes), clf.support_
    squared = case.loss == "squared_hinge"
    if case.machine not in ("ovo", "dag"):
        beta = np.zeros((n, d), dtype=Extended)
        if d == 2:
            coef, intercept = np.vstack([-coef, coef]), np.concatenate([-intercept, intercept])
        beta[support] = coef.T
        table = table_of(case.machine, codes, d, case.cost)
        return [Part(Dual(table, case.bounds, squared), np.arange(n), beta, intercept, clf.certificate_)]
    sign = -1 if d == 2 else 1
    certificates = clf.certificate_.parts or (clf.certificate_,)
    parts = []
    for index, (i, j) in enumerate(combinations(range(d), 2)):
        rows = np.flatnonzero((codes == i) | (codes == j))
        column = np.zeros(n, dtype=Extended)
        of_i, of_j = codes[support] == i, codes[support] == j
        column[support[of_i]], column[support[of_j]] = sign * coef[j - 1, of_i], sign * coef[i, of_j]
        # A binary machine is ova's column for the first class; its mirror image adds the same again.
        beta = np.stack([column[rows], -column[rows]], axis=1)
        b = np.array([intercept[index], -intercept[index]]) * sign
        table = table_of("ova", (codes[rows] == j).astype(np.int64), 2)
        parts.append(Part(Dual(table, case.bounds[rows], squared), rows, beta, b, certificates[index], halved=True))
    return parts


def numbers_of(part: Part, K: Array, error: Array, constant: int, case: Case) -> Numbers:
    """Return a program's numbers by kernel values that float64 may have wrong by ``error``."""
    dual, beta = part.dual, part.beta
    scores = (K + constant) @ beta
    f = scores + part.intercept if case.bias == "exact" else scores
    size = (np.abs(K) + constant) @ np.abs(beta)
    wrong = (error + EPSILON * constant) @ np.abs(beta) + ROUNDING * EPSILON * (size + np.abs(part.intercept))
    best, least = recover(dual, beta, f)
    margin_error = dual.table.scale(wrong) + ROUNDING * EPSILON * np.abs(dual.table.targets)
    half = Extended(0.5 if part.halved else 1.0)
    C = dual.C[:, None]
    slack = np.maximum(dual.table.targets - dual.table.margins(f), 0)
    charged = 2 * slack * margin_error + margin_error**2 if dual.squared else margin_error
    charge_size = slack * slack if dual.squared else slack
    objective_error = np.sum(np.abs(beta) * wrong) + np.sum(C * np.where(dual.table.present, charged, 0))
    objective_error += (
        ROUNDING
        * EPSILON
        * (np.sum(np.abs(beta) * size) + np.sum(np.abs(dual.table.targets * best)) + np.sum(C * charge_size))
    )
    # Of the largest column: what balances one moves the others of the same examples.
    total = np.abs(beta).sum(axis=0).max(initial=0)
    sums = np.abs(beta.sum(axis=0)) / np.maximum(total, np.finfo(Extended).tiny)
    again = np.abs(dual.table.coefficients(best) - beta).max(axis=1, initial=0)
    inconsistent = np.max(again / np.maximum(np.abs(beta).sum(axis=1), np.finfo(Extended).tiny), initial=0)
    return Numbers(
        primal=float(half * dual.primal(beta, scores, f)),
        dual=float(half * dual.objective(best, beta, scores)),
        violation=float(dual.violations(least, f).max(initial=0)),
        objective_error=float(half * objective_error),
        violation_error=float(np.max(np.where(dual.table.present, margin_error, 0), initial=0)) * 2,
        outside=max(dual.outside(best), float(inconsistent)),
        sums=float(sums.max(initial=0)) if case.bias == "exact" else 0.0,
    )


def _compare(part: Part, ours: Numbers, case: Case) -> list[str]:
    claim = part.certificate
    complaints = []
    claims = claim.optimal or (claim.verified and claim.stop_reason == "converged")
    if claims:
        if not math.isfinite(claim.dual) or (case.kernel.semidefinite and not math.isfinite(claim.primal)):
            complaints.append(f"optimal with objectives {claim.primal} and {claim.dual}")
        if ours.violation > claim.tol * (1 + 1e-6) + ours.violation_error:
            complaints.append(f"optimal, but the violation is {ours.violation:.3g} at tol={claim.tol:g}")
        if ours.outside > FEASIBLE:
            complaints.append(f"optimal, but variables are outside their bounds by {ours.outside:.2g} of C")
        if ours.sums > FEASIBLE:
            complaints.append(f"optimal, but sums of coefficients are {ours.sums:.2g} of their terms")
        if case.kernel.semidefinite and claim.relative_gap > LARGEST_GAP:
            complaints.append(f"optimal at a relative gap of {claim.relative_gap:.2g}")
    if not claim.verified:
        return complaints
    allowed = ours.objective_error + 1e-12 * abs(ours.dual)
    if not math.isfinite(allowed):  # numbers beyond float64: nothing can be said of the objectives
        return complaints
    if case.kernel.semidefinite and not _is_primal(claim, ours.primal, allowed + 1e-12 * abs(ours.primal)):
        complaints.append(f"primal {claim.primal!r} where {ours.primal!r} +- {allowed:.2g} is true")
    shiftable = part.dual.table.machine in ("ats", "atm", "rm")
    if not claim.dual <= ours.dual + allowed or not (shiftable or claim.dual >= ours.dual - allowed):
        complaints.append(f"dual {claim.dual!r} where {ours.dual!r} +- {allowed:.2g} is true")
    # A millionth of tol is of no consequence.
    if not ours.violation <= claim.kkt_violation * (1 + 1e-6) + ours.violation_error + 1e-6 * claim.tol:
        complaints.append(f"violation {claim.kkt_violation:.6g} where {ours.violation:.6g} is true")
    return complaints


def _is_primal(claim: Any, value: float, allowed: float) -> bool:
    """A primal may be above the true one by what the remark says that rounding may have changed: then it is a bound."""
    return bool(-allowed <= claim.primal - value <= allowed + _said_rounding(claim))


def _said_rounding(claim: Any) -> float:
    said = re.search(r"the primal by ([0-9.e+-]+|inf), which", claim.remark)
    return 1.06 * float(said.group(1)) if said else 0.0  # two digits are said


def _beside_the_oracle(part: Part, K: Array, case: Case, ours: Numbers) -> list[str]:
    """The quadratic program's optimum lies between the certificate's objectives."""
    if not part.certificate.verified:
        return []
    found = best_dual(part.dual, K, exact_bias=case.bias == "exact")
    if found is None:
        return []
    value, precision = found
    half = 0.5 if part.halved else 1.0
    allowed = half * precision + ours.objective_error
    claim = part.certificate
    complaints = []
    if claim.dual > half * value + allowed:
        complaints.append(f"dual {claim.dual!r} above the optimum {half * value!r} +- {allowed:.2g}")
    if claim.primal < half * value - allowed:
        complaints.append(f"primal {claim.primal!r} below the optimum {half * value!r} +- {allowed:.2g}")
    return complaints


def _judge_linear(clf: Any, case: Case) -> list[str]:
    """Weights alone are published: their primal objective, and that the dual is not above it."""
    X, codes = case.X.astype(Extended), np.searchsorted(clf.classes_, case.y)
    coef, intercept = np.asarray(clf.coef_, dtype=Extended), np.asarray(clf.intercept_, dtype=Extended)
    d, squared = len(clf.classes_), case.loss == "squared_hinge"
    constant = 1 if case.bias == "regularized" else 0
    certificates = clf.certificate_.parts or (clf.certificate_,)
    if case.machine in ("ovo", "dag"):
        sign = -1 if d == 2 else 1
        weights = [
            (np.stack([sign * w, -sign * w]), np.array([sign * b, -sign * b]))
            for w, b in zip(coef, intercept, strict=True)
        ]
        members = [np.flatnonzero((codes == i) | (codes == j)) for i, j in combinations(range(d), 2)]
        seconds = [j for _i, j in combinations(range(d), 2)]
        tables = [table_of("ova", (codes[r] == j).astype(np.int64), 2) for r, j in zip(members, seconds, strict=True)]
        half = 0.5
    else:
        two = d == 2
        weights = [
            (np.vstack([-coef, coef]) if two else coef, np.concatenate([-intercept, intercept]) if two else intercept)
        ]
        members, tables, half = [np.arange(len(codes))], [table_of(case.machine, codes, d, case.cost)], 1.0
    complaints = []
    for (W, b), rows, table, claim in zip(weights, members, tables, certificates, strict=True):
        dual = Dual(table, case.bounds[rows], squared)
        f = X[rows] @ W.T + b
        norm = np.sum(W * W) + constant * np.sum(b * b)
        empty = np.zeros_like(f)
        primal = float(half * (norm / 2 + dual.primal(empty, empty, f)))
        size = np.abs(X[rows]) @ np.abs(W.T) + np.abs(b)
        wrong = 1e-9 * float(half * (norm + np.sum(dual.C[:, None] * (table.scale(size) + np.abs(table.targets)))))
        if claim.verified and not _is_primal(claim, primal, wrong + 1e-9 * primal):
            complaints.append(f"primal {claim.primal!r} where {primal!r} +- {wrong:.2g} is true")
        # An infinite violation says that the point is not feasible, so that its dual bounds nothing.
        bound = primal + wrong + 1e-9 * primal + _said_rounding(claim)
        if claim.verified and math.isfinite(claim.kkt_violation) and not claim.dual <= bound:
            complaints.append(f"dual {claim.dual!r} above the primal objective {primal!r}")
        if claim.optimal and not claim.relative_gap <= LARGEST_GAP:
            complaints.append(f"optimal at a relative gap of {claim.relative_gap:.2g}")
        if claim.optimal and not (math.isfinite(claim.primal) and math.isfinite(claim.dual)):
            complaints.append(f"optimal with objectives {claim.primal} and {claim.dual}")
    return complaints
