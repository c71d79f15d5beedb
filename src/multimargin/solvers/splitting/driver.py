"""All examples at once: Douglas-Rachford splitting, or a proximal Newton method in features, then the core's check.

Where classes overlap, most dual variables of llw, ats, rm, adm and atm are free, and steps on blocks of examples crawl.
Here every step sees all variables, by one factor of K or by few features of it that all classes share. Which method
goes first, and for how long, follows from counted costs. What they find goes to the core, whose float64 check at all
examples decides; it goes on by blocks where that is not enough.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np
from threadpoolctl import threadpool_limits

from multimargin._typing import FloatArray
from multimargin.problems.machines import Bound
from multimargin.problems.problem import DualProblem
from multimargin.solvers.certificate import Objectives
from multimargin.solvers.core import Solution, SolverState, StateWatch, run_core
from multimargin.solvers.frank_wolfe.bookkeeping import Account, End
from multimargin.solvers.options import SolverOptions
from multimargin.solvers.report import Progress, SolverReport, StopReason
from multimargin.solvers.splitting.douglas_rachford import CHECK_EVERY, DouglasRachford
from multimargin.solvers.splitting.low_rank import compressed, decompose
from multimargin.solvers.splitting.newton import ProximalNewton
from multimargin.solvers.splitting.products import KernelProducts
from multimargin.solvers.splitting.resolvents import DOUBLE, Features, WholeKernel
from multimargin.solvers.splitting.sets import ExampleSets
from multimargin.solvers.splitting.sets import applies as has_form
from multimargin.solvers.trace import Trace, TraceBuilder

SPLITTING = "splitting"
COUNTS = ("splitting_iterations", "newton_steps")  # among the phases of a report
# A point goes to the core's check a little below tol.
AIM = 0.9
# Features are taken until what they leave of K moves no score by more than so many tol, whatever the variables.
LEAST_EIGENVALUE = 2.0
# Before features are put together from their eigenvectors, single rests of the diagonal are down to this share.
DIAGONAL_SHARE = 0.1
MOST_FEATURES = 800
MOST_APART = 150  # of them, where K is inverted, that stand for its largest eigenvalues
# Iterations and steps that a solve usually takes, for the choice of what goes first, and the most of them.
USUAL_ITERATIONS, MOST_ITERATIONS = 1000, 3000
USUAL_STEPS, MOST_STEPS = 100, 600
USUAL_CG_STEPS = 20  # of a Newton step, where the variables of an example share one bound
# Passes over all variables that an iteration and a Newton step take in NumPy, in multiply-adds for each of them.
PASSES_OF_ITERATION, PASSES_OF_STEP = 1000.0, 1000.0
# Iterations whose lowest violations are compared to tell the pace.
WINDOW = 100
# Where a new rho costs a new inverse, so many iterations on so many examples find one to begin with.
FEW_EXAMPLES, FEW_ITERATIONS = 400, 150
# The proximal term falls by this factor after an inner problem that took at most EASY steps.
NARROWER, EASY = 4.0, 20
FIRST_DELTA = 0.3  # of rho where splitting ended
POWER_STEPS = 8
LEAST_SECONDS = 0.02  # for the core's check, whatever the limit
# Multiply-adds of the core's steps on examples, for each class, before all examples are tried at once.
TRIAL_PASSES = 2.0


def applies(problem: DualProblem) -> bool:
    """Return whether the methods here can solve the problem, and its classes are more than two."""
    return problem.n_classes > 2 and has_form(problem)


def check_problem(problem: DualProblem) -> None:
    """Refuse a problem that the methods here cannot solve."""
    if has_form(problem):
        return
    raise ValueError(
        f"solver='splitting' needs loss='hinge', a finite C, a positive semi-definite kernel and margins of one class "
        f"each, which multi_class={problem.machine.name!r} with kernel={problem.kernel.name!r} and "
        f"loss={problem.loss.value!r} has not; use solver='auto'."
    )


def course_of(report: SolverReport) -> str:
    """Return what a certificate adds about the course of a solve; nothing for one by other solvers."""
    if COUNTS[0] not in report.phases:
        return ""
    first, second = (int(report.phases[name]) for name in COUNTS)
    parts = [f"{first} iterations of splitting"] if first else []
    parts += [f"{second} Newton steps in features"] if second else []
    return f"; {' and '.join(parts) or 'blocks of examples were enough'}"


@dataclass(eq=False)
class _Point:
    """A feasible point in signed variables, its scores and their violation."""

    b: FloatArray
    scores: FloatArray
    violation: float


def solve(
    problem: DualProblem, options: SolverOptions, start: SolverState | None = None, watch: StateWatch = None
) -> Solution:
    """Solve a problem whose machine has the form of ``sets.applies``, from a start that was checked.

    Solves   the dual of ``problem``, without an exact bias, to a KKT violation of at most ``options.tol``.
    Returns  a Solution whose state is feasible whatever ended the solve.
    See      EB92 for the splitting, WN11 for its acceleration, RT76 for the proximal point method.
    """
    account = Account(problem, options, watch)
    trial: SolverReport | None = None
    if start is not None or problem.machine.bound is Bound.SIMPLEX:
        tried = run_core(problem, replace(options, max_work=min(_trial_work(problem), options.max_work)), start, watch)
        trial = tried.report
        if trial.stop_reason is not StopReason.STALLED or trial.phases["work"] >= options.max_work:
            return replace(tried, report=replace(trial, phases=trial.phases | dict.fromkeys(COUNTS, 0.0)))
        start = tried.state
        account.n_iter, account.kernel_values = trial.n_iter, trial.kernel_rows * problem.n_examples
    with threadpool_limits(limits=1, user_api="blas"):  # sums have the same bits for any number of threads
        run = _Run(problem, options, account, start)
        reason = run.run()
    return _finish(run, reason, trial)


def _trial_work(problem: DualProblem) -> float:
    return TRIAL_PASSES * problem.n_examples**2 * problem.n_classes


class _Run:
    """One solve: the point reached, and what reached it."""

    def __init__(
        self, problem: DualProblem, options: SolverOptions, account: Account, start: SolverState | None
    ) -> None:
        self.problem, self.options, self.account = problem, options, account
        self.values_before = account.kernel_values
        self.sets = ExampleSets(problem)
        self.products = KernelProducts(problem, options.cache_bytes / 2, options.n_threads, self._poll)
        shape = (problem.n_examples, problem.n_classes)
        b = np.zeros(shape) if start is None else self.sets.project(self.sets.signed(start.amounts))
        scores = None if start is None else start.scores
        self.point = _Point(b, np.zeros(shape), np.inf)
        self.best, self.best_dual = self.point, -np.inf
        self.known = start is None or scores is not None
        if scores is not None:
            self.point.scores = scores
        self.n_iterations = self.n_newton = 0
        self.top: FloatArray | None = None  # the longest of features that are not near enough to K
        self.aim = AIM * options.tol

    def run(self) -> StopReason | None:
        """Return why it ended early, None where its methods have done what they can."""
        try:
            self._poll()
            self.account.reserve = self._seconds_of_pass()
            if not self.known:
                self.point.scores = self.products.scores(self.point.b)
            self._note(self.point)
            if self.point.violation > self.aim:
                self._solve()
            if self.point.violation <= self.aim:
                self.best = self.point
        except End as end:
            return end.reason
        except KeyboardInterrupt as interrupt:
            self.account.error = interrupt
            return StopReason.INTERRUPTED
        return None

    def _solve(self) -> None:
        G, rest = self._features()
        resolvent = self._resolvent(G, rest)
        if resolvent is None:
            return
        newton = np.inf if G is None else USUAL_STEPS * self._cost_of_step(G.shape[1])
        each = self._cost_of_iteration(resolvent)
        most = int(min(MOST_ITERATIONS, newton / each))
        splitting: DouglasRachford | None = None
        if most >= USUAL_ITERATIONS or G is None:
            rho = self._usual_rho() if isinstance(resolvent, WholeKernel) else None
            splitting = DouglasRachford(self.sets, self.products, resolvent, (self.point.b, self.point.scores), rho)
            if self._split(splitting, most, newton / each):
                return
        if G is not None:
            self._by_newton(G, rest, None if splitting is None else FIRST_DELTA * splitting.rho)

    def _features(self) -> tuple[FloatArray | None, float]:
        """G whose G G' is near enough to K, None where that takes too many columns; the largest eigenvalue left."""
        n, diagonal = self.problem.n_examples, self.products.diagonal
        least = LEAST_EIGENVALUE * self.options.tol / float(self.problem.data.C.max())
        room = int(self.options.cache_bytes / 2 / (24.0 * n))
        most = min(n, MOST_FEATURES, room)
        if most < 1:
            return None, 0.0
        found = decompose(self.products.columns, diagonal, DIAGONAL_SHARE * least, most, self._poll)
        if float(found.rest.max(initial=0.0)) > DIAGONAL_SHARE * least:
            self.top = compressed(found, 0.0)[:, -MOST_APART:]
            return None, 0.0
        self._poll()
        G = compressed(found, least)
        if G.shape[1] == 0:
            return None, 0.0
        return G, least + float(found.rest.max()) * POWER_STEPS

    def _resolvent(self, G: FloatArray | None, rest: float) -> WholeKernel | Features | None:
        n = float(self.problem.n_examples)
        if G is not None and G.shape[1] <= n / 2:
            return Features(G, rest)
        if 16.0 * n * n > self.options.cache_bytes:
            return None
        return WholeKernel(self.products.matrix, self._poll, self.top)

    def _usual_rho(self) -> float | None:
        """The rho that serves a few of the examples, where a change of it costs little."""
        n = self.problem.n_examples
        few = np.arange(n)[:: max(1, n // FEW_EXAMPLES)]
        if 2 * len(few) > n:
            return None
        part = replace(self.problem, data=self.problem.data.subset(few), given_store=self.problem.store)
        products = KernelProducts(part, self.options.cache_bytes, self.options.n_threads, self._poll)
        zero = np.zeros((len(few), self.problem.n_classes))
        trial = DouglasRachford(ExampleSets(part), products, WholeKernel(products.matrix, self._poll), (zero, zero))

        def goes_on() -> bool:
            self._poll()
            return True

        trial.run(self.aim, FEW_ITERATIONS, goes_on)
        return trial.rho

    def _cost_of_iteration(self, resolvent: WholeKernel | Features) -> float:
        n, d = self.problem.n_examples, self.problem.n_classes
        check = float(n) ** 2 * d / CHECK_EVERY
        return DOUBLE * resolvent.cost(d) + check + PASSES_OF_ITERATION * n * d

    def _cost_of_step(self, rank: int) -> float:
        n, d, r = self.problem.n_examples, self.problem.n_classes, float(rank)
        direct = DOUBLE * (3 * d * r**3 + 6 * n * r * d + 0.1 * n * d * r**2) + PASSES_OF_STEP * n * d
        if not self.sets.simplex:
            return direct
        return direct + USUAL_CG_STEPS * (DOUBLE * (4 * n * r * d + 2 * d * r**2) + 0.3 * PASSES_OF_STEP * n * d)

    def _split(self, splitting: DouglasRachford, most: int, other: float) -> bool:
        """Iterate; given up where ``other`` iterations' worth of work would be less than what is left by all signs."""
        windows = [np.inf]
        lowest = np.inf

        def goes_on() -> bool:
            nonlocal lowest
            self._poll()
            self.n_iterations += 1
            self.account.n_iter += 1
            if self.n_iterations % CHECK_EVERY == 1:
                self._note(_Point(splitting.b, splitting.scores, splitting.violation))
                lowest = min(lowest, splitting.violation)
            if self.n_iterations % WINDOW == 0:
                windows.append(lowest)
                lowest = np.inf
                return self._worth(windows, other)
            return True

        good = splitting.run(self.aim, most, goes_on)
        self._note(_Point(splitting.b, splitting.scores, splitting.violation))
        return good

    def _worth(self, windows: list[float], other: float) -> bool:
        """Whether the pace of the last window gets there within so many iterations."""
        before, now = windows[-2:]
        if not np.isfinite(before) or not np.isfinite(other):
            return True
        pace = float(np.log(before / now)) if now < before else 0.0
        return pace > 0.0 and WINDOW * float(np.log(now / self.aim)) / pace <= other

    def _by_newton(self, G: FloatArray, rest: float, first: float | None) -> None:
        """Proximal steps until tol is met; the proximal term falls as far as what G G' leaves out lets it."""
        sets, tol = self.sets, self.options.tol
        C = float(sets.cap.max())
        floor = max(rest, 0.1 * tol / C)
        delta = 2 * float(np.abs(sets.linear).max()) / C if first is None else first
        method = ProximalNewton(sets, G, self._poll_newton, self._poll)
        while self.n_newton < MOST_STEPS and self.point.violation > self.aim:
            delta, before = max(delta, floor), method.n_steps
            b, solved = method.step(self.point.b, self.point.scores, delta)
            if not solved:
                delta *= NARROWER
                continue
            scores = self.products.scores_after(b - self.point.b, b, self.point.scores, 0.01 * tol)
            self._note(_Point(b, scores, sets.violation(b, scores)))
            if method.n_steps - before <= EASY:
                delta /= NARROWER

    def _poll_newton(self) -> None:
        self.n_newton += 1
        self.account.n_iter += 1
        self._poll()

    def _note(self, point: _Point) -> None:
        """Take a point over."""
        if not np.isfinite(point.violation):
            point.violation = self.sets.violation(point.b, point.scores)
        self.point = point
        dual = self.sets.dual(point.b, point.scores)
        if dual > self.best_dual:  # iterations of splitting may pass through points that are worse
            self.best, self.best_dual = point, dual
        self.account.violation = point.violation
        self.account.dual = dual
        self.account.kernel_values = self.values_before + self.products.kernel_values
        if self.options.trace:
            self.account.record(self.amounts, self.problem, point.violation)

    def _poll(self) -> None:
        self.account.ask(lambda: SolverState(self.amounts, None, self.problem.n_classes), self.problem.n_examples)

    @property
    def amounts(self) -> FloatArray:
        """The dual variables of the best point met."""
        return self.sets.amounts(self.best.b)

    def _seconds_of_pass(self) -> float:
        """What the scores of all examples take, measured on a few."""
        if not np.isfinite(self.options.max_time):
            return 0.0
        few = np.arange(min(64, self.problem.n_examples))
        before = time.perf_counter()
        self.products.columns(few)
        return 2.0 * (time.perf_counter() - before) * self.problem.n_examples / len(few)


def _finish(run: _Run, reason: StopReason | None, trial: SolverReport | None) -> Solution:
    """The core's check at the point reached, and its blocks where there is something left to do and to spend."""
    account, options, problem = run.account, run.options, run.problem
    numbers = Objectives(np.inf, account.dual, account.violation)
    own = account.report(reason or StopReason.STALLED, run.amounts, numbers, verified=False)
    state = SolverState(run.amounts, None, problem.n_classes)
    if reason in (StopReason.INTERRUPTED, StopReason.CALLBACK):
        return Solution(state, _joined(run, own, trial, None), account.error)
    left = max(account.reserve, LEAST_SECONDS, options.max_time - account.seconds())
    steps = options.max_iter if options.max_iter < 0 else max(0, options.max_iter - account.n_iter)
    work = options.max_work - (0.0 if trial is None else trial.phases["work"])
    limits = replace(options, max_time=left, max_iter=steps if reason is None else 0, max_work=work)

    def moment(progress: Progress) -> Progress:
        return replace(
            progress,
            iteration=progress.iteration + own.n_iter,
            seconds=progress.seconds + own.seconds,
            kernel_rows=progress.kernel_rows + own.kernel_rows,
        )

    solution = run_core(problem, limits, state, account.monitor.map(lambda inner: inner, moment))
    last = solution.report
    if not last.verified:  # it had no time for its check: the numbers are those known before
        last = replace(last, dual=own.dual, violation=own.violation)
    report = _joined(run, own, trial, last)
    if reason is not None and report.stop_reason is StopReason.MAX_ITER:
        report = replace(report, stop_reason=reason)
    return replace(solution, report=report)


def _joined(run: _Run, own: SolverReport, trial: SolverReport | None, last: SolverReport | None) -> SolverReport:
    """Return the report of all parts; ``own`` counts what was spent up to it."""
    seconds = run.account.seconds()
    parts = [part for part in (trial, last) if part is not None]
    phases: dict[str, float] = {}
    for part in parts:
        phases |= {name: phases.get(name, 0.0) + value for name, value in part.phases.items()}
    phases |= dict(zip(COUNTS, (float(run.n_iterations), float(run.n_newton)), strict=True))
    ends = own if last is None else last
    traces: tuple[Trace, ...] = ()
    if run.options.trace:
        joined = TraceBuilder()
        spent = {"seconds": own.seconds, "iterations": own.n_iter, "kernel_rows": own.kernel_rows}
        for trace in (*(() if trial is None else trial.traces), *own.traces):
            joined.extend(trace, {})
        for trace in () if last is None else last.traces:
            joined.extend(trace, spent)
        end = {name: column[-1] for name, column in ends.traces[0].columns().items()}
        whole = {name: value + (spent.get(name, 0) if last else 0) for name, value in end.items()}
        traces = (joined.end(**(whole | {"seconds": seconds})),)
    return replace(
        ends,
        n_iter=own.n_iter + (0 if last is None else last.n_iter),
        seconds=seconds,
        kernel_rows=own.kernel_rows + (0 if last is None else last.kernel_rows),
        cache_hits=sum(part.cache_hits for part in parts),
        phases=phases,
        traces=traces,
    )
