"""Decomposition for linear kernels in plain NumPy."""

from multimargin.solvers.reference.linear import LinearDual, linear_decomposition

__all__ = ["LinearDual", "linear_decomposition"]
