"""Shared by tests: small data sets, problems, and an independent quadratic programming solver."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import clarabel
import numpy as np
import pytest
from hypothesis import strategies as st
from scipy import sparse
from sklearn.datasets import make_classification

from multimargin import SVC
from multimargin._typing import DataMatrix, FloatArray, IntArray
from multimargin.kernels.spec import KernelSpec
from multimargin.problems.machines import MACHINES, Bound, ComponentTable, Machine
from multimargin.problems.problem import Bias, DualProblem, Loss
from multimargin.problems.training_set import TrainingSet
from multimargin.solvers.options import PAIR_CHOICES, SolverChoice

RBF = KernelSpec("rbf", gamma=0.5)
KERNELS = (
    KernelSpec("linear"),
    KernelSpec("rbf", gamma=2.0),
    KernelSpec("poly", gamma=0.5, degree=3, coef0=1.0),
    KernelSpec("poly", gamma=1.0, degree=2, coef0=0.0),
    KernelSpec("laplacian", gamma=0.7),
)

STORAGES = ("dense64", "dense32", "csr64-int32", "csr32-int64", "csr32-int32", "csr64-int64")

each_machine = pytest.mark.parametrize("name", list(MACHINES))
each_loss = pytest.mark.parametrize("loss", list(Loss), ids=lambda loss: loss.value)
# The rules without constraints; the exact bias has its own file.
each_bias = pytest.mark.parametrize("bias", [Bias.NONE, Bias.REGULARIZED], ids=lambda bias: bias.value)


def solvers_for(machine: str | Machine) -> list[SolverChoice]:
    """Return the solvers that train a machine without an exact bias."""
    bound = (MACHINES[machine] if isinstance(machine, str) else machine).bound
    left_out = (*PAIR_CHOICES, *([SolverChoice.WORKING_SET] if bound is Bound.SIMPLEX else []))
    return [solver for solver in SolverChoice if solver not in left_out]


# Every machine with each of its solvers.
each_machine_and_solver = pytest.mark.parametrize(
    ("name", "solver"),
    [pytest.param(name, solver, id=f"{name}-{solver.value}") for name in MACHINES for solver in solvers_for(name)],
)


def draw_data(seed: int, n: int, n_classes: int, n_features: int = 2) -> tuple[FloatArray, IntArray]:
    """Return overlapping clouds; every class occurs."""
    rng = np.random.default_rng(seed)
    y = np.concatenate([np.arange(n_classes), rng.integers(0, n_classes, n - n_classes)])
    centres = rng.normal(size=(n_classes, n_features))
    X = centres[y] + rng.normal(size=(n, n_features))
    return X, rng.permutation(y).astype(np.int64)


def noisy_classes(n: int = 240, n_classes: int = 3, seed: int = 0) -> tuple[FloatArray, IntArray]:
    """Return classes that overlap, of different sizes, without equal rows."""
    X, y = make_classification(
        n, 6, n_informative=4, n_classes=n_classes, flip_y=0.2, n_clusters_per_class=1, random_state=seed
    )
    return X, y


def make_problem(
    X: FloatArray,
    y: np.ndarray,
    machine: str | Machine,
    *,
    C: float = 1.0,
    kernel: KernelSpec = RBF,
    loss: Loss = Loss.HINGE,
    bias: Bias = Bias.NONE,
    weight: FloatArray | None = None,
) -> DualProblem:
    data = TrainingSet.from_arrays(np.ascontiguousarray(X), y, C=C, sample_weight=weight)
    return DualProblem(data, MACHINES[machine] if isinstance(machine, str) else machine, kernel, loss, bias)


def own_machines() -> list[Machine]:
    """Return machines for three classes that no paper has; some have an example Hessian without a simple form."""
    cost = np.array([[0.0, 1.0, 3.0], [2.0, 0.0, 1.0], [4.0, 1.0, 0.0]])
    by_cost = ComponentTable.relative(3, cost)
    nu, target = np.zeros((3, 3, 3)), np.zeros((3, 3))
    for y in range(3):  # a class with one margin, one with two, one with three: of different lengths
        others = [p for p in range(3) if p != y][: y + 1]
        for position, p in enumerate(others):
            nu[y, position, y], nu[y, position, p], target[y, position] = 1.0, -0.5, 1.0 + y
    ring = np.zeros((3, 3, 3))  # all three differences for every class: they share more than one class
    for y in range(3):
        a, b = (p for p in range(3) if p != y)
        ring[y, 0, y], ring[y, 0, a] = 1.0, -1.0
        ring[y, 1, y], ring[y, 1, b] = 1.0, -1.0
        ring[y, 2, a], ring[y, 2, b] = -1.0, 1.0
    return [
        Machine("cost", Bound.BOX, False, by_cost),
        Machine("cost-simplex", Bound.SIMPLEX, False, by_cost),
        Machine("uneven", Bound.BOX, False, ComponentTable.from_dense(nu, target)),
        Machine("uneven-zero", Bound.BOX, True, ComponentTable.from_dense(nu, target)),
        Machine("ring", Bound.BOX, False, ComponentTable.from_dense(ring, np.tile([2.0, 2.0, 0.1], (3, 1)))),
        Machine("ring-simplex", Bound.SIMPLEX, True, ComponentTable.from_dense(ring, np.ones((3, 3)))),
    ]


@dataclass(frozen=True)
class Case:
    """A small training set with everything but machine, loss and bias; ``repr`` is all that reproduces it."""

    seed: int
    n: int
    n_classes: int
    n_features: int
    C: float
    kernel: KernelSpec
    weighted: bool

    def problem(self, machine: str | Machine, loss: Loss, bias: Bias) -> DualProblem:
        X, y = draw_data(self.seed, self.n, self.n_classes, self.n_features)
        X = X / np.linalg.norm(X, axis=1).max()  # powers of large values need millions of small steps
        weight = np.random.default_rng(self.seed).uniform(0.2, 3.0, self.n) if self.weighted else None
        return make_problem(X, y, machine, C=self.C, kernel=self.kernel, loss=loss, bias=bias, weight=weight)


def cases(
    *, n: tuple[int, int] = (5, 20), n_classes: tuple[int, int] = (2, 4), log10_C: tuple[float, float] = (-2, 2)
) -> st.SearchStrategy[Case]:
    """Return small training sets."""
    return st.builds(
        Case,
        seed=st.integers(0, 10**6),
        n=st.integers(*n),
        n_classes=st.integers(*n_classes),
        n_features=st.integers(1, 3),
        C=st.floats(*log10_C).map(lambda exponent: float(10**exponent)),
        kernel=st.sampled_from(KERNELS),
        weighted=st.booleans(),
    )


def beta_map(problem: DualProblem) -> tuple[FloatArray, FloatArray, IntArray]:
    """Return the matrix of a -> beta (n_examples * n_classes rows), the targets, and each variable's example."""
    d, table = problem.n_classes, problem.machine.table(problem.n_classes)
    projection = np.eye(d) - (1.0 / d if problem.machine.sum_to_zero else 0.0)
    columns, targets, examples = [], [], []
    for i, y in enumerate(problem.data.y):
        for p in range(int(table.n_components[y])):
            beta = np.zeros((problem.n_examples, d))
            beta[i] = projection @ table.dense()[y, p]
            columns.append(beta.ravel())
            targets.append(float(table.target[y, p]))
            examples.append(i)
    return np.array(columns).T, np.array(targets), np.array(examples, dtype=np.int64)


def duals(clf: SVC) -> list[float]:
    """Return the dual objectives of a fit: of a machine made of several problems, of each."""
    return [part.dual for part in clf.certificate_.parts or (clf.certificate_,)]


def exact_scores(
    name: str | Machine, X: FloatArray, y: np.ndarray, *, at: FloatArray | None = None, **changes: Any
) -> FloatArray:
    """Return the scores at ``at`` (the data, unless given) of a fit that is far more exact than 1e-6."""
    weight = changes.pop("sample_weight", None)
    params: dict[str, Any] = {"gamma": 0.5, "C": 2.0, "tol": 1e-9} | changes
    clf = SVC(multi_class=name, **params).fit(X, y, weight)
    assert clf.certificate_.optimal
    result: FloatArray = clf.decision_function(X if at is None else at)
    return result


def stored(X: FloatArray, storage: str) -> DataMatrix:
    """Return X, rounded to float32, in one of the forms that the core reads."""
    value: Any = np.float32 if "32" in storage.split("-", maxsplit=1)[0] else np.float64
    rounded = np.ascontiguousarray(X.astype(np.float32).astype(value))
    if storage.startswith("dense"):
        return rounded
    rows = sparse.csr_array(rounded)
    integer: Any = np.int32 if storage.endswith("int32") else np.int64
    rows.indices, rows.indptr = rows.indices.astype(integer), rows.indptr.astype(integer)
    return rows


def thin_out(X: FloatArray, seed: int = 0) -> FloatArray:
    """Return X with zeros, among them an empty row."""
    kept = np.where(np.random.default_rng(seed).uniform(size=X.shape) < 0.4, 0.0, X)
    kept[3] = 0.0
    return kept


class OracleError(AssertionError):
    """The independent solver has no answer of the precision that a comparison needs."""


def run_clarabel(P: FloatArray, q: FloatArray, A: FloatArray, b: FloatArray, n_equal: int = 0) -> FloatArray:
    """Return the x that minimises x'Px/2 + q'x under Ax <= b (the first rows equal), as exactly as it can be had."""
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    cones = [clarabel.ZeroConeT(n_equal)] if n_equal else []
    cones.append(clarabel.NonnegativeConeT(len(b) - n_equal))
    # Where the numbers do not allow the first, clarabel gives up and says so.
    for tol in (1e-12, 1e-11, 1e-10, 1e-9, 1e-8):
        settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = tol
        solver = clarabel.DefaultSolver(sparse.csc_matrix(np.triu(P)), q, sparse.csc_matrix(A), b, cones, settings)
        solution = solver.solve()
        if solution.status == clarabel.SolverStatus.Solved:
            return np.array(solution.x)
    raise OracleError(f"clarabel: {solution.status}")


def solve_dual_densely(problem: DualProblem) -> tuple[float, FloatArray]:
    """Return the optimal value of the dual and the scores F, by clarabel on the dense quadratic program."""
    B, targets, examples = beta_map(problem)
    X = problem.data.X[problem.data.rows]
    constant = 1.0 if problem.bias is Bias.REGULARIZED else 0.0  # b^2/2 is the weight of a constant feature
    K = np.kron(problem.kernel.gram(X, X) + constant, np.eye(problem.n_classes))
    n = len(targets)
    C = problem.data.C
    Q = B.T @ K @ B
    member = (examples[None, :] == np.arange(problem.n_examples)[:, None]).astype(np.float64)
    simplex = problem.machine.bound is Bound.SIMPLEX
    if problem.loss is Loss.SQUARED_HINGE:
        used = member if simplex else np.eye(n)
        price = C if simplex else C[examples]
        Q = Q + used.T @ (used / (2 * price[:, None]))
        A, b = -np.eye(n), np.zeros(n)
    else:
        A = np.vstack([-np.eye(n), member if simplex else np.eye(n)])
        b = np.concatenate([np.zeros(n), C if simplex else C[examples]])
    n_equal = 0
    if problem.bias is Bias.EXACT:  # sum_i beta_ic = 0; rows that follow from others would make the system singular
        sums = B.reshape(problem.n_examples, problem.n_classes, n).sum(axis=0)
        values, rows = np.linalg.svd(sums, full_matrices=False)[1:]
        sums = rows[values > 1e-9 * values.max()]
        n_equal = len(sums)
        A, b = np.vstack([sums, A]), np.concatenate([np.zeros(n_equal), b])
    size = float(C.max())  # in units of C all numbers are of one size
    a = size * np.maximum(run_clarabel(size * Q, -targets, A, b / size, n_equal), 0.0)
    return float(targets @ a - 0.5 * a @ Q @ a), (K @ B @ a).reshape(problem.n_examples, -1)


def random_amounts(problem: DualProblem, rng: np.random.Generator) -> FloatArray:
    """Return feasible dual variables, some of them at their bounds."""
    a = rng.uniform(0.0, 1.0, (problem.n_examples, problem.n_components))
    a[rng.uniform(size=a.shape) < 0.3] = 0.0
    if problem.machine.bound is Bound.SIMPLEX:
        a /= np.maximum(a.sum(axis=1, keepdims=True), 1.0)
    else:
        a[rng.uniform(size=a.shape) < 0.2] = 1.0
    return np.where(problem.mask, a * problem.data.C[:, None], 0.0)
