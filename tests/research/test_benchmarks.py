"""The benchmarks: separate objectives, verdicts that can fail, interleaved runs, commands that run."""

from __future__ import annotations

import copy
import json
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from sklearn import svm
from sklearn.datasets import load_iris, make_classification

from benchmarks import agreement, figures, interrupts, measure, one_vs_one, selection, versus
from multimargin import SVC, verify
from multimargin.datasets import Benchmark

X, Y = load_iris(return_X_y=True)


def without_download(name: str) -> Benchmark:
    """A small data set under any name; "heart" has two classes."""
    kept = Y < 2 if name == "heart" else Y < 3
    return Benchmark(name, np.ascontiguousarray(X[kept]), Y[kept] + 1, None, None)


@pytest.fixture
def iris_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (agreement, figures, one_vs_one, interrupts):
        monkeypatch.setattr(module, "load_benchmark", without_download)
    monkeypatch.setattr(measure, "LEAST_SECONDS", 0.0)


@pytest.mark.parametrize("name", ["iris", "heart"])
def test_own_duals_are_those_of_verify(name: str) -> None:
    data = without_download(name)
    clf = SVC(C=3.0, gamma=0.2).fit(data.X, data.y)
    found = agreement.pair_duals(clf, data.X, data.y, 3.0, 0.2)
    expected = [part.dual for part in verify(clf, data.X, data.y).parts]
    np.testing.assert_allclose([pair.dual for pair in found], expected, rtol=1e-12)
    assert max(pair.outside for pair in found) <= agreement.ROUNDING


def test_own_duals_do_not_depend_on_the_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    peer = svm.SVC(C=3.0, gamma=0.2).fit(X, Y)
    whole = agreement.pair_duals(peer, X, Y, 3.0, 0.2)
    monkeypatch.setattr(agreement, "BLOCK", 5)
    parts = agreement.pair_duals(peer, X, Y, 3.0, 0.2)
    np.testing.assert_allclose([pair.dual for pair in parts], [pair.dual for pair in whole], rtol=1e-13)


def moved(clf: Any, change: Callable[[np.ndarray], np.ndarray]) -> Any:
    return SimpleNamespace(dual_coef_=change(clf.dual_coef_), support_=clf.support_, classes_=clf.classes_)


@pytest.mark.parametrize(
    ("change", "least"),
    [
        (lambda coef: coef * 1.5, 0.1),  # beyond C
        (lambda coef: -coef, 0.1),  # a < 0
        (lambda coef: coef * np.linspace(0.99, 1, coef.shape[1]), 1e-4),  # sum y a is not zero
    ],
)
def test_a_point_outside_is_seen(change: Callable[[np.ndarray], np.ndarray], least: float) -> None:
    clf = SVC(C=3.0, gamma=0.2).fit(X, Y)
    found = agreement.pair_duals(moved(clf, change), X, Y, 3.0, 0.2)
    assert max(pair.outside for pair in found) > least


@pytest.mark.parametrize("name", ["iris", "heart"])
@pytest.mark.parametrize(("C", "gamma"), [(1.0, "scale"), (64.0, 0.125)])
def test_agreement_with_scikit_learn(name: str, C: float, gamma: float | str) -> None:
    comparison = agreement.compare(without_download(name), C, gamma, limit=60.0)
    assert comparison.failures == []
    assert comparison.line().endswith("| ok |")


def test_verdict_names_what_fails() -> None:
    clf = SVC().fit(X, Y)
    given: dict[str, Any] = {"name": "iris", "C": 1.0, "gamma": 0.2, "n_pairs": 3, "n_rows": 5000, "ours": clf}
    given |= {"peer": SimpleNamespace(fit_status_=1)}
    good = agreement.Comparison(**given, below=1e-7, outside=1e-12, differ=5)
    assert good.failures == []
    assert "ok (peer unfinished)" in good.line()
    bad = agreement.Comparison(**given, below=2e-6, outside=1e-6, differ=6)
    assert bad.failures == ["dual too low", "not feasible", "predictions differ"]
    assert "FAILS: dual too low" in bad.line()
    assert agreement.Comparison(**given, below=np.nan, outside=0.0, differ=0).failures == ["dual too low"]


def test_agreement_ends_with_an_error_when_a_set_fails(iris_for_all: None, monkeypatch: pytest.MonkeyPatch) -> None:
    run = CliRunner().invoke(agreement.main, ["--data", "iris", "--defaults"])
    assert run.exit_code == 0
    assert "1 of 1 ok" in run.output
    monkeypatch.setattr(agreement, "BELOW", -1.0)
    run = CliRunner().invoke(agreement.main, ["--data", "iris", "--defaults"])
    assert run.exit_code == 1
    assert "0 of 1 ok" in run.output


def test_settings_are_compared_once() -> None:
    assert agreement.settings("car", None) == [(1.0, "scale")]
    assert agreement.settings("vehicle", None) == [(2.0**9, 2.0**-3), (1.0, "scale")]
    assert agreement.settings("vehicle", False) == [(2.0**9, 2.0**-3)]


def test_runs_take_turns() -> None:
    order: list[str] = []
    clock = iter([1.0, 10.0, 3.0, 30.0, 2.0, 20.0])

    def reading(run: Callable[[], Any]) -> float:
        run()
        return next(clock)

    medians = measure.in_turn({"a": lambda: order.append("a"), "b": lambda: order.append("b")}, 3, reading)
    assert order == ["a", "b"] * 3
    assert medians == {"a": 2.0, "b": 20.0}


def test_large_sets_are_run_once_with_their_own_parameters() -> None:
    assert [(case.C, case.gamma, case.large) for case in one_vs_one.Case.of("adult")] == [
        (1.0, 1 / 123, True),
        (32.0, 1 / 123, True),
    ]
    assert [(case.C, case.large) for case in one_vs_one.Case.of("letter")] == [(16.0, False)]


def test_versus_ovo_writes_what_it_prints(iris_for_all: None, tmp_path: Path) -> None:
    arguments = ["ovo", "--data", "vehicle", "--data", "iris", "--rounds", "1", "--out", str(tmp_path)]
    run = CliRunner().invoke(versus.main, arguments)
    assert run.exit_code == 0
    assert "geometric mean over vehicle:" in run.output
    rows = json.loads((tmp_path / "ovo.json").read_text())["rows"]
    assert [row["data"] for row in rows] == ["vehicle", "iris"]
    for row in rows:
        assert row["optimal"]
        assert row["ratio"]["scikit-learn"] == row["seconds"]["scikit-learn"] / row["seconds"]["multimargin"]
    assert (tmp_path / "ovo.md").read_text().strip() in run.output


def test_versus_ovo_adds_the_large_sets(iris_for_all: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(one_vs_one, "has_intelex", lambda: False)
    run = CliRunner().invoke(versus.main, ["ovo", "--data", "iris", "--large", "--out", str(tmp_path)])
    assert run.exit_code == 0
    rows = json.loads((tmp_path / "ovo.json").read_text())["rows"]
    assert [(row["data"], row["C"]) for row in rows] == [
        ("iris", 4096.0),
        *(("adult", 1.0), ("adult", 32.0), ("ijcnn1", 1.0), ("ijcnn1", 32.0)),
    ]


def test_a_peer_that_did_not_run_everywhere_has_no_mean(iris_for_all: None, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [one_vs_one.measure(one_vs_one.Case(name, 1.0, 0.5, True), 1, 60.0, False) for name in ("vehicle", "adult")]
    for kind in ("seconds", "ratio", "support_vectors"):
        rows[1][kind]["intelex64"] = 7
    monkeypatch.setattr(one_vs_one, "version", lambda package: "1.0")
    *_, header, _, first, second, mean = one_vs_one.render(rows)
    assert {header.count("|"), first.count("|"), second.count("|")} == {13}
    assert "| - |" in first
    assert "| 7.0000 | " in second
    assert "scikit-learn / ours, geometric mean over vehicle:" in mean


def test_versus_ovo_small(iris_for_all: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(one_vs_one, "SMALL_FITS", 3)
    run = CliRunner().invoke(versus.main, ["ovo", "--small"])
    assert run.exit_code == 0
    assert "| iris |" in run.output
    assert "| wine |" in run.output


def test_intelex_is_refused_where_it_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(one_vs_one, "has_intelex", lambda: False)
    run = CliRunner().invoke(versus.main, ["ovo", "--intelex"])
    assert run.exit_code == 2
    assert "scikit-learn-intelex" in run.output


def test_search_beside_grid_search(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(selection, "load_benchmark", without_download)
    monkeypatch.setattr(selection, "n_threads", lambda: 1)
    run = CliRunner().invoke(versus.main, ["selection", "--data", "iris", "--size", "3", "--out", str(tmp_path)])
    assert run.exit_code == 0, run.output
    row = json.loads((tmp_path / "selection.json").read_text())["rows"][0]
    assert row["cells"] == 9
    assert row["largest_difference"] <= 1 / 150 + 1e-9
    assert row["best"]["ours"] >= row["best"]["scikit-learn"] - 1 / 150 - 1e-9


def test_predictions_and_threads(iris_for_all: None) -> None:
    run = CliRunner().invoke(figures.main, ["predict-ovo", "--data", "iris"])
    assert run.exit_code == 0
    assert "iris, one row: model" in run.output
    run = CliRunner().invoke(figures.main, ["threads-ovo", "--data", "iris", "--pairs", "1"])
    assert run.exit_code == 0
    assert "the same bits" in run.output


@pytest.mark.parametrize("name", ["intercept_", "dual_coef_"])
def test_one_bit_is_a_difference(name: str) -> None:
    one = SVC().fit(X, Y)
    two = copy.copy(one)
    assert figures.differing_numbers(one, two) == []
    setattr(two, name, np.nextafter(getattr(one, name), np.inf))
    assert figures.differing_numbers(one, two) == [name]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("mode", ["raise", "keep"])
def test_interrupted_fit_is_reported(mode: str, capsys: pytest.CaptureFixture[str]) -> None:
    data = make_classification(6000, 20, n_informative=10, flip_y=0.4, random_state=0)  # would take minutes
    assert interrupts.interrupt(data, 1e6, 0.0, mode)
    assert "interrupted" in capsys.readouterr().out


def test_interrupt_that_comes_too_late_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    assert not interrupts.interrupt((X, Y), 1.0, 60.0, "keep")
    assert "before the signal" in capsys.readouterr().out
    assert not any(isinstance(thread, threading.Timer) for thread in threading.enumerate())  # no signal to come
