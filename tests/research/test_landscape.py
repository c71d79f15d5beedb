"""The landscape ranks complete sets, tests all eleven machines, and lists the fits that reached a limit."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from experiments import landscape
from experiments.frame import Cell, Cells, Settings
from multimargin import SVC

NAMES = tuple(f"set{n}" for n in range(12))


def cell_of(accuracy: float) -> Cell:
    measured: Cell = {name: [1.0, 1.0] for name, _, _ in landscape.QUANTITIES}
    return measured | {"n_classes": 3, "accuracy": [accuracy - 1, accuracy + 1], "ended": ""}


def ordered(names: tuple[str, ...] = NAMES) -> Cells:
    """On every set each machine is a point worse than the one before it."""
    return {(name, machine): cell_of(90.0 - at) for name in names for at, machine in enumerate(landscape.NAMES)}


def test_all_machines_are_there() -> None:
    assert len(landscape.NAMES) == 11
    assert len(set(landscape.NAMES)) == 11


def test_large_sets_have_fewer_splits(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings(("iris",), quick=True, splits=5)
    assert len(landscape.parts_of("iris", settings)) == 5
    monkeypatch.setattr(landscape, "MANY_ROWS", 149)
    assert len(landscape.parts_of("iris", settings)) == landscape.FEW_SPLITS
    assert len(landscape.parts_of("iris", Settings(("iris",), quick=True, splits=2))) == 2
    cell = landscape.evaluate("iris", "ovo", settings)
    assert cell["n_splits"] == len(cell["accuracy"]) == landscape.FEW_SPLITS


def test_sets_whose_test_part_is_another_problem_are_split(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings(("digits",), quick=True, splits=4)
    assert len(landscape.parts_of("digits", settings)) == 1
    monkeypatch.setattr(landscape, "DRAWN", ("digits",))
    assert [len(y) for _, y, _, _ in landscape.parts_of("digits", settings)] == [280] * 4


def test_half_a_search_has_no_model(monkeypatch: pytest.MonkeyPatch) -> None:
    settings, found = Settings(("iris",), quick=True, splits=2, limit=60.0), {"C": 1.0, "gamma": 1.0}
    for marked, seconds in ((True, 59.0), (False, 60.01)):  # nested grids may miss a stage that no cell is marked for
        half = SimpleNamespace(stopped_=np.array([False, marked]), best_params_=found, search_seconds_=seconds)
        monkeypatch.setattr(landscape, "search_for", lambda *_, half=half: half)
        assert landscape.evaluate("iris", "ww", settings) == {"n_classes": 3, "n_splits": 2, "ended": "search"}
    whole = SimpleNamespace(stopped_=np.zeros(2, dtype=bool), best_params_=found, search_seconds_=59.0)
    monkeypatch.setattr(landscape, "search_for", lambda *_: whole)
    assert landscape.evaluate("iris", "ww", settings)["ended"] == ""


def test_what_the_limit_ends() -> None:
    """A stopped search has no model; a stopped fit has one, and is listed."""
    with pytest.warns(ConvergenceWarning):
        cell = landscape.evaluate("iris", "ww", Settings(("iris",), quick=True, splits=2, limit=1e-9))
    assert cell == {"n_classes": 3, "n_splits": 2, "ended": "search"}
    part = landscape.parts_of("iris", Settings(("iris",), quick=True, splits=1))[0]
    with pytest.warns(ConvergenceWarning):
        assert landscape.measure(SVC(multi_class="ww", C=1e4, max_iter=1), part)["ended"]
    assert not landscape.measure(SVC(multi_class="ww"), part)["ended"]


def test_binary_sets_second_codings_and_incomplete_sets_are_not_ranked() -> None:
    names = ("a", "b", "two", "half", "car_onehot")
    cells = ordered(names)
    for key in cells:
        if key[0] == "two":
            cells[key]["n_classes"] = 2
    cells["half", "ww"] = {"ended": "search", "n_classes": 3}
    settings = Settings(names)
    assert landscape.ranked_sets(cells, settings) == ["a", "b"]
    lines = landscape.report(cells, settings).lines
    assert "Sets that are ranked: a, b." in lines
    assert any(line.startswith("| two | 90.00 |") for line in lines)  # in the tables all the same
    assert "Ended by the limit of 300 s: half ww (search)." in lines


def test_eleven_machines_are_tested_by_the_strongest_procedure() -> None:
    lines = landscape.report(ordered(), Settings(NAMES)).lines
    header = next(line for line in lines if line.startswith("| pair |"))
    assert "shaffer" in header
    assert "bergmann-hommel" in header
    first, last = landscape.NAMES[0], landscape.NAMES[-1]
    (verdict,) = [line for line in lines if line.startswith("Different at 5 percent by bergmann-hommel: ")]
    assert f"{first} before {last}" in verdict
    assert f"{last} before" not in verdict
    equal: Cells = {key: cell_of(90.0) for key in ordered()}
    lines = landscape.report(equal, Settings(NAMES)).lines
    assert "Different at 5 percent by bergmann-hommel: no pair." in lines


def test_sets_that_a_limit_touched_are_ranked_twice() -> None:
    cells = ordered()
    assert not any("where the limit ended nothing" in line for line in landscape.report(cells, Settings(NAMES)).lines)
    cells["set0", "llw"]["ended"] = "1 of 2 fits"
    lines = landscape.report(cells, Settings(NAMES)).lines
    (again,) = [line for line in lines if "where the limit ended nothing" in line]
    assert "set0" not in again
    assert "set11" in again
    assert lines[lines.index(again) + 2].startswith("Average ranks over 11 data sets")


def test_the_papers_machines_are_ranked_among_themselves() -> None:
    lines = landscape.report(ordered(), Settings(NAMES)).lines
    at = lines.index("The machines of DGI11 among themselves:")
    expected = sorted(landscape.PAPERS["DGI11"], key=landscape.NAMES.index)
    ranks = ", ".join(f"{machine} {rank}.00" for rank, machine in enumerate(expected, start=1))
    assert lines[at + 2] == f"Average ranks over 12 data sets (1 is the best): {ranks}."
    assert "The machines of HL02 among themselves:" in lines


def test_answers_count() -> None:
    cells = ordered()
    for name in NAMES[:5]:
        cells[name, "llw"]["accuracy"] = [99.0]
        cells[name, "ww"]["support_vectors"] = [0.5]
        cells[name, "ovo"]["training_seconds"] = [2.0]
        cells[name, "dag"]["training_seconds"] = [2.0 if name == NAMES[0] else 1.0]
    text = "\n".join(landscape.answers(list(NAMES), cells, Settings(NAMES)))
    assert "llw has the highest accuracy on 5 of 12 sets" in text
    assert "fewer than ovo on 5 " in text
    assert "are fastest on 11 of 12 sets" in text


def test_machines_are_summed_up_beside_ovo() -> None:
    cells = ordered()
    for name in NAMES:
        cells[name, "ww"]["support_vectors"] = [0.25, 0.75]
    lines = landscape.summary(list(NAMES), cells, Settings(NAMES))
    at = landscape.NAMES.index("ww")
    assert f"| ww | {at + 1}.00 | -{at}.00 | 0.5 | 1 | 1 | 1 |" in lines
    assert lines[4].startswith("| ovo | 1.00 | +0.00 | 1 |")  # the best rank first
