"""The documentation is true: its code runs, its links lead somewhere, its commands exist, its cards agree."""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import re
import runpy
import tomllib
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any
from unittest import mock

import click
import numpy as np
import pytest

from multimargin import MACHINES
from multimargin.cli import main
from multimargin.kernels.table import KERNELS
from multimargin.problems.coupling import coupling_matrix
from support.printed import matches

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md")) + [page for page in (ROOT / "README.md",) if page.exists()]
KEYS = ("DGI11", "HL02", "KCSL04", "WWDOC", "IGEL", "DGI16", "PLATT99", "LLW07", "WLW04")

# A block of code and, if the next block is one of text, what the code prints.
BLOCK = re.compile(r"^```python\n(.*?)^```(?:\n+```text\n(.*?)^```)?", re.MULTILINE | re.DOTALL)
MAX_CODE_WIDTH = 88
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def named(page: Path) -> str:
    return str(page.relative_to(ROOT))


def blocks(page: Path) -> list[tuple[int, str, str | None]]:
    """Return (line, code, output shown) of every python block."""
    text = page.read_text(encoding="utf-8")
    return [(text[: match.start(1)].count("\n"), match[1], match[2]) for match in BLOCK.finditer(text)]


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)], ids=named)
def test_code_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # for files that a snippet writes
    namespace: dict[str, object] = {"__name__": "__main__"}
    with mock.patch.dict(KERNELS):  # a page adds to it
        for line, code, shown in blocks(page):
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                # Empty lines in front, so that a failure names the line of the page.
                exec(compile("\n" * line + code, str(page), "exec"), namespace)
            if shown is not None:
                assert matches(shown.splitlines(), printed.getvalue()), f"line {line} printed\n{printed.getvalue()}"


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)], ids=named)
def test_code_is_narrow(page: Path) -> None:
    lines = [line for _, code, shown in blocks(page) for line in f"{code}{shown or ''}".splitlines()]
    long = [line for line in lines if len(line) > MAX_CODE_WIDTH]
    assert long == []


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)], ids=named)
def test_what_is_printed_is_shown(page: Path) -> None:
    prints = re.compile(r"^print\(", re.MULTILINE)
    silent = [line for line, code, shown in blocks(page) if shown is None and prints.search(code)]
    assert silent == [], "add a block of text with the output below the code"


# Words of an earlier dialect of these pages, for which there are common ones: check, recompute, report, continue, ...
UNCOMMON = re.compile(r"\b(doctor|ails|anew|whoever|anybody|told|mends?|goes on|go on with|stream of)\b")


@pytest.mark.parametrize("page", [*PAGES, *(ROOT.glob("*.md"))], ids=named)
def test_words_are_common(page: Path) -> None:
    assert UNCOMMON.findall(page.read_text(encoding="utf-8")) == []


def test_every_other_block_is_known() -> None:
    # console is run by test_command_line_docs, diff by kernels/test_table
    known = {"python", "text", "{include}", "{toctree}", "console", "diff"}
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    assert [page.name for page in PAGES if "```console" in page.read_text(encoding="utf-8")] == ["command_line.md"]
    opened = re.findall(r"^```(\S*)", text, re.MULTILINE)[::2]
    assert set(opened) <= known, "code in another language is not run by test_code_runs"


def subcommands(module: str) -> set[str]:
    """Return what may follow ``python -m module``."""
    return set(importlib.import_module(module).main.commands)


def test_commands_exist() -> None:
    """Commands on the pages: targets of make, modules, extras and the commands of the package."""
    contributing = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    text = "\n".join([contributing, *(page.read_text(encoding="utf-8") for page in PAGES)])
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    assert set(re.findall(r"(?:^    |`)make ([\w-]+)", text, re.MULTILINE)) <= targets
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    assert set(re.findall(r"(?:multimargin|\.)\[(\w+)\]", text)) <= set(extras)
    assert set(re.findall(r"(?:^    |`)multimargin ([a-z]+)", text, re.MULTILINE)) <= set(
        main.list_commands(click.Context(main))
    )
    modules = re.findall(r"python -m ((?:benchmarks|experiments)\.\w+)(?: ([a-z][\w-]*))?", text)
    assert len({module for module, _ in modules}) > 5
    for module in {module for module, _ in modules}:
        place = ROOT / module.replace(".", "/")
        assert place.with_suffix(".py").exists() or (place / "__main__.py").exists(), module
    for module in ("benchmarks.versus", "benchmarks.figures"):
        assert {command for name, command in modules if name == module and command} <= subcommands(module)


def test_benchmark_page_is_what_was_measured() -> None:
    made = runpy.run_path(str(DOCS / "benchmark_page.py"), run_name="not_main")
    assert (DOCS / "reference" / "benchmarks.md").read_text(encoding="utf-8") == made["page"]()
    measured = {path.stem for path in (DOCS / "measured").glob("*.json")}
    assert measured
    assert measured <= set(made["TABLES"])


def test_figure_is_what_was_measured() -> None:
    made = runpy.run_path(str(DOCS / "speed_figure.py"), run_name="not_main")
    drawn = re.findall(r"<text[^>]*>([^<]*)</text>", (DOCS / "images" / "speed.svg").read_text(encoding="utf-8"))
    shown = [bar for bars in made["panels"]().values() for bar in bars]
    assert [text for text in drawn if "faster" in text] == [made["label"](bar) for bar in shown]
    assert {name for name, _, _ in shown} <= set(drawn)


def test_readme_quotes_what_was_measured() -> None:
    def rows(name: str) -> list[dict[str, Any]]:
        report: dict[str, Any] = json.loads((DOCS / "measured" / f"{name}.json").read_text(encoding="utf-8"))
        return list(report["rows"])

    text = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    fits = [row["ratio"]["scikit-learn"] for row in rows("ovo")]
    searches = [row["ratio"] for row in rows("selection")]
    others = [row["ratio"] for row in rows("all-in-one")]
    assert f"{min(fits):.1f} to {max(fits):.1f} times faster" in text
    assert f"{min(searches):.1f} to {max(searches):.1f} times faster" in text
    assert f"{min(others):.1f} to {max(others):.1f} times as long" in text
    for data in ("chessboard", "banana, noise 0.3"):
        row = [row for row in rows("rows") if row["data"] == data][-1]
        for figure in (f"{row['rows']:,} rows", f"{row['seconds']:.1f} seconds", f"{row['support_vectors']:,} support"):
            assert figure in text


def test_promises_page_is_what_was_counted() -> None:
    made = runpy.run_path(str(DOCS / "promises_page.py"), run_name="not_main")
    assert (DOCS / "promises.md").read_text() == made["make_page"]()
    for kept in (DOCS / "measured" / "promises").glob("*.json"):
        assert f"`{json.loads(kept.read_text())['command']}`" in (DOCS / "promises.md").read_text()


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


# Where the paths of a page may begin, besides the root of the project.
BASES = (ROOT, ROOT / "src" / "multimargin", ROOT / "cpp" / "core")
PATH = re.compile(r"(?<![\w/.:-])(?:[\w-]+/)+[\w*.-]*")


def unknown_paths(text: str) -> list[str]:
    """Return what looks like a path of this project but does not exist; a name without suffix stands for all."""
    unknown = []
    for path in (found.rstrip(".") for found in PATH.findall(text)):
        bases = [base for base in BASES if (base / path.partition("/")[0]).is_dir()]
        if bases and not any((base / path).exists() or any(base.glob(f"{path}.*")) for base in bases):
            unknown += [] if any(any(base.glob(path)) for base in bases if "*" in path) else [path]
    return unknown


@pytest.mark.parametrize("page", [ROOT / "ARCHITECTURE.md", *sorted((DOCS / "developer").glob("*.md"))], ids=named)
def test_paths_exist(page: Path) -> None:
    assert unknown_paths(page.read_text(encoding="utf-8")) == []


def test_a_wrong_path_is_found() -> None:
    assert unknown_paths("`solvers/nothing.py`, `solvers/core.py`, `kernel/score_pass`, and/or") == [
        "solvers/nothing.py"
    ]


def test_notation_names_what_the_core_has() -> None:
    text = (DOCS / "notation.md").read_text(encoding="utf-8")
    headers = [path.read_text(encoding="utf-8") for path in (ROOT / "cpp" / "core").rglob("*.hpp")]
    for name, member in re.findall(r"`(\w+)::(\w+)(?:\(\))?`", text):
        defining = [header for header in headers if re.search(rf"(?:struct|class) {name}\b", header)]
        assert any(re.search(rf"\b{member}\b", header) for header in defining), f"{name}::{member}"


def test_architecture_is_two_pages() -> None:
    assert len((ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").splitlines()) <= 130


def test_every_page_is_reached_from_the_index() -> None:
    reached, waiting = set(), [DOCS / "index.md"]
    while waiting:
        page = waiting.pop()
        reached.add(page)
        for link in LINK.findall(page.read_text(encoding="utf-8")):
            target = (page.parent / link.partition("#")[0]).resolve()
            if target.suffix == ".md" and target.exists() and target not in reached:
                waiting.append(target)
    assert [named(page) for page in DOCS.rglob("*.md") if page not in reached] == []


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


# What the cards write, as functions of the classes y, z of two examples, of their components p, q (the class that a
# component is about), and of the number of classes d.
Coupling = Callable[[int, int, int, int, int], float]


def sign(y: int, p: int) -> int:
    return 1 if y == p else -1


RELATIVE = r"\delta_{y_i y_j} - \delta_{y_i q} - \delta_{p y_j} + \delta_{pq}"
COUPLINGS: dict[str, Coupling] = {
    RELATIVE: lambda y, p, z, q, d: (y == z) - (y == q) - (p == z) + (p == q),
    r"\delta_{pq} - \tfrac1d": lambda y, p, z, q, d: (p == q) - 1 / d,
    r"s_{ip} s_{jq} (\delta_{pq} - \tfrac1d)": lambda y, p, z, q, d: sign(y, p) * sign(z, q) * ((p == q) - 1 / d),
    r"\delta_{y_i y_j} - \tfrac1d": lambda y, p, z, q, d: (y == z) - 1 / d,
    r"s_{ip} s_{jq}\, \delta_{pq}": lambda y, p, z, q, d: sign(y, p) * sign(z, q) * (p == q),
}
TARGETS: dict[str, Callable[[int, int, int], float]] = {
    r"2 \sum_{i} \sum_{p \ne y_i} a_{ip}": lambda y, p, d: 2,
    r"\sum_{i} \sum_{p \ne y_i} a_{ip}": lambda y, p, d: 1,
    r"\tfrac{1}{d-1} \sum_{i} \sum_{p \ne y_i} a_{ip}": lambda y, p, d: 1 / (d - 1),
    r"\sum_{i,p} a_{ip}": lambda y, p, d: 1,
    r"\sum_i a_i": lambda y, p, d: 1,
    r"(d - 1) \sum_i a_{i y_i} + \sum_{i} \sum_{p \ne y_i} a_{ip}": lambda y, p, d: d - 1 if p == y else 1,
}


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("d", [2, 3, 5])
def test_dual_on_the_card_is_that_of_the_machine(name: str, d: int) -> None:
    card = (DOCS / "machines" / f"{name}.md").read_text(encoding="utf-8")
    coupling = re.search(r"M_\{ip,jq\} = (.*?)\$\$", card)
    linear = re.search(r"\\max_\{a\} \\; (.*?) - \\tfrac12", card)
    assert coupling is not None
    assert linear is not None
    entry, target = COUPLINGS[coupling[1]], TARGETS[linear[1]]
    table, M = MACHINES[name].table(d), coupling_matrix(MACHINES[name], d)
    about = np.where(
        table.class2 >= 0, table.class2, table.class1
    ).tolist()  # f_y - f_p is about p, f_p and -f_p are, too
    width = len(about[0])
    for y in range(d):
        for p in range(width):
            assert table.target[y, p] == pytest.approx(target(y, about[y][p], d))
            stated = [[entry(y, about[y][p], z, about[z][q], d) for q in range(width)] for z in range(d)]
            np.testing.assert_allclose(M[y, p], stated, atol=1e-14)


def test_references_hold_every_key() -> None:
    text = (DOCS / "references.md").read_text(encoding="utf-8")
    assert [key for key in KEYS if f"## {key}\n" not in text] == []
