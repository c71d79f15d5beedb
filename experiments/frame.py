"""Shared by all experiments: the command line, the storage of finished cells, progress, and the report.

An experiment is a list of tasks, each of which returns a dict (a cell), and a function that makes a report of the
cells. With --out every finished cell is a line of NAME.cells.jsonl there, so that a stopped run resumes there.
"""

from __future__ import annotations

import csv
import json
import os
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
from sklearn.exceptions import ConvergenceWarning

from benchmarks.measure import surroundings

Key = tuple[str, ...]
Cell = dict[str, Any]
Cells = dict[Key, Cell]


@dataclass(frozen=True)
class Settings:
    """The options of a run.

    Parameters
    ----------
    sets : tuple of str
        The data sets, in the experiment's order.
    quick : bool
        Small sets that scikit-learn ships, and less of everything.
    limit : float
        Seconds for each cell.
    splits : int
        Random splits or repetitions, where an experiment has such.
    variant : str
        One of the experiment's variants, or nothing.
    """

    sets: tuple[str, ...]
    quick: bool = False
    limit: float = 300.0
    splits: int = 10
    variant: str = ""

    def fingerprint(self) -> dict[str, Any]:
        """The settings that a stored cell must share to be reused."""
        asked = {"quick": self.quick, "limit": self.limit, "splits": self.splits}
        return asked | ({"variant": self.variant} if self.variant else {})


@dataclass(frozen=True)
class Task:
    """A cell to be computed; its key is unique within the experiment."""

    key: Key
    run: Callable[[], Cell]


@dataclass(frozen=True)
class Report:
    """Markdown, rows for the CSV file, a figure where one helps, and whether the asserted figures hold."""

    lines: list[str]
    rows: list[dict[str, Any]]
    figure: Any = None
    holds: bool = True


@dataclass(frozen=True)
class Experiment:
    """One table or figure.

    Parameters
    ----------
    name, title : str
        The module's name, and what it repeats.
    sets, quick_sets : tuple of str
        Data sets of a full run, and of --quick.
    plan : callable
        ``plan(settings)`` returns the tasks.
    report : callable
        ``report(cells, settings)`` returns the Report.
    more_sets : tuple of str
        Data sets that are run only with --set.
    cells : str
        The name under which finished cells are kept, for tables that share them; the experiment's own unless given.
    splits : int
        The default of --splits.
    variants : tuple of str
        Ways to run it, by --variant; the first is the default.
    """

    name: str
    title: str
    sets: tuple[str, ...]
    quick_sets: tuple[str, ...]
    plan: Callable[[Settings], Sequence[Task]]
    report: Callable[[Cells, Settings], Report]
    more_sets: tuple[str, ...] = ()
    cells: str = ""
    splits: int = 10
    quick_splits: int = 2
    variants: tuple[str, ...] = ()

    def output_name(self, settings: Settings) -> str:
        """The name of the files; other variants than the default add theirs."""
        return self.name if settings.variant in ("", *self.variants[:1]) else f"{self.name}-{settings.variant}"

    @property
    def store_name(self) -> str:
        return f"{self.cells or self.name}.cells.jsonl"


@dataclass
class CellStore:
    """Finished cells on disk, one line of JSON each; in memory only, without a path."""

    path: Path | None
    settings: Settings
    found: Cells = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.path is None or not self.path.exists():
            return
        for line in self.path.read_text().splitlines():
            try:
                entry = json.loads(line)
                if entry["settings"] == self.settings.fingerprint():
                    self.found[tuple(entry["key"])] = entry["cell"]
            except (ValueError, KeyError, TypeError):  # a line that was being written when the run was stopped
                continue

    def add(self, key: Key, cell: Cell) -> None:
        self.found[key] = cell
        if self.path is None:
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        whole = not self.path.exists() or self.path.read_bytes()[-1:] in (b"\n", b"")
        entry = {"key": key, "settings": self.settings.fingerprint(), "date": today(), "cell": cell}
        with self.path.open("a") as file:  # after a broken line a new one begins
            file.write(("" if whole else "\n") + json.dumps(entry) + "\n")


def was_ended(search: Any, limit: float) -> bool:
    """Return whether the limit ended a search (SVCCV); nested grids may lack a whole stage, which marks no cell."""
    return bool(search.stopped_.any()) or search.search_seconds_ >= limit


def today() -> str:
    return datetime.now(UTC).date().isoformat()


def stamp() -> str:
    """Date, versions and machine: the last line of a report."""
    facts = surroundings()
    packages = ", ".join(f"{name} {facts[name]}" for name in ("multimargin", "numpy", "scipy", "scikit-learn"))
    machine = f"{processor()}, {facts['threads']} threads, {facts['instruction_set']}"
    return f"{today()}; {packages}, Python {facts['python']}; {machine}; load {facts['load']:.1f}."


def processor() -> str:
    """Return the processor's name where it is known."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return str(surroundings()["processor"])
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else str(surroundings()["processor"])


def run(experiment: Experiment, settings: Settings, out: Path | None = None) -> Report:
    """Compute the missing cells, then print and write the report."""
    tasks = list(experiment.plan(settings))
    store = CellStore(None if out is None else out / experiment.store_name, settings)
    for number, task in enumerate(tasks, start=1):
        if task.key in store.found:
            continue
        began = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # cells say whether they converged
            cell = task.run()
        # As it will be read: a cell that JSON changes would differ between a run and the one that goes on from it.
        store.add(task.key, json.loads(json.dumps(cell)))
        seconds = time.perf_counter() - began
        print(
            f"{experiment.name} {number}/{len(tasks)} {' '.join(task.key)}: {seconds:.1f} s",
            file=sys.stderr,
            flush=True,
        )
    report = experiment.report({task.key: store.found[task.key] for task in tasks}, settings)
    lines = [f"# {experiment.title}", "", *(["Quick run: not the paper's data.", ""] if settings.quick else [])]
    lines += [f"Variant: {settings.variant}.", ""] if settings.variant else []
    lines += [*report.lines, "", f"At most {settings.limit:g} s a cell. {stamp()}"]
    print("\n".join(lines))
    if out is not None:
        write(experiment.output_name(settings), out, lines, report)
    return report


def write(name: str, out: Path, lines: list[str], report: Report) -> None:
    """Write NAME.md, NAME.csv and, where there is a figure, NAME.png."""
    out.mkdir(parents=True, exist_ok=True)
    (out / f"{name}.md").write_text("\n".join(lines) + "\n")
    columns = list(dict.fromkeys(column for row in report.rows for column in row))
    with (out / f"{name}.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        writer.writerows(report.rows)
    if report.figure is not None:
        report.figure.savefig(out / f"{name}.png", dpi=100)


def command(experiment: Experiment) -> click.Command:
    """Return the command line of an experiment."""
    every = (*experiment.sets, *experiment.more_sets, *experiment.quick_sets)

    @click.command(name=experiment.name, help=experiment.title)
    @click.option("--data", type=click.Path(exists=True, file_okay=False), help="Directory of the papers' data sets.")
    @click.option("--set", "sets", multiple=True, type=click.Choice(tuple(dict.fromkeys(every))), help="Data sets.")
    @click.option("--quick", is_flag=True, help="Small data that scikit-learn ships, in less than two minutes.")
    @click.option("--out", type=click.Path(file_okay=False, path_type=Path), help="Directory for .md, .csv and cells.")
    @click.option("--limit", default=300.0, help="Seconds per cell.", show_default=True)
    @click.option("--splits", default=None, type=click.IntRange(min=1), help="Random splits or repetitions.")
    @click.option("--variant", default="", type=click.Choice(("", *experiment.variants)), help="Another way to run it.")
    def main(data: str | None, sets: tuple[str, ...], quick: bool, out: Path | None, **more: Any) -> None:
        if data is not None:
            os.environ["MULTIMARGIN_DATA"] = data
        default = experiment.quick_splits if quick else experiment.splits
        chosen = sets or (experiment.quick_sets if quick else experiment.sets)
        variant = more["variant"] or "".join(experiment.variants[:1])
        settings = Settings(chosen, quick, more["limit"], more["splits"] or default, variant)
        sys.exit(0 if run(experiment, settings, out).holds else 1)

    return main
