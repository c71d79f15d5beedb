"""train, predict, verify, info and convert with model files, from the data to the last line."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import Result

import multimargin
from multimargin.cli.models import choose_format
from multimargin.data_files import Table, read_data, write_data
from support.command_line import invoke, refused, succeed, write_iris

ACCURACY = re.compile(r"Accuracy = ([\d.]+)% \((\d+)/(\d+)\) \(classification\)\n")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Iris as two files."""
    monkeypatch.chdir(tmp_path)
    write_iris(tmp_path / "train.svm", rows=slice(100))
    write_iris(tmp_path / "test.svm", rows=slice(100, None))
    return tmp_path


def right(result: Result) -> int:
    found = ACCURACY.fullmatch(result.stdout)
    assert found is not None
    assert float(found[1]) == pytest.approx(100 * int(found[2]) / int(found[3]), abs=1e-3)
    return int(found[2])


def arrays(name: str) -> tuple[np.ndarray, np.ndarray]:
    table = read_data(name, n_features=4)
    assert table.y is not None
    return table.X.toarray(), table.y


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("flags", "params"),
    [
        ((), {"gamma": "auto"}),
        (("-t", "0", "-c", "4"), {"kernel": "linear", "C": 4}),
        (("-t", "1", "-d", "2", "-r", "1", "-g", "0.1"), {"kernel": "poly", "degree": 2, "coef0": 1, "gamma": 0.1}),
        (("--multi-class", "ww"), {"multi_class": "ww", "gamma": "auto"}),
        (("--multi-class", "dag", "-g", "0.5"), {"multi_class": "dag", "gamma": 0.5}),
        (("--kernel", "laplacian"), {"kernel": "laplacian", "gamma": "auto"}),
    ],
)
def test_train_and_predict_are_fit_and_predict(flags: tuple[str, ...], params: dict[str, Any]) -> None:
    succeed("train", *flags, "train.svm")
    result = succeed("predict", "test.svm", "train.svm.model", "out")
    X, y = arrays("train.svm")
    X_test, y_test = arrays("test.svm")
    expected = multimargin.SVC(**params).fit(X, y).predict(X_test)
    assert [int(line) for line in Path("out").read_text().splitlines()] == expected.tolist()
    assert right(result) == (expected == y_test).sum()
    assert not succeed("predict", "-q", "test.svm", "train.svm.model", "out").stdout


@pytest.mark.usefixtures("folder")
def test_default_names_and_formats() -> None:
    succeed("train", "-q", "train.svm")
    assert Path("train.svm.model").read_bytes().startswith(b"svm_type c_svc")
    succeed("train", "-q", "--multi-class", "cs", "train.svm", "cs.model")
    assert not Path("cs.model").read_bytes().startswith(b"svm_type")
    assert "Error: " in refused("train", "-q", "--multi-class", "cs", "--format", "libsvm", "train.svm", "x.model")
    succeed("train", "-q", "--linear", "train.svm", "linear.model")
    assert right(succeed("predict", "test.svm", "linear.model")) > 40
    assert sorted(p.name for p in Path().iterdir()) == [
        "cs.model",
        "linear.model",
        "test.svm",
        "train.svm",
        "train.svm.model",
    ]


def test_the_format_is_chosen_before_the_work() -> None:
    params = {"multi_class": "ovo", "bias": "auto", "kernel": "rbf", "calibration": None}
    y = np.array([1, 2])
    assert choose_format("auto", params, y) == "libsvm"
    for other in ({"multi_class": "dag"}, {"bias": "none"}, {"kernel": "laplacian"}, {"calibration": "sigmoid"}):
        assert choose_format("auto", params | other, y) == "multimargin"
    assert choose_format("auto", params, np.array(["a", "b"])) == "multimargin"
    assert choose_format("libsvm", params | {"kernel": "laplacian"}, y) == "libsvm"


@pytest.mark.usefixtures("folder")
def test_probabilities_and_scores() -> None:
    succeed("train", "-q", "-b", 1, "train.svm", "model")
    succeed("predict", "-b", 1, "test.svm", "model", "out")
    lines = Path("out").read_text().splitlines()
    assert sorted(lines[0].split()) == ["1", "2", "3", "labels"]
    numbers = np.array([line.split() for line in lines[1:]], dtype=float)
    assert numbers.shape == (50, 4)
    np.testing.assert_allclose(numbers[:, 1:].sum(axis=1), 1.0)
    labels = np.array(lines[0].split()[1:], dtype=float)
    np.testing.assert_array_equal(labels[numbers[:, 1:].argmax(axis=1)], numbers[:, 0])
    succeed("predict", "--scores", "test.svm", "model", "out.csv")
    assert Path("out.csv").read_text().splitlines()[0] == "label,score_1,score_2,score_3"
    succeed("predict", "-b", 1, "test.svm", "model", "out.npz")
    with np.load("out.npz") as found:
        assert found["probability"].shape == (50, 3)
        assert found["label"].shape == (50,)
    succeed("train", "-q", "train.svm", "plain")
    assert succeed_labels("model") == succeed_labels("plain")  # without -b 1 the votes decide, as in svm-predict
    assert "choose one of them" in refused("predict", "-b", 1, "--scores", "test.svm", "model", "x")
    assert "plain has no probabilities; train it with -b 1" in refused("predict", "-b", 1, "test.svm", "plain", "x")
    assert not Path("x").exists()
    result = succeed("predict", "test.svm", "plain", "-")
    assert result.stdout.split() == succeed_labels("plain")
    assert ACCURACY.fullmatch(result.stderr)


def succeed_labels(model: str) -> list[str]:
    succeed("predict", "-q", "test.svm", model, "labels.out")
    return Path("labels.out").read_text().split()


@pytest.mark.usefixtures("folder")
def test_indices_that_did_not_occur_count_for_distances_only() -> None:
    X, y = arrays("train.svm")
    rows = np.array([[5.0, 3, 1, 0, 0, 2], [6, 3, 5, 2, 0, 0]])
    write_data("wide.svm", Table(rows, np.array([1, 3])))
    for flags, kernel in (((), "rbf"), (("-t", "0"), "linear"), (("-t", "1"), "poly")):
        succeed("train", "-q", *flags, "train.svm", "model")
        succeed("predict", "-q", "--scores", "wide.svm", "model", "out.npz")
        padded = np.pad(X, ((0, 0), (0, 2)))
        wide = multimargin.SVC(kernel=kernel, gamma=0.25).fit(padded, y)
        with np.load("out.npz") as found:
            np.testing.assert_allclose(found["score"], wide.decision_function(rows), rtol=1e-5, atol=1e-6)
    write_data("narrow.svm", Table(sparse_first_column(), np.array([1, 2])))
    assert right(succeed("predict", "narrow.svm", "model")) <= 2


def sparse_first_column() -> np.ndarray:
    return np.array([[5.0], [6.0]])


@pytest.mark.usefixtures("folder")
def test_a_long_file_is_predicted_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    succeed("train", "-q", "train.svm", "model")
    whole = succeed("predict", "test.svm", "model", "whole").stdout
    monkeypatch.setattr("multimargin.cli.predict.row_blocks", small_blocks)
    assert succeed("predict", "test.svm", "model", "parts").stdout == whole
    assert Path("parts").read_bytes() == Path("whole").read_bytes()


def small_blocks(path: Path, *, first_index: int) -> Any:
    from multimargin.data_files.svmlight import row_blocks

    return row_blocks(path, first_index=first_index, size=100)


@pytest.mark.usefixtures("folder")
def test_columns_are_found_by_their_names() -> None:
    pytest.importorskip("pandas")
    Path("train.csv").write_text("kind,a,b\nx,0,1\nx,0.1,1.1\ny,3,0\ny,3.1,0.2\n")
    Path("test.csv").write_text("b,extra,a,kind\n1,9,0,x\n0,9,3,y\n1,9,0,y\n")
    succeed("train", "-q", "--label", "kind", "train.csv", "model")
    result = succeed("predict", "--label", "kind", "test.csv", "model", "out.csv")
    assert result.stdout == "Accuracy = 66.6667% (2/3) (classification)\n"
    assert Path("out.csv").read_text() == "label\nx\ny\nx\n"
    Path("rows.csv").write_text("a,b\n0,1\n")
    assert "1 rows predicted" in succeed("predict", "rows.csv", "model").stdout
    Path("rows.csv").write_text("a,c\n0,1\n")
    assert refused("predict", "rows.csv", "model").startswith("rows.csv: has no column 'b', which the model")


@pytest.mark.usefixtures("folder")
def test_precomputed_kernels_from_file_to_file() -> None:
    X, y = arrays("train.svm")
    X_test, y_test = arrays("test.svm")
    for name, rows, labels in (("k.train", X, y), ("k.test", X_test, y_test)):
        lines = (
            f"{label} 0:{i + 1} " + " ".join(f"{j + 1}:{v!r}" for j, v in enumerate(row))
            for i, (label, row) in enumerate(zip(labels, (rows @ X.T).tolist(), strict=True))
        )
        Path(name).write_text("\n".join(lines))
    for form in ("libsvm", "multimargin"):
        succeed("train", "-q", "-t", 4, "--format", form, "k.train", "model")
        expected = multimargin.SVC(kernel="linear").fit(X, y).predict(X_test)
        assert right(succeed("predict", "k.test", "model")) == (expected == y_test).sum()


@pytest.mark.usefixtures("folder")
def test_verify_confirms_and_refuses() -> None:
    succeed("train", "-q", "--format", "multimargin", "--multi-class", "cs", "train.svm", "model")
    assert "optimal        yes" in succeed("verify", "model", "train.svm").stdout
    assert "verify needs the training data" in refused("verify", "model", "test.svm")
    succeed("train", "-q", "train.svm", "text")
    assert "has neither C nor the rows" in refused("verify", "text", "train.svm")
    limits = ("--multi-class", "ww", "--max-iter", 2, "-c", 1000, "-g", 1)
    invoke("train", "-q", "--format", "multimargin", *limits, "train.svm", "half")
    result = invoke("verify", "half", "train.svm")
    assert result.exit_code == 1
    assert "optimal        no" in result.stdout


@pytest.mark.usefixtures("folder")
def test_info_and_convert_of_models() -> None:
    succeed("train", "-q", "-c", 4, "train.svm", "text")
    shown = succeed("info", "text").stdout
    assert re.search(r"^kernel +rbf$", shown, re.MULTILINE)
    assert not re.search(r"^(C|certificate) ", shown, re.MULTILINE)  # the text does not tell them
    assert re.search(r"^classes +1, 2, 3$", shown, re.MULTILINE)
    succeed("convert", "text", "own")
    assert not Path("own").read_bytes().startswith(b"svm_type")
    assert succeed_labels("own") == succeed_labels("text")
    succeed("convert", "own", "again")
    assert Path("again").read_bytes() == Path("text").read_bytes()


@pytest.mark.usefixtures("folder")
def test_convert_to_onnx() -> None:
    pytest.importorskip("onnx", reason="models go to ONNX by the package onnx")
    succeed("train", "-q", "train.svm", "model")
    succeed("convert", "model", "model.onnx")
    assert Path("model.onnx").stat().st_size > 100


@pytest.mark.usefixtures("folder")
def test_select_trains_with_what_it_chose() -> None:
    line = succeed("select", "-q", "-log2c", "0,4,2", "-log2g", "-4,0,2", "train.svm", "model").stdout
    cost, gamma, _ = map(float, line.split())
    succeed("train", "-q", "-c", cost, "-g", gamma, "train.svm", "same")
    assert succeed_labels("model") == succeed_labels("same")


@pytest.mark.usefixtures("folder")
def test_damaged_models_are_sentences_and_write_nothing() -> None:
    succeed("train", "-q", "train.svm", "model")
    whole = Path("model").read_bytes()
    for content in (whole[:-50], whole.replace(b"rbf", b"abc"), b"", b"nonsense", b"svm_type c_svc\n"):
        Path("model").write_bytes(content)
        assert len(refused("predict", "test.svm", "model", "out").splitlines()) == 1
    assert refused("predict", "test.svm", "missing", "out").startswith("missing: cannot be read")
    assert not Path("out").exists()
    Path("model").write_bytes(whole)
    Path("bad.svm").write_text("1 1:1\n1 1:x\n")
    assert refused("predict", "bad.svm", "model", "out").startswith("bad.svm:2: ")
    Path("bad.svm").write_text("")
    assert "has no rows" in refused("predict", "bad.svm", "model", "out")
    assert not Path("out").exists()
