"""DGI11 Table 3 repeated: iterations and seconds of SMO and S2DO for ww and llw, of cs and of ova, compared with the
paper's.

    python -m experiments.dgi11_table3 --set abalone --limit 600

(C, gamma) are those of DGI11 Table 1, no bias, the tolerance is the paper's 1e-3; medians over the splits. A fit that
reaches its limit is printed as "> n". Attributes are scaled as in ``dgi11_table2``. Ends with an error if S2DO does not
need fewer iterations than SMO.
"""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass
from functools import partial

import numpy as np

from experiments.data import RANGE, VARIANCE
from experiments.dgi11_table2 import chosen_parameters, parts
from experiments.frame import Cell, Cells, Experiment, Report, Settings, Task, command
from experiments.paper_numbers.dgi11 import TABLE_3, TABLE_3_CORRECTED, TABLE_3_OVA_SECONDS
from experiments.tables import Entry, pivot
from multimargin import SVC, Certificate
from multimargin.plotting.statistics import wilcoxon_pvalues

TOL = 1e-3
BOTH = ("smo", "s2do")
# Solvers of each machine whose iterations the paper prints; the default is added. cs's pairs are of one example.
SOLVERS: dict[str, tuple[str, ...]] = {"ww": BOTH, "llw": BOTH, "cs": ("s2do",), "ova": ()}
DEFAULT = "auto"

# Why a cell can be of another order of magnitude than the paper's.
REASON = "the paper's splits, and how it codes and scales attributes, are not known"


@dataclass(frozen=True)
class Spent:
    """Iterations and seconds of a solver on a machine, medians over the splits; ``done`` if every fit converged."""

    iterations: float
    seconds: float
    done: bool


def evaluate(name: str, machine: str, solver: str, settings: Settings) -> Cell:
    C, gamma = chosen_parameters(name, machine)
    found: list[Certificate] = []
    began = time.perf_counter()
    for X, y, _, _ in parts(name, settings):
        left = settings.limit - (time.perf_counter() - began)
        if found and left <= 0:
            break
        left = max(left, 1e-9)  # at least one fit, so that there is a number to print
        clf = SVC(multi_class=machine, bias="none", C=C, gamma=gamma, tol=TOL, solver=solver, max_time=left).fit(X, y)
        found.append(clf.certificate_)
        if clf.certificate_.stop_reason != "converged":
            found = found[:-1] or found  # a fit that had only the rest of the time is not comparable
            break
    return {
        "iterations": [int(proof.n_iter) for proof in found],
        "seconds": [float(proof.seconds) for proof in found],
        "done": all(proof.stop_reason == "converged" for proof in found),
        "n_rows": len(y),
    }


def spent(cell: Cell) -> Spent:
    """Medians; of a cell that reached its limit the stopped fit, printed as "> n"."""
    if cell["done"]:
        return Spent(statistics.median(cell["iterations"]), statistics.median(cell["seconds"]), True)
    return Spent(cell["iterations"][-1], cell["seconds"][-1], False)


def is_fewer(smo: Spent, s2do: Spent) -> bool | None:
    """Whether S2DO needs fewer iterations than SMO; None where a fit reached the limit."""
    if not s2do.done and s2do.iterations <= smo.iterations:
        return None
    if not smo.done and smo.iterations <= s2do.iterations:
        return None
    return s2do.iterations < smo.iterations


def printed(name: str, machine: str, solver: str) -> float | None:
    """The paper's iterations, with the misprint corrected."""
    found = TABLE_3.get(name, {}).get((machine, solver))
    return None if found is None else TABLE_3_CORRECTED.get((name, machine, solver), found[0])


def remark(ours: Spent, paper: float | None) -> str:
    """How the iterations compare with the paper's: the same order of magnitude, or why not."""
    if paper is None:
        return "not in the paper"
    ratio = ours.iterations / paper
    if not ours.done and ratio < 1:
        return "ended by the limit before the paper's number"
    if 0.1 < ratio < 10:
        return "same order"
    return f"{ratio:.2g} times the paper's: {REASON}"


def plan(settings: Settings) -> list[Task]:
    return [
        Task((name, machine, solver), partial(evaluate, name, machine, solver, settings))
        for name in settings.sets
        for machine, solvers in SOLVERS.items()
        for solver in (*solvers, DEFAULT)
    ]


def entries_of(cells: Cells) -> tuple[list[Entry], list[Entry]]:
    """Return iterations of the paper's solvers, and seconds of all."""
    iterations, seconds = [], []
    for (name, machine, solver), cell in cells.items():
        found = spent(cell)
        column = f"{machine} {'default' if solver == DEFAULT else solver}"
        theirs = TABLE_3.get(name, {}).get((machine, solver))
        paper = theirs[1] if theirs else (TABLE_3_OVA_SECONDS.get(name) if machine == "ova" else None)
        seconds.append(Entry(name, column, found.seconds, paper, "seconds", not found.done, "seconds"))
        if solver != DEFAULT:
            number = printed(name, machine, solver)
            iterations.append(Entry(name, column, found.iterations, number, "count", not found.done, "iterations"))
    return iterations, seconds


def verdicts(cells: Cells) -> dict[tuple[str, str], bool | None]:
    """Return for each data set, ww and llw whether S2DO needs fewer iterations."""
    names = dict.fromkeys(key[0] for key in cells)
    return {
        (name, machine): is_fewer(*(spent(cells[name, machine, solver]) for solver in BOTH))
        for name in names
        for machine in ("ww", "llw")
    }


def tested(cells: Cells, machine: str) -> str:
    """One sentence on whether the difference over the data sets is significant, as the paper says."""
    names = [n for n in dict.fromkeys(key[0] for key in cells) if all(cells[n, machine, s]["done"] for s in BOTH)]
    if len(names) < 5:
        return f"{machine}: too few sets for a test."
    table = np.log([[spent(cells[name, machine, solver]).iterations for solver in BOTH] for name in names])
    return f"{machine}: Wilcoxon's p = {wilcoxon_pvalues(table)[0]:.2g} over {len(names)} sets (paper: significant)."


def _fewer_splits(cells: Cells, settings: Settings) -> list[str]:
    """One sentence on the cells whose limit left time for fewer splits; sets with a test part have one anyway."""
    most = {name: max(len(cell["seconds"]) for key, cell in cells.items() if key[0] == name) for name in settings.sets}
    short = [f"{' '.join(key)} ({n})" for key, cell in cells.items() if (n := len(cell["seconds"])) < most[key[0]]]
    return [f"Medians of fewer splits, because of the limit: {', '.join(short)}.", ""] if short else []


def report(cells: Cells, settings: Settings) -> Report:
    iterations, seconds = entries_of(cells)
    fewer = verdicts(cells)
    words = {True: "yes", False: "NO", None: "open: limit"}
    lines = [
        f"Iterations, ours / the paper's (ratio), tol {TOL:g}, medians of {settings.splits} splits, at most "
        f"{settings.limit:g} s a cell. smo of vehicle llw is printed as 17*10^8 and taken as 17*10^6.",
        "",
        *pivot(iterations),
        "",
        *_fewer_splits(cells, settings),
        "Seconds, ours / the paper's (other computers):",
        "",
        *pivot(seconds),
        "",
        "S2DO needs fewer iterations than SMO:",
        "",
        *(f"- {name} {machine}: {words[verdict]}" for (name, machine), verdict in fewer.items()),
        "",
        f"That is {sum(verdict is True for verdict in fewer.values())} of {len(fewer)} cases.",
        *(tested(cells, machine) for machine in ("ww", "llw")),
        "",
        "Iterations beside the paper's:",
        "",
    ]
    for (name, machine, solver), cell in cells.items():
        if solver != DEFAULT:
            lines.append(f"- {name} {machine} {solver}: {remark(spent(cell), printed(name, machine, solver))}")
    rows = [entry.as_row() for entry in (*iterations, *seconds)]
    return Report(lines, rows, holds=all(verdict is not False for verdict in fewer.values()))


EXPERIMENT = Experiment(
    name="dgi11_table3",
    title="DGI11 Table 3: iterations and seconds of SMO and S2DO",
    sets=("vehicle", "segment", "glass", "iris", "soybean", "car"),
    more_sets=("satimage", "optdigits", "abalone", "page-blocks"),
    quick_sets=("iris",),
    plan=plan,
    report=report,
    splits=1,
    quick_splits=1,
    variants=(VARIANCE, RANGE),
)
main = command(EXPERIMENT)

if __name__ == "__main__":
    main()
