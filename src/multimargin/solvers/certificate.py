"""The proof that a solution is optimal: objectives, gap and KKT violation, recomputed from (problem, a, F)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from multimargin import _core
from multimargin._typing import FloatArray
from multimargin.kernels.rounding import UNKNOWN, Rounding, kernel_sizes, rounding_of
from multimargin.kernels.spec import KernelSpec
from multimargin.problems.coupling import coefficients, margins
from multimargin.problems.machines import Bound
from multimargin.problems.problem import DualProblem, Loss
from multimargin.problems.recovery import is_feasible
from multimargin.solvers.core import Solution
from multimargin.solvers.report import SolverReport, StopReason

INDEFINITE = (
    "the kernel is not positive semi-definite, so that only a KKT point is promised: primal and gap are undefined"
)
TESTED = "the kernel matrix was found positive semi-definite on {}; the gap rests on that"
NOT_FINITE = "objectives or scores are too large or too small for float64: nothing is known about them"
ROUNDED = (
    "the terms of the scores are so large that rounding may change a score by {:.1e} and the primal by {:.1e}, which "
    "the violation and the primal include"
)
WIDE_GAP = "the dual is less than half of the primal, so that the violation proves little"
NOT_VERIFIED = "the numbers are the solver's own: it was stopped before the float64 pass over all examples"

# A violation of v bounds the gap by v sum C, whatever the objectives are. Where C k(x, x) is huge they are small beside
# that, and a violation within tol goes with a dual near 0, as good as that of a = 0. Only a dual of half the primal or
# more says where the optimum is: within a factor of two.
LARGEST_RELATIVE_GAP = 0.5

# A fit and ``verify`` add up in different orders, and rounding moves each by so much: where a fit's numbers hold with
# three times that, those of ``verify`` do with what it adds itself.
ROOM_FOR_VERIFY = 3.0


@dataclass(frozen=True)
class Certificate:
    """What is known about a solution.

    Parameters
    ----------
    primal, dual : float
        Objective values; the optimum lies between them.
    gap, relative_gap : float
        ``primal - dual``, and that divided by the larger of the two.
    kkt_violation : float
        What ``tol`` bounds: the largest projected gradient (box) or, per example, the largest gradient that may
        rise minus the smallest that may fall (simplex).
    tol : float
        The tolerance asked for.
    verified : bool
        True when all numbers come from scores computed anew in float64.
    stop_reason : str
        converged, max_iter, max_time, stalled, interrupted or callback. Only a point that is ``optimal`` is called
        converged.
    n_iter, seconds, kernel_rows, cache_hits : int, float, int, int
        What the solver spent; 0 where a model is verified without its fit.
    solver, solver_reason : str
        The algorithm that ran, and why it was chosen.
    float64_rows : bool
        Whether kernel rows were computed in float64 at the end, which float32 could not carry or a small problem asks.
    blocks, exact_blocks : int, int
        Blocks of examples that were solved, and how many of them by an active set after steps on examples had become
        slow. For binary problems with an exact bias the latter counts linear systems of all free variables.
    feature_sweeps : int
        Sweeps over all examples in the features of a low-rank kernel, which the solver goes over to where blocks crawl
        with very many free variables; 0 where it did not.
    remark : str
        Anything that restricts the numbers above.
    parts : sequence of Certificate
        Of a machine made of several problems, all of theirs: for one-vs-one one for each pair of classes, in the
        order of ``intercept_``. The numbers above are then the worst one's, those of what was spent their sums.
    """

    primal: float
    dual: float
    gap: float
    relative_gap: float
    kkt_violation: float
    tol: float
    verified: bool
    stop_reason: str
    n_iter: int
    seconds: float
    kernel_rows: int
    cache_hits: int
    solver: str
    solver_reason: str
    remark: str = ""
    float64_rows: bool = False
    blocks: int = 0
    exact_blocks: int = 0
    feature_sweeps: int = 0
    parts: Sequence[Certificate] = field(default=(), repr=False)

    @property
    def optimal(self) -> bool:
        """Whether the violation is at most tol and primal and dual agree, by numbers that were verified and are finite.

        Without a primal (a kernel that is not positive semi-definite) nothing is asked of the gap.
        """
        good = bool(self.verified and self.kkt_violation <= self.tol and np.isfinite(self.dual))
        return good and not self.relative_gap > LARGEST_RELATIVE_GAP

    def __str__(self) -> str:
        checked = "verified" if self.verified else "not verified"
        text = (
            f"{self.stop_reason}, {checked}, KKT violation {self.kkt_violation:.2g}, "
            f"relative gap {self.relative_gap:.2g}"
        )
        if self.solver:
            text += f"; {self.solver} ({self.solver_reason}){self._course()}"
        return f"{text}; {self.remark}" if self.remark else text

    def _course(self) -> str:
        """What the solver went over to on the way."""
        course = ", float64 rows at the end" if self.float64_rows else ""
        if self.blocks:
            course += f", active set in {self.exact_blocks} of {self.blocks} blocks"
            return f"{course}, {self.feature_sweeps} sweeps in features" if self.feature_sweeps else course
        return f"{course}, {self.exact_blocks} linear systems" if self.exact_blocks else course


def _overlap_remark(report: SolverReport | None) -> str:
    """What came in where steps on examples were slow, for ``solver_reason``."""
    phases = {} if report is None else report.phases
    visits, steps = int(phases.get("pair_visits", 0)), int(phases.get("newton_steps", 0))
    if not visits:
        return ""
    newton = f", then {steps} steps of Newton's method" if steps else ""
    return f"; steps on examples were slow: {visits} problems between two classes{newton}"


@dataclass(frozen=True)
class Objectives:
    """Primal, dual and KKT violation of a point, and what rounding may have changed them by, where that is known."""

    primal: float
    dual: float
    violation: float
    rounding: Rounding = UNKNOWN


def evaluate(
    problem: DualProblem, amounts: FloatArray, scores: FloatArray, bias: FloatArray | None = None
) -> Objectives:
    r"""Return objectives and violation at a with scores F = K beta (both by example, in float64).

    With an exact bias b the margins are those of F + b, and the dual is one only if the sums of beta are zero;
    dual :math:`\sum t a - \frac12 \sum_i \beta_i F_i - \text{penalty}(a)`,
    primal :math:`\frac12 \sum_i \beta_i F_i + \sum_i C_i \,\text{loss}(t - m(F_i + b))`.
    """
    data, machine = problem.data, problem.machine
    beta = coefficients(machine, amounts, data.y, problem.n_classes)
    norm = float(np.sum(beta * scores))
    shortfall = _shortfall(problem, scores if bias is None else scores + bias)
    squared = problem.loss is Loss.SQUARED_HINGE
    simplex = machine.bound is Bound.SIMPLEX
    slack = np.maximum(shortfall, 0.0)
    if simplex:
        slack = slack.max(axis=1, keepdims=True)
    hard = bool(np.isinf(data.C).all())
    charge = 0.0 if hard else float(np.sum(data.C[:, None] * (slack**2 if squared else slack)))
    linear = float(np.sum(problem.targets * amounts))
    used = amounts.sum(axis=1, keepdims=True) if simplex else amounts
    penalty = float(np.sum(used**2 / (4 * data.C[:, None]))) if squared else 0.0
    stretch = _stretch_to_feasible(problem.targets, shortfall) if hard else 1.0
    return Objectives(
        primal=0.5 * stretch**2 * norm + charge,
        dual=linear - 0.5 * norm - penalty,
        violation=violation(problem, _gradient(problem, amounts, shortfall), amounts),
    )


def dual_gradient(problem: DualProblem, amounts: FloatArray, f: FloatArray) -> FloatArray:
    """Return t - m(f), less the squared hinge's term, at scores f (with the bias), (n_examples, n_components)."""
    return _gradient(problem, amounts, _shortfall(problem, f))


def _shortfall(problem: DualProblem, f: FloatArray) -> FloatArray:
    return np.where(problem.mask, problem.targets - margins(problem.machine, f, problem.data.y), 0.0)


def _gradient(problem: DualProblem, amounts: FloatArray, shortfall: FloatArray) -> FloatArray:
    if problem.loss is Loss.HINGE:
        return shortfall
    used = amounts.sum(axis=1, keepdims=True) if problem.machine.bound is Bound.SIMPLEX else amounts
    return np.asarray(shortfall - used / (2 * problem.data.C[:, None]))


def _stretch_to_feasible(targets: FloatArray, shortfall: FloatArray) -> float:
    """The factor on w that makes every margin reach its target: a feasible point of the hard margin's primal."""
    reached = targets - shortfall
    wanted = targets > 0
    if (reached[wanted] <= 0).any():
        return np.inf
    return float(np.max(targets[wanted] / reached[wanted], initial=1.0))


def violation(problem: DualProblem, gradient: FloatArray, amounts: FloatArray) -> float:
    """Return the largest KKT violation, by the function that the solvers stop by."""
    bound = _core.Bound.box if problem.machine.bound is Bound.BOX else _core.Bound.simplex
    each = _core.violations(
        bound,
        np.ascontiguousarray(np.broadcast_to(gradient, amounts.shape)),
        np.ascontiguousarray(amounts),
        problem.cap,
        problem.count_components(),
    )
    return float(each.max(initial=0.0))


def certify(problem: DualProblem, solution: Solution, *, tol: float, solver: str, reason: str) -> Certificate:
    """Return the certificate of a solve.

    The core's own numbers come from scores that it computed anew in float64 wherever the solve could do that
    (``verified``); ``verify`` computes everything again, independently. Only the hard margin's primal point, which
    must be stretched until it is feasible, is made here.
    """
    report, state = solution.report, solution.state
    primal = report.primal if np.isfinite(report.primal) else np.nan
    numbers = Objectives(primal, report.dual, report.violation)
    if state.scores is not None and np.isinf(problem.data.C).all():
        numbers = evaluate(problem, state.amounts, state.scores, state.bias)
    if report.verified:
        beta = coefficients(problem.machine, state.amounts, problem.data.y, problem.n_classes)
        numbers = examined(problem, state.amounts, beta, numbers, state.bias)
    return assemble(problem.kernel, numbers, report=report, tol=tol, solver=(solver, reason))


def examined(
    problem: DualProblem, amounts: FloatArray, beta: FloatArray, numbers: Objectives, bias: FloatArray | None
) -> Objectives:
    """Return the numbers of a point with its rounding; gradients say nothing about one outside the bounds."""
    sizes = kernel_sizes(problem.trained_kernel, problem.data.kernel_rows)
    level = float(np.abs(problem.targets).max(initial=0.0))
    level += 0.0 if bias is None else float(np.abs(bias).max(initial=0.0))
    squared = problem.loss is Loss.SQUARED_HINGE
    rounding = rounding_of(sizes, beta, amounts, problem.data.C, squared=squared, level=level)
    feasible = is_feasible(problem, amounts, beta, bias)
    return replace(numbers, violation=numbers.violation if feasible else np.inf, rounding=rounding)


def assemble(
    kernel: KernelSpec,
    numbers: Objectives,
    *,
    report: SolverReport | None,
    tol: float,
    solver: tuple[str, str],
) -> Certificate:
    """Put numbers and report together; without a report the numbers stand for themselves."""
    convex = kernel.positive_semidefinite
    verified = report is None or report.verified
    if report is not None:
        numbers = replace(numbers, rounding=numbers.rounding.times(ROOM_FOR_VERIFY))
    numbers, doubts = _without_doubts(numbers, tol, convex=convex) if verified else (numbers, [])
    primal = numbers.primal if convex else np.nan
    gap = primal - numbers.dual
    tested = TESTED.format("all rows" if kernel.tested_all else f"a sample of {kernel.tested_rows} rows")
    notes = ((INDEFINITE, not convex), (tested, convex and kernel.tested_rows > 0), (NOT_VERIFIED, not verified))
    remarks = [text for text, holds in notes if holds] + doubts
    certificate = Certificate(
        primal=primal,
        dual=numbers.dual,
        gap=gap,
        relative_gap=gap / max(abs(primal), abs(numbers.dual), 1e-300),
        kkt_violation=numbers.violation,
        tol=tol,
        verified=verified,
        stop_reason=(StopReason.CONVERGED if report is None else report.stop_reason).value,
        n_iter=0 if report is None else report.n_iter,
        seconds=0.0 if report is None else report.seconds,
        kernel_rows=0 if report is None else report.kernel_rows,
        cache_hits=0 if report is None else report.cache_hits,
        solver=solver[0],
        solver_reason=solver[1] + _overlap_remark(report),
        remark="; ".join(remarks),
        float64_rows=report is not None and report.float64_rows,
        blocks=0 if report is None else int(report.phases.get("blocks", 0)),
        exact_blocks=0 if report is None else int(report.phases.get("exact_blocks", 0)),
        feature_sweeps=0 if report is None else int(report.phases.get("feature_sweeps", 0)),
    )
    if verified and not certificate.optimal and certificate.stop_reason == StopReason.CONVERGED.value:
        return replace(certificate, stop_reason=StopReason.STALLED.value)  # never called convergence
    return certificate


def _without_doubts(numbers: Objectives, tol: float, *, convex: bool) -> tuple[Objectives, list[str]]:
    """Return numbers that rounding can only have made better, where it matters, and what to say about them."""
    if np.isnan(numbers.violation) or not np.isfinite(numbers.dual) or (convex and not np.isfinite(numbers.primal)):
        return replace(numbers, violation=np.inf), [NOT_FINITE]
    rounding, doubts = numbers.rounding, []
    added = rounding.dual + rounding.primal if convex else 0.0
    most = LARGEST_RELATIVE_GAP * max(abs(numbers.primal), abs(numbers.dual))
    gap = numbers.primal - numbers.dual if convex else 0.0
    unsure = not rounding.score <= tol or numbers.violation <= tol < numbers.violation + rounding.score
    if unsure or (gap <= most and not gap + added <= most):
        doubts.append(ROUNDED.format(rounding.score, added))
        numbers = replace(
            numbers, primal=numbers.primal + added, violation=numbers.violation + rounding.score, rounding=UNKNOWN
        )
        gap = numbers.primal - numbers.dual if convex else 0.0
    if gap > LARGEST_RELATIVE_GAP * max(abs(numbers.primal), abs(numbers.dual)):
        doubts.append(WIDE_GAP)
    return numbers, doubts
