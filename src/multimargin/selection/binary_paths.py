"""Machines made of binary problems with an exact bias, along C: all pairs and folds of one gamma in one call."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from multimargin import _core
from multimargin.fitting import Recipe, choose_binary_solver, make_options
from multimargin.machines import MACHINES, FloatArray, IntArray
from multimargin.problem import Bias
from multimargin.resources import n_threads
from multimargin.schemes import BinaryProblem, class_problems, members_by_class, pair_list, pair_problems
from multimargin.selection.held_out import Decision, Point, Stop, decide_pairs, decide_scores, pair_scores
from multimargin.solver import Progress

# Scores of pairs held at once, in entries: Cs are taken some at a time where there are many classes.
ENTRIES_AT_ONCE = 8_000_000


def follows_binary_paths(recipe: Recipe, params: dict[str, Any]) -> bool:
    """Return whether a machine is a list of binary problems that the core takes along C by itself."""
    separable = bool(recipe.scheme) or recipe.machine is MACHINES["ova"]
    return separable and recipe.bias is Bias.EXACT and params["solver"] == "auto"


class BinaryPaths:
    """The binary problems of some folds at one gamma.

    Solves   each for all C, ascending, from the solution before, to tol confirmed in float64.
    See      cpp/core/binary_path.cpp
    """

    def __init__(self, work: Any, gamma: float, folds: Sequence[int], Cs: FloatArray, stop: Stop | None) -> None:
        self.work, self.gamma, self.folds, self.Cs, self.stop = work, gamma, folds, Cs, stop
        self.recipe: Recipe = work.recipe(gamma)

    def run(self) -> list[tuple[int, list[Point]]]:
        """Return the points of each fold, fewer than Cs where it was stopped."""
        store = self.work.store(self.gamma)
        by_fold = [self._statements(fold) for fold in self.folds]
        solver, _ = choose_binary_solver(self.work.params["solver"], self.recipe.kernel)
        options = make_options(self.work.params, self.recipe, len(self.work.y), solver, small=False).to_core()
        options.cache_bytes = max(0.0, options.cache_bytes - self.work.kernels.bytes)
        result = _core.solve_binary_paths(
            store.core,
            [statement for _, statements in by_fold for statement in statements],
            self.Cs,
            getattr(_core.Loss, self.recipe.loss.value),
            options,
            None if self.stop is None else self._watch(sum(len(s) for _, s in by_fold)),
        )
        results, error = list(result.results), result.error
        del result  # see solver.run_core
        points, begin = [], 0
        for fold, (problems, _) in zip(self.folds, by_fold, strict=True):
            parts = results[begin : begin + len(problems)]
            begin += len(problems)
            n_done = min(len(part.bias) for part in parts)
            if error is None or n_done == len(self.Cs):
                points.append((fold, self._points(fold, problems, parts, n_done)))
        if error is not None:
            error.points = points  # type: ignore[attr-defined]
            raise error
        return points

    def _statements(self, fold: int) -> tuple[list[BinaryProblem], list[Any]]:
        """Return the fold's problems, the largest first among those of the same fold, made once for all gammas."""
        kept = self.work.statements
        if fold not in kept:
            data = self.work.data(fold)
            problems = pair_problems(data) if self.recipe.scheme else class_problems(data)
            stated = [_core.BinaryStatement(p.rows, p.n_positive, p.C, None) for p in problems]
            kept[fold] = problems, stated
        found: tuple[list[BinaryProblem], list[Any]] = kept[fold]
        return found

    def _watch(self, n_problems: int) -> Callable[[_core.Progress, Callable[[], int]], bool]:
        total, stop = n_problems * len(self.Cs), self.stop
        assert stop is not None

        def watch(progress: _core.Progress, n_done: Callable[[], int]) -> bool:
            moment = Progress(**{entry.name: getattr(progress, entry.name) for entry in fields(Progress)})
            return bool(stop(moment, n_done() / total))

        return watch

    def _points(self, fold: int, problems: list[BinaryProblem], parts: list[Any], n_done: int) -> list[Point]:
        if not n_done:
            return []
        began = time.perf_counter()
        held_out = _HeldOut(self.work, self.gamma, fold)
        decide = held_out.by_pairs if self.recipe.scheme else held_out.by_classes
        decisions, n_support = decide(problems, parts, n_done)
        each = (time.perf_counter() - began) / n_done
        totals = {name: sum(getattr(part, name)[:n_done] for part in parts) for name in ("iterations", "seconds")}
        converged = np.all([part.converged[:n_done] for part in parts], axis=0)
        return [
            Point(decision, int(n), int(steps), float(seconds), each, bool(good))
            for decision, n, steps, seconds, good in zip(
                decisions, n_support, totals["iterations"], totals["seconds"], converged, strict=True
            )
        ]


class _HeldOut:
    """The scores of the rows that a fold holds out, for all C together."""

    def __init__(self, work: Any, gamma: float, fold: int) -> None:
        self.work, self.data, self.test = work, work.data(fold), work.test_rows(fold)
        self.store = work.store(gamma)

    def sums(self, rows: IntArray, beta: FloatArray) -> FloatArray:
        """Return sum_s beta_..s k(x_rows[s], x_t), shape (..., n_test), for the rows t that are held out."""
        flat = beta.reshape(-1, len(rows))
        found: FloatArray = self.store.scores_within(rows, flat, self.test, n_threads())
        return found.reshape(*beta.shape[:-1], -1)

    def by_pairs(self, problems: list[BinaryProblem], parts: list[Any], n_done: int) -> tuple[list[Decision], IntArray]:
        """Return the decisions of the one-vs-one machine at each C, and how many support vectors it has."""
        n_classes = self.work.n_classes
        members = members_by_class(self.data)
        beta = [np.empty((n_classes - 1, n_done, len(own))) for own in members]
        for (i, j), problem, part in zip(pair_list(n_classes), problems, parts, strict=True):
            beta[i][j - 1] = part.amounts[:n_done, : problem.n_positive]
            np.negative(part.amounts[:n_done, problem.n_positive :], out=beta[j][i])
        biases = np.array([part.bias[:n_done] for part in parts])
        n_support = sum((each != 0).any(axis=0).sum(axis=-1) for each in beta)
        step = max(1, ENTRIES_AT_ONCE // (len(self.test) * len(parts)))
        decisions: list[Decision] = []
        for first in range(0, n_done, step):
            some = slice(first, first + step)
            sums = [self.sums(self.data.rows[own], b[:, some]) for own, b in zip(members, beta, strict=True)]
            decisions += self._decide(pair_scores(sums, biases[:, some]))
        return decisions, np.asarray(n_support)

    def _decide(self, D: FloatArray) -> list[Decision]:
        """Return the decision at each C from the scores of the pairs, (n_pairs, n_Cs, n_points): all C in one go."""
        n_pairs, *shape = D.shape
        work = self.work
        flat = D.reshape(n_pairs, -1).T
        whole = decide_pairs(flat, work.n_classes, work.params, work.scheme, detail=work.needs_scores)
        codes, scores = whole.codes.reshape(shape), whole.scores.reshape(*shape, *whole.scores.shape[1:])
        return [Decision(*each) for each in zip(codes, scores, strict=True)]

    def by_classes(
        self, problems: list[BinaryProblem], parts: list[Any], n_done: int
    ) -> tuple[list[Decision], IntArray]:
        """Return the decisions of one-vs-all at each C, and how many support vectors it has."""
        beta = np.zeros((self.work.n_classes, n_done, len(self.data.y)))
        for c, (problem, part) in enumerate(zip(problems, parts, strict=True)):
            beta[c][:, problem.positive] = part.amounts[:n_done, : problem.n_positive]
            beta[c][:, problem.negative] = -part.amounts[:n_done, problem.n_positive :]
        F = self.sums(self.data.rows, beta) + np.array([part.bias[:n_done] for part in parts])[:, :, None]
        decisions = [decide_scores(np.ascontiguousarray(F[:, k].T)) for k in range(n_done)]
        return decisions, (beta != 0).any(axis=0).sum(axis=-1)
