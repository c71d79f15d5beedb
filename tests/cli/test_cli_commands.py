"""The other commands: select, path, compare, info and convert."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from multimargin import SVC, SVCCV
from multimargin.cli.cross_validation import folds_of
from multimargin.cli.options import exponents
from multimargin.data_files import Table, read_data, write_data
from support.command_line import invoke, refused, succeed, write_iris


@pytest.fixture
def iris(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return write_iris(tmp_path / "iris.svm")


def test_select_is_svccv_on_the_folds_of_train(iris: Path) -> None:
    result = succeed("select", "-log2c", "-1,5,3", "-log2g", "-4,0,2", "-v", 4, "-out", "iris.out", iris)
    table = read_data(iris)
    assert table.y is not None
    search = SVCCV(Cs=2.0 ** np.array([-1, 2, 5]), gammas=2.0 ** np.array([-4, -2, 0]), cv=folds_of(table.y, 4, 0))
    search.fit(table.X.toarray(), table.y)
    lines = result.stdout.splitlines()
    cost, gamma, rate = map(float, lines[-1].split())
    assert {"C": cost, "gamma": gamma} == search.best_params_
    assert rate == pytest.approx(100 * search.best_score_, abs=1e-4)
    assert len(lines) == 10
    assert all(
        re.fullmatch(r"\[local\] \S+ \S+ [\d.]+ \(best c=\S+, g=\S+, rate=[\d.]+\)", line) for line in lines[:-1]
    )
    cells = np.loadtxt("iris.out")
    assert cells.shape == (9, 3)
    assert cells[:, 2].max() == pytest.approx(rate, abs=1e-4)
    quiet = succeed("select", "-q", "-log2c", "-1,5,3", "-log2g", "-4,0,2", "-v", 4, iris)
    assert quiet.stdout.splitlines() == lines[-1:]


def test_select_of_kernels_without_gamma_and_other_searches(iris: Path) -> None:
    lines = succeed("select", "-t", 0, "-log2c", "0,2,1", iris).stdout.splitlines()
    assert len(lines) == 4
    assert len(lines[-1].split()) == 2
    arguments = (
        "--search",
        "racing",
        "--multi-class",
        "ww",
        "-log2c",
        "0,4,2",
        "-log2g",
        "-4,0,2",
        "--report",
        "r.html",
    )
    assert len(succeed("select", *arguments, iris).stdout.splitlines()[-1].split()) == 3
    assert "<html" in Path("r.html").read_text()
    succeed("select", "-log2c", "0,2,2", "-log2g", "-2,0,2", "-resume", "kept", iris)
    assert any(Path("kept").iterdir())


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("-log2c", "1,2"), "'1,2' is not begin,end,step with at most 1000 exponents"),
        (("-log2c", "1,2,0"), "is not begin,end,step"),
        (("-log2c", "1,2,-1"), "is not begin,end,step"),
        (("-log2c", "0,1e9,1"), "is not begin,end,step"),
        (("-log2g", "0,2000,500"), "from -300 to 300"),
        (("-v", "200"), "-v 200 is more than the 150 rows"),
        (("--out", "missing/x"), "--out missing/x is in a folder that does not exist"),
    ],
)
def test_select_refuses(iris: Path, arguments: tuple[str, ...], expected: str) -> None:
    assert expected in refused("select", *arguments, iris)


def test_select_without_a_finished_cell(iris: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SVCCV, "fit", lambda self, X, y: self)
    assert "no cell was finished in time; raise --max-time" in refused("select", "--max-time", 1, iris)


def test_exponents_are_those_of_grid_py() -> None:
    assert exponents("-5,15,2") == [-5, -3, -1, 1, 3, 5, 7, 9, 11, 13, 15]
    assert exponents("3,-15,-2") == [3, 1, -1, -3, -5, -7, -9, -11, -13, -15]
    assert exponents("0,0.3,0.1") == pytest.approx([0, 0.1, 0.2, 0.3])
    assert exponents("2,2,1") == [2]


def test_path_shows_each_point(iris: Path) -> None:
    lines = succeed("path", "-log2c", "-2,4,2", iris).stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["C", "0.25", "1", "4", "16"]
    assert all(line.endswith("converged") for line in lines[1:])
    pytest.importorskip("matplotlib")
    result = succeed("path", "--linear", "--multi-class", "ww", "-log2c", "-2,2,2", "--picture", "path.png", iris)
    assert Path("path.png").read_bytes().startswith(b"\x89PNG")
    assert result.stderr == "Figure: path.png\n"


def test_compare_writes_its_table(iris: Path) -> None:
    test = write_iris(Path("test.csv"), rows=slice(50))
    few = ("-log2c", "0,4,4", "-log2g", "-4,0,4", "-v", 3)
    arguments = ("compare", "--machines", "ovo, ww", *few)
    result = succeed(*arguments, "--out", "table.json", iris)
    assert [line.split()[0] for line in result.stdout.splitlines()[2:4]] == ["ovo", "ww"]
    again = succeed("compare", "--machines", "ovo", "--machines", "ww", *few, iris)
    assert [line.split()[0] for line in again.stdout.splitlines()[2:4]] == ["ovo", "ww"]
    assert json.loads(Path("table.json").read_text())
    train = write_iris(Path("train.csv"))
    assert "test" in succeed(*arguments, "--out", "table.md", train, test).stdout
    assert "| ovo" in Path("table.md").read_text()
    assert "use one of .csv, .json, .md" in refused(*arguments, "--out", "table.xyz", iris)
    assert "machine" in refused("compare", "--machines", "ovo,nonsense", iris)
    Path("wide.svm").write_text("1 9:1\n")
    assert "has 9 columns, but the training data have 4" in refused(*arguments, iris, "wide.svm")


def test_info_of_data(iris: Path) -> None:
    lines = dict(re.split(r"\s{2,}", line, maxsplit=1) for line in succeed("info", iris).stdout.splitlines()[:5])
    assert lines["rows"] == "150"
    assert lines["features"] == "4"
    assert lines["smallest and largest value"] == "0.1, 7.9"
    assert lines["classes"] == "1: 50, 2: 50, 3: 50"
    Path("x.csv").write_text("a,b\n1,2\n")
    assert "none" in succeed("info", "x.csv").stdout
    write_data("many.npz", Table(np.eye(40), np.arange(40)))
    assert "40 classes, 1 to 1 rows each" in succeed("info", "many.npz").stdout
    assert refused("info", "nope.svm").startswith("nope.svm: cannot be read")


@pytest.mark.parametrize("ending", [".csv", ".npz", ".svm.xz", ".parquet"])
def test_convert_there_and_back(iris: Path, ending: str) -> None:
    if ending == ".parquet":
        pytest.importorskip("pyarrow")
    succeed("convert", iris, f"other{ending}")
    succeed("convert", f"other{ending}", "back.svm")
    assert Path("back.svm").read_text() == iris.read_text()


def test_convert_refuses(iris: Path) -> None:
    assert "--format is for models" in refused("convert", "--format", "libsvm", iris, "x.csv")
    assert "target" in refused("convert", iris, "missing/x.csv")
    Path("words.csv").write_text("y,a\nred,1\nblue,2\n")
    assert "LIBSVM's text has numbers as labels" in refused("convert", "words.csv", "words.svm")
    assert "--label" in refused("convert", "--label", "nope", "words.csv", "x.npz")


def test_csv_trains_as_text_does(iris: Path) -> None:
    csv_file = write_iris(Path("iris.csv"))
    assert succeed("train", "-v", 5, csv_file).stdout == succeed("train", "-v", 5, iris).stdout
    Path("named.csv").write_text(csv_file.read_text().replace("label", "kind"))
    assert "name the label's column with --label NAME" in refused("train", "-v", 5, "named.csv")
    named = succeed("train", "--label", "kind", "-v", 5, "named.csv")
    assert named.stdout == succeed("train", "-v", 5, iris).stdout


def test_warnings_are_lines_on_stderr(iris: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("multimargin.cli.models.save", lambda model, path, kind: None)
    result = invoke("train", "-c", "1e6", "-g", 1, "--multi-class", "ww", "--max-iter", 3, iris)
    assert result.exit_code == 0
    assert result.stderr.startswith("Warning: ")
    assert len(result.stderr.splitlines()) == 1


def test_memory_and_disk_errors_are_sentences(iris: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: SVC, X: object, y: object) -> SVC:
        raise MemoryError("8 TB")

    monkeypatch.setattr(SVC, "fit", fail)
    assert "Error: the memory is not enough (8 TB)" in refused("train", iris)
