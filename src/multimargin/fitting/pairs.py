"""One fit of a one-vs-one machine: a binary problem for each pair of classes over one kernel store."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from multimargin._typing import FloatArray
from multimargin.base.resources import n_threads
from multimargin.fitting.machine import (
    KernelFit,
    binary_solver_name,
    choose_binary_solver,
    choose_solver,
    end_trace,
    make_options,
    with_precision,
)
from multimargin.fitting.pair_certificates import certify_together
from multimargin.fitting.spec import FitSpec
from multimargin.kernels.rounding import kernel_sizes
from multimargin.kernels.store import KernelStore
from multimargin.models.pair_model import PairModel, model_attributes
from multimargin.problems.machines import MACHINES
from multimargin.problems.problem import Bias, DualProblem, Loss
from multimargin.problems.schemes import BinaryProblem, BinaryProblems, Slices, pair_problems
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
from multimargin.solvers.effort import NarrowGap, work_left
from multimargin.solvers.monitor import FitMonitor, Watch
from multimargin.solvers.options import SolverChoice, SolverOptions
from multimargin.solvers.report import Progress, SolverReport, StopReason
from multimargin.solvers.report_table import Reports
from multimargin.solvers.trace import Trace

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


class OneVsOneFit:
    """The fit of all pairs of classes; ``store`` as of KernelFit."""

    def __init__(
        self, params: dict[str, Any], data: TrainingSet, spec: FitSpec, store: KernelStore | None = None
    ) -> None:
        self.params, self.data, self.spec = params, data, spec
        self.fit = PairFit.of(data, spec, store)
        self.error: BaseException | None = None

    @property
    def n_iter(self) -> np.ndarray:
        n_iter: np.ndarray = np.maximum(1, self.solutions.reports.columns["n_iter"]).astype(np.int32)
        return n_iter

    @property
    def store(self) -> KernelStore:
        return self.fit.store

    def problems(self) -> Iterator[DualProblem]:
        return map(self.fit.dual_problem, self.fit.problems)

    def solve(self, start: PairState | None, monitor: FitMonitor[dict[str, Any]]) -> Certificate:
        """Solve all pairs with the options that the parameters ask for; once more where the gap of one is too wide."""
        if start is not None:
            check_start(self.fit, start)
        fit, gap, starts = self.fit, NarrowGap(self.params, self.spec.tol), None if start is None else start.amounts
        states: FitMonitor[Slices] = monitor.map(lambda amounts: _attributes_so_far(self.fit, amounts))
        params, before = self.params, None
        while True:
            options, solver, reason = _plan(params, fit)
            if fit.spec.bias is Bias.EXACT:
                batch = solve_batch(fit.store, fit.problems, fit.spec.loss, options, starts, states)
            else:
                batch = _InTurn(fit, options, monitor).run(starts)
            found, solutions = certify_pairs(fit, batch.solutions, solver, reason), batch.solutions
            if before is not None:
                solutions = replace(solutions, reports=solutions.reports.after(before))
            again = gap.next(found, work_left(len(self.data.y), solutions.reports.phases))
            if again is None or gap.certificate is None:
                break
            params, fit = again[0], replace(fit, spec=replace(self.spec, tol=again[1]))
            before, starts = solutions.reports, solutions.amounts
        self.solutions, self.error = solutions, batch.error
        return gap.certificate or found

    def state(self) -> PairState:
        return PairState(self.solutions.amounts)

    def model(self) -> PairModel:
        return self.fit.model(self.solutions.amounts, self.solutions.biases)

    def attributes(self) -> dict[str, Any]:
        return model_attributes(self.data, self.model())

    def trace(self, certificate: Certificate) -> list[Trace]:
        recorded = [trace for each in self.solutions.reports.traces for trace in each]
        return [end_trace(*each) for each in zip(recorded, certificate.parts, strict=True)]


def kernel_fit(
    params: dict[str, Any], data: TrainingSet, spec: FitSpec, store: KernelStore | None = None
) -> KernelFit | OneVsOneFit:
    """Return the fit of a machine, or of the pairs of a scheme."""
    return (OneVsOneFit if spec.scheme else KernelFit)(params, data, spec, store)


def check_start(fit: PairFit, start: PairState) -> None:
    """Refuse a start that belongs to other data."""
    before, now = np.diff(Slices.of(start.amounts).starts).tolist(), fit.problems.sizes.tolist()
    if before != now:
        raise ValueError(
            f"The state to start from has pairs of {before} examples, the data have pairs of {now}; fit from nothing "
            "(warm_start=False) or on the same rows and classes."
        )


def _plan(params: dict[str, Any], fit: PairFit) -> tuple[SolverOptions, str, str]:
    """Return the options, what certificates call the solver, and the reason for it."""
    if fit.spec.bias is not Bias.EXACT:
        solver, reason = choose_solver(params["solver"], fit.dual_problem(fit.problems[0]))
        small, name = fit.is_small and params["solver"] in ("auto", SolverChoice.TWO_LEVEL.value), solver.value
    else:
        solver, reason = choose_binary_solver(params["solver"], fit.spec.kernel)
        small, name = fit.is_small and params["solver"] == "auto", binary_solver_name(params["solver"])
    options = make_options(params, fit.spec, len(fit.data.y), solver, small=small)
    return with_precision(options, fit.spec.kernel, fit.data), name, reason


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
