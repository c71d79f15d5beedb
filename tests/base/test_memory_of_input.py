"""Small files and single indices that would need much memory: refused before allocation, or read without it."""

from __future__ import annotations

import bz2
import gzip
import lzma
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from multimargin import SVC, LinearSVC, OnlineSVC, diagnose, load_libsvm, load_model, save_model
from multimargin.base import resources
from multimargin.base.resources import MEGABYTE
from multimargin.data_files import DataFileError, read_data
from support.command_line import refused

AVAILABLE = 400 * MEGABYTE
WIDEST = 2**31 - 1


@pytest.fixture
def little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pretend that little memory is available, so that no test needs much."""
    monkeypatch.setattr(resources, "_machine_available", lambda: AVAILABLE)


@contextmanager
def at_most(n_bytes: int) -> Iterator[None]:
    """Fail where Python and NumPy together take more at any time."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] <= n_bytes
    finally:
        tracemalloc.stop()


def npz(path: Path, **arrays: Any) -> Path:
    np.savez_compressed(path, **arrays)
    return path


def compressed(path: Path, opener: Callable[..., Any], row: bytes, n_rows: int) -> Path:
    with opener(path, "wb") as handle:
        for _ in range(n_rows // 1000):
            handle.write(row * 1000)
    return path


TOO_LARGE = r"holds rows that take at least \d+ MB, more than half of the 400 MB that are available; give fewer rows"


@pytest.mark.usefixtures("little_memory")
@pytest.mark.parametrize(
    ("dtype", "shape"), [(np.float64, (30_000, 1000)), (np.bool_, (60_000, 1000)), (np.float32, (20_000, 1000))]
)
def test_an_archive_that_grows_is_refused_by_its_headers(tmp_path: Path, dtype: Any, shape: tuple[int, int]) -> None:
    """Doubles that are made of smaller numbers count, too."""
    path = npz(tmp_path / "rows.npz", X=np.zeros(shape, dtype), y=np.arange(shape[0]) % 2)
    assert path.stat().st_size < MEGABYTE
    with at_most(8 * MEGABYTE), pytest.raises(DataFileError, match=TOO_LARGE):
        read_data(path)
    assert "more than half of" in refused("train", path, tmp_path / "model")


@pytest.mark.usefixtures("little_memory")
def test_arrays_that_nobody_reads_are_not_read(tmp_path: Path) -> None:
    path = npz(tmp_path / "rows.npz", X=np.eye(3), y=np.arange(3), other=np.zeros((60_000, 1000)))
    with at_most(8 * MEGABYTE):
        table = read_data(path)
    np.testing.assert_array_equal(table.X, np.eye(3))


def test_python_objects_are_refused(tmp_path: Path) -> None:
    path = npz(tmp_path / "rows.npz", X=np.eye(3), y=np.array([{}, [], ()], dtype=object))
    with pytest.raises(DataFileError, match="holds Python objects"):
        read_data(path)


@pytest.mark.usefixtures("little_memory")
@pytest.mark.parametrize(("ending", "opener"), [(".gz", gzip.open), (".bz2", bz2.open), (".xz", lzma.open)])
def test_compressed_text_that_grows_is_refused(tmp_path: Path, ending: str, opener: Callable[..., Any]) -> None:
    # Each row takes 32 bytes of labels and starts, and 16 for each value, twice.
    pairs = " ".join(f"{j}:1" for j in range(1, 41))
    path = compressed(tmp_path / f"rows.svm{ending}", opener, f"1 {pairs}\n".encode(), 160_000)
    assert path.stat().st_size < MEGABYTE
    with at_most(300 * MEGABYTE), pytest.raises(DataFileError, match=TOO_LARGE):
        read_data(path)


@pytest.mark.usefixtures("little_memory")
def test_compressed_csv_that_grows_is_refused(tmp_path: Path) -> None:
    path = compressed(tmp_path / "rows.csv.gz", gzip.open, b"1" + b",0" * 200 + b"\n", 70_000)
    with at_most(300 * MEGABYTE), pytest.raises(DataFileError, match=TOO_LARGE):
        read_data(path, label="1")


@pytest.mark.usefixtures("little_memory")
def test_parquet_that_grows_is_refused(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    column = pyarrow.array(np.zeros(2_000_000))
    table = pyarrow.table({"label": column} | {f"x{j}": column for j in range(8)})
    parquet.write_table(table, tmp_path / "rows.parquet")
    assert (tmp_path / "rows.parquet").stat().st_size < MEGABYTE
    with at_most(8 * MEGABYTE), pytest.raises(DataFileError, match=TOO_LARGE):
        read_data(tmp_path / "rows.parquet")


def wide_rows(n: int = 30) -> Any:
    """Return rows with two values each, one of them in the last column that LIBSVM can name."""
    columns = np.column_stack([np.arange(n), np.full(n, WIDEST - 1)]).ravel().astype(np.int32)
    values = np.column_stack([np.ones(n), np.arange(n) / n]).ravel()
    return sparse.csr_array((values, columns, np.arange(0, 2 * n + 1, 2, dtype=np.int32)), shape=(n, WIDEST))


LABELS = np.arange(30) % 3


@pytest.mark.usefixtures("little_memory")
@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
@pytest.mark.parametrize("machine", ["ovo", "ww"])
def test_kernel_machines_of_very_many_columns_stay_sparse(tmp_path: Path, kernel: str, machine: str) -> None:
    path = tmp_path / "rows.svm"
    rows = wide_rows()
    lines = [f"{LABELS[i]} {i + 1}:1 {WIDEST}:{i / 30!r}\n" for i in range(30)]
    path.write_text("".join(lines))
    with at_most(16 * MEGABYTE):
        table = read_data(path)
        assert table.X.shape == (30, WIDEST)
        assert table.y is not None
        clf = SVC(multi_class=machine, kernel=kernel, gamma=0.5).fit(table.X, table.y)
        narrow = np.column_stack([np.eye(30), np.arange(30) / 30])
        expected = SVC(multi_class=machine, kernel=kernel, gamma=0.5).fit(narrow, LABELS)
        assert clf.certificate_.dual == pytest.approx(expected.certificate_.dual, rel=1e-12)
        save_model(clf, tmp_path / "model")
        np.testing.assert_array_equal(load_model(tmp_path / "model").predict(rows), clf.predict(rows))
    if kernel == "linear":
        with at_most(16 * MEGABYTE):
            weights = clf.coef_
        assert weights.shape == (3, WIDEST)
        columns = [*range(30), WIDEST - 1]
        np.testing.assert_allclose(weights[:, columns].toarray(), expected.coef_, atol=1e-12)


def test_a_model_text_with_the_largest_index_takes_no_memory_for_it(tmp_path: Path) -> None:
    head = "svm_type c_svc\nkernel_type linear\nnr_class 2\ntotal_sv 2\nrho 0.25\nlabel 1 2\nnr_sv 1 1\nSV\n"
    path = tmp_path / "model"
    path.write_text(f"{head}1 1:0.5 {WIDEST}:1 \n-1 2:0.5 \n")
    rows = sparse.csr_array((np.array([3.0]), np.array([WIDEST - 1]), np.array([0, 1])), shape=(1, WIDEST))
    with at_most(16 * MEGABYTE):
        model = load_libsvm(path)
        assert sparse.issparse(model.support_vectors_)
        np.testing.assert_allclose(np.abs(model.decision_function(rows)), [2.75])
        save_model(model, tmp_path / "own")
        np.testing.assert_array_equal(load_model(tmp_path / "own").predict(rows), model.predict(rows))


@pytest.mark.usefixtures("little_memory")
@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "call",
    [
        LinearSVC().fit,
        LinearSVC(multi_class="ovo").fit,
        LinearSVC(multi_class="ww").fit,
        OnlineSVC().fit,
        OnlineSVC().partial_fit,
        diagnose,
    ],
    ids=["linear", "linear ovo", "linear ww", "online", "partial", "diagnose"],
)
def test_what_needs_a_number_for_each_column_is_refused(call: Callable[..., Any]) -> None:
    with (
        at_most(16 * MEGABYTE),
        pytest.raises(MemoryError, match=r"would take \d+ MB, and 400 MB are available; leave"),
    ):
        call(wide_rows(), LABELS)
