"""Machines as data: the coupling that follows from the margins, a table of published machines, and user-defined
ones."""

from __future__ import annotations

import numpy as np
import pytest

from multimargin import SVC, Bound, ComponentTable, Machine, verify
from multimargin.problems.coupling import coefficients, coupling_matrix, derive_structure, margins
from multimargin.problems.machines import MACHINES, find_machine
from multimargin.problems.problem import Bias, Loss
from multimargin.problems.schemes import find_scheme
from multimargin.solvers.certificate import evaluate
from multimargin.solvers.core import solve
from multimargin.solvers.options import Precision, SolverChoice, SolverOptions
from multimargin.solvers.report import StopReason
from support.helpers import draw_data, each_machine, make_problem, own_machines, solve_dual_densely, solvers_for

# name: bound, sum to zero, target of the own class and of another as functions of d (None: no such component),
# and whether the margins are differences of scores
TABLE = {
    "ww": (Bound.BOX, False, None, lambda d: 2.0, True),
    "cs": (Bound.SIMPLEX, False, None, lambda d: 1.0, True),
    "llw": (Bound.BOX, True, None, lambda d: 1.0 / (d - 1), False),
    "adm": (Bound.SIMPLEX, True, None, lambda d: 1.0, False),
    "ats": (Bound.BOX, True, lambda d: 1.0, lambda d: 1.0, False),
    "atm": (Bound.SIMPLEX, True, lambda d: 1.0, lambda d: 1.0, False),
    "rm": (Bound.BOX, True, lambda d: d - 1.0, lambda d: 1.0, False),
    "mmr": (Bound.BOX, True, lambda d: 1.0, None, False),
    "ova": (Bound.BOX, False, lambda d: 1.0, lambda d: 1.0, False),
}

each_size = pytest.mark.parametrize("d", range(2, 7))


@each_machine
@each_size
def test_components_are_those_of_the_papers(name: str, d: int) -> None:
    bound, sum_to_zero, own, other, relative = TABLE[name]
    machine = MACHINES[name]
    assert (machine.bound, machine.sum_to_zero) == (bound, sum_to_zero)
    table = machine.table(d)
    nu = table.dense()
    for y in range(d):
        expected = {}
        if own is not None:
            expected[tuple(np.eye(d)[y])] = own(d)
        if other is not None:
            for p in set(range(d)) - {y}:
                row = (np.eye(d)[y] if relative else 0.0) - np.eye(d)[p]
                expected[tuple(row)] = other(d)
        found = {tuple(nu[y, p]): float(table.target[y, p]) for p in range(table.n_components[y])}
        assert found == pytest.approx(expected)


@each_machine
@each_size
def test_coupling_is_the_projected_gram_matrix_of_the_margins(name: str, d: int) -> None:
    machine = MACHINES[name]
    nu = machine.table(d).dense()
    projection = np.eye(d) - (np.ones((d, d)) / d if machine.sum_to_zero else 0.0)
    coupling = coupling_matrix(machine, d)
    for y in range(d):
        for z in range(d):
            np.testing.assert_allclose(coupling[y, :, z, :], nu[y] @ projection @ nu[z].T, atol=1e-15)


@each_machine
@each_size
def test_structure_reproduces_the_coupling_within_an_example(name: str, d: int) -> None:
    machine = MACHINES[name]
    structure, coupling = derive_structure(machine, d), coupling_matrix(machine, d)
    assert structure.structured
    for y, n in enumerate(machine.table(d).n_components):
        w = structure.weight[y, :n]
        form = np.diag(structure.private_value[y, :n] ** 2) + structure.sigma[y] * np.outer(w, w)
        np.testing.assert_allclose(form, coupling[y, :n, y, :n], atol=1e-15)


@each_machine
def test_margins_and_coefficients_are_adjoint(name: str) -> None:
    rng = np.random.default_rng(0)
    y = np.array([0, 1, 2, 3, 1], dtype=np.int64)
    machine = MACHINES[name]
    a = rng.uniform(size=(5, machine.table(4).class1.shape[1]))
    scores = rng.normal(size=(5, 4))
    if machine.sum_to_zero:
        scores -= scores.mean(axis=1, keepdims=True)
    beta = coefficients(machine, a, y, 4)
    assert np.sum(beta * scores) == pytest.approx(np.sum(a * margins(machine, scores, y)))


@pytest.mark.parametrize("machine", own_machines(), ids=lambda machine: machine.name)
@pytest.mark.parametrize("loss", list(Loss), ids=lambda loss: loss.value)
def test_own_machine_is_trained_to_its_optimum(machine: Machine, loss: Loss) -> None:
    X, y = draw_data(5, 18, 3)
    problem = make_problem(X, y, machine, C=2.0, loss=loss, bias=Bias.REGULARIZED)
    assert problem.structure.structured == (not machine.name.startswith(("ring", "uneven-zero")))
    dual, _ = solve_dual_densely(problem)
    for solver in solvers_for(machine):
        if solver in (SolverChoice.WHOLE_EXAMPLE, SolverChoice.TWO_LEVEL):  # represented by SEMI_GREEDY
            continue
        solution = solve(problem, SolverOptions(solver=solver, tol=1e-7, precision=Precision.FLOAT64))
        assert solution.report.stop_reason is StopReason.CONVERGED
        assert solution.state.scores is not None
        reached = evaluate(problem, solution.state.amounts, solution.state.scores)
        assert reached.dual == pytest.approx(dual, rel=1e-6)
    clf = SVC(multi_class=machine, C=2.0, loss=loss.value, bias="regularized", gamma=0.5, tol=1e-6).fit(X, y)
    assert clf.certificate_.optimal
    assert verify(clf, X, y).optimal
    assert clf.certificate_.dual == pytest.approx(dual, rel=1e-5)


def test_unstructured_machine_refuses_whole_examples() -> None:
    ring = next(machine for machine in own_machines() if machine.name == "ring")
    X, y = draw_data(5, 18, 3)
    with pytest.raises(ValueError, match=r"solver='whole-example' cannot train the machine 'ring'.*use solver='s2do'"):
        SVC(multi_class=ring, solver="whole-example").fit(X, y)


def test_costs_move_the_decision() -> None:
    X, y = draw_data(8, 60, 3)
    fair = SVC(multi_class="ww").fit(X, y).predict(X)
    cost = np.full((3, 3), 0.2)
    cost[0, 1:] = 10.0  # taking class 0 for another one is dear
    careful = SVC(multi_class=Machine("careful", Bound.BOX, False, ComponentTable.relative(3, cost))).fit(X, y)
    assert np.sum(careful.predict(X) == 0) > np.sum(fair == 0)


def test_aliases_and_machines_are_found() -> None:
    assert find_machine("ovr") is MACHINES["ova"]
    assert find_machine("crammer_singer") is MACHINES["cs"]
    assert find_machine(MACHINES["ww"]) is MACHINES["ww"]


def test_absolute_without_any_component() -> None:
    with pytest.raises(ValueError, match=r"own=None and others=None leave no component; give a target"):
        ComponentTable.absolute(3)


def test_from_dense_with_wrong_shapes() -> None:
    with pytest.raises(ValueError, match=r"nu has shape \(2, 1, 3\) and target \(2, 1\); nu must be \(d, n_comp"):
        ComponentTable.from_dense(np.zeros((2, 1, 3)), np.zeros((2, 1)))


def test_from_dense_with_nan() -> None:
    with pytest.raises(ValueError, match=r"nu or target holds a value that is not finite"):
        ComponentTable.from_dense(np.full((2, 1, 2), np.nan), np.zeros((2, 1)))


def test_from_dense_with_three_classes_in_a_margin() -> None:
    with pytest.raises(ValueError, match=r"mentions 3 classes; one or two are allowed, so split it up"):
        ComponentTable.from_dense(np.ones((3, 1, 3)), np.ones((3, 1)))


def test_from_dense_with_a_class_without_margin() -> None:
    nu = np.zeros((2, 1, 2))
    nu[0, 0, 0] = 1.0
    with pytest.raises(ValueError, match=r"Every class needs a component with an entry in nu"):
        ComponentTable.from_dense(nu, np.ones((2, 1)))


def test_from_dense_with_an_empty_margin_first() -> None:
    nu = np.zeros((2, 2, 2))
    nu[:, 1, 0] = 1.0
    with pytest.raises(ValueError, match=r"empty ones must come last"):
        ComponentTable.from_dense(nu, np.ones((2, 2)))


def test_machine_for_another_number_of_classes() -> None:
    machine = Machine("three", Bound.BOX, False, ComponentTable.relative(3, 1.0))
    with pytest.raises(ValueError, match=r"The machine 'three' is defined for 3 classes, y has 4; build its Component"):
        machine.table(4)


@pytest.mark.parametrize("choice", ["svm", None, 3])
def test_unknown_machine(choice: object) -> None:
    with pytest.raises(
        ValueError, match=r"multi_class=.* is not a machine; choose 'ovo', 'dag', one of \['adm'.*Machine"
    ):
        find_machine(choice)  # type: ignore[arg-type]


def test_schemes_are_not_machines() -> None:
    assert [find_scheme(choice) for choice in ("ovo", "dag")] == ["ovo", "dag"]
    assert find_scheme("ovr") is MACHINES["ova"]
    assert not {"ovo", "dag"} & set(MACHINES)
