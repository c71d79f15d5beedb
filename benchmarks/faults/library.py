"""The preloaded library: its compilation, and the control of failures from a process that has loaded it."""

from __future__ import annotations

import ctypes
import hashlib
import shutil
import subprocess
import tempfile
from pathlib import Path

from multimargin import _core

SOURCE = Path(__file__).with_name("failing_calls.c")
KINDS = {"memory": 1, "threads": 2}
FOR_GOOD = 10**9


def build() -> Path | None:
    """Return the compiled library, None without a compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        return None
    mark = hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:16]
    library = Path(tempfile.gettempdir()) / f"multimargin_failing_calls_{mark}.so"
    if not library.exists():
        with tempfile.TemporaryDirectory() as folder:
            made = Path(folder) / "library.so"
            # The C++ runtime comes first, so that its operator new can be found.
            libraries = ["-Wl,--no-as-needed", "-lstdc++", "-ldl", "-lpthread"]
            subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", made, SOURCE, *libraries], check=True)
            shutil.move(made, library)
    return library


def _extent() -> tuple[int, int]:
    """Return where the core's code lies in memory."""
    places = []
    name = str(Path(_core.__file__).resolve())
    for line in Path("/proc/self/maps").read_text().splitlines():
        if line.endswith(name):
            places += [int(end, 16) for end in line.split()[0].split("-")]
    return min(places), max(places)


def arm(kind: str, n: int, count: int = 1) -> None:
    """Let calls number n to n + count - 1 fail from now on."""
    begin, end = _extent()
    loaded = ctypes.CDLL(None)
    loaded.arm(KINDS[kind], ctypes.c_long(n), ctypes.c_long(count), ctypes.c_size_t(begin), ctypes.c_size_t(end))


def is_loaded() -> bool:
    """Whether this process was started with the library; where the memory is limited instead, it was not."""
    return hasattr(ctypes.CDLL(None), "disarm")


def disarm() -> int:
    """Return how many calls there were; from now on none fails."""
    stop = ctypes.CDLL(None).disarm
    stop.restype = ctypes.c_long
    return int(stop())
