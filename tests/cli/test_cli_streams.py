"""The command where its streams or its disk fail: what was computed is saved, and no traceback is printed."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from multimargin import load_libsvm, load_model
from support.command_line import succeed, write_iris
from support.command_process import MOST_SECONDS, end, start

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="signals and pipes with names are those of POSIX"),
    pytest.mark.timeout(300),
]
SMALL_GRID = ("-log2c", "0,1,1", "-log2g", "-2,-1,1", "-v", "2")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_iris(tmp_path / "iris.svm")
    succeed("train", "-q", "--format", "multimargin", "iris.svm", "trained")
    return tmp_path


# The output of each command, and the file that must exist even if the output fails.
PRINTING: dict[str, tuple[tuple[str, ...], str | None]] = {
    "train": (("train", "iris.svm", "made"), "made"),
    "predict": (("predict", "iris.svm", "trained", "made"), "made"),
    "select": (("select", *SMALL_GRID, "-out", "cells", "iris.svm", "made"), "made"),
    "path": (("path", "-log2c", "0,1,1", "--picture", "made.svg", "iris.svm"), "made.svg"),
    "compare": (("compare", *SMALL_GRID, "--machines", "ovo", "--out", "made.csv", "iris.svm"), "made.csv"),
    "scale": (("scale", "-s", "made", "iris.svm"), "made"),
    "verify": (("verify", "iris.svm", "trained"), None),
    "info": (("info", "iris.svm"), None),
    "convert": (("convert", "iris.svm", "made.csv"), "made.csv"),
}
SILENT = {"convert"}
each_command = pytest.mark.parametrize("name", list(PRINTING))


def whole(path: Path) -> bool:
    """Return whether a file exists, without temporary files beside it."""
    return path.stat().st_size > 0 and not [other for other in path.parent.iterdir() if other.name.endswith(".tmp")]


@each_command
def test_a_full_disk_behind_stdout_loses_no_file(folder: Path, name: str) -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("there is no device that is always full here")
    arguments, made = PRINTING[name]
    with full.open("w") as out:
        code, _, err = end(start(*arguments, stdout=out))
    assert code == (0 if name in SILENT else 1), err
    if name not in SILENT:
        assert "Error: stdout cannot be written (No space left on device)" in err
    assert "Traceback" not in err
    assert "Exception ignored" not in err
    assert made is None or whole(folder / made)


@pytest.mark.parametrize("name", ["train", "predict", "select"])
def test_a_reader_that_is_gone_loses_no_file(folder: Path, name: str) -> None:
    arguments, made = PRINTING[name]
    reading, writing = os.pipe()
    os.close(reading)
    code, _, err = end(start(*arguments, stdout=writing))
    os.close(writing)
    assert code == (0 if name in SILENT else 1), err
    assert err == "" or name == "path"  # with the path of the figure
    assert "Traceback" not in err
    assert made is None or whole(folder / made)


@pytest.mark.parametrize("closed", [(1,), (0, 1, 2)])
def test_closed_streams_lose_no_model(folder: Path, closed: tuple[int, ...]) -> None:
    """Files opened next must not get their descriptors: output would be written into the model."""

    def close() -> None:
        for number in closed:
            os.close(number)

    # One step gives a warning on stderr, too.
    process = start("train", "--max-iter", 1, "--format", "multimargin", "iris.svm", "made", preexec_fn=close)
    code, out, err = end(process)
    assert code == 0, err
    assert (out == "") == (1 in closed)
    assert "Traceback" not in err
    load_model(folder / "made")


@pytest.mark.parametrize("arguments", [("scale", "iris.svm"), ("predict", "iris.svm", "trained", "-")])
def test_results_that_have_no_place_are_refused(folder: Path, arguments: tuple[str, ...]) -> None:
    code, _, err = end(start(*arguments, preexec_fn=lambda: os.close(1)))
    assert code == 1
    assert err.startswith("Error: stdout is closed")
    assert len(err.splitlines()) == 1


def test_a_full_disk_behind_stderr_loses_no_model(folder: Path) -> None:
    """A warning that cannot be printed must not end the training."""
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("there is no device that is always full here")
    with full.open("w") as err:
        code, out, _ = end(start("train", "--max-iter", 1, "iris.svm", "made", stderr=err))
    assert code == 0
    assert "support vectors" in out
    load_libsvm(folder / "made")


def test_an_error_that_cannot_be_told_is_still_an_exit_code(folder: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    code, out, _ = end(start("train", "missing.svm", "made", stderr=writing))
    os.close(writing)
    assert (code, out) == (1, "")


def test_a_model_that_cannot_be_saved_is_told_with_the_results(folder: Path) -> None:
    resource = pytest.importorskip("resource")
    (folder / "made").write_text("old")

    def small_files() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (500, 500))

    code, out, err = end(start("train", "iris.svm", "made", preexec_fn=small_files))
    assert code == 1
    assert "support vectors" in out
    assert "the model made could not be written (File too large)" in err
    assert len(err.splitlines()) == 1
    assert (folder / "made").read_text() == "old"
    assert sorted(path.name for path in folder.iterdir()) == ["iris.svm", "made", "trained"]


def pipe_of(folder: Path) -> tuple[Path, list[bytes], threading.Thread]:
    pipe, found = folder / "pipe", list[bytes]()
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: found.append(pipe.read_bytes()), daemon=True)
    reader.start()
    return pipe, found, reader


@pytest.mark.parametrize("name", ["train", "predict", "scale", "select"])
def test_commands_write_into_a_pipe_with_a_name(folder: Path, name: str) -> None:
    arguments = {
        "train": ("train", "iris.svm", "pipe"),
        "predict": ("predict", "iris.svm", "trained", "pipe"),
        "scale": ("scale", "--out", "pipe", "iris.svm"),
        "select": ("select", *SMALL_GRID, "-out", "pipe", "iris.svm"),
    }[name]
    pipe, found, reader = pipe_of(folder)
    succeed(*arguments)
    reader.join(20)
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert found
    assert found[0]


def test_predictions_and_models_to_stdout(folder: Path) -> None:
    """Only the contents of the file go to stdout; messages go to stderr."""
    if not Path("/dev/fd").exists():
        pytest.skip("there is no /dev/fd here")
    Path("out").symlink_to("/dev/fd/1")
    for arguments, message in (
        (("predict", "iris.svm", "trained"), "Accuracy ="),
        (("train", "iris.svm"), "support vectors"),
    ):
        succeed(*arguments, "-q", "made") if arguments[0] == "train" else succeed(*arguments, "made")
        code, out, err = end(start(*arguments, "out"))
        assert code == 0, err
        assert out == Path("made").read_text()
        assert message in err
        assert Path("out").is_symlink()


def test_kill_while_a_model_is_written_leaves_a_whole_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed before and after each system call that replaces the file."""
    monkeypatch.chdir(tmp_path)
    write_iris(tmp_path / "data.svm")
    command = ("train", "--format", "multimargin", "data.svm", "model", "-c")
    succeed(*command, 1)
    old = Path("model").read_bytes()
    paused = (
        "import os, sys, time\n"
        "from multimargin.cli import main\n"
        "def wait(name):\n"
        "    real = getattr(os, name)\n"
        "    def call(*arguments):\n"
        "        print(name, flush=True)\n"
        "        time.sleep(0.05)\n"
        "        return real(*arguments)\n"
        "    setattr(os, name, call)\n"
        "for name in ('fchmod', 'fsync', 'replace'):\n"
        "    wait(name)\n"
        "main(sys.argv[1:], prog_name='multimargin')\n"
    )
    seen = set()
    for moment in range(5):
        Path("model").write_bytes(old)
        process = subprocess.Popen(
            [sys.executable, "-c", paused, *command, "100"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        for _ in range(1 + moment):
            process.stdout.readline()
        time.sleep(0.02)
        process.kill()
        process.communicate(timeout=MOST_SECONDS)
        seen.add(load_model("model").C)
    assert seen == {1.0, 100.0}, "the moments did not lie on both sides of the renaming"


def test_the_real_null_device_is_left_alone(folder: Path) -> None:
    """Runs after the tests with devices and pipes that may be replaced without harm."""
    null = Path("/dev/null")
    before = null.stat()
    if os.geteuid() == 0 and not stat.S_ISCHR(before.st_mode):
        pytest.skip("/dev/null is no device here")
    for arguments in (("train", "iris.svm", null), ("predict", "iris.svm", "trained", null)):
        succeed(*arguments)
        after = null.stat()
        assert (after.st_ino, after.st_rdev, after.st_mode) == (before.st_ino, before.st_rdev, before.st_mode)
    assert np.all([path.suffix != ".tmp" for path in Path("/dev").iterdir()])
