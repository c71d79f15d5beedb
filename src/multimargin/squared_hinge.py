"""The linear machine with the squared hinge."""

from multimargin.solvers.linear.squared_hinge import LinearSolution, SquaredHinge

__all__ = ["LinearSolution", "SquaredHinge"]
