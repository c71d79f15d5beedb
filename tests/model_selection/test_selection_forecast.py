"""The forecast of a search, on a simulated clock."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from multimargin.model_selection import forecast as forecasting
from multimargin.model_selection.distribute import local
from multimargin.model_selection.forecast import extrapolate, forecast, subsample, subsample_sizes
from multimargin.model_selection.search_table import Unit, UnitScores
from support.separate_fits import evaluate_gamma, make_problem

CS = np.array([0.5, 2.0])
GAMMAS = np.array([0.1, 0.5, 2.0])


class _Clock:
    """Advances when a unit is computed: by a constant, and a power of the rows for each gamma."""

    def __init__(self, n_processors: float) -> None:
        self.now, self.n_processors = 0.0, n_processors

    def perf_counter(self) -> float:
        return self.now

    def process_time(self) -> float:
        return self.n_processors * self.now

    def cost(self, gamma: float, n_rows: int) -> float:
        exponent = {0.1: 2.0, 0.5: 1.9, 2.0: 2.1}[gamma]
        return float(0.002 + 1e-7 * n_rows**exponent)

    def evaluate(self, problem: Any, units: Sequence[Unit]) -> Iterator[UnitScores]:
        for unit in units:
            self.now += self.cost(unit.gamma, len(problem.y))
        yield from ()


@pytest.mark.parametrize("n_processors", [0.0, 1.7])  # elsewhere, and here
def test_the_law_is_found_again(monkeypatch: pytest.MonkeyPatch, n_processors: float) -> None:
    clock = _Clock(n_processors)
    monkeypatch.setattr(forecasting, "time", clock)
    problem = make_problem(6_000)
    estimated = forecast(problem, CS, GAMMAS, clock.evaluate)
    expected = np.array([3 * clock.cost(gamma, 6_000) for gamma in GAMMAS])
    np.testing.assert_allclose(estimated.seconds_by_gamma, expected, rtol=0.05)
    np.testing.assert_allclose(estimated.exponents, [2.0, 1.9, 2.1], atol=0.05)
    # t_0 is the time of some rows, not of none: hence some per cent.
    assert estimated.seconds == pytest.approx(expected.sum(), rel=0.05)
    assert estimated.n_fits == 2 * 3 * 3
    assert estimated.spent < 0.1 * estimated.seconds
    assert str(estimated).startswith("18 fits in about ")


def test_one_disturbed_time_does_not_spoil_all() -> None:
    sizes = np.array([50.0, 500.0, 1_000.0])
    seconds = 1e-6 * sizes[:, None] ** 2 * np.ones(10)
    seconds[2, 4] *= 8
    total, _ = extrapolate(sizes, seconds[2], seconds, 8_000)
    undisturbed = 64.0 * 10
    assert undisturbed < total.sum() < 3 * undisturbed


@pytest.mark.parametrize("n_rows", [30, 300, 1_000, 100_000])
def test_subsamples_are_small_and_have_all_classes(n_rows: int) -> None:
    sizes = subsample_sizes(n_rows)
    assert list(sizes) == sorted(sizes)
    assert sizes[-1] <= min(n_rows, max(300, n_rows // 4), 2_000)
    if n_rows <= 1_000:
        problem = make_problem(n_rows)
        for size in sizes:
            part = subsample(problem, size)
            assert len(np.unique(part.y)) == 3
            for train, test in part.folds:
                assert len(np.unique(part.y[train])) == 3
                assert not set(train) & set(test)
                assert len(train) + len(test) == len(part.y)


def test_a_forecast_of_fits() -> None:
    estimated = forecast(make_problem(200), CS, GAMMAS, local(evaluate_gamma))
    assert np.isfinite(estimated.seconds)
    assert estimated.seconds > 0
    assert estimated.memory > 0
