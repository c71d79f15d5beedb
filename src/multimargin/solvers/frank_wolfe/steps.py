"""The parts of a Frank-Wolfe step: the vertex by a linear program, and exact steps within the hull of the vertices.

WWDOC 5.2 goes from the point a towards the vertex gamma that a linear program finds. Here a point is kept as a convex
combination of vertices met before, so that a step is one in their weights: the variants differ in its direction only,
and the quadratic in the weights is small and known.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from multimargin._typing import FloatArray, IntArray
from multimargin.problems.coupling import coefficients, margins
from multimargin.problems.machines import Bound
from multimargin.problems.problem import Bias, DualProblem
from multimargin.problems.separate_sums import NEGLIGIBLE
from multimargin.problems.zero_sums import balance, imbalance, movable_support
from multimargin.solvers.certificate import Objectives, dual_gradient, evaluate

# What the linear program may leave of the sums and the reduced costs, in units of their sizes: HiGHS's least.
LP_TOLERANCE = 1e-10
# A variable within this share of C of a bound is at it; a weight up to this is none.
AT_BOUND = 1e-13
NO_WEIGHT = 1e-14
# Curvature that is added, as a share of the largest, where vertices depend on each other.
RIDGE = 1e-13


class Variant(Enum):
    """The direction of a step in the weights of the vertices.

    ``PLAIN`` goes towards the new vertex (WWDOC 5.2), ``AWAY`` may go away from the worst vertex instead, ``PAIRWISE``
    moves weight from the worst to the new one (LJ15), ``CORRECTIVE`` finds the best point of the whole hull (HOH77).
    """

    PLAIN = "plain"
    AWAY = "away"
    PAIRWISE = "pairwise"
    CORRECTIVE = "corrective"


@dataclass(frozen=True, eq=False)
class Vertex:
    """A vertex of the feasible set (n_examples, n_components), and the multipliers of the sums: the b beside it."""

    amounts: FloatArray
    bias: FloatArray | None


class LinearProgram:
    """The vertex that a gradient points to the farthest: WWDOC Problem 3, for every machine's bounds.

    max_u sum g u under the bounds and, for an exact bias, sum_i beta_i(u) = ``sums`` of a point given. The multipliers
    are the b that is best for these scores, because the program's dual is min_b sum_i C_i loss(g - m(b)).
    """

    def __init__(self, problem: DualProblem, point: FloatArray) -> None:
        self.problem = problem
        self.equal = problem.bias is Bias.EXACT
        self.cap = np.broadcast_to(problem.cap[:, None], problem.mask.shape)
        self.used = np.flatnonzero(problem.mask)
        if not self.equal:
            return
        self.size = float(problem.cap.max())
        table = problem.machine.table(problem.n_classes)
        self.centred = problem.machine.sum_to_zero or not table.margins(np.ones(problem.n_classes)).any()
        columns = component_rows(problem).T.multiply(self.cap.ravel()[self.used] / self.size).tocsc()
        self.right = columns @ (point.ravel()[self.used] / self.cap.ravel()[self.used])
        bounds = np.tile([0.0, 1.0], (len(self.used), 1))
        if problem.machine.sum_to_zero:  # Pi r = 0 is r = z 1 with one more variable, which keeps the columns sparse
            columns = sparse.hstack([columns, np.ones((problem.n_classes, 1))], format="csc")
            bounds = np.vstack([bounds, [-np.inf, np.inf]])
        self.columns, self.bounds = columns, bounds
        self.share = None
        if problem.machine.bound is Bound.SIMPLEX:
            example = self.used // problem.n_components
            place = (np.ones(len(example)), (example, np.arange(len(example))))
            self.share = sparse.csc_array(place, shape=(problem.n_examples, columns.shape[1]))

    def vertex(self, gradient: FloatArray, seconds: float = np.inf) -> Vertex:
        """Return a vertex u with the largest sum g u; without the sums it is known in closed form.

        Raises TimeoutError after so many seconds, and FloatingPointError where HiGHS finds no optimum.
        """
        if not self.equal:
            return Vertex(self._vertex_of_bounds(gradient), None)
        cost = np.zeros(self.columns.shape[1])
        cost[: len(self.used)] = -(gradient * self.cap).ravel()[self.used]
        unit = max(float(np.abs(cost).max(initial=0.0)), np.finfo(float).tiny)
        found = linprog(
            cost / unit,
            A_ub=self.share,
            b_ub=None if self.share is None else np.ones(self.problem.n_examples),
            A_eq=self.columns,
            b_eq=self.right,
            bounds=self.bounds,
            method="highs-ds",
            options={
                "primal_feasibility_tolerance": LP_TOLERANCE,
                "dual_feasibility_tolerance": LP_TOLERANCE,
                "time_limit": max(seconds, 0.0),
            },
        )
        if found.status != 0:
            kind = TimeoutError if found.status == 1 else FloatingPointError
            raise kind(f"The linear program of a Frank-Wolfe step found no optimum: {found.message}")
        amounts = np.zeros(self.problem.mask.size)
        amounts[self.used] = at_bounds(found.x[: len(self.used)], 1.0) * self.cap.ravel()[self.used]
        bias = -unit / self.size * np.asarray(found.eqlin.marginals)
        return Vertex(amounts.reshape(self.problem.mask.shape), bias - bias.mean() if self.centred else bias)

    def _vertex_of_bounds(self, gradient: FloatArray) -> FloatArray:
        gradient = np.where(self.problem.mask, gradient, -np.inf)
        if self.problem.machine.bound is Bound.BOX:
            return np.where(gradient > 0, self.cap, 0.0)
        best = np.arange(gradient.shape[1]) == np.argmax(gradient, axis=1)[:, None]
        return np.where(best & (gradient > 0), self.cap, 0.0)


def component_rows(problem: DualProblem) -> sparse.csr_array:
    """Return the rows nu_yp of all variables that exist, example by example, (n_variables, n_classes)."""
    table, y = problem.machine.table(problem.n_classes), problem.data.y
    example, p = np.nonzero(problem.mask)
    label, number = y[example], np.arange(len(example))
    second = table.class2[label, p]
    two = second >= 0
    values = np.concatenate([table.value1[label, p], table.value2[label, p][two]])
    places = (np.concatenate([number, number[two]]), np.concatenate([table.class1[label, p], second[two]]))
    return sparse.csr_array((values, places), shape=(len(example), problem.n_classes))


def at_bounds(amounts: FloatArray, cap: FloatArray | float) -> FloatArray:
    """Return the amounts with those within rounding of 0 or of the cap exactly there."""
    kept = np.where(amounts <= AT_BOUND * cap, 0.0, amounts)
    return np.asarray(np.where(kept >= (1 - AT_BOUND) * cap, cap, kept))


class Hull:
    """A point of a block of examples as a convex combination of vertices, and the dual as a function of the weights.

    Parameters
    ----------
    problem : DualProblem
        Of the block's examples.
    kernel : ndarray of shape (n_examples, n_examples)
        Their kernel matrix: all that WWDOC 5.3 needs of K.
    amounts, scores : ndarray
        Where it begins: a, and F at the block's examples, which the rest of the data has its part in.

    ``linear`` and ``gram`` are the gain sum_s w_s linear_s - w' gram w / 2 over the beginning.
    """

    def __init__(self, problem: DualProblem, kernel: FloatArray, amounts: FloatArray, scores: FloatArray) -> None:
        self.problem, self.kernel = problem, kernel
        self.risen = 0.0
        self.begin(amounts, scores)

    def begin(self, amounts: FloatArray, scores: FloatArray) -> None:
        """Begin at a point: it takes the place of all vertices."""
        self.first, self.first_scores = amounts, scores
        self.gradient = self.problem.targets - margins(self.problem.machine, scores, self.problem.data.y)
        shape = (1, self.problem.n_examples, self.problem.n_classes)
        self.points, self.weights = amounts[None], np.ones(1)
        self.moves, self.images = np.zeros(shape), np.zeros(shape)
        self.linear, self.gram = np.zeros(1), np.zeros((1, 1))

    def __len__(self) -> int:
        return len(self.weights)

    def amounts(self) -> FloatArray:
        mixed: FloatArray = np.tensordot(self.weights, self.points, 1)
        return at_bounds(mixed, self.problem.cap[:, None])

    def scores(self) -> FloatArray:
        scores: FloatArray = self.first_scores + np.tensordot(self.weights, self.images, 1)
        return scores

    def gain(self) -> float:
        """What the dual has risen by since the hull was made."""
        return self.risen + float(self.weights @ self.linear - 0.5 * self.weights @ self.gram @ self.weights)

    def add(self, vertex: FloatArray) -> int:
        """Return the vertex's number, with no weight if it is new."""
        known = np.flatnonzero((self.points == vertex).all(axis=(1, 2)))
        if len(known):
            return int(known[0])
        problem, move = self.problem, vertex - self.first
        beta = coefficients(problem.machine, move, problem.data.y, problem.n_classes)
        image = self.kernel @ beta
        row = np.tensordot(self.moves, image, 2)
        square = float(np.sum(beta * image))
        self.gram = np.block([[self.gram, row[:, None]], [row[None, :], np.array([[square]])]])
        self.linear = np.append(self.linear, float(np.sum(self.gradient * move)))
        self.points = np.concatenate([self.points, vertex[None]])
        self.moves = np.concatenate([self.moves, beta[None]])
        self.images = np.concatenate([self.images, image[None]])
        self.weights = np.append(self.weights, 0.0)
        return len(self) - 1

    def step(self, variant: Variant, new: int) -> None:
        """Go on by one step towards the vertex ``new``, exactly as far as the dual rises."""
        if variant is Variant.CORRECTIVE:
            self._correct()
        else:
            direction, most = self._direction(variant, new)
            self.weights = self.weights + exact_step(self.slopes(), self.gram, direction, most) * direction
        self._drop()
        if variant is Variant.PLAIN:
            self.risen = self.gain()
            self.begin(self.amounts(), self.scores())

    def slopes(self) -> FloatArray:
        """The dual's derivatives by the weights."""
        return np.asarray(self.linear - self.gram @ self.weights)

    def _direction(self, variant: Variant, new: int) -> tuple[FloatArray, float]:
        """A direction in the weights and how far they allow it."""
        slopes, unit = self.slopes(), np.eye(len(self))
        worst = int(np.argmin(np.where(self.weights > 0, slopes, np.inf)))
        if variant is Variant.PAIRWISE:
            return unit[new] - unit[worst], float(self.weights[worst])
        here = float(self.weights @ slopes)
        if variant is Variant.AWAY and here - slopes[worst] > slopes[new] - here and self.weights[worst] < 1:
            return self.weights - unit[worst], float(self.weights[worst] / (1 - self.weights[worst]))
        return unit[new] - self.weights, 1.0

    def _correct(self) -> None:
        """The best point of the hull: to the best one of its affine hull, less each vertex met at weight 0."""
        kept = np.arange(len(self))
        for _ in range(2 * len(self)):
            change = _to_affine_optimum(self.gram[np.ix_(kept, kept)], self.slopes()[kept])
            weights = self.weights[kept]
            falls = change < 0
            ratios = np.where(falls, weights / np.where(falls, -change, 1.0), np.inf)
            share = min(1.0, float(ratios.min()))
            weights = np.where(ratios <= share, 0.0, weights + share * change)
            self.weights = np.zeros(len(self))
            self.weights[kept] = weights / weights.sum()
            if share >= 1:
                break
            kept = kept[weights > 0]

    def _drop(self) -> None:
        """Forget the vertices without weight."""
        kept = self.weights > NO_WEIGHT
        if kept.all():
            return
        self.points, self.moves, self.images = self.points[kept], self.moves[kept], self.images[kept]
        self.linear, self.gram = self.linear[kept], self.gram[np.ix_(kept, kept)]
        self.weights = self.weights[kept] / self.weights[kept].sum()


def exact_step(slopes: FloatArray, gram: FloatArray, direction: FloatArray, most: float) -> float:
    """Return the theta in [0, most] with the largest dual along the direction: WWDOC 5.2, in closed form."""
    slope, curvature = float(slopes @ direction), float(direction @ gram @ direction)
    if slope <= 0:
        return 0.0
    return most if slope >= most * curvature else slope / curvature


def _to_affine_optimum(gram: FloatArray, slopes: FloatArray) -> FloatArray:
    """The change of weights, of sum 0, after which all slopes are equal; a ridge decides where that is open."""
    n = len(slopes)
    ridge = RIDGE * max(float(np.diag(gram).max()), np.finfo(float).tiny)
    system = np.block([[gram + ridge * np.eye(n), np.ones((n, 1))], [np.ones((1, n)), np.zeros((1, 1))]])
    change: FloatArray = np.linalg.solve(system, np.append(slopes, 0.0))[:n]
    return np.asarray(change - change.mean())


def is_off(problem: DualProblem, amounts: FloatArray) -> bool:
    """Whether sum_i beta_i is more than rounding."""
    sums, mass = imbalance(problem, amounts)
    return bool(np.abs(sums).max() > NEGLIGIBLE * mass)


def feasible(problem: DualProblem, amounts: FloatArray) -> FloatArray:
    """Return amounts that are within the bounds as they are, or with sums of zero where the bias is exact."""
    if problem.bias is not Bias.EXACT or not is_off(problem, amounts):
        return amounts
    balanced = balance(problem, amounts, movable_support(amounts), 200)
    return np.zeros_like(amounts) if balanced is None else balanced


def best_bias(
    problem: DualProblem, amounts: FloatArray, scores: FloatArray, bias: FloatArray | None, tol: float
) -> tuple[FloatArray | None, Objectives]:
    """Return the multipliers, where the primal is least, or what the free variables say if that meets tol, WWDOC (5).

    And the numbers of the point at that b.
    """
    numbers = evaluate(problem, amounts, scores, bias)
    free = np.asarray((amounts > 0) & (amounts < problem.cap[:, None]))
    simplex = problem.machine.bound is Bound.SIMPLEX  # the gradients of its free variables need not be zero
    if bias is None or numbers.violation <= tol or simplex or not free.any():
        return bias, numbers
    rows = component_rows(problem)[free[problem.mask]].toarray()
    if problem.machine.sum_to_zero:
        rows = rows - rows.mean(axis=1, keepdims=True)
    rest = dual_gradient(problem, amounts, scores + bias)[free]
    other = bias + np.linalg.lstsq(rows, rest, rcond=None)[0]
    other = other - other.mean() if problem.machine.sum_to_zero else other  # as it is but for rounding
    found = evaluate(problem, amounts, scores, other)
    return (other, found) if found.violation <= tol else (bias, numbers)


def within_bounds(problem: DualProblem, amounts: FloatArray) -> FloatArray:
    """Return the amounts cut (box) or scaled (simplex) to their bounds."""
    amounts, cap = np.where(problem.mask, np.maximum(amounts, 0.0), 0.0), problem.cap[:, None]
    if problem.machine.bound is Bound.BOX:
        return np.minimum(amounts, cap)
    used = amounts.sum(axis=1, keepdims=True)
    return np.asarray(amounts * np.minimum(1.0, cap / np.maximum(used, np.finfo(float).tiny)))


def pushed_to_bounds(problem: DualProblem, amounts: FloatArray, gradient: FloatArray, tol: float) -> FloatArray:
    """The amounts with every variable whose gradient is beyond tol at the bound that it is pushed to."""
    cap = problem.cap[:, None]
    if problem.machine.bound is Bound.BOX:
        pushed = np.where(gradient > tol, cap, np.where(gradient < -tol, 0.0, amounts))
        return np.where(problem.mask, pushed, 0.0)
    gradient = np.where(problem.mask, gradient, -np.inf)
    top = np.maximum(gradient.max(axis=1, keepdims=True), 0.0)  # the slack is a component of gradient 0
    kept = np.where(top - gradient <= tol, amounts, 0.0)
    best = (np.arange(gradient.shape[1]) == np.argmax(gradient, axis=1)[:, None]) * cap
    used = kept.sum(axis=1, keepdims=True)
    filled = np.where(used > 0, kept * (cap / np.maximum(used, np.finfo(float).tiny)), best)
    return np.where(top > tol, filled, kept)


def choose_block(problem: DualProblem, amounts: FloatArray, shares: FloatArray, last: IntArray, size: int) -> IntArray:
    """Return the examples of the next block: large shares of the gap, from the classes in turn.

    In turn, because the sums of one class cannot move alone. Up to half of it are examples of the last block with free
    variables, which the others lean on.
    """
    free = np.any((amounts > 0) & (amounts < problem.cap[:, None]), axis=1)
    kept = last[free[last]]
    kept = kept[np.argsort(-shares[kept], kind="stable")][: size // 2]
    others = np.setdiff1d(np.argsort(-shares, kind="stable"), kept, assume_unique=True)
    y, rank = problem.data.y[others], np.zeros(len(others), dtype=np.int64)
    for c in range(problem.n_classes):
        rank[y == c] = np.arange(np.count_nonzero(y == c))
    in_turn = others[np.argsort(rank, kind="stable")]
    return np.sort(np.concatenate([kept, in_turn[: size - len(kept)]]))
