"""Text files, compressed or not, as blocks of whole lines: never the whole file at once."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from multimargin.data_files.errors import DataFileError, fault

OPENERS: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
BLOCK = 1 << 22
# A longer line is an error, so that a file without line ends does not fill the memory.
LONGEST_LINE = 1 << 28
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def plain_name(path: Path) -> str:
    """Return the name of the file without the suffix of its compression."""
    return path.stem if path.suffix.lower() in OPENERS else path.name


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """Yield the (decompressed) bytes of a file; all errors of reading are DataFileErrors."""
    opener = OPENERS.get(path.suffix.lower())
    try:
        with path.open("rb") if opener is None else opener(path, "rb") as handle:
            yield handle
    except DataFileError:
        raise
    except (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile) as error:
        raise fault(path, f"is damaged or not a whole {path.suffix} file ({error})") from error
    except OSError as error:
        reason = error.strerror or str(error)
        raise fault(path, f"cannot be read ({reason}); give the name of a data file that exists") from error


def line_blocks(path: Path, size: int = BLOCK) -> Iterator[tuple[int, bytes]]:
    """Yield blocks of whole lines with the number of their first one, from 1; only the last line may lack a line
    end."""
    line, length = 1, 0
    pieces: list[bytes] = []  # what is left of the last block, until its line ends
    with opened(path) as handle:
        block = handle.read(size).removeprefix(BYTE_ORDER_MARK)
        while block:
            cut = block.rfind(b"\n") + 1
            if cut:
                text = b"".join([*pieces, block[:cut]])
                yield line, text
                line += text.count(b"\n")
                pieces, length = [], 0
            pieces.append(block[cut:])
            length += len(pieces[-1])
            if length > LONGEST_LINE:
                raise fault(path, f"the line is longer than {LONGEST_LINE} bytes; this is no table of numbers", line)
            block = handle.read(size)
    rest = b"".join(pieces)
    if rest:
        yield line, rest
