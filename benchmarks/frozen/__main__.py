"""Small problems with certified optima, fitted by all estimators, solvers and formats.

    python -m benchmarks.frozen [--problem NUMBER] [--out docs/measured/promises]
    python -m benchmarks.frozen --make [--count 300] [--seed 1]

Replays every stored problem by every estimator, solver and format that takes it, at three tolerances. Its dual must
not be above the stored optimum and its primal not below, beyond rounding, so that the dual is below the optimum by at
most the gap of the certificate; ``solver="auto"`` must end as optimal. Exit code 1 when anything disagrees. ``--make``
draws the problems anew, certifies them and writes them: our fit at tol=1e-9 and the value of a quadratic programming
solver must agree to 1e-8.
"""

from __future__ import annotations

import collections
import sys

import click

from benchmarks.frozen.making import Refusals, make_problems
from benchmarks.frozen.problems import STORED, read_problems, write_problems
from benchmarks.frozen.replaying import replay, ways_of
from benchmarks.keeping import keep


@click.command()
@click.option("--make", is_flag=True, help="Make a new set instead of replaying the stored one.")
@click.option("--count", default=300, show_default=True, help="Problems to make.")
@click.option("--seed", default=1, show_default=True, help="Of the problems to make.")
@click.option("--problem", default=None, type=int, help="Replay this one alone.")
@click.option("--out", default=None, help="Directory that keeps the figures, docs/measured/promises for the page.")
def main(make: bool, count: int, seed: int, problem: int | None, out: str | None) -> None:
    """Replay the stored problems, or make them."""
    if make:
        _make(seed, count)
        return
    problems = read_problems() if problem is None else [read_problems()[problem]]
    outcomes: collections.Counter[str] = collections.Counter()
    ways: set[str] = set()
    n_wrong = 0
    for one in problems:
        for way in ways_of(one.case):
            result = replay(one, way)
            outcomes[result.outcome] += 1
            ways.add(str(way))
            if result.complaints:
                n_wrong += 1
                print(result.text(), flush=True)
    print(", ".join(f"{number:,} {outcome}" for outcome, number in outcomes.most_common()))
    print(f"{len(problems)} problems, {outcomes.total():,} fits in {len(ways)} ways, {n_wrong} disagree")
    apart = max(optimum.apart for one in problems for optimum in one.optima)
    figures = {
        "problems": len(problems),
        "fits": outcomes.total(),
        "ways": len(ways),
        "disagree": n_wrong,
        "outcomes": dict(outcomes),
        "apart": apart,
    }
    keep(out, "frozen", "python -m benchmarks.frozen", figures)
    sys.exit(1 if n_wrong else 0)


def _make(seed: int, count: int) -> None:
    refusals: Refusals = collections.Counter()
    problems = list(make_problems(seed, count, refusals))
    write_problems(problems)
    optima = [optimum for problem in problems for optimum in problem.optima]
    print(f"{len(problems)} problems, {len(optima)} quadratic programs, {STORED.stat().st_size:,} bytes")
    print(f"values at most {max(optimum.apart for optimum in optima):.2g} of the dual apart")
    print("drawn again: " + ", ".join(f"{number} {why}" for why, number in refusals.most_common()))


if __name__ == "__main__":
    main()
