"""One fit of a linear machine: from checked parameters and data to weights, a certificate and attributes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse
from threadpoolctl import threadpool_limits

from multimargin._typing import FloatArray, IntArray
from multimargin.base.errors import InvalidParameterError
from multimargin.base.resources import check_room
from multimargin.fitting import parameters as check
from multimargin.fitting.driver import Fitted, run_fit
from multimargin.fitting.linear_pair_points import PairPoints
from multimargin.fitting.linear_pair_settling import certify_settled, feasible_points, settle_pairs
from multimargin.fitting.linear_pairs import SolvedPairs, solve_pairs
from multimargin.fitting.machine import SMALL_PROBLEM, SMALL_PROBLEM_TOL
from multimargin.fitting.pairs import PairFit, PairState
from multimargin.fitting.pairs import check_start as check_pair_start
from multimargin.fitting.progress import FitTask
from multimargin.fitting.spec import FitSpec, linear_bias
from multimargin.kernels.store import check_rows
from multimargin.models.linear_model import LinearModel
from multimargin.problems.coupling import coefficients
from multimargin.problems.problem import Bias, DualProblem
from multimargin.problems.schemes import Slices
from multimargin.problems.training_set import TrainingSet
from multimargin.solvers.certificate import Certificate, certify
from multimargin.solvers.certificate_table import worst_of
from multimargin.solvers.core import Solution, SolverState, check_start
from multimargin.solvers.linear.decomposition import SIZES, check_decomposition, solve_by_decomposition
from multimargin.solvers.linear.driver import solve_linear
from multimargin.solvers.linear.squared import METHODS, check_squared, solve_squared
from multimargin.solvers.linear.task import as_scores_sum
from multimargin.solvers.linear.types import AUTO, DESCENT, NEWTON, Clock, LinearLimits, LinearPoint, LinearSeed
from multimargin.solvers.monitor import FitMonitor
from multimargin.solvers.report import StopReason

# Solvers of the literature for two classes.
OF_PAPERS = (*SIZES, *METHODS)
SOLVERS = (AUTO, DESCENT, NEWTON, *OF_PAPERS)
REASONS = {
    AUTO: "coordinate steps while they are cheap, then Newton's method, whose cost does not grow with C",
    DESCENT: "asked for",
    NEWTON: "asked for",
    **dict.fromkeys(OF_PAPERS, "asked for"),
}


@dataclass(frozen=True, eq=False)
class LinearDual:
    """What verification needs beside the weights: the dual coefficients of the examples that have one.

    ``beta`` is (n_SV, n_classes), or (n_SV, n_pairs) with a scheme.
    """

    support: IntArray
    beta: FloatArray | sparse.csr_array

    def column(self, pair: int) -> FloatArray:
        """Return the coefficients of a pair."""
        found: FloatArray = sparse.csr_array(self.beta)[:, [pair]].toarray().ravel()
        return found


def check_linear_control(params: dict[str, Any]) -> None:
    """Check the parameters that need no data."""
    check.check_number("C", params["C"], low=0.0, strict=True, allow_inf=True)
    check.check_choice("solver", params["solver"], SOLVERS)
    check_penalty(params)
    if params["solver"] == DESCENT and linear_bias(params) is Bias.EXACT:
        raise InvalidParameterError(
            "solver='descent' does not apply to bias='exact', whose constraints tie all examples together; use "
            "solver='auto', or bias='regularized' or 'none'."
        )
    check.check_limits(params)


def check_penalty(params: dict[str, Any]) -> None:
    """Refuse what scikit-learn's LinearSVC refuses, in its words, and the l1 penalty, which is another problem."""
    penalty, dual = params.get("penalty", "l2"), params.get("dual", "auto")
    check.check_choice("penalty", penalty, ("l1", "l2"))
    if not (isinstance(dual, str) and dual == "auto"):
        check.check_flag("dual", dual)
    given = f"Parameters: penalty={penalty!r}, loss={params['loss']!r}, dual={dual!r}"
    if penalty == "l1":
        raise InvalidParameterError(
            f"Unsupported set of arguments: there is no l1 penalty here, {given}; use penalty='l2', or the LinearSVC "
            "of scikit-learn."
        )
    if params["loss"] == "hinge" and dual is not True and dual != "auto":
        raise InvalidParameterError(
            "Unsupported set of arguments: The combination of penalty='l2' and loss='hinge' are not supported when "
            f"dual=False, {given}; leave dual out, or use loss='squared_hinge'."
        )


def check_weights(n_features: int, n_functions: int) -> None:
    """Refuse weights that the memory does not hold, twice, as solvers keep the last ones: a single index can ask."""
    check_room(
        16.0 * n_features * n_functions,
        f"The weights of {n_functions} functions for each of {n_features} columns",
        "leave out columns that are zero throughout, and renumber the others, or use SVC(kernel='linear')",
    )


def linear_fit(params: dict[str, Any], data: TrainingSet, spec: FitSpec) -> LinearMachineFit | LinearPairsFit:
    """Return the fit of a machine, or of the pairs of a scheme; refuse data that are too large for it."""
    check_rows(data.X)
    check_weights(data.X.shape[1], data.n_classes * (data.n_classes - 1) // 2 if spec.scheme else data.n_classes)
    return (LinearPairsFit if spec.scheme else LinearMachineFit)(params, data, spec)


def _limits(params: dict[str, Any], data: TrainingSet, spec: FitSpec) -> LinearLimits:
    max_time = float("inf") if params["max_time"] is None else float(params["max_time"])
    small = len(data.y) * spec.machine.table(data.n_classes).class1.shape[1] <= SMALL_PROBLEM
    extra_tol = SMALL_PROBLEM_TOL if small else 0.0
    return LinearLimits(spec.tol, int(params["max_iter"]), max_time, extra_tol, params["solver"])


def with_weights(start: Any, model: LinearModel) -> Any:
    """Return the start of a machine with the weights of a near one; pairs of classes start without."""
    if not isinstance(start, SolverState):
        return start
    return LinearSeed(start.amounts, None, start.n_classes, start.bias, model.coef, model.intercept)


def run_seeded_fit(params: dict[str, Any], data: TrainingSet, spec: FitSpec, start: Any, task: FitTask) -> Fitted:
    """As ``run_fit``; where it stalls on its way from another problem's solution, from nothing once more."""
    seeded = run_fit(linear_fit(params, data, spec), params, start, task)
    if start is None or seeded.certificate.stop_reason != StopReason.STALLED.value:
        return seeded
    return run_fit(linear_fit(params, data, spec), params, None, task)


class LinearMachineFit:
    """The fit of a machine that sees all classes."""

    store = None

    def __init__(self, params: dict[str, Any], data: TrainingSet, spec: FitSpec) -> None:
        self.data, self.spec, self.limits = data, spec, _limits(params, data, spec)
        self.problem = DualProblem(data, spec.machine, spec.kernel, spec.loss, spec.bias)
        self.error: BaseException | None = None

    @property
    def n_iter(self) -> int:
        return max(1, self.solution.report.n_iter)

    def problems(self) -> Iterator[DualProblem]:
        yield self.problem

    def solve(self, start: SolverState | None, monitor: FitMonitor[dict[str, Any]]) -> Certificate:
        with threadpool_limits(limits=1, user_api="blas"):  # sums have the same bits for any number of threads
            return self._solve(start, monitor)

    def _solve(self, start: SolverState | None, monitor: FitMonitor[dict[str, Any]]) -> Certificate:
        limits = self.limits
        check_start(self.problem, start)
        points: FitMonitor[LinearPoint] = monitor.map(self._attributes_of)
        if limits.solver in METHODS:
            check_squared(limits.solver, self.problem)
            self.solution = solve_squared(limits.solver, self.problem, limits, start, points)
        elif limits.solver in SIZES:
            check_decomposition(limits.solver, self.problem)
            self.solution = solve_by_decomposition(limits.solver, self.problem, limits, start, points)
        else:
            self.solution = solve_linear(self.problem, limits, start, points)
        self.error = self.solution.error
        core = Solution(self.solution.point.state, self.solution.report, self.error)
        return certify(
            self.problem, core, tol=self.spec.tol, solver=self.solution.solver, reason=REASONS[limits.solver]
        )

    def state(self) -> SolverState:
        return replace(self.solution.point.state, scores=None)

    def model(self) -> LinearModel:
        model: LinearModel = self.attributes()["_model"]
        return model

    def attributes(self) -> dict[str, Any]:
        return self._attributes_of(self.solution.point)

    def trace(self, certificate: Certificate) -> None:
        """There is none."""

    def _attributes_of(self, point: LinearPoint) -> dict[str, Any]:
        problem, state = self.problem, point.state
        beta = coefficients(problem.machine, state.amounts, problem.data.y, problem.n_classes)
        used = np.flatnonzero(beta.any(axis=1))
        constant = as_scores_sum(problem.machine, problem.kernel.offset * beta.sum(axis=0))
        intercept = constant if state.bias is None else state.bias
        model = LinearModel(np.ascontiguousarray(point.weights.T), intercept, problem.n_classes)
        return _attributes(problem.data, model, LinearDual(problem.data.rows[used], beta[used]))


class LinearPairsFit:
    """The fit of one binary machine for each pair of classes."""

    store = None

    def __init__(self, params: dict[str, Any], data: TrainingSet, spec: FitSpec) -> None:
        self.data, self.spec, self.limits = data, spec, _limits(params, data, spec)
        self.clock = Clock(self.limits.max_time)  # one for everything: a pair may cost less than to ask for the time
        self.fit = PairFit.of(data, spec)
        self.error: BaseException | None = None

    @property
    def n_iter(self) -> int:
        return max(1, int(self.settled.n_iter.max()))  # as in scikit-learn the largest of all parts

    def problems(self) -> Iterator[DualProblem]:
        return map(self.fit.dual_problem, self.fit.problems)

    def solve(self, start: PairState | None, monitor: FitMonitor[dict[str, Any]]) -> Certificate:
        with threadpool_limits(limits=1, user_api="blas"):  # sums have the same bits for any number of threads
            return self._solve(start, monitor)

    def _solve(self, start: PairState | None, monitor: FitMonitor[dict[str, Any]]) -> Certificate:
        limits, clock = self.limits, self.clock
        if limits.solver in OF_PAPERS:
            raise ValueError(
                f"solver={limits.solver!r} does not apply to multi_class={self.fit.spec.scheme!r}; use "
                "multi_class='ova', which is the same machine for two classes, or solver='auto'."
            )
        if start is not None:
            check_pair_start(self.fit, start)

        def at(amounts: FloatArray) -> dict[str, Any]:  # an exact bias is not known yet
            start = SolvedPairs.at(self.fit, None)
            return self._attributes_of(feasible_points(self.fit, limits, replace(start, amounts=amounts)))

        found = solve_pairs(self.fit, limits, start, clock, monitor.map(at))
        self.settled = settle_pairs(self.fit, limits, found, clock, monitor.map(self._attributes_of))
        self.error = self.settled.error
        return worst_of(certify_settled(self.fit, self.settled, REASONS[limits.solver]))

    def state(self) -> PairState:
        return PairState(Slices(self.settled.points.amounts, self.fit.problems.starts))

    def model(self) -> LinearModel:
        model: LinearModel = self.attributes()["_model"]
        return model

    def attributes(self) -> dict[str, Any]:
        return self._attributes_of(self.settled.points)

    def trace(self, certificate: Certificate) -> None:
        """There is none."""

    def _attributes_of(self, points: PairPoints) -> dict[str, Any]:
        """The model of these points."""
        fit, problems = self.fit, self.fit.problems
        beta = problems.signs * points.amounts
        intercept = points.biases
        if fit.spec.bias is not Bias.EXACT:
            intercept = fit.spec.kernel.offset * np.add.reduceat(beta, problems.starts[:-1])
        pairs, held = np.repeat(np.arange(len(problems)), problems.sizes), beta != 0.0
        places = (problems.rows[held], pairs[held])
        by_row = sparse.csr_array((beta[held], places), shape=(fit.data.X.shape[0], len(problems)))
        used = np.flatnonzero(np.diff(by_row.indptr))
        model = LinearModel(points.coef, intercept, fit.data.n_classes, fit.spec.scheme)
        return _attributes(fit.data, model, LinearDual(used, by_row[used]))


def _attributes(data: TrainingSet, model: LinearModel, dual: LinearDual) -> dict[str, Any]:
    return linear_attributes(model, dual, data.classes, data.class_weight, data.X.shape)


def linear_attributes(
    model: LinearModel, dual: LinearDual, classes: np.ndarray, class_weight: np.ndarray, shape: tuple[int, int]
) -> dict[str, Any]:
    """Return the attributes of a model that was trained on data of this shape."""
    coef, intercept = model.public_weights()
    return {
        "classes_": classes,
        "class_weight_": class_weight,
        "coef_": coef,
        "intercept_": intercept,
        "support_": dual.support.astype(np.int32),
        "shape_fit_": shape,
        "_model": model,
        "_dual": dual,
    }
