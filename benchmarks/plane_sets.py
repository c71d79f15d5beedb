"""Data sets of ``benchmarks.plane``: subsamples of the papers' sets and drawn classes that overlap."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.preprocessing import minmax_scale

from multimargin._typing import FloatArray
from multimargin.datasets import load_benchmark, overlapping

# rows of the papers' sets; None takes all
PAPERS: dict[str, int | None] = {
    "abalone": 2000,
    "letter": 3000,
    "sleep": 3000,
    "waveform-40": 2000,
    "vehicle": None,
    "glass": None,
    "texture": 2500,
    "segment": None,
    "satimage": 3000,
    "optdigits": 3000,
    "page-blocks": 3000,
    "shuttle": 3000,
    "vowel": None,
}
DRAWN: dict[str, dict[str, Any]] = {
    "drawn-3": {"n_samples": 2000, "n_classes": 3, "n_features": 10, "overlap": 1.2, "noise": 0.2},
    "drawn-6": {"n_samples": 1500, "n_classes": 6, "n_features": 3, "overlap": 0.7, "noise": 0.05, "duplicates": 0.3},
    "drawn-8": {"n_samples": 2000, "n_classes": 8, "n_features": 4, "overlap": 1.0, "noise": 0.1},
    "drawn-12": {"n_samples": 2400, "n_classes": 12, "n_features": 30, "overlap": 1.5},
    "drawn-17": {"n_samples": 3000, "n_classes": 17, "n_features": 6, "overlap": 0.6},
}
DEFAULT = ("abalone", "letter", "sleep", "waveform-40", "vehicle", "glass", "texture", "drawn-3", "drawn-6", "drawn-8")


def stratified(y: np.ndarray, size: int, seed: int) -> np.ndarray:
    """Return sorted indices of about ``size`` rows, the same share of each class, at least one."""
    rng = np.random.RandomState(seed)
    chosen = []
    for label in np.unique(y):
        members = np.flatnonzero(y == label)
        count = max(1, round(len(members) * size / len(y)))
        chosen.append(rng.permutation(members)[:count])
    return np.sort(np.concatenate(chosen))


def plane_set(name: str, size: int | None = None, seed: int = 0) -> tuple[FloatArray, np.ndarray]:
    """Return (X, y), features scaled to [-1, 1]; ``size`` rows instead of the set's own number."""
    if name in DRAWN:
        options = dict(DRAWN[name])
        options["n_samples"] = size or options["n_samples"]
        X, y = overlapping(random_state=seed, **options)
    else:
        data = load_benchmark(name)
        X, y = data.X, data.y
        size = size or PAPERS.get(name)
        if size is not None and size < len(y):
            rows = stratified(y, size, seed)
            X, y = X[rows], y[rows]
    return np.ascontiguousarray(minmax_scale(X, (-1, 1))), y
