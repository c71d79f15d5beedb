"""Fault loops: each request for memory or for a thread of each public call fails, once and for good.

    python -m benchmarks.faults [--calls SVC] [--count 100] [--limits 0]

For each call a table says how many requests it makes, how many were made to fail, and the results: a correct result, a
MemoryError, or a fault: a crash, a hang, another error, a wrong result, an unusable object. ``--count`` is the most
failures tried of each call and kind. ``--limits`` beside that runs each call under so many limits of its address space
(RLIMIT_AS). Ends with code 1 if anything was wrong.
"""

from __future__ import annotations

import sys

import click

from benchmarks.faults.calls import public_calls
from benchmarks.faults.running import Tally, run_limits, run_loop
from benchmarks.keeping import keep

# What fails, and how many requests in a row.
LOOPS = (("memory", "once", 1), ("memory", "for good", 10**9), ("threads", "once", 1), ("threads", "for good", 10**9))


def _show(name: str, what: str, tally: Tally) -> None:
    numbers = f"{tally.total:8d} {tally.tried:6d} {tally.good:6d} {tally.refused:8d} {len(tally.faults):6d}"
    click.echo(f"{name:28s} {what:18s} {numbers}")
    for fault in tally.faults[:5]:
        click.echo(f"    {fault}")


@click.command(help=__doc__)
@click.option("--calls", default="", help="Only calls whose name begins so.")
@click.option("--count", default=100, help="Failures tried of each call and kind, at most.")
@click.option("--limits", default=0, help="Limits of the address space to try.")
@click.option("--timeout", default=120.0, help="Seconds without a word that count as a hang.")
@click.option("--out", default=None, help="Directory that keeps the figures, docs/measured/promises for the page.")
def main(calls: str, count: int, limits: int, timeout: float, out: str | None) -> None:
    click.echo(f"{'call':28s} {'what fails':18s} {'requests':>8s} {'tried':>6s} {'right':>6s} {'refused':>8s} faults")
    n_faults = n_tried = n_calls = 0
    for name in public_calls():
        if not name.startswith(calls):
            continue
        n_calls += 1
        for kind, how, in_row in LOOPS:
            tally = run_loop(name, kind, in_row, count, timeout)
            _show(name, f"{kind} {how}", tally)
            n_faults += len(tally.faults)
            n_tried += tally.tried
        if limits:
            tally = run_limits(name, limits, timeout)
            _show(name, "address space", tally)
            n_faults += len(tally.faults)
            n_tried += tally.tried
    click.echo(f"{n_tried} failures, {n_faults} faults")
    command = f"python -m benchmarks.faults --count {count} --limits {limits}"
    keep(out, "faults", command, {"calls": n_calls, "failures": n_tried, "faults": n_faults})
    sys.exit(1 if n_faults else 0)


if __name__ == "__main__":
    main()
