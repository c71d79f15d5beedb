"""Units through joblib: processes of this machine, or a cluster of Dask or Ray, whichever ``parallel_config`` names.

Units are independent, so that results are the same wherever and in whatever order they run. A worker that
dies takes its unit with it (joblib's own processes all die together); what is lost is submitted again. Of a cluster all
workers are used, whatever ``n_jobs``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import joblib
import numpy as np
from joblib.parallel import get_active_backend

from multimargin.base.interrupts import allowed
from multimargin.model_selection import dask_units
from multimargin.model_selection.resume import ResumeDirectory
from multimargin.model_selection.search_table import Evaluate, Unit, UnitScores, key_of

# evaluate_unit(problem, gamma, fold, Cs)
EvaluateUnit = Callable[..., UnitScores]
# evaluate_gamma(problem, gamma, folds, Cs)
EvaluateGamma = Callable[..., Iterable[UnitScores]]

# Errors that mean a lost worker, not a wrong problem. By name: the packages that have them need not be installed.
LOST = {
    "ActorDiedError",  # Ray
    "BrokenProcessPool",  # the standard library's and loky's, whose TerminatedWorkerError is one
    "CancelledError",  # Dask: the worker that held the data is gone
    "CommClosedError",  # Dask: so is the connection
    "KilledWorker",  # Dask: some workers died of the same unit
    "LostContactError",  # Dask: while data were sent or results waited for
    "NodeDiedError",
    "OutOfMemoryError",
    "RayActorError",
    "WorkerCrashedError",
}


def local(evaluate_gamma: EvaluateGamma, directory: ResumeDirectory | None = None) -> Evaluate:
    """Return an evaluation in this process, all folds of a gamma together; results are stored on disk if requested.

    A KeyboardInterrupt of ``evaluate_gamma`` may have the outcomes that were finished as its attribute ``units``.
    """

    def evaluate(problem: Any, units: Sequence[Unit]) -> Iterator[UnitScores]:
        own = None if directory is None else directory.at(problem)
        found, missing = _on_disk(own, units)
        yield from found
        groups: dict[tuple[float, tuple[float, ...]], list[int]] = {}
        for unit in missing:
            groups.setdefault((unit.gamma, tuple(unit.Cs.tolist())), []).append(unit.fold)
        for (gamma, Cs), folds in groups.items():
            try:
                for outcome in evaluate_gamma(problem, gamma, folds, np.array(Cs)):
                    _keep(own, outcome)
                    yield outcome
            except KeyboardInterrupt as interrupt:
                for outcome in getattr(interrupt, "units", ()):  # folds that were finished before
                    _keep(own, outcome)
                raise

    return evaluate


def through_joblib(
    evaluate_unit: EvaluateUnit,
    *,
    n_jobs: int | None = None,
    directory: ResumeDirectory | None = None,
    retries: int = 3,
) -> Evaluate:
    """Return an evaluation by joblib's workers.

    Parameters
    ----------
    evaluate_unit : callable
        A function that workers can import.
    n_jobs : int or None
        As in joblib; None for the setting of ``parallel_config``.
    directory : ResumeDirectory or None
        Where units write what they found.
    retries : int
        How often units are submitted again whose worker died.
    """

    def evaluate(problem: Any, units: Sequence[Unit]) -> Iterator[UnitScores]:
        own = None if directory is None else directory.at(problem)
        found, missing = _on_disk(own, units)
        yield from found
        left = {unit.key: unit for unit in missing}
        task = _Task(problem, evaluate_unit, own)
        for attempt in range(retries + 1):
            if not left:
                return
            try:
                for outcome in _heard(_submit(task, list(left.values()), n_jobs)):
                    _keep(own, outcome)
                    del left[key_of(outcome)]
                    yield outcome
            except Exception as error:
                if not is_lost_worker(error):
                    raise
                if attempt == retries:
                    raise RuntimeError(_what_is_left(left, attempt + 1, own)) from error
                found, missing = _on_disk(own, list(left.values()))
                left = {unit.key: unit for unit in missing}
                yield from found

    return evaluate


def _heard(outcomes: Iterator[UnitScores]) -> Iterator[UnitScores]:
    """Yield the same; while one is waited for, Ctrl-C is raised at once."""
    while True:
        with allowed():
            outcome = next(outcomes, None)
        if outcome is None:
            return
        yield outcome


def is_lost_worker(error: BaseException) -> bool:
    """Whether an error reports a dead worker and not an error of the computation."""
    return any(cls.__name__ in LOST for cls in type(error).__mro__)


def leaves_this_machine() -> bool:
    """Whether ``parallel_config`` names a cluster."""
    backend, _ = get_active_backend()
    return _is_dask(backend) or _is_ray(backend)


def _what_is_left(left: dict[Any, Unit], n_attempts: int, directory: ResumeDirectory | None) -> str:
    unit = next(iter(left.values()))
    kept = "" if directory is None else f"; all others are kept in {str(directory.path)!r}"
    return (
        f"Workers died {n_attempts} times with {len(left)} units of the search left, the first of them gamma="
        f"{unit.gamma:g} in fold {unit.fold} (often memory is short){kept}; give workers more memory or set cache_size "
        "to fewer megabytes, then fit again, with resume= a directory to continue from there."
    )


@dataclass(frozen=True, eq=False)
class _Task:
    """Common data of all units; one object, so that it is sent to each worker once."""

    problem: Any
    evaluate_unit: EvaluateUnit
    directory: ResumeDirectory | None

    def __call__(self, unit: Unit) -> UnitScores:
        outcome = self.evaluate_unit(self.problem, unit.gamma, unit.fold, unit.Cs)
        # On another machine the directory may not be there: then the result is written where it arrives.
        if self.directory is not None and self.directory.is_ours():
            self.directory.save(outcome)
        return outcome


def _call(task: _Task, unit: Unit) -> UnitScores:
    return task(unit)


def _submit(task: _Task, units: list[Unit], n_jobs: int | None) -> Iterator[UnitScores]:
    backend, _ = get_active_backend()
    if _is_dask(backend):
        yield from _submit_to_dask(backend, task, units)
    elif _is_ray(backend):
        yield from _submit_to_ray(backend, task, units)
    else:
        parallel = joblib.Parallel(n_jobs=n_jobs, batch_size=1, return_as="generator_unordered")
        outcomes = parallel(joblib.delayed(_call)(task, unit) for unit in units)
        try:
            yield from outcomes
        finally:
            outcomes.close()


def _submit_to_dask(backend: Any, task: _Task, units: list[Unit]) -> Iterator[UnitScores]:
    """Submit to the client of joblib's backend, because joblib does not notice units that killed their workers.

    Other units continue when one is lost; the error is raised at the end.
    """
    lost: BaseException | None = None
    n_left = len(units)
    try:
        for future in dask_units.submit(backend, _call, task, units):
            try:
                outcome = future.result()
            except Exception as error:
                if not is_lost_worker(error):
                    raise
                lost = error
                continue
            n_left -= 1
            yield outcome
    except dask_units.LostContactError as error:
        lost = error
    if lost is not None:
        if dask_units.workers_of(backend.client) is None:
            raise RuntimeError(dask_units.scheduler_is_gone(n_left)) from lost
        raise lost


def _submit_to_ray(backend: Any, task: _Task, units: list[Unit]) -> Iterator[UnitScores]:
    """Submit to Ray itself: its backend for joblib gives all results at once, or none when a worker dies."""
    import ray

    if not ray.is_initialized():
        ray.init()
    data = ray.put(task)
    # A lost unit is reported at the end and counts as an attempt: Ray must not repeat it by itself.
    remote = ray.remote(_call).options(**{"max_retries": 0} | (backend.ray_remote_args or {}))
    pending = [remote.remote(data, unit) for unit in units]
    lost: BaseException | None = None
    try:
        while pending:
            (done, *_), pending = ray.wait(pending, num_returns=1)
            try:
                outcome = ray.get(done)
            except Exception as error:
                if not is_lost_worker(error):
                    raise getattr(error, "cause", None) or error from None
                lost = error
                continue
            yield outcome
    finally:
        for reference in pending:
            ray.cancel(reference)
    if lost is not None:
        raise lost


def _is_dask(backend: Any) -> bool:
    return type(backend).__name__ == "DaskDistributedBackend"


def _is_ray(backend: Any) -> bool:
    return type(backend).__module__.partition(".")[0] == "ray"


def _on_disk(directory: ResumeDirectory | None, units: Sequence[Unit]) -> tuple[list[UnitScores], list[Unit]]:
    """Return the stored outcomes of units, and the units without one."""
    if directory is None:
        return [], list(units)
    pairs = [(unit, directory.load(unit)) for unit in units]
    found = [outcome for _, outcome in pairs if outcome is not None]
    return found, [unit for unit, outcome in pairs if outcome is None]


def _keep(directory: ResumeDirectory | None, outcome: UnitScores) -> None:
    """Write an outcome that its worker could not write."""
    if directory is not None and directory.load(Unit(outcome.gamma, outcome.fold, outcome.Cs)) is None:
        directory.save(outcome)
