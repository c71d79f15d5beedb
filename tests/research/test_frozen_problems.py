"""Stored problems with certified optima: every one by the default solver, and a share of all other ways.

``python -m benchmarks.frozen`` replays them in every way.
"""

from __future__ import annotations

import collections
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.check.cases import KERNELS, MACHINES
from benchmarks.frozen.making import APART, certify, make_problems
from benchmarks.frozen.problems import Optimum, Problem, read_problems, write_problems
from benchmarks.frozen.replaying import FORMATS, Way, replay, ways_of

PROBLEMS = read_problems()
CHUNK = 50
DEFAULT = Way(linear=False, solver="auto", storage="dense64", tol=1e-3)


def _complaints(problem: Problem, way: Way) -> list[str]:
    result = replay(problem, way)
    return [result.text()] if result.complaints else []


@pytest.mark.parametrize("begin", range(0, 300, CHUNK))
def test_the_default_solver_finds_every_optimum(begin: int) -> None:
    assert [line for problem in PROBLEMS[begin : begin + CHUNK] for line in _complaints(problem, DEFAULT)] == []


def _share() -> list[tuple[Problem, Way]]:
    """One way of each problem; steps of a prime number go through solvers, formats and tolerances in turn."""
    ways = [list(ways_of(problem.case)) for problem in PROBLEMS]
    return [
        (problem, own[17 * number % len(own)]) for number, (problem, own) in enumerate(zip(PROBLEMS, ways, strict=True))
    ]


@pytest.mark.parametrize("begin", range(0, 300, CHUNK))
def test_other_ways_find_the_same_optima(begin: int) -> None:
    assert [line for pair in _share()[begin : begin + CHUNK] for line in _complaints(*pair)] == []


def test_the_set_is_spread_over_everything() -> None:
    assert len(PROBLEMS) == 300
    cases = [problem.case for problem in PROBLEMS]
    assert {(case.machine, case.kernel.name) for case in cases} == {(m, k) for m in MACHINES for k in KERNELS}
    assert len({(case.machine, case.loss, case.bias) for case in cases}) == len(MACHINES) * 6
    assert {len(np.unique(case.y)) for case in cases} == {2, 3, 4, 5}
    assert sum(case.weight is not None for case in cases) > 50
    assert sum(len(np.unique(case.X, axis=0)) < len(case.X) for case in cases) > 30
    for case in cases:
        np.testing.assert_array_equal(case.X, case.X.astype(np.float32))
    shared = {(way.linear, way.solver) for _, way in _share()}
    assert shared == {(way.linear, way.solver) for case in cases for way in ways_of(case)}
    assert {way.storage for _, way in _share()} == set(FORMATS)


def test_stored_values_agree() -> None:
    for problem in PROBLEMS:
        n_classes = len(np.unique(problem.case.y))
        pairs = problem.case.machine in ("ovo", "dag")
        assert len(problem.optima) == (n_classes * (n_classes - 1) // 2 if pairs else 1)
        for optimum in problem.optima:
            assert optimum.dual > 0
            assert optimum.apart <= APART
            assert optimum.rounding <= 1e-6 * optimum.dual


@pytest.mark.parametrize("number", range(0, 300, 37))
def test_optima_are_certified_again(number: int) -> None:
    """The checker and the quadratic programming solver still come to what is stored."""
    again = certify(PROBLEMS[number].case)
    assert isinstance(again, Problem)
    for found, stored in zip(again.optima, PROBLEMS[number].optima, strict=True):
        assert found.dual == pytest.approx(stored.dual, rel=APART)
        assert found.qp == pytest.approx(stored.qp, rel=APART)


def _moved(problem: Problem, factor: float) -> Problem:
    optima = [Optimum(o.dual * factor, o.primal * factor, o.qp * factor, o.rounding) for o in problem.optima]
    return replace(problem, optima=tuple(optima))


def test_a_moved_optimum_is_seen() -> None:
    way = replace(DEFAULT, tol=1e-8)
    for problem in PROBLEMS[:12]:
        assert replay(problem, way).complaints == ()
        assert "above the optimum" in replay(_moved(problem, 1 - 1e-5), way).text()
        assert "below the optimum" in replay(_moved(problem, 1 + 1e-5), way).text()


def test_problems_come_back_from_a_file(tmp_path: Path) -> None:
    made = list(make_problems(5, 4, collections.Counter()))
    write_problems(made, tmp_path / "problems.jsonl")
    back = read_problems(tmp_path / "problems.jsonl")
    for ours, other in zip(made, back, strict=True):
        assert str(ours.case) == str(other.case)
        assert ours.optima == other.optima
        np.testing.assert_array_equal(ours.case.X, other.case.X)
