"""One process of the sweep over limits of the address space.

    python -m benchmarks.faults.limited CALL NUMBER COUNT

The limit is what the process has when the call begins and NUMBER / COUNT of 64 MB more, which a call may take.
"""

from __future__ import annotations

import resource
import sys
from pathlib import Path

from benchmarks.faults.calls import public_calls

ROOM = 64 << 20


def main() -> None:
    name, number, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    call = public_calls()[name]()
    expected = call()
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + ROOM * number // count, resource.RLIM_INFINITY))
    outcome = "good"
    try:
        result = call()
    except MemoryError:
        result, outcome = expected, "refused"
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    after = call()
    good = result == after == expected
    print(outcome if good else f"bad {result!r}, then {after!r} where {expected!r} is right", flush=True)


if __name__ == "__main__":
    main()
