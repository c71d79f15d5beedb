"""Data files: round trips are exact, and errors name file and line."""

from __future__ import annotations

import bz2
import gzip
import lzma
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from multimargin.data_files import DataFileError, Table, read_data, write_data
from multimargin.data_files import text_blocks as blocks_module
from multimargin.data_files.svmlight import joined, read_precomputed, row_blocks
from multimargin.data_files.table import labels_from_text
from multimargin.data_files.text_blocks import line_blocks

SMALL = b"1 1:0.5 3:-2\n2 2:1e3 # a note\n\n-1\n"


def drawn(seed: int = 0) -> Table:
    """Return sparse rows with an empty one, an empty last column, and numbers of every size."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(30, 8)) * 10.0 ** rng.integers(-20, 20, (30, 8))
    X[rng.uniform(size=X.shape) < 0.6] = 0.0
    X[3], X[:, 7] = 0.0, 0.0
    return Table(sparse.csr_array(X), rng.integers(-2, 3, 30))


def dense(X: object) -> np.ndarray:
    return np.asarray(X.toarray() if sparse.issparse(X) else X)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("ending", "compress"),
    [(".svm", bytes), (".svm.gz", gzip.compress), (".svm.bz2", bz2.compress), (".svm.xz", lzma.compress)],
)
def test_text_is_read_compressed_or_not(tmp_path: Path, ending: str, compress: Callable[[bytes], bytes]) -> None:
    path = tmp_path / f"data{ending}"
    path.write_bytes(compress(SMALL))
    table = read_data(path)
    np.testing.assert_array_equal(dense(table.X), [[0.5, 0, -2], [0, 1000, 0], [0, 0, 0]])
    np.testing.assert_array_equal(table.y, [1, 2, -1])
    assert table.y is not None
    assert table.y.dtype == np.int64


@given(seed=st.integers(0, 10**6), size=st.sampled_from([1, 7, 64, 1 << 22]))
def test_reads_what_scikit_learn_writes_and_as_it_reads(
    tmp_path_factory: pytest.TempPathFactory, seed: int, size: int
) -> None:
    path, table = tmp_path_factory.mktemp("data") / "data.svm", drawn(seed)
    dump_svmlight_file(table.X, table.y, str(path), zero_based=False)
    theirs, _ = load_svmlight_file(str(path), zero_based=False)
    blocks = list(row_blocks(path, size=size))
    ours = sparse.vstack([block.rows(1, 8) for block in blocks])
    np.testing.assert_array_equal(dense(ours)[:, : theirs.shape[1]], theirs.toarray())
    np.testing.assert_array_equal(np.concatenate([block.labels for block in blocks]), table.y)
    assert read_data(path, n_features=8).X.shape == (30, 8)


def test_blocks_are_joined_again(tmp_path: Path) -> None:
    path, table = tmp_path / "data.svm", drawn()
    write_data(path, table)
    whole = joined(row_blocks(path, size=50))
    assert whole is not None
    np.testing.assert_array_equal(dense(whole.rows(1)), dense(table.X))
    assert joined([]) is None


def test_zero_based_files_are_read_when_asked_for(tmp_path: Path) -> None:
    path, table = tmp_path / "data.svm", drawn()
    dump_svmlight_file(table.X, table.y, str(path), zero_based=True)
    theirs, _ = load_svmlight_file(str(path), zero_based=True, n_features=8)
    np.testing.assert_array_equal(dense(read_data(path, n_features=8, zero_based=True).X), theirs.toarray())
    path.write_bytes(b"1 1:2\n1 0:3\n")
    with pytest.raises(DataFileError, match=r"data\.svm:2: '0:3' does not begin .* zero_based=True \(--zero-based\)"):
        read_data(path)


@pytest.mark.parametrize("block", [1, 3, 10, 1000])
def test_blocks_hold_whole_lines(tmp_path: Path, block: int) -> None:
    path = tmp_path / "text"
    path.write_bytes(b"\xef\xbb\xbfone\n\ntwo two\nthree" if block > 3 else b"one\n\ntwo two\nthree")
    found = list(line_blocks(path, block))
    assert b"".join(text for _, text in found) == b"one\n\ntwo two\nthree"
    for line, text in found[:-1]:
        assert text.endswith(b"\n")
        assert line == 1 + b"".join(t for n, t in found if n < line).count(b"\n")


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        (b"1 1:1\nx 1:1\n", 2, "the label 'x' is not a finite number"),
        (b"nan 1:1\n", 1, "the label 'nan' is not a finite number"),
        (b"1,2 1:1\n", 1, "the label '1,2' is not a finite number"),
        (b"1 1:1\n\n# note\n1 5\n", 4, "'5' is not of the form index:value"),
        (b"1 a:5\n", 1, "'a:5' does not begin with an index, a whole number from 1 to 2147483647"),
        (b"1 2147483648:5\n", 1, "does not begin with an index"),
        (b"1 qid:3 1:1\n", 1, "'qid:3' is a query id"),
        (b"1 1:1 1:2\n", 1, "the index of '1:2' is not above the one before it"),
        (b"1 2:1 1:2\n", 1, "sort each row by index"),
        (b"1 1:\n", 1, "the value of '1:' is not a finite number"),
        (b"1 1:1e999\n", 1, "the value of '1:1e999' is not a finite number"),
        (b"1 1:\x1b[31m\n", 1, r"the value of '1:\\x1b\[31m' is not"),
        (b"1 1:" + 100 * b"z" + b"\n", 1, r"'1:z{38}\.\.\.'"),
    ],
)
def test_a_fault_in_text_is_told_with_its_line(tmp_path: Path, text: bytes, line: int, what: str) -> None:
    path = tmp_path / "data.svm"
    path.write_bytes(text)
    with pytest.raises(DataFileError, match=rf"data\.svm:{line}: .*{what}" if not what.startswith("the ") else what):
        read_data(path)
    with pytest.raises(DataFileError, match=rf"data\.svm:{line}: "):
        list(row_blocks(path, size=2))


@pytest.mark.parametrize("text", [b"", b"\n\n", b"# nothing\n"])
def test_a_file_without_rows_is_refused(tmp_path: Path, text: bytes) -> None:
    path = tmp_path / "data.svm"
    path.write_bytes(text)
    with pytest.raises(DataFileError, match=r"data\.svm: has no rows; a row is a line such as"):
        read_data(path)


def test_an_endless_line_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks_module, "LONGEST_LINE", 1000)
    path = tmp_path / "data.svm"
    path.write_bytes(b"1 1:1\n1 1:" + 2000 * b"0")
    with pytest.raises(DataFileError, match=r"data\.svm:2: the line is longer than 1000 bytes"):
        list(line_blocks(path, 100))


@pytest.mark.parametrize(
    ("ending", "compress"), [(".gz", gzip.compress), (".bz2", bz2.compress), (".xz", lzma.compress)]
)
def test_damaged_compressed_files_are_refused(tmp_path: Path, ending: str, compress: Callable[[bytes], bytes]) -> None:
    path = tmp_path / f"data.svm{ending}"
    for content in (SMALL, compress(1000 * SMALL)[:-9]):
        path.write_bytes(content)
        with pytest.raises(DataFileError, match=rf"data\.svm\{ending}: (is damaged|cannot be read)"):
            read_data(path)


@pytest.mark.parametrize("name", ["data.svm", "data.csv", "data.npz", "data.svm.gz", "."])
def test_a_missing_file_is_one_sentence(tmp_path: Path, name: str) -> None:
    with pytest.raises(DataFileError, match=r"cannot be read .* give the name of a data file that exists"):
        read_data(tmp_path / name)


CSV = "a,label,b\n1,setosa,2.5\n-1e3,virginica,0\n"


@pytest.mark.parametrize(("ending", "separator"), [(".csv", ","), (".csv", ";"), (".tsv", "\t"), (".csv.gz", ",")])
def test_csv_by_name(tmp_path: Path, ending: str, separator: str) -> None:
    path = tmp_path / f"data{ending}"
    content = CSV.replace(",", separator).encode()
    path.write_bytes(gzip.compress(content) if ending.endswith("gz") else content)
    for label in (None, "label", "2", "-2"):
        table = read_data(path, label=label)
        np.testing.assert_array_equal(table.X, [[1, 2.5], [-1000, 0]])
        assert table.y is not None
        assert table.y.tolist() == ["setosa", "virginica"]
        assert table.feature_names == ("a", "b")


def test_csv_without_a_header_and_without_labels(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text("1,2,3\n\n4,5,6\n")
    table = read_data(path, label="-1")
    np.testing.assert_array_equal(table.X, [[1, 2], [4, 5]])
    np.testing.assert_array_equal(table.y, [3, 6])
    assert table.feature_names is None
    table = read_data(path, label_needed=False)
    assert table.y is None
    assert table.X.shape == (2, 3)


def test_csv_of_many_rows_is_read_in_parts(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    X = np.random.default_rng(0).normal(size=(9000, 2))
    path.write_text("y,a,b\n" + "".join(f"{i % 3},{u!r},{v!r}\n" for i, (u, v) in enumerate(X.tolist())))
    table = read_data(path)
    np.testing.assert_array_equal(table.X, X)
    np.testing.assert_array_equal(table.y, np.arange(9000) % 3)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", r"data\.csv: is empty"),
        ("a,y\n", r"data\.csv: has a header only"),
        ("y\n1\n", "has no column beside the label's"),
        (
            "a,b\n1,2\n",
            "called label, class, target, y; is 'b' the label\\? then add --label b; else name",
        ),
        ("a,b c\nx,2\n", "is 'a' the label\\? then add --label a; else"),
        ("a,b c\n1,x\n", "is 'b c' the label\\? then add --label 'b c'; else"),
        ("y,Label,b\n1,2,3\n", "has more than one column called label"),
        ("a,a,y\n1,2,3\n", "has two columns called 'a'"),
        ("a,y\n1,2\n1,2,3\n", r"data\.csv:3: has 3 cells, but the first row has 2"),
        ("a,y\n1,2\nx,3\n", r"data\.csv:3: column 'a': 'x' is not a finite number; encode categories"),
        ("a,y\n1,2\n,3\n", r"data\.csv:3: column 'a' is empty; .* missing values"),
        ("a,y\n1,2\nnan,3\n", r"data\.csv:3: column 'a': 'nan' is not a finite number"),
        ("a,y\n1,2\n1_0,3\n", r"data\.csv:3: column 'a': '1_0' is not a finite number"),
        ("a,y\n1,2\n1,\n", r"data\.csv:3: the label is empty"),
        ('a,y\n1,"2\n', r"data\.csv:3?.*is not CSV"),
    ],
)
def test_a_fault_in_csv_is_told_with_its_line(tmp_path: Path, text: str, what: str) -> None:
    path = tmp_path / "data.csv"
    path.write_text(text)
    with pytest.raises(DataFileError, match=what):
        read_data(path)


def test_csv_must_be_text_and_know_the_label(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_bytes(b"a,y\n\xff,1\n")
    with pytest.raises(DataFileError, match=r"data\.csv: is not UTF-8 text"):
        read_data(path)
    path.write_text(CSV)
    with pytest.raises(DataFileError, match=r"has no column 'kind' for the label: it has 'a', 'label', 'b'; .*--label"):
        read_data(path, label="kind")


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["1", "+2", "-3"], np.int64),
        (["1.0", "2e0"], np.int64),
        (["0.5", "1"], np.float64),
        (["a", "1"], np.str_),
        (["nan", "1"], np.str_),
        (["1_0", "1"], np.str_),
        (["9007199254740993", "1"], np.float64),
    ],
)
def test_labels_are_numbers_where_all_are(texts: list[str], expected: type) -> None:
    assert np.issubdtype(labels_from_text(texts).dtype, expected)


@pytest.mark.parametrize("ending", [".svm", ".svm.gz", ".csv", ".tsv", ".csv.xz", ".npz", ".parquet"])
def test_what_is_written_is_read(tmp_path: Path, ending: str) -> None:
    if ending == ".parquet":
        pytest.importorskip("pyarrow")
    path, table = tmp_path / f"data{ending}", drawn()
    write_data(path, table)
    read = read_data(path)
    np.testing.assert_array_equal(dense(read.X), dense(table.X))
    np.testing.assert_array_equal(read.y, table.y)
    if ending not in (".svm", ".svm.gz"):
        named = Table(dense(table.X), np.array(["a", "b"])[dense(table.y) % 2], tuple("abcdefgh"))
        write_data(path, named)
        again = read_data(path)
        assert again.feature_names == named.feature_names
        assert again.y is not None
        assert named.y is not None
        assert again.y.tolist() == named.y.tolist()
    assert list(tmp_path.iterdir()) == [path]


def test_text_cannot_hold_words_as_labels(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"LIBSVM's text has numbers as labels, but the labels are .*write .csv"):
        write_data(tmp_path / "data.svm", Table(np.eye(2), np.array(["a", "b"])))
    assert not list(tmp_path.iterdir())


def test_parquet_without_pyarrow_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(ImportError, match=r"pip install 'multimargin\[parquet\]'"):
        read_data(tmp_path / "data.parquet")


def test_faults_in_parquet(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow", reason="Parquet files need pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "data.parquet"
    path.write_bytes(b"PAR1 nonsense")
    with pytest.raises(DataFileError, match="cannot be read as Parquet"):
        read_data(path)
    for columns, what in (
        ({"y": [1, 2], "a": [1.0, None]}, "the column 'a' has missing values"),
        ({"y": [1, 2], "a": ["u", "v"]}, "the column 'a' holds no numbers"),
        ({"y": [1, 2], "a": [1.0, float("nan")]}, "the column 'a' holds values that are not finite"),
        ({"a": [1, 2]}, "has no column called label"),
    ):
        parquet.write_table(arrow.table(columns), path)
        with pytest.raises(DataFileError, match=what):
            read_data(path)


def test_npz_as_numpy_and_scipy_write_it(tmp_path: Path) -> None:
    path, table = tmp_path / "data.npz", drawn()
    assert table.y is not None
    np.savez(path, X=dense(table.X).astype(np.float32), y=table.y)
    np.testing.assert_array_equal(read_data(path).X, dense(table.X).astype(np.float32).astype(np.float64))
    sparse.save_npz(path, table.X)
    np.testing.assert_array_equal(dense(read_data(path, label_needed=False).X), dense(table.X))
    with pytest.raises(DataFileError, match="has no array y"):
        read_data(path)


@pytest.mark.parametrize(
    ("arrays", "what"),
    [
        ({"y": np.zeros(2)}, "has no array X, only 'y'"),
        ({"X": np.zeros(2), "y": np.zeros(2)}, r"X has the shape \(2,\)"),
        ({"X": np.array([["a"]]), "y": np.zeros(1)}, "give a table of numbers"),
        ({"X": np.eye(2), "y": np.zeros(3)}, r"y has the shape \(3,\), but X has 2 rows"),
        ({"X": np.full((2, 2), np.nan), "y": np.zeros(2)}, "X holds values that are not finite"),
        ({"X": np.eye(2), "y": np.array([np.nan, 1])}, "y holds values that are not finite"),
        ({"X": np.eye(2), "y": np.array([1j, 1])}, "y has the type complex128"),
        ({"X": np.array([[1, "a"]], dtype=object), "y": np.zeros(1)}, "holds Python objects"),
        ({"X": np.eye(2), "y": np.zeros(2), "feature_names": np.array(["a"])}, "feature_names has the shape"),
        (
            {"data": np.ones(1), "indices": np.array([5]), "indptr": np.array([0, 1]), "shape": np.array([1, 2])},
            "holds no valid CSR matrix",
        ),
    ],
)
def test_faults_in_npz(tmp_path: Path, arrays: dict[str, np.ndarray], what: str) -> None:
    path = tmp_path / "data.npz"
    np.savez(path, **arrays)  # type: ignore[arg-type]
    with pytest.raises(DataFileError, match=what):
        read_data(path)


def test_an_npz_that_promises_more_than_it_has_is_refused(tmp_path: Path) -> None:
    path, member = tmp_path / "data.npz", tmp_path / "X.npy"
    np.save(member, np.zeros((3, 3)))
    content = member.read_bytes().replace(b"'shape': (3, 3), }            ", b"'shape': (3000000, 3000000), }")
    assert content != member.read_bytes()
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("X.npy", content)
    with pytest.raises(DataFileError, match=r"the array 'X\.npy' is not whole"):
        read_data(path)
    path.write_bytes(b"PK\x03\x04 nonsense")
    with pytest.raises(DataFileError, match="is damaged or no npz file"):
        read_data(path)


def test_precomputed_kernels(tmp_path: Path) -> None:
    path = tmp_path / "kernel.svm"
    path.write_text("1 0:1 1:4 2:2\n2 0:2 1:2 2:3\n")
    table = read_precomputed(path, square=True)
    np.testing.assert_array_equal(table.X, [[4, 2], [2, 3]])
    for text, what in (
        ("1 0:1 1:4\n2 0:2 1:2\n", "has 2 rows and 1 columns of kernel values"),
        ("1 0:1 1:4 2:2\n2 0:7 1:2 2:3\n", "row 2 does not begin with 0:2"),
        ("1 0:1\n", "has no kernel values"),
        ("1 0:1 2147483647:1\n", "has 1 rows and 2147483647 columns"),
    ):
        path.write_text(text)
        with pytest.raises(DataFileError, match=what):
            read_precomputed(path, square=True)


def test_full_rows_become_dense_and_others_stay_sparse() -> None:
    full, thin = sparse.csr_array(np.ones((4, 5))), sparse.csr_array(np.eye(40))
    assert isinstance(Table(full, None).compact().X, np.ndarray)
    assert sparse.issparse(Table(thin, None).compact().X)
    for X in (full, full.toarray()):
        wide = Table(X, None).widened(9).X
        np.testing.assert_array_equal(dense(wide), np.pad(np.ones((4, 5)), ((0, 0), (0, 4))))
    assert Table(full, None).widened(3).X is full
