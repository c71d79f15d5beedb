"""What the core leaves of all pairs, made feasible, finished and certified together; doubtful pairs one by one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from multimargin._typing import IntArray
from multimargin.fitting.linear_pair_points import PairPoints, evaluate_points, points_of
from multimargin.fitting.linear_pairs import PairWork, SolvedPairs, is_wide
from multimargin.fitting.pair_certificates import certify_together
from multimargin.fitting.pairs import ENDS, PairFit
from multimargin.problems.problem import Bias
from multimargin.problems.schemes import Slices
from multimargin.solvers.binary import BinarySolutions, evaluate_with_bias, examined_binary
from multimargin.solvers.certificate import Certificate, assemble
from multimargin.solvers.certificate_table import CertificateTable
from multimargin.solvers.linear.core import LinearOptions
from multimargin.solvers.linear.driver import EXTRA_STEPS, settle_linear
from multimargin.solvers.linear.types import DESCENT, NEWTON, Clock, LinearLimits, LinearPoint, LinearSolution
from multimargin.solvers.monitor import FitMonitor, Watch
from multimargin.solvers.pair_objectives import PairObjectives
from multimargin.solvers.report import StopReason
from multimargin.solvers.report_table import REASONS, Reports

# What certificates call a solver, by whether coordinate steps were made, and Newton's.
SOLVERS = (NEWTON, DESCENT, f"{DESCENT} and {NEWTON}")


@dataclass(eq=False)
class SettledPairs:
    """A feasible point of each pair with its numbers, and what was spent on it."""

    points: PairPoints
    numbers: PairObjectives
    reasons: NDArray[np.int8]
    n_iter: IntArray
    seconds: np.ndarray
    solvers: NDArray[np.int8]  # places among SOLVERS
    error: BaseException | None


def settle_pairs(
    fit: PairFit, limits: LinearLimits, found: SolvedPairs, clock: Clock, watch: Watch[PairPoints] | None
) -> SettledPairs:
    """Return pairs that are feasible, those that met tol beyond it where a small problem asks for that.

    What is not good enough goes on alone, until the time of the fit is over or a caller ends it; then all that are left
    stay where they are.
    """
    return _Settlement(fit, limits, found, clock, watch).run()


def tol_of_points(fit: PairFit, tol: float) -> float:
    """Return which largest gradient at the bias a pair may have: m - M of an exact bias is the distance of two."""
    return tol / 2 if fit.spec.bias is Bias.EXACT else tol


def feasible_points(fit: PairFit, limits: LinearLimits, found: SolvedPairs) -> PairPoints:
    """Return the points where pairs are, whose sums are made zero by what violates tol by no more than half."""
    return points_of(fit, found.amounts, found.biases, tol_of_points(fit, limits.tol) / 2)


class _Settlement:
    def __init__(
        self, fit: PairFit, limits: LinearLimits, found: SolvedPairs, clock: Clock, watch: Watch[PairPoints] | None
    ) -> None:
        self.fit, self.limits, self.found, self.clock, self.monitor = fit, limits, found, clock, FitMonitor(watch)
        self.error = found.error
        self.points = feasible_points(fit, limits, found)
        self.numbers = evaluate_points(fit, self.points)
        self.reasons = found.reasons.copy()
        self.n_iter = found.passes + found.n_newton
        self.solvers = _solvers(found)
        self.seconds = found.seconds.copy()

    def run(self) -> SettledPairs:
        found = self.found
        good = found.are(StopReason.CONVERGED) & self._good()
        wanted = (found.are(StopReason.CONVERGED) & ~good) | found.are(StopReason.UNFINISHED, StopReason.STALLED)
        if good.any() and self._goes_beyond:
            if is_wide(self.fit):  # Newton's equations of so many weights are Python's
                wanted |= good
            else:
                self._polish(np.flatnonzero(good))
        self._one_by_one(np.flatnonzero(wanted))
        reached = self._good() & (self.reasons != REASONS.index(StopReason.INTERRUPTED))
        self.reasons[reached] = REASONS.index(StopReason.CONVERGED)
        return SettledPairs(
            self.points, self.numbers, self.reasons, self.n_iter, self.seconds, self.solvers, self.error
        )

    def _good(self) -> NDArray[np.bool_]:
        """Of which pairs the point violates nothing by more than tol."""
        return self.points.harmless & (self.numbers.projected <= tol_of_points(self.fit, self.limits.tol))

    @property
    def _goes_beyond(self) -> bool:
        return self.limits.extra_tol > 0.0 and self.limits.max_iter < 0 and self.found.ended is None

    def _polish(self, good: IntArray) -> None:
        """Take some more of Newton's steps on these pairs, and keep what they made better."""
        found, fit = self.found, self.fit
        more = replace(
            found,
            amounts=found.amounts.copy(),
            biases=found.biases.copy(),
            reasons=found.reasons.copy(),
            n_newton=found.n_newton.copy(),
            seconds=found.seconds.copy(),
            widths=found.widths.copy(),
        )
        # The machine "ww" of two classes, which a pair is where it goes on alone, has violations twice as large.
        options = LinearOptions(tol=self.limits.extra_tol / 2, max_passes=EXTRA_STEPS)
        PairWork(fit, self.limits, more, self.clock, None).newton(good, options)
        points = feasible_points(fit, self.limits, more)
        numbers = evaluate_points(fit, points)
        better = points.harmless & (numbers.projected < self.numbers.projected)
        self.points = _chosen(fit, better, points, self.points)
        self.numbers = evaluate_points(fit, self.points)
        self.n_iter, self.seconds, self.solvers = more.passes + more.n_newton, more.seconds, _solvers(more)
        self.error = self.error or more.error

    def _one_by_one(self, wanted: IntArray) -> None:
        """Go on with these pairs while there is time, and nothing has ended the fit."""
        ended = self.found.ended
        for place, index in enumerate(wanted.tolist()):
            if ended is None and self.error is not None:
                ended = StopReason.INTERRUPTED
            if ended is None and self.clock.left <= 0.0:
                ended = StopReason.MAX_TIME
            if ended is not None:
                self.reasons[wanted[place:]] = REASONS.index(ended)
                break
            solution = self._settle(index)
            self._put(index, solution)
            reason = solution.report.stop_reason
            ended = reason if reason in ENDS else None
        if len(wanted):
            self.numbers = evaluate_points(self.fit, self.points)

    def _settle(self, index: int) -> LinearSolution:
        fit, found = self.fit, self.found.one(self.fit, index)
        # Those of one pair as the machine "ww", whose violations are twice as large.
        own = replace(
            self.limits,
            tol=2.0 * tol_of_points(fit, self.limits.tol),
            max_time=self.clock.left + found.seconds,
        )

        def points(point: LinearPoint) -> PairPoints:
            now = self.points
            copies = {name: getattr(now, name).copy() for name in ("amounts", "biases", "coef", "scores")}
            with_own = replace(now, **copies)
            _put_point(fit, with_own, index, point)
            return with_own

        return settle_linear(fit.dual_problem(fit.problems[index]), own, found, self.monitor.map(points))

    def _put(self, index: int, solution: LinearSolution) -> None:
        report = solution.report
        _put_point(self.fit, self.points, index, solution.point)
        # What could not be made feasible has an infinite violation.
        self.points.harmless[index] = np.isfinite(report.violation)
        self.reasons[index] = REASONS.index(report.stop_reason)
        self.n_iter[index], self.seconds[index] = report.n_iter, report.seconds
        self.solvers[index] = SOLVERS.index(solution.solver)
        self.error = self.error or solution.error


def _solvers(found: SolvedPairs) -> NDArray[np.int8]:
    return np.where(found.passes > 0, np.where(found.n_newton > 0, 2, 1), 0).astype(np.int8)


def _put_point(fit: PairFit, points: PairPoints, index: int, point: LinearPoint) -> None:
    own = slice(*fit.problems.starts[index : index + 2].tolist())
    state = point.state
    points.amounts[own] = state.amounts[:, 0]
    points.scores[own] = np.asarray(state.scores)[:, 1]
    points.coef[index] = point.weights[:, 1]
    points.biases[index] = 0.0 if state.bias is None else state.bias[1]


def _chosen(fit: PairFit, first: NDArray[np.bool_], one: PairPoints, other: PairPoints) -> PairPoints:
    """Return the first points of some pairs, and the others of all others."""
    each = np.repeat(first, fit.problems.sizes)
    return PairPoints(
        np.where(each, one.amounts, other.amounts),
        np.where(first, one.biases, other.biases),
        np.where(first[:, None], one.coef, other.coef),
        np.where(each, one.scores, other.scores),
        first | other.harmless,
    )


def certify_settled(fit: PairFit, settled: SettledPairs, reason: str) -> CertificateTable:
    """Return the certificates of all pairs."""
    solutions, spec = _solutions(fit, settled), fit.spec
    table, doubtful = certify_together(fit.problems, solutions, spec, fit.all_sizes, (NEWTON, reason))
    table.columns["solver"], table.texts["solver"] = settled.solvers.copy(), SOLVERS
    for index in doubtful.tolist():
        table.put(index, _certify_pair(fit, settled, solutions, index, reason))
    return table


def _solutions(fit: PairFit, settled: SettledPairs) -> BinarySolutions:
    spent: dict[str, NDArray[Any]] = {"reasons": settled.reasons, "n_iter": settled.n_iter, "seconds": settled.seconds}
    spent["float64_rows"] = np.ones(len(settled.reasons), dtype=np.bool_)
    amounts = Slices(settled.points.amounts, fit.problems.starts)
    return BinarySolutions(amounts, settled.points.biases, Reports.of_points(settled.numbers.columns, **spent))


def _certify_pair(fit: PairFit, settled: SettledPairs, solutions: BinarySolutions, index: int, why: str) -> Certificate:
    binary, spec, solution = fit.problems[index], fit.spec, solutions[index]
    scores = Slices(settled.points.scores, fit.problems.starts)[index]
    numbers = evaluate_with_bias(binary, solution.amounts, scores, solution.bias, spec.loss, spec.bias)
    exact_bias = solution.bias if spec.bias is Bias.EXACT else None
    numbers = examined_binary(binary, solution.amounts, numbers, fit.sizes_of(binary), spec.loss, exact_bias)
    solver = (SOLVERS[settled.solvers[index]], why)
    return assemble(spec.kernel, numbers, report=solution.report, tol=spec.tol, solver=solver)
