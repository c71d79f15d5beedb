"""The command line: output, messages, files and exit codes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from multimargin import MACHINES, __version__
from multimargin.base.files import whole_file
from multimargin.cli import demo_run, main
from multimargin.cli.demo import reading

PNG = b"\x89PNG"
Invoke = Callable[..., Result]


@pytest.fixture
def invoke(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Invoke:
    """Return a function that runs the command in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> Result:
        return CliRunner().invoke(main, list(arguments))

    return run


@pytest.fixture
def few_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the demonstration train two classifiers only, for tests of other things than its table."""
    monkeypatch.setattr(demo_run, "RUNS", (demo_run.PEER, "ww"))


def test_version(invoke: Invoke) -> None:
    result = invoke("--version")
    assert result.exit_code == 0
    assert result.stdout.strip() == f"multimargin {__version__}"


def test_help_names_the_commands(invoke: Invoke) -> None:
    result = invoke("--help")
    assert result.exit_code == 0
    assert "demo" in result.stdout
    assert "info" in result.stdout


def test_info_shows_what_a_bug_report_needs(invoke: Invoke) -> None:
    result = invoke("info")
    assert result.exit_code == 0
    for word in (__version__, "instruction set", "threads", "available memory", "scikit-learn"):
        assert word in result.stdout


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("demo", "--nope"), "No such option"),
        (("demo", "--time-limit", "0"), "--time-limit"),
        (("nonsense",), "No such command"),
    ],
)
def test_a_bad_option_ends_with_1(invoke: Invoke, arguments: tuple[str, ...], expected: str) -> None:
    result = invoke(*arguments)
    assert result.exit_code == 1
    assert expected in result.stderr
    assert not result.stdout


def test_demo_as_a_process_trains_every_machine(tmp_path: Path) -> None:
    out = tmp_path / "picture.png"
    command = [sys.executable, "-m", "multimargin", "demo", "--quick", "--out", str(out)]
    result = subprocess.run(
        command, capture_output=True, encoding="utf-8", env=os.environ | {"PYTHONUTF8": "1"}, check=False
    )
    assert result.returncode == 0, result.stderr
    words = result.stdout.split()
    for name in MACHINES:
        assert name in words
    assert "scikit-learn SVC" in result.stdout
    assert words.count("converged") == len(MACHINES)
    assert result.stdout.count("Reading: 9 of 9 machines are proved optimal") == 1
    assert result.stderr.splitlines() == [f"Figure: {out}"]  # and no progress bar: stderr is no terminal
    assert out.read_bytes().startswith(PNG)
    assert list(tmp_path.iterdir()) == [out]


@pytest.mark.usefixtures("few_runs")
def test_demo_writes_demo_png_unless_told(invoke: Invoke, tmp_path: Path) -> None:
    result = invoke("demo", "--quick")
    assert result.exit_code == 0, result.stderr
    assert (tmp_path / "demo.png").read_bytes().startswith(PNG)


@pytest.mark.usefixtures("few_runs")
def test_demo_without_matplotlib_says_how_to_get_it(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("matplotlib", "matplotlib.figure", "multimargin.plotting.machines_figure"):
        monkeypatch.setitem(sys.modules, name, None)
    result = invoke("demo", "--quick")
    assert result.exit_code == 0
    assert "pip install 'multimargin[plots]'" in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert "ww" in result.stdout
    assert not Path("demo.png").exists()


def test_time_limit_shows_how_a_machine_ended(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo_run, "RUNS", ("atm", "ww"))
    result = invoke("demo", "--time-limit", "0.02")
    assert result.exit_code == 0, result.stderr
    assert "max_time" in result.stdout
    assert "0 of 2 machines" in result.stdout or "1 of 2 machines" in result.stdout


@pytest.mark.parametrize("out", ["missing/demo.png", "file/demo.png", "."])
def test_an_unwritable_out_is_one_sentence(invoke: Invoke, tmp_path: Path, out: str) -> None:
    (tmp_path / "file").touch()
    result = invoke("demo", "--quick", "--out", out)
    assert result.exit_code == 1
    assert result.stderr.startswith(f"Error: --out {out} ")
    assert len(result.stderr.splitlines()) == 1
    assert not result.stdout  # refused before any training


def test_an_unknown_format_is_refused_first(invoke: Invoke) -> None:
    result = invoke("demo", "--out", "demo.xyz")
    assert result.exit_code == 1
    assert "use one of .png, .pdf, .svg" in result.stderr
    assert not result.stdout


def test_interrupt_ends_with_130_and_shows_what_is_done(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    train = demo_run.train

    def train_then_interrupt(name: str, digits: demo_run.Digits, time_limit: float) -> demo_run.Run:
        if name == "cs":
            raise KeyboardInterrupt
        return train(name, digits, time_limit)

    monkeypatch.setattr(demo_run, "train", train_then_interrupt)
    result = invoke("demo", "--quick")
    assert result.exit_code == 130
    assert "ww" in result.stdout
    assert "Interrupted." in result.stderr
    assert not Path("demo.png").exists()


def test_reading_of_nothing() -> None:
    assert reading([]) == "No machine was trained."


def test_a_file_is_there_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "result"
    path.write_bytes(b"old")

    def write_and_fail() -> None:
        with whole_file(path) as handle:
            handle.write(b"ne")
            raise RuntimeError("half way")

    with pytest.raises(RuntimeError, match="half way"):
        write_and_fail()
    assert path.read_bytes() == b"old"
    with whole_file(path) as handle:
        handle.write(b"new")
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]
