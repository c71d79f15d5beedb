"""One fit of a one-vs-one machine: a binary problem for each pair of classes over one kernel store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from multimargin.binary import (
    Batch,
    BinarySolution,
    evaluate_binary,
    examined_binary,
    progress_of,
    signs,
    solve_batch,
    sum_reports,
)
from multimargin.certificate import Certificate, Objectives, assemble, worst_of
from multimargin.effort import joined, with_narrow_gap
from multimargin.fitting import (
    Fitted,
    ModelWatch,
    Recipe,
    binary_solver_name,
    choose_binary_solver,
    choose_solver,
    end_trace,
    fitted_attributes,
    is_watched,
    make_options,
    make_watch,
    with_precision,
)
from multimargin.kernels import KernelStore
from multimargin.machines import MACHINES, FloatArray
from multimargin.pair_model import PairModel
from multimargin.problem import Bias, DualProblem, Loss
from multimargin.progress import FitTask, progress_line
from multimargin.resources import n_threads
from multimargin.rounding import kernel_sizes
from multimargin.schemes import BinaryProblem, pair_problems
from multimargin.separability import refuse_if_inseparable
from multimargin.solver import (
    Progress,
    Solution,
    SolverChoice,
    SolverOptions,
    SolverReport,
    SolverState,
    StopReason,
    Watch,
    run_core,
)
from multimargin.training_set import TrainingSet

# Pairs with at most this many examples are solved beyond tol: see fitting.SMALL_PROBLEM.
SMALL_PAIR = 256


@dataclass(frozen=True, eq=False)
class PairState:
    """Where a one-vs-one fit stands: the dual variables of each pair, for a warm start."""

    amounts: tuple[FloatArray, ...]


@dataclass(frozen=True, eq=False)
class PairFit:
    """What the steps of one fit share."""

    data: TrainingSet
    recipe: Recipe
    problems: tuple[BinaryProblem, ...]
    store: KernelStore

    @classmethod
    def of(cls, data: TrainingSet, recipe: Recipe, store: KernelStore | None = None) -> PairFit:
        """Return the fit of all pairs; ``store`` is one of all rows with the trained kernel, if there is one."""
        kernel = recipe.kernel
        if recipe.bias is Bias.REGULARIZED:
            kernel = kernel.with_offset(kernel.offset + 1.0)
        if store is None:
            store = KernelStore(data.kernel_data, kernel)
        return cls(data, recipe, tuple(pair_problems(data)), store)

    def model(self, amounts: Sequence[FloatArray], biases: Sequence[float]) -> PairModel:
        return PairModel.from_amounts(
            self.data,
            self.problems,
            amounts,
            np.array(biases, dtype=np.float64),
            self.recipe.kernel,
            self.recipe.scheme,
        )

    @cached_property
    def _sizes(self) -> FloatArray:
        offset = 1.0 if self.recipe.bias is Bias.REGULARIZED else 0.0
        kernel = self.recipe.kernel
        return kernel_sizes(kernel.with_offset(kernel.offset + offset), self.data.kernel_rows)

    def sizes_of(self, problem: BinaryProblem) -> FloatArray:
        """Return ``kernel_sizes`` of a pair's examples."""
        sizes: FloatArray = self._sizes[np.concatenate([problem.positive, problem.negative])]
        return sizes

    @property
    def is_small(self) -> bool:
        """Whether every pair is solved beyond tol."""
        return all(len(each.rows) <= SMALL_PAIR for each in self.problems)

    def bias_of(self, problem: BinaryProblem, amounts: FloatArray) -> float:
        """The intercept that follows from the dual variables: a regularised bias is their sum, HL02 (10)."""
        return float(np.sum(signs(problem) * amounts)) if self.recipe.bias is Bias.REGULARIZED else 0.0

    def dual_problem(self, problem: BinaryProblem) -> DualProblem:
        """The pair as the two-class machine "ww", which is the binary one: both objectives are twice as large."""
        C = problem.C if self.recipe.loss is Loss.HINGE else problem.C / 2
        codes = (np.arange(len(problem.rows)) < problem.n_positive).astype(np.int64)
        data = replace(
            self.data, classes=np.arange(2), rows=problem.rows, y=codes, C=C, class_weight=np.ones(2), weight=C
        )
        return DualProblem(
            data, MACHINES["ww"], self.recipe.kernel, self.recipe.loss, self.recipe.bias, given_store=self.store
        )


def run_pair_fit(
    params: dict[str, Any],
    data: TrainingSet,
    recipe: Recipe,
    start: PairState | None,
    task: FitTask,
    store: KernelStore | None = None,
) -> Fitted:
    """Solve all pairs, certify them, and make the attributes. Raises what a callback raised, except Ctrl-C.

    ``store`` is that of another fit on the same data with the same kernel, if there was one.
    """
    fit = PairFit.of(data, recipe, store)
    if start is not None:
        check_start(fit, start)
    if np.isinf(data.C).any():
        for problem in fit.problems:
            refuse_if_inseparable(fit.dual_problem(problem))
    with progress_line(int(params["verbose"]), recipe.scheme) as show:
        watch = make_watch(params, show, task) if is_watched(params, task) else None
        batch, certificate = solve_and_certify_pairs(params, fit, start, watch)
        show(_last_moment(fit, batch.solutions))
    if batch.error is not None and not isinstance(batch.error, KeyboardInterrupt):
        raise batch.error
    attributes = pair_attributes(fit, batch.solutions)
    n_iter = np.array([max(1, solution.report.n_iter) for solution in batch.solutions], dtype=np.int32)
    state = PairState(tuple(solution.amounts for solution in batch.solutions))
    attributes |= fitted_attributes(params, certificate, n_iter, recipe, (state, data.classes))
    if params["trace"]:
        recorded = [trace for solution in batch.solutions for trace in solution.report.traces]
        attributes["trace_"] = [end_trace(*each) for each in zip(recorded, certificate.parts, strict=True)]
    return Fitted(batch.error, certificate, attributes, state, fit.store)


def solve_and_certify_pairs(
    params: dict[str, Any], fit: PairFit, start: PairState | None, watch: ModelWatch | None
) -> tuple[Batch, Certificate]:
    """Solve all pairs with the options that the parameters ask for; once more where the gap of a pair is too wide."""

    def go_on(left: dict[str, Any], tol: float, last: Batch) -> tuple[Batch, Certificate]:
        state = PairState(tuple(each.amounts for each in last.solutions))
        batch, certificate = _solve_once(left, replace(fit, recipe=replace(fit.recipe, tol=tol)), state, watch)
        both = zip(last.solutions, batch.solutions, strict=True)
        solutions = tuple(replace(now, report=joined(before.report, now.report)) for before, now in both)
        return replace(batch, solutions=solutions), certificate

    return with_narrow_gap(params, fit.recipe.tol, _solve_once(params, fit, start, watch), go_on)


def _solve_once(
    params: dict[str, Any], fit: PairFit, start: PairState | None, watch: ModelWatch | None
) -> tuple[Batch, Certificate]:
    batch, solver, reason = _solve(params, fit, start, watch)
    return batch, certify_pairs(fit, batch.solutions, solver, reason)


def check_start(fit: PairFit, start: PairState) -> None:
    """Refuse a start that belongs to other data."""
    before, now = [len(a) for a in start.amounts], [len(problem.rows) for problem in fit.problems]
    if before != now:
        raise ValueError(
            f"The state to start from has pairs of {before} examples, the data have pairs of {now}; fit from nothing "
            "(warm_start=False) or on the same rows and classes."
        )


def _solve(
    params: dict[str, Any], fit: PairFit, start: PairState | None, watch: ModelWatch | None
) -> tuple[Batch, str, str]:
    starts = None if start is None else start.amounts
    if fit.recipe.bias is not Bias.EXACT:
        solver, reason = choose_solver(params["solver"], fit.dual_problem(fit.problems[0]))
        small = fit.is_small and params["solver"] in ("auto", SolverChoice.TWO_LEVEL.value)
        options = make_options(params, fit.recipe, len(fit.data.y), solver, small=small)
        options = with_precision(options, fit.recipe.kernel, fit.data)
        return _solve_in_turn(fit, options, starts, watch), solver.value, reason
    solver, reason = choose_binary_solver(params["solver"], fit.recipe.kernel)
    small = fit.is_small and params["solver"] == "auto"
    options = make_options(params, fit.recipe, len(fit.data.y), solver, small=small)
    options = with_precision(options, fit.recipe.kernel, fit.data)

    def watch_amounts(progress: Progress, snapshot: Callable[[], list[FloatArray | None]]) -> bool:
        return watch is not None and watch(progress, lambda: _attributes_so_far(fit, snapshot()))

    batch = solve_batch(
        fit.store, fit.problems, fit.recipe.loss, options, starts, None if watch is None else watch_amounts
    )
    return batch, binary_solver_name(params["solver"]), reason


def _attributes_so_far(fit: PairFit, amounts: Sequence[FloatArray | None]) -> dict[str, Any]:
    """The model of the pairs that are done, as the others are at zero; an exact bias is not known yet."""
    known = [np.zeros(len(problem.rows)) if a is None else a for problem, a in zip(fit.problems, amounts, strict=True)]
    biases = [fit.bias_of(problem, a) for problem, a in zip(fit.problems, known, strict=True)]
    return model_attributes(fit.data, fit.model(known, biases))


# After one of these the pairs that are left are not begun.
ENDS = (StopReason.MAX_TIME, StopReason.INTERRUPTED, StopReason.CALLBACK)


def _solve_in_turn(
    fit: PairFit, options: SolverOptions, starts: Sequence[FloatArray] | None, watch: ModelWatch | None
) -> Batch:
    """Each pair by the general solver; tol and objectives in the units of the binary machine."""
    done: list[BinarySolution] = []
    error: BaseException | None = None
    for index in range(len(fit.problems)):
        start = None if starts is None else starts[index]
        try:
            solution = _solve_next(fit, options, start, done, watch)
        except KeyboardInterrupt as interrupt:  # outside the core, which keeps what it raises
            error = interrupt
            solution = _solve_next(fit, options, start, done, watch, StopReason.INTERRUPTED)
        error = error or solution.error
        amounts = solution.state.amounts[:, 0]
        done.append(BinarySolution(amounts, fit.bias_of(fit.problems[index], amounts), _halved(solution.report)))
    return Batch(tuple(done), error)


def _halved(report: SolverReport) -> SolverReport:
    return replace(
        report,
        violation=report.violation / 2,
        dual=report.dual / 2,
        primal=report.primal / 2,
        traces=tuple(trace.in_units_of(2) for trace in report.traces),
    )


def _solve_next(
    fit: PairFit,
    options: SolverOptions,
    start: FloatArray | None,
    done: list[BinarySolution],
    watch: ModelWatch | None,
    ended: StopReason | None = None,
) -> Solution:
    """Solve the first pair that is not done, as the machine "ww"; after an end only make its start feasible."""
    ended = ended or next((each.report.stop_reason for each in done if each.report.stop_reason in ENDS), None)
    left = options.max_time - sum(each.report.seconds for each in done)
    solution = run_core(
        fit.dual_problem(fit.problems[len(done)]),
        replace(
            options,
            tol=2 * options.tol,
            extra_tol=2 * options.extra_tol,
            max_work=options.max_work / len(fit.problems),
            max_time=max(1e-9, left if ended is None else 0.0),
        ),
        None if start is None else SolverState(start[:, None], None, 2),
        None if watch is None or ended is not None else _watch_pair(fit, done, watch),
    )
    if ended is None or solution.report.stop_reason is not StopReason.MAX_TIME:
        return solution
    return replace(solution, report=replace(solution.report, stop_reason=ended))


def _watch_pair(fit: PairFit, done: list[BinarySolution], watch: ModelWatch) -> Watch:
    """The caller's function, told of all pairs as of one solve."""
    before = _last_moment(fit, done) if done else None
    rest = [None] * (len(fit.problems) - len(done) - 1)

    def told(progress: Progress, snapshot: Callable[[], SolverState]) -> bool:
        halves = {name: getattr(progress, name) / 2 for name in ("violation", "dual", "primal")}
        moment = replace(progress, **halves)
        if before is not None:
            added = ("iteration", "seconds", "dual", "primal", "kernel_rows", "cache_hits", "n_support")
            sums = {name: getattr(before, name) + getattr(moment, name) for name in added}
            moment = replace(moment, violation=max(before.violation, moment.violation), **sums)
        return watch(
            moment,
            lambda: _attributes_so_far(fit, [*(each.amounts for each in done), snapshot().amounts[:, 0], *rest]),
        )

    return told


def certify_pairs(fit: PairFit, solutions: Sequence[BinarySolution], solver: str, reason: str) -> Certificate:
    """Return the worst pair's certificate with the sums of what all spent, and the list of all."""
    hard = bool(np.isinf(fit.data.C).any())
    parts = []
    for problem, solution in zip(fit.problems, solutions, strict=True):
        report = solution.report
        numbers = Objectives(report.primal if np.isfinite(report.primal) else np.nan, report.dual, report.violation)
        if hard and report.verified:
            scores = pair_scores_at(fit, problem, solution.amounts)
            numbers = evaluate_binary(
                problem, solution.amounts, scores, solution.bias, fit.recipe.loss, fit.recipe.bias
            )
        if report.verified:
            sizes = fit.sizes_of(problem)
            numbers = examined_binary(problem, solution.amounts, numbers, sizes, fit.recipe.loss, fit.recipe.bias)
        parts.append(assemble(fit.recipe.kernel, numbers, report=report, tol=fit.recipe.tol, solver=(solver, reason)))
    return worst_of(parts)


def pair_scores_at(fit: PairFit, problem: BinaryProblem, amounts: FloatArray) -> FloatArray:
    """Return f of one pair at its own examples, in float64, without an exact bias."""
    beta = signs(problem) * amounts
    used = np.flatnonzero(beta)
    if not len(used):
        return np.zeros(len(problem.rows))
    points = fit.data.kernel_data[problem.rows]
    return fit.store.scores(problem.rows[used], np.ascontiguousarray(beta[used, None]), points, n_threads())[:, 0]


def pair_attributes(fit: PairFit, solutions: Sequence[BinarySolution]) -> dict[str, Any]:
    """Return the attributes of a solved fit; enough to predict."""
    model = fit.model([s.amounts for s in solutions], [s.bias for s in solutions])
    return model_attributes(fit.data, model)


def model_attributes(data: TrainingSet, model: PairModel) -> dict[str, Any]:
    """Return the fitted attributes of a model that was trained on these data."""
    return pair_model_attributes(model, data.classes, data.class_weight, data.X.shape)


def pair_model_attributes(
    model: PairModel, classes: np.ndarray, class_weight: np.ndarray, shape: tuple[int, int]
) -> dict[str, Any]:
    """Return the fitted attributes in scikit-learn's layout: with two classes both signs are turned."""
    sign = -1.0 if model.n_classes == 2 else 1.0
    return {
        "classes_": classes,
        "class_weight_": class_weight,
        "support_": model.support.astype(np.int32),
        "support_vectors_": model.support_vectors,
        "n_support_": model.n_support,
        "dual_coef_": sign * model.dual_coef,
        "intercept_": sign * model.intercept,
        "shape_fit_": shape,
        "_model": model,
        "_calibrator": None,
    }


def _last_moment(fit: PairFit, solutions: Sequence[BinarySolution]) -> Progress:
    total = sum_reports([solution.report for solution in solutions])
    used = [int((solution.amounts > 0).sum()) for solution in solutions]
    return progress_of(total, len(fit.data.y), sum(used))
