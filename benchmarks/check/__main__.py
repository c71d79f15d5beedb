"""Many random fits, each certificate against independent arithmetic.

    python -m benchmarks.check [--count 20000] [--seed 1] [--extremes 0.2] [--jobs 2] [--one INDEX]

A fit may be correct, refuse its input (ValueError; for extreme input only), or stop early and report that. It is wrong
when extended precision contradicts its certificate, when a process dies or hangs, or when a fit of fewer than
300 rows takes more than 2 s of processor time. Exit code 1 when anything is wrong. ``--one`` shows one problem alone.
"""

from __future__ import annotations

import collections
import sys

import click

from benchmarks.check.running import Result, check_case, run_all
from benchmarks.keeping import keep


@click.command()
@click.option("--count", default=2000, show_default=True, help="Random problems.")
@click.option("--seed", default=1, show_default=True)
@click.option("--extremes", default=0.2, show_default=True, help="Share of problems with extreme numbers.")
@click.option("--jobs", default=2, show_default=True, help="Processes; each fits with one thread.")
@click.option("--one", default=None, type=int, help="Only this problem, in this process.")
@click.option("--out", default=None, help="Directory that keeps the figures, docs/measured/promises for the page.")
def main(count: int, seed: int, extremes: float, jobs: int, one: int | None, out: str | None) -> None:
    """Fit, check, and count."""
    if one is not None:
        result = check_case(seed, one, extremes)
        print(result.text())
        sys.exit(1 if result.wrong else 0)
    outcomes: collections.Counter[str] = collections.Counter()
    slowest = Result(0, "", "")
    n_wrong = 0
    for result in run_all(seed, count, extremes, jobs):
        outcomes[result.outcome] += 1
        slowest = max(slowest, result, key=lambda one: one.seconds)
        if result.wrong:
            n_wrong += 1
            print(result.text(), flush=True)
    print(", ".join(f"{number:,} {outcome}" for outcome, number in outcomes.most_common()))
    print(f"slowest fit {slowest.seconds:.2f} s of processor time ({slowest.case})")
    print(f"{count:,} problems, {n_wrong} wrong")
    figures = {"problems": count, "wrong": n_wrong, "outcomes": dict(outcomes), "slowest_seconds": slowest.seconds}
    keep(out, "check", f"python -m benchmarks.check --count {count} --seed {seed} --extremes {extremes}", figures)
    sys.exit(1 if n_wrong else 0)


if __name__ == "__main__":
    main()
