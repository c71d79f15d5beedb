"""Threads and memory that this process may use, with the limits of containers and joblib."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from pathlib import Path

import joblib

from multimargin import _core

MEGABYTE = 1_000_000


@lru_cache(maxsize=1)
def _processors() -> int:
    return int(joblib.cpu_count())


_known: ContextVar[int | None] = ContextVar("number of threads", default=None)


def n_threads() -> int:
    """Return the number of threads to use: OMP_NUM_THREADS, threadpoolctl, joblib and cgroups are respected."""
    known = _known.get()
    return max(1, min(_core.allowed_threads(), _processors())) if known is None else known


@contextmanager
def threads_asked_once() -> Iterator[None]:
    """Ask for the number of threads now, and not again within."""
    token = _known.set(n_threads())
    try:
        yield
    finally:
        _known.reset(token)


def available_bytes() -> int:
    """Return the available memory: the least that the machine, the container and the process limit allow."""
    limits: list[float] = [_machine_available()]
    group = Path("/sys/fs/cgroup")
    for limit_file, use_file in (
        (group / "memory.max", group / "memory.current"),
        (group / "memory/memory.limit_in_bytes", group / "memory/memory.usage_in_bytes"),
    ):
        try:
            limits.append(int(limit_file.read_text()) - int(use_file.read_text()))
        except (OSError, ValueError):
            continue
    return int(max(0, min([*limits, _address_space_left()])))


def _address_space_left() -> float:
    """Return what the process limit (ulimit -v) leaves, on systems that have one."""
    try:
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        if limit == resource.RLIM_INFINITY:
            return float("inf")
        used = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except (ImportError, AttributeError, OSError, ValueError):
        return float("inf")
    return limit - used


def _machine_available() -> int:
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    except (AttributeError, ValueError, OSError):
        return 1024 * MEGABYTE


def exceeds_room(needed: float) -> bool:
    """Return whether so many bytes are more than half of what is available; other work needs memory, too."""
    return needed > 64 * MEGABYTE and needed > available_bytes() // 2  # small requests are not checked


def check_room(needed: float, what: str, remedy: str) -> None:
    """Raise MemoryError, before anything is allocated, for a request of too much memory."""
    if exceeds_room(needed):
        raise MemoryError(
            f"{what} would take {needed / MEGABYTE:.0f} MB, and {available_bytes() / MEGABYTE:.0f} MB are available; "
            f"{remedy}."
        )


def cache_bytes(cache_size: float | str, needed: float = float("inf")) -> int:
    """Return the budget for kernel rows: megabytes as given, or a quarter of what is available for "auto".

    ``needed`` is the most that is useful; where it is small, the available memory is not queried.
    """
    least = 64 * MEGABYTE
    if cache_size != "auto":
        return int(min(float(cache_size) * MEGABYTE, 2.0**62))  # within the core's integers
    return least if needed <= least else max(least, available_bytes() // 4)
