"""Schemes: a classification problem as a list of binary ones, and how their scores decide.

One-vs-one and the DAG train one machine for each pair of classes (HL02 (3)); one-vs-all one for each class (HL02 (1)).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, overload

import numpy as np

from multimargin._typing import FloatArray, IntArray
from multimargin.base.resources import check_room
from multimargin.problems.machines import Machine, find_machine
from multimargin.problems.training_set import TrainingSet

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


@dataclass(frozen=True, eq=False)
class Slices(Sequence[FloatArray]):
    """Consecutive pieces of one array, as a sequence: half a million pairs of classes are two arrays, not objects."""

    flat: FloatArray
    starts: IntArray  # where each begins, and where the last ends

    @classmethod
    def of(cls, pieces: Sequence[FloatArray]) -> Slices:
        """Return pieces of any kind as those of one array."""
        if isinstance(pieces, Slices):
            return pieces
        starts = np.cumsum([0, *map(len, pieces)])
        return cls(np.concatenate([np.zeros(0), *pieces]), starts)

    def __len__(self) -> int:
        return len(self.starts) - 1

    @overload
    def __getitem__(self, index: int) -> FloatArray: ...
    @overload
    def __getitem__(self, index: slice) -> list[FloatArray]: ...
    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[i] for i in range(len(self))[index]]
        i = range(len(self))[index]
        return self.flat[self.starts[i] : self.starts[i + 1]]

    def __iter__(self) -> Iterator[FloatArray]:
        return (self[i] for i in range(len(self)))


@dataclass(frozen=True, eq=False)
class BinaryProblems(Sequence[BinaryProblem]):
    """Many binary problems as arrays; each is created on access.

    Parameters
    ----------
    positions, rows, C : ndarray
        Of all problems one after the other, each as in a BinaryProblem, those with y = +1 first.
    starts : ndarray of int
        Where each problem begins, and where the last ends.
    counts : ndarray of int
        How many of each have y = +1.
    """

    positions: IntArray
    rows: IntArray
    C: FloatArray
    starts: IntArray
    counts: IntArray

    @classmethod
    def of(cls, problems: Sequence[BinaryProblem]) -> BinaryProblems:
        """Return problems of any kind as arrays."""
        if isinstance(problems, BinaryProblems):
            return problems
        groups = [group for each in problems for group in (each.positive, each.negative)]
        return cls(
            np.concatenate(groups),
            np.concatenate([each.rows for each in problems]),
            np.concatenate([each.C for each in problems]),
            np.cumsum([0, *(len(each.rows) for each in problems)]),
            np.array([each.n_positive for each in problems], dtype=np.int64),
        )

    def __len__(self) -> int:
        return len(self.counts)

    @overload
    def __getitem__(self, index: int) -> BinaryProblem: ...
    @overload
    def __getitem__(self, index: slice) -> list[BinaryProblem]: ...
    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[i] for i in range(len(self))[index]]
        i = range(len(self))[index]
        first, end = self.starts[i : i + 2].tolist()
        middle = first + int(self.counts[i])
        both = self.rows[first:end], self.C[first:end]
        return BinaryProblem(self.positions[first:middle], self.positions[middle:end], *both)

    def __iter__(self) -> Iterator[BinaryProblem]:
        return (self[i] for i in range(len(self)))

    @cached_property
    def sizes(self) -> IntArray:
        """How many examples each problem has."""
        return np.diff(self.starts)

    @cached_property
    def signs(self) -> FloatArray:
        """Return y of all examples."""
        place = np.arange(len(self.rows)) - np.repeat(self.starts[:-1], self.sizes)
        return np.where(place < np.repeat(self.counts, self.sizes), 1.0, -1.0)


def find_scheme(choice: str | Machine) -> str | Machine:
    """Return the name of a scheme over binary machines, or the machine that ``choice`` names."""
    if isinstance(choice, str) and choice in SCHEMES:
        return choice
    return find_machine(choice)


def pair_list(n_classes: int) -> list[tuple[int, int]]:
    """Return the pairs (i, j), i < j, in LIBSVM's order."""
    return [(i, j) for i in range(n_classes) for j in range(i + 1, n_classes)]


def pair_at(index: int, n_classes: int) -> tuple[int, int]:
    """Return the pair at a place of ``pair_list``."""
    i = 0
    while index >= n_classes - 1 - i:
        index -= n_classes - 1 - i
        i += 1
    return i, i + 1 + index


def members_by_class(data: TrainingSet) -> list[IntArray]:
    """Return the positions of each class's examples, ascending."""
    order = np.argsort(data.y, kind="stable")
    ends = np.cumsum(np.bincount(data.y, minlength=data.n_classes)).tolist()
    return [order[begin:end] for begin, end in zip([0, *ends[:-1]], ends, strict=True)]


def pair_problems(data: TrainingSet) -> BinaryProblems:
    """Return one problem for each pair of classes; the first class of a pair is y = +1, as in LIBSVM."""
    d, n_rows = data.n_classes, (data.n_classes - 1) * len(data.y)
    check_room(
        8.0 * (10 * n_rows + 20 * d * d),
        f"The {d * (d - 1) // 2} pairs of {d} classes, of {n_rows} rows together,",
        "use multi_class='ova', which is one machine for each class",
    )
    order = np.argsort(data.y, kind="stable")
    counts = np.bincount(data.y, minlength=data.n_classes)
    begins = np.cumsum(counts) - counts
    groups = np.column_stack(np.triu_indices(data.n_classes, k=1)).ravel()  # of all pairs, two and two
    ends = np.cumsum(counts[groups])
    # Place p of a group that begins at e among all is member p - e of its class.
    shift = np.repeat(begins[groups] - (ends - counts[groups]), counts[groups])
    positions = order[np.arange(len(shift)) + shift]
    starts = np.concatenate([[0], ends[1::2]])
    return BinaryProblems(positions, data.rows[positions], data.C[positions], starts, counts[groups[::2]])


def class_problems(data: TrainingSet) -> list[BinaryProblem]:
    """Return one problem for each class against all others."""
    return [
        BinaryProblem.from_groups(data, np.flatnonzero(data.y == c), np.flatnonzero(data.y != c))
        for c in range(data.n_classes)
    ]
