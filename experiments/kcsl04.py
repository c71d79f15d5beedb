"""Shared by KCSL04's tables: its binary data sets, and paths along C with and without alpha seeding.

Pairs of variables, exact bias, C = 2^-8, 2^-7.5, ..., 2^8. Each problem starts from a C_new / C_old (seeded) or from
zero.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from experiments import data
from experiments.frame import Cells, Experiment, Report, Settings, Task
from multimargin._typing import FloatArray
from multimargin.kernels.spec import KernelSpec
from multimargin.kernels.store import KernelStore
from multimargin.problems.problem import Loss
from multimargin.problems.schemes import BinaryProblem
from multimargin.solvers.binary import signs, solve_batch
from multimargin.solvers.options import SolverChoice, SolverOptions
from multimargin.solvers.reference.linear import LinearDual, linear_decomposition
from multimargin.solvers.report import StopReason

TOL = 1e-3
# The core stops its pairs a little below the tol it is given, for the float64 check that follows (`aim` in
# cpp/core/solvers/binary/solve.cpp). LIBSVM stops at tol; the difference alone doubles german's seeded total.
AIM = 0.9
SMALL = ("heart", "australian", "diabetes", "german")
LARGE = ("adult", "web", "ijcnn1")
QUICK = "breast_cancer"
GRID = tuple(-8.0 + 0.5 * k for k in range(33))  # log2 C
QUICK_GRID = tuple(-4.0 + 0.5 * k for k in range(17))
ORDERS = {"first": SolverChoice.MOST_VIOLATING_PAIR, "second": SolverChoice.MAXIMUM_GAIN}

Data = tuple[FloatArray, np.ndarray]
LINEAR = KernelSpec("linear")


@dataclass(frozen=True)
class Solved:
    """One problem of a path."""

    iterations: int
    norm: float  # w'w
    n_free: int
    violation: float
    done: bool


@dataclass(frozen=True)
class Path:
    """The problems along C that were solved within the limit."""

    n_asked: int
    solved: tuple[Solved, ...]
    seconds: float = 0.0

    @classmethod
    def of_cell(cls, cell: dict[str, Any]) -> Path:
        return cls(cell["n_asked"], tuple(Solved(**each) for each in cell["solved"]), cell["seconds"])

    def to_cell(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def done(self) -> bool:
        return len(self.solved) == self.n_asked and all(each.done for each in self.solved)

    @property
    def total(self) -> int:
        return sum(each.iterations for each in self.solved)

    def text(self) -> str:
        return f"{'' if self.done else '> '}{self.total:,}"

    def text_of(self, position: int) -> str:
        """The iterations of one problem, counted from the end of a path that was done."""
        return f"{self.solved[position].iterations:,}" if self.done else "-"


def on_its_sets(
    name: str, title: str, plan: Callable[[Settings], list[Task]], report: Callable[[Cells, Settings], Report]
) -> Experiment:
    """Return an experiment on KCSL04's binary data sets."""
    return Experiment(name, title, sets=SMALL, more_sets=LARGE, quick_sets=(QUICK,), plan=plan, report=report)


def load(name: str) -> Data:
    """Return X and y in {-1, 1}, the first row's class as 1, as in LIBSVM."""
    found = data.load(name, quick=name == QUICK)
    return np.ascontiguousarray(found.X), np.where(found.y == found.y[0], 1, -1)


def rbf_of(X: FloatArray) -> KernelSpec:
    """Return the rbf kernel of KCSL04's comparisons, 1/(2 sigma^2) = 1/n."""
    return KernelSpec("rbf", gamma=1.0 / X.shape[1])


def seed(amounts: FloatArray, C_old: float, C_new: float) -> FloatArray:
    """Return a C_new / C_old: KCSL04 section 3. Variables at the bound stay exactly there."""
    return np.where(amounts == C_old, C_new, amounts * (C_new / C_old))


def solve_path(  # noqa: PLR0913 - what a path needs
    rows: Data,
    grid: Sequence[float],
    options: SolverOptions,
    *,
    seeded: bool,
    limit: float,
    kernel: KernelSpec = LINEAR,
    tol_of: Callable[[float], float] | None = None,
) -> Iterator[tuple[Solved, FloatArray]]:
    """Yield the problems along C with their amounts, until the limit ends one of them; ``tol_of`` gives tol by C."""
    X, y = rows
    positive, negative = np.flatnonzero(y > 0), np.flatnonzero(y < 0)
    order = np.concatenate([positive, negative])
    store = KernelStore(X, kernel)
    began = time.perf_counter()
    last: tuple[FloatArray, float] | None = None
    for exponent in grid:
        C = 2.0**exponent
        problem = BinaryProblem(positive, negative, order, np.full(len(order), C))
        start = None if last is None or not seeded else [seed(last[0], last[1], C)]
        left = max(0.0, limit - (time.perf_counter() - began))
        tol = options.tol if tol_of is None else tol_of(C)
        now = SolverOptions(**{**vars(options), "max_time": left, "tol": tol})
        batch = solve_batch(store, [problem], Loss.HINGE, now, starts=start)
        if batch.error is not None:
            raise batch.error
        (found,) = batch.solutions
        a, report = found.amounts, found.report
        done = report.stop_reason is StopReason.CONVERGED
        n_free = int(np.count_nonzero((a > 0) & (a < C)))
        norm = 2 * (float(a.sum()) - report.dual)  # dual = sum a - w'w / 2
        if kernel is LINEAR:
            w = (signs(problem) * a) @ X[order]
            norm = float(w @ w)
        yield Solved(report.n_iter, norm, n_free, report.violation, done), a
        if not done:
            return
        last = a, C


def as_path(solved: Callable[[], Iterator[tuple[Solved, FloatArray]]], n_asked: int) -> Path:
    """Run a path to its end."""
    began = time.perf_counter()
    found = tuple(each for each, _ in solved())
    return Path(n_asked, found, time.perf_counter() - began)


def by_working_sets(rows: Data, grid: Sequence[float], q: int, limit: float) -> Path:
    """The seeded path by the reference with working sets of q; its limit is checked between problems."""
    X, y = rows
    began, solved = time.perf_counter(), []
    last: tuple[FloatArray, float] | None = None
    for exponent in grid:
        C = 2.0**exponent
        start = None if last is None else seed(last[0], last[1], C)
        found = linear_decomposition(LinearDual.of(X, y, C), q=q, tol=TOL, start=start)
        w = (y * found.amounts) @ X
        n_free = int(np.count_nonzero((found.amounts > 0) & (found.amounts < C)))
        solved.append(Solved(found.n_steps, float(w @ w), n_free, -1.0, found.converged))
        last = found.amounts, C
        if time.perf_counter() - began > limit:
            break
    return Path(len(grid), tuple(solved), time.perf_counter() - began)
