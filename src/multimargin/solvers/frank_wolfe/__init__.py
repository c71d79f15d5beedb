"""Frank-Wolfe on the dual problem, in NumPy and SciPy."""
