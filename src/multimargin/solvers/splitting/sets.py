"""The dual of a machine with one class per margin component, in signed variables by class.

With b_ic = nu_ic a_ic the scores of all these machines are F = K b Pi, Pi = I - 11'/d, whatever the margins; what
differs is the set that each example's b_i may lie in and the linear term T.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from multimargin._typing import FloatArray, IntArray
from multimargin.problems.machines import Bound
from multimargin.problems.problem import DualProblem, Loss
from multimargin.solvers.certificate import violation


def applies(problem: DualProblem) -> bool:
    """Return whether the machine has the form: each component one class of its own, with weight 1 or -1."""
    table = problem.machine.table(problem.n_classes)
    present = np.arange(table.class1.shape[1]) < table.n_components[:, None]
    single = bool((table.class2[present] < 0).all() and (np.abs(table.value1[present]) == 1.0).all())
    distinct = all(
        len(set(table.class1[y, :n].tolist())) == n for y, n in enumerate(np.asarray(table.n_components).tolist())
    )
    bounded = problem.loss is Loss.HINGE and bool(np.isfinite(problem.data.C).all())
    return problem.machine.sum_to_zero and single and distinct and bounded and problem.kernel.positive_semidefinite


@dataclass(frozen=True, eq=False)
class ExampleSets:
    """The sets of all examples: a projection onto them, and the way from b (n_examples, n_classes) to a and back."""

    problem: DualProblem

    @property
    def simplex(self) -> bool:
        return self.problem.machine.bound is Bound.SIMPLEX

    @cached_property
    def place(self) -> IntArray:
        """The class of each component, (n_examples, n_components); absent ones share a column beyond the last."""
        table = self.problem.machine.table(self.problem.n_classes)
        return np.where(self.problem.mask, table.class1[self.problem.data.y], self.problem.n_classes)

    @cached_property
    def sign(self) -> FloatArray:
        """nu_ic, 0 where there is no component."""
        return self._by_class(self.problem.machine.table(self.problem.n_classes).value1[self.problem.data.y])

    @cached_property
    def linear(self) -> FloatArray:
        """T: the targets times the signs."""
        return self._by_class(self.problem.targets) * self.sign

    @cached_property
    def cap(self) -> FloatArray:
        return np.ascontiguousarray(self.problem.data.C[:, None])

    @cached_property
    def low(self) -> FloatArray:
        return np.where(self.sign < 0, -self.cap, 0.0)

    @cached_property
    def high(self) -> FloatArray:
        return np.where(self.sign > 0, self.cap, 0.0)

    def _by_class(self, values: FloatArray) -> FloatArray:
        wide = np.zeros((len(values), self.problem.n_classes + 1))
        np.put_along_axis(wide, self.place, values, axis=1)
        return np.ascontiguousarray(wide[:, :-1])

    def amounts(self, b: FloatArray) -> FloatArray:
        """Return a of signed variables."""
        wide = np.concatenate([b * self.sign, np.zeros((len(b), 1))], axis=1)
        return np.take_along_axis(wide, self.place, axis=1)

    def signed(self, amounts: FloatArray) -> FloatArray:
        """Return b of dual variables."""
        return self._by_class(amounts) * self.sign

    def project(self, v: FloatArray) -> FloatArray:
        """Return the nearest point of each example's set."""
        if not self.simplex:
            return np.clip(v, self.low, self.high)
        found = np.maximum(v * self.sign, 0.0)
        cap = self.cap[:, 0]
        rows = np.flatnonzero(found.sum(axis=1) > cap)
        if len(rows):
            found[rows] = _on_simplex(v[rows] * self.sign[rows], cap[rows], self.sign[rows] != 0)
        return np.asarray(found * self.sign)

    def violation(self, b: FloatArray, scores: FloatArray) -> float:
        """Return the KKT violation at b with its scores, by the function that all solvers stop by."""
        gradient = (self.linear - scores) * self.sign
        wide = np.concatenate([gradient, np.zeros((len(b), 1))], axis=1)
        return violation(self.problem, np.take_along_axis(wide, self.place, axis=1), self.amounts(b))

    def dual(self, b: FloatArray, scores: FloatArray) -> float:
        return float(np.vdot(self.linear, b) - 0.5 * np.vdot(b, scores))


def _on_simplex(v: FloatArray, cap: FloatArray, present: np.ndarray) -> FloatArray:
    """Return max(v - theta, 0) with sum cap: Newton's method on theta, which rises to its root in a few steps."""
    v = np.where(present, v, -np.inf)
    theta = v.max(axis=1) - cap
    for _ in range(v.shape[1] + 1):
        above = v > theta[:, None]
        count = above.sum(axis=1)
        higher = (np.where(above, v, 0.0).sum(axis=1) - cap) / count
        if (higher <= theta + 1e-15 * cap).all():
            break
        theta = np.maximum(theta, higher)
    found = np.maximum(v - theta[:, None], 0.0)
    # The sum is cap to rounding: the largest entry makes up for the rest of it.
    most = (np.arange(len(v)), found.argmax(axis=1))
    found[most] += cap - found.sum(axis=1)
    return np.asarray(found)


def centred(values: FloatArray) -> FloatArray:
    """Return values Pi: with sums of zero over classes."""
    return np.asarray(values - values.mean(axis=1, keepdims=True))
