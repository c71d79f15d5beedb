"""Binary problems with an exact bias, many at once: the one call into the C++ core, and their objectives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, overload

import numpy as np

from multimargin import _core
from multimargin._typing import FloatArray
from multimargin.kernels.rounding import rounding_of
from multimargin.kernels.store import KernelStore
from multimargin.problems.problem import Bias, Loss
from multimargin.problems.recovery import FEASIBILITY_TOLERANCE, SUMS_TOLERANCE
from multimargin.problems.schemes import BinaryProblem, BinaryProblems, Slices
from multimargin.solvers.certificate import Objectives
from multimargin.solvers.monitor import FitMonitor, Watch
from multimargin.solvers.options import SolverOptions
from multimargin.solvers.report import Progress, SolverReport, StopReason, add_phases
from multimargin.solvers.report_table import Reports


@dataclass(frozen=True, eq=False)
class BinarySolution:
    """Dual variables in the order of the problem's rows, the bias, and what the solve reports."""

    amounts: FloatArray
    bias: float
    report: SolverReport


@dataclass(frozen=True, eq=False)
class BinarySolutions(Sequence[BinarySolution]):
    """Many solutions as arrays; each is made when it is asked for."""

    amounts: Slices
    biases: FloatArray
    reports: Reports

    def __len__(self) -> int:
        return len(self.biases)

    @overload
    def __getitem__(self, index: int) -> BinarySolution: ...
    @overload
    def __getitem__(self, index: slice) -> list[BinarySolution]: ...
    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[i] for i in range(len(self))[index]]
        return BinarySolution(self.amounts[index], float(self.biases[index]), self.reports[index])

    def __iter__(self) -> Iterator[BinarySolution]:
        return (self[i] for i in range(len(self)))


@dataclass(frozen=True, eq=False)
class Batch:
    """The solutions, and the exception (Ctrl-C, a failing callback) that ended the work, if one did."""

    solutions: BinarySolutions
    error: BaseException | None


def solve_batch(
    store: KernelStore,
    problems: Sequence[BinaryProblem],
    loss: Loss,
    options: SolverOptions,
    starts: Sequence[FloatArray] | None = None,
    watch: Watch[Slices] | None = None,
) -> Batch:
    """Solve binary problems over one store, spread over the threads.

    Solves   max sum a - 1/2 (ya)'K(ya) under 0 <= a <= C, y'a = 0, each to LIBSVM's m - M of at most ``options.tol``.
    Given    starts that fit the problems; they are made feasible first.
    Returns  solutions that are feasible whatever ended the work; those not begun are at zero, also for ``watch``.
    See      IGEL, cpp/core/solvers/binary/solve.cpp.
    """
    flat = BinaryProblems.of(problems)
    start = None if starts is None else Slices.of(starts).flat
    monitor: FitMonitor[FloatArray] = FitMonitor(watch).map(lambda amounts: Slices(amounts, flat.starts))
    result = _core.solve_binary(
        store.core,
        (flat.rows, flat.starts, flat.counts, flat.C, start),
        getattr(_core.Loss, loss.value),
        options.to_core(),
        monitor.for_core(),
    )
    reports = Reports.from_core(result.table, result.traces)
    biases = result.table[:, _core.report_columns().index("bias")].copy()
    error, amounts = result.error, result.amounts
    del result  # see solver.run_core
    return Batch(BinarySolutions(Slices(amounts, flat.starts), biases, reports), error)


def signs(problem: BinaryProblem) -> FloatArray:
    """Return y, in the order of the problem's rows."""
    return np.where(np.arange(len(problem.rows)) < problem.n_positive, 1.0, -1.0)


def evaluate_binary(
    problem: BinaryProblem, amounts: FloatArray, scores: FloatArray, intercept: float, loss: Loss, bias: Bias
) -> Objectives:
    r"""Return objectives and violation at a, given f without an exact bias (with a regularised one).

    Exact bias: LIBSVM's m - M (HL02 (22)); else the largest projected gradient.
    """
    y, C = signs(problem), problem.C
    squared = loss is Loss.SQUARED_HINGE
    cap = np.full(len(C), np.inf) if squared else C
    hard = bool(np.isinf(C).all())
    ridge = 0.5 / C if squared else np.zeros(len(C))
    margin = y * (scores + (intercept if bias is Bias.EXACT else 0.0))
    slack = np.maximum(1.0 - margin, 0.0)
    norm = float(np.sum(amounts * y * scores))
    charge = 0.0 if hard else float(np.sum(C * (slack**2 if squared else slack)))
    stretch = 1.0
    if hard:  # the factor on w and b that makes every margin reach 1: a feasible point of the primal
        stretch = np.inf if (margin <= 0).any() else max(1.0, float(1.0 / margin.min()))
    return Objectives(
        primal=0.5 * stretch**2 * norm + charge,
        dual=float(amounts.sum()) - 0.5 * norm - 0.5 * float(np.sum(ridge * amounts**2)),
        violation=_violation(y * amounts, scores - y + ridge * y * amounts, y, cap, bias),
    )


def evaluate_with_bias(
    problem: BinaryProblem, amounts: FloatArray, scores: FloatArray, intercept: float, loss: Loss, bias: Bias
) -> Objectives:
    """As ``evaluate_binary``, and how far an exact bias is outside the interval of the scores, which m - M ignores."""
    numbers = evaluate_binary(problem, amounts, scores, intercept, loss, bias)
    if bias is not Bias.EXACT:
        return numbers
    there = evaluate_binary(problem, amounts, scores + intercept, 0.0, loss, Bias.NONE).violation
    return replace(numbers, violation=max(numbers.violation, there))


def examined_binary(
    problem: BinaryProblem,
    amounts: FloatArray,
    numbers: Objectives,
    sizes: FloatArray,
    loss: Loss,
    exact_bias: float | None,
) -> Objectives:
    """Return the numbers of a point with its rounding, given ``kernel_sizes``; outside the bounds nothing is known."""
    squared = loss is Loss.SQUARED_HINGE
    level = 1.0 + (0.0 if exact_bias is None else abs(exact_bias))
    beta = (signs(problem) * amounts)[:, None]
    rounding = rounding_of(sizes, beta, amounts[:, None], problem.C, squared=squared, level=level)
    cap = np.full(len(problem.C), np.inf) if squared else problem.C
    feasible = _is_feasible(problem, amounts, cap, balanced=exact_bias is not None)
    return replace(numbers, violation=numbers.violation if feasible else np.inf, rounding=rounding)


def _is_feasible(problem: BinaryProblem, amounts: FloatArray, cap: FloatArray, *, balanced: bool) -> bool:
    """Whether the variables keep within their bounds and, if they must, balance, but for rounding."""
    allowed = FEASIBILITY_TOLERANCE * (np.where(np.isfinite(problem.C), problem.C, 0.0) + np.abs(amounts))
    if not bool((amounts >= -allowed).all() and (amounts <= cap + allowed).all()):
        return False
    total = float(np.sum(signs(problem) * amounts))
    return not balanced or abs(total) <= SUMS_TOLERANCE * float(np.abs(amounts).sum())


def _violation(beta: FloatArray, error: FloatArray, y: FloatArray, cap: FloatArray, bias: Bias) -> float:
    """How far the bias would have to be in two places; without one, how far a score is on the wrong side."""
    amounts = y * beta
    rises = np.where(y > 0, amounts < cap, amounts > 0)
    falls = np.where(y > 0, amounts > 0, amounts < cap)
    lowest_up = float(np.min(error[rises], initial=np.inf))
    largest_low = float(np.max(error[falls], initial=-np.inf))
    found = largest_low - lowest_up if bias is Bias.EXACT else max(-lowest_up, largest_low)
    if np.isnan(error).any() or np.isnan(amounts).any():
        return np.inf  # comparisons pass over what is not a number
    return max(0.0, found)


def progress_of(report: SolverReport, n_active: int, n_support: int) -> Progress:
    """Return the last moment of a solve."""
    shared: dict[str, Any] = {
        name: getattr(report, name) for name in ("seconds", "violation", "dual", "primal", "kernel_rows", "cache_hits")
    }
    return Progress(iteration=report.n_iter, n_active=n_active, n_support=n_support, **shared)


def sum_reports(reports: Sequence[SolverReport]) -> SolverReport:
    """Return one report for several problems: objectives and costs add up, the worst one gives the violation."""
    unfinished = [report for report in reports if report.stop_reason is not StopReason.CONVERGED]
    return replace(
        (unfinished or reports)[0],
        n_iter=sum(report.n_iter for report in reports),
        seconds=sum(report.seconds for report in reports),
        violation=max(report.violation for report in reports),
        dual=sum(report.dual for report in reports),
        primal=sum(report.primal for report in reports),
        kernel_rows=sum(report.kernel_rows for report in reports),
        cache_hits=sum(report.cache_hits for report in reports),
        verified=all(report.verified for report in reports),
        float64_rows=any(report.float64_rows for report in reports),
        phases=add_phases([report.phases for report in reports]),
        traces=tuple(trace for report in reports for trace in report.traces),
    )
