"""The experiments print what they measured beside what the papers print, and say where the two differ."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from sklearn.datasets import load_iris

from experiments import dgi11_table3
from experiments.dgi11_table3 import PRINTED, Cell, Row
from multimargin.datasets import DGI11_PARAMETERS, Benchmark

X, Y = load_iris(return_X_y=True)


@pytest.fixture
def iris_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """A data set that every machine has, under any name; "satimage" has a test part."""

    def load(name: str) -> Benchmark:
        return Benchmark(name, np.ascontiguousarray(X), Y + 1, X if name == "satimage" else None, None)

    monkeypatch.setattr(dgi11_table3, "load_benchmark", load)


def row(smo: Cell, s2do: Cell, data: str = "iris", machine: str = "llw") -> Row:
    return Row(data, machine, 105, {"smo": smo, "s2do": s2do, "auto": Cell(3, 0.001, True)})


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_table_of_iris(iris_for_all: None, tmp_path: Path) -> None:
    arguments = ["--data", "iris", "--machine", "llw", "--solver", "whole-example", "--splits", "3"]
    run = CliRunner().invoke(dgi11_table3.main, [*arguments, "--out", str(tmp_path)])
    assert run.exit_code == 0, run.output
    assert "| data | machine | rows | smo | smo, DGI11 | s2do | s2do, DGI11 | whole-example | default |" in run.output
    assert "| iris | llw | 105 |" in run.output
    assert "| 21,145 (0.065) |" in run.output
    assert "| 1,697 (0.049) |" in run.output
    assert "fewer iterations than SMO in 1 of 1 cases" in run.output
    (measured,) = json.loads((tmp_path / "dgi11_table3.json").read_text())["rows"]
    assert measured["cells"]["s2do"]["iterations"] < measured["cells"]["smo"]["iterations"]
    assert all(cell["done"] for cell in measured["cells"].values())


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_limit_is_printed_as_such(iris_for_all: None) -> None:
    run = CliRunner().invoke(dgi11_table3.main, ["--data", "vehicle", "--machine", "llw", "--limit", "1e-9"])
    assert run.exit_code == 0
    assert run.output.count("| > ") == 3
    assert "17,000,000 (printed 1.7e+09) (566)" in run.output
    assert "in 0 of 1 cases" in run.output


def test_splits(iris_for_all: None) -> None:
    assert [len(y) for _, y in dgi11_table3.training_rows("iris", 2)] == [105, 105]
    assert [len(y) for _, y in dgi11_table3.training_rows("satimage", 2)] == [150]
    one, two = (x for x, _ in dgi11_table3.training_rows("iris", 2))
    assert not np.array_equal(one, two)


def test_verdict() -> None:
    many, few = Cell(900, 1.0, True), Cell(100, 1.0, True)
    assert row(many, few).fewer is True
    assert row(few, many).fewer is False
    assert row(few, few).fewer is False
    stopped_many, stopped_few = Cell(900, 60.0, False), Cell(100, 60.0, False)
    assert row(stopped_many, few).fewer is True
    assert row(stopped_few, many).fewer is None
    assert row(stopped_many, stopped_few).fewer is None
    assert row(few, stopped_many).fewer is False


def test_ends_with_an_error_where_s2do_is_behind(iris_for_all: None, monkeypatch: pytest.MonkeyPatch) -> None:
    behind = row(Cell(100, 1.0, True), Cell(900, 1.0, True))
    monkeypatch.setattr(dgi11_table3, "measure", lambda *_: behind)
    run = CliRunner().invoke(dgi11_table3.main, ["--data", "iris"])
    assert run.exit_code == 1
    assert "| NO |" in run.output


def test_remarks() -> None:
    def remark(iterations: float, *, done: bool = True, data: str = "iris", machine: str = "llw") -> str:
        return row(Cell(iterations, 1.0, done), Cell(1, 1.0, True), data, machine).remark("smo")

    assert remark(9_000) == "same order"
    assert remark(1_000).startswith("0.047 times the paper's: the paper's splits")
    assert remark(1_000, done=False) == "ended by the limit before the paper's number"
    assert remark(9e6, done=False).startswith("4.3e+02 times")
    assert remark(9e6, data="vehicle") == "same order"  # as 17*10^6, which is meant
    assert remark(5, data="letter") == "not in the paper"


def test_printed_numbers_are_complete() -> None:
    assert set(PRINTED) == set(DGI11_PARAMETERS)
    for cells in PRINTED.values():
        assert set(cells) == {(machine, solver) for machine in ("ww", "llw") for solver in ("smo", "s2do")}
        for machine in ("ww", "llw"):
            assert cells[machine, "s2do"][0] < cells[machine, "smo"][0]
