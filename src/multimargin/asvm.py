"""ASVM (MM00), as the guide imports it."""

from multimargin.solvers.linear.asvm import solve_asvm

__all__ = ["solve_asvm"]
