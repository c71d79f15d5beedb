"""compare_machines: every row agrees with a separate search, and the recommendation follows its rule."""

from __future__ import annotations

import csv
import io
import json
import math
import sys
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console
from sklearn.datasets import load_iris
from sklearn.metrics import f1_score
from sklearn.model_selection import GridSearchCV, StratifiedKFold

from multimargin import MACHINES, SVC, SVCCV, MachineComparison, compare_machines
from multimargin.model_selection import compare
from multimargin.model_selection.comparison import MachineRow, recommend, within_one_error

CS, GAMMAS = [0.25, 4.0], [0.02, 0.5]


def noisy_iris() -> tuple[Any, Any]:
    X, y = load_iris(return_X_y=True)
    return X + np.random.default_rng(0).normal(0.0, 0.5, X.shape), y


X, Y = noisy_iris()


@pytest.fixture(scope="module")
def comparison() -> MachineComparison:
    return compare_machines(
        X[::2], Y[::2], machines=("ovo", "ww"), Cs=CS, gammas=GAMMAS, cv=3, scoring="f1_macro", X_test=X, y_test=Y
    )


def make_row(name: str, scores: Any, *, cost: float = 1.0, n_support: int = 10, converged: bool = True) -> MachineRow:
    mean = float(np.mean(scores))
    return MachineRow(name, mean, float(np.std(scores)), None, 9.0, cost, 0.0, n_support, 2.0, 0.5, converged, scores)


def table(*rows: MachineRow) -> MachineComparison:
    advice = recommend(rows, "accuracy")
    return MachineComparison(rows, "accuracy", 2, advice.best, advice.machine, advice.text)


def test_rows_are_those_of_separate_searches(comparison: MachineComparison) -> None:
    assert [row.machine for row in comparison.rows] == ["ovo", "ww"]
    assert (comparison.metric, comparison.n_splits) == ("f1_macro", 3)
    for row in comparison.rows:
        peer = GridSearchCV(
            SVC(multi_class=row.machine), {"C": CS, "gamma": GAMMAS}, cv=StratifiedKFold(3), scoring="f1_macro"
        ).fit(X[::2], Y[::2])
        folds = [peer.cv_results_[f"split{fold}_test_score"][peer.best_index_] for fold in range(3)]
        np.testing.assert_allclose(row.fold_scores, folds)
        assert {"C": row.C, "gamma": row.gamma} == peer.best_params_
        assert row.mean_score == pytest.approx(peer.best_score_)
        assert row.std_score == pytest.approx(np.std(folds))
        assert row.test_score == pytest.approx(f1_score(Y, peer.predict(X), average="macro"))
        assert row.n_support == len(peer.best_estimator_.support_)
        assert row.converged
        model = comparison.searches[row.machine].best_estimator_
        np.testing.assert_array_equal(model.predict(X), peer.predict(X))


def test_searches_are_those_of_svccv(comparison: MachineComparison) -> None:
    for name, search in comparison.searches.items():
        assert isinstance(search, SVCCV)
        assert search.get_params()["multi_class"] == name
        assert comparison.row(name).fit_seconds == search.refit_time_
        assert search.predict(X).shape == Y.shape


def test_folds_are_the_same_for_all_and_follow_the_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    original = compare._Comparing._select

    def watch(run: Any, machine: Any, max_time: Any) -> Any:
        seen.append((run.folds, max_time))
        return original(run, machine, max_time)

    monkeypatch.setattr(compare._Comparing, "_select", watch)
    options: dict[str, Any] = {"Cs": [1.0], "gammas": [0.1], "cv": 3}
    compare_machines(X, Y, machines=("ovo", "ova"), random_state=3, max_time=100.0, **options)
    compare_machines(X, Y, machines=("ovo",), **options)
    assert seen[0][0] is seen[1][0]
    for seed, folds in ((3, seen[0][0]), (None, seen[2][0])):
        expected = StratifiedKFold(3, shuffle=seed is not None, random_state=seed).split(X, Y)
        for ours, theirs in zip(folds, expected, strict=True):
            np.testing.assert_array_equal(ours[1], theirs[1])
    assert 49 < seen[0][1] <= 50 < seen[1][1] <= 100  # the second gets all that the first left
    assert seen[2][1] is None


def test_weights_and_machines_of_ones_own() -> None:
    weight = np.where(Y == 0, 1.0, 3.0)
    result = compare_machines(X, Y, machines=[MACHINES["ww"]], Cs=[1.0], gammas=[0.1], cv=2, sample_weight=weight)
    assert [row.machine for row in result.rows] == ["ww"]
    expected = SVC(C=1.0, gamma=0.1, multi_class="ww").fit(X, Y, weight)
    np.testing.assert_allclose(
        result.searches["ww"].best_estimator_.decision_function(X), expected.decision_function(X), atol=1e-2
    )


def test_within_one_standard_error_of_the_differences() -> None:
    assert within_one_error((0.9, 0.8), (0.9, 0.8))
    assert within_one_error((0.9, 0.8, 0.7), (0.8, 0.9, 0.65))
    assert not within_one_error((0.9, 0.8, 0.7), (0.89, 0.79, 0.69))  # a small difference, but in every fold
    assert not within_one_error((0.85, 0.8, 0.79, 0.84), (0.8, 0.8, 0.8, 0.8))  # 0.02, and an error of 0.015
    one = np.zeros(10)
    one[0] = 0.1
    assert within_one_error(one, np.zeros(10))  # mean and error are equal up to rounding
    assert within_one_error((0.9,), (0.9,))
    assert not within_one_error((0.9,), (0.89,))
    assert within_one_error((0.9, 0.8, math.nan), (0.8, 0.9, 0.1))
    assert not within_one_error((math.nan,), (0.9,))


def test_the_best_is_taken_where_none_is_near() -> None:
    advice = recommend([make_row("ovo", (0.90, 0.80), cost=9.0), make_row("ww", (0.89, 0.79), cost=1.0)], "accuracy")
    assert (advice.best, advice.machine) == ("ovo", "ovo")
    assert advice.text == (
        "ovo has the best mean accuracy, 0.8500 over 2 folds (C=2, gamma=0.5); no other machine is within one standard "
        "error of the differences over the folds. Take ovo."
    )


def test_the_cheapest_of_the_near_is_taken() -> None:
    rows = [
        make_row("llw", (0.90, 0.80), cost=9.0),
        make_row("ovo", (0.84, 0.85), cost=1.0, n_support=50),
        make_row("ww", (0.84, 0.85), cost=1.1, n_support=5),
        make_row("mmr", (0.60, 0.50), cost=0.1, n_support=1),
    ]
    advice = recommend(rows)
    assert (advice.best, advice.machine) == ("llw", "ww")  # as fast as ovo, and fewer support vectors
    assert "; ovo and ww are within one standard error" in advice.text
    assert "Take ww: 1.1 s and 5 support vectors; ovo has 1 s and 50 support vectors" in advice.text
    slow = [*rows[:2], make_row("ww", (0.84, 0.85), cost=1.3, n_support=5), rows[3]]
    wanted = "Take ovo, the cheapest of these to train and predict: 1 s and 50 support vectors, where llw has 9 s"
    assert wanted in recommend(slow).text
    dear = [make_row("llw", (0.90, 0.80), cost=0.5, n_support=5), *rows[1:3]]
    assert recommend(dear).text.endswith("Take llw: none of them that converged is cheaper to train and predict.")


def test_a_machine_that_did_not_converge_is_not_taken_for_its_price() -> None:
    rows = [make_row("llw", (0.90, 0.80), cost=9.0), make_row("ww", (0.84, 0.85), converged=False)]
    assert recommend(rows).machine == "llw"
    swapped = [make_row("llw", (0.90, 0.80), converged=False), make_row("ww", (0.84, 0.85), cost=9.0)]
    assert recommend(swapped).machine == "ww"
    assert "; its last fit did not converge)" in recommend(swapped).text
    alone = [make_row("llw", (0.90, 0.80), converged=False)]
    assert recommend(alone).machine == "llw"
    with pytest.raises(ValueError, match="No machine has a score"):
        recommend([make_row("ww", (math.nan,))])


def test_the_words_agree_with_the_numbers() -> None:
    """A machine that is taken for its support vectors is not called the cheapest."""
    near = [make_row("ww", (0.9, 0.8), cost=1.0), make_row("cs", (0.8, 0.9), cost=1.1, n_support=5)]
    found = recommend(near, "accuracy")
    assert found.machine == "cs"
    assert "cheapest" not in found.text
    assert "Take cs: 1.1 s and 5 support vectors; ww has 1 s and 10 support vectors, which is no clear" in found.text


def test_a_search_that_was_cut_is_marked() -> None:
    cut = replace(make_row("cs", (0.5, 0.5)), finished=False)
    shown = table(make_row("ww", (0.9, 0.8)), cut)
    assert [line.split()[-1] for line in str(shown).splitlines()[2:4]] == ["whole", "cut"]
    assert "The search of cs was cut: with a higher max_time" in shown.recommendation
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match="No machine has a score"):  # and no warning of each search
            compare_machines(X, Y, machines=["ww"], Cs=[1.0], max_time=1e-9)


def test_exports(comparison: MachineComparison, tmp_path: Path) -> None:
    records = list(csv.DictReader(io.StringIO(comparison.to_csv())))
    loaded = json.loads(comparison.to_json())
    frame = comparison.to_frame()
    for row, record, entry, line in zip(
        comparison.rows, records, loaded["rows"], frame.to_dict("records"), strict=True
    ):
        assert record["machine"] == entry["machine"] == line["machine"] == row.machine
        for name in ("mean_score", "std_score", "test_score", "seconds", "C", "gamma", "n_support"):
            assert float(record[name]) == entry[name] == line[name] == getattr(row, name)
        assert tuple(entry["fold_scores"]) == row.fold_scores
        assert tuple(float(record[f"split{fold}_score"]) for fold in range(3)) == row.fold_scores
    assert loaded["recommendation"] == comparison.recommendation
    for method, name in (
        (comparison.to_csv, "a.csv"),
        (comparison.to_json, "a.json"),
        (comparison.to_markdown, "a.md"),
    ):
        text = method(tmp_path / name)
        assert (tmp_path / name).read_text(encoding="utf-8") == text
    assert len(list(tmp_path.iterdir())) == 3
    with pytest.raises(ValueError, match="is in a folder that does not exist; give the name of a file"):
        comparison.to_csv(tmp_path / "no" / "a.csv")
    with pytest.raises(ValueError, match="is a folder; give the name of a file"):
        comparison.to_csv(tmp_path)
    with pytest.raises(TypeError, match="path=3 is not a path"):
        comparison.to_csv(3)


def test_what_people_read(comparison: MachineComparison) -> None:
    lines = str(comparison).splitlines()
    assert " ".join(lines[0].split()) == "machine f1_macro spread test seconds fit, predict support vectors C gamma"
    assert len({len(line) for line in lines[:4]}) == 1
    assert f"{comparison.rows[0].mean_score:.4f}" in lines[2]
    assert lines[-1] == comparison.recommendation
    markdown = comparison.to_markdown().splitlines()
    assert markdown[1].count("---:") == 8
    assert markdown[3].startswith("| ww | ")
    target = io.StringIO()
    Console(file=target, width=80).print(comparison)
    shown = target.getvalue()
    for row in comparison.rows:
        for value in (f"{row.mean_score:.4f}", f"{row.test_score:.4f}", f"{row.seconds:.2f}", f"{row.gamma:g}"):
            assert value in shown
    assert "…" not in shown


def test_unfinished_machines_are_seen() -> None:
    unfinished = MachineRow("cs", 0.5, 0.1, None, 1.0, None, None, None, 1.0, math.nan, False, (0.5, math.nan))
    rows = (make_row("ww", (0.9, 0.8)), unfinished)
    shown = table(*rows)
    lines = str(shown).splitlines()
    assert lines[0].split()[-1] == "converged"
    assert lines[3].split()[4:] == ["-", "-", "1", "-", "no"]
    assert json.loads(shown.to_json())["rows"][1]["gamma"] is None
    assert shown.row("cs") is rows[1]
    with pytest.raises(ValueError, match="machine='ovo' was not compared; choose one of 'ww', 'cs'"):
        shown.row("ovo")


def test_names_are_shown_as_they_are() -> None:
    shown = table(make_row("<b>|[red]", (0.9, 0.8)))
    assert "<b>" not in shown._repr_html_()
    assert "&lt;b&gt;|[red]" in shown._repr_html_()
    assert r"| &lt;b&gt;\|[red] |" in shown.to_markdown()
    target = io.StringIO()
    Console(file=target, width=100).print(shown)
    assert next(line.split()[0] for line in target.getvalue().splitlines() if "0.8500" in line) == "<b>|[red]"


def test_progress_and_interrupts(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    original = compare._Comparing._select

    def interrupted(run: Any, machine: Any, max_time: Any) -> Any:
        if machine == "ww":
            raise KeyboardInterrupt
        return original(run, machine, max_time)

    monkeypatch.setattr(compare._Comparing, "_select", interrupted)
    with pytest.raises(KeyboardInterrupt) as caught:
        compare_machines(X, Y, machines=["ovo", "ww", "cs"], Cs=[1.0], gammas=[0.1], cv=2, verbose=1)
    kept: MachineComparison = caught.value.comparison  # type: ignore[attr-defined]
    assert [row.machine for row in kept.rows] == list(kept.searches) == ["ovo"]
    captured = capsys.readouterr()
    assert "ovo" in captured.err
    assert captured.out == ""
    with pytest.raises(KeyboardInterrupt) as caught:
        compare_machines(X, Y, machines=["ww"], Cs=[1.0], gammas=[0.1], cv=2)
    assert not hasattr(caught.value, "comparison")


def test_a_machine_without_time_has_no_score(monkeypatch: pytest.MonkeyPatch) -> None:
    original = compare._Comparing._select

    def select(run: Any, machine: Any, max_time: Any) -> Any:
        return SVC() if machine == "ww" else original(run, machine, max_time)

    monkeypatch.setattr(compare._Comparing, "_select", select)
    result = compare_machines(X, Y, machines=["ww", "ovo"], Cs=[1.0], gammas=[0.1], cv=2)
    assert (result.best, result.recommended) == ("ovo", "")
    assert "no recommendation, as ww has none: raise max_time" in result.recommendation
    assert [row.finished for row in result.rows] == [False, True]
    assert [line.split()[-1] for line in str(result).splitlines()[2:4]] == ["cut", "whole"]
    assert np.isnan(result.row("ww").fold_scores).tolist() == [True, True]
    assert not result.row("ww").converged
    assert str(result).splitlines()[2].split()[:3] == ["ww", "-", "-"]
    assert len(list(csv.DictReader(io.StringIO(result.to_csv())))) == 2
    with pytest.raises(ValueError, match="No machine has a score; raise max_time, or give fewer values of C and gamma"):
        compare_machines(X, Y, machines=["ww"], Cs=[1.0], gammas=[0.1], cv=2)


def test_without_pandas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="to_frame needs pandas, which is not installed; run pip install pandas"):
        table(make_row("ww", (0.9, 0.8))).to_frame()


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"machines": "ovo"}, TypeError, "machines='ovo' is one machine; give a list of them"),
        ({"machines": []}, ValueError, "is empty; name at least one machine"),
        ({"machines": ["ww", "ww"]}, ValueError, "has 'ww' twice"),
        ({"machines": ["nonsense"]}, ValueError, "nonsense"),
        ({"scoring": ["accuracy", "f1_macro"]}, ValueError, "machines are compared by one score"),
        ({"max_time": 0}, ValueError, "max_time=0 is not allowed; max_time must be a number > 0"),
        ({"X_test": X}, ValueError, "y_test=None, but the other is given"),
        ({"y_test": Y}, ValueError, "X_test=None, but the other is given"),
        ({"cv": iter(())}, ValueError, "has no folds; give a number, a splitter"),
    ],
)
def test_refused_before_any_work(
    monkeypatch: pytest.MonkeyPatch, arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    monkeypatch.setattr(compare._Comparing, "_select", lambda *_: pytest.fail("worked"))
    with pytest.raises(error, match=message):
        compare_machines(X, Y, **arguments)
