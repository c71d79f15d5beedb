"""Iterations of SMO and S2DO side by side, as in DGI11 Table 3.

    python -m benchmarks.iterations [--data glass ...] [--machine ww ...] [--limit 300]

(C, gamma) are those of DGI11 Table 1. The paper's counts are medians over ten splits of 70 percent of the rows;
here all rows are used, so only the order of the two solvers is comparable.
"""

from __future__ import annotations

import warnings

import click
from sklearn.exceptions import ConvergenceWarning

from multimargin import SVC
from multimargin.datasets import DGI11_PARAMETERS, load_benchmark

SETS = ("glass", "iris", "soybean", "car", "segment")


@click.command()
@click.option("--data", multiple=True, default=SETS)
@click.option("--machine", multiple=True, default=("ww", "llw"))
@click.option("--limit", default=300.0, help="Seconds per fit.")
def main(data: tuple[str, ...], machine: tuple[str, ...], limit: float) -> None:
    """Count the iterations of both solvers."""
    warnings.simplefilter("ignore", ConvergenceWarning)
    for name in data:
        benchmark = load_benchmark(name)
        for choice in machine:
            log_C, log_gamma = DGI11_PARAMETERS[name][choice]
            cells = []
            for solver in ("smo", "s2do"):
                clf = SVC(multi_class=choice, C=2.0**log_C, gamma=2.0**log_gamma, solver=solver, max_time=limit).fit(
                    benchmark.X, benchmark.y
                )
                done = clf.certificate_.stop_reason == "converged"
                cells.append(f"{solver} {'' if done else '> '}{clf.n_iter_[0]:,} ({clf.certificate_.seconds:.3g} s)")
            print(f"{name:10} {choice:4} C=2^{log_C} gamma=2^{log_gamma}:  {cells[0]:32} {cells[1]}", flush=True)


if __name__ == "__main__":
    main()
