"""Solving a dual problem: state, solution, and the one call into the C++ core."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from multimargin import _core
from multimargin._typing import FloatArray
from multimargin.problems.problem import Bias, DualProblem
from multimargin.problems.separability import refuse_if_inseparable
from multimargin.solvers.monitor import FitMonitor, Watch
from multimargin.solvers.options import SolverOptions
from multimargin.solvers.report import SolverReport, read_report


@dataclass(frozen=True, eq=False)
class SolverState:
    """Where a solve stands: enough to go on from, or to seed another one.

    Parameters
    ----------
    amounts : ndarray of shape (n_examples, n_components)
        The dual variables a.
    scores : ndarray of shape (n_examples, n_classes) or None
        F = K beta, where it is known in float64; a regularised bias is part of K, an exact one is not in F.
    n_classes : int
    bias : ndarray of shape (n_classes,) or None
        b, for an exact bias.
    """

    amounts: FloatArray
    scores: FloatArray | None
    n_classes: int
    bias: FloatArray | None = None


@dataclass(frozen=True, eq=False)
class Solution:
    """State and report; ``error`` is the exception (Ctrl-C, a failing callback) that ended the solve, if one did."""

    state: SolverState
    report: SolverReport
    error: BaseException | None


StateWatch = Watch[SolverState] | None
# Solves a problem without an exact bias from a start that was checked; scores of the start are believed.
InnerSolve = Callable[[DualProblem, SolverOptions, SolverState | None, StateWatch], Solution]


def solve(
    problem: DualProblem,
    options: SolverOptions,
    start: SolverState | None = None,
    watch: StateWatch = None,
) -> Solution:
    """Solve the problem from ``start`` (or from zero).

    Solves   the dual of ``problem`` to a KKT violation of at most ``options.tol``.
    Given    a start that fits its examples and classes; it is made feasible first.
    Returns  a Solution whose state is feasible whatever ended the solve.
    See      DGI11 Algorithm 1, cpp/core/solvers/multiclass/solve.cpp; proximal_bias.py for the exact bias.
    """
    if problem.bias is Bias.EXACT:
        raise ValueError(
            "The exact bias adds constraints that this solver does not know; use proximal_bias.solve_by_bias_rule."
        )
    check_start(problem, start)
    refuse_if_inseparable(problem)
    return run_core(problem, options, None if start is None else replace(start, scores=None), watch)


def check_start(problem: DualProblem, start: SolverState | None) -> None:
    """Refuse a start that belongs to other data."""
    if start is None:
        return
    shape = (problem.n_examples, problem.n_components)
    if start.amounts.shape != shape or start.n_classes != problem.n_classes:
        raise ValueError(
            f"The state to start from has {start.amounts.shape[0]} examples, {start.n_classes} classes and "
            f"{start.amounts.shape[1]} variables each, the data have {shape[0]}, {problem.n_classes} and {shape[1]}; "
            "fit from nothing (warm_start=False) or on the same rows, classes and machine."
        )


def run_core(problem: DualProblem, options: SolverOptions, start: SolverState | None, watch: StateWatch) -> Solution:
    """Call the core on a problem and a start that were checked; scores of the start are believed."""
    monitor: FitMonitor[FloatArray] = FitMonitor(watch).map(
        lambda amounts: SolverState(amounts, None, problem.n_classes)
    )
    result = _core.solve(
        problem.store.core,
        problem.to_core(),
        getattr(_core.Loss, problem.loss.value),
        problem.data.rows,
        problem.data.y,
        problem.data.C,
        options.to_core(),
        None if start is None else np.ascontiguousarray(start.amounts),
        None if start is None or start.scores is None else np.ascontiguousarray(start.scores),
        monitor.for_core(),
    )
    report = read_report(result.report)
    state = SolverState(result.amounts, result.scores if report.verified else None, problem.n_classes)
    error = result.error
    # An exception's traceback holds this frame; through it the result would hold itself, unseen by the collector.
    del result
    return Solution(state, report, error)
