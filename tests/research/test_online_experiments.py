"""The experiment and the benchmark on streams: they run, and their verdicts can fail."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from benchmarks import online
from experiments import igel_curves, igel_online, streams
from experiments.frame import Cells, Settings
from multimargin import SVC
from support.helpers import draw_data


def small_stream(name: str, machine: str, n_rows: int | None = None) -> streams.StreamData:
    X, y = draw_data(1, 240, 2 if name in streams.VALIDATED else 3)
    return streams.StreamData(name, X[:160], y[:160], X[160:], y[160:], 2.0, 0.7)


def test_chessboard_has_the_colours_of_its_squares() -> None:
    X, y = streams.chessboard(2000, 0)
    assert X.min() >= 0
    assert X.max() <= streams.SQUARES
    inside = np.floor(X).astype(int)
    assert np.array_equal(y, (inside[:, 0] + inside[:, 1]) % 2)
    data = streams.load_stream(streams.MADE, "ovo", 100)
    assert (data.C, data.gamma) == streams.VALIDATED[streams.MADE]
    assert len(data.y) == 100


def test_experiment_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(igel_online, "load_stream", small_stream)
    arguments = ["--data", "chessboard", "--data", "satimage", "--machine", "ovo", "--machine", "ww", "--seeds", "1"]
    result = CliRunner().invoke(igel_online.main, [*arguments, "--out", str(tmp_path)])
    assert "944, 98.91%, 83,686" in result.output, result.output
    rows = json.loads((tmp_path / "igel_online.json").read_text())["rows"]
    assert len(rows) == 3 * 4
    assert all(row["finalize_apart"] <= 1e-5 for row in rows)


def test_experiment_says_what_does_not_hold() -> None:
    row = igel_online.Row("chessboard", "ovo", "batch", 10, 0.99, 100.0, 0.0)
    good = [
        row,
        replace(row, selection="first-order", n_support=30, dual=60.0),
        replace(row, selection="second-order", n_support=20, accuracy=0.98, dual=80.0),
    ]
    assert igel_online.failures(good) == []
    for change, text in (
        ({"dual": 50.0}, "lower dual"),
        ({"n_support": 31}, "more support vectors"),
        ({"accuracy": 0.96}, "below the batch's accuracy"),
        ({"finalize_apart": 1e-4}, "from the batch's dual"),
    ):
        found = igel_online.failures([*good[:2], replace(good[2], **change)])
        assert len(found) == 1
        assert text in found[0]


def test_curves_have_the_primal_of_the_certificate() -> None:
    data = small_stream("banana", "ovo")
    clf = SVC(C=data.C, gamma=data.gamma, tol=1e-6).fit(data.X, data.y)
    assert igel_curves.primal(clf, data) == pytest.approx(clf.certificate_.primal, rel=1e-9)


def test_curves_see_the_same_rows_in_other_orders() -> None:
    settings = Settings((streams.MADE,), quick=True)
    one, two = (igel_curves.stream_of(streams.MADE, settings, seed) for seed in (0, 1))
    assert not np.array_equal(one.X, two.X)
    assert np.array_equal(np.sort(one.X, axis=0), np.sort(two.X, axis=0))


def test_curves_on_the_wrong_side_are_an_error() -> None:
    settings = Settings((streams.MADE,), quick=True, splits=1)
    cells: Cells = {task.key: task.run() for task in igel_curves.plan(settings)}
    report = igel_curves.report(cells, settings)
    assert report.holds
    assert any("second-order | " in line and "0.9202, 1.579" in line for line in report.lines)
    best = cells[streams.MADE, "batch", "0"]
    for quantity, value in (("dual", 1.001 * best["primal"]), ("primal", 0.999 * best["dual"])):
        key = (streams.MADE, "random", "0")
        curve = [*cells[key][quantity][:-1], value]
        report = igel_curves.report(cells | {key: cells[key] | {quantity: curve}}, settings)
        assert not report.holds
        assert any("fails for chessboard random 0" in line for line in report.lines)


def test_curves_that_the_limit_ends_are_told() -> None:
    result = CliRunner().invoke(igel_curves.main, ["--quick", "--splits", "1", "--limit", "1e-9"])
    assert "Ended by the limit of 1e-09 s: chessboard batch 0, chessboard first-order 0" in result.output, result.output
    assert "| chessboard |" not in result.output  # shares of an optimum that is not known


def test_benchmark_runs_and_judges(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(online, "load_stream", small_stream)
    monkeypatch.setattr(online, "PIECE", 40)
    result = CliRunner().invoke(online.main, ["--data", "banana", "--data", "letter", "--machine", "ww"])
    assert "| banana | ww | 160 |" in result.output, result.output
    row = online.measure(small_stream("letter", "ww"), "ww")
    fast = replace(row, sgd_accuracy=0.0, refit_seconds=20 * row.online_seconds, peer_seconds=20 * row.online_seconds)
    assert online.failures([fast]) == []
    assert "is not above SGD's" in online.failures([replace(row, sgd_accuracy=1.0)])[0]
    slow = replace(fast, refit_seconds=2 * row.online_seconds)  # our own fits are information, not a promise
    assert online.failures([slow]) == []
    assert any("2.0 to 20.0 times as fast as our own fits" in line for line in online.render([slow, fast], []))
    slow = replace(fast, peer_seconds=3 * row.online_seconds)
    assert "3.0 times as fast as scikit-learn's" in online.failures([slow])[0]


def test_long_stream_keeps_what_it_needs() -> None:
    lines = online.long_stream(10_000)
    slots = [int(line.split("|")[3].replace(",", "")) for line in lines[2:]]
    assert len(slots) == 10
    assert slots[-1] <= slots[4] + 64
