"""Invariances of the machine: order, names, repetition, rotation, path to the optimum; and changes that matter."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from multimargin import SVC, Bound, ComponentTable, Machine
from multimargin._typing import FloatArray, IntArray
from multimargin.problems.machines import MACHINES
from multimargin.problems.problem import DualProblem, Loss
from multimargin.solvers.certificate import evaluate
from multimargin.solvers.core import SolverState, solve
from multimargin.solvers.options import Precision, SolverChoice, SolverOptions
from multimargin.solvers.report import StopReason
from support.helpers import draw_data, each_loss, each_machine, each_machine_and_solver, exact_scores, make_problem

SEVERAL = pytest.mark.parametrize("name", ["ww", "cs", "llw", "atm", "ova"])
FEW = settings(max_examples=5)
seeds = st.integers(0, 10**6)

# A violation of 1e-9 moves scores by far less than this.
CLOSE = 1e-6


scores = partial(exact_scores, bias="regularized")


def data_of(seed: int, n: int = 18, n_classes: int = 3) -> tuple[FloatArray, IntArray]:
    return draw_data(seed, n, n_classes)


@SEVERAL
@FEW
@given(seed=seeds)
def test_order_of_the_examples(name: str, seed: int) -> None:
    X, y = data_of(seed)
    order = np.random.default_rng(seed).permutation(len(y))
    np.testing.assert_allclose(scores(name, X[order], y[order], at=X), scores(name, X, y), atol=CLOSE)


@SEVERAL
@each_loss
@FEW
@given(seed=seeds)
def test_names_of_the_classes(name: str, loss: Loss, seed: int) -> None:
    X, y = data_of(seed)
    place = np.random.default_rng(seed).permutation(3)
    renamed = scores(name, X, place[y], loss=loss.value)
    np.testing.assert_allclose(renamed[:, place], scores(name, X, y, loss=loss.value), atol=CLOSE)


def test_labels_of_any_kind() -> None:
    X, y = data_of(3)
    words = np.array(["pear", "apple", "fig"])[y]  # sorted: apple, fig, pear
    np.testing.assert_allclose(scores("ww", X, words)[:, [2, 0, 1]], scores("ww", X, y), atol=CLOSE)


@pytest.mark.parametrize("bias", ["regularized", "exact"])
@SEVERAL
@each_loss
@FEW
@given(seed=seeds)
def test_weight_two_is_repetition(name: str, loss: Loss, bias: str, seed: int) -> None:
    X, y = data_of(seed, 24)
    twice = np.random.default_rng(seed).integers(1, 3, len(y))
    weighted = scores(name, X, y, sample_weight=twice.astype(float), loss=loss.value, bias=bias)
    repeated = scores(name, np.repeat(X, twice, axis=0), np.repeat(y, twice), at=X, loss=loss.value, bias=bias)
    np.testing.assert_allclose(weighted, repeated, atol=CLOSE)


@SEVERAL
@FEW
@given(seed=seeds)
def test_weight_zero_is_removal(name: str, seed: int) -> None:
    X, y = data_of(seed)
    kept = np.random.default_rng(seed).uniform(size=len(y)) < 0.7
    kept[np.unique(y, return_index=True)[1]] = True
    without = scores(name, X, y, sample_weight=kept.astype(float))
    np.testing.assert_allclose(without, scores(name, X[kept], y[kept], at=X), atol=CLOSE)


@SEVERAL
@FEW
@given(seed=seeds, s=st.floats(0.2, 5.0))
def test_larger_margin_is_a_smaller_penalty(name: str, seed: int, s: float) -> None:
    X, y = data_of(seed)
    table = MACHINES[name].table(3)
    scaled = ComponentTable(
        table.class1, table.value1, table.class2, table.value2, s * table.target, table.n_components
    )
    other = Machine("scaled", MACHINES[name].bound, MACHINES[name].sum_to_zero, scaled)
    # the primal with w = s u is s^2 times the one with C / s
    np.testing.assert_allclose(scores(other, X, y, C=2.0), s * scores(name, X, y, C=2.0 / s), atol=CLOSE * max(1.0, s))


@FEW
@given(seed=seeds, log_C=st.floats(-1, 1))
def test_two_classes_are_the_binary_machine(seed: int, log_C: float) -> None:
    X, y = data_of(seed, n_classes=2)
    C = float(10**log_C)
    expected = scores("ova", X, y, C=C)
    for name, machine in MACHINES.items():
        assert machine.binary_factor is not None
        found = scores(name, X, y, C=C / machine.binary_factor)
        # papers/README.md: cs with C is the binary machine with 2C, and half of its function
        np.testing.assert_allclose((2 if name == "cs" else 1) * found, expected, atol=CLOSE, err_msg=name)


def test_binary_factors_are_those_of_the_papers() -> None:
    factors = {name: machine.binary_factor for name, machine in MACHINES.items()}
    ones, halves = dict.fromkeys(("ww", "ats", "rm", "ova"), 1.0), dict.fromkeys(("llw", "adm", "atm", "mmr"), 0.5)
    assert factors == {"cs": 2.0} | ones | halves


@pytest.mark.parametrize("name", ["ww", "cs", *(name for name in MACHINES if MACHINES[name].sum_to_zero)])
@each_loss
def test_scores_sum_to_zero(name: str, loss: Loss) -> None:
    X, y = data_of(1, n=30, n_classes=4)
    new = np.random.default_rng(0).normal(size=(10, 2))
    total = scores(name, X, y, at=new, loss=loss.value).sum(axis=1)
    np.testing.assert_allclose(total, 0.0, atol=1e-12)


def test_scores_of_ova_are_separate_machines() -> None:
    X, y = data_of(1, n=30, n_classes=4)
    together = scores("ova", X, y)
    for c in range(4):
        np.testing.assert_allclose(together[:, c], scores("ova", X, (y == c).astype(int)), atol=CLOSE)


def reach(
    problem: DualProblem,
    start: SolverState | None = None,
    *,
    shrinking: tuple[bool, bool] = (True, True),
    solver: SolverChoice = SolverChoice.S2DO,
) -> tuple[float, SolverState]:
    variables, examples = shrinking
    options = SolverOptions(
        solver=solver,
        precision=Precision.FLOAT64,
        tol=1e-6,
        shrink_variables=variables,
        shrink_examples=examples,
    )
    solution = solve(problem, options, start)
    assert solution.report.stop_reason is StopReason.CONVERGED
    assert solution.state.scores is not None
    return evaluate(problem, solution.state.amounts, solution.state.scores).dual, solution.state


@each_machine_and_solver
def test_shrinking_changes_nothing(name: str, solver: SolverChoice) -> None:
    X, y = data_of(2, n=60)
    problem = make_problem(X, y, name)
    off, state_off = reach(problem, shrinking=(False, False), solver=solver)
    assert state_off.scores is not None
    for levels in ((True, False), (False, True), (True, True)):
        on, state_on = reach(problem, shrinking=levels, solver=solver)
        assert on == pytest.approx(off, rel=1e-7)
        assert state_on.scores is not None
        np.testing.assert_allclose(state_on.scores, state_off.scores, atol=1e-4)


@each_machine
@each_loss
def test_warm_start_reaches_the_same_optimum(name: str, loss: Loss) -> None:
    X, y = data_of(4, n=40)
    near = make_problem(X, y, name, C=1.5, loss=loss)
    problem = make_problem(X, y, name, C=1.0, loss=loss)  # the old variables do not even fit the new bounds
    _, start = reach(near)
    cold, _ = reach(problem)
    warm, state = reach(problem, start)
    assert warm == pytest.approx(cold, rel=1e-7)
    used = state.amounts.sum(axis=1) if problem.machine.bound is Bound.SIMPLEX else state.amounts.max(axis=1)
    assert (used <= problem.cap * (1 + 1e-12)).all()


def test_warm_start_of_an_estimator_needs_fewer_steps() -> None:
    X, y = data_of(4, n=200)
    clf = SVC(multi_class="ww", C=10.0, warm_start=True, solver="s2do").fit(X, y)
    first, dual = int(clf.n_iter_[0]), clf.certificate_.dual
    clf.fit(X, y)
    assert clf.n_iter_[0] < first / 10
    assert clf.certificate_.dual >= dual - 1e-9
    assert clf.certificate_.optimal


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@SEVERAL
@FEW
@given(seed=seeds)
def test_rotation_of_the_data(kernel: str, name: str, seed: int) -> None:
    X, y = data_of(seed)
    rotation, _ = np.linalg.qr(np.random.default_rng(seed).normal(size=(2, 2)))
    turned = scores(name, np.ascontiguousarray(X @ rotation), y, kernel=kernel, C=0.5)
    np.testing.assert_allclose(turned, scores(name, X, y, kernel=kernel, C=0.5), atol=CLOSE)


@FEW
@given(seed=seeds, s=st.floats(0.3, 3.0))
def test_scaled_data_with_a_linear_kernel(seed: int, s: float) -> None:
    X, y = data_of(seed)
    scaled = scores("ww", s * X, y, kernel="linear", bias="none", C=0.5 / s**2)
    np.testing.assert_allclose(scaled, scores("ww", X, y, kernel="linear", bias="none", C=0.5), atol=CLOSE)
