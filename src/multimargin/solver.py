"""Options and results of the solvers, as the guide imports them."""

from multimargin.solvers.core import Solution, SolverState
from multimargin.solvers.options import Precision, SolverChoice, SolverOptions
from multimargin.solvers.report import Progress, SolverReport, StopReason

__all__ = [
    "Precision",
    "Progress",
    "Solution",
    "SolverChoice",
    "SolverOptions",
    "SolverReport",
    "SolverState",
    "StopReason",
]
