"""Every example of the page on the command line, in order: it runs, and prints what the page says."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from multimargin.cli import main
from support.printed import matches

PAGE = Path(__file__).parents[2] / "docs" / "command_line.md"
BLOCK = re.compile(r"^```(python|console)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def examples(block: str) -> Iterator[tuple[str, list[str]]]:
    """Yield each command with the lines that are shown below it."""
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, *shown = part.splitlines()
        yield command, shown


def run(command: str) -> str:
    """Run a command of the page; ``>`` writes its output to a file, and ``cat`` shows one."""
    words, _, target = command.partition(" > ")
    program, *arguments = shlex.split(words)
    if program == "cat":
        return Path(arguments[0]).read_text()
    assert program == "multimargin"
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, (command, result.stderr)
    if target:
        Path(target).write_text(result.stdout)
        return ""
    return result.stdout


def test_every_example_runs_as_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {}
    n_commands = 0
    for kind, block in BLOCK.findall(PAGE.read_text(encoding="utf-8")):
        if kind == "python":
            if "subprocess" not in block:  # another test runs those, in processes of their own
                exec(block, namespace)
            continue
        for command, shown in examples(block):
            printed = run(command)
            assert matches(shown, printed), f"{command} printed\n{printed}"
            n_commands += 1
    assert n_commands > 12


def test_the_comparison_notices() -> None:
    assert matches(["a ... c", "...", "d"], "a b c\nx\ny\nd\n")
    assert not matches(["a"], "a\nb\n")
    assert not matches([], "a\n")
