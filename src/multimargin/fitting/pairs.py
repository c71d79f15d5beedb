"""One fit of a one-vs-one machine: a binary problem for each pair of classes over one kernel store."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from multimargin._typing import FloatArray
from multimargin.base.resources import n_threads
from multimargin.fitting.machine import (
    Fitted,
    binary_solver_name,
    choose_binary_solver,
    choose_solver,
    end_trace,
    fitted_attributes,
    make_monitor,
    make_options,
    with_precision,
)
from multimargin.fitting.pair_certificates import certify_together
from multimargin.fitting.progress import FitTask, progress_line
from multimargin.fitting.spec import FitSpec
from multimargin.kernels.rounding import kernel_sizes
from multimargin.kernels.store import KernelStore
from multimargin.models.pair_model import PairModel, model_attributes
from multimargin.problems.machines import MACHINES
from multimargin.problems.problem import Bias, DualProblem, Loss
from multimargin.problems.schemes import BinaryProblem, BinaryProblems, Slices, pair_problems
from multimargin.problems.separability import refuse_if_inseparable
from multimargin.problems.training_set import TrainingSet
from multimargin.solvers.binary import (
    Batch,
    BinarySolution,
    BinarySolutions,
    evaluate_binary,
    examined_binary,
    progress_of,
    signs,
    solve_batch,
    sum_reports,
)
from multimargin.solvers.certificate import Certificate, Objectives, assemble
from multimargin.solvers.certificate_table import worst_of
from multimargin.solvers.core import Solution, SolverState, run_core
from multimargin.solvers.effort import with_narrow_gap, work_left
from multimargin.solvers.monitor import FitMonitor, Watch
from multimargin.solvers.options import SolverChoice, SolverOptions
from multimargin.solvers.report import Progress, SolverReport, StopReason
from multimargin.solvers.report_table import Reports

# Pairs with at most this many examples are solved beyond tol: see fitting.SMALL_PROBLEM.
SMALL_PAIR = 256


@dataclass(frozen=True, eq=False)
class PairState:
    """Where a one-vs-one fit stands: the dual variables of each pair, for a warm start."""

    amounts: Sequence[FloatArray]


@dataclass(frozen=True, eq=False)
class PairFit:
    """What the steps of one fit share."""

    data: TrainingSet
    spec: FitSpec
    problems: BinaryProblems
    store: KernelStore

    @classmethod
    def of(cls, data: TrainingSet, spec: FitSpec, store: KernelStore | None = None) -> PairFit:
        """Return the fit of all pairs; ``store`` is one of all rows with the trained kernel, if there is one."""
        kernel = spec.kernel
        if spec.bias is Bias.REGULARIZED:
            kernel = kernel.with_offset(kernel.offset + 1.0)
        if store is None:
            store = KernelStore(data.kernel_data, kernel)
        return cls(data, spec, pair_problems(data), store)

    def model(self, amounts: Sequence[FloatArray], biases: FloatArray) -> PairModel:
        return PairModel.from_amounts(
            self.data,
            self.problems,
            amounts,
            biases,
            self.spec.kernel,
            self.spec.scheme,
        )

    @cached_property
    def _sizes(self) -> FloatArray:
        offset = 1.0 if self.spec.bias is Bias.REGULARIZED else 0.0
        kernel = self.spec.kernel
        return kernel_sizes(kernel.with_offset(kernel.offset + offset), self.data.kernel_rows)

    def sizes_of(self, problem: BinaryProblem) -> FloatArray:
        """Return ``kernel_sizes`` of a pair's examples."""
        sizes: FloatArray = self._sizes[np.concatenate([problem.positive, problem.negative])]
        return sizes

    @property
    def all_sizes(self) -> FloatArray:
        """The same of all pairs one after the other."""
        sizes: FloatArray = self._sizes[self.problems.positions]
        return sizes

    @property
    def is_small(self) -> bool:
        """Whether every pair is solved beyond tol."""
        return bool(self.problems.sizes.max() <= SMALL_PAIR)

    def bias_of(self, problem: BinaryProblem, amounts: FloatArray) -> float:
        """The intercept that follows from the dual variables: a regularised bias is their sum, HL02 (10)."""
        return float(np.sum(signs(problem) * amounts)) if self.spec.bias is Bias.REGULARIZED else 0.0

    def biases_of(self, amounts: Slices) -> FloatArray:
        """The same of all pairs."""
        if self.spec.bias is not Bias.REGULARIZED:
            return np.zeros(len(self.problems))
        return np.add.reduceat(self.problems.signs * amounts.flat, self.problems.starts[:-1])

    def dual_problem(self, problem: BinaryProblem) -> DualProblem:
        """The pair as the two-class machine "ww", which is the binary one: both objectives are twice as large."""
        C = problem.C if self.spec.loss is Loss.HINGE else problem.C / 2
        codes = (np.arange(len(problem.rows)) < problem.n_positive).astype(np.int64)
        data = replace(
            self.data, classes=np.arange(2), rows=problem.rows, y=codes, C=C, class_weight=np.ones(2), weight=C
        )
        return DualProblem(
            data, MACHINES["ww"], self.spec.kernel, self.spec.loss, self.spec.bias, given_store=self.store
        )


def run_pair_fit(
    params: dict[str, Any],
    data: TrainingSet,
    spec: FitSpec,
    start: PairState | None,
    task: FitTask,
    store: KernelStore | None = None,
) -> Fitted:
    """Solve all pairs, certify them, and make the attributes. Raises what a callback raised, except Ctrl-C.

    ``store`` is that of another fit on the same data with the same kernel, if there was one.
    """
    fit = PairFit.of(data, spec, store)
    if start is not None:
        check_start(fit, start)
    if np.isinf(data.C).any():
        for problem in fit.problems:
            refuse_if_inseparable(fit.dual_problem(problem))
    with progress_line(int(params["verbose"]), spec.scheme) as show:
        monitor = make_monitor(params, show, task)
        batch, certificate = solve_and_certify_pairs(params, fit, start, monitor)
        show(_last_moment(fit, batch.solutions))
    if batch.error is not None and not isinstance(batch.error, KeyboardInterrupt):
        raise batch.error
    attributes = pair_attributes(fit, batch.solutions)
    reports = batch.solutions.reports
    n_iter = np.maximum(1, reports.columns["n_iter"]).astype(np.int32)
    state = PairState(batch.solutions.amounts)
    attributes |= fitted_attributes(params, certificate, n_iter, spec, (state, data.classes))
    if params["trace"]:
        recorded = [trace for each in reports.traces for trace in each]
        attributes["trace_"] = [end_trace(*each) for each in zip(recorded, certificate.parts, strict=True)]
    return Fitted(batch.error, certificate, attributes, state, fit.store)


def solve_and_certify_pairs(
    params: dict[str, Any], fit: PairFit, start: PairState | None, watch: Watch[dict[str, Any]] | None
) -> tuple[Batch, Certificate]:
    """Solve all pairs with the options that the parameters ask for; once more where the gap of a pair is too wide."""

    def go_on(left: dict[str, Any], tol: float, last: Batch) -> tuple[Batch, Certificate]:
        state = PairState(last.solutions.amounts)
        batch, certificate = _solve_once(left, replace(fit, spec=replace(fit.spec, tol=tol)), state, watch)
        reports = batch.solutions.reports.after(last.solutions.reports)
        return replace(batch, solutions=replace(batch.solutions, reports=reports)), certificate

    first = _solve_once(params, fit, start, watch)
    return with_narrow_gap(
        params,
        fit.spec.tol,
        first,
        go_on,
        lambda last: work_left(len(fit.data.y), last.solutions.reports.phases),
    )


def _solve_once(
    params: dict[str, Any], fit: PairFit, start: PairState | None, watch: Watch[dict[str, Any]] | None
) -> tuple[Batch, Certificate]:
    batch, solver, reason = _solve(params, fit, start, watch)
    return batch, certify_pairs(fit, batch.solutions, solver, reason)


def check_start(fit: PairFit, start: PairState) -> None:
    """Refuse a start that belongs to other data."""
    before, now = np.diff(Slices.of(start.amounts).starts).tolist(), fit.problems.sizes.tolist()
    if before != now:
        raise ValueError(
            f"The state to start from has pairs of {before} examples, the data have pairs of {now}; fit from nothing "
            "(warm_start=False) or on the same rows and classes."
        )


def _solve(
    params: dict[str, Any], fit: PairFit, start: PairState | None, watch: Watch[dict[str, Any]] | None
) -> tuple[Batch, str, str]:
    starts = None if start is None else start.amounts
    if fit.spec.bias is not Bias.EXACT:
        solver, reason = choose_solver(params["solver"], fit.dual_problem(fit.problems[0]))
        small = fit.is_small and params["solver"] in ("auto", SolverChoice.TWO_LEVEL.value)
        options = make_options(params, fit.spec, len(fit.data.y), solver, small=small)
        options = with_precision(options, fit.spec.kernel, fit.data)
        return _InTurn(fit, options, watch).run(starts), solver.value, reason
    solver, reason = choose_binary_solver(params["solver"], fit.spec.kernel)
    small = fit.is_small and params["solver"] == "auto"
    options = make_options(params, fit.spec, len(fit.data.y), solver, small=small)
    options = with_precision(options, fit.spec.kernel, fit.data)

    monitor: FitMonitor[Slices] = FitMonitor(watch).map(lambda amounts: _attributes_so_far(fit, amounts))
    batch = solve_batch(fit.store, fit.problems, fit.spec.loss, options, starts, monitor)
    return batch, binary_solver_name(params["solver"]), reason


def _attributes_so_far(fit: PairFit, amounts: Slices) -> dict[str, Any]:
    """The model of the pairs that are done, as the others are at zero; an exact bias is not known yet."""
    return model_attributes(fit.data, fit.model(amounts, fit.biases_of(amounts)))


def _with_zeros(fit: PairFit, amounts: Sequence[FloatArray]) -> Slices:
    """The dual variables of the first pairs, and zeros for the others."""
    known = np.concatenate([np.zeros(0), *amounts])
    return Slices(np.concatenate([known, np.zeros(len(fit.problems.rows) - len(known))]), fit.problems.starts)


# After one of these the pairs that are left are not begun.
ENDS = (StopReason.MAX_TIME, StopReason.INTERRUPTED, StopReason.CALLBACK)


class _InTurn:
    """Each pair by the general solver; tol and objectives in the units of the binary machine."""

    def __init__(self, fit: PairFit, options: SolverOptions, watch: Watch[dict[str, Any]] | None) -> None:
        self.fit, self.options, self.monitor = fit, options, FitMonitor(watch)
        self.began = time.perf_counter()
        self.done: list[BinarySolution] = []
        self.total: SolverReport | None = None  # of those that are done
        self.n_support = 0
        self.ended: StopReason | None = None
        self.error: BaseException | None = None

    def run(self, starts: Sequence[FloatArray] | None) -> Batch:
        for index in range(len(self.fit.problems)):
            idle = self.ended is not None
            self._add(index, None if starts is None else starts[index])
            if idle and starts is None and not self.options.trace:
                break  # the others are where this one is, at zero
        return Batch(self._solutions(), self.error)

    def _add(self, index: int, start: FloatArray | None) -> None:
        try:
            solution = self._solve(index, start)
        except KeyboardInterrupt as interrupt:  # outside the core, which keeps what it raises
            self.error, self.ended = interrupt, self.ended or StopReason.INTERRUPTED
            solution = self._solve(index, start)
        self.error = self.error or solution.error
        amounts, report = solution.state.amounts[:, 0], _halved(solution.report)
        self.ended = self.ended or (report.stop_reason if report.stop_reason in ENDS else None)
        self.done.append(BinarySolution(amounts, self.fit.bias_of(self.fit.problems[index], amounts), report))
        plain = replace(report, traces=())
        self.total = plain if self.total is None else sum_reports([self.total, plain])
        self.n_support += int((amounts > 0).sum())

    def _solve(self, index: int, start: FloatArray | None) -> Solution:
        """Solve a pair as the machine "ww"; after an end only make its start feasible."""
        options, ended = self.options, self.ended
        left = options.max_time - (time.perf_counter() - self.began)
        solution = run_core(
            self.fit.dual_problem(self.fit.problems[index]),
            replace(
                options,
                tol=2 * options.tol,
                extra_tol=2 * options.extra_tol,
                max_work=options.max_work / len(self.fit.problems),
                max_time=max(1e-9, left if ended is None else 0.0),
            ),
            None if start is None else SolverState(start[:, None], None, 2),
            self.monitor.map(self._attributes, self._of_all) if ended is None else None,
        )
        if ended is None or solution.report.stop_reason is not StopReason.MAX_TIME:
            return solution
        return replace(solution, report=replace(solution.report, stop_reason=ended))

    def _of_all(self, progress: Progress) -> Progress:
        """The moment of a pair as that of one solve of all pairs."""
        halves = {name: getattr(progress, name) / 2 for name in ("violation", "dual", "primal")}
        moment = replace(progress, **halves)
        if self.total is None:
            return moment
        before = progress_of(self.total, len(self.fit.data.y), self.n_support)
        added = ("iteration", "seconds", "dual", "primal", "kernel_rows", "cache_hits", "n_support")
        sums = {name: getattr(before, name) + getattr(moment, name) for name in added}
        return replace(moment, violation=max(before.violation, moment.violation), **sums)

    def _attributes(self, state: SolverState) -> dict[str, Any]:
        """The model while a pair is solved."""
        known = [each.amounts for each in self.done]
        return _attributes_so_far(self.fit, _with_zeros(self.fit, [*known, state.amounts[:, 0]]))

    def _solutions(self) -> BinarySolutions:
        """The solutions as arrays; pairs that are missing are like the last one, which was not begun."""
        done, n_idle = self.done, len(self.fit.problems) - len(self.done)
        reports = Reports.of([each.report for each in done])
        if n_idle:  # at zero every loss is 1
            losses = np.add.reduceat(self.fit.problems.C, self.fit.problems.starts[:-1])[len(done) :]
            reports = reports.followed_by(done[-1].report, losses)
        return BinarySolutions(
            _with_zeros(self.fit, [each.amounts for each in done]),
            np.array([each.bias for each in done] + [0.0] * n_idle),
            reports,
        )


def _halved(report: SolverReport) -> SolverReport:
    return replace(
        report,
        violation=report.violation / 2,
        dual=report.dual / 2,
        primal=report.primal / 2,
        traces=tuple(trace.in_units_of(2) for trace in report.traces),
    )


def certify_pairs(fit: PairFit, solutions: BinarySolutions, solver: str, reason: str) -> Certificate:
    """Return the worst pair's certificate with the sums of what all spent, and those of all."""
    table, doubtful = certify_together(fit.problems, solutions, fit.spec, fit.all_sizes, (solver, reason))
    for index in doubtful.tolist():
        table.put(index, _certify_pair(fit, fit.problems[index], solutions[index], (solver, reason)))
    return worst_of(table)


def _certify_pair(
    fit: PairFit, problem: BinaryProblem, solution: BinarySolution, solver: tuple[str, str]
) -> Certificate:
    """Return the certificate of a pair that is verified."""
    report, spec = solution.report, fit.spec
    numbers = Objectives(report.primal if np.isfinite(report.primal) else np.nan, report.dual, report.violation)
    if np.isinf(fit.data.C).any():
        scores = pair_scores_at(fit, problem, solution.amounts)
        numbers = evaluate_binary(problem, solution.amounts, scores, solution.bias, spec.loss, spec.bias)
    exact_bias = solution.bias if spec.bias is Bias.EXACT else None
    numbers = examined_binary(problem, solution.amounts, numbers, fit.sizes_of(problem), spec.loss, exact_bias)
    return assemble(spec.kernel, numbers, report=report, tol=spec.tol, solver=solver)


def pair_scores_at(fit: PairFit, problem: BinaryProblem, amounts: FloatArray) -> FloatArray:
    """Return f of one pair at its own examples, in float64, without an exact bias."""
    beta = signs(problem) * amounts
    used = np.flatnonzero(beta)
    if not len(used):
        return np.zeros(len(problem.rows))
    points = fit.data.kernel_data[problem.rows]
    return fit.store.scores(problem.rows[used], np.ascontiguousarray(beta[used, None]), points, n_threads())[:, 0]


def pair_attributes(fit: PairFit, solutions: BinarySolutions) -> dict[str, Any]:
    """Return the attributes of a solved fit; enough to predict."""
    return model_attributes(fit.data, fit.model(solutions.amounts, solutions.biases))


def _last_moment(fit: PairFit, solutions: BinarySolutions) -> Progress:
    return progress_of(solutions.reports.total(), len(fit.data.y), int((solutions.amounts.flat > 0).sum()))
