"""What a solve of a linear machine is given and returns: limits, starts, points, solutions."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import numpy as np

from multimargin._typing import FloatArray
from multimargin.solvers.certificate import Objectives
from multimargin.solvers.core import SolverState
from multimargin.solvers.report import SolverReport, StopReason

AUTO, NEWTON, DESCENT = "auto", "newton", "descent"


@dataclass(frozen=True)
class LinearLimits:
    """What ends a solve, and how it goes.

    ``tol`` bounds the KKT violation, ``max_iter`` the passes of a descent and Newton's steps (-1: no limit).
    """

    tol: float
    max_iter: int = -1
    max_time: float = float("inf")
    extra_tol: float = 0.0  # where tol is reached, go on towards this one for a while
    solver: str = AUTO


class Clock:
    """The time of a whole fit: what is spent since it was made, and what is left of a limit."""

    def __init__(self, max_time: float = float("inf")) -> None:
        self.began = time.perf_counter()
        self.max_time = max_time

    @property
    def spent(self) -> float:
        return time.perf_counter() - self.began

    @property
    def left(self) -> float:
        return self.max_time - self.spent


@dataclass(frozen=True, eq=False)
class LinearPoint:
    """A feasible point: dual variables with scores and bias, weights (n_features, n_classes), objectives."""

    state: SolverState
    weights: FloatArray
    numbers: Objectives


@dataclass(frozen=True, eq=False)
class LinearSolution:
    """The point that a solve returns, what it spent, and the exception that ended it, if one did."""

    point: LinearPoint
    report: SolverReport
    error: BaseException | None
    solver: str


@dataclass(frozen=True, eq=False)
class LinearSeed(SolverState):
    """A start from a near problem (another C, other rows) with its weights, which are near, too.

    ``coef`` is (n_classes, n_features), ``intercept`` (n_classes,).
    """

    coef: FloatArray = field(default_factory=lambda: np.zeros((0, 0)))
    intercept: FloatArray = field(default_factory=lambda: np.zeros(0))


@dataclass(frozen=True, eq=False)
class Presolved:
    """A binary problem as the core left it: dual variables in the order of its rows, an exact bias, why it ended."""

    amounts: FloatArray
    bias: FloatArray | None = None
    stop_reason: StopReason = StopReason.UNFINISHED
    passes: int = 0
    n_newton: int = 0
    seconds: float = 0.0
    width: float = 1.0

    @property
    def begun(self) -> bool:
        return self.stop_reason is not StopReason.UNFINISHED or self.passes > 0

    @property
    def state(self) -> SolverState:
        return SolverState(self.amounts[:, None], None, 2, self.bias)
