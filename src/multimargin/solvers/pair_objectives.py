"""Objectives and violations of very many binary problems at once, as columns: what ``binary`` computes for one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from multimargin._typing import FloatArray
from multimargin.problems.problem import Bias, Loss
from multimargin.problems.schemes import BinaryProblems


@dataclass(frozen=True, eq=False)
class PairObjectives:
    """One entry for each problem.

    ``violation`` is that of ``binary.evaluate_with_bias``, ``projected`` the largest projected gradient at the bias,
    which is the same where that is not exact.
    """

    primal: FloatArray
    dual: FloatArray
    violation: FloatArray
    projected: FloatArray

    @property
    def columns(self) -> dict[str, FloatArray]:
        """What a report has of them."""
        return {"violation": self.violation, "dual": self.dual, "primal": self.primal}


def evaluate_together(
    problems: BinaryProblems, amounts: FloatArray, scores: FloatArray, biases: FloatArray, loss: Loss, bias: Bias
) -> PairObjectives:
    """Return what ``binary.evaluate_with_bias`` does, of variables and scores of all problems one after the other."""
    first, y, C = problems.starts[:-1], problems.signs, problems.C
    squared, exact = loss is Loss.SQUARED_HINGE, bias is Bias.EXACT
    hard = np.logical_and.reduceat(np.isinf(C), first)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        ridge = 0.5 / C if squared else np.zeros(len(C))
        margin = y * (scores + np.repeat(biases, problems.sizes) if exact else scores)
        slack = np.maximum(1.0 - margin, 0.0)
        norm = np.add.reduceat(amounts * y * scores, first)
        charge = np.where(hard, 0.0, np.add.reduceat(C * (slack**2 if squared else slack), first))
        # The factor on w and b that makes every margin reach 1: a feasible point of the hard margin's primal.
        least = np.minimum.reduceat(margin, first)
        stretch = np.where(hard, np.where(least <= 0.0, np.inf, np.maximum(1.0, 1.0 / least)), 1.0)
        dual = np.add.reduceat(amounts, first) - 0.5 * norm
        if squared:
            dual = dual - 0.5 * np.add.reduceat(ridge * amounts**2, first)
        primal = 0.5 * stretch**2 * norm + charge
        distance, projected = _violations(problems, amounts, scores - y + ridge * y * amounts, loss, biases * exact)
    return PairObjectives(primal, dual, np.maximum(distance, projected) if exact else projected, projected)


def _violations(
    problems: BinaryProblems, amounts: FloatArray, error: FloatArray, loss: Loss, biases: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """LIBSVM's m - M, and how far a score with its bias is on the wrong side; see ``binary._violation``."""
    first, positive = problems.starts[:-1], problems.signs > 0
    below = amounts < problems.C if loss is Loss.HINGE else np.full(len(amounts), True)
    above = amounts > 0
    lowest_up = np.minimum.reduceat(np.where(np.where(positive, below, above), error, np.inf), first)
    largest_low = np.maximum.reduceat(np.where(np.where(positive, above, below), error, -np.inf), first)
    # Comparisons pass over what is not a number.
    lost = np.logical_or.reduceat(np.isnan(error) | np.isnan(amounts), first)
    distance = np.where(lost, np.inf, np.maximum(0.0, largest_low - lowest_up))
    projected = np.maximum(0.0, np.maximum(-(lowest_up + biases), largest_low + biases))
    return distance, np.where(lost, np.inf, projected)
