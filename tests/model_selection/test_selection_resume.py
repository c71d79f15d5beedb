"""Units on disk: stored units are read back exactly, and damaged ones are not used."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from multimargin.model_selection.distribute import local, through_joblib
from multimargin.model_selection.evaluation import UnitResult
from multimargin.model_selection.resume import _sealed, _unsealed, fingerprint
from multimargin.model_selection.search_table import Cells, SearchTable, Unit, UnitScores
from multimargin.model_selection.strategies import run_search
from support.separate_fits import (
    CS,
    GAMMAS,
    Problem,
    assert_same,
    evaluate_gamma,
    evaluate_unit,
    open_directory,
    refuse,
)


def test_a_unit_comes_back_as_it_was(problem: Problem, tmp_path: Path) -> None:
    directory = open_directory(tmp_path / "new" / "search", problem)
    outcome = evaluate_unit(problem, 0.1, 2, CS)
    scores = outcome.scores | {"a/b ä": np.array([np.nan, 1 / 3, -0.0])}
    directory.save(replace(outcome, scores=scores))  # type: ignore[type-var]
    back = directory.load(Unit(0.1, 2, CS))
    assert back is not None
    assert list(back.scores) == ["score", "a/b ä"]
    for each in fields(UnitResult):
        if each.name != "scores":
            value = getattr(outcome, each.name)
            np.testing.assert_array_equal(getattr(back, each.name), value)
            assert np.asarray(getattr(back, each.name)).dtype == np.asarray(value).dtype
    for name, values in scores.items():
        assert back.scores[name].tobytes() == values.tobytes()
    for other in (Unit(0.1, 1, CS), Unit(0.1 + 1e-17, 2, CS[:2]), Unit(np.nextafter(0.1, 1), 2, CS)):
        assert directory.load(other) is None


def test_a_search_goes_on_where_it_was(problem: Problem, expected: SearchTable, tmp_path: Path) -> None:
    def three_then_stop(part: Any, gamma: float, folds: list[int], Cs: Any) -> Iterator[UnitScores]:
        if gamma == GAMMAS[1]:
            raise KeyboardInterrupt
        yield from evaluate_gamma(part, gamma, folds, Cs)

    with pytest.raises(KeyboardInterrupt):
        run_search("grid", problem, CS, GAMMAS, local(three_then_stop, open_directory(tmp_path, problem)))
    asked = []

    def counted(part: Any, gamma: float, folds: list[int], Cs: Any) -> list[UnitScores]:
        asked.append((gamma, folds))
        return evaluate_gamma(part, gamma, folds, Cs)

    assert_same(run_search("grid", problem, CS, GAMMAS, local(counted, open_directory(tmp_path, problem))), expected)
    assert asked == [(0.5, [0, 1, 2])]
    assert_same(run_search("grid", problem, CS, GAMMAS, local(refuse, open_directory(tmp_path, problem))), expected)
    assert_same(
        run_search("grid", problem, CS, GAMMAS, through_joblib(refuse, directory=open_directory(tmp_path, problem))),
        expected,
    )
    assert not list(tmp_path.glob(".*"))


def test_folds_that_an_interrupt_brings_along_are_kept(problem: Problem, tmp_path: Path) -> None:
    def two_of_three(part: Any, gamma: float, folds: list[int], Cs: Any) -> list[UnitScores]:
        interrupt = KeyboardInterrupt()
        interrupt.units = evaluate_gamma(part, gamma, folds[:2], Cs)  # type: ignore[attr-defined]
        raise interrupt

    cells = Cells(3)
    with pytest.raises(KeyboardInterrupt):
        run_search("grid", problem, CS, GAMMAS, local(two_of_three, open_directory(tmp_path, problem)), cells=cells)
    assert [outcome.fold for outcome in cells.outcomes] == [0, 1]
    assert len(list(tmp_path.glob("unit-*.json"))) == 2


def test_rounds_on_fewer_rows_are_not_mistaken_for_the_search(problem: Problem, tmp_path: Path) -> None:
    directory = open_directory(tmp_path, problem)
    half = replace(problem, folds=tuple((train[::2], test) for train, test in problem.folds))
    list(local(evaluate_gamma, directory)(half, [Unit(0.1, 0, CS)]))
    assert directory.load(Unit(0.1, 0, CS)) is None
    assert directory.at(half).load(Unit(0.1, 0, CS)) is not None


def test_a_stopped_unit_is_done_again(problem: Problem, tmp_path: Path) -> None:
    directory = open_directory(tmp_path, problem)
    outcome = evaluate_unit(problem, 0.1, 0, CS)
    directory.save(replace(outcome, stopped=np.array([False, False, True])))  # type: ignore[type-var]
    assert directory.load(Unit(0.1, 0, CS)) is None


@pytest.mark.parametrize("harm", ["cut", "other", "no json", "bad json", "pickle"])
def test_a_damaged_unit_counts_as_missing(problem: Problem, tmp_path: Path, harm: str) -> None:
    directory = open_directory(tmp_path, problem)
    directory.save(evaluate_unit(problem, 0.1, 0, CS))
    (npz,) = tmp_path.glob("*.npz")
    note = npz.with_suffix(".json")
    if harm == "cut":
        npz.write_bytes(npz.read_bytes()[:-20])
    elif harm == "other":
        npz.write_bytes(npz.read_bytes().replace(b"n_support", b"n_suppors"))
    elif harm == "no json":
        note.unlink()
    elif harm == "bad json":
        note.write_text(note.read_text()[:-5])
    else:
        npz.write_bytes(pickle.dumps("harmful"))
    assert directory.load(Unit(0.1, 0, CS)) is None
    directory.save(evaluate_unit(problem, 0.1, 0, CS))
    assert directory.load(Unit(0.1, 0, CS)) is not None


def _reseal(note: Path, change: Any) -> None:
    """Write a unit's json with other contents, and a valid digest."""
    content = _unsealed(note.read_bytes())
    assert content is not None
    note.write_bytes(_sealed(change(content)))


def _rewritten(problem: Problem, path: Path, **changes: Any) -> Any:
    """Load a unit that was written with other fields."""
    directory = open_directory(path, problem)
    outcome: Any = evaluate_unit(problem, 0.1, 0, CS)
    directory.save(replace(outcome, **changes))
    return directory.load(Unit(0.1, 0, CS))


def test_a_unit_with_wrong_fields_counts_as_missing(problem: Problem, tmp_path: Path) -> None:
    good: Any = evaluate_unit(problem, 0.1, 0, CS)
    assert _rewritten(problem, tmp_path / "good") is not None
    wrong: list[dict[str, Any]] = [
        {"n_support": good.n_support[:2]},
        {"n_support": good.n_support.astype(np.float64)},
        {"n_iter": -good.n_iter},
        {"fit_seconds": np.array([0.1, np.nan, 0.1])},
        {"converged": good.converged.astype(np.int64)},
        {"converged": "yes"},
        {"scores": {}},
        {"scores": {"score": np.ones((3, 3))}},
        {"scores": {"score": np.array(["1", "2", "3"])}},
        {"scores": 0.5},
    ]
    for index, changes in enumerate(wrong):
        assert _rewritten(problem, tmp_path / str(index), **changes) is None, changes


def test_a_json_with_wrong_content_counts_as_missing(problem: Problem, tmp_path: Path) -> None:
    directory = open_directory(tmp_path, problem)
    directory.save(evaluate_unit(problem, 0.1, 0, CS))
    (note,) = tmp_path.glob("unit-*.json")
    whole = note.read_bytes()
    changes: list[Any] = [
        lambda stored_record: {**stored_record, "values": 3},
        lambda stored_record: {**stored_record, "values": stored_record["values"] | {"more": 1}},
        lambda stored_record: {**stored_record, "values": stored_record["values"] | {"gamma": 0.2}},
        lambda stored_record: {**stored_record, "names": {"scores": 5}},
        lambda stored_record: {**stored_record, "unit": "unit-1-0"},
        lambda stored_record: {name: value for name, value in stored_record.items() if name != "digest"},
        lambda stored_record: [stored_record],
        lambda stored_record: 5,
    ]
    for index, change in enumerate(changes):
        note.write_bytes(whole)
        _reseal(note, change)
        assert directory.load(Unit(0.1, 0, CS)) is None, index
    for text in (b"", b"\xff\xfe", b"null", b"[]", b"{}", b"[" * 100_000, whole[:-1], whole + b"}", b"\0" * 50):
        note.write_bytes(text)
        assert directory.load(Unit(0.1, 0, CS)) is None, text[:20]


def test_any_flipped_bit_leaves_the_result_as_it_was(problem: Problem, tmp_path: Path) -> None:
    """Every bit of some bytes of every file: damaged units are computed again, all others are reused."""
    expected = evaluate_unit(problem, 0.1, 0, CS)
    open_directory(tmp_path, problem).save(expected)
    rng = np.random.default_rng(0)
    files = sorted(tmp_path.iterdir())
    assert [file.suffix for file in files] == [".json", ".json", ".npz"]
    for file in files:
        whole = file.read_bytes()
        places = sorted(rng.choice(len(whole), min(len(whole), 150), replace=False).tolist())
        for place in places:
            bit = int(rng.integers(8))
            file.write_bytes(whole[:place] + bytes([whole[place] ^ (1 << bit)]) + whole[place + 1 :])
            found: Any = open_directory(tmp_path, problem).load(Unit(0.1, 0, CS))
            assert found is None or found.scores["score"].tobytes() == expected.scores["score"].tobytes()
            assert (found is not None) == (file.name == "search.json"), (file.name, place, bit)
        file.write_bytes(whole)
    assert open_directory(tmp_path, problem).load(Unit(0.1, 0, CS)) is not None


def test_a_damaged_marker_does_not_open_the_door_to_another_search(problem: Problem, tmp_path: Path) -> None:
    open_directory(tmp_path, problem).save(evaluate_unit(problem, 0.1, 0, CS))
    (tmp_path / "search.json").write_bytes(b"\xff")
    (tmp_path / ".unit-0-abc.npz.1234.tmp").write_bytes(b"left by a writer that was killed")
    other = open_directory(tmp_path, replace(problem, params={"tol": 1e-4}))
    assert other.load(Unit(0.1, 0, CS)) is None
    with pytest.raises(ValueError, match="holds a search on other data, folds or parameters"):
        open_directory(tmp_path, problem)


def test_a_directory_of_another_version_is_refused(problem: Problem, tmp_path: Path) -> None:
    (tmp_path / "search.json").write_text(json.dumps({"format": 1, "fingerprint": "0" * 64}))
    with pytest.raises(ValueError, match=r"holds a search of multimargin before this format, this is .*; resume with"):
        open_directory(tmp_path, problem)
    (tmp_path / "search.json").write_bytes(_sealed({"format": 2, "version": "99.0", "fingerprint": "0" * 64}))
    with pytest.raises(ValueError, match=r"holds a search of multimargin 99\.0, this is .*; resume with that version"):
        open_directory(tmp_path, problem)


class _Harm:
    """Unpickling it makes a directory."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.path),)


def test_nothing_is_unpickled(problem: Problem, tmp_path: Path) -> None:
    directory = open_directory(tmp_path / "search", problem)
    directory.save(evaluate_unit(problem, 0.1, 0, CS))
    (npz,) = directory.path.glob("*.npz")
    with np.load(npz) as file:
        arrays: dict[str, Any] = dict(file)
    np.savez(npz, **arrays | {"n_iter": np.array([_Harm(tmp_path / "harm")], dtype=object)})
    note = npz.with_suffix(".json")
    digest = hashlib.sha256(npz.read_bytes()).hexdigest()
    _reseal(note, lambda stored_record: {**stored_record, "digest": digest})
    assert directory.load(Unit(0.1, 0, CS)) is None
    assert not (tmp_path / "harm").exists()


def test_a_wrong_directory_is_refused(problem: Problem, tmp_path: Path) -> None:
    open_directory(tmp_path / "here", problem)
    open_directory(tmp_path / "here", problem)
    X = problem.X.copy()
    X[7, 1] = np.nextafter(X[7, 1], np.inf)
    others = [
        replace(problem, X=X),
        replace(problem, X=sparse.csr_matrix(problem.X)),
        replace(problem, y=problem.y[::-1].copy()),
        replace(problem, classes=np.array(["a", "b", "d"])),
        replace(problem, sample_weight=np.ones(len(problem.y))),
        replace(problem, folds=problem.folds[:2]),
        replace(problem, params={"tol": 1e-4}),
        replace(problem, scorers={"other": None}),
    ]
    for other in others:
        with pytest.raises(
            ValueError, match=r"resume='.*here' holds a search on other data, folds or parameters; give"
        ):
            open_directory(tmp_path / "here", other)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter.txt").write_text("mine")
    with pytest.raises(ValueError, match=r"resume='.*full' is not empty and holds no search; give an empty directory"):
        open_directory(tmp_path / "full", problem)
    with pytest.raises(ValueError, match=r"resume='.*letter.txt' is a file; give a directory"):
        open_directory(tmp_path / "full" / "letter.txt", problem)


def test_what_does_not_change_scores_does_not_change_the_fingerprint(problem: Problem) -> None:
    same = replace(problem, params={"verbose": 1, "max_time": 3.0, "cache_size": 100})
    assert fingerprint(same) == fingerprint(problem)
    by_function = replace(problem, scorers={"own": evaluate_unit, "object": object()})
    assert fingerprint(by_function) == fingerprint(
        replace(by_function, scorers={"object": object(), "own": evaluate_unit})
    )
