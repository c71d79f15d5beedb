"""One fit: from checked parameters and data to a solution, its certificate and the attributes of an estimator."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from multimargin.base.matrices import as_published, is_sparse, public_coefficients
from multimargin.base.resources import cache_bytes, n_threads
from multimargin.fitting import parameters as check
from multimargin.fitting.spec import FitSpec
from multimargin.kernels.rounding import fits_float32
from multimargin.kernels.spec import KernelSpec
from multimargin.kernels.store import KernelStore
from multimargin.models.kernel_model import KernelModel
from multimargin.problems.problem import Bias, DualProblem
from multimargin.problems.training_set import TrainingSet
from multimargin.solvers.certificate import Certificate, certify
from multimargin.solvers.core import Solution, SolverState, StateWatch
from multimargin.solvers.effort import NarrowGap, joined, work_left, work_limit
from multimargin.solvers.frank_wolfe import driver as frank_wolfe
from multimargin.solvers.monitor import FitMonitor
from multimargin.solvers.options import Precision, SolverChoice, SolverOptions
from multimargin.solvers.proximal_bias import solve_by_bias_rule
from multimargin.solvers.report import SolverReport
from multimargin.solvers.separable import is_one_vs_all, solve_one_vs_all
from multimargin.solvers.splitting import driver as splitting
from multimargin.solvers.trace import Trace

SPLITTING_REASON = "scores sum to zero, so that most variables may be free"
# Problems with at most this many dual variables are solved further than tol, where that is cheap, so that
# equivalent data (a repeated row, a doubled weight) give the same model to many digits.
SMALL_PROBLEM = 3_000
SMALL_PROBLEM_TOL = 1e-10


def choose_solver(choice: str, problem: DualProblem) -> tuple[SolverChoice, str]:
    """Return the algorithm and the reason for it."""
    if choice != "auto":
        solver = SolverChoice(choice)
        whole = solver in (SolverChoice.WHOLE_EXAMPLE, SolverChoice.SEMI_GREEDY, SolverChoice.TWO_LEVEL)
        if whole and not problem.structure.structured:
            raise ValueError(
                f"solver={choice!r} cannot train the machine {problem.machine.name!r}, whose margins share more "
                "than one class; use solver='s2do' or 'smo'."
            )
        newton = whole or solver is SolverChoice.WORKING_SET
        if newton and not problem.kernel.positive_semidefinite:
            raise ValueError(
                f"solver={choice!r} needs a positive semi-definite kernel, kernel={problem.kernel.name!r} is none; "
                "use solver='s2do' or 'smo'."
            )
        return solver, "asked for"
    if not problem.kernel.positive_semidefinite:
        return SolverChoice.S2DO, "the kernel is not positive semi-definite"
    if not problem.structure.structured:
        return SolverChoice.S2DO, "the machine's margins share more than one class"
    return SolverChoice.TWO_LEVEL, "blocks of examples solved exactly, the fastest where it applies"


def choose_binary_solver(choice: str, kernel: KernelSpec) -> tuple[SolverChoice, str]:
    """Return how a binary problem with an exact bias is solved by pairs of variables, and the reason.

    SMO is the same choice of pairs as MAXIMUM_GAIN, with blocks of them where there are many examples.
    """
    if choice == SolverChoice.SMO.value:
        return SolverChoice.MAXIMUM_GAIN, "asked for"
    if choice != "auto":
        return SolverChoice(choice), "asked for"
    if not kernel.positive_semidefinite:
        return SolverChoice.SMO, "the kernel is not positive semi-definite"
    return SolverChoice.TWO_LEVEL, "pairs of variables, the free ones at once where that takes long, blocks where many"


def binary_solver_name(choice: str) -> str:
    """Return what a certificate calls the solver of binary problems with an exact bias."""
    return SolverChoice.SMO.value if choice == "auto" else choice


def make_options(
    params: dict[str, Any], spec: FitSpec, n_examples: int, solver: SolverChoice, *, small: bool
) -> SolverOptions:
    """Return the solver's options; a small problem is solved further than tol."""
    steps = 1 if spec.kernel.positive_semidefinite else 100  # on whole blocks, or on one or two variables
    variables, examples = check.check_shrinking(params["shrinking"])
    exact_pairs = bool(spec.scheme) and spec.bias is Bias.EXACT  # begin in float32, end in float64 by themselves
    return SolverOptions(
        solver=solver,
        precision=Precision.FLOAT64 if small and not exact_pairs else Precision.AUTOMATIC,
        tol=spec.tol,
        max_iter=int(params["max_iter"]),
        max_time=float("inf") if params["max_time"] is None else float(params["max_time"]),
        max_work=params.get("max_work", work_limit(n_examples)) if params["solver"] == "auto" else float("inf"),
        shrink_variables=variables and not small,
        shrink_examples=examples and not small,
        cache_bytes=float(cache_bytes(params["cache_size"], needed=8.0 * n_examples**2)),
        n_threads=n_threads(),
        extra_tol=SMALL_PROBLEM_TOL if small else 0.0,
        extra_steps=steps * (n_examples + 100) if small else 0,
        trace=bool(params["trace"]),
        trace_primal=str(params["trace"]) == "primal" and spec.kernel.positive_semidefinite,
    )


def with_precision(options: SolverOptions, kernel: KernelSpec, data: TrainingSet) -> SolverOptions:
    """Return the options with float64 rows from the beginning where float32 cannot hold kernel values."""
    if options.precision is not Precision.AUTOMATIC or fits_float32(kernel, data.kernel_rows):
        return options
    return replace(options, precision=Precision.FLOAT64)


def _is_small(params: dict[str, Any], problem: DualProblem) -> bool:
    return (
        params["solver"] in ("auto", SolverChoice.TWO_LEVEL.value)
        and problem.n_examples * problem.n_components <= SMALL_PROBLEM
    )


@dataclass(frozen=True)
class _Plan:
    """A solver with its options, and what the certificate says of it."""

    solve: Callable[[DualProblem, SolverOptions, SolverState | None, StateWatch], Solution]
    options: SolverOptions
    name: str
    reason: str

    def reason_after(self, report: SolverReport) -> str:
        return f"{self.reason}{splitting.course_of(report)}"


def _plan(params: dict[str, Any], problem: DualProblem, spec: FitSpec) -> _Plan:
    if params["solver"] == frank_wolfe.FRANK_WOLFE:  # of the core's options it takes tol, the limits and the threads
        options = make_options(params, spec, problem.n_examples, SolverChoice.S2DO, small=False)
        return _Plan(frank_wolfe.solve, options, frank_wolfe.FRANK_WOLFE, "asked for")
    binary, choice = is_one_vs_all(problem), params["solver"]
    by_core = "auto" if choice == splitting.SPLITTING else choice  # what checks, and goes on where that is needed
    solver, reason = choose_binary_solver(choice, problem.kernel) if binary else choose_solver(by_core, problem)
    options = make_options(params, spec, problem.n_examples, solver, small=_is_small(params, problem))
    options = with_precision(options, spec.kernel, problem.data)
    if not binary and _splits(params, problem):
        why = "asked for" if choice != "auto" else SPLITTING_REASON
        return _Plan(partial(solve_by_bias_rule, inner=splitting.solve), options, splitting.SPLITTING, why)
    name = binary_solver_name(choice) if binary else solver.value
    return _Plan(solve_one_vs_all if binary else solve_by_bias_rule, options, name, reason)


def _splits(params: dict[str, Any], problem: DualProblem) -> bool:
    """Return whether all examples are tried at once: where asked for, and where they are many enough to pay."""
    if params["solver"] == splitting.SPLITTING:
        splitting.check_problem(problem)
        return True
    return params["solver"] == "auto" and splitting.applies(problem) and not _is_small(params, problem)


class KernelFit:
    """The fit of a machine that sees all classes.

    Parameters
    ----------
    store : KernelStore or None
        Of another fit on the same data with the same kernel, if there was one.
    """

    def __init__(
        self, params: dict[str, Any], data: TrainingSet, spec: FitSpec, store: KernelStore | None = None
    ) -> None:
        self.params, self.data, self.spec = params, data, spec
        self.problem = DualProblem(data, spec.machine, spec.kernel, spec.loss, spec.bias, given_store=store)
        self.error: BaseException | None = None

    @property
    def n_iter(self) -> np.ndarray:
        return np.array([max(1, self.solution.report.n_iter)], dtype=np.int32)

    @property
    def store(self) -> KernelStore:
        return self.problem.store

    def problems(self) -> Iterator[DualProblem]:
        yield self.problem

    def solve(self, start: SolverState | None, monitor: FitMonitor[dict[str, Any]]) -> Certificate:
        """Choose the solver and its options by the parameters, and run it; once more where the gap is too wide."""
        problem, gap = self.problem, NarrowGap(self.params, self.spec.tol)
        states: FitMonitor[SolverState] = monitor.map(self._attributes_at)
        params, spec, before = self.params, self.spec, None
        while True:
            plan = _plan(params, problem, spec)
            solution = plan.solve(problem, plan.options, start, states)
            found = certify(
                problem, solution, tol=spec.tol, solver=plan.name, reason=plan.reason_after(solution.report)
            )
            if before is not None:
                solution = replace(solution, report=joined(before, solution.report))
            again = gap.next(found, work_left(problem.n_examples, solution.report.phases))
            if again is None or gap.certificate is None:
                break
            params, spec = again[0], replace(self.spec, tol=again[1])
            before, start = solution.report, solution.state
        self.solution, self.error = solution, solution.error
        return gap.certificate or found

    def state(self) -> SolverState:
        return self.solution.state

    def model(self) -> KernelModel:
        state = self.solution.state
        return KernelModel.from_amounts(self.problem, state.amounts, state.bias)

    def attributes(self) -> dict[str, Any]:
        return make_attributes(self.problem, self.solution.state)

    def _attributes_at(self, state: SolverState) -> dict[str, Any]:
        return make_attributes(self.problem, state)

    def trace(self, certificate: Certificate) -> Trace | list[Trace]:
        traces = list(self.solution.report.traces)
        by_class = is_one_vs_all(self.problem) and self.params["solver"] != frank_wolfe.FRANK_WOLFE
        return traces if by_class else end_trace(traces[0], certificate)  # Frank and Wolfe's sees all classes at once


def end_trace(trace: Trace, certificate: Certificate) -> Trace:
    """Return the trace with the certificate's numbers in its last point: the core knows no primal of a hard margin."""
    return trace.ending_at(violation=certificate.kkt_violation, dual=certificate.dual, primal=certificate.primal)


def make_attributes(problem: DualProblem, state: SolverState) -> dict[str, Any]:
    """Return the attributes that a model in this state has; enough to predict."""
    model = KernelModel.from_amounts(problem, state.amounts, state.bias)
    data = problem.data
    made = expansion_attributes(model, data.classes, data.class_weight, data.X.shape)
    return made | {"_fitted_dense": not is_sparse(data.X)}


def expansion_attributes(
    model: KernelModel, classes: np.ndarray, class_weight: np.ndarray, shape: tuple[int, int]
) -> dict[str, Any]:
    """Return the attributes of a model that was trained on data of this shape."""
    binary = len(classes) == 2
    beta, intercept = model.beta, model.intercept
    # two classes: the one function (f_1 - f_0) / 2
    coef = (beta[:, 1:] - beta[:, :1]).T / 2 if binary else beta.T.copy()
    return {
        "classes_": classes,
        "class_weight_": class_weight,
        "support_": model.support.astype(np.int32),
        "support_vectors_": as_published(model.support_vectors),
        "n_support_": model.n_support,
        "dual_coef_": public_coefficients(coef, as_sparse=is_sparse(model.support_vectors)),
        "intercept_": (intercept[1:] - intercept[:1]) / 2 if binary else intercept.copy(),
        "shape_fit_": shape,
        "_model": model,
        "_calibrator": None,
    }
