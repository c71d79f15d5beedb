"""One process of a fault loop: a call is made again and again, each time with another failure.

    LD_PRELOAD=... python -m benchmarks.faults.worker CALL KIND FIRST STEP COUNT

Prints a line before and after each try, so that the reader knows where a crash or a hang was: ``total N`` (how
many requests the call makes), ``try N``, then ``good``, ``refused`` or ``bad`` with what went wrong.
"""

from __future__ import annotations

import sys

from benchmarks.faults import library
from benchmarks.faults.calls import Call, public_calls


def _one(call: Call, expected: float, kind: str, n: int, count: int) -> str:
    outcome = "good"
    library.arm(kind, n, count)
    try:
        result = call()
        library.disarm()
        if result != expected:
            return f"bad result {result!r} where {expected!r} is right"
    except MemoryError:
        outcome = "refused" if kind == "memory" else "bad MemoryError where only threads fail"
    except Exception as error:
        outcome = f"bad {type(error).__name__}: {error}"
    finally:
        library.disarm()
    after = call()
    return outcome if after == expected else f"bad result after the error: {after!r} where {expected!r} is right"


def main() -> None:
    name, kind, first, step, count = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:6])
    call = public_calls()[name]()
    expected = call()
    if call() != expected:
        print("bad the call gives another result each time", flush=True)
        return
    library.arm(kind, library.FOR_GOOD, 1)
    call()
    total = library.disarm()
    step = max(step, 1 + total // -step) if step < 0 else step
    print("total", total, flush=True)
    for n in range(first, total + 1, step):
        print("try", n, flush=True)
        print(_one(call, expected, kind, n, count), flush=True)
    print("done", flush=True)


if __name__ == "__main__":
    main()
