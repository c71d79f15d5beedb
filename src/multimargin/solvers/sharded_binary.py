"""Large binary problems with an exact bias over shards: rounds and blocks, as ``solvers/binary/blocks.cpp`` runs them.

As in ``solvers.sharded``: the coordinator holds the variables and solves the blocks, the shards hold the errors f - y.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from multimargin import _core
from multimargin._typing import FloatArray, IntArray
from multimargin.kernels.store import KernelStore
from multimargin.problems.problem import Loss
from multimargin.problems.schemes import BinaryProblem
from multimargin.solvers.binary import BinarySolution, signs
from multimargin.solvers.options import Precision, SolverOptions
from multimargin.solvers.report import StopReason
from multimargin.solvers.sharded import (
    AIM,
    MOST_FAILED_CHECKS,
    Call,
    Division,
    Outcome,
    call_local,
    check_options,
    report_of,
)

RULES = _core.BINARY_BLOCK_RULES
FLOAT32_TOL = 5e-5  # errors in float32 cannot tell smaller violations from rounding
PANEL = 64


class BinaryDriver:
    """The rounds and blocks of one problem."""

    def __init__(
        self, solver: _core.BinaryBlockSolver, call: Call, division: Division, problem: BinaryProblem, squared: bool
    ) -> None:
        self.solver, self.call, self.division = solver, call, division
        self.y, self.rows = signs(problem), problem.rows
        self.cap = np.full(len(self.y), np.inf) if squared else problem.C
        self.last = np.empty(0, dtype=np.int64)  # examples of the last block
        self.float64, self.travel = False, 0.0

    def run(self, options: SolverOptions) -> StopReason:
        """Solve to ``tol``: in float32 while that carries it, then in float64."""
        self.tol, self.may_change = options.tol, options.precision is Precision.AUTOMATIC
        self._summarize()
        if self.violation <= self.tol:
            return StopReason.CONVERGED
        too_fine = self.may_change and (self.tol < FLOAT32_TOL or self.solver.float32_too_coarse)
        reached = None
        if options.precision is not Precision.FLOAT64 and not too_fine:
            reached = self._reach()
        if reached is None:
            self.float64 = True
            self._for_all("use_precision", True)
            self.travel, self.last = 0.0, self.last[:0]
            reached = self._reach()
        return reached or StopReason.STALLED

    def _for_all(self, method: str, *arguments: Any) -> list[Any]:
        return self.call(method, [arguments] * len(self.division.examples))

    def _errors(self) -> FloatArray:
        errors = np.empty(self.division.n_examples)
        for own, part in zip(self.division.examples, self._for_all("errors"), strict=True):
            errors[own] = part
        return errors

    def _summarize(self) -> None:
        self.errors = self._errors()
        numbers = self.solver.summarize(self.errors)
        self.violation, self.dual, self.primal, self.bias, self.lowest_up, self.largest_low = numbers

    def _reach(self) -> StopReason | None:
        """Run rounds until the float64 check confirms ``tol``; None where float32 cannot."""
        best, failed = np.inf, 0
        while True:
            self._run_rounds(AIM * self.tol)
            self._confirm()
            if self.violation <= self.tol:
                return StopReason.CONVERGED
            if self.may_change and not self.float64:
                return None
            self.travel = 0.0
            failed = 0 if self.violation < 0.5 * best else failed + 1
            best = min(best, self.violation)
            if failed > MOST_FAILED_CHECKS:
                return StopReason.STALLED

    def _confirm(self) -> None:
        """Compute errors anew in float64 where they can matter: not far on the right side without a coefficient."""
        a, scale = self.solver.variables(), self.solver.largest_diagonal
        rounding = float(np.finfo(np.float64 if self.float64 else np.float32).eps) * self.travel
        margin = 10.0 * self.tol + max(1e-6 * self.solver.coefficient_mass, rounding) * scale
        above = self.errors >= max(self.largest_low, self.lowest_up) + margin
        below = self.errors <= min(self.lowest_up, self.largest_low) - margin
        matters = (a > 0) | ~np.where(self.y > 0, above, below)
        beta = self.solver.coefficients()
        self.call("confirm", [(np.flatnonzero(matters[own]), *beta) for own in self.division.examples])
        self._summarize()

    def _run_rounds(self, target: float) -> Outcome:
        while True:
            self._summarize()
            violation = self.violation
            if violation <= target:
                return Outcome.SATISFIED
            if not self.float64 and self.may_change and self.solver.float32_too_coarse:
                return Outcome.IMPRECISE
            self.solver.begin_round()
            slack = max(RULES["resting_share"] * violation, RULES["resting_least"])
            found = self._for_all("begin_round", self.lowest_up, self.largest_low, slack)
            own = zip(self.division.examples, found, strict=True)
            self.active = np.sort(np.concatenate([examples[local] for examples, local in own]))
            self.division.begin_round(self.active)
            outcome = self._run_blocks(max(target, RULES["round_share"] * violation))
            self._for_all("end_round", *self.solver.round_changes())
            if outcome is not Outcome.SATISFIED:
                self._summarize()
                return outcome

    def _run_blocks(self, target: float) -> Outcome:
        while True:
            intervals = self._for_all("round_interval")
            interval = min(low for low, _ in intervals), max(high for _, high in intervals)
            violation = max(0.0, interval[1] - interval[0])
            if violation <= target:
                return Outcome.SATISFIED
            positions = self._choose_block(interval)
            if not self._solve_block(positions, interval[0], max(0.5 * target, RULES["block_share"] * violation)):
                return Outcome.STUCK

    def _choose_block(self, interval: tuple[float, float]) -> IntArray:
        """Return support vectors of the last block, free ones first, and the worst of both directions."""
        a = self.solver.variables()
        half = int((a[self.active] > 0).sum()) // 2
        wanted = min(max(-(-half // PANEL) * PANEL, RULES["least_block"]), RULES["largest_block"])
        size = min(wanted, len(self.active))
        kept = self.last[np.isin(self.last, self.active) & (a[self.last] != 0)]
        is_free = a[kept] < self.cap[kept]
        kept = np.concatenate([kept[is_free], kept[~is_free]])[: size // 2]
        block = np.searchsorted(self.active, kept)
        half_full = len(block) + (size - len(block)) // 2
        for rise, end in ((True, half_full), (False, size), (True, size)):
            block = np.concatenate([block, self._worst(rise, interval, end - len(block), block)])
        return np.sort(block)

    def _worst(self, rise: bool, interval: tuple[float, float], k: int, without: IntArray) -> IntArray:
        if k <= 0:
            return without[:0]
        found = self.call("violators", [(rise, *interval, k, own) for _, own in self.division.split(without)])
        own = zip(self.division.places, found, strict=True)
        positions = np.concatenate([places[local] for places, (local, _) in own])
        errors = np.concatenate([error for _, error in found])
        if len(positions) == 0:
            return positions
        if (errors == errors[0]).all():  # as at the start: every so-many-th
            n, count = len(positions), min(k, len(positions))
            return np.sort(positions)[np.arange(count) * n // count]
        return positions[np.lexsort((positions, errors if rise else -errors))[:k]]

    def _solve_block(self, positions: IntArray, offset: float, target: float) -> bool:
        """Solve a block and add its change; whether the dual rose."""
        split = self.division.split(positions)
        before = self._gather(positions, split)
        self.last = self.active[positions]
        variables, changes = self.solver.solve(self.last, before, target, self.float64)
        for change in changes.tolist():  # in the order of the sum in C++
            self.travel += abs(change)
        moved = changes != 0
        added = (self.rows[self.last[moved]], changes[moved])
        parts = [(which[moved[which]], own[moved[which]]) for which, own in split]
        self.call("add", [(own, variables[which], changes[which], *added) for which, own in parts])
        gains = 0.5 * (before + self._gather(positions, split) - 2.0 * offset) * changes
        return float(-np.cumsum(gains)[-1]) > 0.0

    def _gather(self, positions: IntArray, split: list[tuple[IntArray, IntArray]]) -> FloatArray:
        errors = np.empty(len(positions))
        for (which, _), part in zip(split, self.call("gather", [(own,) for _, own in split]), strict=True):
            errors[which] = part
        return errors


def solve_sharded_pair(
    store: KernelStore,
    problem: BinaryProblem,
    loss: Loss,
    options: SolverOptions,
    division: Sequence[IntArray],
    connect: Callable[[Sequence[tuple[Any, ...]]], Call] | None = None,
) -> BinarySolution:
    """Solve one binary problem over shards, from zero and without limits.

    Solves   max sum a - 1/2 (ya)'K(ya) under 0 <= a <= C, y'a = 0 to LIBSVM's m - M of at most ``options.tol``.
    Given    ``division[s]``, the examples of shard s by their place in the problem; every example is in one of them.
    Returns  the solution of ``solvers.binary.solve_batch`` for more than 4,096 examples, bit by bit.
    See      cpp/core/solvers/binary/blocks.cpp, whose driver this is over another engine.
    """
    began = time.perf_counter()
    check_options(options)
    given = (
        store.core,
        problem.rows,
        problem.n_positive,
        problem.C,
        getattr(_core.Loss, loss.value),
        options.to_core(),
    )
    examples = Division(division)
    call = (connect or make_local)([(*given, own) for own in examples.examples])
    solver = _core.BinaryBlockSolver(*given)
    driver = BinaryDriver(solver, call, examples, problem, loss is Loss.SQUARED_HINGE)
    reason = driver.run(options)
    report = report_of(driver, solver.iterations, reason, time.perf_counter() - began)
    return BinarySolution(solver.variables(), driver.bias, report)


def make_local(given: Sequence[tuple[Any, ...]]) -> Call:
    """Make the shards in this process."""
    return call_local([_core.BinaryShard(*each) for each in given])
