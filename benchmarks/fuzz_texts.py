"""A slow and simple reader of text models, to compare with the readers of the library."""

from __future__ import annotations

from typing import Any

import numpy as np

from multimargin.kernels.spec import KernelSpec

OURS = {"polynomial": "poly"}


def slow_scores(content: bytes, points: np.ndarray) -> dict[tuple[int, ...], np.ndarray]:
    """Return the scores of a file: by label for LIBLINEAR, by pair of labels for LIBSVM, > 0 for the first."""
    lines = [line.strip() for line in content.decode("ascii").split("\n")[:-1]]  # blanks at an end have no meaning
    end = lines.index("SV") if "SV" in lines else lines.index("w")
    head = {line.split()[0]: line.split()[1:] for line in lines[:end]}
    labels = [int(word) for word in head["label"]]
    rows = lines[end + 1 :]
    if "solver_type" in head:
        return _linear(head, labels, rows, points)
    counts = [int(word) for word in head["nr_sv"]]
    width = len(labels) - 1
    weights = np.array([[float(word) for word in row.split()[:width]] for row in rows]).reshape(-1, width)
    values = _kernel_values(head, [row.split()[width:] for row in rows], points)
    starts = np.cumsum([0, *counts])
    scores: dict[tuple[int, ...], np.ndarray] = {}
    number = 0
    for i in range(len(labels)):
        for j in range(i + 1, len(labels)):
            first, second = slice(starts[i], starts[i + 1]), slice(starts[j], starts[j + 1])
            total = values[:, first] @ weights[first, j - 1] + values[:, second] @ weights[second, i]
            scores[labels[i], labels[j]] = total - float(head["rho"][number])
            number += 1
    return scores


def _kernel_values(head: dict[str, list[str]], entries: list[list[str]], points: np.ndarray) -> np.ndarray:
    (kind,) = head["kernel_type"]
    if kind == "precomputed":
        return points[:, [int(row[0].split(":")[1]) - 1 for row in entries]]
    vectors = np.zeros((len(entries), points.shape[1]))
    for row, own in enumerate(entries):
        for entry in own:
            index, value = entry.split(":")
            vectors[row, int(index) - 1] = float(value)
    numbers: dict[str, Any] = {key: float(head[key][0]) for key in ("gamma", "coef0") if key in head}
    if "degree" in head:
        numbers["degree"] = int(head["degree"][0])
    return KernelSpec(OURS.get(kind, kind), **numbers).gram(points, vectors)


def _linear(
    head: dict[str, list[str]], labels: list[int], rows: list[str], points: np.ndarray
) -> dict[tuple[int, ...], np.ndarray]:
    weights = np.array([[float(word) for word in row.split()] for row in rows])
    constant = float(head["bias"][0])
    if constant >= 0:
        points = np.hstack([points, np.full((len(points), 1), constant)])
    found = points @ weights
    return {(label,): found[:, column] for column, label in enumerate(labels[: found.shape[1]])}


def our_scores(clf: Any, points: np.ndarray) -> dict[tuple[int, ...], np.ndarray]:
    """Return the scores of a model that was read, by label or pair of labels as in the file."""
    labels = clf.classes_.tolist()
    if not hasattr(clf._model, "pair_scores"):
        raw = clf._model.raw_scores(points)
        return {(label,): raw[:, code] for code, label in enumerate(labels)}
    found: dict[tuple[int, ...], np.ndarray] = {}
    D, number = clf._model.pair_scores(points), 0
    for i in range(len(labels)):
        for j in range(i + 1, len(labels)):
            found[labels[i], labels[j]] = D[:, number]
            found[labels[j], labels[i]] = -D[:, number]
            number += 1
    return found


def agrees(clf: Any, content: bytes) -> bool:
    """Return whether a model has the scores of its file; a file with huge numbers may lose all digits."""
    points = np.random.default_rng(1).normal(size=(3, clf.n_features_in_))
    ours = our_scores(clf, points)
    for key, values in slow_scores(content, points).items():
        largest = np.abs(values).max()
        if np.isfinite(largest) and largest < 1e6 and not np.allclose(ours[key], values, rtol=1e-6, atol=1e-6):
            return False
    return True
