"""A proximal point method on all dual variables, with a semismooth Newton method in the features of the kernel inside.

Let K = G G' + R with R at most delta. From a point b_k with scores F_k = K b_k Pi known exactly, the next one solves

    max_b  <T - F_k, b - b_k> - |G' (b - b_k) Pi|^2 / 2 - delta |b - b_k|^2 / 2,    b_i in its set,

the proximal point method with the metric delta I - R: what G G' leaves out is in F_k. Its dual has one unknown for
each feature and class: W = G' (b(W) - b_k) Pi, with b(W) the projection of b_k + (T - F_k - G W) / delta on the sets.
Newton's method solves it in a few steps. The systems of all classes have matrices G' D_c G + delta I, D_c the 0/1
diagonal of class c's free variables; from one step to the next only those of variables that came or went are added.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from multimargin._typing import FloatArray
from multimargin.solvers.splitting.inverse import small_inverse
from multimargin.solvers.splitting.sets import ExampleSets, centred

MOST_STEPS = 40  # of Newton's method, in one inner problem
INNER_SHARE = 0.1  # of the distance that b goes, to which an inner problem is solved
# Damping by a share of G' G, the matrix if all variables were free: a bound on changes of scores.
LEAST_DAMPING, MOST_DAMPING = 1e-6, 1.0
SHORT, LONG = 0.1, 0.5
CG_STEPS, CG_SHARE = 50, 0.1


@dataclass(eq=False)
class Grams:
    """G' D_c G for each class, kept up to date with the free variables."""

    G: FloatArray
    whole: FloatArray
    free: np.ndarray
    blocks: FloatArray

    @classmethod
    def of(cls, G: FloatArray, n_classes: int) -> Grams:
        r = G.shape[1]
        return cls(G, G.T @ G, np.zeros((len(G), n_classes), dtype=bool), np.zeros((n_classes, r, r)))

    def update(self, free: np.ndarray, poll: Callable[[], None]) -> None:
        for c in range(free.shape[1]):
            poll()
            now, before = free[:, c], self.free[:, c]
            changed, n_free = int((now != before).sum()), int(now.sum())
            if changed == 0:
                continue
            if changed <= min(n_free, len(now) - n_free):
                self.blocks[c] += self._of(now & ~before) - self._of(before & ~now)
            elif n_free <= len(now) - n_free:
                self.blocks[c] = self._of(now)
            else:
                self.blocks[c] = self.whole - self._of(~now)
        self.free = free

    def _of(self, rows: np.ndarray) -> FloatArray:
        part = self.G[rows]
        return np.asarray(part.T @ part)


class ClassSystems:
    """(Pi (x) .) (S + delta) on features with sums of zero over classes: factors of all classes, and of their sum."""

    def __init__(self, grams: Grams, delta: float, damping: float, poll: Callable[[], None]) -> None:
        d, r = grams.blocks.shape[:2]
        self.inverses = np.empty((d, r, r))
        for c in range(d):
            poll()
            self.inverses[c] = _inverse(grams.blocks[c] + damping * grams.whole if damping else grams.blocks[c], delta)
        self.joint = _inverse(self.inverses.sum(axis=0), 0.0)

    def solve(self, right: FloatArray) -> FloatArray:
        """Return D with (S_c + delta) D_c - m = right_c and sum_c D_c = 0; right (rank, n_classes)."""
        first = np.matmul(self.inverses, right.T[:, :, None])[:, :, 0]
        m = -self.joint @ first.sum(axis=0)
        found = first + self.inverses @ m
        return np.ascontiguousarray((found - found.mean(axis=0)).T)


def _inverse(matrix: FloatArray, extra: float) -> FloatArray:
    """Return (matrix + extra)^-1; rounding is answered by a larger diagonal."""
    diagonal = np.diag_indices(len(matrix))
    largest = float(np.abs(matrix[diagonal]).max(initial=0.0))
    for _ in range(20):
        shifted = np.array(matrix, order="F")
        shifted[diagonal] += extra
        found = small_inverse(shifted)
        if found is not None:
            return found
        extra = max(10 * extra, 1e-15 * largest)
    raise ArithmeticError("A matrix of the features is not finite.")


class ProximalNewton:
    """Inner problems, one after the other, from a point b with exact scores.

    ``begin`` is called before each Newton step, ``poll`` often within; both may end all by an exception.
    """

    def __init__(self, sets: ExampleSets, G: FloatArray, begin: Callable[[], None], poll: Callable[[], None]) -> None:
        self.sets, self.G, self.begin, self.poll = sets, G, begin, poll
        self.grams = Grams.of(G, sets.problem.n_classes)
        self.n_steps = 0
        self.damping = 0.0

    def step(self, b: FloatArray, scores: FloatArray, delta: float) -> tuple[FloatArray, bool]:
        """Return the next point, and whether it solves the inner problem."""
        sets, G = self.sets, self.G
        start = b + (sets.linear - scores) / delta
        W = np.zeros((G.shape[1], b.shape[1]))
        GW = np.zeros_like(b)
        point = sets.project(start)
        for _ in range(MOST_STEPS):
            rest = W - G.T @ centred(point - b)
            if float(np.vdot(rest, rest)) <= INNER_SHARE**2 * delta * float(np.vdot(point - b, point - b)):
                return point, True
            self.begin()
            self.n_steps += 1
            direction = self._direction(point, rest, delta)
            change = G @ direction
            length = self._length(start, b, (W, GW), (direction, change), delta)
            W += length * direction
            GW += length * change
            point = sets.project(start - GW / delta)
            if length == 0.0:  # as far as rounding lets it come
                return point, True
            self._adapt_damping(length)
        return point, False

    def _adapt_damping(self, length: float) -> None:
        """More of it after a step that had to be cut short, less after one that had not."""
        if length < SHORT:
            self.damping = min(MOST_DAMPING, max(LEAST_DAMPING, 10 * self.damping))
        elif length > LONG:
            self.damping = 0.25 * self.damping if self.damping > LEAST_DAMPING else 0.0

    def _direction(self, point: FloatArray, rest: FloatArray, delta: float) -> FloatArray:
        sets = self.sets
        free = point != 0 if sets.simplex else (point > sets.low) & (point < sets.high)
        self.grams.update(free, self.poll)
        systems = ClassSystems(self.grams, delta, self.damping, self.poll)
        if not sets.simplex:
            return systems.solve(-delta * rest)
        return self._by_conjugate_gradients(systems, point, free, -delta * rest, delta)

    def _by_conjugate_gradients(
        self, systems: ClassSystems, point: FloatArray, free: np.ndarray, right: FloatArray, delta: float
    ) -> FloatArray:
        """A simplex that is met couples its free variables; the systems without that are the preconditioner."""
        sets, G = self.sets, self.G
        sign = sets.sign * free
        met = np.abs(point).sum(axis=1) >= sets.cap[:, 0] * (1 - 1e-12)
        count = np.maximum(free.sum(axis=1), 1)
        share = np.where(met, 1.0 / count, 0.0)[:, None]

        def product(D: FloatArray) -> FloatArray:
            moved = np.where(free, G @ D, 0.0)
            moved -= share * (moved * sign).sum(axis=1, keepdims=True) * sign
            return delta * D + G.T @ centred(moved)

        found = np.zeros_like(right)
        left = right.copy()
        z = systems.solve(left)
        p, size = z, float(np.vdot(left, z))
        first = size
        for _ in range(CG_STEPS):
            image = product(p)
            length = size / float(np.vdot(p, image))
            found += length * p
            left -= length * image
            z = systems.solve(left)
            new = float(np.vdot(left, z))
            if new <= CG_SHARE**2 * first:
                break
            p = z + (new / size) * p
            size = new
        return found

    def _length(
        self,
        start: FloatArray,
        b: FloatArray,
        at: tuple[FloatArray, FloatArray],
        along: tuple[FloatArray, FloatArray],
        delta: float,
    ) -> float:
        """Return how far to go: where the slope of the convex function of W vanishes, or the whole way."""
        W, GW = at
        direction, change = along
        wanted = centred(change)
        linear, square = float(np.vdot(W, direction)), float(np.vdot(direction, direction))

        def slope(t: float) -> float:
            moved = self.sets.project(start - (GW + t * change) / delta) - b
            return linear + t * square - float(np.vdot(moved, wanted))

        at_zero, at_one = slope(0.0), slope(1.0)
        if not at_zero < 0.0:
            return 0.0
        if at_one <= 0.1 * abs(at_zero):
            return 1.0
        low, high, f_low, f_high = 0.0, 1.0, at_zero, at_one
        for _ in range(12):
            t = low - f_low * (high - low) / (f_high - f_low)
            t = min(max(t, low + 0.05 * (high - low)), high - 0.05 * (high - low))
            value = slope(t)
            if abs(value) <= 0.1 * abs(at_zero):
                return t
            low, high, f_low, f_high = (t, high, value, f_high) if value < 0 else (low, t, f_low, value)
        return low if low > 0.0 else high
