"""Models that scale their columns and know their label's column: what somebody new types, from a CSV file."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import load_wine
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

from multimargin import SVC, LinearSVC, load_model, save_model
from multimargin.cli import train_main
from multimargin.cli.train import train
from multimargin.data_files import Table, write_data
from support.command_line import invoke, refused, succeed

X, y = load_wine(return_X_y=True)
NAMES = np.array(["red wine", "rose", "white"])


@pytest.fixture
def wine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write train.csv, test.csv and new.csv (without labels), with columns of very different size."""
    monkeypatch.chdir(tmp_path)
    order = np.random.default_rng(0).permutation(len(y))
    header = [f"column {number}" for number in range(X.shape[1])]
    for name, rows in (("train.csv", order[:120]), ("test.csv", order[120:]), ("new.csv", order[120:])):
        with Path(name).open("w", newline="") as handle:
            out = csv.writer(handle)
            labelled = name != "new.csv"
            out.writerow([*header[:4], *(["kind"] if labelled else []), *header[4:]])
            for i in rows:
                out.writerow([*X[i, :4], *([NAMES[y[i]]] if labelled else []), *X[i, 4:]])
    return tmp_path


def rate(text: str) -> float:
    return float(text.split("Accuracy = ")[1].split("%", maxsplit=1)[0])


def test_from_a_csv_to_a_checked_model(wine: Path) -> None:
    """Each command as somebody new types it, and as the messages say."""
    message = refused("train", "train.csv")
    assert "is 'kind' the label? then add --label kind" in message
    unscaled = succeed("train", "train.csv", "--label", "kind")
    assert "Advice: column 'column 12' varies 389 times as much" in unscaled.stderr
    assert "add --scale standard" in unscaled.stderr
    chosen = succeed("select", "train.csv", "best.model", "--label", "kind", "--scale", "standard", "-q")
    best = float(chosen.stdout.split()[-1])
    found = rate(succeed("predict", "train.csv", "best.model").stdout)
    assert found >= best - 1
    assert rate(succeed("predict", "test.csv", "best.model").stdout) >= 90
    assert "optimal        yes" in succeed("verify", "train.csv", "best.model").stdout
    table = succeed("compare", "train.csv", "test.csv", "--label", "kind", "--scale", "range", "--machines", "ovo,cs",
                    "-log2c", "0,4,2", "-log2g", "-3,-1,2")  # fmt: skip
    assert "ovo" in table.stdout


@pytest.mark.parametrize("options", [("--scale", "standard"), ("--scale", "range"), ("--linear", "--scale", "range")])
def test_the_scaling_is_in_the_model(wine: Path, options: tuple[str, ...]) -> None:
    result = succeed("train", "train.csv", "model", "--label", "kind", *options)
    assert "Advice" not in result.stderr
    assert "scale=" in result.stdout
    model = load_model("model")
    assert isinstance(model, Pipeline)
    table = [line.split(",") for line in Path("test.csv").read_text().splitlines()[1:]]
    rows = np.array([[*row[:4], *row[5:]] for row in table], dtype=float)
    wanted = model.predict(pd.DataFrame(rows, columns=model.feature_names_in_))
    succeed("predict", "test.csv", "model", "out.csv")
    assert Path("out.csv").read_text().split("\n")[1:-1] == wanted.tolist()
    without = succeed("predict", "new.csv", "model", "new_out.csv").stdout
    assert "no labels to compare with" in without
    assert Path("new_out.csv").read_text() == Path("out.csv").read_text()
    assert "optimal        yes" in succeed("verify", "train.csv", "model").stdout
    assert "optimal        yes" in succeed("verify", "model", "train.csv").stdout  # the order of before
    assert "scaling" in succeed("info", "model").stdout
    assert "scales its columns" in refused("convert", "model", "model.onnx")


def test_sparse_text_is_scaled_without_filling_it(wine: Path) -> None:
    rng = np.random.default_rng(0)
    rows = sparse.random_array((80, 40), density=0.1, rng=rng, format="csr") * 7.0
    labels = np.arange(80) % 2 + 1
    write_data("train.svm", Table(rows, labels))
    for how in ("standard", "range"):
        succeed("train", "train.svm", "model", "--scale", how)
        model = load_model("model")
        assert sparse.issparse(model[-1]._model.support_vectors)
        assert rate(succeed("predict", "train.svm", "model").stdout) == pytest.approx(
            100 * model.score(rows, labels), abs=1e-4
        )


def test_text_of_libsvm_does_not_scale(wine: Path) -> None:
    assert "--scale is kept in our own format only" in refused(
        "train", "train.csv", "--label", "kind", "--scale", "range", "--format", "libsvm"
    )


@pytest.mark.parametrize("scaler", [StandardScaler(), MinMaxScaler((-1, 1)), MaxAbsScaler()], ids=str)
@pytest.mark.parametrize("machine", [SVC(), LinearSVC()], ids=["SVC", "LinearSVC"])
def test_pipelines_are_saved(scaler: Any, machine: Any, tmp_path: Path) -> None:
    model = make_pipeline(scaler, machine).fit(X, y)
    save_model(model, tmp_path / "model")
    again = load_model(tmp_path / "model")
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    assert [type(step) for _, step in again.steps] == [type(scaler), type(machine)]
    save_model(again, tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "model").read_bytes()


@pytest.mark.parametrize(
    ("scaler", "error", "sentence"),
    [
        (MinMaxScaler(), ValueError, r"MinMaxScaler\(\) is not saved"),
        (StandardScaler(with_std=False), ValueError, "is not saved"),
        (RobustScaler(), TypeError, "or the last step of any other Pipeline"),
    ],
    ids=["interval", "no-deviation", "robust"],
)
def test_other_pipelines_are_refused(scaler: Any, error: type[Exception], sentence: str, tmp_path: Path) -> None:
    with pytest.raises(error, match=sentence):
        save_model(make_pipeline(scaler, SVC()).fit(X, y), tmp_path / "model")


def test_the_best_cell_at_the_edge(wine: Path) -> None:
    advice = succeed(
        "select", "train.csv", "--label", "kind", "--scale", "standard", "-log2c", "-8,-6,1", "-log2g", "-4,-4,1"
    ).stderr
    assert "Advice: the best C, " in advice
    assert "of the grid; try -log2c " in advice
    quiet = succeed("select", "train.csv", "--label", "kind", "-q", "-log2c", "-8,-6,1", "-log2g", "-4,-4,1")
    assert not quiet.stderr


def test_the_summary_and_the_lines_of_svm_train(wine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    short = succeed("train", "train.csv", "--label", "kind", "--scale", "standard").stdout.splitlines()
    assert [line.split("  ")[0] for line in short] == [
        "machine", "rows", "classes", "support vectors", "certificate", "seconds",
    ]  # fmt: skip
    assert short[2].endswith("3: red wine, rose, white")
    long = succeed("train", "train.csv", "--label", "kind", "--verbose").stdout
    assert "Total nSV = " in long
    called: list[str] = []
    monkeypatch.setattr(train, "main", lambda **options: called.append(options["prog_name"]))
    train_main()
    assert called == ["mm-train"]


def test_keep_is_for_ctrl_c(wine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    def fit(self: SVC, rows: Any, labels: Any) -> SVC:
        seen.append(self.on_interrupt)
        raise KeyboardInterrupt

    monkeypatch.setattr(SVC, "fit", fit)
    for options in ((), ("--keep",)):
        assert invoke("train", "train.csv", "--label", "kind", *options).exit_code == 130
    assert seen == ["raise", "keep"]
