"""Schemes: a classification problem as a list of binary ones, and how their scores decide.

One-vs-one and the DAG train one machine for each pair of classes (HL02 (3)); one-vs-all one for each class (HL02 (1)).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from multimargin.machines import FloatArray, IntArray, Machine, find_machine
from multimargin.training_set import TrainingSet

ONE_VS_ONE = "ovo"
DAG = "dag"
SCHEMES = (ONE_VS_ONE, DAG)


@dataclass(frozen=True, eq=False)
class BinaryProblem:
    """Two groups of examples: y = +1 and y = -1.

    Parameters
    ----------
    positive, negative : ndarray of int
        Positions among the examples of the training set, ascending.
    rows : ndarray of int
        Rows of X: those of ``positive``, then those of ``negative``.
    C : ndarray
        One for each of these rows.
    """

    positive: IntArray
    negative: IntArray
    rows: IntArray
    C: FloatArray

    @classmethod
    def from_groups(cls, data: TrainingSet, positive: IntArray, negative: IntArray) -> BinaryProblem:
        both = np.concatenate([positive, negative])
        return cls(positive, negative, data.rows[both], data.C[both])

    @property
    def n_positive(self) -> int:
        return len(self.positive)


def find_scheme(choice: str | Machine) -> str | Machine:
    """Return the name of a scheme over binary machines, or the machine that ``choice`` names."""
    if isinstance(choice, str) and choice in SCHEMES:
        return choice
    return find_machine(choice)


def pair_list(n_classes: int) -> list[tuple[int, int]]:
    """Return the pairs (i, j), i < j, in LIBSVM's order."""
    return [(i, j) for i in range(n_classes) for j in range(i + 1, n_classes)]


def members_by_class(data: TrainingSet) -> list[IntArray]:
    """Return the positions of each class's examples, ascending."""
    order = np.argsort(data.y, kind="stable")
    ends = np.cumsum(np.bincount(data.y, minlength=data.n_classes)).tolist()
    return [order[begin:end] for begin, end in zip([0, *ends[:-1]], ends, strict=True)]


def pair_problems(data: TrainingSet) -> list[BinaryProblem]:
    """Return one problem for each pair of classes; the first class of a pair is y = +1, as in LIBSVM."""
    members = members_by_class(data)
    return [BinaryProblem.from_groups(data, members[i], members[j]) for i, j in pair_list(data.n_classes)]


def class_problems(data: TrainingSet) -> list[BinaryProblem]:
    """Return one problem for each class against all others."""
    return [
        BinaryProblem.from_groups(data, np.flatnonzero(data.y == c), np.flatnonzero(data.y != c))
        for c in range(data.n_classes)
    ]
