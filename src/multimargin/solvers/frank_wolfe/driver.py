"""Frank-Wolfe on the dual (WWDOC section 5): a linear program finds a vertex, an exact step goes there.

The equality constraints of an exact bias are the linear program's business, so that every point is feasible as it is.
The linear program's multipliers are the best b for the scores at hand, and the gap that it promises is the duality gap
at that b. Large problems are solved by blocks of examples (WWDOC 5.3), those with the largest shares of the gap.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from itertools import count

import numpy as np
from threadpoolctl import threadpool_limits

from multimargin._typing import FloatArray, IntArray
from multimargin.problems.coupling import coefficients
from multimargin.problems.problem import Bias, DualProblem, Loss
from multimargin.problems.zero_sums import balance, movable_without_harm
from multimargin.solvers.certificate import Objectives, dual_gradient, evaluate
from multimargin.solvers.core import Solution, SolverState, StateWatch, check_start
from multimargin.solvers.frank_wolfe.bookkeeping import Account, End, count_support
from multimargin.solvers.frank_wolfe.steps import (
    Hull,
    LinearProgram,
    Variant,
    best_bias,
    choose_block,
    exact_step,
    feasible,
    is_off,
    pushed_to_bounds,
    within_bounds,
)
from multimargin.solvers.options import SolverOptions
from multimargin.solvers.report import StopReason
from multimargin.solvers.separable import with_mirror_image

FRANK_WOLFE = "frank-wolfe"
# Up to this many dual variables a problem is one block.
WHOLE = 1_500
# A block is left when its gap is down to this share.
BLOCK_SHARE = 0.1
MAX_BLOCK_STEPS = 200
# A block whose gap is below this share of what its size would have is held by the sums: a step on all helps then.
HELD = 0.01
# A rise of the dual below this share is rounding; so many in a row and nothing more is to be had.
NO_RISE = 1e-15
PATIENCE = 5
# Multiply-adds of a pass over the kernel that still is no wait after Ctrl-C.
QUICK_PASS = 2e7
LIMITS = (StopReason.STALLED, StopReason.MAX_ITER, StopReason.MAX_TIME)


@dataclass(frozen=True)
class FrankWolfeOptions:
    """What only this solver knows.

    Parameters
    ----------
    variant : Variant
        The kind of step. ``CORRECTIVE`` needs 10 to 100 times fewer linear programs than ``PAIRWISE``; ``PLAIN`` needs
        the most, because it comes near a bound but never to it.
    block_size : int or None
        Examples of a block; None takes all of a problem with up to 1,500 dual variables, else as many as have that.
    relative_gap : float or None
        The relative duality gap to reach besides the KKT violation ``tol``; None for ``tol``.
    """

    variant: Variant = Variant.CORRECTIVE
    block_size: int | None = None
    relative_gap: float | None = None

    def __post_init__(self) -> None:
        if self.block_size is not None and self.block_size < 2:
            raise ValueError(f"block_size={self.block_size} is not allowed; give at least 2 examples, or None.")
        if self.relative_gap is not None and not self.relative_gap > 0:
            raise ValueError(f"relative_gap={self.relative_gap} is not allowed; give a number > 0, or None for tol.")


def check_problem(problem: DualProblem) -> None:
    """Refuse a problem whose linear program has no vertex, or whose gap is no bound."""
    if problem.loss is not Loss.HINGE or np.isinf(problem.data.C).any():
        given = "C=inf" if problem.loss is Loss.HINGE else f"loss={problem.loss.value!r}"
        raise ValueError(
            f"solver='frank-wolfe' needs bounded dual variables, which {given} has not; use loss='hinge' with a "
            "finite C, or solver='auto'."
        )
    if not problem.kernel.positive_semidefinite:
        raise ValueError(
            f"solver='frank-wolfe' needs a positive semi-definite kernel, kernel={problem.kernel.name!r} is none; "
            "use solver='s2do' or 'smo'."
        )


def solve(
    problem: DualProblem,
    options: SolverOptions,
    start: SolverState | None = None,
    watch: StateWatch = None,
    how: FrankWolfeOptions | None = None,
) -> Solution:
    """Solve the problem, whatever its bias rule, by Frank-Wolfe steps.

    Solves   the dual of ``problem`` to a KKT violation of at most ``options.tol`` and a relative gap of at most
             ``how.relative_gap``; of ``options`` the limits and the number of threads count, too.
    Given    hinge loss, finite C, a positive semi-definite kernel; a start that fits its examples and classes.
    Returns  a Solution whose state is feasible, sums included, whatever ended the solve.
    See      WWDOC 5.2, 5.3.
    """
    check_problem(problem)
    check_start(problem, start)
    with threadpool_limits(limits=1, user_api="blas"):  # sums have the same bits for any number of threads
        return _Run(problem, options, how or FrankWolfeOptions(), watch).run(start)


@dataclass(frozen=True, eq=False)
class _Point:
    """A feasible point, with its scores computed anew, its b and its numbers."""

    amounts: FloatArray
    scores: FloatArray | None
    bias: FloatArray | None
    numbers: Objectives


@dataclass(frozen=True, eq=False)
class _Check:
    """What the linear program over all examples says: the vertex, b, and each example's share of the gap."""

    vertex: FloatArray
    bias: FloatArray | None
    shares: FloatArray
    numbers: Objectives

    @property
    def gap(self) -> float:
        return self.numbers.primal - self.numbers.dual


class _Run:
    """One solve: where it stands."""

    def __init__(self, problem: DualProblem, options: SolverOptions, how: FrankWolfeOptions, watch: StateWatch) -> None:
        self.problem, self.options, self.how = problem, options, how
        self.account = Account(problem, options, watch)
        self.block_size = how.block_size or max(2 * problem.n_classes, WHOLE // problem.n_components)
        self.relative_gap = options.tol if how.relative_gap is None else how.relative_gap
        self.exact = problem.bias is Bias.EXACT
        self.amounts = np.zeros((problem.n_examples, problem.n_components))
        self.scores = np.zeros((problem.n_examples, problem.n_classes))
        self.bias = np.zeros(problem.n_classes) if self.exact else None

    def run(self, start: SolverState | None) -> Solution:
        found: _Point | None = None
        try:
            self._begin(start)
            found = self._iterate()
            reason = StopReason.STALLED if found is None else StopReason.CONVERGED
        except End as end:
            reason = end.reason
        except TimeoutError:  # of the linear program
            reason = StopReason.MAX_TIME
        except FloatingPointError:
            reason = StopReason.STALLED
        except KeyboardInterrupt as interrupt:
            reason, self.account.error = StopReason.INTERRUPTED, interrupt
        return self._finish(found, reason)

    def _begin(self, start: SolverState | None) -> None:
        if start is None:
            return
        self.amounts = feasible(self.problem, within_bounds(self.problem, start.amounts))
        self.scores = self._scores_of(self.amounts)
        if self.exact and start.bias is not None:
            self.bias = start.bias

    def _iterate(self) -> _Point | None:
        """Look at all examples, work on some of them, until the gap and the violation are small or nothing moves."""
        program = LinearProgram(self.problem, np.zeros_like(self.amounts))
        whole = self.block_size >= self.problem.n_examples
        hull: Hull | None = None
        goal, disappointments, block = np.inf, 0, np.zeros(0, dtype=np.int64)
        while disappointments < PATIENCE:
            check = self._check_all(program)
            wanted = self.relative_gap * max(abs(check.numbers.primal), abs(check.numbers.dual))
            if check.gap <= wanted:
                settled = self._settled(check, wanted)
                if settled is not None:
                    return settled
            before = self.account.dual
            if whole:
                goal = min(wanted, 0.25 * goal)  # lower after each check that found it not enough
                hull = hull or self._hull(np.arange(self.problem.n_examples))
                self._descend(hull, program, np.arange(self.problem.n_examples), goal)
                self.scores = hull.scores()
            else:
                block = choose_block(self.problem, self.amounts, check.shares, block, self.block_size)
                self._work(block, check)
            risen = self.account.dual - before > NO_RISE * abs(self.account.dual)
            disappointments = 0 if risen else disappointments + 1
            hull = hull if risen else None
        return None

    def _check_all(self, program: LinearProgram) -> _Check:
        """Ask the linear program over all examples, and judge the point at the b that it gives."""
        problem, account = self.problem, self.account
        began = time.perf_counter()
        gradient = dual_gradient(problem, self.amounts, self.scores)
        vertex = program.vertex(gradient, self.account.seconds_left())
        bias, numbers = best_bias(problem, self.amounts, self.scores, vertex.bias, self.options.tol)
        reduced = gradient if vertex.bias is None else dual_gradient(problem, self.amounts, self.scores + vertex.bias)
        shares = np.sum(reduced * (vertex.amounts - self.amounts), axis=1)
        self.bias, account.dual = bias, numbers.dual
        account.judge(numbers)
        account.reserve = time.perf_counter() - began
        account.record(self.amounts, problem, numbers.violation)
        account.ask(self._state, problem.n_examples)
        return _Check(vertex.amounts, bias, shares, numbers)

    def _hull(self, block: IntArray) -> Hull:
        rows = self.problem.data.rows[block]
        self.account.kernel_values += len(block) ** 2
        part = replace(self.problem, data=self.problem.data.subset(block), given_store=self.problem.store)
        kernel = np.asarray(self.problem.store.block(rows, rows), dtype=np.float64)
        return Hull(part, kernel, self.amounts[block], self.scores[block])

    def _descend(self, hull: Hull, program: LinearProgram, block: IntArray, goal: float) -> float:
        """Steps on a block until its gap is down to the goal; returns the gap that it began with."""
        whole, account = len(block) == len(self.amounts), self.account
        base, first, failures = account.dual - hull.gain(), np.nan, 0
        for taken in count() if whole else range(MAX_BLOCK_STEPS):
            here, scores = self.amounts[block], hull.scores()
            gradient = dual_gradient(hull.problem, here, scores)
            vertex = program.vertex(gradient, account.seconds_left())
            gap = float(np.sum(gradient * (vertex.amounts - here)))
            numbers = evaluate(hull.problem, here, scores, vertex.bias)
            if whole:
                self.bias = vertex.bias
                account.judge(numbers)
            if taken:  # the point before was that of a check
                account.record(self.amounts, hull.problem, numbers.violation)
            if np.isnan(first):
                first = gap
                goal = goal if np.isfinite(goal) else BLOCK_SHARE * gap
            if gap <= goal or failures >= PATIENCE:
                break
            before = hull.gain()
            hull.step(self.how.variant, hull.add(vertex.amounts))
            amounts = self.amounts.copy()
            amounts[block] = hull.amounts()
            self.amounts = amounts  # at once, so that an interrupt finds a feasible point
            account.n_iter += 1
            account.dual = base + hull.gain()
            failures = failures + 1 if hull.gain() - before <= NO_RISE * abs(account.dual) else 0
            account.ask(self._state, len(block))
        return first

    def _work(self, block: IntArray, check: _Check) -> None:
        """Solve a block, or step towards the vertex of all examples where the sums hold the block fast."""
        before = self.amounts
        hull = self._hull(block)
        first = self._descend(hull, LinearProgram(hull.problem, before[block]), block, np.inf)
        change = self._beta(self.amounts[block] - before[block], block)
        self.scores = self.scores + self._product(change, block)
        if first > HELD * check.gap * len(block) / len(before):
            return
        move = check.vertex - self.amounts
        gradient = dual_gradient(self.problem, self.amounts, self.scores)
        beta = self._beta(move)
        image = self._product(beta)
        slope, curvature = float(np.sum(gradient * move)), float(np.sum(beta * image))
        theta = exact_step(np.array([slope]), np.array([[curvature]]), np.ones(1), 1.0)
        self.amounts, self.scores = self.amounts + theta * move, self.scores + theta * image
        self.account.dual += theta * slope - 0.5 * theta**2 * curvature
        self.account.n_iter += 1

    def _settled(self, check: _Check, wanted: float) -> _Point | None:
        """The point, or the one beside it with its variables at the bounds they are pushed to, if it is optimal."""
        problem, tol = self.problem, self.options.tol
        gradient = dual_gradient(problem, self.amounts, self.scores + (0.0 if check.bias is None else check.bias))
        amounts = self.amounts
        if check.numbers.violation > tol:
            amounts = pushed_to_bounds(problem, amounts, gradient, 0.5 * tol)
        if self.exact and is_off(problem, amounts):
            movable = movable_without_harm(problem, amounts, gradient, 0.5 * tol)
            balanced = balance(problem, amounts, movable, 20) if movable.variables.any() else None
            if balanced is None:
                return None
            amounts = balanced
        point = self._point(amounts)
        reached = point.numbers.violation <= tol and point.numbers.primal - point.numbers.dual <= wanted
        return point if reached else None

    def _point(self, amounts: FloatArray) -> _Point:
        scores = self._scores_of(amounts)
        bias, numbers = best_bias(self.problem, amounts, scores, self.bias, self.options.tol)
        return _Point(amounts, scores, bias, numbers)

    def _finish(self, found: _Point | None, reason: StopReason) -> Solution:
        account, quick = self.account, reason not in LIMITS
        if found is None and quick and float(count_support(self.amounts)) * self.problem.data.X.size > QUICK_PASS:
            numbers = Objectives(np.inf, account.dual, account.violation)
            end, verified = _Point(feasible(self.problem, self.amounts), None, self.bias, numbers), False
        else:
            end, verified = found or self._point(feasible(self.problem, self.amounts)), True
            gap = end.numbers.primal - end.numbers.dual
            met = gap <= self.relative_gap * max(abs(end.numbers.primal), abs(end.numbers.dual))
            if reason in LIMITS and end.numbers.violation <= self.options.tol and met:
                reason = StopReason.CONVERGED
        report = account.report(reason, end.amounts, end.numbers, verified=verified)
        state = SolverState(end.amounts, end.scores, self.problem.n_classes, end.bias)
        return with_mirror_image(self.problem, Solution(state, report, account.error))

    def _state(self) -> SolverState:
        return SolverState(self.amounts, None, self.problem.n_classes, self.bias)

    def _beta(self, amounts: FloatArray, block: IntArray | None = None) -> FloatArray:
        y = self.problem.data.y if block is None else self.problem.data.y[block]
        return coefficients(self.problem.machine, amounts, y, self.problem.n_classes)

    def _scores_of(self, amounts: FloatArray) -> FloatArray:
        return self._product(self._beta(amounts))

    def _product(self, beta: FloatArray, block: IntArray | None = None) -> FloatArray:
        """K beta at all examples, for coefficients of all or of some."""
        data = self.problem.data
        used = np.flatnonzero((beta != 0).any(axis=1))
        rows = data.rows[used] if block is None else data.rows[block[used]]
        self.account.kernel_values += len(used) * len(data.rows)
        return self.problem.store.scores(rows, beta[used], data.kernel_data[data.rows], self.options.n_threads)
