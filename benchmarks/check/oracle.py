"""The optimum of a small dual problem by a general quadratic programming solver (clarabel), where that is installed."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from benchmarks.check.duals import Dual
from benchmarks.check.formulas import Array

try:
    import clarabel
except ImportError:  # it comes with the tests' requirements
    clarabel = None

MOST_VARIABLES = 60
PRECISIONS = (1e-11, 1e-10, 1e-9, 1e-8)  # where the numbers do not allow the first, clarabel gives up and says so
LARGEST_CURVATURE = 1e6  # C k(x, x): beyond, its answer has few digits


def best_dual(dual: Dual, K: Array, *, exact_bias: bool) -> tuple[float, float] | None:
    """Return the largest value of the dual and how far it may be off; None where the solver has no answer."""
    C = dual.C.astype(np.float64)
    size = float(C.max())
    if clarabel is None or size * float(np.abs(np.diag(K)).max()) > LARGEST_CURVATURE or size < 1e-6:
        return None
    B, examples = _coefficients_of_variables(dual)
    n, n_variables, d = len(C), len(examples), dual.table.targets.shape[1]
    targets = dual.table.targets[dual.table.present].astype(np.float64)
    blocks = B.reshape(n, d, n_variables)
    Q = np.einsum("icv,ij,jcw->vw", blocks, K.astype(np.float64), blocks, optimize=True)
    member = (examples == np.arange(n)[:, None]).astype(np.float64)
    each = member if dual.table.simplex else np.eye(n_variables)
    bound = C if dual.table.simplex else C[examples]
    if dual.squared:
        Q = Q + each.T @ (each / (2 * bound[:, None]))
        A, b = -np.eye(n_variables), np.zeros(n_variables)
    else:
        A, b = np.vstack([-np.eye(n_variables), each]), np.concatenate([np.zeros(n_variables), bound / size])
    n_equal = 0
    if exact_bias:  # rows that follow from others would make the system singular
        values, rows = np.linalg.svd(blocks.sum(axis=0), full_matrices=False)[1:]
        sums = rows[values > 1e-9 * values.max()]
        n_equal, A, b = len(sums), np.vstack([sums, A]), np.concatenate([np.zeros(len(sums)), b])
    for precision in PRECISIONS:
        x = _solve(size * Q, -targets, A, b, n_equal, precision)
        if x is not None:
            a = size * x
            value = float(targets @ a - a @ Q @ a / 2)
            return value, 1e3 * precision * (float(np.abs(targets) @ np.abs(a)) + abs(value) + size)
    return None


def _coefficients_of_variables(dual: Dual) -> tuple[Array, Array]:
    """Return the matrix of a -> beta, (n d, number of variables), and the example of each variable."""
    examples, columns = np.nonzero(dual.table.present)
    B = np.zeros((dual.table.targets.size, len(examples)))
    for variable, place in enumerate(zip(examples, columns, strict=True)):
        a = np.zeros(dual.table.targets.shape)
        a[place] = 1.0
        B[:, variable] = dual.table.coefficients(a).ravel()
    return B, examples


def _solve(P: Array, q: Array, A: Array, b: Array, n_equal: int, precision: float) -> Array | None:
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = precision
    cones = [clarabel.ZeroConeT(n_equal)] if n_equal else []
    cones.append(clarabel.NonnegativeConeT(len(b) - n_equal))
    program = clarabel.DefaultSolver(sparse.csc_matrix(np.triu(P)), q, sparse.csc_matrix(A), b, cones, settings)
    solution = program.solve()
    return np.maximum(np.array(solution.x), 0.0) if solution.status == clarabel.SolverStatus.Solved else None
