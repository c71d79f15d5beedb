"""Solves over shards: the same bits for any division of the examples as without shards."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import make_classification

import multimargin.fitting.machine as machine_fitting
import multimargin.fitting.pairs as pair_fitting
from multimargin import SVC
from multimargin._typing import FloatArray, IntArray
from multimargin.problems.problem import DualProblem
from multimargin.solvers import binary
from multimargin.solvers.core import Solution, solve
from multimargin.solvers.options import SolverOptions
from multimargin.solvers.sharded import solve_sharded
from multimargin.solvers.sharded_binary import solve_sharded_pair


def divide(n: int, n_shards: int, *, mixed: bool) -> list[IntArray]:
    """Divide n examples into shards of unequal size, in the order given or drawn."""
    order = np.random.default_rng(n_shards).permutation(n) if mixed else np.arange(n)
    cuts = np.sort(np.random.default_rng(n + n_shards).choice(n, n_shards - 1, replace=False))
    return np.split(order, cuts)


def classes(n: int, n_classes: int, seed: int) -> tuple[FloatArray, IntArray]:
    X, y = make_classification(
        n,
        12,
        n_informative=8,
        n_classes=n_classes,
        n_clusters_per_class=2,
        class_sep=0.8,
        flip_y=0.05,
        random_state=seed,
    )
    return X, y


@pytest.mark.parametrize(
    ("machine", "C", "tol"), [("ww", 10.0, 1e-3), ("cs", 3.0, 1e-3), ("llw", 0.5, 1e-3), ("ww", 100.0, 1e-5)]
)
def test_a_fit_over_shards_has_the_same_bits(
    machine: str, C: float, tol: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = classes(3000, 5, seed=1)
    given: list[tuple[DualProblem, SolverOptions, Solution]] = []

    def remember(problem: DualProblem, options: SolverOptions, *rest: Any) -> Solution:
        given.append((problem, options, solve(problem, options, *rest)))
        return given[-1][2]

    monkeypatch.setattr(machine_fitting, "solve_by_bias_rule", remember)
    plain = SVC(multi_class=machine, C=C, gamma=0.1, tol=tol, solver="two-level").fit(X, y)
    problem, options, solution = given[0]
    assert solution.report.phases["rounds"] > 1
    for n_shards in (1, 2, 3, 5):
        found = solve_sharded(problem, options, divide(len(y), n_shards, mixed=n_shards != 3))
        assert np.array_equal(found.state.amounts, solution.state.amounts)
        assert solution.state.scores is not None
        assert found.state.scores is not None
        assert np.array_equal(found.state.scores, solution.state.scores)
        assert (found.report.dual, found.report.primal) == (solution.report.dual, solution.report.primal)
        assert found.report.n_iter == solution.report.n_iter

    def over_two(problem: DualProblem, options: SolverOptions, *_: Any) -> Solution:
        return solve_sharded(problem, options, divide(problem.n_examples, 2, mixed=True))

    monkeypatch.setattr(machine_fitting, "solve_by_bias_rule", over_two)
    sharded = SVC(multi_class=machine, C=C, gamma=0.1, tol=tol, solver="two-level").fit(X, y)
    assert np.array_equal(sharded.dual_coef_, plain.dual_coef_)
    assert np.array_equal(sharded.decision_function(X[:50]), plain.decision_function(X[:50]))


@pytest.mark.parametrize(("loss", "tol"), [("hinge", 1e-3), ("squared_hinge", 1e-3), ("hinge", 1e-5)])
def test_a_large_pair_over_shards_has_the_same_bits(loss: str, tol: float, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = classes(5000, 2, seed=3)
    given: list[tuple[Any, ...]] = []
    plain_solve = binary.solve_batch

    def remember(*arguments: Any, **named: Any) -> binary.Batch:
        batch = plain_solve(*arguments, **named)
        given.append((*arguments, batch))
        return batch

    monkeypatch.setattr(pair_fitting, "solve_batch", remember)
    SVC(C=2.0, gamma=0.1, tol=tol, loss=loss).fit(X, y)
    store, problems, problem_loss, options = given[0][:4]
    solution = given[0][-1].solutions[0]
    assert solution.report.phases["blocks"] > 1
    for n_shards in (1, 2, 3, 5):
        division = divide(len(y), n_shards, mixed=n_shards != 3)
        found = solve_sharded_pair(store, problems[0], problem_loss, options, division)
        assert np.array_equal(found.amounts, solution.amounts)
        assert found.bias == solution.bias
        assert found.report.n_iter == solution.report.n_iter


def test_what_the_driver_does_not_know_is_refused() -> None:
    X, y = classes(60, 3, seed=0)
    fitted = SVC(multi_class="ww", C=1.0, gamma=0.1)
    problem = fitted_problem(fitted, X, y)
    with pytest.raises(ValueError, match="leave the other options"):
        solve_sharded(problem, SolverOptions(max_iter=3), [np.arange(60)])
    with pytest.raises(ValueError, match="every example"):
        solve_sharded(problem, SolverOptions(), [np.arange(30)])


def fitted_problem(estimator: SVC, X: FloatArray, y: IntArray) -> DualProblem:
    """Return the problem that a fit solves."""
    found: list[DualProblem] = []
    with pytest.MonkeyPatch.context() as patch:

        def remember(problem: DualProblem, *rest: Any) -> Solution:
            found.append(problem)
            return solve(problem, *rest)

        patch.setattr(machine_fitting, "solve_by_bias_rule", remember)
        estimator.fit(X, y)
    return found[0]
