"""Atomic writing of files: links, modes and devices are preserved."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from multimargin import SVC, dump_libsvm, load_libsvm, load_model, save_model
from multimargin.base.files import check_path, whole_file, write_text
from multimargin.data_files import Table, write_data

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="links, modes and devices are those of POSIX")
Save = Callable[[Any, Path], None]


def table_of(model: Any, path: Path) -> None:
    """Write the rows of the model in the format of the name."""
    write_data(path, Table(model.support_vectors_, model.predict(model.support_vectors_)))


WRITERS: tuple[tuple[str, Save, str], ...] = (
    ("model", save_model, "model"),
    ("libsvm", dump_libsvm, "model"),
    ("svmlight", table_of, "rows.svm"),
    ("gz", table_of, "rows.svm.gz"),
    ("csv", table_of, "rows.csv"),
    ("npz", table_of, "rows.npz"),
)
each_writer = pytest.mark.parametrize(("save", "name"), [pytest.param(*each[1:], id=each[0]) for each in WRITERS])


@pytest.fixture(scope="module")
def model() -> SVC:
    X = np.random.default_rng(0).normal(size=(40, 3))
    fitted: SVC = SVC(multi_class="ovo").fit(X, np.arange(40) % 3)
    return fitted


@contextmanager
def emptied(pipe: Path) -> Iterator[list[bytes]]:
    """Read a named pipe in a thread until the writer closes it."""
    found: list[bytes] = []
    reader = threading.Thread(target=lambda: found.append(pipe.read_bytes()), daemon=True)
    reader.start()
    yield found
    reader.join(20)
    assert not reader.is_alive(), "no writer opened the pipe"


def make_device(path: Path, major: int, minor: int) -> None:
    """Make a device in a folder of the test, so that a faulty program replaces no device of the system."""
    try:
        os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(major, minor))
        path.open("wb").close()
    except (OSError, AttributeError) as error:
        pytest.skip(f"devices cannot be made or used here: {error}")


@pytest.mark.timeout(60)
@each_writer
def test_a_pipe_gets_what_a_file_would(tmp_path: Path, model: SVC, save: Save, name: str) -> None:
    pipe, plain = tmp_path / name, tmp_path / f"plain_{name}"
    os.mkfifo(pipe)
    save(model, plain)
    with emptied(pipe) as found:
        save(model, pipe)
        assert stat.S_ISFIFO(pipe.stat().st_mode), "the pipe was replaced"
    if name.endswith(".npz"):  # a stream's archive has its sizes behind the arrays
        plain.write_bytes(found[0])
        with np.load(plain) as arrays:
            np.testing.assert_array_equal(arrays["X"], model.support_vectors_)
    elif name.endswith(".gz"):  # has its name and time in it
        assert found[0].startswith(b"\x1f\x8b")
    else:
        assert found == [plain.read_bytes()]
    assert {path.name for path in tmp_path.iterdir()} == {pipe.name, plain.name}


@pytest.mark.timeout(60)
def test_parquet_through_a_pipe(tmp_path: Path, model: SVC) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    pipe = tmp_path / "rows.parquet"
    os.mkfifo(pipe)
    with emptied(pipe) as found:
        table_of(model, pipe)
    (tmp_path / "copy").write_bytes(found[0])
    assert parquet.read_table(tmp_path / "copy").num_rows == len(model.support_vectors_)


@each_writer
def test_devices_stay_devices(tmp_path: Path, model: SVC, save: Save, name: str) -> None:
    null, full = tmp_path / f"null_{name}", tmp_path / f"full_{name}"
    make_device(null, 1, 3)
    make_device(full, 1, 7)
    save(model, null)
    with pytest.raises(OSError, match="No space left on device"):
        save(model, full)
    for device in (null, full):
        assert stat.S_ISCHR(device.stat().st_mode)
    assert {path.name for path in tmp_path.iterdir()} == {null.name, full.name}


@each_writer
def test_links_stay_and_what_they_point_to_is_written(tmp_path: Path, model: SVC, save: Save, name: str) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "links").mkdir()
    target, link = tmp_path / "elsewhere" / name, tmp_path / "links" / name
    (tmp_path / "links" / "middle").symlink_to("../elsewhere/" + name)
    link.symlink_to("middle")
    for content in (None, b"old"):  # a dangling link first
        if content is not None:
            target.write_bytes(content)
        save(model, link)
        assert link.is_symlink()
        assert os.readlink(link) == "middle"
        assert not target.is_symlink()
        assert target.stat().st_size > len(b"old")
    assert [path.name for path in (tmp_path / "elsewhere").iterdir()] == [name]
    assert sorted(path.name for path in (tmp_path / "links").iterdir()) == sorted([name, "middle"])


def test_links_that_lead_nowhere_are_refused(tmp_path: Path, model: SVC) -> None:
    loop, lost, folder = tmp_path / "loop", tmp_path / "lost", tmp_path / "folder"
    loop.symlink_to("loop")
    lost.symlink_to("missing/model")
    folder.symlink_to(tmp_path)
    for path, why in ((loop, "cannot be written"), (lost, "folder that does not exist"), (folder, "is a folder")):
        with pytest.raises(ValueError, match=why):
            save_model(model, path)
        assert path.is_symlink()


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o644, 0o666, 0o755])
def test_an_existing_file_gives_its_mode_to_the_new_one(tmp_path: Path, model: SVC, mode: int) -> None:
    path = tmp_path / "model"
    path.write_bytes(b"old")
    path.chmod(mode)
    seen = []
    with whole_file(path) as handle:
        seen = [stat.S_IMODE(os.fstat(handle.fileno()).st_mode)]
        handle.write(b"new")
    assert seen == [0o600], "half a file could be read by those who may not read the old one"
    save_model(model, path)
    assert stat.S_IMODE(path.stat().st_mode) == mode
    load_model(path)


def test_a_new_file_has_the_mode_that_the_umask_says(tmp_path: Path) -> None:
    masks = (0o022, 0o077, 0o027)
    command = (  # another process, because the mask is that of all threads
        "import os, sys; from multimargin.base.files import *\n"
        f"for mask in {masks}: os.umask(mask); write_text(Path(sys.argv[1]) / str(mask), 'x')"
    )
    subprocess.run([sys.executable, "-c", command, tmp_path], check=True)
    for mask in masks:
        assert stat.S_IMODE((tmp_path / str(mask)).stat().st_mode) == 0o666 & ~mask


def test_the_owner_stays_where_that_is_allowed(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root may give files away")
    path = tmp_path / "file"
    path.write_bytes(b"old")
    os.chown(path, 12345, 23456)
    path.chmod(0o640)
    write_text(path, "new")
    found = path.stat()
    assert (found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)) == (12345, 23456, 0o640)


def test_a_file_in_a_folder_that_cannot_be_written_is_refused(tmp_path: Path, model: SVC) -> None:
    """The new file needs a temporary name: overwriting the old one, a kill would leave half of it."""
    if os.geteuid() == 0:
        pytest.skip("root may write to every folder")
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "model").write_bytes(b"old")
    folder.chmod(0o555)
    try:
        with pytest.raises(ValueError, match="is in a folder that cannot be written; give the name of a file"):
            save_model(model, folder / "model")
        assert (folder / "model").read_bytes() == b"old"
    finally:
        folder.chmod(0o755)


@pytest.mark.parametrize("length", [200, 255])
def test_names_as_long_as_the_system_allows(tmp_path: Path, length: int) -> None:
    path = tmp_path / ("n" * length)
    write_text(path, "new")
    assert path.read_text() == "new"


@pytest.mark.timeout(120)
@pytest.mark.parametrize("save", [save_model, dump_libsvm])
def test_threads_that_save_one_path_never_fail(tmp_path: Path, model: SVC, save: Save) -> None:
    path, errors, load = tmp_path / "model", [], load_model if save is save_model else load_libsvm
    start = threading.Barrier(4)

    def work() -> None:
        try:
            start.wait()
            for _ in range(25):
                save(model, path)
                load(path)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.timeout(120)
def test_processes_that_write_one_path_never_fail(tmp_path: Path) -> None:
    """In containers processes may have the same number."""
    command = (
        "import os, pathlib, sys; os.getpid = lambda: 7; from multimargin.base.files import write_text\n"
        "for _ in range(50): write_text(pathlib.Path(sys.argv[1]), sys.argv[2] * 50_000)"
    )
    path = tmp_path / "file"
    started = [subprocess.Popen([sys.executable, "-c", command, path, letter]) for letter in "abc"]
    assert [process.wait(100) for process in started] == [0, 0, 0]
    content = path.read_text()
    assert content in {letter * 50_000 for letter in "abc"}
    assert list(tmp_path.iterdir()) == [path]


def test_only_the_own_temporary_file_is_deleted(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with whole_file(path) as handle:
        handle.write(b"new")
        (mine,) = tmp_path.iterdir()
        others = [tmp_path / f".file.{os.getpid()}.tmp", tmp_path / ".file.tmp"]
        for other in others:
            other.write_bytes(b"another's")
    assert not mine.exists()
    assert path.read_bytes() == b"new"
    assert all(other.read_bytes() == b"another's" for other in others)


def test_the_content_is_on_the_disk_before_the_name_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []

    def recorded(name: str, real: Callable[..., None]) -> Callable[..., None]:
        def call(*arguments: Any) -> None:
            calls.append(name)
            real(*arguments)

        return call

    for name in ("fsync", "replace"):
        monkeypatch.setattr(os, name, recorded(name, getattr(os, name)))
    write_text(tmp_path / "file", "new")
    assert calls == ["fsync", "replace", "fsync"]


def test_a_path_through_own_descriptors_is_the_stream_itself(tmp_path: Path) -> None:
    """Opened a second time, the file behind /dev/stdout would be truncated, or replaced before later output."""
    if not Path("/dev/fd").exists():
        pytest.skip("there is no /dev/fd here")
    command = (
        "import pathlib, sys; from multimargin.base.files import write_text\n"
        "print('before'); write_text(pathlib.Path(sys.argv[1]), 'file\\n'); print('after')"
    )
    out, link = tmp_path / "out", tmp_path / "link"
    link.symlink_to("/dev/fd/1")  # if something were replaced, then this link and nothing of the system
    out.write_text("earlier\n")
    with out.open("a") as handle:
        subprocess.run([sys.executable, "-c", command, link], check=True, stdout=handle)
    assert out.read_text() == "earlier\nbefore\nfile\nafter\n"
    assert link.is_symlink()
    found = subprocess.run([sys.executable, "-c", command, link], check=True, capture_output=True, text=True)
    assert found.stdout == "before\nfile\nafter\n"


@pytest.mark.parametrize("path", ["a\0b", "\0"])
def test_names_that_no_file_can_have(path: str) -> None:
    with pytest.raises(ValueError, match=r"cannot be written .*; give the name of a file"):
        check_path(path)
