"""Linear machines without kernel rows: dual coordinate descent on weights, by the C++ core. NumPy in, NumPy out."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
from scipy import sparse

from multimargin import _core
from multimargin._typing import DataMatrix, FloatArray, IntArray
from multimargin.base.matrices import is_sparse, tidy, to_core
from multimargin.kernels.store import SPARSE_SHARE
from multimargin.problems.problem import Bias, DualProblem, Loss
from multimargin.problems.schemes import BinaryProblem
from multimargin.problems.separability import refuse_if_inseparable
from multimargin.solvers.core import SolverState, check_start
from multimargin.solvers.monitor import FitMonitor, Watch
from multimargin.solvers.report import StopReason


@dataclass(frozen=True)
class LinearOptions:
    """How to solve; field by field the C++ struct ``LinearOptions``.

    Parameters
    ----------
    tol : float
        The KKT violation allowed.
    max_iter, max_passes : int
        Steps on one example, and passes over the active examples; -1 for no limit. Of several binary problems for each.
    max_time : float
        Seconds, for all problems of a call together.
    max_cost : float
        Multiply-adds for each problem, after which it ends as ``StopReason.UNFINISHED``; from a tenth of them on also
        when at the pace so far they would not do.
    shrinking : bool
        Whether examples at rest are left out until the others meet ``tol``.
    n_threads : int
        Binary problems are spread over them; the bits of a result do not depend on it.
    seed : int
        Of the order of visits.
    """

    tol: float = 1e-3
    max_iter: int = -1
    max_passes: int = -1
    max_time: float = float("inf")
    max_cost: float = float("inf")
    shrinking: bool = True
    n_threads: int = 1
    seed: int = 0

    def to_core(self) -> _core.LinearOptions:
        options = _core.LinearOptions()
        for entry in fields(self):
            setattr(options, entry.name, getattr(self, entry.name))
        return options


@dataclass(frozen=True)
class LinearReport:
    """What a solve did and reached.

    ``violation`` is the largest one met in the last pass over all examples (infinite before the first), and
    ``verified`` whether the weights stood still during it, so that it is that of the solution. ``cost`` counts
    multiply-adds. ``passes`` are Newton's steps where that method ran, and ``width`` is then where it left its own.
    """

    stop_reason: StopReason
    n_iter: int
    passes: int
    seconds: float
    violation: float
    dual: float
    cost: float
    width: float
    n_support: int
    verified: bool


@dataclass(frozen=True, eq=False)
class LinearResult:
    """Dual variables, weights and report of a machine.

    Parameters
    ----------
    amounts : ndarray of shape (n_examples, n_components)
    weights : ndarray of shape (n_features, n_classes), or (n_features + 1, n_classes) with an offset
        The scores are ``X @ weights[:n_features]``, plus ``sqrt(offset) * weights[n_features]``.
    report : LinearReport
    error : BaseException or None
        What ended the solve (Ctrl-C, a failing callback), if an exception did.
    """

    amounts: FloatArray
    weights: FloatArray
    report: LinearReport
    error: BaseException | None


@dataclass(frozen=True, eq=False)
class LinearBinaryResult:
    """As LinearResult for one binary problem: amounts (n_examples,), weights (n_features,) or one longer."""

    amounts: FloatArray
    weights: FloatArray
    report: LinearReport


@dataclass(frozen=True, eq=False)
class LinearBatch:
    """The results, and the exception (Ctrl-C, a failing callback) that ended the work, if one did."""

    results: tuple[LinearBinaryResult, ...]
    error: BaseException | None


def linear_data(X: DataMatrix) -> _core.LinearData:
    """Return X as the solvers here take it; made once it serves many of them.

    It is read in place, but dense data with many zeros are copied into sparse rows, which is faster.
    """
    if not is_sparse(X) and np.count_nonzero(X) <= SPARSE_SHARE * X.size:
        X = sparse.csr_array(X)
    return _core.LinearData(to_core(tidy(X)))


def solve_linear(
    problem: DualProblem,
    options: LinearOptions,
    start: SolverState | None = None,
    watch: Watch[SolverState] | None = None,
    data: _core.LinearData | None = None,
) -> LinearResult:
    """Solve a problem with a linear kernel from ``start`` (or from zero).

    Solves   the dual of ``problem`` to a KKT violation of at most ``options.tol``.
    Given    a start that fits, made feasible first; ``data`` where ``linear_data`` of problem.data.X is at hand.
    Returns  a feasible result whatever ended the solve. Its offset is that of ``problem.trained_kernel``.
    See      HCLKS08, KSCHL08, cpp/core/solvers/linear/linear_descent.cpp.
    """
    began = time.perf_counter()
    if problem.kernel.name != "linear":
        raise ValueError(
            f"The kernel is {problem.kernel.name!r}; weights by feature need 'linear', else use solver.solve."
        )
    if problem.bias is Bias.EXACT:
        raise ValueError(
            "The exact bias adds constraints that this solver does not know; use none or a regularised one."
        )
    check_start(problem, start)
    refuse_if_inseparable(problem)
    statement = _core.LinearStatement(
        problem.to_core(),
        getattr(_core.Loss, problem.loss.value),
        problem.data.rows,
        problem.data.y,
        problem.data.C,
        problem.trained_kernel.offset,
    )
    # Many classes make a large table of components, which belongs to the time of the solve.
    left = max(0.0, options.max_time - (time.perf_counter() - began))
    monitor: FitMonitor[FloatArray] = FitMonitor(watch).map(
        lambda amounts: SolverState(amounts, None, problem.n_classes)
    )
    result = _core.solve_linear(
        linear_data(problem.data.X) if data is None else data,
        statement,
        replace(options, max_time=left).to_core(),
        None if start is None else np.ascontiguousarray(start.amounts),
        monitor.for_core(),
    )
    found = LinearResult(result.amounts, result.weights, _read(result.report), result.error)
    del result  # see solver.run_core
    return found


@dataclass(frozen=True, eq=False)
class BinarySetting:
    """What binary problems have in common: the rows, how a margin is charged, and the kernel x'z + offset.

    With ``exact_bias``, which Newton's method alone knows, there is a constant feature whose weight is free.
    """

    X: DataMatrix | _core.LinearData
    loss: Loss = Loss.HINGE
    offset: float = 0.0
    exact_bias: bool = False

    def to_core(self) -> _core.LinearSetting:
        return _core.LinearSetting(getattr(_core.Loss, self.loss.value), self.offset, self.exact_bias)


@dataclass(frozen=True, eq=False)
class NewtonStart:
    """Where Newton's method starts: dual variables, an exact bias, the weights of a near problem, a wider first step.

    The weights have one entry for each feature, and one behind them where there is an offset or an exact bias.
    """

    amounts: FloatArray
    bias: float = 0.0
    weights: FloatArray | None = None
    width: float = 1.0


def solve_linear_binary(
    setting: BinarySetting,
    problems: Sequence[BinaryProblem],
    options: LinearOptions,
    starts: Sequence[FloatArray] | None = None,
    watch: Watch[list[FloatArray | None]] | None = None,
) -> LinearBatch:
    """Solve binary problems over the same rows, spread over the threads.

    Solves   max sum a - 1/2 (ya)'K(ya) under 0 <= a <= C with K = XX' + offset, each to a largest projected gradient of
             at most ``options.tol``.
    Given    starts that fit the problems; they are made feasible first.
    Returns  feasible results whatever ended the work; those not begun are at their starts. ``watch`` gets the amounts
             of those that are done, None for the others.
    See      HCLKS08 Algorithm 3, cpp/core/solvers/linear/binary_linear.cpp.
    """
    given: Sequence[FloatArray | None] = [None] * len(problems) if starts is None else starts
    result = _core.solve_linear_binary(
        _prepared(setting.X),
        _statements(problems, given),
        setting.to_core(),
        options.to_core(),
        FitMonitor(watch).for_core(),
    )
    batch = _read_batch(result)
    del result  # see solver.run_core
    return batch


def solve_newton_binary(
    setting: BinarySetting,
    problems: Sequence[BinaryProblem],
    options: LinearOptions,
    starts: Sequence[NewtonStart],
    watch: Watch[list[FloatArray | None]] | None = None,
) -> LinearBatch:
    """Solve binary problems by Newton's method, at a cost that does not grow with C.

    Solves   the problems of ``solve_linear_binary``; with an exact bias sum ya = 0, too, but for a rest that ``tol``
             bounds by what it means for the bias.
    Given    few enough features for a Cholesky factor of as many rows.
    Returns  results within 0 <= a <= C whatever ended the work; a bias is the last weight.
    See      solvers/linear/newton.py, cpp/core/solvers/linear/binary_newton.cpp.
    """
    seeds = [
        _core.NewtonStart(s.bias, None if s.weights is None else np.ascontiguousarray(s.weights), s.width)
        for s in starts
    ]
    statements = _statements(problems, [start.amounts for start in starts])
    result = _core.solve_newton_binary(
        _prepared(setting.X), statements, seeds, setting.to_core(), options.to_core(), FitMonitor(watch).for_core()
    )
    batch = _read_batch(result)
    del result  # see solver.run_core
    return batch


def _statements(problems: Sequence[BinaryProblem], starts: Sequence[FloatArray | None]) -> list[_core.BinaryStatement]:
    return [
        _core.BinaryStatement(problem.rows, problem.n_positive, problem.C, start)
        for problem, start in zip(problems, starts, strict=True)
    ]


def _read_batch(result: _core.LinearBatchResult) -> LinearBatch:
    parts = tuple(LinearBinaryResult(part.amounts, part.weights, _read(part.report)) for part in result.results)
    return LinearBatch(parts, result.error)


def weighted_gram(
    X: DataMatrix | _core.LinearData,
    rows: IntArray,
    weights: FloatArray,
    out: FloatArray,
    n_threads: int = 1,
) -> FloatArray:
    """Fill ``out`` (n_features, n_features) with sum_k weights[k] x_k x_k', x_k = X[rows[k]], and return it."""
    chosen, factors = np.ascontiguousarray(rows, dtype=np.int64), np.ascontiguousarray(weights, dtype=np.float64)
    _core.weighted_gram(_prepared(X), chosen, factors, out, n_threads)
    return out


def _prepared(X: DataMatrix | _core.LinearData) -> _core.LinearData:
    return X if isinstance(X, _core.LinearData) else linear_data(X)


_READ = ("passes", "seconds", "violation", "dual", "cost", "width", "n_support", "verified")
_REASONS = {reason.value: reason for reason in StopReason}


def _read(report: _core.LinearReport) -> LinearReport:
    values = {name: getattr(report, name) for name in _READ}
    return LinearReport(stop_reason=_REASONS[report.stop_reason.name], n_iter=report.iterations, **values)
