"""Makes the page of guarantees from the counts of the long test runs.

    python -m benchmarks.check --count 20000 --out docs/measured/promises      (and the other commands of the page)
    python docs/promises_page.py

Reads ``docs/measured/promises/*.json`` and ``docs/promises.txt``; writes ``docs/promises.md``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
MEASURED, TEXT, PAGE = (
    HERE / "measured" / "promises",
    HERE / "promises.txt",
    HERE / "promises.md",
)


def _check(figures: dict[str, Any]) -> str:
    outcomes = ", ".join(
        f"{number:,} {name}" for name, number in sorted(figures["outcomes"].items())
    )
    slowest = (
        f"the slowest fit took {figures['slowest_seconds']:.1f} s of processor time"
    )
    return f"{figures['problems']:,} random problems, {figures['wrong']} wrong ({outcomes}); {slowest}"


def _interrupts(figures: dict[str, Any]) -> str:
    return f"{figures['interrupts']:,} interrupts, {figures['unusable']} objects unusable afterwards"


def _faults(figures: dict[str, Any]) -> str:
    return f"{figures['failures']:,} failures in {figures['calls']} public calls, {figures['faults']} faults"


def _frozen(figures: dict[str, Any]) -> str:
    fits = f"{figures['problems']} stored problems, {figures['fits']:,} fits in {figures['ways']} ways"
    apart = f"stored bounds and the quadratic programming solver's values differ by at most {figures['apart']:.1e}"
    stopped = figures["fits"] - figures["outcomes"].get("converged", 0)
    return f"{fits}, {figures['disagree']} disagree, {stopped:,} stopped before reaching `tol` and report it; {apart}"


SENTENCES = {
    "check": _check,
    "frozen": _frozen,
    "interrupts": _interrupts,
    "faults": _faults,
}


def make_page() -> str:
    """Return the page: the text, with a line for each file of figures."""
    lines = []
    for name, sentence in SENTENCES.items():
        path = MEASURED / f"{name}.json"
        if path.exists():
            kept = json.loads(path.read_text())
            lines.append(f"- `{kept['command']}`: {sentence(kept['figures'])}.")
    return TEXT.read_text().replace("FIGURES", "\n".join(lines))


if __name__ == "__main__":
    PAGE.write_text(make_page())
