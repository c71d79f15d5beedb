"""The exact sub-problems of the core in isolation: a whole example, and two variables."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from multimargin import _core
from multimargin._typing import FloatArray
from multimargin.problems.coupling import coupling_matrix, derive_structure
from multimargin.problems.machines import MACHINES, Bound
from multimargin.solvers.reference.algorithms import DenseDual, best_pair_step, snap, violations

MANY = settings(max_examples=150)


@dataclass(frozen=True)
class ExampleCase:
    """One example of one class, with random gradient and feasible variables."""

    name: str
    n_classes: int
    y: int
    k: float
    C: float
    squared: bool
    seed: int
    spread: float

    def dual(self) -> tuple[DenseDual, FloatArray, FloatArray]:
        """Return the sub-problem written out densely, the gradient and the variables to start from."""
        rng = np.random.default_rng(self.seed)
        machine = MACHINES[self.name]
        y = self.y % self.n_classes
        n = int(machine.table(self.n_classes).n_components[y])
        simplex = machine.bound is Bound.SIMPLEX
        H = self.k * coupling_matrix(machine, self.n_classes)[y, :n, y, :n]
        if self.squared:
            H = H + (np.ones((n, n)) if simplex else np.eye(n)) / (2 * self.C)
        a = rng.uniform(size=n) * (rng.uniform(size=n) < 0.7)
        a = a / max(1.0, float(a.sum())) if simplex else np.where(rng.uniform(size=n) < 0.2, 1.0, a)
        a = a * self.C
        g = self.spread * rng.normal(size=n)
        cap = np.array([np.inf if self.squared else self.C])
        dual = DenseDual(
            example=np.zeros(n, dtype=np.int64),
            component=np.arange(n),
            v=g + H @ a,
            Q=H,
            C=np.array([self.C]),
            cap=cap,
            simplex=simplex,
        )
        return dual, g, a

    def step(self, g: FloatArray, a: FloatArray) -> FloatArray:
        """Return the variables after the core's step."""
        machine, n = MACHINES[self.name], len(a)
        structure = derive_structure(machine, self.n_classes)
        y = self.y % self.n_classes
        ridge = 1 / (2 * self.C) if self.squared else 0.0
        return np.array(
            _core.example_step(
                _core.Bound.box if machine.bound is Bound.BOX else _core.Bound.simplex,
                g.tolist(),
                a.tolist(),
                (structure.private_value[y, :n] ** 2).tolist(),
                structure.weight[y, :n].tolist(),
                [float(structure.sigma[y]), self.k, np.inf if self.squared else self.C, ridge],
            )
        )


example_cases = st.builds(
    ExampleCase,
    name=st.sampled_from(list(MACHINES)),
    n_classes=st.integers(2, 6),
    y=st.integers(0, 5),
    k=st.one_of(st.just(0.0), st.floats(-10, 3).map(lambda e: float(10**e))),
    C=st.floats(-8, 2).map(lambda e: float(10**e)),
    squared=st.booleans(),
    seed=st.integers(0, 10**6),
    spread=st.sampled_from([0.01, 1.0, 5.0]),
)


@MANY
@given(case=example_cases)
def test_whole_example_meets_its_optimality_conditions(case: ExampleCase) -> None:
    dual, g, a = case.dual()
    x = snap(dual, case.step(g, a))
    assert (x >= 0).all()
    assert (x.sum() if dual.simplex else x.max()) <= dual.cap[0] * (1 + 1e-12)
    scale = max(1.0, float(np.abs(g).max()), float((np.abs(dual.Q) @ (x + a)).max()))
    assert max(violations(dual, dual.gradient(x), x)) <= 1e-10 * scale


@pytest.mark.parametrize("name", ["cs", "adm", "atm"])
@pytest.mark.parametrize("k", [1e-3, 1e-6, 1e-9, 1e-11])
@pytest.mark.parametrize("C", [0.3, 1e-8])
def test_small_curvature_fills_the_simplex_to_its_bound(name: str, k: float, C: float) -> None:
    # The step g/k is huge against C: what is left of C after a cancellation must not pass for slack.
    case = ExampleCase(name, 3, 0, k, C, False, 1, 1.0)
    dual, _, _ = case.dual()
    g = np.linspace(1.0, 0.7, len(dual.v))
    x = case.step(g, np.zeros(len(dual.v)))
    assert x.sum() == pytest.approx(C, rel=1e-12, abs=0.0)
    assert max(violations(dual, g - dual.Q @ x, x)) <= 1e-10


@dataclass(frozen=True)
class Pair:
    """Two variables: g, Q = L L' of a chosen rank, a and the bounds."""

    g: tuple[float, float]
    rows: tuple[tuple[float, float], tuple[float, float]]
    rank: int
    a: tuple[float, float]
    room: tuple[float, float]
    along_null: bool

    def arrays(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        L = np.array(self.rows)
        if self.rank == 1:
            L[1] = 0.0
        Q = L.T @ L if self.rank else np.zeros((2, 2))
        g = np.array(self.g)
        if self.rank == 1 and not self.along_null:
            g = g[0] * L[0]  # orthogonal to the null direction
        a = np.array(self.a)
        return g, Q, a, a + np.array(self.room)


def objective(g: FloatArray, Q: FloatArray, mu: FloatArray) -> float:
    return float(g @ mu - 0.5 * mu @ Q @ mu)


numbers = st.floats(-3, 3).map(lambda x: round(x, 2))
sizes = st.floats(0, 3).map(lambda x: round(x, 2))
finite_pairs = st.builds(
    Pair,
    g=st.tuples(numbers, numbers),
    rows=st.tuples(st.tuples(numbers, numbers), st.tuples(numbers, numbers)),
    rank=st.integers(0, 2),
    a=st.tuples(sizes, sizes),
    room=st.tuples(sizes, sizes),
    along_null=st.booleans(),
)


def core_pair_step(g: FloatArray, Q: FloatArray, a: FloatArray, cap: FloatArray) -> FloatArray:
    return np.array(_core.pair_step([*g, Q[0, 0], Q[1, 1], Q[0, 1], *a, *cap]))


def best_by_search(g: FloatArray, Q: FloatArray, low: FloatArray, high: FloatArray) -> float:
    """The best value on a grid of the rectangle, refined around the best point: needs no case distinction."""
    centre, width = (low + high) / 2, (high - low) / 2
    best = -np.inf
    for _ in range(24):
        steps = np.linspace(-1, 1, 9)
        grid = np.array([centre + width * (s, t) for s in steps for t in steps]).clip(low, high)
        values = grid @ g - 0.5 * np.einsum("ni,ij,nj->n", grid, Q, grid)
        best = max(best, float(values.max()))
        centre, width = grid[int(values.argmax())], width / 2
    return best


@MANY
@given(pair=finite_pairs)
def test_two_variables_reach_the_best_point_of_the_rectangle(pair: Pair) -> None:
    g, Q, a, cap = pair.arrays()
    mu = core_pair_step(g, Q, a, cap)
    assert (mu >= -a - 1e-15).all()
    assert (mu <= cap - a + 1e-15).all()
    scale = 1.0 + float(np.abs(g).sum() + np.abs(Q).sum()) * 9.0
    assert objective(g, Q, mu) >= best_by_search(g, Q, -a, cap - a) - 1e-9 * scale
    assert objective(g, Q, mu) >= objective(g, Q, best_pair_step(g, Q, -a, cap - a)) - 1e-12 * scale


@MANY
@given(pair=finite_pairs, ridge=st.floats(0.01, 10.0), one_bounded=st.booleans())
def test_two_variables_without_upper_bound(pair: Pair, ridge: float, one_bounded: bool) -> None:
    g, Q, a, cap = pair.arrays()
    Q = Q + ridge * np.eye(2)  # the squared hinge: curvature in every direction
    unbounded = np.array([cap[0] if one_bounded else np.inf, np.inf])
    mu = core_pair_step(g, Q, a, unbounded)
    far = np.minimum(unbounded - a, float(np.abs(g).sum()) / ridge + 1.0)  # beyond this nothing is gained
    scale = 1.0 + float(np.abs(mu).max() ** 2 * np.abs(Q).max())
    assert np.isfinite(mu).all()
    assert objective(g, Q, mu) >= best_by_search(g, Q, -a, far) - 1e-9 * scale


def test_unbounded_pair_is_reported_as_infinite() -> None:
    # rank one with null direction (1, 1), along which the objective rises for ever
    mu = core_pair_step(np.array([1.0, 1.0]), np.array([[1.0, -1.0], [-1.0, 1.0]]), np.zeros(2), np.full(2, np.inf))
    assert np.isinf(mu).all()


def test_rank_one_with_the_gradient_in_its_range() -> None:
    # f = (mu1 + mu2) - (mu1 + mu2)^2 / 2: every point with mu1 + mu2 = 1 is optimal
    mu = core_pair_step(np.ones(2), np.ones((2, 2)), np.zeros(2), np.full(2, np.inf))
    assert mu.sum() == pytest.approx(1.0)
    assert (mu >= 0).all()
