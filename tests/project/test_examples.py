"""The gallery: every example answers one question, draws a figure and ends with a sentence. Doctests are run here,
too."""

from __future__ import annotations

import ast
import doctest
import importlib
import pkgutil
import runpy
import sys
from collections.abc import Iterator
from pathlib import Path

import matplotlib as mpl
import pytest

import multimargin

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
MODULES = [
    "multimargin",
    *(
        module.name
        for module in pkgutil.walk_packages(multimargin.__path__, "multimargin.")
        if not module.name.endswith("__main__")
    ),
]


@pytest.fixture(autouse=True)
def agg(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    with mpl.rc_context():
        mpl.use("Agg")
        from matplotlib import pyplot

        pyplot.close("all")
        yield
        pyplot.close("all")


def test_there_are_enough() -> None:
    assert len(EXAMPLES) >= 12
    assert all(path.name.startswith("plot_") for path in EXAMPLES), "sphinx-gallery runs plot_*.py only"


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example(path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    title, line, *_ = (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").splitlines()
    assert title.endswith("?")
    assert line == "=" * len(title)
    monkeypatch.setattr(sys, "argv", [str(path)])
    runpy.run_path(str(path), run_name="__main__")
    from matplotlib import pyplot

    assert len(pyplot.get_fignums()) == 1, "one picture"
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == 1
    assert printed[0].startswith("Reading: ")
    assert printed[0].endswith(".")


def test_doctests() -> None:
    attempted = 0
    for name in MODULES:
        result = doctest.testmod(importlib.import_module(name))
        assert result.failed == 0, name
        attempted += result.attempted
    assert attempted > 30
