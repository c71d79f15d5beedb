"""Units on a Dask cluster, with checks of the cluster while waiting.

A worker that reached its memory limit is paused and starts nothing, without an error: where all are, the search would
never report anything. The scheduler is therefore polled.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from typing import Any

POLL = 1.0  # seconds between two checks of the workers
PATIENCE = 60.0  # seconds for which all workers may be paused and idle
ANSWER = 10.0  # seconds within which a reachable scheduler answers

ADVICE = "then fit again, with resume= a directory to continue from there."


class LostContactError(Exception):
    """Lost workers, connections or client."""


def submit(backend: Any, call: Callable[..., Any], task: Any, units: Sequence[Any]) -> Iterator[Any]:
    """Yield the futures of ``call(task, unit)`` as they end, in any order."""
    client = backend.client
    try:
        data = client.scatter(task, broadcast=True, hash=False)
        futures = [client.submit(call, data, unit, pure=False, **backend.submit_kwargs) for unit in units]
    except Exception as error:  # CommClosedError, a TimeoutError where no worker could take it, or a closed client's
        if not isinstance(error, OSError) and client.status == "running":
            raise
        if is_stuck(workers_of(client)):
            raise RuntimeError(_paused(client, len(units))) from error
        raise LostContactError(str(error)) from error
    try:
        yield from _as_completed(client, futures)
    finally:
        if client.status == "running":  # otherwise the cluster is unreachable
            with contextlib.suppress(OSError):
                client.cancel(futures)


def _as_completed(client: Any, futures: list[Any]) -> Iterator[Any]:
    from distributed import wait

    pending, stuck_since = set(futures), None
    while pending:
        try:
            with client.as_current():  # there may be others
                ended = wait(pending, timeout=POLL, return_when="FIRST_COMPLETED")  # type: ignore[no-untyped-call,unused-ignore]
            done = ended.done
        except TimeoutError:
            done = set()
        except CancelledError:  # of some: each future reports its own error
            done = {future for future in pending if future.done()}
        except ValueError as error:  # no client: it was closed, with or without its cluster
            if client.status == "running":
                raise
            raise LostContactError(str(error)) from error
        pending -= done
        yield from done
        stuck = not done and is_stuck(workers_of(client))
        stuck_since = (stuck_since or time.monotonic()) if stuck else None
        if stuck_since is not None and time.monotonic() - stuck_since >= PATIENCE:
            raise RuntimeError(_paused(client, len(pending)))


def workers_of(client: Any) -> dict[str, Any] | None:
    """Return the scheduler's information on its workers; None if it does not answer."""
    if client.status != "running":
        return None
    try:
        identity: dict[str, Any] = client.sync(client.scheduler.identity, callback_timeout=ANSWER)
    except (OSError, CancelledError):
        return None
    return dict(identity["workers"])


def is_stuck(workers: dict[str, Any] | None) -> bool:
    """Whether there are workers, and all are paused with nothing under way."""
    return bool(workers) and all(
        worker["status"] == "paused" and not worker["metrics"].get("executing") for worker in (workers or {}).values()
    )


def _paused(client: Any, n_left: int) -> str:
    n_workers = len(workers_of(client) or ())
    return (
        f"All {n_workers} workers of the Dask cluster are paused at their memory limit, with {n_left} "
        f"units of the search left; give workers more memory or set cache_size to fewer megabytes, {ADVICE}"
    )


def scheduler_is_gone(n_left: int) -> str:
    """Return the error for a scheduler that does not answer any more."""
    return (
        f"The Dask scheduler does not answer any more, with {n_left} units of the search left; start a cluster and a "
        f"client, {ADVICE}"
    )
