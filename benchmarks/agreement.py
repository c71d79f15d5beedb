"""The same optimum as LIBSVM's: objectives and predictions of one-vs-one beside scikit-learn's SVC.

    python -m benchmarks.agreement [--data NAME ...] [--defaults | --protocol]

On every set with at most 6,000 rows, letter and shuttle, with the protocol's (C, gamma) and with scikit-learn's
defaults (C=1, gamma="scale"). For each pair of classes the dual objective sum a - 1/2 beta' K beta is computed here, in
float64, from the coefficients of both models: ours at tol=1e-5 must be feasible and not below scikit-learn's at
tol=1e-6 by more than 1e-6 of its value. Then both are fitted at tol=1e-3: their predictions of the test rows (of the
training rows where there is no test part) may differ on two rows or 0.1 %. Exit code 1 when a set fails.
"""

from __future__ import annotations

import sys
import warnings
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from sklearn import svm
from sklearn.exceptions import ConvergenceWarning

from multimargin import SVC
from multimargin.datasets import Benchmark, load_benchmark, parameters

Array = NDArray[np.float64]

SETS = (
    *("iris", "wine", "glass", "vowel", "vehicle", "segment", "dna", "satimage", "abalone", "car", "car_onehot"),
    *("optdigits", "page-blocks", "soybean", "soybean_onehot", "heart", "australian", "diabetes", "german"),
    *("adult_small", "banana", "letter", "shuttle"),
)
BELOW = 1e-6  # of scikit-learn's dual objective
ROUNDING = 1e-9  # of the bound C, and of the sum of a: the tolerance of feasibility
BLOCK = 1024  # rows of K at a time
PEER_STEPS = 50_000_000  # per pair: a limit where LIBSVM at tol=1e-6 is slow; its dual is then still a lower bound


@dataclass(frozen=True)
class PairDual:
    """One pair of classes: the dual objective, and how far the point is outside 0 <= a <= C, sum y a = 0."""

    dual: float
    outside: float


def pair_duals(clf: Any, X: Array, y: NDArray[Any], C: float, gamma: float) -> list[PairDual]:
    """Return the dual of every pair, from dual_coef_, support_ and the data; pairs in LIBSVM's order.

    LIBSVM's layout: a support vector of class i has its coefficient in the pair with j in row j - 1 if i < j, else in
    row j. With two classes scikit-learn (and we) turn the sign.
    """
    coef, rows = np.asarray(clf.dual_coef_), np.asarray(clf.support_)
    if len(clf.classes_) == 2:
        coef = -coef
    codes = np.searchsorted(clf.classes_, y[rows])
    duals = []
    for i, j in combinations(range(len(clf.classes_)), 2):
        first, second = np.flatnonzero(codes == i), np.flatnonzero(codes == j)
        beta = np.concatenate([coef[j - 1, first], coef[i, second]])
        sign = np.repeat([1.0, -1.0], [len(first), len(second)])
        used = beta != 0
        points = X[rows[np.concatenate([first, second])[used]]]
        duals.append(dual_of(points, beta[used], sign[used], C, gamma))
    return duals


def dual_of(points: Array, beta: Array, sign: Array, C: float, gamma: float) -> PairDual:
    """sum a - 1/2 beta' K beta with a = y beta, for the kernel exp(-gamma |x - z|^2), by blocks of rows."""
    a = sign * beta
    norm = 0.0
    for begin in range(0, len(beta), BLOCK):
        block = slice(begin, begin + BLOCK)
        K = np.exp(-gamma * cdist(points[block], points, "sqeuclidean"))
        norm += float(beta[block] @ (K @ beta))
    bounds = max(float(-a.min(initial=0.0)), float(a.max(initial=0.0)) - C, 0.0) / C
    balance = abs(float(beta.sum())) / max(float(np.abs(a).sum()), 1e-300)
    return PairDual(float(a.sum()) - norm / 2, max(bounds, balance))


def gamma_value(gamma: float | str, X: Array) -> float:
    """The value of gamma="scale" in scikit-learn."""
    return float(1 / (X.shape[1] * X.var())) if gamma == "scale" else float(gamma)


@dataclass(frozen=True)
class Comparison:
    """One row of the table."""

    name: str
    C: float
    gamma: float
    n_pairs: int
    below: float  # the largest (theirs - ours) / theirs of a pair; negative where ours is higher
    outside: float
    ours: Any
    peer: Any
    differ: int
    n_rows: int

    @property
    def allowed(self) -> int:
        return max(2, self.n_rows // 1000)

    @property
    def failures(self) -> list[str]:
        wrong = {
            "dual too low": not self.below <= BELOW,
            "not feasible": not self.outside <= ROUNDING,
            "predictions differ": self.differ > self.allowed,
        }
        return [what for what, holds in wrong.items() if holds]

    def line(self) -> str:
        ended = self.ours.certificate_.stop_reason
        notes = [*(["ours " + ended] if ended != "converged" else []), *(["peer unfinished"] * self.peer.fit_status_)]
        verdict = "FAILS: " + ", ".join(self.failures) if self.failures else "ok"
        return (
            f"| {self.name} | {self.C:g} | {self.gamma:.4g} | {self.n_pairs} | {self.below:+.1e} | "
            f"{self.outside:.0e} | {self.differ} of {self.n_rows} ({self.allowed}) | "
            f"{verdict}{' (' + ', '.join(notes) + ')' if notes else ''} |"
        )


def compare(data: Benchmark, C: float, gamma: float | str, limit: float) -> Comparison:
    """Fit both twice and compare."""
    kernel: dict[str, Any] = {"C": C, "gamma": gamma}
    ours = SVC(**kernel, tol=1e-5, max_time=limit).fit(data.X, data.y)
    peer = svm.SVC(**kernel, tol=1e-6, cache_size=1000, max_iter=PEER_STEPS).fit(data.X, data.y)
    number = gamma_value(gamma, data.X)
    mine = pair_duals(ours, data.X, data.y, C, number)
    theirs = pair_duals(peer, data.X, data.y, C, number)
    rows = data.X if data.X_test is None else data.X_test
    usual = [
        SVC(**kernel, max_time=limit).fit(data.X, data.y).predict(rows),
        svm.SVC(**kernel, cache_size=1000).fit(data.X, data.y).predict(rows),
    ]
    return Comparison(
        name=data.name,
        C=C,
        gamma=number,
        n_pairs=len(mine),
        below=max((t.dual - m.dual) / max(abs(t.dual), 1e-300) for m, t in zip(mine, theirs, strict=True)),
        outside=max(m.outside for m in mine),
        ours=ours,
        peer=peer,
        differ=int(np.sum(usual[0] != usual[1])),
        n_rows=len(rows),
    )


def settings(name: str, defaults: bool | None) -> list[tuple[float, float | str]]:
    """The protocol's (C, gamma), scikit-learn's defaults, or both; once where they are the same."""
    both = {False: parameters(name, "ovo"), True: (1.0, "scale")}
    return list(dict.fromkeys(both.values())) if defaults is None else [both[defaults]]


@click.command()
@click.option("--data", multiple=True, default=SETS)
@click.option("--defaults/--protocol", default=None, help="Only C=1, gamma='scale', or only the protocol's parameters.")
@click.option("--limit", default=600.0, help="Seconds per fit of ours.")
def main(data: tuple[str, ...], defaults: bool | None, limit: float) -> None:
    """Compare every set; one line each."""
    warnings.simplefilter("ignore", ConvergenceWarning)
    print("| data | C | gamma | pairs | dual below LIBSVM's | infeasible by | predictions differ (allowed) | verdict |")
    print("|---|---|---|---|---|---|---|---|")
    failed = total = 0
    for name in data:
        benchmark = load_benchmark(name)
        for C, gamma in settings(name, defaults):
            comparison = compare(benchmark, C, gamma, limit)
            print(comparison.line(), flush=True)
            failed += bool(comparison.failures)
            total += 1
    print(f"\n{total - failed} of {total} ok")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
