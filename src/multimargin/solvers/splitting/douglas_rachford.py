"""Douglas-Rachford splitting: in turn the sets of the examples and the quadratic, each without the other.

With H = K (x) Pi the dual is min_b b'Hb / 2 - T'b over the sets. From a point x,

    z = projection of x on the sets,   A = (H + rho)^-1 (T + rho (2 z - x)),   x <- x + A - z,

which ends where z = A is optimal. One factor of K + rho serves all classes. Two things make that fast: Anderson
acceleration of x, and rho kept where changes of A and of z are of one size. A is computed as a difference from a point
z_0 with exact scores, so that neither float32 nor features in place of K move the point where it ends.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from multimargin._typing import FloatArray
from multimargin.solvers.splitting.anderson import Anderson
from multimargin.solvers.splitting.products import KernelProducts
from multimargin.solvers.splitting.resolvents import Features, WholeKernel
from multimargin.solvers.splitting.sets import ExampleSets

CHECK_EVERY = 10  # iterations from one point with known scores to the next
MEMORY = 10
# rho changes by the square root of the ratio of relative residuals, when that is beyond so much and it stood as long.
UNBALANCED, LEAST_STAY = 3.0, 20
MOST_CHANGE = 10.0
SCORES_SHARE = 0.05  # of the violation aimed at: what a change of scores may err by
FIRST_SHARE = 2.0  # rho takes a variable from 0 to C when its margin is short by so many targets


class DouglasRachford:
    """The iteration, from b with its scores; ``b``, ``scores``, ``violation`` are those of the last check."""

    def __init__(
        self,
        sets: ExampleSets,
        products: KernelProducts,
        resolvent: WholeKernel | Features,
        at: tuple[FloatArray, FloatArray],
        rho: float | None = None,
    ) -> None:
        self.sets, self.products, self.resolvent = sets, products, resolvent
        self.b, self.scores = at
        self.violation = sets.violation(*at)
        self.n_steps = 0
        self.anderson = Anderson(self.b.size, MEMORY)
        target = float(np.abs(sets.linear).max())
        self.rho = FIRST_SHARE * target / float(sets.cap.max()) if rho is None else rho
        self.x = self.b + (sets.linear - self.scores) / self.rho

    def run(self, tol: float, most_steps: int, goes_on: Callable[[], bool]) -> bool:
        """Iterate until the violation is within tol; False when something else ends it."""
        sets, stayed = self.sets, 0
        if not self.resolvent.prepare(self.rho):
            return False
        z = sets.project(self.x)
        for _ in range(most_steps):
            if not goes_on():
                return False
            self.n_steps += 1
            stayed += 1
            step, point = self._residual(z)
            if self.n_steps % CHECK_EVERY == 0:
                if self._check(z, tol):
                    return True
                if stayed >= LEAST_STAY and (factor := self._balance(z, point, step)) != 1.0:
                    if not self._change_rho(z, factor):
                        return False
                    stayed = 0
                    continue
            self.x = self.anderson.next(self.x, step)
            z = sets.project(self.x)
        return False

    def _residual(self, z: FloatArray) -> tuple[FloatArray, FloatArray]:
        """A - z, and A."""
        right = (self.sets.linear - self.scores) + self.rho * (2 * z - self.x - self.b)
        mean = right.mean(axis=1, keepdims=True)
        point = self.b + mean / self.rho + self.resolvent.solve(right - mean)
        return point - z, point

    def _check(self, z: FloatArray, tol: float) -> bool:
        error = SCORES_SHARE * max(tol, 0.1 * self.violation)
        self.scores = self.products.scores_after(z - self.b, z, self.scores, error)
        self.b = z
        self.violation = self.sets.violation(z, self.scores)
        if self.violation > tol or self.products.drift == 0.0:
            return self.violation <= tol
        self.scores = self.products.scores(z)
        self.violation = self.sets.violation(z, self.scores)
        return self.violation <= tol

    def _balance(self, z: FloatArray, point: FloatArray, step: FloatArray) -> float:
        """The factor of rho that makes relative primal and dual residuals alike, 1 where they are."""
        following = self.sets.project(self.x + step)
        norm = np.linalg.norm
        primal = norm(point - following) / max(float(norm(point)), float(norm(z)), 1e-300)
        dual = norm(following - z) / max(float(norm(self.x - z)), 1e-300)
        if not (primal > 0 and dual > 0):
            return 1.0
        ratio = float(primal / dual)
        if 1 / UNBALANCED <= ratio <= UNBALANCED:
            return 1.0
        return float(min(MOST_CHANGE, max(1 / MOST_CHANGE, ratio**0.5)))

    def _change_rho(self, z: FloatArray, factor: float) -> bool:
        self.x = z + (self.x - z) / factor
        self.rho *= factor
        self.anderson.reset()
        return self.resolvent.prepare(self.rho)
