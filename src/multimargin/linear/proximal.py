"""The proximal step on the dual variables: what the multiplier method asks of each example.

Solves   max_a (t - m(f))' a - charge(a) - |a - a_k|^2 / (2 sigma_i) within the bounds, for all examples at once.
Given    v = a_k + sigma (t - m(f)).
Returns  a, and what its derivative needs: which variables are free, and how their sum is held.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from multimargin.linear.task import LinearTask
from multimargin.machines import FloatArray
from multimargin.problem import Loss


@dataclass(frozen=True, eq=False)
class Proximal:
    """a; and da = sigma (diag(slope) - share slope slope') d(gradient) within each example, slope 0 where a is held."""

    amounts: FloatArray
    slope: FloatArray  # (n_examples, n_components)
    share: FloatArray | None  # (n_examples,)


def step(task: LinearTask, v: FloatArray, sigma: FloatArray) -> FloatArray:
    """Return a alone."""
    if not task.simplex:
        a = np.maximum(v, 0.0)
        if task.loss is Loss.HINGE:
            return np.minimum(a, task.C[:, None], out=a)
        a *= (1.0 / (1.0 + sigma / (2 * task.C)))[:, None]
        return a
    return np.maximum(v - _level(task, v, sigma)[:, None], 0.0)


def step_with_slope(task: LinearTask, v: FloatArray, sigma: FloatArray) -> Proximal:
    """Return a with its derivative."""
    a = step(task, v, sigma)
    free = a > 0.0
    if not task.simplex:
        if task.loss is Loss.HINGE:
            return Proximal(a, (free & (a < task.C[:, None])).astype(np.float64), None)
        return Proximal(a, free / (1.0 + sigma / (2 * task.C))[:, None], None)
    count = free.sum(axis=1)
    if task.loss is Loss.HINGE:
        full = a.sum(axis=1) >= task.C * (1 - 1e-12)
        share = np.where(full & (count > 0), 1.0 / np.maximum(count, 1), 0.0)
        free &= ~(full & (count == 1))[:, None]  # all of C on one component, which has nothing to move against
    else:
        ratio = sigma / (2 * task.C)
        share = ratio / (1.0 + count * ratio)
    return Proximal(a, free.astype(np.float64), share)


def _level(task: LinearTask, v: FloatArray, sigma: FloatArray) -> FloatArray:
    """Return the number tau of each example with a = max(0, v - tau): HL02 (18) without curvature of its own.

    Hinge: tau = 0 if the sum is within C, else the sum is C. Squared hinge: tau = sigma sum(a) / (2 C).
    """
    if task.loss is Loss.HINGE:
        level = np.zeros(len(v))
        over = np.flatnonzero(np.maximum(v, 0.0).sum(axis=1) > task.C)
        if len(over):
            level[over] = _root(v[over], -task.C[over], np.zeros(len(over)))
        return level
    return _root(v, np.zeros(len(v)), 2 * task.C / sigma)


def _root(v: FloatArray, constant: FloatArray, own: FloatArray) -> FloatArray:
    """Return tau with own tau = constant + sum max(0, v - tau): from the m largest entries, for the m that fits."""
    ordered = -np.sort(-v, axis=1)
    ordered = np.where(np.isfinite(ordered), ordered, -1e300)
    with np.errstate(over="ignore"):
        total = np.cumsum(ordered, axis=1)
    count = np.arange(1, v.shape[1] + 1)
    tau = (total + constant[:, None]) / (count + own[:, None])
    fits = (ordered > tau).sum(axis=1)  # the entries above the root come first
    found = np.take_along_axis(tau, np.maximum(fits - 1, 0)[:, None], axis=1)[:, 0]
    return np.where(fits > 0, found, np.where(own > 0, constant / np.maximum(own, 1e-300), 0.0))
