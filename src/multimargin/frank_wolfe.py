"""Frank-Wolfe on the dual problem, as the guide calls it."""

from multimargin.solvers.frank_wolfe.driver import FrankWolfeOptions, solve

__all__ = ["FrankWolfeOptions", "solve"]
