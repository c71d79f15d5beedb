"""One-vs-all with an exact bias: its constraints separate, so that each class is a binary problem of its own."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from multimargin._typing import FloatArray, IntArray
from multimargin.base.resources import n_threads
from multimargin.problems.coupling import coefficients
from multimargin.problems.machines import MACHINES
from multimargin.problems.problem import Bias, DualProblem
from multimargin.problems.schemes import BinaryProblem, Slices, class_problems
from multimargin.solvers.binary import solve_batch, sum_reports
from multimargin.solvers.certificate import evaluate
from multimargin.solvers.core import Solution, SolverState, StateWatch, check_start
from multimargin.solvers.monitor import FitMonitor
from multimargin.solvers.options import SolverOptions


def is_one_vs_all(problem: DualProblem) -> bool:
    """Return whether the problem separates into binary ones with an exact bias."""
    return problem.machine is MACHINES["ova"] and problem.bias is Bias.EXACT


def solve_one_vs_all(
    problem: DualProblem,
    options: SolverOptions,
    start: SolverState | None = None,
    watch: StateWatch = None,
) -> Solution:
    """Solve the machine "ova" with an exact bias, one binary problem for each class over one store.

    Solves   the dual of ``problem`` under sum_i beta_ic = 0, to LIBSVM's m - M of at most ``options.tol`` per class.
    Given    a start that fits its examples and classes. A hard margin must exist.
    Returns  a Solution whose state is feasible whatever ended the solve.
    See      HL02 (1); proximal_bias.py for the way that serves every machine.
    """
    check_start(problem, start)
    binaries = class_problems(problem.data)
    solved = binaries if problem.n_classes > 2 else binaries[:1]  # the second of two is the mirror image of the first
    starts = (
        None if start is None else [part_of_class(problem, binary, c, start.amounts) for c, binary in enumerate(solved)]
    )

    def state_of(parts: Slices) -> SolverState:
        amounts = join_classes(problem, binaries, _with_mirrored(binaries, list(parts)))
        return SolverState(amounts, None, problem.n_classes, np.zeros(problem.n_classes))

    batch = solve_batch(problem.store, solved, problem.loss, options, starts, FitMonitor(watch).map(state_of))
    parts = _with_mirrored(binaries, list(batch.solutions.amounts))
    amounts = join_classes(problem, binaries, parts)
    bias = batch.solutions.biases
    reports = list(batch.solutions.reports)
    if len(solved) < len(binaries):  # the same objectives again, for nothing
        bias = np.array([bias[0], -bias[0]])
        nothing = dict.fromkeys(reports[0].phases, 0.0)
        reports.append(replace(reports[0], n_iter=0, seconds=0.0, kernel_rows=0, cache_hits=0, phases=nothing))
    report = sum_reports(reports)
    state = SolverState(amounts, None, problem.n_classes, bias)
    if np.isinf(problem.data.C).all() and report.verified:  # the hard margin's primal point is made from the scores
        state = replace(state, scores=_scores(problem, amounts))
    return Solution(state, report, batch.error)


def with_mirror_image(problem: DualProblem, solution: Solution) -> Solution:
    """Return the solution with the second of two classes of one-vs-all as the mirror image of the first.

    They are one problem, and a model of two classes has one function. Solved side by side they agree to tol only, and
    where the kernel is not positive semi-definite they may end at different KKT points.
    """
    if problem.machine is not MACHINES["ova"] or problem.n_classes != 2:
        return solution
    state, report = solution.state, solution.report
    first = components_by_class(problem.data.y, 2)[:, :1]
    amounts = np.repeat(np.take_along_axis(state.amounts, first, axis=1), 2, axis=1)
    if state.scores is None:
        return replace(solution, state=replace(state, amounts=amounts))
    scores = np.column_stack([state.scores[:, 0], -state.scores[:, 0]])
    bias = None if state.bias is None else np.array([state.bias[0], -state.bias[0]])
    numbers = evaluate(problem, amounts, scores, bias)
    report = replace(report, violation=numbers.violation, dual=numbers.dual, primal=numbers.primal)
    return replace(solution, state=replace(state, amounts=amounts, scores=scores, bias=bias), report=report)


def _with_mirrored(binaries: list[BinaryProblem], parts: list[FloatArray]) -> list[FloatArray]:
    """Add the dual variables of the second of two classes to those of the first, which are the same ones."""
    if len(parts) == len(binaries):
        return parts
    n_first = len(binaries[0].positive)
    return [parts[0], np.concatenate([parts[0][n_first:], parts[0][:n_first]])]


def _scores(problem: DualProblem, amounts: FloatArray) -> FloatArray:
    beta = coefficients(problem.machine, amounts, problem.data.y, problem.n_classes)
    used = np.flatnonzero(beta.any(axis=1))
    rows = problem.data.rows
    return problem.store.scores(rows[used], beta[used], problem.data.kernel_data[rows], n_threads())


def components_by_class(y: IntArray, n_classes: int) -> IntArray:
    """Return which component of an example is about each class, (n_examples, n_classes): its own comes first."""
    c, own = np.arange(n_classes), y[:, None]
    return np.where(own == c, 0, np.where(own > c, c + 1, c))


def join_classes(problem: DualProblem, binaries: list[BinaryProblem], parts: list[FloatArray]) -> FloatArray:
    """Return the amounts (n_examples, n_classes) of the classes' dual variables."""
    amounts = np.zeros((problem.n_examples, problem.n_components))
    places = components_by_class(problem.data.y, problem.n_classes)
    for c, (binary, part) in enumerate(zip(binaries, parts, strict=True)):
        examples = np.concatenate([binary.positive, binary.negative])
        amounts[examples, places[examples, c]] = part
    return amounts


def part_of_class(problem: DualProblem, binary: BinaryProblem, c: int, amounts: FloatArray) -> FloatArray:
    """Return the dual variables of class c's binary problem, in the order of its rows."""
    examples = np.concatenate([binary.positive, binary.negative])
    places = components_by_class(problem.data.y[examples], problem.n_classes)
    return np.ascontiguousarray(amounts[examples, places[:, c]])
