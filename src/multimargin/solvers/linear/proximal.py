"""The derivative of the proximal step on the dual variables, which the core takes (ProximalPasses.step).

The step solves   max_a (t - m(f))' a - charge(a) - |a - a_k|^2 / (2 sigma_i) within the bounds, for each example:
the nearest point to v = a_k + sigma (t - m(f)).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from multimargin._typing import FloatArray
from multimargin.problems.problem import Loss
from multimargin.solvers.linear.task import LinearTask


@dataclass(frozen=True, eq=False)
class Slopes:
    """da = sigma (diag(slope) - share slope slope') d(gradient) within each example, slope 0 where a is held."""

    slope: FloatArray  # (n_examples, n_components)
    share: FloatArray | None  # (n_examples,)


def slopes_at(task: LinearTask, a: FloatArray, sigma: FloatArray) -> Slopes:
    """Return the derivative of the step that led to a."""
    free = a > 0.0
    if not task.simplex:
        if task.loss is Loss.HINGE:
            return Slopes((free & (a < task.C[:, None])).astype(np.float64), None)
        return Slopes(free / (1.0 + sigma / (2 * task.C))[:, None], None)
    count = free.sum(axis=1)
    if task.loss is Loss.HINGE:
        full = a.sum(axis=1) >= task.C * (1 - 1e-12)
        share = np.where(full & (count > 0), 1.0 / np.maximum(count, 1), 0.0)
        free &= ~(full & (count == 1))[:, None]  # all of C on one component, which has nothing to move against
    else:
        ratio = sigma / (2 * task.C)
        share = ratio / (1.0 + count * ratio)
    return Slopes(free.astype(np.float64), share)
