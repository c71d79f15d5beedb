"""Paths along C of binary problems with an exact bias: all pairs and folds of one gamma in one call."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from multimargin import _core
from multimargin._typing import FloatArray, IntArray
from multimargin.base.resources import n_threads
from multimargin.fitting.machine import choose_binary_solver, make_options
from multimargin.fitting.spec import FitSpec
from multimargin.model_selection.scoring import (
    Decision,
    Point,
    Stop,
    decide_pairs,
    decide_scores,
    pair_scores,
    votes_only,
)
from multimargin.problems.binary_parts import is_separable
from multimargin.problems.problem import Bias
from multimargin.problems.schemes import BinaryProblem, class_problems, members_by_class, pair_list, pair_problems
from multimargin.solvers.report import Progress

# Scores of pairs held at once, in entries: with many classes the Cs are processed in parts.
ENTRIES_AT_ONCE = 8_000_000


def follows_binary_paths(spec: FitSpec, params: dict[str, Any]) -> bool:
    """Return whether a machine is a list of binary problems whose path along C the core computes."""
    return is_separable(spec.scheme or spec.machine) and spec.bias is Bias.EXACT and params["solver"] == "auto"


class BinaryPaths:
    """The binary problems of some folds at one gamma.

    Solves   each for all C, ascending, from the solution before, to tol confirmed in float64.
    See      cpp/core/solvers/binary/c_path.cpp
    """

    def __init__(self, work: Any, gamma: float, folds: Sequence[int], Cs: FloatArray, stop: Stop | None) -> None:
        self.work, self.gamma, self.folds, self.Cs, self.stop = work, gamma, folds, Cs, stop
        self.spec: FitSpec = work.spec(gamma)

    def run(self) -> list[tuple[int, list[Point]]]:
        """Return the points of each fold, fewer than Cs where it was stopped."""
        store = self.work.store(self.gamma)
        by_fold = [self._statements(fold) for fold in self.folds]
        solver, _ = choose_binary_solver(self.work.params["solver"], self.spec.kernel)
        options = make_options(self.work.params, self.spec, len(self.work.y), solver, small=False).to_core()
        options.cache_bytes = self.work.kernels.bytes_left
        result = _core.solve_binary_paths(
            store.core,
            # The folds of a pair one after the other: they read the same part of the matrix.
            [statements[p] for p in range(len(by_fold[0][1])) for _, statements in by_fold],
            self.Cs,
            getattr(_core.Loss, self.spec.loss.value),
            options,
            self.work.pool,
            None if self.stop is None else self._watch(sum(len(s) for _, s in by_fold)),
        )
        results, error = list(result.results), result.error
        del result  # see solver.run_core
        found = []
        for position, (fold, (problems, _)) in enumerate(zip(self.folds, by_fold, strict=True)):
            parts = results[position :: len(by_fold)]
            n_done = min(len(part.bias) for part in parts)
            if error is None or n_done == len(self.Cs):
                found.append(_Solved(fold, problems, parts, n_done))
        points = self._points(found)
        if error is not None:
            error.points = points  # type: ignore[attr-defined]
            raise error
        return points

    def _statements(self, fold: int) -> tuple[list[BinaryProblem], list[Any]]:
        """Return the fold's problems, the largest first among those of the same fold, created once for all gammas."""
        kept = self.work.statements
        if fold not in kept:
            data = self.work.data(fold)
            problems = pair_problems(data) if self.spec.scheme else class_problems(data)
            stated = [_core.BinaryStatement(p.rows, p.n_positive, p.C, None) for p in problems]
            kept[fold] = problems, stated
        found: tuple[list[BinaryProblem], list[Any]] = kept[fold]
        return found

    def _watch(self, n_problems: int) -> Callable[[_core.Progress, Callable[[], int]], bool]:
        total, stop = n_problems * len(self.Cs), self.stop
        assert stop is not None

        def check(progress: _core.Progress, n_done: Callable[[], int]) -> bool:
            now = Progress(**{entry.name: getattr(progress, entry.name) for entry in fields(Progress)})
            return bool(stop(now, n_done() / total))

        return check

    def _points(self, found: list[_Solved]) -> list[tuple[int, list[Point]]]:
        began = time.perf_counter()
        held_out = _HeldOut(self.work, self.gamma)
        decided = held_out.by_pairs(found) if self.spec.scheme else [held_out.by_classes(each) for each in found]
        seconds = (time.perf_counter() - began) / max(1, sum(each.n_done for each in found))
        return [(each.fold, each.points(*of, seconds)) for each, of in zip(found, decided, strict=True)]


@dataclass(frozen=True, eq=False)
class _Solved:
    """The problems of one fold, as the core solved them for the first ``n_done`` of the Cs."""

    fold: int
    problems: list[BinaryProblem]
    parts: list[Any]
    n_done: int

    @property
    def biases(self) -> FloatArray:
        """(n_problems, n_done)"""
        return np.array([part.bias[: self.n_done] for part in self.parts])

    def points(self, decisions: list[Decision], n_support: IntArray, seconds: float) -> list[Point]:
        n_done, parts = self.n_done, self.parts
        totals = {name: sum(getattr(part, name)[:n_done] for part in parts) for name in ("iterations", "seconds")}
        converged = np.all([part.converged[:n_done] for part in parts], axis=0)
        return [
            Point(decision, int(n), int(steps), float(spent), seconds, bool(good))
            for decision, n, steps, spent, good in zip(
                decisions, n_support, totals["iterations"], totals["seconds"], converged, strict=True
            )
        ]


class _HeldOut:
    """Decisions for the rows that the folds hold out, for all C together."""

    def __init__(self, work: Any, gamma: float) -> None:
        self.work, self.store = work, work.store(gamma)
        self.pairs = pair_list(work.n_classes)

    def by_pairs(self, found: list[_Solved]) -> list[tuple[list[Decision], IntArray]]:
        """Return the decisions of one-vs-one machines at each C, and how many support vectors they have."""
        pieces: list[tuple[int, slice]] = []  # of the folds, so many Cs that their scores may be held at once
        for position, each in enumerate(found):
            step = max(1, ENTRIES_AT_ONCE // (len(self.work.test_rows(each.fold)) * len(self.pairs)))
            pieces += [(position, slice(k, min(k + step, each.n_done))) for k in range(0, each.n_done, step)]
        decided: list[tuple[list[Decision], list[IntArray]]] = [([], []) for _ in found]
        for some in _together(pieces, [self._entries(found[p], s) for p, s in pieces]):
            shares = [share for p, s in some for share in self._shares(found[p], s)]
            sums = iter(_core.sum_paths(self.store.core, shares, n_threads()))
            for position, costs in some:
                own = [next(sums) for _ in range(self.work.n_classes)]
                decisions, n_support = decided[position]
                decisions += self._decide([each for each, _ in own], found[position].biases[:, costs])
                n_support.append(np.sum([n for _, n in own], axis=0))
        return [(decisions, np.concatenate([*n, np.zeros(0, dtype=np.int64)])) for decisions, n in decided]

    def _entries(self, solved: _Solved, costs: slice) -> int:
        return int(len(self.work.test_rows(solved.fold)) * len(self.pairs) * (costs.stop - costs.start))

    def _shares(self, solved: _Solved, costs: slice) -> list[Any]:
        """Contribution of each class to the scores of its pairs, in LIBSVM's order of the others."""
        data, test = self.work.data(solved.fold), self.work.test_rows(solved.fold)
        members: list[list[tuple[FloatArray, int, float]]] = [[] for _ in range(self.work.n_classes)]
        for (i, j), problem, part in zip(self.pairs, solved.problems, solved.parts, strict=True):
            members[i].append((part.amounts[costs], 0, 1.0))
            members[j].append((part.amounts[costs], problem.n_positive, -1.0))
        # Pair (i, j) is met before (j, k), so that the others of a class come in ascending order.
        return [(data.rows[own], test, each) for own, each in zip(members_by_class(data), members, strict=True)]

    def _decide(self, sums: list[FloatArray], biases: FloatArray) -> list[Decision]:
        """Return the decision at each C from the contributions of the classes to their pairs, for all C together."""
        work = self.work
        if votes_only(work.n_classes, work.params, work.scheme, detail=work.needs_scores):
            winners = _core.vote_paths(sums, np.ascontiguousarray(biases), n_threads())
            return [Decision(codes, np.zeros(0)) for codes in winners]
        D = pair_scores(sums, biases)
        n_pairs, *shape = D.shape
        flat = D.reshape(n_pairs, -1).T
        whole = decide_pairs(flat, work.n_classes, work.params, work.scheme, detail=work.needs_scores)
        codes, scores = whole.codes.reshape(shape), whole.scores.reshape(*shape, *whole.scores.shape[1:])
        return [Decision(*each) for each in zip(codes, scores, strict=True)]

    def by_classes(self, solved: _Solved) -> tuple[list[Decision], IntArray]:
        """Return the decisions of one-vs-all at each C, and how many support vectors it has."""
        n_done, data = solved.n_done, self.work.data(solved.fold)
        beta = np.zeros((self.work.n_classes, n_done, len(data.y)))
        for c, (problem, part) in enumerate(zip(solved.problems, solved.parts, strict=True)):
            beta[c][:, problem.positive] = part.amounts[:n_done, : problem.n_positive]
            beta[c][:, problem.negative] = -part.amounts[:n_done, problem.n_positive :]
        new = np.ones(beta.shape[:2], dtype=bool)  # otherwise the solution equals that of the C before
        np.any(beta[:, 1:] != beta[:, :-1], axis=-1, out=new[:, 1:])
        found = self.store.scores_within(data.rows, beta[new], self.work.test_rows(solved.fold), n_threads())
        F = found[np.cumsum(new).reshape(new.shape) - 1] + solved.biases[:, :, None]
        decisions = [decide_scores(np.ascontiguousarray(F[:, k].T)) for k in range(n_done)]
        return decisions, (beta != 0).any(axis=0).sum(axis=-1)


def _together(pieces: list[Any], entries: list[int]) -> Iterator[list[Any]]:
    """Yield pieces in lists of at most ENTRIES_AT_ONCE entries together."""
    some: list[Any] = []
    total = 0
    for piece, own in zip(pieces, entries, strict=True):
        if some and total + own > ENTRIES_AT_ONCE:
            yield some
            some, total = [], 0
        some.append(piece)
        total += own
    if some:
        yield some
