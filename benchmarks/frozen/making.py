"""Draws the problems and certifies their optima: our fit at a small tolerance, compared with a quadratic programming
solver.

Machines, kernels, losses and bias rules are spread evenly, numbers are random. What cannot be certified is drawn
again.
"""

from __future__ import annotations

import collections
import itertools
import warnings
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from benchmarks.check.cases import KERNELS, MACHINES, Case, draw_data, draw_kernel
from benchmarks.check.formulas import EPSILON, Array, Kernel
from benchmarks.check.judging import judge, numbers_of, parts_of
from benchmarks.check.oracle import best_dual
from benchmarks.frozen.problems import TOL, Optimum, Problem

APART = 1e-8  # relative: as far as our bounds and the other solver's value may be apart
MOST_ROWS, MOST_FEATURES, MOST_CLASSES = 40, 6, 5
INDEPENDENT_ROWS = 9  # of sigmoid kernels, which are positive definite where rows are independent and gamma is small
ATTEMPTS = 200

Refusals = collections.Counter[str]


def make_problems(seed: int, count: int, refusals: Refusals) -> Iterator[Problem]:
    """Yield certified problems; ``refusals`` counts why others were drawn again."""
    rng = np.random.default_rng(seed)
    for number, combination in zip(range(count), _combinations(rng), strict=False):
        for _attempt in range(ATTEMPTS):
            case = _draw(rng, str(number), *combination)
            problem = case if isinstance(case, str) else certify(case)
            if isinstance(problem, Problem):
                yield problem
                break
            refusals[problem] += 1
        else:
            raise RuntimeError(f"None of {ATTEMPTS} problems of {combination} could be certified: {dict(refusals)}")


def _combinations(rng: np.random.Generator) -> Iterator[tuple[str, str, str, str]]:
    """Go round all pairs of machine and kernel, each time with other losses and bias rules."""
    rules = list(itertools.product(("hinge", "squared_hinge"), ("none", "regularized", "exact")))
    pairs = list(itertools.product(MACHINES, KERNELS))
    orders = [rng.permutation(len(rules)) for _ in pairs]
    for turn in itertools.count():
        for (machine, kernel), order in zip(pairs, orders, strict=True):
            loss, bias = rules[order[turn % len(rules)]]
            # The squared hinge is refused with kernels that are not known to be positive semi-definite.
            yield machine, kernel, "hinge" if kernel == "sigmoid" else loss, bias


def _draw(rng: np.random.Generator, name: str, machine: str, kernel: str, loss: str, bias: str) -> Case | str:
    """Return a case, or the reason why these numbers do not suit this set."""
    X, y = draw_data(rng)
    if len(y) > MOST_ROWS or X.shape[1] > MOST_FEATURES or y.max() >= MOST_CLASSES:
        return "too large"
    numbers = replace(draw_kernel(rng, linear=False), name=kernel)
    if kernel == "sigmoid":
        y = np.concatenate([np.arange(y.max() + 1), y])[:INDEPENDENT_ROWS]
        X = rng.normal(size=(len(y), INDEPENDENT_ROWS)) + y[:, None]
        numbers = replace(numbers, gamma=numbers.gamma / 30)
    numbers = replace(numbers, gamma=_short(numbers.gamma), coef0=abs(numbers.coef0) if kernel == "poly" else 0.0)
    X = X.astype(np.float32).astype(np.float64)
    if kernel == "precomputed":
        X = _given(X, numbers)
    K = numbers.matrix(X)[0].astype(np.float64)
    if np.linalg.eigvalsh(K).min() < -64 * EPSILON * len(y) * np.abs(K).max():
        return "indefinite"
    weighted = rng.uniform() < 0.3
    return Case(
        name=name,
        X=X,
        y=y,
        weight=np.round(rng.uniform(0.2, 3.0, len(y)), 2) if weighted else None,
        machine=machine,
        loss=loss,
        bias=bias,
        kernel=numbers,
        C=_short(10 ** rng.uniform(-2, 3)),
        tol=TOL,
        solver="auto",
        storage="dense64",
        linear=False,
        extreme=False,
    )


def _short(value: float) -> float:
    return float(f"{value:.3g}")


def _given(X: Array, numbers: Kernel) -> Array:
    """Return an rbf kernel matrix in float32; its diagonal is raised by the rounding of the eigenvalues."""
    K = replace(numbers, name="rbf").matrix(X)[0].astype(np.float64) + 2.0**-10 * np.eye(len(X))
    return K.astype(np.float32).astype(np.float64)


def certify(case: Case) -> Problem | str:
    """Return the problem with its optima, or the reason why they are uncertain."""
    clf = case.estimator()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clf.fit(case.stored(), case.y, sample_weight=case.weight)
    if not clf.certificate_.optimal:
        return f"{clf.certificate_.stop_reason} at tol={TOL:g}"
    complaints = judge(clf, case)
    if complaints:
        raise RuntimeError(f"{case}: {complaints}")
    # Sparse rows have the larger errors; the bound of rounding is to hold for every format.
    K, error = case.kernel.matrix(case.X, by_norms=case.kernel.name != "precomputed")
    constant = 1 if case.bias == "regularized" else 0
    optima = []
    for part in parts_of(clf, case):
        block = np.ix_(part.rows, part.rows)
        ours = numbers_of(part, K[block], error[block] + EPSILON * np.abs(K[block]), constant, case)
        found = best_dual(part.dual, K[block] + constant, exact_bias=case.bias == "exact")
        if found is None:
            return "no answer of the other solver"
        optimum = Optimum(ours.dual, ours.primal, (0.5 if part.halved else 1.0) * found[0], ours.objective_error)
        if not optimum.apart <= APART:
            return f"values more than {APART:g} apart"
        optima.append(optimum)
    return Problem(case, tuple(optima))
