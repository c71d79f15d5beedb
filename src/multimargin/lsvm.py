"""LSVM (MM01), as the guide imports it."""

from multimargin.solvers.linear.lsvm import solve_lsvm

__all__ = ["solve_lsvm"]
