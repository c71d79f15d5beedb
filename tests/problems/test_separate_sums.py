"""Sums of coefficients that are independent of each other: balanced class by class; coefficients of dense amounts."""

from __future__ import annotations

import numpy as np
import pytest

from multimargin.problems import coupling
from multimargin.problems import zero_sums as balance_module
from multimargin.problems.coupling import coefficients, component_mask
from multimargin.problems.machines import MACHINES
from multimargin.problems.problem import Bias, Loss
from multimargin.problems.separate_sums import Groups, balance_groups
from multimargin.problems.zero_sums import Account, Movable, balance, is_balanced
from support.helpers import draw_data, make_problem


def test_groups_are_balanced_each_by_itself() -> None:
    signs = np.array([1.0, -1.0, 1.0, 1.0, -1.0, 1.0, -1.0])
    groups = Groups(signs, np.ones(7), np.array([1.0, 1.0, 1.0, 1.0, 1.0, np.inf, np.inf]), np.array([0, 2, 5]))
    amounts = np.array([0.5, 0.5, 1.0, 0.8, 0.0, 4.0, 0.0])
    movable = np.array([True, True, True, True, True, True, False])
    found, balanced = balance_groups(groups, amounts, movable)
    np.testing.assert_allclose(found, [0.5, 0.5, 0.4, 0.2, 0.6, 0.0, 0.0], atol=1e-12)
    assert balanced.all()
    held = np.array([True, True, True, False, False, False, False])
    found, balanced = balance_groups(groups, amounts, held)
    assert balanced.tolist() == [True, False, False]  # 0.8 and 4 stay, and nothing may be taken from them
    np.testing.assert_array_equal(found[5:], amounts[5:])


@pytest.mark.parametrize("loss", [Loss.HINGE, Loss.SQUARED_HINGE])
def test_sums_of_separate_classes_are_balanced_as_those_of_coupled_ones(
    loss: Loss, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(5)
    problem = make_problem(*draw_data(0, 40, 6), "ova", loss=loss, bias=Bias.EXACT)
    cap = np.where(np.isfinite(problem.cap), problem.cap, 3.0)[:, None]
    shape = (problem.n_examples, problem.n_components)
    account = Account()
    for _ in range(20):
        amounts = cap * np.clip(rng.normal(0.5, 0.6, size=shape), 0.0, 1.0)
        movable = Movable(rng.random(shape) < rng.uniform(0.1, 1.0), np.zeros(len(amounts), dtype=bool))
        apart = balance(problem, amounts, movable, account=account)
        with monkeypatch.context() as patch:
            patch.setattr(balance_module, "_is_separate", lambda problem: False)
            coupled = balance(problem, amounts, movable, 200)
        assert (apart is None) == (coupled is None)
        if apart is not None and coupled is not None:
            np.testing.assert_allclose(apart, coupled, atol=1e-9)
            assert is_balanced(coefficients(problem.machine, apart, problem.data.y, problem.n_classes), 1e-13)
            assert np.array_equal(apart[~movable.variables], amounts[~movable.variables])
    assert account.projections == 20  # one each, where the classes together need a system of equations for each step


@pytest.mark.parametrize("name", MACHINES)
def test_coefficients_of_many_dense_amounts_have_the_same_bits(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(2)
    machine, y = MACHINES[name], rng.integers(0, 7, size=600)
    mask = component_mask(machine, y, 7)
    amounts = np.where(mask & (rng.random(mask.shape) < 0.9), rng.random(mask.shape), 0.0)
    found = coefficients(machine, amounts, y, 7)
    monkeypatch.setattr(coupling, "MANY_EXAMPLES", 1_000)
    np.testing.assert_array_equal(found, coefficients(machine, amounts, y, 7))
