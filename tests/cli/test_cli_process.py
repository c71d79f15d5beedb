"""The command as a process: signals, full disks, terminals, pipes and completion."""

from __future__ import annotations

import importlib
import os
import signal
import sys
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from multimargin.cli import main
from multimargin.data_files import Table, write_data
from support.command_line import invoke, write_iris
from support.command_process import MOST_SECONDS, end, start

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals and pipes with names are those of POSIX")


def hard_rows(n: int) -> str:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(n, 10)).round(4).tolist()
    lines = (f"{i % 10} " + " ".join(f"{j + 1}:{v}" for j, v in enumerate(row)) for i, row in enumerate(rows))
    return "\n".join(lines) + "\n"


def test_ctrl_c_while_training_ends_with_130_and_leaves_nothing(tmp_path: Path) -> None:
    """The data come through a named pipe: when all is written the command has started, and trains soon."""
    pipe = tmp_path / "data.svm"
    os.mkfifo(pipe)
    arguments = ("train", "--multi-class", "llw", "-c", "1e6", "-g", "0.3", "-e", "1e-9", pipe, tmp_path / "model")
    process = start(*arguments)
    with pipe.open("w") as handle:  # waits until the other side reads
        handle.write(hard_rows(4000))
    time.sleep(1.0)
    process.send_signal(signal.SIGINT)
    code, out, err = end(process)
    assert code == 130, err
    assert out == ""
    assert err.strip() == "Interrupted."
    assert [path.name for path in tmp_path.iterdir()] == ["data.svm"]


def test_ctrl_c_while_writing_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data, out = write_iris(tmp_path / "iris.svm"), tmp_path / "out.svm"
    out.write_text("old")

    def lines_then_ctrl_c(*_: Any) -> Iterator[tuple[int, str]]:
        yield 1, "1 1:2\n"
        raise KeyboardInterrupt

    monkeypatch.setattr("multimargin.cli.scale.scaled_lines", lines_then_ctrl_c)
    assert invoke("scale", "--out", out, data).exit_code == 130
    assert out.read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["iris.svm", "out.svm"]


def test_a_process_that_is_killed_while_writing_leaves_the_old_file(tmp_path: Path) -> None:
    data, out = tmp_path / "data.svm", tmp_path / "out.svm"
    write_data(data, Table(np.random.default_rng(0).normal(size=(20_000, 20)).round(3), np.arange(20_000) % 3))
    out.write_text("old")
    process = start("scale", "--out", out, data)
    while not list(tmp_path.glob(".out.svm.*.tmp")) and process.poll() is None:
        time.sleep(0.001)
    process.kill()
    assert end(process)[0] == -signal.SIGKILL
    assert out.read_text() == "old"


def test_a_full_disk_is_a_sentence_and_leaves_no_file(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    data = write_iris(tmp_path / "iris.svm")

    def small_files() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (500, 500))

    code, out, err = end(start("scale", "--out", tmp_path / "out.svm", data, preexec_fn=small_files))
    assert code == 1
    assert out == ""
    assert "File too large" in err
    assert len(err.splitlines()) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["iris.svm"]


def test_a_reader_that_has_seen_enough_is_no_error_message(tmp_path: Path) -> None:
    data = tmp_path / "data.svm"
    write_data(data, Table(np.random.default_rng(0).normal(size=(8000, 10)).round(2), np.arange(8000) % 3))
    process = start("scale", data)
    assert process.stdout is not None
    process.stdout.readline()
    process.stdout.close()
    assert process.wait(timeout=MOST_SECONDS) == 1
    assert process.stderr is not None
    assert process.stderr.read() == ""
    process.stderr.close()


def test_a_bar_is_shown_on_a_terminal_only(tmp_path: Path) -> None:
    pty = pytest.importorskip("pty")
    data = write_iris(tmp_path / "iris.svm")
    ours, theirs = pty.openpty()
    process = start("train", "-v", 5, data, stderr=theirs, env=os.environ | {"TERM": "xterm", "COLUMNS": "80"})
    os.close(theirs)
    out, _ = process.communicate(timeout=MOST_SECONDS)
    shown = os.read(ours, 10_000)
    os.close(ours)
    assert b"cross-validation" in shown
    assert out.startswith("Cross Validation Accuracy = ")
    elsewhere = invoke("train", "-v", 5, data)
    assert (elsewhere.stdout, elsewhere.stderr) == (out, "")


def test_shell_completion(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    words = {"_MULTIMARGIN_COMPLETE": "bash_complete", "COMP_WORDS": "multimargin pre", "COMP_CWORD": "1"}
    for name, value in words.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SystemExit, match="0"):
        main(prog_name="multimargin")
    assert capsys.readouterr().out.split() == ["plain,predict"]


def test_drop_in_names_are_entry_points(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    for name in ("train", "predict", "scale"):
        module, _, function = project["scripts"][f"mm-{name}"].partition(":")
        monkeypatch.setattr(sys, "argv", [f"mm-{name}", "--help"])
        with pytest.raises(SystemExit, match="0"):
            getattr(importlib.import_module(module), function)()
        assert capsys.readouterr().out.startswith(f"Usage: mm-{name} [OPTIONS] ")
