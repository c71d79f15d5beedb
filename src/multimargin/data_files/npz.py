"""npz files: X and y, or the parts of a CSR matrix as scipy.sparse.save_npz writes them, beside y."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.lib import format as npy
from scipy import sparse

from multimargin.data_files.errors import DataFileError, fault, shown
from multimargin.data_files.room import Room
from multimargin.data_files.table import Table, labels_from_numbers

SPARSE = ("data", "indices", "indptr", "shape")
NAMES = "feature_names"
USED = ("X", "y", NAMES, "format", *SPARSE)
MAGIC = b"PK\x03\x04"


def read_npz(path: Path, *, label_needed: bool = True) -> Table:
    """Return the rows of an npz file; pickled objects are refused, and no array is larger than its header says."""
    try:
        with path.open("rb") as handle, zipfile.ZipFile(handle) as archive:
            _check_begin(path, handle)
            arrays = _read_arrays(path, archive)
    except DataFileError:
        raise
    except OSError as error:
        raise fault(path, f"cannot be read ({error.strerror}); give the name of a data file that exists") from error
    except Exception as error:  # damaged files make zipfile and numpy raise all kinds of errors
        raise fault(path, f"is damaged or no npz file ({error})") from error
    X = _matrix(path, arrays)
    y = arrays.get("y")
    if y is None and label_needed:
        raise fault(path, f"has no array y, only {', '.join(map(shown, sorted(arrays)))}; save it with X=..., y=...")
    return Table(X, None if y is None else _labels(path, y, X.shape[0]), _names(path, arrays.get(NAMES), X.shape[1]))


def _check_begin(path: Path, handle: BinaryIO) -> None:
    """Refuse files with other bytes before the archive, which zipfile would skip."""
    handle.seek(0)
    if handle.read(len(MAGIC)) != MAGIC:
        raise fault(path, "is damaged or no npz file (it does not begin as one)")


def _read_arrays(path: Path, archive: zipfile.ZipFile) -> dict[str, np.ndarray]:
    """Return the arrays that rows are made of; of other arrays only the names."""
    members = {member.filename.removesuffix(".npy"): member for member in archive.infolist() if _is_array(member)}
    room = Room(path)
    for name, member in members.items():
        if name in USED:
            room.take(_size_in_memory(path, archive, member))
    return {name: _read_array(archive, member) if name in USED else np.empty(0) for name, member in members.items()}


def _is_array(member: zipfile.ZipInfo) -> bool:
    return member.filename.endswith(".npy")


def _size_in_memory(path: Path, archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> int:
    """Return the bytes of an array, plus those of its conversion to doubles where one is needed."""
    with archive.open(member) as handle:
        version = npy.read_magic(handle)
        reader = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, _, dtype = reader(handle)
    cells = 1
    for length in shape:  # as Python's integers, which do not overflow
        cells *= length
    if dtype.hasobject:
        raise fault(path, f"the array {shown(member.filename)} holds Python objects; save numbers or strings")
    if dtype.itemsize * cells > member.file_size:
        raise fault(path, f"the array {shown(member.filename)} is not whole")
    return cells * (dtype.itemsize if dtype == np.float64 else dtype.itemsize + 8)


def _read_array(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> np.ndarray:
    with archive.open(member) as handle:
        return np.asarray(npy.read_array(handle, allow_pickle=False))


def _matrix(path: Path, arrays: dict[str, np.ndarray]) -> Any:
    if all(name in arrays for name in SPARSE):
        return _sparse_matrix(path, arrays)
    X = arrays.get("X")
    if X is None:
        raise fault(path, f"has no array X, only {', '.join(map(shown, sorted(arrays)))}; save it with X=..., y=...")
    if X.ndim != 2 or X.dtype.kind not in "fiub":
        raise fault(path, f"X has the shape {X.shape} and the type {X.dtype}; give a table of numbers")
    return _checked(path, np.ascontiguousarray(X, dtype=np.float64))


def _sparse_matrix(path: Path, arrays: dict[str, np.ndarray]) -> Any:
    kind = str(arrays["format"].item()) if "format" in arrays and arrays["format"].size == 1 else "csr"
    if kind not in ("csr", "b'csr'"):
        raise fault(path, f"holds a sparse matrix of the format {shown(kind)}; save it as CSR")
    shape = tuple(int(n) for n in arrays["shape"].ravel())
    try:
        X = sparse.csr_array((arrays["data"], arrays["indices"], arrays["indptr"]), shape=shape)
        X.check_format(full_check=True)
        X = X.astype(np.float64)
    except (ValueError, TypeError) as error:
        raise fault(path, f"holds no valid CSR matrix ({error})") from error
    X.sum_duplicates()
    _checked(path, X.data)
    return X


def _checked(path: Path, values: np.ndarray) -> np.ndarray:
    if not np.isfinite(values).all():
        raise fault(path, "X holds values that are not finite; fill or drop missing values")
    return values


def _labels(path: Path, y: np.ndarray, n_rows: int) -> np.ndarray:
    if y.shape != (n_rows,):
        raise fault(path, f"y has the shape {y.shape}, but X has {n_rows} rows; give a label for each row")
    if y.dtype.kind in "iub":
        return y
    if y.dtype.kind == "f":
        if not np.isfinite(y).all():
            raise fault(path, "y holds values that are not finite; give a label for each row")
        return labels_from_numbers(y.astype(np.float64))
    if y.dtype.kind == "U":
        return y
    raise fault(path, f"y has the type {y.dtype}; give numbers or strings")


def _names(path: Path, names: np.ndarray | None, n_features: int) -> tuple[str, ...] | None:
    if names is None:
        return None
    if names.shape != (n_features,) or names.dtype.kind != "U":
        raise fault(path, f"{NAMES} has the shape {names.shape}; give a string for each of the {n_features} columns")
    return tuple(names.tolist())
