"""HL02 Table V.2 repeated: rates of five methods with the rbf kernel, at the paper's own (C, gamma).

Sets with a test part (dna, satimage, letter, shuttle) must come within 0.3 points of the paper; of the others the mean
of ten repetitions of ten-fold cross-validation within 2 points, because the paper reports the best of 225 cells on its
own folds. Ends with an error where one does not.
"""

from __future__ import annotations

from experiments import hl02
from experiments.frame import Cells, Report, Settings, command
from experiments.paper_numbers.hl02 import TABLE_2
from experiments.tables import Entry, pivot, worst

WITHIN_FIXED, WITHIN_FOLDS = 0.3, 2.0


def entries_of(cells: Cells) -> list[Entry]:
    found = []
    for (name, method, *tol), cell in cells.items():
        title = hl02.TITLES[method] + (f", tol {tol[0]}" if tol else "")
        paper = None if tol else TABLE_2.get(name, {}).get(method)
        found.append(Entry(name, title, cell.get("rate"), paper, limited=False, quantity="rate"))
    return found


def verdict(entries: list[Entry]) -> tuple[bool, list[str]]:
    """Return whether all rates are within their limits, and sentences about it."""
    holds, lines = True, []
    for names, within, what in ((hl02.FIXED, WITHIN_FIXED, "test part"), (hl02.SMALL, WITHIN_FOLDS, "ten-fold")):
        judged = [entry for entry in entries if entry.row in names and entry.difference is not None]
        if not judged:
            continue
        far = [entry for entry in judged if abs(entry.difference or 0.0) > within]
        most = worst(judged)
        assert most is not None
        lines.append(
            f"- {what}: {len(judged) - len(far)} of {len(judged)} rates within {within:g} points of the paper's; the "
            f"largest difference is {most.difference:+.2f} ({most.row}, {most.column})."
        )
        lines += [f"  - beyond: {entry.row}, {entry.column}: {entry.difference:+.2f}" for entry in far]
        holds = holds and not far
    return holds, lines


def report(cells: Cells, settings: Settings) -> Report:
    entries = entries_of(cells)
    holds, sentences = verdict(entries)
    unfinished = [" ".join(key) for key, cell in cells.items() if not cell["done"]]
    lines = [
        f"Percent, ours / the paper's (difference); at most {settings.limit:g} s a cell.",
        "",
        *pivot(entries),
        "",
        *sentences,
    ]
    if unfinished:
        lines.append(f"- ended by the limit: {', '.join(unfinished)}")
    # Quick runs use other data.
    return Report(lines, [entry.as_row() for entry in entries], holds=settings.quick or holds)


EXPERIMENT = hl02.on_all_sets("hl02_table2", "HL02 Table V.2: rates with the rbf kernel", report)
main = command(EXPERIMENT)

if __name__ == "__main__":
    main()
