"""Two-level solves whose scores are held by shards: each has some of the examples and needs no other's scores.

The coordinator, here, holds the dual variables, chooses blocks and solves them. The shards hold scores, name their
worst examples and add a block's change to what they hold. Candidates are merged by violation and then by rank, so that
every bit of the solution is the same for any division of the examples, and the same as that of ``solvers.core.solve``.

A shard is a ``_core.ScoreShard`` or anything that has its methods: ``call(method, arguments)`` calls one of them on
every shard, each with its own arguments, and returns the results in order. An engine for a cluster is another ``call``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from enum import Enum
from typing import Any

import numpy as np

from multimargin import _core
from multimargin._typing import FloatArray, IntArray
from multimargin.problems.problem import DualProblem
from multimargin.solvers.core import Solution, SolverState
from multimargin.solvers.options import Precision, SolverOptions
from multimargin.solvers.report import SolverReport, StopReason

RULES = _core.TWO_LEVEL_RULES
AIM = 0.9  # rounds aim below tol, so that the float64 check finds tol met
MOST_FAILED_CHECKS = 5  # without progress, before a solve has stalled

Call = Callable[[str, Sequence[tuple[Any, ...]]], list[Any]]


class Outcome(Enum):
    """How rounds of blocks ended."""

    SATISFIED = "satisfied"
    IMPRECISE = "imprecise"
    STUCK = "stuck"


def call_local(shards: Sequence[Any]) -> Call:
    """Return the call to shards in this process, one after the other."""

    def call(method: str, arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        return [getattr(shard, method)(*each) for shard, each in zip(shards, arguments, strict=True)]

    return call


class Division:
    """Which shard has which examples, and where those of a round are."""

    def __init__(self, examples: Sequence[IntArray]) -> None:
        self.examples = [np.sort(own) for own in examples]
        self.n_examples = sum(len(own) for own in examples)
        self.owner = np.empty(self.n_examples, dtype=np.int64)
        self.index = np.empty(self.n_examples, dtype=np.int64)
        for s, own in enumerate(self.examples):
            self.owner[own] = s
            self.index[own] = np.arange(len(own))

    def begin_round(self, active: IntArray) -> None:
        self.places = [np.flatnonzero(self.owner[active] == s) for s in range(len(self.examples))]
        self.round_owner = self.owner[active]
        self.round_index = np.empty(len(active), dtype=np.int64)
        for places in self.places:
            self.round_index[places] = np.arange(len(places))

    def split(self, positions: IntArray) -> list[tuple[IntArray, IntArray]]:
        """Return of each shard which of the positions are its own, and where in the shard's round."""
        owner = self.round_owner[positions]
        chosen = [np.flatnonzero(owner == s) for s in range(len(self.examples))]
        return [(which, self.round_index[positions[which]]) for which in chosen]


class ShardedScores:
    """The scores of all examples, as a score engine has them (solvers/multiclass/score_engine.hpp)."""

    def __init__(self, call: Call, division: Division) -> None:
        self.call, self.division = call, division

    def for_all(self, method: str, *arguments: Any) -> list[Any]:
        return self.call(method, [arguments] * len(self.division.examples))

    def all_scores(self) -> FloatArray:
        parts = self.for_all("scores")
        scores = np.empty((self.division.n_examples, parts[0].shape[1]))
        for own, part in zip(self.division.examples, parts, strict=True):
            scores[own] = part
        return scores

    def begin_round(self, active: IntArray, ranks: IntArray) -> None:
        self.division.begin_round(active)
        parts = [(self.division.index[active[places]], ranks[places]) for places in self.division.places]
        self.call("begin_round", parts)

    def worst(self, k: int, without: IntArray) -> IntArray:
        found = self.call("worst", [(k, own) for _, own in self.division.split(without)])
        return self._merge(k, found)

    def worst_of(self, k: int, positions: IntArray) -> IntArray:
        found = self.call("candidates_at", [(own,) for _, own in self.division.split(positions)])
        return self._merge(k, found)

    def _merge(self, k: int, found: list[tuple[IntArray, FloatArray, IntArray]]) -> IntArray:
        places = zip(self.division.places, found, strict=True)
        positions = np.concatenate([own[local] for own, (local, _, _) in places])
        violations = np.concatenate([violation for _, violation, _ in found])
        ranks = np.concatenate([rank for _, _, rank in found])
        return positions[np.lexsort((ranks, -violations))[:k]]

    def gather(self, positions: IntArray) -> FloatArray:
        split = self.division.split(positions)
        parts = self.call("gather", [(own,) for _, own in split])
        scores = np.empty((len(positions), parts[0].shape[1]))
        for (which, _), part in zip(split, parts, strict=True):
            scores[which] = part
        return scores

    def add(self, positions: IntArray, block: _core.BlockResult) -> None:
        split = self.division.split(positions)
        added = (block.rows, block.coefficients)
        self.call("add", [(own, np.ascontiguousarray(block.variables[which]), *added) for which, own in split])


class TwoLevelDriver:
    """Rounds on the active examples and blocks within a round, as ``TwoLevel`` and ``Solve`` in C++."""

    def __init__(self, solver: _core.BlockSolver, scores: ShardedScores, options: SolverOptions) -> None:
        self.solver, self.scores, self.options = solver, scores, options
        self.may_change = options.precision is Precision.AUTOMATIC
        self.float64 = options.precision is Precision.FLOAT64 or (self.may_change and not solver.fits_float32)
        self.n_examples = scores.division.n_examples

    def run(self) -> StopReason:
        """Solve to ``tol``: in float32 while that carries it, then in float64."""
        self._summarize(exact=True)
        reached = None if self.float64 else self._reach()
        if reached is None:
            self.float64 = True
            self.solver.use_precision(True)
            self.scores.for_all("use_precision", True)
            reached = self._reach()
        return reached or StopReason.STALLED

    def _reach(self) -> StopReason | None:
        """Run rounds until the float64 check confirms ``tol``; None where float32 cannot."""
        best, failed = np.inf, 0
        while True:
            outcome = self._run_rounds(AIM * self.options.tol)
            self.scores.for_all("confirm", *self.solver.coefficients())
            violation = self._summarize(exact=True)
            if violation <= self.options.tol:
                return StopReason.CONVERGED
            if outcome is Outcome.IMPRECISE or (self.may_change and not self.float64):
                return None
            failed = 0 if violation < 0.5 * best else failed + 1
            best = min(best, violation)
            if failed > MOST_FAILED_CHECKS:
                return StopReason.STALLED

    def _summarize(self, exact: bool = False) -> float:
        self.violation, self.dual, self.primal = self.solver.summarize(self.scores.all_scores(), exact)
        return self.violation

    def _run_rounds(self, target: float) -> Outcome:
        solver, active = self.solver, np.arange(self.n_examples)
        self.one_block = self.n_examples <= solver.block_size
        violation, idle = self._summarize(), 0
        while violation > target and idle < 2:
            iterations = solver.iterations
            self.previous = np.empty(0, dtype=np.int64)
            solver.begin_round()
            self.scores.begin_round(active, _core.random_permutation(len(active)))
            goal = target if self.one_block else max(target, RULES["round_share"] * violation)
            outcome = self._run_blocks(active, goal)
            self.scores.for_all("end_round", *solver.round_changes())
            if outcome is not Outcome.SATISFIED:
                return outcome
            idle = idle + 1 if solver.iterations == iterations else 0
            if not self.float64 and self.may_change and solver.float32_too_coarse:
                return Outcome.IMPRECISE
            violation = self._summarize()
            if not self.one_block:
                active = solver.near_active(min(solver.most_margin, 0.5 * violation))
        return Outcome.SATISFIED

    def _run_blocks(self, active: IntArray, target: float) -> Outcome:
        while True:
            violation = max(self.scores.for_all("violation"))
            if violation <= 0.9 * target:
                return Outcome.SATISFIED
            outcome = self._solve_block(active, violation, target)
            if outcome is not Outcome.SATISFIED:
                return outcome

    def _solve_block(self, active: IntArray, violation: float, target: float) -> Outcome:
        solver = self.solver
        positions = self._choose_block(len(active))
        share = RULES["exact_share" if solver.prefers_active_set else "block_share"]
        goal = max(0.45 * target, 0.0 if self.one_block else share * violation)
        block = solver.solve(active[positions], self.scores.gather(positions), goal)
        self.previous = positions[block.is_free != 0]
        self.scores.add(positions, block)
        if not self.float64 and self.may_change:
            better_whole = not self.one_block and solver.prefers_active_set and solver.fits_active_set
            if better_whole or not block.solved:
                return Outcome.IMPRECISE
        return Outcome.SATISFIED if block.gained else Outcome.STUCK

    def _choose_block(self, n_active: int) -> IntArray:
        """Return first free examples of the last block, the worst of them; then the worst of all."""
        if self.one_block:
            return np.arange(n_active)
        size = self.solver.block_size
        carried = self.scores.worst_of(int(RULES["carried_share"] * size), self.previous)
        return np.sort(np.concatenate([carried, self.scores.worst(size - len(carried), carried)]))


def solve_sharded(
    problem: DualProblem,
    options: SolverOptions,
    division: Sequence[IntArray],
    connect: Callable[..., Call] | None = None,
) -> Solution:
    """Solve a problem over shards, from zero and without limits.

    Solves   the dual of ``problem`` to a KKT violation of at most ``options.tol``.
    Given    ``division[s]``, the examples of shard s by their place in the data; every example is in one of them.
    Returns  the Solution of ``solvers.core.solve``, bit by bit, unless that gives up a block for steps in features.
    See      cpp/core/solvers/multiclass/two_level.cpp, whose driver this is over another engine.
    """
    began = time.perf_counter()
    check_options(options)
    data, loss = problem.data, getattr(_core.Loss, problem.loss.value)
    if not np.array_equal(np.sort(np.concatenate(division)), np.arange(problem.n_examples)):
        raise ValueError("The division must have every example in one shard.")
    order = np.argsort(data.y, kind="stable")  # classes one after the other, as the core holds them
    place = np.empty_like(order)
    place[order] = np.arange(len(order))

    def given(examples: IntArray) -> tuple[Any, ...]:
        arrays = (np.ascontiguousarray(each[order][examples]) for each in (data.rows, data.y, data.C))
        return (problem.store.core, problem.to_core(), loss, *arrays, options.to_core())

    examples = Division([place[own] for own in division])
    shards = (connect or make_local)([given(own) for own in examples.examples])
    solver = _core.BlockSolver(*given(np.arange(len(order))))
    driver = TwoLevelDriver(solver, ShardedScores(shards, examples), options)
    reason = driver.run()
    raw, d = driver.scores.all_scores(), problem.n_classes
    scores = raw[:, :d] - raw[:, d:] if raw.shape[1] > d else raw
    state = SolverState(solver.variables()[place], scores[place], d)
    return Solution(state, report_of(driver, solver.iterations, reason, time.perf_counter() - began), None)


def make_local(given: Sequence[tuple[Any, ...]]) -> Call:
    """Make the shards in this process."""
    return call_local([_core.ScoreShard(*each) for each in given])


def check_options(options: SolverOptions) -> None:
    """Refuse what this driver does not know."""
    plain = SolverOptions(
        solver=options.solver, precision=options.precision, tol=options.tol, cache_bytes=options.cache_bytes
    )
    known = replace(options, n_threads=plain.n_threads, max_work=plain.max_work)
    if known != plain:
        raise ValueError(
            "A solve over shards takes tol, precision, cache_bytes and n_threads; leave the other options."
        )


def report_of(driver: Any, n_iter: int, reason: StopReason, seconds: float) -> SolverReport:
    """Return what the driver reached, by its last float64 check."""
    return SolverReport(
        stop_reason=reason,
        n_iter=n_iter,
        seconds=seconds,
        violation=driver.violation,
        dual=driver.dual,
        primal=driver.primal,
        kernel_rows=0,
        cache_hits=0,
        verified=True,
        float64_rows=driver.float64,
        phases={},
    )
