"""LinearSVC on the papers' data sets, where they are at hand, and on sparse data with many features."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from multimargin import LinearSVC, verify
from multimargin.datasets import load_benchmark

try:
    load_benchmark("iris")
    missing = ""
except FileNotFoundError as error:
    missing = str(error)

needs_data = pytest.mark.skipif(bool(missing), reason=missing)


@needs_data
@pytest.mark.parametrize(
    ("name", "C", "bias"),
    [
        ("adult", 256.0, "exact"),
        ("web", 1.0, "regularized"),
        ("ijcnn1", 32.0, "exact"),
        ("satimage", 256.0, "regularized"),
        ("dna", 1.0, "exact"),
        ("letter", 1.0, "regularized"),
    ],
)
def test_papers_data(name: str, C: float, bias: str) -> None:
    data = load_benchmark(name)
    X = sparse.csr_matrix(data.X) if name in ("adult", "web", "dna") else data.X
    model = LinearSVC(C=C, bias=bias).fit(X, data.y)
    assert model.certificate_.stop_reason == "converged"
    assert verify(model, X, data.y).optimal
    assert model.certificate_.relative_gap < 1e-3


def _documents(n: int = 240, n_words: int = 4_000, n_classes: int = 3) -> tuple[Any, np.ndarray]:
    """Rows like word counts: few of very many columns, some of which speak for a class."""
    rng = np.random.default_rng(0)
    y = rng.integers(n_classes, size=n)
    common = rng.zipf(1.3, size=(n, 60)) % n_words
    own = y[:, None] * 50 + rng.integers(50, size=(n, 4))
    columns = np.concatenate([common, own], axis=1)
    rows = np.repeat(np.arange(n), columns.shape[1])
    X = sparse.csr_matrix((np.ones(columns.size), (rows, columns.ravel())), shape=(n, n_words))
    norms = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    return sparse.csr_matrix(sparse.diags(1 / norms) @ X), y


@pytest.mark.parametrize(
    ("machine", "bias"),
    [("ova", "exact"), ("cs", "none"), ("ww", "regularized"), ("llw", "none"), ("ovo", "exact")],
)
def test_documents(machine: str, bias: str) -> None:
    X, y = _documents()
    model = LinearSVC(multi_class=machine, bias=bias, C=4.0).fit(X, y)
    assert model.certificate_.stop_reason == "converged"
    assert verify(model, X, y).optimal
