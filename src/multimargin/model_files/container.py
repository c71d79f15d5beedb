"""The file itself: named arrays and one JSON document, in the layout of safetensors. Reading it executes nothing.

    8 bytes        length of the header, little endian
    header         JSON: {"__metadata__": {format, version, sha256, document}, name: {dtype, shape, data_offsets}, ...}
    arrays         one after the other, little endian, C order, without gaps

The checksum is over the whole file with its own 64 digits as zeros. It detects damage, not manipulation: readers of the
arrays must still validate their values. No array is larger than its part of the file, so that reading never allocates
more memory than the file has bytes.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from multimargin.base.files import whole_file
from multimargin.model_files.errors import FaultError, require

FORMAT = "multimargin model"
VERSION = 1
DTYPES = {
    "F64": "<f8",
    "F32": "<f4",
    "I64": "<i8",
    "I32": "<i4",
    "I16": "<i2",
    "I8": "|i1",
    "U64": "<u8",
    "U32": "<u4",
    "U16": "<u2",
    "U8": "|u1",
    "BOOL": "|b1",
}
NAMES = {np.dtype(code): name for name, code in DTYPES.items()}
ZEROS = "0" * 64
# The checksum is at a fixed place, so that it can be excluded from itself.
HEAD = re.compile(
    rb'\{"__metadata__":\{"format":"' + FORMAT.encode() + rb'","version":"(\d{1,9})","sha256":"([0-9a-f]{64})"'
)
MAX_DIMENSIONS = 2


def write_container(path: Path, document: Any, arrays: Mapping[str, np.ndarray]) -> None:
    """Write the file atomically. The same contents give the same bytes."""
    metadata = {"format": FORMAT, "version": str(VERSION), "sha256": ZEROS}
    table: dict[str, Any] = {"__metadata__": metadata | {"document": json.dumps(document, allow_nan=False)}}
    pieces = []
    begin = 0
    for name, array in arrays.items():
        piece = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"), copy=False)
        end = begin + piece.nbytes
        table[name] = {"dtype": NAMES[piece.dtype], "shape": list(array.shape), "data_offsets": [begin, end]}
        pieces.append(piece)
        begin = end
    header = json.dumps(table, separators=(",", ":")).encode("ascii")
    header += b" " * (-len(header) % 8)  # arrays begin at multiples of 8
    digest = hashlib.sha256(len(header).to_bytes(8, "little") + header)
    for piece in pieces:
        digest.update(piece.data)
    with whole_file(path) as handle:
        handle.write(len(header).to_bytes(8, "little"))
        handle.write(header.replace(ZEROS.encode(), digest.hexdigest().encode(), 1))
        for piece in pieces:
            handle.write(piece.data)


def read_container(path: Path) -> tuple[Any, dict[str, np.ndarray]]:
    """Return the document and the arrays of a file, each an own copy in memory."""
    content = path.read_bytes()
    require(len(content) >= 8, "it is too short for a model file of multimargin")
    length = int.from_bytes(content[:8], "little")
    header, data = content[8 : 8 + length], memoryview(content)[8 + length :]
    head = HEAD.match(header)
    if head is None:
        raise FaultError("it is not a model file of multimargin")
    require(int(head[1]) == VERSION, f"it is of version {int(head[1])}, this multimargin reads version {VERSION}")
    require(len(header) == length, "it breaks off within its header")
    start, end = head.span(2)
    digest = hashlib.sha256(content[:8] + header[:start] + ZEROS.encode() + header[end:])
    digest.update(data)
    require(digest.hexdigest().encode() == head[2], "its checksum is wrong, so that it is damaged or breaks off")
    table = parse_json(header)
    metadata = table.pop("__metadata__")
    require(
        isinstance(metadata, dict) and isinstance(metadata.get("document"), str), "its header has no document in it"
    )
    return parse_json(metadata["document"]), _read_arrays(table, data)


def parse_json(text: bytes | str) -> Any:
    """Return the value of a JSON text; refuse NaN, infinity, and a name that occurs twice."""
    try:
        return json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_without_repetition)
    except ValueError as error:  # also for invalid UTF-8, and for integers with thousands of digits
        raise FaultError(f"its header is not JSON ({error})") from None


def _refuse_constant(name: str) -> NoReturn:
    raise FaultError(f"its header has the value {name}, which JSON does not know")


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    require(len(found) == len(pairs), "its header has a name twice")
    return found


def _read_arrays(table: dict[str, Any], data: memoryview) -> dict[str, np.ndarray]:
    arrays, begin = {}, 0
    for name, entry in table.items():
        what = f"its array {name[:60]!r}"
        require(
            isinstance(entry, dict) and set(entry) == {"dtype", "shape", "data_offsets"}, f"{what} is not described"
        )
        dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
        require(isinstance(dtype, str) and dtype in DTYPES, f"{what} has an unknown type")
        require(_are_sizes(shape) and len(shape) <= MAX_DIMENSIONS, f"{what} has an impossible shape")
        require(_are_sizes(offsets) and len(offsets) == 2, f"{what} has an impossible place")
        kind = np.dtype(DTYPES[dtype])
        end = begin + math.prod(shape) * kind.itemsize
        require(offsets == [begin, end] and end <= len(data), f"{what} does not lie where its shape says")
        if kind == np.bool_:
            require(not len(data[begin:end]) or max(data[begin:end]) <= 1, f"{what} has a value that is no bool")
        native = np.frombuffer(data[begin:end], dtype=kind).astype(kind.newbyteorder("="))  # a copy, aligned, writable
        arrays[name] = native.reshape(shape)
        begin = end
    require(begin == len(data), "it is longer than its arrays")
    return arrays


def _are_sizes(values: Any) -> bool:
    return isinstance(values, list) and all(
        isinstance(each, int) and not isinstance(each, bool) and each >= 0 for each in values
    )
