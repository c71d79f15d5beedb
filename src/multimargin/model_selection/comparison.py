"""Comparison of machines: a table of the results of each search, and the recommendation."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from html import escape
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from rich.box import SIMPLE_HEAD
from rich.console import Group
from rich.table import Table
from rich.text import Text

from multimargin.base.files import check_path, write_text

ALIKE = 1.2  # costs closer than this factor count as equal: clocks are no finer


@dataclass(frozen=True)
class MachineRow:
    """Result of the search for one machine.

    Parameters
    ----------
    machine : str
    mean_score, std_score : float
        Mean and standard deviation over the folds, at the chosen C and gamma.
    test_score : float or None
        Of the chosen model on test rows, if given.
    seconds : float
        What the selection took, the last fit included.
    fit_seconds, predict_seconds : float or None
        What the last fit took, on all rows, and predicting all of them with it.
    n_support : int or None
        Support vectors of the chosen model.
    C, gamma : float
        The chosen ones; gamma is nan where there is none.
    converged : bool
        Whether the last fit reached ``tol``.
    fold_scores : tuple of float
        In the order of the folds.
    finished : bool
        Whether its search tried all cells; False where it was cut by ``max_time``.
    """

    machine: str
    mean_score: float
    std_score: float
    test_score: float | None
    seconds: float
    fit_seconds: float | None
    predict_seconds: float | None
    n_support: int | None
    C: float
    gamma: float
    converged: bool
    fold_scores: tuple[float, ...]
    finished: bool = True

    @property
    def cost(self) -> float:
        """Seconds to train once and to predict all rows once; infinite where that is not known."""
        known = self.fit_seconds is not None and self.predict_seconds is not None
        return (self.fit_seconds or 0.0) + (self.predict_seconds or 0.0) if known else math.inf

    def as_dict(self) -> dict[str, Any]:
        """Return the values by name, the scores of the folds one by one."""
        values = {each.name: getattr(self, each.name) for each in fields(self) if each.name != "fold_scores"}
        return values | {f"split{number}_score": score for number, score in enumerate(self.fold_scores)}


@dataclass(frozen=True)
class Recommendation:
    """The best machine, the recommended one, and the reason."""

    best: str
    machine: str
    text: str


@dataclass(frozen=True)
class MachineComparison:
    """Result of ``compare_machines``: prints as a table, with exports.

    Parameters
    ----------
    rows : tuple of MachineRow
        In the requested order.
    metric : str
        Name of the score.
    n_splits : int
        Number of folds, the same ones for all machines.
    best : str
        The machine with the best mean score.
    recommended : str
        The cheapest to train and predict of those within one standard error of the best; empty while a machine has no
        score.
    recommendation : str
        The same in one or two sentences, with the numbers.
    searches : dict of str to SVCCV
        The fitted selections by machine; their ``best_estimator_`` are the models.
    """

    rows: tuple[MachineRow, ...]
    metric: str
    n_splits: int
    best: str
    recommended: str
    recommendation: str
    searches: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    def row(self, machine: str) -> MachineRow:
        """Return the row of a machine."""
        for row in self.rows:
            if row.machine == machine:
                return row
        names = ", ".join(repr(row.machine) for row in self.rows)
        raise ValueError(f"machine={machine!r} was not compared; choose one of {names}.")

    def __str__(self) -> str:
        header, cells = self._table()
        widths = [max(map(len, column)) for column in zip(header, *cells, strict=True)]
        lines = [_aligned(line, widths) for line in (header, *cells)]
        return "\n".join([lines[0], "-" * len(lines[0]), *lines[1:], "", self.recommendation])

    def __rich__(self) -> Group:
        header, cells = self._table()
        table = Table(box=SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
        for number, name in enumerate(header):
            table.add_column(Text(name), justify="right" if number else "left", overflow="fold")
        for line in cells:  # as Text, so that brackets in a name are no markup
            style = "bold" if line[0] == self.recommended else ""
            table.add_row(*(Text(cell) for cell in line), style=style)
        return Group(table, Text(self.recommendation))

    def _repr_html_(self) -> str:
        header, cells = self._table()
        head = "".join(f"<th>{escape(name)}</th>" for name in header)
        body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in line) + "</tr>" for line in cells)
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        return f"{table}<p>{escape(self.recommendation)}</p>"

    def to_csv(self, path: Any = None) -> str:
        """Return the rows as comma-separated values, a score for each fold included; write them where path is given."""
        records = [row.as_dict() for row in self.rows]
        text = io.StringIO()
        writer = csv.DictWriter(text, list(records[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(records)
        return _written(text.getvalue(), path)

    def to_json(self, path: Any = None) -> str:
        """Return all but the searches as JSON (nan as null); write it where path is given."""
        rows = [{each.name: _plain(getattr(row, each.name)) for each in fields(row)} for row in self.rows]
        names = ("metric", "n_splits", "best", "recommended", "recommendation")
        known = {name: getattr(self, name) for name in names}
        return _written(json.dumps(known | {"rows": rows}, indent=2, allow_nan=False) + "\n", path)

    def to_markdown(self, path: Any = None) -> str:
        """Return the table and the recommendation as Markdown; write them where path is given."""
        header, cells = self._table()
        rule = ["---"] + ["---:"] * (len(header) - 1)
        lines = [f"| {' | '.join(_markdown(cell) for cell in line)} |" for line in (header, *cells)]
        lines.insert(1, f"| {' | '.join(rule)} |")
        return _written("\n".join([*lines, "", _markdown(self.recommendation)]) + "\n", path)

    def to_frame(self) -> Any:
        """Return the rows as a pandas DataFrame, a column for each fold's score included."""
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError(
                "to_frame needs pandas, which is not installed; run pip install pandas, or use to_csv or to_json."
            ) from error
        return pd.DataFrame([row.as_dict() for row in self.rows])

    def _table(self) -> tuple[list[str], list[list[str]]]:
        """Header and formatted cells; columns without information are omitted."""
        columns = {
            "machine": [row.machine for row in self.rows],
            self.metric: [_number(row.mean_score, ".4f") for row in self.rows],
            "spread": [_number(row.std_score, ".4f") for row in self.rows],
            "test": [_number(row.test_score, ".4f") for row in self.rows],
            "seconds": [_number(row.seconds, ".2f") for row in self.rows],
            "fit, predict": [_number(row.cost, ".2g") for row in self.rows],
            "support vectors": [_number(row.n_support, "d") for row in self.rows],
            "C": [_number(row.C, ".4g") for row in self.rows],
            "gamma": [_number(row.gamma, ".4g") for row in self.rows],
            "converged": ["yes" if row.converged else "no" for row in self.rows],
        }
        if all(row.test_score is None for row in self.rows):
            del columns["test"]
        if all(row.converged for row in self.rows):
            del columns["converged"]
        if not all(row.finished for row in self.rows):
            columns["search"] = ["whole" if row.finished else "cut" for row in self.rows]
        return list(columns), [list(line) for line in zip(*columns.values(), strict=True)]


def recommend(rows: Sequence[MachineRow], metric: str = "score") -> Recommendation:
    """Return the recommended machine: the cheapest of those within one standard error of the best mean.

    The error is that of the mean of the differences over the folds, which all machines share. Folds share training
    rows, so that it is a rule of thumb and not a test. A machine that did not converge is never recommended as cheap.
    """
    scored = [row for row in rows if not math.isnan(row.mean_score)]
    if not scored:
        raise ValueError("No machine has a score; raise max_time, or give fewer values of C and gamma.")
    best = max(scored, key=lambda row: row.mean_score)
    near = [row for row in scored if row is not best and within_one_error(best.fold_scores, row.fold_scores)]
    cheap = [row for row in (best, *near) if row.converged] or [best]
    limit = ALIKE * min(row.cost for row in cheap)
    affordable = [row for row in cheap if row.cost <= limit]
    taken = min(affordable, key=lambda row: (row.n_support or 0, row is not best))
    missing = [row.machine for row in rows if math.isnan(row.mean_score)]
    gamma = "" if math.isnan(best.gamma) else f", gamma={best.gamma:.6g}"
    text = (
        f"{best.machine} has the best mean {metric}, {best.mean_score:.4f} over {len(best.fold_scores)} "
        f"fold{'s' if len(best.fold_scores) > 1 else ''} (C={best.C:.6g}{gamma}"
        f"{'' if best.converged else '; its last fit did not converge'})"
    )
    if missing:
        have = "has" if len(missing) == 1 else "have"
        text += f" of those with a score; no recommendation, as {_listed(missing)} {have} none: raise max_time."
        return Recommendation(best.machine, "", text)
    cut = [row.machine for row in rows if not row.finished]
    note = f" The search of {_listed(cut)} was cut: with a higher max_time it may find better cells." if cut else ""
    return Recommendation(best.machine, taken.machine, f"{text}; {_advice(best, near, taken, cheap)}{note}")


def within_one_error(best: ArrayLike, other: ArrayLike) -> bool:
    """Whether the mean difference over the folds is at most its standard error; of one fold, whether it is zero."""
    differences = np.subtract(best, other)
    differences = differences[~np.isnan(differences)]
    if not len(differences):
        return False
    error = differences.std(ddof=1) / math.sqrt(len(differences)) if len(differences) > 1 else 0.0
    # If a single fold differs, both are equal up to rounding.
    return bool(differences.mean() <= error * (1 + 1e-9))


def _advice(best: MachineRow, near: Sequence[MachineRow], taken: MachineRow, cheap: Sequence[MachineRow]) -> str:
    if not near:
        return f"no other machine is within one standard error of the differences over the folds. Take {best.machine}."
    names = _listed([row.machine for row in near])
    are = "is" if len(near) == 1 else "are"
    start = f"{names} {are} within one standard error of the differences over the folds. "
    cheapest = min(cheap, key=lambda row: row.cost)
    if taken.cost > cheapest.cost:  # as cheap but for what clocks cannot tell
        return (
            f"{start}Take {taken.machine}: {_price(taken)}; {cheapest.machine} has {_price(cheapest)}, which is no "
            "clear difference in time."
        )
    if taken is best:
        return f"{start}Take {best.machine}: none of them that converged is cheaper to train and predict."
    return (
        f"{start}Take {taken.machine}, the cheapest of these to train and predict: {_price(taken)}, where "
        f"{best.machine} has {_price(best)}."
    )


def _price(row: MachineRow) -> str:
    seconds = "no times" if math.isinf(row.cost) else f"{row.cost:.2g} s"
    return f"{seconds} and {row.n_support if row.n_support is not None else 'unknown'} support vectors"


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _number(value: float | None, style: str) -> str:
    return "-" if value is None or not math.isfinite(value) else format(value, style)


def _plain(value: Any) -> Any:
    """JSON has no nan."""
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _aligned(line: Sequence[str], widths: Sequence[int]) -> str:
    first, *others = (cell.rjust(width) for cell, width in zip(line, widths, strict=True))
    return "  ".join([first.strip().ljust(widths[0]), *others])


def _markdown(text: str) -> str:
    return escape(text, quote=False).replace("|", "\\|").replace("\n", " ")


def _written(text: str, path: Any) -> str:
    if path is not None:
        write_text(check_path(path), text)
    return text
