r"""The linear binary machine with squared hinge loss and a regularised bias: KCSL04 (5.1), for ASVM and LSVM.

Primal :math:`\min \frac12 (w'w + b^2) + \sum_i C_i \xi_i^2`, dual (5.2)
:math:`\min f(a) = \frac12 a'(HH' + D)a - e'a`, :math:`a \ge 0`, with :math:`H = \mathrm{diag}(y) [X\ e]` and
:math:`D = \mathrm{diag}(1/(2C))`. Everything a solver asks for costs passes over X and systems of n_features + 1
unknowns, by Sherman, Morrison and Woodbury. asvm.py and lsvm.py hold the steps; here are the problem and what ends a
solve.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.linalg import cho_factor, cho_solve
from threadpoolctl import threadpool_limits

from multimargin._typing import FloatArray
from multimargin.base.interrupts import poll
from multimargin.base.matrices import is_sparse
from multimargin.solvers.certificate import Objectives
from multimargin.solvers.monitor import FitMonitor, Watch
from multimargin.solvers.options import SolverOptions
from multimargin.solvers.report import Progress, SolverReport, StopReason, report_without_kernel

MOST_FEATURES = 10_000  # a system of more unknowns takes more than 800 MB
SECONDS_BETWEEN_CALLS = 0.05


@dataclass(frozen=True, eq=False)
class LinearSolution:
    """A point of the dual, the weights that belong to it, and what the solve reports.

    Parameters
    ----------
    amounts : ndarray of shape (n_examples,)
        a >= 0, in the order of the rows of X.
    coef : ndarray of shape (n_features,)
        w = X'(ya).
    intercept : float
        b = y'a.
    tol : float
        The tolerance that the solve went by: that of the options, times C where it was asked to scale it.
    report : SolverReport
        Objectives and violation are those of ``amounts``, computed anew after the last step.
    error : BaseException or None
        What ended the solve (Ctrl-C, a failing watch), if something did.
    """

    amounts: FloatArray
    coef: FloatArray
    intercept: float
    tol: float
    report: SolverReport
    error: BaseException | None


@dataclass(frozen=True, eq=False)
class SquaredHinge:
    """The problem: X (float64, dense or CSR), y in {-1, 1} and one C per example; ``of`` checks them."""

    X: Any
    y: FloatArray
    C: FloatArray

    @classmethod
    def of(cls, X: Any, y: ArrayLike, C: ArrayLike) -> SquaredHinge:
        data = sparse.csr_array(X, dtype=np.float64) if is_sparse(X) else np.asarray(X, dtype=np.float64)
        n_examples, n_features = data.shape
        labels = np.asarray(y, dtype=np.float64)
        if labels.shape != (n_examples,) or not np.isin(labels, (-1.0, 1.0)).all():
            found = f"the values {np.unique(labels)[:5]} in shape {labels.shape}"
            raise ValueError(
                f"y has {found}; it must have one entry of -1 or 1 for each of the {n_examples} rows of X."
            )
        prices = np.asarray(C, dtype=np.float64)
        if prices.ndim == 0:
            prices = np.full(n_examples, float(prices))
        if prices.shape != (n_examples,) or not (np.isfinite(prices) & (prices > 0)).all():
            found = f"values from {prices.min(initial=np.inf)} to {prices.max(initial=-np.inf)} in shape {prices.shape}"
            raise ValueError(f"C has {found}; give one finite number > 0, or one for each of the {n_examples} rows.")
        if n_features > MOST_FEATURES:
            raise ValueError(
                f"X has {n_features} features; ASVM and LSVM solve systems of that many unknowns and take at most "
                f"{MOST_FEATURES}, so use another solver."
            )
        return cls(data, labels, prices)

    @property
    def n_examples(self) -> int:
        return len(self.y)

    def times(self, z: FloatArray) -> FloatArray:
        """Return H z: the margins of the weights and the bias in z."""
        margins: FloatArray = self.y * (self.X @ z[:-1] + z[-1])
        return margins

    def transposed(self, a: FloatArray) -> FloatArray:
        """Return H'a: w and b of the dual variables."""
        return np.append(self.X.T @ (self.y * a), self.y @ a)

    def gradient(self, a: FloatArray) -> FloatArray:
        """Return the gradient of f, (HH' + D)a - e."""
        return self.times(self.transposed(a)) + a / (2 * self.C) - 1.0

    def inverse(self, members: np.ndarray | None = None) -> Callable[[FloatArray], FloatArray]:
        """Return the map p -> (H_B H_B' + D_B)^-1 p_B, 0 outside B; B is ``members``, a mask, or everybody."""
        weight = 2 * self.C if members is None else np.where(members, 2 * self.C, 0.0)
        used = np.flatnonzero(weight)
        rows, root = self.X[used], np.sqrt(weight[used])
        scaled = rows.multiply(root[:, None]).tocsr() if is_sparse(rows) else rows * root[:, None]
        corner, edge = scaled.T @ scaled, scaled.T @ root
        n = len(edge)
        system = np.eye(n + 1)
        system[:n, :n] += corner.toarray() if is_sparse(corner) else corner
        system[:n, n] = system[n, :n] = edge
        system[n, n] += root @ root
        factor = cho_factor(system, overwrite_a=True)

        def apply(p: FloatArray) -> FloatArray:
            z = cho_solve(factor, self.transposed(weight * p))
            a = weight * (p - self.times(z))
            # One round of refinement: at large C the system is badly conditioned, but its residual is cheap.
            z += cho_solve(factor, self.transposed(a) - z)
            refined: FloatArray = weight * (p - self.times(z))
            return refined

        return apply

    def judge(self, a: FloatArray) -> Objectives:
        """Return primal, dual and KKT violation (the largest projected gradient) of a >= 0, computed anew."""
        z = self.transposed(a)
        margins = self.times(z)
        gradient = margins + a / (2 * self.C) - 1.0
        slack = np.maximum(1.0 - margins, 0.0)
        return Objectives(
            primal=0.5 * float(z @ z) + float(self.C @ slack**2),
            dual=float(a.sum()) - 0.5 * float(z @ z) - float(np.sum(a**2 / (4 * self.C))),
            # np.max: what is not a number stays so
            violation=float(np.max([0.0, -gradient.min(), np.max(gradient[a > 0], initial=0.0)])),
        )


def stopping_gap(gradient: FloatArray, positive: np.ndarray) -> float:
    """Return what KCSL04 (C.3) compares with tol: the largest gradient of a positive variable minus the smallest.

    Without an equality the multiplier b of (C.1) is 0, so that 0 takes part on both sides here: (C.3) as it is printed
    holds at a = 0, where no variable is positive, and wherever all gradients are equal.
    """
    largest = float(np.max(gradient[positive], initial=0.0))
    return largest - min(0.0, float(gradient.min()))


def scale_tolerance(tol: float, C: FloatArray) -> float:
    """Return tol times the smallest C: KCSL04 appendix D."""
    scaled = tol * float(C.min())
    if scaled >= 1.0:  # the gradient at a = 0 is -1
        raise ValueError(
            f"tol={tol:g} times C={C.min():g} is {scaled:g}, which a = 0 meets already; give a tol below "
            f"{1 / C.min():g}, or do not scale it by C."
        )
    return scaled


@dataclass(frozen=True, eq=False)
class Task:
    """What is to be solved, from where, how well and how long: of ``options`` the limits count."""

    problem: SquaredHinge
    options: SolverOptions
    tol: float
    start: FloatArray | None

    @classmethod
    def of(cls, problem: SquaredHinge, options: SolverOptions, start: ArrayLike | None, *, tol_times_C: bool) -> Task:
        """Return the task with its tolerance; the start is checked here and clipped at 0."""
        tol = scale_tolerance(options.tol, problem.C) if tol_times_C else options.tol
        if start is None:
            return cls(problem, options, tol, None)
        begin = np.array(start, dtype=np.float64)
        if begin.shape != (problem.n_examples,) or not np.isfinite(begin).all():
            raise ValueError(
                f"start has shape {begin.shape} and {np.count_nonzero(~np.isfinite(begin))} values that are not "
                f"finite; it must have one finite value for each of the {problem.n_examples} rows of X."
            )
        return cls(problem, options, tol, np.maximum(begin, 0.0))

    def first_amounts(self) -> FloatArray:
        return np.zeros(self.problem.n_examples) if self.start is None else self.start


class Method(Protocol):
    """One of the solvers: where it stands, when it is done, and its next step."""

    @property
    def amounts(self) -> FloatArray:
        """The current a, clipped at 0; whole at any moment, so that Ctrl-C may come at any moment."""

    def is_done(self, tol: float) -> bool: ...

    def advance(self) -> bool:
        """Make one iteration; False where rounding leaves nothing to gain."""


class _End(Exception):  # noqa: N818 - not an error: a limit was reached, or the caller wants no more
    def __init__(self, reason: StopReason, error: Exception | None = None) -> None:
        super().__init__(reason.value)
        self.reason, self.error = reason, error


class _Limits:
    """The clock and the watch of one solve."""

    def __init__(self, task: Task, watch: Watch[FloatArray] | None) -> None:
        self.problem, self.options, self.monitor = task.problem, task.options, FitMonitor(watch)
        self.began = time.perf_counter()
        self.called = self.began - SECONDS_BETWEEN_CALLS  # the first check reports
        self.n_iter = 0

    def ask(self, method: Method) -> None:
        """Check the limits, and about every 50 ms ask the caller; raises _End where that is the end."""
        now = time.perf_counter()
        poll()
        if 0 <= self.options.max_iter <= self.n_iter:
            raise _End(StopReason.MAX_ITER)
        if now - self.began >= self.options.max_time:
            raise _End(StopReason.MAX_TIME)
        if not self.monitor.active or now - self.called < SECONDS_BETWEEN_CALLS:
            return
        self.called, a = now, method.amounts
        numbers = self.problem.judge(a)
        moment = Progress(
            iteration=self.n_iter,
            seconds=now - self.began,
            violation=numbers.violation,
            dual=numbers.dual,
            primal=numbers.primal,
            n_active=self.problem.n_examples,
            n_support=int(np.count_nonzero(a)),
            kernel_rows=0,
            cache_hits=0,
        )
        try:
            stop = self.monitor(moment, a.copy)
        except Exception as error:
            raise _End(StopReason.CALLBACK, error) from error
        if stop:
            raise _End(StopReason.CALLBACK)


def drive(
    task: Task, begin: Callable[[SquaredHinge, FloatArray | None], Method], watch: Watch[FloatArray] | None
) -> LinearSolution:
    """Advance until the method is done, a limit is met or nothing moves; then judge the point anew.

    Whatever ends the solve, Ctrl-C included, the last iterate is returned.
    """
    problem, tol = task.problem, task.tol
    limits = _Limits(task, watch)
    method: Method | None = None
    error: BaseException | None = None
    reason = StopReason.CONVERGED
    with threadpool_limits(limits=1, user_api="blas"):  # sums have the same bits for any number of threads
        try:
            method = begin(problem, task.start)
            while not method.is_done(tol):
                limits.ask(method)
                if not method.advance():
                    reason = StopReason.STALLED
                    break
                limits.n_iter += 1
        except _End as end:
            reason, error = end.reason, end.error
        except KeyboardInterrupt as interrupt:
            reason, error = StopReason.INTERRUPTED, interrupt
        a = task.first_amounts() if method is None else method.amounts
        numbers, z = problem.judge(a), problem.transposed(a)
    report = report_without_kernel(
        reason, limits.n_iter, time.perf_counter() - limits.began, numbers.violation, (numbers.dual, numbers.primal)
    )
    return LinearSolution(a, z[:-1], float(z[-1]), tol, report, error)
