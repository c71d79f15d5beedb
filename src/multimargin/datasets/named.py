"""Data sets by name: a local copy, one that scikit-learn ships, or one of OpenML's, downloaded once and verified by its
checksum."""

from __future__ import annotations

import difflib
import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn import datasets as shipped

from multimargin._typing import DataMatrix
from multimargin.base.files import write_text
from multimargin.base.matrices import is_sparse
from multimargin.data_files import Table, read_data, write_data
from multimargin.data_files.errors import fault

ENDINGS = (".svm", ".svm.bz2", ".svm.gz", ".svm.xz", ".csv", ".csv.gz", ".npz", ".parquet")
SHIPPED: dict[str, Callable[..., Any]] = {
    "breast_cancer": shipped.load_breast_cancer,
    "digits": shipped.load_digits,
    "iris": shipped.load_iris,
    "wine": shipped.load_wine,
}
# OpenML's ids; each names one fixed version.
OPENML = {
    "glass": 41,
    "letter": 6,
    "mnist": 554,
    "optdigits": 28,
    "page-blocks": 30,
    "pendigits": 32,
    "satimage": 182,
    "segment": 40984,
    "shuttle": 40685,
    "vehicle": 54,
    "vowel": 307,
    "usps": 41082,
}
OPENML_PREFIX = "openml:"


@dataclass(frozen=True, eq=False)
class Dataset:
    """A data set as it was found, not scaled.

    Parameters
    ----------
    name : str
    X : ndarray or CSR array of shape (n_samples, n_features)
    y : ndarray of shape (n_samples,)
    X_test, y_test : likewise, or None
        The published test part.
    source : str
        Where it comes from: a file, "scikit-learn" or "OpenML 6".
    """

    name: str
    X: DataMatrix
    y: np.ndarray
    X_test: DataMatrix | None = None
    y_test: np.ndarray | None = None
    source: str = ""


def load(name: str, *, download: bool = True, sha256: str | None = None) -> Dataset:
    """Return a data set by its name.

    Parameters
    ----------
    name : str
        A file of the folder MULTIMARGIN_DATA ("letter" for letter.train.svm.bz2 and letter.test.svm.bz2, or for
        letter.svm, letter.csv, letter.npz, ...), else one that scikit-learn ships ("iris", "wine", "breast_cancer",
        "digits"), else one of OpenML ("letter", "mnist", ...; "openml:6" for any by its number).
    download : bool, default=True
        Whether to download a set that is not found locally from OpenML.
    sha256 : str, default=None
        ``checksum_of(X, y)`` that a downloaded set must have; by default that of the first download, which is kept
        beside it (OpenML's own checksum is verified while downloading).

    Returns
    -------
    dataset : Dataset

    Examples
    --------
    >>> from multimargin import datasets
    >>> iris = datasets.load("iris", download=False)
    >>> iris.X.shape, len(set(iris.y.tolist()))
    ((150, 4), 3)
    """
    local = _local(name)
    if local is not None:
        return local
    if name in SHIPPED:
        X, y = SHIPPED[name](return_X_y=True)
        return Dataset(name, X, y, source="scikit-learn")
    number = _openml_number(name)
    path = cache_directory() / f"openml-{number}.npz"
    if not path.exists():
        if not download:
            raise FileNotFoundError(
                f"The data set {name!r} is not on this machine; set download=True, or MULTIMARGIN_DATA to a folder "
                f"that has {name}.svm or {name}.csv."
            )
        _download(name, number, path)
    table = read_data(path)
    assert table.y is not None
    _check_sum(path, checksum_of(table.X, table.y), sha256)
    return Dataset(name, table.X, table.y, source=f"OpenML {number}")


def checksum_of(X: np.ndarray, y: np.ndarray) -> str:
    """Return the SHA-256 of the values and the labels; it does not depend on the file format."""
    found = hashlib.sha256(f"{X.shape[0]} {X.shape[1]}\n".encode())
    found.update(np.ascontiguousarray(X, dtype="<f8").tobytes())
    found.update("\n".join(map(str, y.tolist())).encode())
    return found.hexdigest()


def cache_directory() -> Path:
    """Return where downloads are kept: MULTIMARGIN_CACHE, or a folder of the user's cache."""
    named = os.environ.get("MULTIMARGIN_CACHE")
    if named:
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "multimargin"


def _local(name: str) -> Dataset | None:
    """Search the folder of the user's own data."""
    folder = os.environ.get("MULTIMARGIN_DATA")
    if not folder or Path(name).name != name:
        return None
    train = _first(Path(folder), f"{name}.train")
    whole = train or _first(Path(folder), name)
    if whole is None:
        return None
    table = read_data(whole).compact()
    assert table.y is not None
    found = Dataset(name, table.X, table.y, source=str(whole))
    test = _first(Path(folder), f"{name}.test") if train is not None else None
    if test is None:
        return found
    return _with_test(found, table, read_data(test, n_features=table.n_features), test)


def _with_test(found: Dataset, table: Table, other: Table, path: Path) -> Dataset:
    if other.n_features != table.n_features:
        raise fault(path, f"has {other.n_features} columns, but the training part has {table.n_features}")
    X_test = other.X.toarray() if is_sparse(other.X) and not is_sparse(found.X) else other.X
    return replace(found, X_test=X_test, y_test=other.y)


def _first(folder: Path, name: str) -> Path | None:
    return next((folder / f"{name}{ending}" for ending in ENDINGS if (folder / f"{name}{ending}").exists()), None)


def _openml_number(name: str) -> int:
    if name in OPENML:
        return OPENML[name]
    if name.startswith(OPENML_PREFIX) and name.removeprefix(OPENML_PREFIX).isdigit():
        return int(name.removeprefix(OPENML_PREFIX))
    known = sorted({*SHIPPED, *OPENML})
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    raise ValueError(
        f"name={name!r} is not a known data set; {hint}choose one of {', '.join(known)}, 'openml:NUMBER', or a file of "
        "the folder that MULTIMARGIN_DATA names."
    )


def _download(name: str, number: int, path: Path) -> None:
    """Download a set of OpenML, whose checksum scikit-learn verifies, and keep it with our checksum."""
    try:
        fetched = shipped.fetch_openml(data_id=number, as_frame=False, cache=False, parser="liac-arff")
    except OSError as error:
        raise OSError(
            f"The data set {name!r} could not be downloaded from OpenML ({error}); try again when there is a network, "
            "or set MULTIMARGIN_DATA to a folder that has it."
        ) from error
    X, y = np.asarray(fetched.data, dtype=np.float64), np.asarray(fetched.target)
    if X.ndim != 2 or len(y) != len(X) or not np.isfinite(X).all():
        raise ValueError(f"The data set {name!r} of OpenML is no table of finite numbers; choose another one.")
    texts = y.astype(np.str_)
    numbers = _as_integers(texts)
    labels = texts if numbers is None else numbers
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(_sum_file(path), f"{checksum_of(X, labels)}\n")
    write_data(path, Table(X, labels))


def _as_integers(labels: np.ndarray) -> np.ndarray | None:
    try:
        return labels.astype(np.int64)
    except ValueError:
        return None


def _sum_file(path: Path) -> Path:
    return path.with_name(f"{path.name}.sha256")


def _check_sum(path: Path, found: str, wanted: str | None) -> None:
    """Raise ValueError if a cached set has another checksum than the download, or than the caller asks for."""
    kept = _sum_file(path).read_text().strip() if _sum_file(path).exists() else "that of a download"
    for checksum in (kept, found if wanted is None else wanted):
        if checksum != found:
            raise fault(path, f"has the SHA-256 {found} instead of {checksum}; delete it, and load again")
