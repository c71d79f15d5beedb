"""The documentation is true: its code runs, its links lead somewhere, its cards agree with the machines."""

from __future__ import annotations

import re
import runpy
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from multimargin import MACHINES

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md")) + [page for page in (ROOT / "README.md",) if page.exists()]
KEYS = ("DGI11", "HL02", "KCSL04", "WWDOC", "IGEL", "DGI16", "PLATT99", "LLW07", "WLW04")

BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def named(page: Path) -> str:
    return str(page.relative_to(ROOT))


def blocks(page: Path) -> list[tuple[int, str]]:
    """Return (line, code) of every python block."""
    text = page.read_text(encoding="utf-8")
    return [(text[: match.start(1)].count("\n"), match.group(1)) for match in BLOCK.finditer(text)]


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)], ids=named)
def test_code_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # whatever a snippet writes
    namespace: dict[str, object] = {"__name__": "__main__"}
    for line, code in blocks(page):
        # Empty lines in front, so that a failure names the line of the page.
        exec(compile("\n" * line + code, str(page), "exec"), namespace)


@pytest.mark.parametrize("example", sorted((ROOT / "examples").glob("*.py")), ids=named)
def test_example_runs_and_ends_in_a_sentence(
    example: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [str(example)])
    runpy.run_path(str(example), run_name="__main__")
    assert capsys.readouterr().out.splitlines()[-1].startswith("Reading: ")


def anchors(page: Path) -> set[str]:
    headings = HEADING.findall(page.read_text(encoding="utf-8"))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_links_lead_somewhere(page: Path) -> None:
    for link in LINK.findall(page.read_text(encoding="utf-8")):
        if link.startswith(("http://", "https://", "mailto:")):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{named(page)} links to {link}, which does not exist"
        if anchor and target.suffix == ".md":
            assert anchor in anchors(target), f"{named(page)} links to {link}, but there is no such heading"


def test_every_page_is_reached_from_the_index() -> None:
    linked = LINK.findall((DOCS / "index.md").read_text(encoding="utf-8"))
    reached = {(DOCS / link.partition("#")[0]).resolve() for link in linked}
    missing = [named(page) for page in DOCS.rglob("*.md") if page.name != "index.md" and page not in reached]
    assert not missing


@pytest.mark.parametrize("name", MACHINES)
def test_card_states_the_two_class_factor(name: str) -> None:
    card = (DOCS / "machines" / f"{name}.md").read_text(encoding="utf-8")
    stated = re.search(r"^Two-class factor: ([\d.]+)\. ", card, re.MULTILINE)
    assert stated is not None
    assert float(stated.group(1)) == MACHINES[name].binary_factor


@pytest.mark.parametrize("name", MACHINES)
def test_card_states_the_margins(name: str) -> None:
    card = (DOCS / "machines" / f"{name}.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| \$[-f].*\$ \| (.+) \|$", card, re.MULTILINE)
    stated = np.array([[float(Fraction(entry.strip())) for entry in row.split("|")] for row in rows])
    table = MACHINES[name].table(3)
    np.testing.assert_array_equal(stated[:, :3], table.dense()[0])
    np.testing.assert_array_equal(stated[:, 3], table.target[0])


@pytest.mark.parametrize("name", MACHINES)
def test_card_states_bound_and_projection(name: str) -> None:
    card = (DOCS / "machines" / f"{name}.md").read_text(encoding="utf-8")
    assert f"The bound is a {MACHINES[name].bound.value}:" in card
    assert (r"\sum_c w_c = 0$$" in card) == MACHINES[name].sum_to_zero


def test_references_hold_every_key() -> None:
    text = (DOCS / "references.md").read_text(encoding="utf-8")
    assert [key for key in KEYS if f"## {key}\n" not in text] == []
