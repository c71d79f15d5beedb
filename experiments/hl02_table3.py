"""HL02 Table V.3 repeated: training time, testing time and unique support vectors, from the fits of Table V.2.

With the same --out the fits of ``experiments.hl02_table2`` are reused. The paper's seconds are those of a Pentium
III at 500 MHz; what can be compared is their order, and the support vectors.
"""

from __future__ import annotations

from experiments import hl02
from experiments.frame import Cells, Report, Settings, command
from experiments.paper_numbers.hl02 import SUPPORT_VECTORS, TESTING_SECONDS, TRAINING_SECONDS
from experiments.tables import Entry, pivot

QUANTITIES = (
    ("training_seconds", "seconds", TRAINING_SECONDS, "Seconds of training"),
    ("testing_seconds", "seconds", TESTING_SECONDS, "Seconds of testing"),
    ("support_vectors", "number", SUPPORT_VECTORS, "Unique support vectors"),
)


def entries_of(cells: Cells, quantity: str, kind: str, printed: dict[str, dict[str, float]]) -> list[Entry]:
    found = []
    for (name, method, *tol), cell in cells.items():
        title = hl02.TITLES[method] + (f", tol {tol[0]}" if tol else "")
        paper = None if tol else printed.get(name, {}).get(method)
        limited = not cell["done"] and kind == "seconds"
        found.append(Entry(name, title, cell.get(quantity), paper, kind, limited=limited, quantity=quantity))
    return found


def findings(cells: Cells) -> list[str]:
    """Return sentences on the paper's conclusions: which method is fastest, and which needs the fewest support
    vectors."""
    lines = []
    for name in dict.fromkeys(key[0] for key in cells):
        found = {method: cells[name, method] for method in hl02.BIAS if cells[name, method]["done"]}
        if len(found) < 2:
            continue
        fastest = min(found, key=lambda method: found[method]["training_seconds"])
        fewest = min(found, key=lambda method: found[method]["support_vectors"])
        binary = [found[method]["support_vectors"] for method in ("ovo", "dag", "ova") if method in found]
        fewer = "ww" in found and bool(binary) and found["ww"]["support_vectors"] < min(binary)
        lines.append(
            f"- {name}: {fastest} trains fastest, {fewest} has the fewest support vectors; ww has "
            f"{'fewer' if fewer else 'no fewer'} than all methods made of binary machines."
        )
    return lines


def report(cells: Cells, settings: Settings) -> Report:
    lines, rows = [], []
    for quantity, kind, printed, caption in QUANTITIES:
        entries = entries_of(cells, quantity, kind, printed)
        lines += [f"{caption}, ours / the paper's:", "", *pivot(entries), ""]
        rows += [entry.as_row() for entry in entries]
    lines += [
        "The paper concludes that one-against-one and DAG train fastest, and that on large sets ww needs fewer support "
        "vectors than the methods made of binary machines:",
        "",
        *findings(cells),
    ]
    return Report(lines, rows)


EXPERIMENT = hl02.on_all_sets("hl02_table3", "HL02 Table V.3: training time, testing time, support vectors", report)
main = command(EXPERIMENT)

if __name__ == "__main__":
    main()
