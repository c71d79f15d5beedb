"""Atomic writing of files: after any error the old file is still complete."""

from __future__ import annotations

import errno
import io
import os
import secrets
import shutil
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, cast

REMEDY = "give the name of a file in a folder that exists and that you may write to"
MAX_LINKS = 40  # Linux follows at most so many links, too
STDOUT, STDERR = 1, 2
SHOWN = 40  # characters of the name that are in the temporary one, whose bytes are limited


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """Yield a file to write to; it gets its name only when everything was written.

    A regular file is written under a random name in the same folder, flushed to the disk and then renamed: a reader
    finds the old file or the new one, even if the process is killed. Symbolic links are followed and kept; the new file
    gets the mode of the old one, and its owner where that is allowed. Devices, named pipes and the process's own stdout
    are written to directly.
    """
    descriptor = _own_descriptor(path)
    if descriptor is not None:
        with _stream_of(descriptor) as handle:
            yield handle
        return
    old = _status(path)
    if old is not None and not stat.S_ISREG(old.st_mode):
        with _writer(os.open(path, os.O_WRONLY | getattr(os, "O_CLOEXEC", 0))) as handle:
            yield handle
        return
    with _replacing(Path(os.path.realpath(path)), old) as handle:
        yield handle


@contextmanager
def _replacing(target: Path, old: os.stat_result | None) -> Iterator[BinaryIO]:
    """Yield a new file that replaces the one called ``target``, of which ``old`` is the status."""
    temporary = target.with_name(f".{target.name[:SHOWN]}.{secrets.token_hex(8)}.tmp")
    created = False

    def create(name: str, flags: int) -> int:
        nonlocal created
        descriptor = os.open(name, flags, 0o666 if old is None else 0o600)  # private until the old file's mode is set
        created = True
        return descriptor

    try:
        with open(temporary, "xb", opener=create) as handle:
            yield handle
            handle.flush()
            if old is not None:
                _keep_access(handle.fileno(), old)
            os.fsync(handle.fileno())
        _rename(temporary, target)
    finally:
        if created:
            temporary.unlink(missing_ok=True)
    _sync_folder(target.parent)


def _keep_access(descriptor: int, old: os.stat_result) -> None:
    """Give a new file the owner, where that is allowed, and the mode of the old one."""
    if not hasattr(os, "fchown"):  # Windows
        return
    mode = stat.S_IMODE(old.st_mode)
    try:
        os.fchown(descriptor, old.st_uid, old.st_gid)
    except OSError:
        mode &= ~(stat.S_ISUID | stat.S_ISGID)  # without set-user-ID, which was for the other owner
        with suppress(OSError):
            os.fchown(descriptor, -1, old.st_gid)
    with suppress(OSError):  # file systems without modes
        os.fchmod(descriptor, mode)


def _rename(temporary: Path, target: Path) -> None:
    try:
        os.replace(temporary, target)
    except OSError as error:
        if error.errno != errno.EBUSY:
            raise
        # A file that is a mount point of its own, as containers have them, cannot be renamed over.
        shutil.copyfile(temporary, target)


def _sync_folder(folder: Path) -> None:
    """Flush the folder's entry to the disk, where the system supports that."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


class _Stream(io.FileIO):
    """A file without seek but with tell: some formats record the offsets of their parts."""

    def __init__(self, descriptor: int) -> None:
        super().__init__(descriptor, "wb")
        self._position = 0

    def write(self, data: Any) -> int:
        written = super().write(data) or 0
        self._position += written
        return written

    def tell(self) -> int:
        return self._position

    def seekable(self) -> bool:
        return False


def _writer(descriptor: int) -> BinaryIO:
    return cast(BinaryIO, io.BufferedWriter(_Stream(descriptor)))


@contextmanager
def _stream_of(descriptor: int) -> Iterator[BinaryIO]:
    """Yield this process's own stream; opened a second time, a file behind it would be overwritten from its start."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()  # what was printed before comes before
    with _writer(os.dup(descriptor)) as handle:
        yield handle


def _own_descriptor(path: Path) -> int | None:
    """Return the number of a descriptor of this process that a path such as /dev/stdout means, or None."""
    folders = {os.path.realpath(folder) for folder in ("/proc/self/fd", "/dev/fd")}
    place = str(path)
    for _ in range(MAX_LINKS):
        folder, name = os.path.split(place)
        if name.isdecimal() and os.path.realpath(folder) in folders:
            return int(name) if os.path.exists(place) else None
        try:
            place = os.path.join(folder, os.readlink(place))
        except (OSError, ValueError):  # no link
            return None
    return None


def is_stdout(path: Path | None) -> bool:
    """Return whether a path such as /dev/stdout is where this process prints."""
    return path is not None and _own_descriptor(path) == STDOUT


def _status(path: Path) -> os.stat_result | None:
    try:
        return os.stat(path)
    except FileNotFoundError:
        return None


def fault_of(path: Path) -> str | None:
    """Return why a file could not be written, or None; nothing is opened, and nothing changes."""
    try:
        old = _status(path)
    except (OSError, ValueError) as error:
        return f"cannot be written ({getattr(error, 'strerror', None) or error})"
    if not path.name or (old is not None and stat.S_ISDIR(old.st_mode)):
        return "is a folder"
    descriptor = _own_descriptor(path)
    if descriptor is not None:
        closed = {STDOUT: sys.__stdout__, STDERR: sys.__stderr__}.get(descriptor, True) is None
        return "cannot be written (it is closed)" if closed else None
    if old is not None and not stat.S_ISREG(old.st_mode):
        return None if os.access(path, os.W_OK) else "cannot be written (permission denied)"
    folder = Path(os.path.realpath(path)).parent
    if not folder.is_dir():
        return "is in a folder that does not exist"
    return None if os.access(folder, os.W_OK | os.X_OK) else "is in a folder that cannot be written"


def check_path(path: Any) -> Path:
    """Return the path of a file that can be written; refuse others before any long work."""
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"path={path!r} is not a path; {REMEDY}.")
    checked = Path(path)
    fault = fault_of(checked)
    if fault is not None:
        raise ValueError(f"path={str(path)!r} {fault}; {REMEDY}.")
    return checked


def write_text(path: Path, text: str) -> None:
    """Write text as UTF-8, atomically; lone surrogates, which UTF-8 cannot encode, are written as \\udXXX."""
    with whole_file(path) as handle:
        handle.write(text.encode("utf-8", errors="backslashreplace"))
