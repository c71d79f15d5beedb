"""Hashes of all fitted attributes, to prove that a change moves no bit.

    python -m benchmarks.golden --write FILE     one line for each case: its name and the hash of its values
    python -m benchmarks.golden --compare FILE   which cases differ from the file; exit code 1 if any do
    python -m benchmarks.golden --store          hashes.json rewrite it, after a change that should move bits

Run ``--write`` and ``--compare`` on one machine, before and after a change: all bits of all cases count, whichever
instruction set runs. ``tests/project/test_golden.py`` compares the stored file on machines that we do not know;
`stored.py` says which cases it holds.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import click

from benchmarks.golden.cases import all_cases
from benchmarks.golden.hashing import hash_of
from benchmarks.golden.stored import STORED, may_be_stored, portable_hashes, render


@click.command()
@click.option("--write", default=None, help="Write all hashes to this file.")
@click.option("--compare", default=None, help="Compare with this file.")
@click.option("--store", is_flag=True, help="Rewrite the stored file of the tests.")
@click.option("--only", default="", help="Cases whose name begins with this.")
@click.option("--portable", is_flag=True, help="Only cases that may be stored.")
@click.option("--times", is_flag=True, help="Show the cases that took longest.")
def main(*, write: str | None, compare: str | None, store: bool, only: str, portable: bool, times: bool) -> None:
    """Write or compare the hashes of all cases."""
    if store:
        found = portable_hashes()
        STORED.write_text(render(found))
        click.echo(f"{len(found)} cases in {STORED}")
        return
    seconds: dict[str, float] = {}
    hashes: dict[str, str] = {}
    for case in all_cases():
        if case.name.startswith(only) and (may_be_stored(case.name) or not portable):
            begin = time.perf_counter()
            hashes[case.name] = hash_of(case)
            seconds[case.name] = time.perf_counter() - begin
    refused = sum(value == "refused" for value in hashes.values())
    click.echo(f"{len(hashes)} cases, {refused} of them refused, {sum(seconds.values()):.1f} s", err=True)
    if times:
        for name in sorted(seconds, key=lambda name: -seconds[name])[:20]:
            click.echo(f"{seconds[name]:6.2f} s  {name}", err=True)
    if write is not None:
        Path("/dev/stdout" if write == "-" else write).write_text(render(hashes))
    if compare is not None:
        sys.exit(_report(json.loads(Path(compare).read_text()), hashes, only))


def _report(before: dict[str, str], now: dict[str, str], only: str) -> int:
    """Print what differs, and return the exit code."""
    before = {name: value for name, value in before.items() if name.startswith(only)}
    for name in sorted(before.keys() | now.keys()):
        if before.get(name) != now.get(name):
            click.echo(f"{name}: {before.get(name, 'not there')} -> {now.get(name, 'not there')}")
    n_different = sum(before.get(name) != now.get(name) for name in before.keys() | now.keys())
    click.echo(f"{n_different} of {len(before.keys() | now.keys())} cases differ")
    return 1 if n_different else 0


if __name__ == "__main__":
    main()
