"""One step of the proximal point method on an exact (unregularised) bias, whatever solves the problem inside.

The bias adds sum_i beta_ic = 0 for every class to the dual (WWDOC Problem 2), which steps on one example or on a pair
of variables cannot keep. But V(b) = min_w of the primal is convex with dV/db_c = -sum_i beta_ic, and a step
min_b V(b) + |b - b_k|^2 / (2 rho) is the machine with a regularised bias: the kernel k + rho and the targets
t - m(b_k), after which b_{k+1} = b_k + rho sum_i beta_i.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from multimargin._typing import FloatArray
from multimargin.problems.problem import Bias, DualProblem

# rho in units of the kernel's diagonal. Larger ones need fewer rounds, but make each slower (satimage, ww: 0.19 s for
# the first at 0.3, 0.47 s at 10, 2.7 s at 100); the sums fall by 3 to 10 in a round even at 0.3, and rho grows where
# they do not.
FIRST_RHO = 0.5
# A round that leaves more than these shares of the sums multiplies rho by these factors.
SLOW = ((0.5, 10.0), (0.2, 3.0))
# Rounds begin at this share of the largest target and go down by this factor: b is not known better before.
FIRST_TOL = 0.05
TOL_FACTOR = 0.1


class BiasStep:
    """The inner problem of a step and the bias after it."""

    def __init__(self, problem: DualProblem) -> None:
        self.problem = problem
        table = problem.machine.table(problem.n_classes)
        # Then only differences of scores count, and the biases sum to zero but for rounding.
        self.centred = problem.machine.sum_to_zero or not table.margins(np.ones(problem.n_classes)).any()

    def inner_problem(self, bias: FloatArray, rho: float) -> DualProblem:
        """Return the machine with a regularised bias about the last one."""
        kernel = self.problem.kernel.with_offset(rho)
        return replace(self.problem, bias=Bias.NONE, kernel=kernel, given_bias=bias, given_store=None)

    def next_bias(self, bias: FloatArray, rho: float, sums: FloatArray) -> FloatArray:
        """Return b after the inner problem was solved, by the sums of its coefficients."""
        return self.centre(bias + rho * sums)

    def centre(self, bias: FloatArray) -> FloatArray:
        return bias - bias.mean() if self.centred else bias


def growth_of_rho(size: float, size_before: float) -> float:
    """Return the factor on rho after a round, by the largest sums that it and the one before left."""
    return next((factor for share, factor in SLOW if size > share * size_before), 1.0)
