"""IGEL's curves, "Online SVMs results I": primal and dual objective against examples in one pass, and the optimum.

Each selection sees the rows in the same random orders. The dual is that of the state, a feasible point of the problem
of all training rows; the primal is that of the model on all training rows, seen or not, so that the optimum is always
between the two. IGEL's curves are not printed as numbers, those of the end are, for a chessboard whose squares, C and
gamma are not: shares of the optimum stand beside shares. experiments/streams.py gives the source of C and gamma.

Ends with an error if a dual is above the optimum or a primal below it, which would mean that one of them is wrong.
"""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from experiments.frame import Cell, Cells, Experiment, Report, Settings, Task, command
from experiments.igel_online import SELECTIONS, TOL
from experiments.paper_numbers.igel import ONLINE
from experiments.streams import MADE, StreamData, load_stream
from experiments.tables import markdown
from multimargin import SVC, OnlineSVC

POINTS, QUICK_POINTS = 50, 8
QUICK_ROWS = 300
BATCH = "batch"


def primal(clf: Any, data: StreamData) -> float:
    """Return the primal objective of a binary model on all training rows, from its public attributes alone."""
    if not len(clf.support_):
        return data.C * len(data.y)  # w = 0
    score = clf.decision_function(data.X)
    sign = np.where(data.y == clf.classes_[1], 1.0, -1.0)
    without_bias = clf.decision_function(clf.support_vectors_) - clf.intercept_[0]
    norm = float(np.ravel(clf.dual_coef_) @ without_bias)
    return norm / 2 + data.C * float(np.maximum(0.0, 1.0 - sign * score).sum())


def stream_of(name: str, settings: Settings, seed: int = 0) -> StreamData:
    """Return a stream of the same rows for each seed, in another order."""
    data = load_stream(name, "ovo", QUICK_ROWS if settings.quick else None)
    order = np.random.default_rng(seed).permutation(len(data.y))
    return replace(data, X=np.ascontiguousarray(data.X[order]), y=data.y[order])


def one_pass(name: str, selection: str, seed: int, settings: Settings) -> Cell:
    """Learn piece by piece, and record the objectives after each piece, until the limit."""
    data = stream_of(name, settings, seed)
    clf = OnlineSVC(C=data.C, gamma=data.gamma, selection=selection, random_state=seed)
    ends = np.linspace(0, len(data.y), (QUICK_POINTS if settings.quick else POINTS) + 1).astype(int)
    began, classes = time.perf_counter(), np.unique(data.y)
    cell: Cell = {"examples": [], "primal": [], "dual": [], "done": True}
    for first, last in pairwise(ends.tolist()):
        if time.perf_counter() - began > settings.limit:
            cell["done"] = False
            break
        clf.partial_fit(data.X[first:last], data.y[first:last], classes)
        cell["examples"].append(last)
        cell["primal"].append(primal(clf, data))
        cell["dual"].append(float(clf.history_.dual[-1]))
    if cell["examples"]:
        cell |= {"n_support": len(clf.support_), "accuracy": float(clf.score(data.X_test, data.y_test))}
    return cell


def optimum(name: str, settings: Settings) -> Cell:
    data = stream_of(name, settings)
    clf = SVC(C=data.C, gamma=data.gamma, tol=TOL, max_time=settings.limit).fit(data.X, data.y)
    certificate = clf.certificate_
    return {
        "primal": certificate.primal,
        "dual": certificate.dual,
        "n_support": len(clf.support_),
        "accuracy": float(clf.score(data.X_test, data.y_test)),
        "done": certificate.stop_reason == "converged",
    }


def plan(settings: Settings) -> list[Task]:
    tasks = []
    for name in settings.sets:
        tasks.append(Task((name, BATCH, "0"), partial(optimum, name, settings)))
        tasks += [
            Task((name, selection, str(seed)), partial(one_pass, name, selection, seed, settings))
            for selection in SELECTIONS
            for seed in range(settings.splits)
        ]
    return tasks


def mean_curves(cells: Cells, name: str, selection: str) -> Cell | None:
    """Return means over the orders that finished; None if none did."""
    found = [cell for key, cell in cells.items() if key[:2] == (name, selection) and cell["done"]]
    if not found:
        return None
    numbers = {quantity: np.mean([cell[quantity] for cell in found], axis=0) for quantity in ("primal", "dual")}
    ends = {quantity: float(np.mean([cell[quantity] for cell in found])) for quantity in ("n_support", "accuracy")}
    return {"examples": np.array(found[0]["examples"]), **numbers, **ends}


def impossible(cells: Cells) -> list[str]:
    """Return the curves that cross the optimum by more than the certificate's gap and rounding."""
    wrong = []
    for key, cell in cells.items():
        batch = cells[key[0], BATCH, "0"]
        if key[1] == BATCH or not cell["examples"]:
            continue
        slack = 1e-9 * abs(batch["primal"])
        if max(cell["dual"]) > batch["primal"] + slack or min(cell["primal"]) < batch["dual"] - slack:
            wrong.append(" ".join(key))
    return wrong


def known(cells: Cells, settings: Settings) -> list[str]:
    """Return the sets whose optimum was found within the limit."""
    return [name for name in settings.sets if cells[name, BATCH, "0"]["done"]]


def draw(cells: Cells, names: list[str]) -> Any:
    from matplotlib.figure import Figure

    columns = min(len(names), 3)
    n_rows = -(-len(names) // columns)
    figure = Figure(figsize=(3.6 * columns, 3.0 * n_rows), layout="constrained")
    axes = figure.subplots(n_rows, columns, squeeze=False).ravel()
    for ax, name in zip(axes, names, strict=False):
        best = cells[name, BATCH, "0"]["dual"]
        ax.axhline(1.0, color="black", linewidth=1, label="batch optimum")
        for at, selection in enumerate(SELECTIONS):
            curves = mean_curves(cells, name, selection)
            if curves is None:
                continue
            for quantity, style in (("dual", "-"), ("primal", "--")):
                share = np.maximum(curves[quantity] / best, 1e-3)
                ax.plot(curves["examples"], share, style, color=f"C{at}", label=f"{selection}, {quantity}")
        ax.set(yscale="log", xlabel="examples", ylabel="objective / optimum", title=name)
    for ax in axes[len(names) :]:
        ax.axis("off")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=8)
    return figure


def table(cells: Cells, names: list[str]) -> list[str]:
    rows = []
    for name in names:
        batch = cells[name, BATCH, "0"]
        rows.append([name, BATCH, "1", "1", f"{batch['primal'] / batch['dual']:.4g}", *_ends(batch), ""])
        for selection in SELECTIONS:
            curves = mean_curves(cells, name, selection)
            if curves is None:
                rows.append([name, selection, *["-"] * 5, ""])
                continue
            half = curves["dual"][len(curves["dual"]) // 2 - 1]
            shares = [half, curves["dual"][-1], curves["primal"][-1]]
            texts = [f"{share / batch['dual']:.4g}" for share in shares]
            rows.append([name, selection, *texts, *_ends(curves), _printed(name, selection)])
    header = ["data", "selection", "dual, half a pass", "dual", "primal", "support vectors", "accuracy"]
    return markdown([*header, "IGEL: dual, primal"], rows)


def _ends(cell: Cell) -> list[str]:
    return [f"{cell['n_support']:,.0f}", f"{cell['accuracy']:.2%}"]


def _printed(name: str, selection: str) -> str:
    if (name, selection) not in ONLINE:
        return ""
    there, best = ONLINE[name, selection], ONLINE[name, BATCH]
    return f"{there.dual / best.dual:.4g}, {there.primal / best.dual:.4g}"


def findings(cells: Cells, names: list[str]) -> list[str]:
    """Say where second order is ahead of first order at the end of the pass, and where not."""
    lines = []
    for quantity, sign in (("dual", 1), ("primal", -1)):
        ahead = []
        for name in names:
            first, second = (mean_curves(cells, name, selection) for selection in SELECTIONS[:2])
            if first is not None and second is not None and sign * (second[quantity][-1] - first[quantity][-1]) > 0:
                ahead.append(name)
        word = "higher" if sign > 0 else "lower"
        sets = f"{len(ahead)} of {len(names)} sets: {', '.join(ahead) or 'none'}"
        lines.append(
            f"- second order ends with a {word} {quantity} than first order on {sets} (IGEL: on difficult sets)."
        )
    return lines


def report(cells: Cells, settings: Settings) -> Report:
    wrong, names = impossible(cells), known(cells, settings)
    lines = [f"Shares of the batch's dual objective after one pass, means over {settings.splits} orders of the rows."]
    lines += ["", *table(cells, names), "", *findings(cells, names)]
    verdict = f"- NO dual above the optimum, NO primal below it: fails for {', '.join(wrong)}."
    lines.append(verdict if wrong else "- no dual is above the optimum, no primal below it, at any point.")
    ended = [" ".join(key) for key, cell in cells.items() if not cell["done"]]
    if ended:
        lines += ["", f"Ended by the limit of {settings.limit:g} s: {', '.join(ended)}."]
    records = []
    for (name, selection, seed), cell in cells.items():
        if selection == BATCH:
            records.append({"data": name, "selection": BATCH, "primal": cell["primal"], "dual": cell["dual"]})
            continue
        for at, examples in enumerate(cell["examples"]):
            place = {"data": name, "selection": selection, "order": seed, "examples": examples}
            records.append(place | {quantity: f"{cell[quantity][at]:.7g}" for quantity in ("primal", "dual")})
    return Report(lines, records, figure=draw(cells, names) if names else None, holds=not wrong)


EXPERIMENT = Experiment(
    name="igel_curves",
    title="IGEL: primal and dual against examples in one pass",
    sets=("banana", MADE, "diabetes", "german", "adult_small"),
    quick_sets=(MADE,),
    plan=plan,
    report=report,
    splits=3,
)
main = command(EXPERIMENT)

if __name__ == "__main__":
    main()
