"""The stored problems: data and parameters as JSON lines, and bounds on each optimum."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.check.cases import Case
from benchmarks.check.formulas import Kernel

STORED = Path(__file__).with_name("problems.jsonl")
TOL = 1e-9  # of the fits that the optima come from


@dataclass(frozen=True)
class Optimum:
    """Bounds on the optimum of a quadratic program, in extended precision; a machine of pairs has one for each pair."""

    dual: float  # of a feasible point: the optimum is not below
    primal: float  # of its model: the optimum is not above
    qp: float  # the value that a general solver found for the same program
    rounding: float  # by how much float64, on sparse rows too, may miss an objective at this point

    @property
    def apart(self) -> float:
        """The spread of the three values, as a share of the dual."""
        values = (self.dual, self.primal, self.qp)
        return (max(values) - min(values)) / abs(self.dual)


@dataclass(frozen=True)
class Problem:
    """A problem and its optima."""

    case: Case
    optima: tuple[Optimum, ...]


def write_problems(problems: Iterable[Problem], path: Path = STORED) -> None:
    """Write one line for each problem; entries of X are in float32, so that every format holds the same numbers."""
    lines = []
    for problem in problems:
        case, kernel = problem.case, problem.case.kernel
        content = {
            "machine": case.machine,
            "loss": case.loss,
            "bias": case.bias,
            "kernel": kernel.name,
            "gamma": kernel.gamma,
            "degree": kernel.degree,
            "coef0": kernel.coef0,
            "C": case.C,
            # The shortest decimal that gives the float32 back.
            "X": [[float(str(value)) for value in row] for row in case.X.astype(np.float32)],
            "y": case.y.tolist(),
            "weight": None if case.weight is None else case.weight.tolist(),
            "optima": [[optimum.dual, optimum.primal, optimum.qp, optimum.rounding] for optimum in problem.optima],
        }
        lines.append(json.dumps(content, separators=(",", ":")) + "\n")
    path.write_text("".join(lines))


def read_problems(path: Path = STORED) -> list[Problem]:
    """Return the stored problems, in the order of the file."""
    return [_problem_of(number, json.loads(line)) for number, line in enumerate(path.read_text().splitlines())]


def _problem_of(number: int, content: dict[str, Any]) -> Problem:
    case = Case(
        name=str(number),
        X=np.array(content["X"], dtype=np.float32).astype(np.float64),
        y=np.array(content["y"]),
        weight=None if content["weight"] is None else np.array(content["weight"]),
        machine=content["machine"],
        loss=content["loss"],
        bias=content["bias"],
        kernel=Kernel(content["kernel"], content["gamma"], content["degree"], content["coef0"]),
        C=content["C"],
        tol=TOL,
        solver="auto",
        storage="dense64",
        linear=False,
        extreme=False,
    )
    return Problem(case, tuple(Optimum(*values) for values in content["optima"]))
