"""svm-train's and svm-predict's flags, files and lines."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn import svm

import multimargin
from multimargin.cli.cross_validation import fold_numbers
from multimargin.cli.training_lines import labels_in_order, lines_of
from multimargin.data_files import read_data
from support.command_line import invoke, refused, succeed, write_iris

ACCURACY = re.compile(r"Cross Validation Accuracy = ([\d.]+)%")


@pytest.fixture
def iris(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return write_iris(tmp_path / "iris.svm")


def accuracy(*arguments: object) -> float:
    found = ACCURACY.fullmatch(succeed("train", *arguments).stdout.strip())
    assert found is not None
    return float(found[1])


def test_a_loop_over_the_grid_finds_what_scikit_learn_finds(iris: Path) -> None:
    """As LIBSVM's grid.py: call the command for each cell, and read one line of its output."""
    table = read_data(iris)
    X, y = table.X.toarray(), table.y
    assert y is not None
    folds = fold_numbers(y, 5, 0)
    for log2c in (-2, 4):
        for log2g in (-6, 0):
            found = accuracy("-c", 2.0**log2c, "-g", 2.0**log2g, "-v", 5, "-q", iris)
            correct = 0
            for fold in range(5):
                peer = svm.SVC(C=2.0**log2c, gamma=2.0**log2g).fit(X[folds != fold], y[folds != fold])
                correct += int((peer.predict(X[folds == fold]) == y[folds == fold]).sum())
            assert found == pytest.approx(100 * correct / len(y), abs=1e-4)
    assert not Path("iris.svm.model").exists()


@pytest.mark.parametrize(
    ("flags", "params"),
    [
        ((), {"gamma": 0.25}),
        (("-s", "0", "-t", "2", "-c", "16", "-g", "4", "-w1", "2", "-m", "500", "-e", "0.001"), {"C": 16, "gamma": 4}),
        (("-t", "0"), {"kernel": "linear"}),
        (("-t", "1", "-d", "2", "-r", "-1", "-g", "0.1"), {"kernel": "poly", "degree": 2, "coef0": -1, "gamma": 0.1}),
        (("-t", "3", "-g", "0.01", "-r", "0.1"), {"kernel": "sigmoid", "gamma": 0.01, "coef0": 0.1}),
        (("-g", "0"), {"gamma": 0.25}),
        (("-h", "0", "-n", "0.3", "-p", "0.2"), {"gamma": 0.25}),
        (("-w1", "2", "-w3", "0.5"), {"class_weight": {1: 2, 3: 0.5}, "gamma": 0.25}),
        (("--balanced",), {"class_weight": "balanced", "gamma": 0.25}),
        (("--kernel", "laplacian", "-g", "scale"), {"kernel": "laplacian", "gamma": "scale"}),
        (("--multi-class", "ww", "--bias", "exact", "--loss", "squared_hinge"), {"multi_class": "ww", "bias": "exact"}),
        (("--threads", "1", "--max-time", "60", "--solver", "maximum-gain"), {"solver": "maximum-gain"}),
    ],
)
def test_flags_reach_the_estimator(
    iris: Path, monkeypatch: pytest.MonkeyPatch, flags: tuple[str, ...], params: dict[str, Any]
) -> None:
    saved: list[multimargin.SVC] = []
    monkeypatch.setattr("multimargin.cli.models.save", lambda model, path, kind: saved.append(model))
    succeed("train", *flags, iris)
    (model,) = saved
    if flags[:2] == ("-s", "0"):
        params = params | {"class_weight": {1: 2.0}, "cache_size": 500.0}
    if "squared_hinge" in flags:
        params = params | {"loss": "squared_hinge", "gamma": 0.25}
    table = read_data(iris)
    X = table.X.toarray()
    assert table.y is not None
    expected = multimargin.SVC(**({"gamma": "auto"} | params)).fit(X, table.y)
    np.testing.assert_array_equal(model.decision_function(X), expected.decision_function(X))


def test_linear_machines_by_weights(iris: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    saved: list[tuple[object, str]] = []
    monkeypatch.setattr("multimargin.cli.models.save", lambda model, path, kind: saved.append((model, kind)))
    succeed("train", "--linear", "--multi-class", "cs", "-c", 2, iris)
    model, kind = saved[0]
    assert isinstance(model, multimargin.LinearSVC)
    assert (model.C, model.multi_class, kind) == (2.0, "cs", "multimargin")
    assert "--linear trains weights" in refused("train", "--linear", "-b", 1, iris)


def test_lines_are_those_of_svm_train(iris: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("multimargin.cli.models.save", lambda model, path, kind: None)
    lines = succeed("train", "--verbose", "-c", 4, iris).stdout.splitlines()
    shapes = (
        r"optimization finished, #iter = \d+",
        r"nu = 0\.\d+",
        r"obj = -\d+\.\d+, rho = -?\d+\.\d+",
        r"nSV = \d+, nBSV = \d+",
    )
    for line, shape in zip(lines, 3 * shapes, strict=False):
        assert re.fullmatch(shape, line), line
    assert re.fullmatch(r"Total nSV = \d+", lines[12])
    assert lines[13].startswith("certificate: converged, verified")
    assert not succeed("train", "-q", iris).stdout
    lines = succeed("train", "--verbose", "--multi-class", "cs", iris).stdout.splitlines()
    assert re.fullmatch(r"obj = -\d+\.\d+", lines[1])


def test_numbers_of_the_lines_are_those_of_the_optimum() -> None:
    rng = np.random.default_rng(3)
    X = np.concatenate([rng.normal(0, 1, (20, 2)), rng.normal(1.5, 1, (30, 2))])
    y = np.repeat([1, -1], [20, 30])
    model = multimargin.SVC(C=2.0, gamma=0.5).fit(X, y)
    peer = svm.SVC(C=2.0, gamma=0.5, tol=1e-8).fit(X, y)
    lines = list(lines_of(model, y))
    alpha = np.abs(peer.dual_coef_[0])
    dual = alpha.sum() - 0.5 * float(peer.dual_coef_[0] @ _gram(X[peer.support_], 0.5) @ peer.dual_coef_[0])
    assert float(lines[1].split(" = ")[1]) == pytest.approx(alpha.sum() / (2.0 * 50), abs=1e-4)
    objective, rho = re.fullmatch(r"obj = (.*), rho = (.*)", lines[2]).groups()  # type: ignore[union-attr]
    assert float(objective) == pytest.approx(-dual, abs=1e-3)
    # LIBSVM has +1 as its first class, whose score is positive: scikit-learn's is that of its second, which is 1 too.
    assert float(rho) == pytest.approx(-peer.intercept_[0], abs=1e-3)
    assert lines[3] == f"nSV = {len(alpha)}, nBSV = {int((alpha >= 2.0 * (1 - 1e-9)).sum())}"


def _gram(X: np.ndarray, gamma: float) -> np.ndarray:
    return np.asarray(np.exp(-gamma * ((X[:, None] - X[None]) ** 2).sum(axis=2)))


def test_labels_are_ordered_as_libsvm_does() -> None:
    assert labels_in_order(np.array([3, 1, 3, 2]), np.array([1, 2, 3])) == [2, 0, 1]
    assert labels_in_order(np.array([-1, 1]), np.array([-1, 1])) == [1, 0]
    assert labels_in_order(np.array([-1, 2]), np.array([-1, 2])) == [0, 1]


@pytest.mark.parametrize("svm_type", [1, 2, 3, 4, 9])
def test_other_types_are_refused_with_a_sentence(iris: Path, svm_type: int) -> None:
    assert f"Error: -s {svm_type} (" in refused("train", "-s", svm_type, iris)
    assert "use -s 0" in refused("train", "-s", svm_type, iris)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("-c", "0"), "Invalid value for '-c'"),
        (("-c", "x"), "Invalid value for '-c'"),
        (("-g", "-1"), "'-1' is not allowed; give a number >= 0, 'auto' or 'scale'."),
        (("-g", "x"), "'x' is not allowed"),
        (("-m", "-5"), "'-5' is not allowed; give megabytes >= 0 or 'auto'."),
        (("-t", "7"), "Invalid value for '-t'"),
        (("-v", "1"), "Invalid value for '-v'"),
        (("-w1", "-2"), "-w1 -2 is not allowed"),
        (("-w1", "a"), "-w1 a is not allowed"),
        (("-w1", "2", "--balanced"), "--balanced and -w were both given"),
        (("-z", "2"), "No such option"),
        (("-e",), ""),
        (("--multi-class", "nonsense"), "'nonsense' is not one of"),
        (("--solver", "nonsense"), "solver='nonsense'"),
        (("--multi-class", "ww", "--calibration", "coupling"), "coupling"),
    ],
)
def test_what_is_wrong_is_told_and_nothing_written(iris: Path, arguments: tuple[str, ...], expected: str) -> None:
    assert expected in refused("train", *arguments, iris)
    assert sorted(path.name for path in Path().iterdir()) == ["iris.svm"]


def test_no_arguments_are_an_error_with_the_usage(iris: Path) -> None:
    assert refused("train").startswith("Usage: ")
    assert refused("predict", iris).startswith("Usage: ")


def test_faults_in_the_data_are_told_first(iris: Path) -> None:
    iris.write_text("1 1:1\n2 1:a\n")
    assert refused("train", iris) == f"{iris}:2: the value of '1:a' is not a finite number\n"
    iris.write_text("1 1:1\n1 1:2\n")
    assert "class" in refused("train", iris)
    assert "is in a folder that does not exist" in refused("train", iris, "missing/model")


def test_weights_of_labels_that_do_not_occur(iris: Path) -> None:
    result = succeed("train", "-w9", 2, "-w-1", 3, "-v", 2, "-q", iris)
    assert "WARNING: class label 9 specified in weight is not found" in result.stderr
    assert "WARNING: class label -1 specified in weight is not found" in result.stderr


def test_cross_validation_with_more_folds_than_rows_and_lone_classes(iris: Path) -> None:
    iris.write_text("1 1:0\n1 1:0.1\n2 1:1\n2 1:1.1\n3 1:9\n")
    result = succeed("train", "-v", 9, "-w3", 2, iris)
    assert "# folds (9) > # data (5)" in result.stderr
    assert ACCURACY.search(result.stdout)
    iris.write_text("1 1:0\n2 1:0.1\n")
    assert accuracy("-v", 2, iris) == 0.0
    iris.write_text("1 1:0\n")
    assert "needs at least two rows" in refused("train", "-v", 2, iris)


def test_cross_validation_of_precomputed_kernels_and_of_other_machines(iris: Path) -> None:
    table = read_data(iris)
    K = _gram(table.X.toarray(), 0.25)
    assert table.y is not None
    lines = [
        f"{label} 0:{i + 1} " + " ".join(f"{j + 1}:{v!r}" for j, v in enumerate(row))
        for i, (label, row) in enumerate(zip(table.y, K.tolist(), strict=True))
    ]
    Path("kernel.svm").write_text("\n".join(lines))
    assert accuracy("-t", 4, "-v", 5, "kernel.svm") == accuracy("-g", 0.25, "-v", 5, iris)
    chosen = succeed("select", "-q", "-t", 4, "-log2c", "0,2,2", "kernel.svm").stdout.split()
    assert float(chosen[-1]) >= accuracy("-t", 4, "-v", 5, "kernel.svm") - 1e-3
    assert len(succeed("path", "-t", 4, "-log2c", "0,2,2", "kernel.svm").stdout.splitlines()) == 3
    assert accuracy("--multi-class", "ww", "-v", 5, "--max-time", 60, iris) > 90
    assert accuracy("-b", 1, "-v", 3, iris) > 90


def test_folds_are_of_equal_size_and_hold_every_class() -> None:
    y = np.repeat([0, 1, 2], [50, 20, 31])
    folds = fold_numbers(y, 5, 0)
    assert set(np.bincount(folds)) == {20, 21}
    for label in range(3):
        counts = np.bincount(folds[y == label], minlength=5)
        assert counts.max() - counts.min() <= 1
    assert not np.array_equal(folds, fold_numbers(y, 5, 1))


def test_help_of_every_command_is_laid_out() -> None:
    for name in ("train", "predict", "scale", "select", "path", "compare", "verify", "info", "convert", "demo"):
        result = invoke(name, "--help")
        assert result.exit_code == 0
        assert result.stdout.startswith("Usage: ")
        assert "\x1b" not in result.stdout
        assert max(map(len, result.stdout.splitlines())) <= 100
    page = invoke("train", "--help").stdout
    for word in ("LIBSVM's options", "-wLABEL FACTOR", "Limits", "--max-time SECONDS", "Data files"):
        assert word in page
