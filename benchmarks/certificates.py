"""Every machine on the papers' data sets: does verify confirm the optimum?

    python -m benchmarks.certificates [--data iris ...] [--machine ww ...] [--solver auto] [--limit 120]

Prints one line per fit: how it ended, steps, seconds, the solver's certificate and the violation that ``verify``
finds in float64. A line ends in "ok" when the true violation is at most tol, "honest" when it is not and the
certificate did not claim it, and "FALSE" when the certificate's claim is wrong (then the exit code is 1).
"""

from __future__ import annotations

import sys
import warnings

import click
from sklearn.exceptions import ConvergenceWarning

from multimargin import MACHINES, SVC, verify
from multimargin.datasets import load_benchmark, parameters

SETS = ("iris", "wine", "glass", "vowel", "soybean", "car", "segment", "dna", "optdigits", "satimage")


def judge(claimed: bool, true: bool) -> str:
    if true:
        return "ok"
    return "FALSE" if claimed else "honest"


@click.command()
@click.option("--data", multiple=True, default=SETS)
@click.option("--machine", multiple=True, default=tuple(MACHINES))
@click.option("--solver", default="auto")
@click.option("--limit", default=120.0, help="Seconds per fit.")
def main(data: tuple[str, ...], machine: tuple[str, ...], solver: str, limit: float) -> None:
    """Fit and verify every machine on every data set."""
    warnings.simplefilter("ignore", ConvergenceWarning)
    verdicts: dict[str, int] = {}
    for name in data:
        benchmark = load_benchmark(name)
        for choice in machine:
            C, gamma = parameters(name, choice)
            clf = SVC(multi_class=choice, C=C, gamma=gamma, solver=solver, max_time=limit)
            clf.fit(benchmark.X, benchmark.y)
            claim, truth = clf.certificate_, verify(clf, benchmark.X, benchmark.y)
            verdict = judge(claim.stop_reason == "converged", truth.optimal)
            verdicts[verdict] = verdicts.get(verdict, 0) + 1
            print(
                f"{name:10} {choice:4} C={C:<8g} gamma={gamma!s:11.11} {claim.stop_reason:10} "
                f"{claim.n_iter:>9,} steps {claim.seconds:8.3f} s  {len(clf.support_):>5} SVs  "
                f"violation {claim.kkt_violation:.2e} true {truth.kkt_violation:.2e}  "
                f"gap {truth.relative_gap:.1e}  {verdict}",
                flush=True,
            )
    print(", ".join(f"{count} {verdict}" for verdict, count in sorted(verdicts.items())))
    sys.exit(1 if "FALSE" in verdicts else 0)


if __name__ == "__main__":
    main()
