"""What separates into binary problems: schemes, one-vs-all, and any problem of two classes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from multimargin._typing import FloatArray, IntArray
from multimargin.problems.machines import MACHINES, Machine
from multimargin.problems.problem import DualProblem, Loss
from multimargin.problems.schemes import BinaryProblem, class_problems


def is_separable(choice: str | Machine) -> bool:
    """Return whether a scheme (by its name) or machine is made of binary problems, which may have exact biases."""
    return isinstance(choice, str) or choice is MACHINES["ova"]


@dataclass(frozen=True, eq=False)
class BinaryParts:
    """The binary problems, one for each column of scores, or for two classes one alone: class 1 against class 0.

    ``violations`` is how many times those of the machine are larger.
    """

    problem: DualProblem
    parts: list[BinaryProblem]
    violations: float = 1.0

    @property
    def binary(self) -> bool:
        return self.problem.n_classes == 2

    def split(self, amounts: FloatArray) -> list[FloatArray]:
        """Return the dual variables of each problem, in its own order, from those by column."""
        return [np.ascontiguousarray(amounts[order, c]) for c, order in enumerate(self._orders)]

    def join(self, found: list[FloatArray]) -> FloatArray:
        """Return the dual variables by column, (n_examples, n_columns), from those of each problem."""
        amounts = np.empty((self.problem.n_examples, len(self.parts)))
        for c, order in enumerate(self._orders):
            amounts[order, c] = found[c]
        return amounts

    @cached_property
    def _orders(self) -> list[IntArray]:
        return [np.concatenate([part.positive, part.negative]) for part in self.parts]


def separate(problem: DualProblem) -> BinaryParts | None:
    """Return the machine as binary problems, or None where its columns depend on each other."""
    if problem.machine is MACHINES["ova"]:
        parts = class_problems(problem.data)
        return BinaryParts(problem, parts[1:] if problem.n_classes == 2 else parts)
    if problem.n_classes == 2 and problem.machine is MACHINES["ww"]:
        binary = class_problems(problem.data)[1]
        if problem.loss is Loss.SQUARED_HINGE:
            binary = replace(binary, C=2 * binary.C)
        return BinaryParts(problem, [binary], violations=2.0)
    return None
