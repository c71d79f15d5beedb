"""svm-scale: its options, its range file and its output, compared exactly."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.preprocessing import MinMaxScaler

from multimargin.data_files import read_data
from support.command_line import refused, succeed, write_iris

DATA = "1 1:1 2:-2\n2 1:3 3:5\n1 1:2 2:4 3:5 4:7\n"


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "data.svm"
    path.write_text(DATA)
    return path


def test_output_and_range_file_are_those_of_svm_scale(data: Path) -> None:
    result = succeed("scale", "-s", "ranges", data)
    # What svm-scale prints for this file; a zero that is not written counts, and zeros are not written.
    assert result.stdout == "1 1:-1 2:-1 3:-1 4:-1 \n2 1:1 2:-0.333333 3:1 4:-1 \n1 2:1 3:1 4:1 \n"
    assert Path("ranges").read_text() == "x\n-1 1\n1 1 3\n2 -2 4\n3 0 5\n4 0 7\n"
    assert "WARNING: original #nonzeros 8\n         new      #nonzeros 11\nUse -l 0" in result.stderr


def test_lower_and_upper_and_labels(data: Path) -> None:
    result = succeed("scale", "-l", "0", "-u", "2", "-y", "-1", "1", "-s", "ranges", data)
    assert result.stdout == "-1 2:0 \n".replace("2:0 ", "") + "1 1:2 2:0.666667 3:2 \n-1 1:1 2:2 3:2 4:2 \n"
    assert Path("ranges").read_text().startswith("y\n-1 1\n1 2\nx\n0 2\n")
    again = succeed("scale", "-r", "ranges", data)
    assert again.stdout == result.stdout


def test_restored_ranges_map_other_data(data: Path) -> None:
    succeed("scale", "-s", "ranges", data)
    Path("test.svm").write_text("2 1:5 2:1\n1 4:7 6:1\n")
    result = succeed("scale", "-r", "ranges", "test.svm")
    # The map extends beyond the range; a column without a range is left out, with a message.
    assert result.stdout == "2 1:3 3:-1 4:-1 \n1 1:-2 2:-0.333333 3:-1 4:1 \n"
    assert "feature index 6 appeared in file test.svm was not seen in the scaling factor file ranges" in result.stderr


def test_no_digit_is_lost_and_the_ends_are_met(data: Path) -> None:
    data.write_text("1 1:0.1\n2 1:0.3\n")
    result = succeed("scale", "-l", -0.1, "-u", 0.3, "--digits", 17, "-s", "ranges", data)
    assert result.stdout == "1 1:-0.10000000000000001 \n2 1:0.29999999999999999 \n"
    assert Path("ranges").read_text().splitlines()[-1] == "1 0.10000000000000001 0.29999999999999999"


def test_a_constant_column_is_left_out(data: Path) -> None:
    data.write_text("1 1:3 2:1\n2 1:3 2:2\n")
    assert succeed("scale", "-s", "ranges", data).stdout == "1 2:-1 \n2 2:1 \n"
    assert Path("ranges").read_text() == "x\n-1 1\n2 1 2\n"


def test_agrees_with_scikit_learn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    train, test = (
        write_iris(tmp_path / "train.svm", rows=slice(100)),
        write_iris(tmp_path / "t.svm", rows=slice(100, None)),
    )
    succeed("scale", "-s", "ranges", "--digits", "17", "--out", "train.scaled.svm.gz", train)
    succeed("scale", "-r", "ranges", "--digits", "17", "--out", "test.scaled.svm", test)
    scaler = MinMaxScaler((-1, 1)).fit(read_data(train).X.toarray())
    for raw, scaled in ((train, "train.scaled.svm.gz"), (test, "test.scaled.svm")):
        table = read_data(scaled, n_features=4)
        np.testing.assert_allclose(table.X.toarray(), scaler.transform(read_data(raw).X.toarray()), atol=1e-15)
        np.testing.assert_array_equal(table.y, read_data(raw).y)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("-l", "1", "-u", "1"), "inconsistent lower/upper specification"),
        (("-y", "2", "1"), "inconsistent lower/upper specification"),
        (("-s", "a", "-r", "b"), "cannot use -r and -s simultaneously"),
        (("-s", "missing/a"), "-s missing/a is in a folder that does not exist"),
        (("-r", "missing"), "missing: cannot be read"),
    ],
)
def test_what_contradicts_itself_is_refused(data: Path, arguments: tuple[str, ...], expected: str) -> None:
    assert expected in refused("scale", *arguments, data)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "ranges:1: has no line 'x'"),
        ("z\n", "ranges:1: has no line 'x'"),
        ("x\n", "ranges: ends too early"),
        ("x\n1\n", "ranges:2: '1' is not 2 numbers"),
        ("x\n-1 1\n1 a 2\n", "ranges:3: '1 a 2' is not 3 numbers"),
        ("x\n-1 1\n1.5 1 2\n", "ranges:3: 1.5 is not an index"),
        ("x\n-1 1\n0 1 2\n", "ranges:3: 0 is not an index"),
        ("x\n-1 1\n1 nan 2\n", "ranges:3: '1 nan 2' is not 3 numbers"),
        ("y\n0 1\nx\n", "ranges:3: 'x' is not 2 numbers"),
    ],
)
def test_a_damaged_range_file_is_told_with_its_line(data: Path, text: str, expected: str) -> None:
    Path("ranges").write_text(text)
    assert expected in refused("scale", "-r", "ranges", data)


def test_a_fault_in_the_data_leaves_no_files(data: Path) -> None:
    data.write_text("1 1:1\n1 1:x\n")
    assert refused("scale", "-s", "ranges", "--out", "out.svm", data).startswith(f"{data}:2: the value of '1:x'")
    data.write_text("# nothing\n")
    assert "has no rows" in refused("scale", "-s", "ranges", "--out", "out.svm", data)
    assert sorted(path.name for path in data.parent.iterdir()) == ["data.svm"]
