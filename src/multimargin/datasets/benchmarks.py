"""The papers' data sets, with the protocol of all benchmarks and experiments."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn.datasets import load_svmlight_file
from sklearn.preprocessing import MinMaxScaler

from multimargin._typing import FloatArray

# Already 0/1 or scaled: used as they are.
UNSCALED = ("dna", "adult", "adult_small", "web", "ijcnn1")

# log2 of (C, gamma): HL02 Table V.2
HL02_PARAMETERS: dict[str, dict[str, tuple[int, int]]] = {
    "iris": {"ovo": (12, -9), "dag": (12, -8), "ova": (9, -3), "ww": (12, -8), "cs": (10, -7)},
    "wine": {"ovo": (7, -10), "dag": (6, -9), "ova": (7, -6), "ww": (0, -2), "cs": (1, -3)},
    "glass": {"ovo": (11, -2), "dag": (12, -3), "ova": (11, -2), "ww": (9, -4), "cs": (4, 1)},
    "vowel": {"ovo": (4, 0), "dag": (2, 2), "ova": (4, 1), "ww": (3, 0), "cs": (1, 3)},
    "vehicle": {"ovo": (9, -3), "dag": (11, -5), "ova": (11, -4), "ww": (10, -4), "cs": (9, -4)},
    "segment": {"ovo": (6, 0), "dag": (11, -3), "ova": (7, 0), "ww": (5, 0), "cs": (0, 3)},
    "dna": {"ovo": (3, -6), "dag": (3, -6), "ova": (2, -6), "ww": (4, -6), "cs": (1, -6)},
    "satimage": {"ovo": (4, 0), "dag": (4, 0), "ova": (2, 1), "ww": (3, 0), "cs": (2, 2)},
    "letter": {"ovo": (4, 2), "dag": (4, 2), "ova": (2, 2), "ww": (1, 2), "cs": (3, 2)},
    "shuttle": {"ovo": (11, 3), "dag": (11, 3), "ova": (9, 4), "ww": (9, 4), "cs": (12, 4)},
}

# log2 of (C, gamma): DGI11 Table 1
DGI11_PARAMETERS: dict[str, dict[str, tuple[int, int]]] = {
    "abalone": {"ww": (-3, 0), "llw": (-6, 0), "cs": (-3, 0), "ova": (-9, 0)},
    "car": {"ww": (5, -2), "llw": (5, -2), "cs": (5, -2), "ova": (5, -2)},
    "glass": {"ww": (-4, 1), "llw": (1, -3), "cs": (2, -3), "ova": (2, -3)},
    "iris": {"ww": (9, -9), "llw": (5, -4), "cs": (6, -6), "ova": (18, -12)},
    "optdigits": {"ww": (1, -5), "llw": (10, -6), "cs": (5, -6), "ova": (10, -5)},
    "page-blocks": {"ww": (8, -4), "llw": (16, -7), "cs": (11, -5), "ova": (20, -9)},
    "satimage": {"ww": (2, -1), "llw": (2, -1), "cs": (2, -1), "ova": (4, -1)},
    "segment": {"ww": (7, -4), "llw": (15, -4), "cs": (12, -9), "ova": (10, -5)},
    "soybean": {"ww": (1, -6), "llw": (4, -7), "cs": (3, -6), "ova": (3, -7)},
    "vehicle": {"ww": (10, -7), "llw": (11, -7), "cs": (10, -7), "ova": (12, -8)},
}


@dataclass(frozen=True, eq=False)
class Benchmark:
    """A data set, scaled by the protocol; the test part is None where the papers have none."""

    name: str
    X: FloatArray
    y: np.ndarray
    X_test: FloatArray | None
    y_test: np.ndarray | None


def data_directory() -> Path | None:
    """Return where the papers' data sets are, or None."""
    named = os.environ.get("MULTIMARGIN_DATA")
    candidates = [Path(named)] if named else []
    candidates += [base / "shared" / "data" for base in (Path.cwd(), *Path.cwd().parents)]
    return next((path for path in candidates if (path / "iris.train.svm.bz2").exists()), None)


def load_benchmark(name: str) -> Benchmark:
    """Return a data set by the protocol; raise FileNotFoundError with the places that were searched."""
    directory = data_directory()
    train = None if directory is None else directory / f"{name}.train.svm.bz2"
    if train is None or not train.exists():
        raise FileNotFoundError(
            f"The data set {name!r} was not found; set MULTIMARGIN_DATA to the directory that holds "
            f"{name}.train.svm.bz2."
        )
    X, y = _read(train)
    test = train.with_name(f"{name}.test.svm.bz2")
    X_test, y_test = _read(test, X.shape[1]) if test.exists() else (None, None)
    if name not in UNSCALED:
        scaler = MinMaxScaler((-1, 1)).fit(X)
        X = scaler.transform(X)
        X_test = None if X_test is None else scaler.transform(X_test)
    return Benchmark(name, X, y, X_test, y_test)


def _read(path: Path, n_features: int | None = None) -> tuple[FloatArray, np.ndarray]:
    X, y = load_svmlight_file(str(path), n_features=n_features)
    return np.ascontiguousarray(X.toarray()), y.astype(np.int64)


def parameters(name: str, machine: str) -> tuple[float, float | str]:
    """Return (C, gamma) of the protocol for a data set and a machine.

    adm, ats, atm, rm and mmr take those of ww, and so does llw on a set that DGI11 does not have.
    """
    if name == "optdigits":
        return 2.0**3, 2.0**-5
    found = HL02_PARAMETERS.get(name, {}).get(machine) or DGI11_PARAMETERS.get(name, {}).get(machine)
    if found is None and machine not in ("ww", "ovo", "dag"):
        return parameters(name, "ww")
    if found is None:
        return 1.0, "scale"
    return 2.0 ** found[0], 2.0 ** found[1]
