"""Dual variables from public coefficients, and their violations, in extended precision."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks.check.formulas import EPSILON, WITH_A_FREE_SHIFT, Array, Extended, Table

AT_BOUND = 1e-12  # of C: what the documentation counts as at a bound
SEARCH_STEPS = 80  # of a search that keeps two thirds: far below rounding


@dataclass(frozen=True)
class Dual:
    """A dual problem without its kernel: margins, bounds, loss."""

    table: Table
    C: Array  # (n,)
    squared: bool

    @property
    def cap(self) -> Array:
        return np.full_like(self.C, np.inf) if self.squared else self.C

    def used(self, a: Array) -> Array:
        """The penalty of the squared hinge: on each variable, or on their sum."""
        return a.sum(axis=1, keepdims=True) if self.table.simplex else a

    def objective(self, a: Array, beta: Array, scores: Array) -> Extended:
        """Return sum t a - 1/2 sum beta F - penalty."""
        value = np.sum(self.table.targets * a) - np.sum(beta * scores) / 2
        if self.squared:
            value -= np.sum(self.used(a) ** 2 / (4 * self.C[:, None]))
        return Extended(value)

    def primal(self, beta: Array, scores: Array, f: Array) -> Extended:
        """Return 1/2 sum beta F + sum C loss(t - m(f)); f has the bias, F has not."""
        shortfall = np.where(self.table.present, self.table.targets - self.table.margins(f), 0)
        slack = np.maximum(shortfall, 0)
        if self.table.simplex:
            slack = slack.max(axis=1, keepdims=True)
        charge = slack * slack if self.squared else slack
        return Extended(np.sum(beta * scores) / 2 + np.sum(self.C[:, None] * charge))

    def gradient(self, a: Array, f: Array) -> Array:
        g = self.table.targets - self.table.margins(f)
        if self.squared:
            g = g - self.used(a) / (2 * self.C[:, None])
        return np.where(self.table.present, g, 0)

    def violations(self, a: Array, f: Array) -> Array:
        """Return the KKT violation of each example (n,)."""
        g, present = self.gradient(a, f), self.table.present
        near = (AT_BOUND * self.C + 8 * EPSILON * np.abs(a).sum(axis=1))[:, None]
        held = present & (a > near)
        if not self.table.simplex:
            rises = present & (self.squared | (a < self.cap[:, None] - near))
            rise = np.where(rises, g, 0).max(axis=1, initial=0)
            return np.asarray(np.maximum(rise, -np.where(held, g, 0).min(axis=1, initial=0)))
        slack = self.squared | (self.C - a.sum(axis=1) > near[:, 0])  # a component of gradient 0
        top = np.maximum(np.where(present, g, -np.inf).max(axis=1), 0)
        low = np.where(held, g, np.inf).min(axis=1)
        low = np.where(slack, np.minimum(low, 0), low)
        return np.asarray(np.where(np.isfinite(low), top - low, 0))

    def outside(self, a: Array) -> float:
        """The distance of a from its bounds, as a share of C (squared hinge: of the example's largest variable)."""
        size = np.abs(a).max(axis=1, initial=0) if self.squared else self.C
        below = -np.where(self.table.present, a, 0).min(axis=1)
        above = (self.used(a) - self.cap[:, None]).max(axis=1)
        return float(np.max(np.maximum(below, above) / np.maximum(size, np.finfo(Extended).tiny), initial=0))


def recover(dual: Dual, beta: Array, f: Array) -> tuple[Array, Array]:
    """Return (a with the largest dual, a with the smallest violation) among those that give these coefficients."""
    table, own = dual.table, dual.table.own()
    d = beta.shape[1]
    if table.machine in WITH_A_FREE_SHIFT:
        return _along_the_shift(dual, beta, f)
    if table.relative:
        a = -beta
    elif table.machine in ("llw", "adm"):
        a = np.take_along_axis(beta, table.y[:, None], axis=1) - beta
    elif table.machine == "mmr":
        a = beta * Extended(d) / (d - 1)
    else:  # ova
        a = np.where(own, beta, -beta)
    a = np.where(table.present, a, 0)
    return a, a


def _along_the_shift(dual: Dual, beta: Array, f: Array) -> tuple[Array, Array]:
    """Raw coefficients are beta + m: a_y = beta_y + m, a_p = -(beta_p + m), for any m that keeps the bounds."""
    own, d, C = dual.table.own(), beta.shape[1], dual.C
    beta_own = np.where(own, beta, 0).sum(axis=1)
    others = np.where(own, -np.inf, beta)
    total = 2 * beta_own - beta.sum(axis=1)  # the sum of a at m = 0
    lowest, highest = -beta_own, -others.max(axis=1)
    if not dual.squared and dual.table.simplex and d > 2:
        lowest = np.maximum(lowest, (total - C) / (d - 2))
    if not dual.squared and not dual.table.simplex:
        lowest = np.maximum(lowest, -C - np.where(own, np.inf, beta).min(axis=1))
        highest = np.minimum(highest, C - beta_own)
    highest = np.maximum(lowest, highest)  # rounding may cross them

    def at(m: Array) -> Array:
        raw = beta + m[:, None]
        return np.where(own, raw, -raw)

    slope = np.where(own, dual.table.targets, -dual.table.targets).sum(axis=1)
    if not dual.squared:
        best = np.where(slope < 0, lowest, highest)
    elif dual.table.simplex:
        best = np.clip((total - 2 * C) / max(d - 2, 1), lowest, highest)
    else:
        best = np.clip(2 * C * slope / d, lowest, highest)
    left, right = lowest.copy(), highest.copy()
    for _ in range(SEARCH_STEPS if dual.squared else 0):  # the violation is convex between the ends
        third = (right - left) / 3
        lower = dual.violations(at(left + third), f) <= dual.violations(at(right - third), f)
        left, right = np.where(lower, left, left + third), np.where(lower, right - third, right)
    candidates = np.stack([best, lowest, highest, (left + right) / 2])
    found = np.stack([dual.violations(at(m), f) for m in candidates])
    least = np.take_along_axis(candidates, found.argmin(axis=0)[None], axis=0)[0]
    return at(best), at(least)
