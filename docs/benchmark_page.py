"""Turns what the benchmarks measured into a page of the documentation.

    python -m benchmarks.versus ovo --out docs/measured      (or another benchmark, see TABLES)
    python docs/benchmark_page.py

Reads ``docs/measured/*.json``, which the benchmarks write, and nothing else; writes ``docs/reference/benchmarks.md``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
MEASURED, PAGE = HERE / "measured", HERE / "reference" / "benchmarks.md"

Row = dict[str, Any]


@dataclass(frozen=True)
class Table:
    """How the rows of one benchmark are shown: a heading, the command, a sentence, and a cell for each column."""

    heading: str
    command: str
    sentence: str
    columns: dict[str, Callable[[Row], str]]
    ratio: Callable[[Row], float] | None = (
        None  # how many times faster ours is, for the mean below the table
    )


def number(value: float, form: str = ".3g") -> str:
    return "not reached" if math.isinf(value) else format(value, form)


TABLES = {
    "ovo": Table(
        "One-vs-one compared with scikit-learn",
        "python -m benchmarks.versus ovo",
        "The same machine for both, at `tol=1e-3`, with the parameters that Hsu and Lin (HL02) found for each set.",
        {
            "data": lambda row: row["data"],
            "C": lambda row: f"{row['C']:g}",
            "gamma": lambda row: (
                row["gamma"] if isinstance(row["gamma"], str) else f"{row['gamma']:.4g}"
            ),
            "ours, s": lambda row: number(row["seconds"]["multimargin"]),
            "scikit-learn, s": lambda row: number(row["seconds"]["scikit-learn"]),
            "times faster": lambda row: number(row["ratio"]["scikit-learn"], ".1f"),
            "true violation": lambda row: f"{row['violation']:.1e}",
        },
        lambda row: row["ratio"]["scikit-learn"],
    ),
    "all-in-one": Table(
        "All-in-one machines compared with scikit-learn's one-vs-one",
        "python -m benchmarks.versus all-in-one",
        "Each machine with its own published parameters; scikit-learn's one-vs-one has those of Hsu and Lin (HL02).",
        {
            "data": lambda row: row["data"],
            "machine": lambda row: row["machine"],
            "ours, s": lambda row: number(row["ours"]),
            "scikit-learn, s": lambda row: number(row["scikit_learn"]),
            "times faster": lambda row: number(1 / row["ratio"], ".1f"),
            "support vectors": lambda row: f"{row['support_vectors']:,}",
            "true violation": lambda row: f"{row['violation']:.1e}",
        },
        lambda row: 1 / row["ratio"],
    ),
    "selection": Table(
        "A search for C and gamma",
        "python -m benchmarks.versus selection",
        "`SVCCV` and `GridSearchCV` over the same cells and folds, including the final fit. "
        "Times vary from run to run with the load of the computer: three runs gave 23 to 28 times on vehicle, "
        "25 to 26 on segment and 14 to 16 on satimage; the table is the last of the three.",
        {
            "data": lambda row: row["data"],
            "cells": lambda row: f"{row['cells']}",
            "ours, s": lambda row: number(row["seconds"]["ours"]),
            "scikit-learn, s": lambda row: number(row["seconds"]["scikit-learn"]),
            "times faster": lambda row: number(row["ratio"], ".1f"),
            "mean difference of scores": lambda row: f"{row['mean_difference']:.1e}",
        },
        lambda row: row["ratio"],
    ),
    "rows": Table(
        "Time and number of rows",
        "python -m benchmarks.rows",
        "Processor seconds of one-vs-one fits, summed over threads. The time grows with rows times support vectors. "
        "On the chessboard there are few, and half a million rows take seconds. Where classes overlap, their number "
        "grows with the rows, and the time with the square of the rows.",
        {
            "data": lambda row: row["data"],
            "rows": lambda row: f"{row['rows']:,}",
            "processor s": lambda row: number(row["seconds"]),
            "support vectors": lambda row: f"{row['support_vectors']:,}",
            "true violation": lambda row: f"{row['violation']:.1e}",
        },
    ),
    "linear": Table(
        "Linear machines compared with LIBLINEAR",
        "python -m benchmarks.versus linear",
        "Seconds to the same relative duality gap, same machine and bias.",
        {
            "data": lambda row: row["data"],
            "machine": lambda row: row["machine"],
            "C": lambda row: f"{row['C']:g}",
            "gap": lambda row: f"{row['gap']:g}",
            "ours, s": lambda row: number(row["ours"]),
            "LIBLINEAR, s": lambda row: number(row["liblinear"]),
        },
    ),
    "hard": Table(
        "Hard problems",
        "python -m benchmarks.hard",
        "Large C and very many free variables. The unit is scikit-learn's fit of letter in the same run.",
        {
            "problem": lambda row: row["case"],
            "seconds": lambda row: number(row["seconds"]),
            "of the unit": lambda row: number(row["share"]),
            "steps": lambda row: f"{row['steps']:,}",
            "ended": lambda row: row["stop"],
            "true violation": lambda row: f"{row['violation']:.1e}",
        },
    ),
}


def describe(where: Row) -> str:
    """Return the sentence about the computer and the day."""
    return (
        f"Measured on {where['date']}: {where['processor']}, {where['threads']} threads ({where['instruction_set']}), "
        f"load {where['load']:.1f}; Python {where['python']}, multimargin {where['multimargin']}, scikit-learn "
        f"{where['scikit-learn']}, NumPy {where['numpy']}."
    )


def section(name: str, report: Row) -> list[str]:
    """Return the lines of one benchmark."""
    table, rows = TABLES[name], report["rows"]
    lines = [
        f"## {table.heading}",
        "",
        f"    {table.command}",
        "",
        f"{table.sentence} {describe(report['surroundings'])}",
    ]
    lines += ["", f"| {' | '.join(table.columns)} |", "|---" * len(table.columns) + "|"]
    lines += [
        f"| {' | '.join(cell(row) for cell in table.columns.values())} |"
        for row in rows
    ]
    if table.ratio is not None:
        mean = math.exp(sum(math.log(table.ratio(row)) for row in rows) / len(rows))
        lines += ["", f"Geometric mean of the rows: {mean:.1f} times faster."]
    return [*lines, ""]


def page(directory: Path = MEASURED) -> str:
    """Return the page of all benchmarks that were measured."""
    lines = [
        "# Benchmarks",
        "",
        "Each table is one run of the command above it, with both libraries measured in turn; times are medians. They",
        "depend on the computer and its load: the load average at the end of the run is given. This page is made by",
        "`docs/benchmark_page.py` from the files that the commands write with `--out docs/measured`.",
        "",
    ]
    for name in TABLES:
        path = directory / f"{name}.json"
        if path.exists():
            lines += section(name, json.loads(path.read_text(encoding="utf-8")))
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
