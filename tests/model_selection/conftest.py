"""A small problem of selection, and its table by a search over the whole grid."""

from __future__ import annotations

import pytest

from multimargin.model_selection.distribute import local
from multimargin.model_selection.search_table import SearchTable
from multimargin.model_selection.strategies import run_search
from support.separate_fits import CS, GAMMAS, Problem, evaluate_gamma, make_problem


@pytest.fixture(scope="module")
def problem() -> Problem:
    return make_problem()


@pytest.fixture(scope="module")
def expected(problem: Problem) -> SearchTable:
    return run_search("grid", problem, CS, GAMMAS, local(evaluate_gamma))
