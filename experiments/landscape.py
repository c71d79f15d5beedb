"""Beyond the papers: all machines on all data sets, (C, gamma) by nested grids, ten splits, and a test of the ranks.

70 percent of the rows train, the rest tests; sets with a test part of their own have one split. The search (five folds,
steps of 2^4, then 2^2 and 2) sees at most 1,000 training rows, the model all of them. Machines have the bias that
"auto" gives them. A cell that its limit ended counts as what it is, and is listed.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold, train_test_split

from experiments.data import frequent, splits
from experiments.frame import Cell, Cells, Experiment, Report, Settings, Task, command
from experiments.tables import Entry, pivot
from multimargin import MACHINES, SVC, SVCCV
from multimargin.bounds import count_support
from multimargin.rank_display import RankDisplay
from multimargin.statistics import compare_ranks

NAMES = ("ovo", "dag", *MACHINES)
QUICK_NAMES = ("ovo", "ova", "ww", "llw")
SEARCH_ROWS, QUICK_SEARCH_ROWS = 1_000, 60
N_FOLDS = 5
CS, GAMMAS = np.exp2(np.arange(-4.0, 17.0, 4.0)), np.exp2(np.arange(-12.0, 5.0, 4.0))
QUICK_CS, QUICK_GAMMAS = np.exp2([1.0, 5.0]), np.exp2([-6.0, -2.0])
SETS = ("iris", "wine", "glass", "soybean", "vehicle", "vowel", "car", "segment", "dna", "optdigits", "satimage")
MORE = ("page-blocks", "abalone", "letter", "shuttle", "heart", "australian", "diabetes", "german", "banana")
MORE = (*MORE, "adult_small", "adult", "web", "ijcnn1", "car_onehot", "soybean_onehot")
QUANTITIES = (
    ("accuracy", "points", "Test accuracy in percent, means over the splits"),
    ("search_seconds", "seconds", "Seconds of the search"),
    ("training_seconds", "seconds", "Seconds of the last fit"),
    ("prediction_seconds", "seconds", "Seconds for 1,000 predictions"),
    ("support_vectors", "count", "Unique support vectors"),
)


def search_rows(y: np.ndarray, most: int) -> np.ndarray:
    """Return rows for the search: classes that every fold can have, at most so many rows, the same share of each."""
    rows = frequent(y, 2 * N_FOLDS)
    if len(rows) <= most:
        return rows
    kept, _ = train_test_split(rows, train_size=most, random_state=0, stratify=y[rows])
    kept = np.sort(kept)
    return np.asarray(kept[frequent(y[kept], N_FOLDS)])


def evaluate(name: str, machine: str, split: int, settings: Settings) -> Cell:
    parts = list(splits(name, settings.splits, quick=settings.quick))
    X, y, X_test, y_test = parts[split]
    rows = search_rows(y, QUICK_SEARCH_ROWS if settings.quick else SEARCH_ROWS)
    grid = (QUICK_CS, QUICK_GAMMAS) if settings.quick else (CS, GAMMAS)
    search = SVCCV(
        Cs=grid[0],
        gammas=grid[1],
        search="nested",
        multi_class=machine,
        cv=StratifiedKFold(N_FOLDS, shuffle=True, random_state=split),
        refit=False,
        max_time=settings.limit,
    ).fit(X[rows], y[rows])
    if not hasattr(search, "best_params_"):
        return {"done": False}
    began = time.perf_counter()
    clf = SVC(multi_class=machine, max_time=settings.limit, **search.best_params_).fit(X, y)
    trained = time.perf_counter()
    accuracy = 100 * float(np.mean(clf.predict(X_test) == y_test))
    predicted = time.perf_counter()
    return {
        "done": not search.stopped_.any() and clf.certificate_.stop_reason == "converged",
        "accuracy": accuracy,
        "search_seconds": search.search_seconds_,
        "training_seconds": trained - began,
        "prediction_seconds": 1000 * (predicted - trained) / len(y_test),
        "support_vectors": count_support(clf).unique,
        "log_C": float(np.log2(search.best_params_["C"])),
        "log_gamma": float(np.log2(search.best_params_["gamma"])),
    }


def names_of(settings: Settings) -> tuple[str, ...]:
    return QUICK_NAMES if settings.quick else NAMES


def plan(settings: Settings) -> list[Task]:
    tasks = []
    for name in settings.sets:
        n_splits = len(list(splits(name, settings.splits, quick=settings.quick)))
        for split in range(n_splits):
            for machine in names_of(settings):
                run = partial(evaluate, name, machine, split, settings)
                tasks.append(Task((name, machine, str(split)), run))
    return tasks


def mean_of(cells: Cells, quantity: str) -> dict[tuple[str, str], float]:
    """Return means over the splits by data set and machine, of the splits that came to a model."""
    found: dict[tuple[str, str], list[float]] = {}
    for (name, machine, _), cell in cells.items():
        if quantity in cell:
            found.setdefault((name, machine), []).append(cell[quantity])
    return {key: float(np.mean(values)) for key, values in found.items()}


def complete_sets(cells: Cells, settings: Settings) -> list[str]:
    """Return the data sets on which every machine has a model for every split."""
    return [name for name in settings.sets if all("accuracy" in cell for key, cell in cells.items() if key[0] == name)]


def answers(cells: Cells, settings: Settings) -> list[str]:
    """Return the papers' conclusions, asked again."""
    names, machines = complete_sets(cells, settings), names_of(settings)
    accuracy, vectors, seconds = (mean_of(cells, q) for q in ("accuracy", "support_vectors", "training_seconds"))

    def wins(values: dict[tuple[str, str], float], who: str, best: Callable[[Any], Any]) -> int:
        return sum(values[name, who] == best(values[name, machine] for machine in machines) for name in names)

    of = f"of {len(names)} sets"
    return [
        f"- llw has the highest accuracy on {wins(accuracy, 'llw', max)} {of} (DGI11: significantly the best).",
        f"- ww has the fewest support vectors on {wins(vectors, 'ww', min)} {of}, and fewer than ovo on "
        f"{sum(vectors[name, 'ww'] < vectors[name, 'ovo'] for name in names)} (HL02: fewer on large sets).",
        f"- ovo trains fastest on {wins(seconds, 'ovo', min)} {of} (HL02: the fastest, with DAG).",
    ]


def report(cells: Cells, settings: Settings) -> Report:
    lines, rows, figure = [], [], None
    for quantity, kind, caption in QUANTITIES:
        means = mean_of(cells, quantity)
        entries = [
            Entry(name, machine, value, None, kind, quantity=quantity) for (name, machine), value in means.items()
        ]
        lines += [f"{caption}:", "", *pivot(entries), ""]
        rows += [entry.as_row() for entry in entries]
    unfinished = [" ".join(key) for key, cell in cells.items() if not cell["done"]]
    if unfinished:
        lines += [f"Ended by the limit of {settings.limit:g} s: {', '.join(unfinished)}.", ""]
    names = complete_sets(cells, settings)
    if len(names) >= 2:
        accuracy = mean_of(cells, "accuracy")
        table = [[accuracy[name, machine] for machine in names_of(settings)] for name in names]
        comparison = compare_ranks(table, names_of(settings))
        figure = RankDisplay(comparison).plot().figure_
        lines += ["## Ranks by accuracy", "", *comparison.to_markdown(), "", *answers(cells, settings)]
    return Report(lines, rows, figure=figure)


EXPERIMENT = Experiment(
    name="landscape",
    title="All machines on all data sets",
    sets=SETS,
    more_sets=MORE,
    quick_sets=("iris", "wine"),
    plan=plan,
    report=report,
    quick_splits=1,
)
main = command(EXPERIMENT)

if __name__ == "__main__":
    main()
