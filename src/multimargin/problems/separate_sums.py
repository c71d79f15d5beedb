"""Projection of dual variables onto signed sums of zero, for independent groups: an exact bias of binary problems.

Independent groups need no common system of multipliers: the projection of a group is one equation in one unknown.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from multimargin._typing import BoolArray, FloatArray, IntArray

# Sums up to this share of sum |beta| are rounding.
NEGLIGIBLE = 1e-13
# Sums up to this share are accepted as zero if rounding prevents further progress.
ACCEPTED = 1e-11
# Variables up to this share of C are set to zero, so that sums that only a = 0 balances become zero.
TINY = 1e-14
# Further projections remove what rounding leaves of a sum.
ROUNDS = 4
# Limit on Newton steps for a level, each of which ends at a variable's bound; beyond it the sums count as not balanced.
MOST_STEPS = 200


@dataclass(frozen=True, eq=False)
class Groups:
    """Variables of all groups one after the other: y = +1 or -1, step weights (C), and upper bounds.

    ``starts`` is where each group, none of which is empty, begins.
    """

    signs: FloatArray
    weight: FloatArray
    cap: FloatArray
    starts: IntArray

    @cached_property
    def sizes(self) -> IntArray:
        return np.diff(np.append(self.starts, len(self.signs)))

    def sums(self, values: FloatArray) -> FloatArray:
        return np.add.reduceat(values, self.starts)

    def spread(self, values: NDArray[np.generic]) -> np.ndarray:
        """Return for each variable what is given for its group."""
        return np.repeat(values, self.sizes)

    def part(self, wanted: BoolArray) -> Groups:
        """Return some of the groups."""
        each, sizes = self.spread(wanted), self.sizes[wanted]
        return Groups(self.signs[each], self.weight[each], self.cap[each], np.cumsum(sizes) - sizes)

    def trimmed(self, amounts: FloatArray) -> FloatArray:
        """Return the amounts with values that are rounding relative to C set to zero."""
        return np.where(amounts <= TINY * self.weight, 0.0, amounts)


def balance_groups(groups: Groups, amounts: FloatArray, movable: BoolArray) -> tuple[FloatArray, BoolArray]:
    r"""Return the nearest amounts within the bounds whose signed sums are zero, and which groups succeeded.

    Solves   min :math:`\frac12 \sum (a' - a)^2 / C` under the bounds and the sum of each group, over the movable ones.
    Given    amounts within the bounds.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        found = groups.trimmed(np.where(movable, np.clip(amounts, 0.0, groups.cap), amounts))
        left, mass = groups.sums(groups.signs * found), groups.sums(np.abs(found))
        for _ in range(ROUNDS):
            uneven = ~(np.abs(left) <= NEGLIGIBLE * mass)
            if not uneven.any():
                break
            part, each = (groups, slice(None)) if uneven.all() else (groups.part(uneven), groups.spread(uneven))
            moved = part.trimmed(_moved(part, found[each], movable[each], left[uneven]))
            found[each] = moved
            left[uneven], mass[uneven] = part.sums(part.signs * moved), part.sums(np.abs(moved))
        return found, np.asarray(np.abs(left) <= ACCEPTED * mass)


def _moved(groups: Groups, amounts: FloatArray, movable: BoolArray, left: FloatArray) -> FloatArray:
    """Move every movable variable in proportion to its C, down or up, so that the sum decreases."""
    need = groups.spread(np.abs(left))
    down = groups.signs * groups.spread(np.sign(left)) > 0
    # No variable moves by more than the whole sum, which keeps variables without an upper bound finite.
    room = np.minimum(np.where(down, amounts, groups.cap - amounts), need)
    room = np.where(movable & (need > 0.0), np.maximum(room, 0.0), 0.0)
    rate = np.where(room > 0.0, groups.weight, 0.0)
    steps = groups.spread(_levels(np.abs(left), rate, room, groups.sizes))
    change = np.where(rate > 0.0, np.minimum(rate * steps, room), 0.0)
    # A bound that is reached is met to the last bit.
    up = np.where(change >= groups.cap - amounts, groups.cap, amounts + change)
    return np.where(change > 0.0, np.where(down, amounts - change, up), amounts)


def _levels(target: FloatArray, rate: FloatArray, room: FloatArray, sizes: IntArray) -> FloatArray:
    """Return t with sum min(rate t, room) = target in each group, infinite where the total room is too small.

    The sum is concave in t, so Newton's steps from t = 0 never overshoot, and end when no further variable is full.
    """
    levels = np.zeros(len(target))
    groups = np.arange(len(target))  # those whose level still rises
    for _ in range(MOST_STEPS):
        level = levels[groups]
        starts = np.cumsum(sizes) - sizes
        full = rate * np.repeat(level, sizes) >= room
        slope = np.add.reduceat(np.where(full, 0.0, rate), starts)
        rest = target - np.add.reduceat(np.where(full, room, 0.0), starts)
        with np.errstate(divide="ignore"):
            wanted = np.where(slope > 0.0, rest / slope, np.where(rest > 0.0, np.inf, level))
        rises = wanted > level
        levels[groups[rises]] = wanted[rises]
        rises &= np.isfinite(wanted)
        if not rises.any():
            break
        if not rises.all():
            those = np.repeat(rises, sizes)
            groups, target, sizes, rate, room = groups[rises], target[rises], sizes[rises], rate[those], room[those]
    return levels
