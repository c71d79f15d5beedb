"""Linear machines without kernel rows: dual coordinate descent on weights, by the C++ core. NumPy in, NumPy out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields

import numpy as np
from scipy import sparse

from multimargin import _core
from multimargin.kernels import SPARSE_SHARE
from multimargin.machines import FloatArray, IntArray
from multimargin.matrices import DataMatrix, is_sparse, tidy, to_core
from multimargin.problem import Bias, DualProblem, Loss
from multimargin.schemes import BinaryProblem
from multimargin.separability import refuse_if_inseparable
from multimargin.solver import Progress, SolverState, StopReason, check_start


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
        Multiply-adds for each problem, after which it ends as ``StopReason.UNFINISHED``.
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
    multiply-adds.
    """

    stop_reason: StopReason
    n_iter: int
    passes: int
    seconds: float
    violation: float
    dual: float
    cost: float
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


# Called about every 50 ms with the progress and a function that returns the current state; True stops.
LinearWatch = Callable[[Progress, Callable[[], SolverState]], bool]
# The same for a batch: the function returns the amounts of the problems that are done.
LinearBatchWatch = Callable[[Progress, Callable[[], list[FloatArray | None]]], bool]


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
    watch: LinearWatch | None = None,
    data: _core.LinearData | None = None,
) -> LinearResult:
    """Solve a problem with a linear kernel from ``start`` (or from zero).

    Solves   the dual of ``problem`` to a KKT violation of at most ``options.tol``.
    Given    a start that fits, made feasible first; ``data`` where ``linear_data`` of problem.data.X is at hand.
    Returns  a feasible result whatever ended the solve. Its offset is that of ``problem.trained_kernel``.
    See      HCLKS08, KSCHL08, cpp/core/linear_descent.cpp.
    """
    if problem.kernel.name != "linear":
        raise ValueError(
            f"The kernel is {problem.kernel.name!r}; weights by feature need 'linear', else use solver.solve."
        )
    if problem.bias is Bias.EXACT:
        raise ValueError(
            "The exact bias adds constraints that this solver does not know; use none or a regularised one."
        )
    check_start(problem, start)
    if np.isinf(problem.data.C).any():
        refuse_if_inseparable(problem)
    statement = _core.LinearStatement(
        problem.to_core(),
        getattr(_core.Loss, problem.loss.value),
        problem.data.rows,
        problem.data.y,
        problem.data.C,
        problem.trained_kernel.offset,
    )
    result = _core.solve_linear(
        linear_data(problem.data.X) if data is None else data,
        statement,
        options.to_core(),
        None if start is None else np.ascontiguousarray(start.amounts),
        None if watch is None else _adapt(watch, problem.n_classes),
    )
    found = LinearResult(result.amounts, result.weights, _read(result.report), result.error)
    del result  # see solver.run_core
    return found


@dataclass(frozen=True, eq=False)
class BinarySetting:
    """What binary problems have in common: the rows, how a margin is charged, and the kernel x'z + offset."""

    X: DataMatrix | _core.LinearData
    loss: Loss = Loss.HINGE
    offset: float = 0.0


def solve_linear_binary(
    setting: BinarySetting,
    problems: Sequence[BinaryProblem],
    options: LinearOptions,
    starts: Sequence[FloatArray] | None = None,
    watch: LinearBatchWatch | None = None,
) -> LinearBatch:
    """Solve binary problems over the same rows, spread over the threads.

    Solves   max sum a - 1/2 (ya)'K(ya) under 0 <= a <= C with K = XX' + offset, each to a largest projected gradient of
             at most ``options.tol``.
    Given    starts that fit the problems; they are made feasible first.
    Returns  feasible results whatever ended the work; those not begun are at their starts.
    See      HCLKS08 Algorithm 3, cpp/core/binary_linear.cpp.
    """
    given: Sequence[FloatArray | None] = [None] * len(problems) if starts is None else starts
    statements = [
        _core.BinaryStatement(problem.rows, problem.n_positive, problem.C, start)
        for problem, start in zip(problems, given, strict=True)
    ]
    result = _core.solve_linear_binary(
        _prepared(setting.X),
        statements,
        getattr(_core.Loss, setting.loss.value),
        setting.offset,
        options.to_core(),
        None if watch is None else _adapt_batch(watch),
    )
    parts = tuple(LinearBinaryResult(part.amounts, part.weights, _read(part.report)) for part in result.results)
    error = result.error
    del result  # see solver.run_core
    return LinearBatch(parts, error)


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


def _read(report: _core.LinearReport) -> LinearReport:
    values = {entry.name: getattr(report, entry.name) for entry in fields(LinearReport) if hasattr(report, entry.name)}
    values |= {"stop_reason": StopReason(report.stop_reason.name), "n_iter": report.iterations}
    return LinearReport(**values)


def _moment(progress: _core.Progress) -> Progress:
    return Progress(**{entry.name: getattr(progress, entry.name) for entry in fields(Progress)})


def _adapt(watch: LinearWatch, n_classes: int) -> Callable[[_core.Progress, Callable[[], FloatArray]], bool]:
    def adapted(progress: _core.Progress, snapshot: Callable[[], FloatArray]) -> bool:
        return bool(watch(_moment(progress), lambda: SolverState(snapshot(), None, n_classes)))

    return adapted


def _adapt_batch(
    watch: LinearBatchWatch,
) -> Callable[[_core.Progress, Callable[[], list[FloatArray | None]]], bool]:
    def adapted(progress: _core.Progress, snapshot: Callable[[], list[FloatArray | None]]) -> bool:
        return bool(watch(_moment(progress), snapshot))

    return adapted
