"""How to solve: the algorithms and what they are told."""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import Enum

from multimargin import _core


class SolverChoice(Enum):
    """The algorithms: one variable, two variables, all variables of one example, or a few of any at a time.

    ``SEMI_GREEDY`` solves whole examples too, but visits many of them for one scan of the violations. The last two
    choose pairs of variables of a binary problem with an exact bias; only ``binary.solve_batch`` knows them.
    """

    SMO = "smo"
    S2DO = "s2do"
    WHOLE_EXAMPLE = "whole-example"
    SEMI_GREEDY = "semi-greedy"
    TWO_LEVEL = "two-level"
    WORKING_SET = "working-set"
    MOST_VIOLATING_PAIR = "most-violating-pair"
    MAXIMUM_GAIN = "maximum-gain"


# How the second variable of a pair is chosen (IGEL); the first is the most violating one that may rise.
PAIR_CHOICES = (SolverChoice.MOST_VIOLATING_PAIR, SolverChoice.MAXIMUM_GAIN)


class Precision(Enum):
    """Kernel rows: float32 while that carries the tolerance, or always one of the two."""

    AUTOMATIC = "automatic"
    FLOAT32 = "float32"
    FLOAT64 = "float64"


@dataclass(frozen=True)
class SolverOptions:
    """How to solve; field by field the C++ struct ``Options``."""

    solver: SolverChoice = SolverChoice.S2DO
    precision: Precision = Precision.AUTOMATIC
    tol: float = 1e-3
    max_iter: int = -1
    max_time: float = float("inf")
    max_work: float = float("inf")
    shrink_variables: bool = True
    shrink_examples: bool = True
    cache_bytes: float = 2e8
    n_threads: int = 1
    extra_tol: float = 0.0
    extra_steps: int = 0
    trace: bool = False
    trace_primal: bool = False
    working_set_size: int = 10

    def to_core(self) -> _core.Options:
        options = _core.Options()
        for entry in fields(self):
            value = getattr(self, entry.name)
            if isinstance(value, SolverChoice):
                value = getattr(_core.SolverKind, value.name.lower())
            elif isinstance(value, Precision):
                value = getattr(_core.Precision, value.value)
            setattr(options, entry.name, value)
        return options
