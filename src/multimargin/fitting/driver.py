"""The one way of a fit: solve, certify, and make the attributes of an estimator."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from multimargin.base.resources import threads_asked_once
from multimargin.fitting.progress import FitTask, progress_line
from multimargin.fitting.spec import FitSpec
from multimargin.kernels.store import KernelStore
from multimargin.problems.problem import DualProblem
from multimargin.problems.separability import refuse_if_inseparable
from multimargin.problems.training_set import TrainingSet
from multimargin.solvers.certificate import Certificate
from multimargin.solvers.monitor import FitMonitor
from multimargin.solvers.report import Progress, StopReason

Attributes = dict[str, Any]


class Fit(Protocol):
    """A training problem with its solver; after ``solve`` also what was found.

    Attributes
    ----------
    error : BaseException or None
        The exception that ended the solve (Ctrl-C, a failing callback), if one did.
    n_iter : ndarray of int, or int
        Steps, as the estimator has them in ``n_iter_``; at least 1.
    store : KernelStore or None
        What other fits on the same data with the same kernel may use.
    """

    data: TrainingSet
    spec: FitSpec
    error: BaseException | None

    @property
    def n_iter(self) -> Any: ...

    @property
    def store(self) -> KernelStore | None: ...

    def problems(self) -> Iterator[DualProblem]:
        """Yield what is solved."""
        ...

    def solve(self, start: Any, monitor: FitMonitor[Attributes]) -> Certificate:
        """Solve from a state, or from nothing; the monitor's states are those of ``attributes``."""
        ...

    def state(self) -> Any:
        """Return what a warm start goes on from."""
        ...

    def model(self) -> Any:
        """Return what predicts."""
        ...

    def attributes(self) -> Attributes:
        """Return what the estimator needs to predict."""
        ...

    def trace(self, certificate: Certificate) -> Any:
        """Return the course of the solve, where the parameters ask for it."""
        ...


@dataclass(frozen=True, eq=False)
class Fitted:
    """What a fit leaves: the exception that ended it, if one did, its certificate and the estimator's attributes.

    ``state`` and ``store`` are what other fits on the same data begin with. After a calibration ``folds`` is the
    certificate of the worst of its models, or ``missing`` says why it gave no probabilities.
    """

    error: BaseException | None
    certificate: Certificate
    attributes: Attributes
    state: Any
    store: KernelStore | None
    folds: Certificate | None = None
    missing: str = ""


def run_fit(fit: Fit, params: dict[str, Any], start: Any, task: FitTask) -> Fitted:
    """Solve, certify, and make the attributes. Raises what a callback raised, except Ctrl-C."""
    with threads_asked_once(), progress_line(int(params["verbose"]), fit.spec.name) as show:
        if np.isinf(fit.data.C).any():
            for problem in fit.problems():
                refuse_if_inseparable(problem)
        certificate = fit.solve(start, make_monitor(params, show, task))
        if fit.error is not None and not isinstance(fit.error, KeyboardInterrupt):
            raise fit.error
        state, attributes = fit.state(), fit.attributes()
        if params["verbose"]:
            show(_last_moment(certificate, fit.data, attributes))
    unfinished = certificate.stop_reason != StopReason.CONVERGED.value
    attributes |= {
        "certificate_": certificate,
        "n_iter_": fit.n_iter,
        "fit_status_": int(unfinished),
        "_spec": fit.spec,
        "_state": (state, fit.data.classes) if bool(params["warm_start"]) or unfinished else None,
    }
    if params.get("trace"):
        attributes["trace_"] = fit.trace(certificate)
    return Fitted(fit.error, certificate, attributes, state, fit.store)


def make_monitor(params: dict[str, Any], show: Callable[[Progress], None], task: FitTask) -> FitMonitor[dict[str, Any]]:
    """Return the monitor that shows a moment and asks the user's functions; its states are fitted attributes."""
    on_progress = params["on_progress"]
    if not (params["verbose"] or on_progress is not None or task.active):
        return FitMonitor()

    def watch(progress: Progress, attributes: Callable[[], Attributes]) -> bool:
        show(progress)
        stop = on_progress is not None and bool(on_progress(progress))
        return task.moment(attributes) or stop

    return FitMonitor(watch)


def _last_moment(certificate: Certificate, data: TrainingSet, attributes: Attributes) -> Progress:
    return Progress(
        iteration=certificate.n_iter,
        seconds=certificate.seconds,
        violation=certificate.kkt_violation,
        dual=certificate.dual,
        primal=certificate.primal,
        n_active=len(data.y),
        n_support=len(attributes["support_"]),
        kernel_rows=certificate.kernel_rows,
        cache_hits=certificate.cache_hits,
    )
