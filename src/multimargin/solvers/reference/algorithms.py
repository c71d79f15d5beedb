"""The algorithms in plain NumPy: slow, obvious, an executable specification and the oracle of the tests.

Writes a problem out as the dense quadratic program of DGI11 (4) and solves it by loops that read beside
the paper. Knows no cache, no shrinking and no C++; a hundred dual variables are plenty for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from multimargin._typing import FloatArray, IntArray
from multimargin.problems.machines import Bound
from multimargin.problems.problem import DualProblem, Loss

METHODS = ("smo", "s2do", "pair", "whole-example")

CURVATURE_FLOOR = 1e-12  # stands for a curvature that is not positive, as in LIBSVM
RANK_TOLERANCE = 1e-12  # a determinant below this share of Q_aa Q_bb is rounding: the pair has rank one
BOUND_TOLERANCE = 1e-12  # a variable within this share of C_i of a bound is put on it
SLACK = -1  # the name of the slack among the variables of one example


@dataclass(frozen=True, eq=False)
class DenseDual:
    r"""Maximise :math:`f(a) = v'a - \frac12 a'Qa` (DGI11 (4)), :math:`a \ge 0`, at most ``cap``.

    The variables are ordered by class, component and example, and only those that exist are listed.

    Parameters
    ----------
    example, component : ndarray of shape (n_variables,)
        Which variable this is: a[example, component].
    v : ndarray of shape (n_variables,)
        The target margins.
    Q : ndarray of shape (n_variables, n_variables)
        Kernel value times coupling of the margins, plus the curvature of the squared hinge.
    C, cap : ndarray of shape (n_examples,)
        The price of a short margin, and what bounds the variables: C, or infinity for the squared hinge.
    simplex : bool
        Whether ``cap`` bounds the sum of an example's variables instead of each.
    """

    example: IntArray
    component: IntArray
    v: FloatArray
    Q: FloatArray
    C: FloatArray
    cap: FloatArray
    simplex: bool

    def gradient(self, a: FloatArray) -> FloatArray:
        """Return v - Q a."""
        gradient: FloatArray = self.v - self.Q @ a
        return gradient

    def of_example(self, i: int) -> IntArray:
        return np.flatnonzero(self.example == i)

    def flatten(self, amounts: FloatArray) -> FloatArray:
        return amounts[self.example, self.component]


@dataclass(frozen=True, eq=False)
class ReferenceSolution:
    """The dual variables reached (n_examples, n_components), the steps taken, and whether tol was met."""

    amounts: FloatArray
    n_steps: int
    converged: bool


def gram_matrix(problem: DualProblem) -> FloatArray:
    """Return the kernel matrix of the examples, the constant of a regularised bias included (HL02 (10))."""
    X = problem.data.X[problem.data.rows]
    return problem.trained_kernel.gram(X, X)


def densify(problem: DualProblem) -> DenseDual:
    """Write the problem out as one dense quadratic program."""
    if not np.isfinite(problem.data.C).all():
        raise ValueError("C=inf is not for the reference; use a large finite C in place of the hard margin.")
    table, y = problem.machine.table(problem.n_classes), problem.data.y
    variables = sorted((int(y[i]), p, i) for i in range(len(y)) for p in range(int(table.n_components[y[i]])))
    classes, component, example = np.array(variables, dtype=np.int64).T
    nu = table.dense()[classes, component]  # one row of margins per variable
    projected = nu - nu.mean(axis=1, keepdims=True) if problem.machine.sum_to_zero else nu
    Q = gram_matrix(problem)[np.ix_(example, example)] * (projected @ nu.T)
    simplex = problem.machine.bound is Bound.SIMPLEX
    C = problem.data.C
    if problem.loss is Loss.SQUARED_HINGE:
        same = example[:, None] == example[None, :] if simplex else np.eye(len(example), dtype=bool)
        Q = Q + same / (2 * C[example])
        cap = np.full(len(C), np.inf)
    else:
        cap = C
    return DenseDual(example, component, table.target[classes, component], Q, C, cap, simplex)


def gradient(problem: DualProblem, amounts: FloatArray) -> FloatArray:
    """Return the derivative of the dual by each variable, shape (n_examples, n_components)."""
    dual = densify(problem)
    result = np.zeros(amounts.shape)
    result[dual.example, dual.component] = dual.gradient(dual.flatten(amounts))
    return result


def violation(problem: DualProblem, amounts: FloatArray) -> float:
    """Return the largest KKT violation: of the projected gradient (box), or by HL02 (21) (simplex)."""
    dual = densify(problem)
    a = dual.flatten(amounts)
    return max(violations(dual, dual.gradient(a), a))


def objectives(problem: DualProblem, amounts: FloatArray) -> tuple[float, float]:
    """Return primal and dual objective; the primal one from the scores, by the definition of the loss."""
    dual = densify(problem)
    a = dual.flatten(amounts)
    machine = problem.machine
    nu = machine.table(problem.n_classes).dense()
    beta = np.zeros((problem.n_examples, problem.n_classes))
    for i, p, value in zip(dual.example, dual.component, a, strict=True):
        beta[i] += value * nu[problem.data.y[i], p]
    if machine.sum_to_zero:
        beta -= beta.mean(axis=1, keepdims=True)
    scores = gram_matrix(problem) @ beta
    primal = 0.5 * float(np.sum(beta * scores))
    for i in range(problem.n_examples):
        shortfalls = [
            max(0.0, float(dual.v[n] - nu[problem.data.y[i], dual.component[n]] @ scores[i]))
            for n in dual.of_example(i)
        ]
        charged = [max(shortfalls)] if dual.simplex else shortfalls
        power = 2 if problem.loss is Loss.SQUARED_HINGE else 1
        primal += float(dual.C[i]) * sum(xi**power for xi in charged)
    return primal, float(dual.v @ a - 0.5 * a @ dual.Q @ a)


def solve_reference(
    problem: DualProblem,
    method: str = "s2do",
    tol: float = 1e-6,
    max_iter: int = 100_000,
    start: FloatArray | None = None,
) -> ReferenceSolution:
    """Solve the problem from feasible amounts ``start`` (n_examples, n_components), or from zero.

    Solves   the dual of ``problem`` to a KKT violation of at most ``tol``.
    Given    ``method``: one variable ("smo"), two ("s2do"), two of one example or its slack ("pair"), all
             of one example ("whole-example"). With a simplex "smo" and "s2do" are "pair": DGI11 4.4.
    Returns  the variables and the number of steps.
    See      DGI11 4.2 to 4.4 and appendix A, HL02 (18) to (21).
    """
    if method not in METHODS:
        raise ValueError(f"method={method!r} is not allowed; choose one of {', '.join(map(repr, METHODS))}.")
    dual = densify(problem)
    if method == "pair" and not dual.simplex:
        raise ValueError(f"method='pair' is for a simplex, the machine {problem.machine.name!r} has a box; use 's2do'.")
    a = np.zeros(len(dual.v)) if start is None else dual.flatten(start)
    n_steps = 0
    while True:
        g = dual.gradient(a)
        each = violations(dual, g, a)
        if max(each) <= tol or n_steps >= max_iter:
            break
        a = _step(dual, method, g, a, each)
        n_steps += 1
    amounts = np.zeros((problem.n_examples, problem.n_components))
    amounts[dual.example, dual.component] = a
    return ReferenceSolution(amounts, n_steps, max(each) <= tol)


def _step(dual: DenseDual, method: str, g: FloatArray, a: FloatArray, each: list[float]) -> FloatArray:
    """Return the variables after one step of the method, those at a bound exactly on it."""
    # The worst example, the first in the order of the variables among equals
    in_order = list(dict.fromkeys(dual.example.tolist()))
    worst = max(in_order, key=lambda i: each[i])
    if method == "whole-example":
        moved = whole_example_step(dual, worst, g, a)
    elif dual.simplex:
        moved = _pair_step(dual, dual.of_example(worst), g, a)
    elif method == "smo":
        moved = _one_variable_step(dual, g, a)
    else:
        moved = two_variable_step(dual, g, a)
    return snap(dual, moved)


def snap(dual: DenseDual, a: FloatArray) -> FloatArray:
    """Put variables that are within rounding of a bound on it."""
    C, cap = dual.C[dual.example], dual.cap[dual.example]
    a = np.where(a <= BOUND_TOLERANCE * C, 0.0, a)
    return np.where(a >= (1 - BOUND_TOLERANCE) * cap, cap, a)


def violations(dual: DenseDual, g: FloatArray, a: FloatArray) -> list[float]:
    """Return the KKT violation of every example."""
    result = []
    for i in range(len(dual.C)):
        members = dual.of_example(i)
        if not dual.simplex:
            result.append(max(_box_violation(g[n], a[n], dual.cap[i]) for n in members))
            continue
        # The slack is a component of gradient 0: it may always rise, and fall while there is some.
        may_rise = [0.0, *(g[n] for n in members)]
        may_fall = [g[n] for n in members if a[n] > 0]
        if _slack(a[members], dual.cap[i]) > 0:
            may_fall.append(0.0)
        result.append(max(0.0, float(max(may_rise) - min(may_fall))))
    return result


def _box_violation(g: float, a: float, cap: float) -> float:
    """The projected gradient of one variable: its slope in the directions that its bounds leave open."""
    if g > 0 and a < cap:
        return float(g)
    if g < 0 and a > 0:
        return float(-g)
    return 0.0


def _slack(a: FloatArray, cap: float) -> float:
    """What an example has left below its bound; rounding counts as nothing."""
    left = cap - float(a.sum())
    return left if np.isinf(cap) or left > BOUND_TOLERANCE * cap else 0.0


def _newton(g: float, q: float, low: float, high: float) -> float:
    """Return the mu in [low, high] that maximises g mu - q mu^2 / 2."""
    if q > 0:
        return min(max(g / q, low), high)
    return high if g > 0 else low if g < 0 else 0.0


def _one_variable_step(dual: DenseDual, g: FloatArray, a: FloatArray) -> FloatArray:
    """Move the variable with the largest gain g^2 / (2 Q_bb) to its optimum: DGI11 4.2."""
    gains = [
        _box_violation(g[n], a[n], dual.cap[dual.example[n]]) ** 2 / max(dual.Q[n, n], CURVATURE_FLOOR)
        for n in range(len(a))
    ]
    b = int(np.argmax(gains))
    moved = a.copy()
    moved[b] += _newton(g[b], dual.Q[b, b], -a[b], dual.cap[dual.example[b]] - a[b])
    return moved


def two_variable_step(dual: DenseDual, g: FloatArray, a: FloatArray) -> FloatArray:
    """Move the most violating variable and the partner with which it gains most: DGI11 4.3."""
    cap = dual.cap[dual.example]
    violating = np.array([_box_violation(g[n], a[n], cap[n]) for n in range(len(a))])
    first = int(np.argmax(violating))
    moved = a.copy()
    alone = _newton(g[first], max(dual.Q[first, first], CURVATURE_FLOOR), -a[first], cap[first] - a[first])
    gains = np.zeros(len(a))
    for b in np.flatnonzero(violating > 0):
        pair = np.array([first, b])
        gains[b] = 0.0 if b == first else pair_gain(g[pair], dual.Q[np.ix_(pair, pair)])
    second = int(np.argmax(gains))
    if gains[second] > 0:
        pair = np.array([first, second])
        Q = dual.Q[np.ix_(pair, pair)]
        mu = best_pair_step(g[pair], Q, -a[pair], cap[pair] - a[pair])
        if _quadratic(g[pair], Q, mu) > _quadratic(g[pair], Q, np.array([alone, 0.0])):
            moved[pair] += mu
            return moved
    moved[first] += alone
    return moved


def pair_gain(g: FloatArray, Q: FloatArray) -> float:
    """Return twice the gain of the unconstrained optimum of two variables: DGI11 A.1.

    Where Q is singular and g does not vanish along its null direction the gain is infinite; a floor for the
    determinant ranks such pairs by their gradients. No pair is worth less than its first variable alone.
    """
    q1, q2, q12 = max(Q[0, 0], CURVATURE_FLOOR), max(Q[1, 1], CURVATURE_FLOOR), Q[0, 1]
    numerator = g[0] ** 2 * q2 - 2 * g[0] * g[1] * q12 + g[1] ** 2 * q1
    determinant = max(q1 * q2 - q12**2, RANK_TOLERANCE * q1 * q2)
    return float(max(numerator / determinant, g[0] ** 2 / q1))


def _quadratic(g: FloatArray, Q: FloatArray, mu: FloatArray) -> float:
    return float(g @ mu - 0.5 * mu @ Q @ mu)


def best_pair_step(g: FloatArray, Q: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
    """Return the mu with low <= mu <= high that maximises g'mu - mu'Q mu / 2, two variables: DGI11 A.2.

    Q may have rank two, one or zero; ``high`` may be infinite as long as the maximum is finite.
    """
    inside = _stationary_point(g, Q)
    if inside is not None and (low <= inside).all() and (inside <= high).all():
        return inside
    # Otherwise an optimum is on an edge: also for rank one and zero, as f is linear along the null direction
    candidates = []
    for fixed, bound in product((0, 1), (low, high)):
        if np.isfinite(bound[fixed]):
            free, mu = 1 - fixed, bound.copy()
            mu[free] = _newton(g[free] - Q[0, 1] * bound[fixed], Q[free, free], low[free], high[free])
            candidates.append(mu)
    return max(candidates, key=lambda mu: _quadratic(g, Q, mu))


def _stationary_point(g: FloatArray, Q: FloatArray) -> FloatArray | None:
    """Return a point where the gradient vanishes; None where there is none, or any (Q = 0)."""
    determinant = Q[0, 0] * Q[1, 1] - Q[0, 1] ** 2
    if determinant > RANK_TOLERANCE * Q[0, 0] * Q[1, 1]:
        adjugate = np.array([[Q[1, 1], -Q[0, 1]], [-Q[0, 1], Q[0, 0]]])
        return np.asarray(adjugate @ g / determinant)
    if not (max(Q[0, 0], Q[1, 1]) > 0 and determinant >= -RANK_TOLERANCE * abs(Q[0, 0] * Q[1, 1])):
        return None
    null = np.array([-Q[0, 1], Q[0, 0]]) if Q[0, 0] >= Q[1, 1] else np.array([Q[1, 1], -Q[0, 1]])
    if abs(g @ null) > RANK_TOLERANCE * float(np.abs(g) @ np.abs(null)):
        return None
    # Rank one, and g is the other eigenvector: DGI11 A.1
    along = float(g @ Q @ g)
    return np.asarray(g * (float(g @ g) / along)) if along > 0 else None


def _pair_step(dual: DenseDual, members: IntArray, g: FloatArray, a: FloatArray) -> FloatArray:
    """Move mass between two variables of one example, or one and the slack: DGI11 4.4."""
    slack = _slack(a[members], dual.cap[dual.example[members[0]]])
    names = [SLACK, *members.tolist()]
    slope = {n: 0.0 if n == SLACK else float(g[n]) for n in names}
    held = {n: slack if n == SLACK else float(a[n]) for n in names}

    def curvature(p: int, q: int) -> float:
        direction = np.zeros(len(a))
        for n, sign in ((p, 1.0), (q, -1.0)):
            if n != SLACK:
                direction[n] = sign
        return float(direction @ dual.Q @ direction)

    rise = max(names, key=lambda n: slope[n])
    falling = [n for n in names if held[n] > 0 and slope[n] < slope[rise]]
    if not falling:
        return a
    gain = {n: (slope[rise] - slope[n]) ** 2 / max(curvature(rise, n), CURVATURE_FLOOR) for n in falling}
    fall = max(falling, key=lambda n: gain[n])
    mu = min(held[fall], (slope[rise] - slope[fall]) / max(curvature(rise, fall), CURVATURE_FLOOR))
    moved = a.copy()
    if rise != SLACK:
        moved[rise] += mu
    if fall != SLACK:
        moved[fall] = moved[fall] - mu if mu < held[fall] else 0.0
    return moved


def whole_example_step(dual: DenseDual, i: int, g: FloatArray, a: FloatArray) -> FloatArray:
    """Return the variables with those of example ``i`` at their joint optimum: HL02 (18) to (20).

    Tries every face of the feasible set: each variable at 0, free, or (box) at the bound, and for a simplex
    the sum at the bound or below it. The stationary point of the right face violates nothing.
    """
    members = dual.of_example(i)
    Q = dual.Q[np.ix_(members, members)]
    own = replace(
        dual,
        example=np.zeros(len(members), dtype=np.int64),
        component=dual.component[members],
        v=g[members] + Q @ a[members],
        Q=Q,
        C=dual.C[[i]],
        cap=dual.cap[[i]],
    )
    best, least = a[members], np.inf
    for x in _stationary_points_of_faces(own):
        found = max(violations(own, own.gradient(x), x))
        if found < least:
            best, least = x, found
    result = a.copy()
    result[members] = best
    return result


def _stationary_points_of_faces(own: DenseDual) -> Iterator[FloatArray]:
    cap = float(own.cap[0])
    bounded = np.isfinite(cap)
    choices = ("zero", "free", "cap") if bounded and not own.simplex else ("zero", "free")
    for places, full in product(product(choices, repeat=len(own.v)), (False, True)):
        if full and not (own.simplex and bounded):
            continue
        free = np.array([place == "free" for place in places])
        x = np.array([cap if place == "cap" else 0.0 for place in places])
        n = int(free.sum())
        system, right = own.Q[np.ix_(free, free)], own.gradient(x)[free]
        if full:  # with a multiplier for sum a = cap
            system = np.block([[system, np.ones((n, 1))], [np.ones((1, n)), np.zeros((1, 1))]])
            right = np.append(right, cap)
        x[free] = np.linalg.lstsq(system, right, rcond=None)[0][:n]
        rounding = 1e-13 * float(np.abs(x).max(initial=0.0))
        over = (x.sum() if own.simplex else x.max()) > cap + rounding
        if not over and x.min() >= -rounding:
            yield np.maximum(x, 0.0) if own.simplex else np.clip(x, 0.0, cap)
