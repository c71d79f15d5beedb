"""The plane of C and gamma is measured cell by cell, and what did not finish is named."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from benchmarks import plane, plane_sets


@pytest.fixture(autouse=True)
def one_fit_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plane, "LEAST_SECONDS", 0.0)


def test_every_cell_has_each_machine(tmp_path: Path) -> None:
    options = ["--data", "drawn-6", "--size", "60", "--C=-1,3", "--gamma=-2,1", "--machine", "ww", "--sklearn"]
    extras = ["--clock", "cpu", "--threads", "1", "--cells", "--heat", str(tmp_path / "heat.png")]
    run = CliRunner().invoke(plane.main, [*options, *extras, "--out", str(tmp_path)])
    assert run.exit_code == 0, run.output
    rows = json.loads((tmp_path / "plane.json").read_text())["rows"]
    assert len(rows) == 2 * 2 * 3
    assert all(row["ratio"] == 1 for row in rows if row["machine"] == "ovo")
    assert all(row["certified"] and row["violation"] <= 1e-3 for row in rows if row["machine"] != "sklearn")
    assert "| drawn-6 | ww |" in run.output
    assert "0 of 4" in run.output
    assert "| C=2^3 |" in run.output
    assert (tmp_path / "heat.png").stat().st_size > 1000


def test_a_fit_that_met_its_limit_is_unfinished() -> None:
    options = ["--data", "drawn-8", "--size", "400", "--C", "12", "--gamma", "0", "--machine", "ww", "--tol", "1e-9"]
    run = CliRunner().invoke(plane.main, [*options, "--limit", "1e-9", "--cells"])
    assert run.exit_code == 0, run.output
    assert "| ww | > " in run.output
    assert "1 of 1" in run.output
    assert " unfinished" in run.output


def test_subsamples_keep_the_shares_of_the_classes() -> None:
    y = np.repeat(["a", "b", "c"], [600, 399, 1])
    rows = plane_sets.stratified(y, 100, seed=3)
    assert np.unique(y[rows], return_counts=True)[1].tolist() == [60, 40, 1]
    assert np.array_equal(rows, plane_sets.stratified(y, 100, seed=3))
    assert not np.array_equal(rows, plane_sets.stratified(y, 100, seed=4))
