"""Random problems: every machine, loss, bias, kernel, solver and form of data, ordinary ones and extreme ones.

A case is made from two numbers (seed, index), so that any one can be repeated alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks.check.formulas import SIMPLEX, Array, Extended, Kernel
from multimargin import SVC, Bound, ComponentTable, LinearSVC, Machine

MACHINES = ("ovo", "dag", "ova", "ww", "cs", "llw", "adm", "ats", "atm", "rm", "mmr", "cost", "cost-simplex")
KERNELS = ("linear", "rbf", "poly", "sigmoid", "laplacian", "precomputed")
STORAGES = ("dense64", "dense32", "csr64", "csr32")
PAIRS_OF_VARIABLES = ("auto", "maximum-gain", "most-violating-pair")
ONE_LEVEL = ("auto", "two-level", "smo", "s2do", "working-set", "whole-example", "semi-greedy", "frank-wolfe")
LIMIT = 1.5  # seconds for a solver of the literature that was chosen by name: some are very slow


@dataclass(frozen=True)
class Case:
    """A problem with all parameters of its fit."""

    name: str
    X: Array  # float64; what the storage holds, exactly
    y: Array
    weight: Array | None
    machine: str
    loss: str
    bias: str
    kernel: Kernel
    C: float
    tol: float
    solver: str
    storage: str
    linear: bool
    extreme: bool

    @cached_property
    def bounds(self) -> Array:
        """The bound of each example, as the documentation has it: C times its weight."""
        weight = np.ones(len(self.y)) if self.weight is None else self.weight
        return np.asarray(self.C * weight, dtype=Extended)

    @cached_property
    def cost(self) -> Array | None:
        """Targets of the cost machines, [y, p]: 1 + |y - p| / 2."""
        if not self.machine.startswith("cost"):
            return None
        codes = np.arange(len(np.unique(self.y)))
        return np.where(codes[:, None] == codes, 0.0, 1.0 + np.abs(codes[:, None] - codes) / 2)

    def stored(self) -> Any:
        X = self.X.astype(np.float32 if self.storage.endswith("32") else np.float64)
        if self.storage.startswith("fortran"):
            return np.asfortranarray(X)
        return sparse.csr_array(X) if self.storage.startswith("csr") else X

    def estimator(self) -> Any:
        machine: Any = self.machine
        if self.cost is not None:
            bound = Bound.SIMPLEX if self.machine.endswith("simplex") else Bound.BOX
            machine = Machine(self.machine, bound, False, ComponentTable.relative(len(self.cost), self.cost))
        shared: dict[str, Any] = {
            "C": self.C,
            "multi_class": machine,
            "loss": self.loss,
            "bias": self.bias,
            "tol": self.tol,
        }
        limit = None if self.solver == "auto" else LIMIT
        if self.linear:
            return LinearSVC(**shared, max_time=limit)
        k = self.kernel
        numbers: dict[str, Any] = {"kernel": k.name, "gamma": k.gamma, "degree": k.degree, "coef0": k.coef0}
        return SVC(**shared, **numbers, solver=self.solver, max_time=limit)

    def __str__(self) -> str:
        k = self.kernel
        kind = "LinearSVC" if self.linear else f"SVC {k.name} gamma={k.gamma:g} degree={k.degree} coef0={k.coef0:g}"
        weights = "" if self.weight is None else " weighted"
        return (
            f"{self.name}: {kind} {self.machine} {self.loss} bias={self.bias} C={self.C:g} tol={self.tol:g} "
            f"solver={self.solver} {self.storage} {self.X.shape[0]}x{self.X.shape[1]}, "
            f"{len(np.unique(self.y))} classes{weights}{' extreme' if self.extreme else ''}"
        )


def make_case(seed: int, index: int, share_of_extremes: float = 0.2) -> Case:
    """Return problem number ``index`` of a seed."""
    rng = np.random.default_rng([seed, index])
    extreme = bool(rng.uniform() < share_of_extremes)
    X, y = draw_data(rng)
    linear = bool(rng.uniform() < 0.15)
    machine = str(rng.choice(MACHINES))
    bias = str(rng.choice(["none", "regularized", "exact"]))
    kernel = draw_kernel(rng, linear)
    # An indefinite kernel is refused with the squared hinge, which may have no solution there.
    loss = str(rng.choice(["hinge", "squared_hinge"], p=[0.6, 0.4])) if kernel.semidefinite else "hinge"
    weight = rng.uniform(0.2, 3.0, len(y)) if rng.uniform() < 0.3 else None
    case = Case(
        name=f"{seed}/{index}",
        X=X,
        y=y,
        weight=weight,
        machine=machine,
        loss=loss,
        bias=bias,
        kernel=kernel,
        C=float(10 ** rng.uniform(-3, 4)),
        tol=float(10 ** rng.uniform(-6, -2)),
        solver=_draw_solver(rng, machine, bias, loss if kernel.semidefinite else None),
        storage=str(rng.choice(STORAGES)),
        linear=linear,
        extreme=extreme,
    )
    if extreme:
        case = _stretch(case, rng)
    return _settle(case)


def draw_data(rng: np.random.Generator) -> tuple[Array, Array]:
    """Clouds that overlap more or less, with noise, duplicates, zeros or columns of other scales now and then."""
    d = int(rng.integers(2, 4 if rng.uniform() < 0.5 else 11))
    n = int(rng.integers(2 * d, 40)) if rng.uniform() < 0.6 else int(rng.integers(40, 300))
    n_features = int(rng.integers(1, 5 if rng.uniform() < 0.5 else 21))
    y = np.concatenate([np.arange(d), rng.integers(0, d, n - d)])
    X = rng.normal(size=(d, n_features))[y] * rng.uniform(0, 4) + rng.normal(size=(n, n_features))
    if rng.uniform() < 0.3:
        noisy = np.flatnonzero(rng.uniform(size=n) < 0.2)
        noisy = noisy[noisy >= d]
        y[noisy] = rng.integers(0, d, len(noisy))
    if rng.uniform() < 0.2:
        X = X[rng.integers(0, max(2, n // 3), n)]
    if rng.uniform() < 0.2:
        X = np.round(X)
    if rng.uniform() < 0.2:
        X = np.where(rng.uniform(size=X.shape) < 0.5, 0.0, X)
    if rng.uniform() < 0.15:
        X[:, 0] *= 10 ** rng.uniform(-3, 3)
    order = rng.permutation(n)
    return X[order], y[order]


def draw_kernel(rng: np.random.Generator, linear: bool) -> Kernel:
    name = "linear" if linear else str(rng.choice(KERNELS))
    gamma = float(10 ** rng.uniform(-2.5, 1)) if name in ("rbf", "laplacian") else float(10 ** rng.uniform(-2, 0))
    return Kernel(name, gamma, int(rng.integers(2, 5)), float(rng.choice([0.0, 1.0, -0.5])))


def _draw_solver(rng: np.random.Generator, machine: str, bias: str, loss: str | None) -> str:
    """A solver that applies; ``loss`` is None for an indefinite kernel."""
    if rng.uniform() < 0.6:
        return "auto"
    return str(rng.choice(solvers_of(machine, bias, loss)))


def solvers_of(machine: str, bias: str, loss: str | None) -> list[str]:
    """Return the names of SVC's solvers that apply; ``loss`` is None for an indefinite kernel."""
    if bias == "exact" and machine in ("ovo", "dag", "ova"):
        return list(PAIRS_OF_VARIABLES)
    if loss is None:
        return ["s2do", "smo"]
    solvers = [
        name for name in ONE_LEVEL if name != "frank-wolfe" or (loss == "hinge" and machine not in ("ovo", "dag"))
    ]
    if machine in SIMPLEX:
        solvers.remove("working-set")
    return solvers


def _stretch(case: Case, rng: np.random.Generator) -> Case:
    """One or two extreme numbers: scales, offsets, C, gamma, weights."""
    for what in rng.choice(
        ["scale", "column", "offset", "C", "gamma", "weights"], size=rng.integers(1, 3), replace=False
    ):
        if what == "scale":
            exponent = rng.uniform(-300, 300) if rng.uniform() < 0.5 else rng.uniform(-20, 20)
            case = replace(case, X=case.X * 10.0**exponent)
        elif what == "column":
            X = case.X.copy()
            X[:, int(rng.integers(X.shape[1]))] *= 10.0 ** rng.uniform(-30, 30)
            case = replace(case, X=X)
        elif what == "offset":
            case = replace(case, X=case.X + 10.0 ** rng.uniform(0, 10))
        elif what == "C":
            case = replace(case, C=float(10.0 ** rng.uniform(-12, 12)))
        elif what == "gamma":
            case = replace(case, kernel=replace(case.kernel, gamma=float(10.0 ** rng.uniform(-12, 12))))
        else:
            case = replace(case, weight=10.0 ** rng.uniform(-12, 12, len(case.y)))
    return case


def _settle(case: Case) -> Case:
    """X as the storage holds it; for a precomputed kernel the matrix of an rbf kernel or of products."""
    if case.kernel.name == "precomputed":
        name = "rbf" if len(case.y) % 2 else "linear"
        with np.errstate(over="ignore", under="ignore"):
            K = replace(case.kernel, name=name).matrix(case.X)[0].astype(np.float64)
        return replace(case, X=(K + K.T) / 2, storage="dense64")
    if case.storage.endswith("32"):
        with np.errstate(over="ignore", under="ignore"):
            return replace(case, X=case.X.astype(np.float32).astype(np.float64))
    return case
