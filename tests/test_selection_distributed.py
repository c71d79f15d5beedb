"""Units on disk and in other processes: the same results, whoever computed them and whoever died on the way."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import signal
import threading
from collections.abc import Iterator
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest
from scipy import sparse

from multimargin.selection.cells import Cells, Outcome, SearchTable, Unit
from multimargin.selection.distribute import leaves_this_machine, local, through_joblib
from multimargin.selection.resume import ResumeDirectory, fingerprint
from multimargin.selection.strategies import run_search
from separate_fits import Problem, Result, die, evaluate_gamma, evaluate_unit, make_problem, wait_to_be_killed

CS = np.array([0.5, 2.0, 8.0])
GAMMAS = np.array([0.1, 0.5])


@pytest.fixture(scope="module")
def problem() -> Problem:
    return make_problem()


@pytest.fixture(scope="module")
def expected(problem: Problem) -> SearchTable:
    return run_search("grid", problem, CS, GAMMAS, local(evaluate_gamma))


def _same(table: SearchTable, expected: SearchTable) -> None:
    for name in ("Cs", "gammas", "asked", "stopped", "n_support", "n_iter", "converged"):
        np.testing.assert_array_equal(getattr(table, name), getattr(expected, name), err_msg=name)
    np.testing.assert_array_equal(table.scores["score"], expected.scores["score"])


def _open(path: Path, problem: Problem) -> ResumeDirectory:
    return ResumeDirectory.open(path, problem, Result)


def _refuse(*_: Any) -> Any:
    raise AssertionError("this was computed before")


# --- on disk ---------------------------------------------------------------------------------------------------------


def test_a_unit_comes_back_as_it_was(problem: Problem, tmp_path: Path) -> None:
    directory = _open(tmp_path / "new" / "search", problem)
    outcome = evaluate_unit(problem, 0.1, 2, CS)
    scores = outcome.scores | {"a/b ä": np.array([np.nan, 1 / 3, -0.0])}
    directory.save(replace(outcome, scores=scores))  # type: ignore[type-var]
    back = directory.load(Unit(0.1, 2, CS))
    assert back is not None
    assert list(back.scores) == ["score", "a/b ä"]
    for each in fields(Result):
        if each.name != "scores":
            value = getattr(outcome, each.name)
            np.testing.assert_array_equal(getattr(back, each.name), value)
            assert np.asarray(getattr(back, each.name)).dtype == np.asarray(value).dtype
    for name, values in scores.items():
        assert back.scores[name].tobytes() == values.tobytes()
    for other in (Unit(0.1, 1, CS), Unit(0.1 + 1e-17, 2, CS[:2]), Unit(np.nextafter(0.1, 1), 2, CS)):
        assert directory.load(other) is None


def test_a_search_goes_on_where_it_was(problem: Problem, expected: SearchTable, tmp_path: Path) -> None:
    def three_then_stop(part: Any, gamma: float, folds: list[int], Cs: Any) -> Iterator[Outcome]:
        if gamma == GAMMAS[1]:
            raise KeyboardInterrupt
        yield from evaluate_gamma(part, gamma, folds, Cs)

    with pytest.raises(KeyboardInterrupt):
        run_search("grid", problem, CS, GAMMAS, local(three_then_stop, _open(tmp_path, problem)))
    asked = []

    def counted(part: Any, gamma: float, folds: list[int], Cs: Any) -> list[Outcome]:
        asked.append((gamma, folds))
        return evaluate_gamma(part, gamma, folds, Cs)

    _same(run_search("grid", problem, CS, GAMMAS, local(counted, _open(tmp_path, problem))), expected)
    assert asked == [(0.5, [0, 1, 2])]
    _same(run_search("grid", problem, CS, GAMMAS, local(_refuse, _open(tmp_path, problem))), expected)
    _same(
        run_search("grid", problem, CS, GAMMAS, through_joblib(_refuse, directory=_open(tmp_path, problem))), expected
    )
    assert not list(tmp_path.glob(".*"))


def test_folds_that_an_interrupt_brings_along_are_kept(problem: Problem, tmp_path: Path) -> None:
    def two_of_three(part: Any, gamma: float, folds: list[int], Cs: Any) -> list[Outcome]:
        interrupt = KeyboardInterrupt()
        interrupt.units = evaluate_gamma(part, gamma, folds[:2], Cs)  # type: ignore[attr-defined]
        raise interrupt

    cells = Cells(3)
    with pytest.raises(KeyboardInterrupt):
        run_search("grid", problem, CS, GAMMAS, local(two_of_three, _open(tmp_path, problem)), cells=cells)
    assert [outcome.fold for outcome in cells.outcomes] == [0, 1]
    assert len(list(tmp_path.glob("unit-*.json"))) == 2


def test_rounds_on_fewer_rows_are_not_mistaken_for_the_search(problem: Problem, tmp_path: Path) -> None:
    directory = _open(tmp_path, problem)
    half = replace(problem, folds=tuple((train[::2], test) for train, test in problem.folds))
    list(local(evaluate_gamma, directory)(half, [Unit(0.1, 0, CS)]))
    assert directory.load(Unit(0.1, 0, CS)) is None
    assert directory.at(half).load(Unit(0.1, 0, CS)) is not None


def test_a_stopped_unit_is_done_again(problem: Problem, tmp_path: Path) -> None:
    directory = _open(tmp_path, problem)
    outcome = evaluate_unit(problem, 0.1, 0, CS)
    directory.save(replace(outcome, stopped=np.array([False, False, True])))  # type: ignore[type-var]
    assert directory.load(Unit(0.1, 0, CS)) is None


@pytest.mark.parametrize("harm", ["cut", "other", "no json", "bad json", "pickle"])
def test_a_damaged_unit_counts_as_missing(problem: Problem, tmp_path: Path, harm: str) -> None:
    directory = _open(tmp_path, problem)
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


class _Harm:
    """Unpickling it makes a directory."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.path),)


def test_nothing_is_unpickled(problem: Problem, tmp_path: Path) -> None:
    directory = _open(tmp_path / "search", problem)
    directory.save(evaluate_unit(problem, 0.1, 0, CS))
    (npz,) = directory.path.glob("*.npz")
    with np.load(npz) as file:
        arrays: dict[str, Any] = dict(file)
    np.savez(npz, **arrays | {"n_iter": np.array([_Harm(tmp_path / "harm")], dtype=object)})
    note = npz.with_suffix(".json")
    told = json.loads(note.read_text()) | {"digest": hashlib.sha256(npz.read_bytes()).hexdigest()}
    note.write_text(json.dumps(told))
    assert directory.load(Unit(0.1, 0, CS)) is None
    assert not (tmp_path / "harm").exists()


def test_a_wrong_directory_is_refused(problem: Problem, tmp_path: Path) -> None:
    _open(tmp_path / "here", problem)
    _open(tmp_path / "here", problem)
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
            _open(tmp_path / "here", other)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter.txt").write_text("mine")
    with pytest.raises(ValueError, match=r"resume='.*full' is not empty and holds no search; give an empty directory"):
        _open(tmp_path / "full", problem)
    with pytest.raises(ValueError, match=r"resume='.*letter.txt' is a file; give a directory"):
        _open(tmp_path / "full" / "letter.txt", problem)


def test_what_does_not_change_scores_does_not_change_the_fingerprint(problem: Problem) -> None:
    same = replace(problem, params={"verbose": 1, "max_time": 3.0, "cache_size": 100})
    assert fingerprint(same) == fingerprint(problem)
    by_function = replace(problem, scorers={"own": evaluate_unit, "object": object()})
    assert fingerprint(by_function) == fingerprint(
        replace(by_function, scorers={"object": object(), "own": evaluate_unit})
    )


# --- in other processes ----------------------------------------------------------------------------------------------


@contextmanager
def _killer(directory: Path) -> Iterator[list[int]]:
    """Kill the process that says it is there, once."""
    killed: list[int] = []
    ended = threading.Event()

    def wait() -> None:
        while not ended.wait(0.02):
            told = directory / "pid"
            if told.exists() and told.read_text().endswith("\n"):
                killed.append(int(told.read_text().split()[0]))
                os.kill(killed[0], signal.SIGKILL)
                return

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    yield killed
    ended.set()
    thread.join()


def _survive_a_kill(problem: Problem, expected: SearchTable, tmp_path: Path, n_jobs: int | None) -> list[str]:
    """Run with a worker that is killed; returns the units that were done after that, in order."""
    notes = tmp_path / "notes"
    notes.mkdir()
    evaluate = through_joblib(
        partial(wait_to_be_killed, str(notes)), n_jobs=n_jobs, directory=_open(tmp_path / "search", problem)
    )
    with _killer(notes) as killed:
        table = run_search("grid", problem, CS, GAMMAS, evaluate)
    assert len(killed) == 1
    _same(table, expected)
    _same(run_search("grid", problem, CS, GAMMAS, local(_refuse, _open(tmp_path / "search", problem))), expected)
    return (notes / "done").read_text().splitlines()


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_processes_give_the_same(problem: Problem, expected: SearchTable, tmp_path: Path, n_jobs: int) -> None:
    evaluate = through_joblib(evaluate_unit, n_jobs=n_jobs, directory=_open(tmp_path, problem))
    _same(run_search("grid", problem, CS, GAMMAS, evaluate), expected)
    assert len(list(tmp_path.glob("unit-*.json"))) == 6
    assert not leaves_this_machine()


def test_what_a_lost_worker_had_written_is_not_done_again(
    problem: Problem, expected: SearchTable, tmp_path: Path
) -> None:
    directory = _open(tmp_path, problem)
    asked: list[tuple[float, int]] = []

    def lost_after_writing(part: Any, gamma: float, fold: int, Cs: Any) -> Outcome:
        asked.append((gamma, fold))
        outcome = evaluate_unit(part, gamma, fold, Cs)
        if len(asked) == 3:
            directory.save(outcome)
            raise BrokenProcessPool
        return outcome

    evaluate = through_joblib(lost_after_writing, n_jobs=1, directory=directory)
    _same(run_search("grid", problem, CS, GAMMAS, evaluate), expected)
    assert len(asked) == len(set(asked)) == 6


def test_a_process_that_dies_costs_no_finished_unit(problem: Problem, expected: SearchTable, tmp_path: Path) -> None:
    done = _survive_a_kill(problem, expected, tmp_path, 2)
    assert len(set(done)) == 6


def test_a_unit_that_kills_every_process_ends_the_search(problem: Problem, tmp_path: Path) -> None:
    evaluate = through_joblib(die, n_jobs=2, directory=_open(tmp_path, problem), retries=1)
    with pytest.raises(
        RuntimeError, match=r"Workers died 2 times with . units of the search left.*set cache_size"
    ) as info:
        run_search("grid", problem, CS, GAMMAS, evaluate)
    assert str(tmp_path) in str(info.value)


def test_an_error_of_the_problem_is_not_tried_again(problem: Problem) -> None:
    wrong = replace(problem, params={"tol": -1.0})
    with pytest.raises(ValueError, match=r"^tol=-1\.0 is not allowed"):
        run_search("grid", wrong, CS, GAMMAS, through_joblib(evaluate_unit, n_jobs=2))


@pytest.fixture(scope="module")
def dask_client() -> Iterator[Any]:
    distributed = pytest.importorskip("distributed", reason="needs the extra 'dask': pip install 'multimargin[dask]'")
    with (
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            host="127.0.0.1",
            dashboard_address=None,
            silence_logs=50,
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def test_dask_gives_the_same(dask_client: Any, problem: Problem, expected: SearchTable, tmp_path: Path) -> None:
    with joblib.parallel_config("dask"):
        assert leaves_this_machine()
        evaluate = through_joblib(evaluate_unit, directory=_open(tmp_path, problem))
        _same(run_search("grid", problem, CS, GAMMAS, evaluate), expected)
        wrong = replace(problem, params={"tol": -1.0})
        with pytest.raises(ValueError, match=r"^tol=-1\.0 is not allowed"):
            run_search("grid", wrong, CS, GAMMAS, through_joblib(evaluate_unit))


def test_a_dask_worker_that_is_killed_costs_its_unit_only(
    dask_client: Any, problem: Problem, expected: SearchTable, tmp_path: Path
) -> None:
    with joblib.parallel_config("dask"):
        done = _survive_a_kill(problem, expected, tmp_path, None)
    assert sorted(done) == sorted({*done})  # no other unit was done twice
    assert len(done) == 6
    dask_client.wait_for_workers(2, timeout=30)


def test_a_unit_that_kills_dask_workers_ends_the_search(dask_client: Any, problem: Problem, tmp_path: Path) -> None:
    dask = pytest.importorskip("dask")
    few = replace(problem, folds=problem.folds[:2])
    with dask.config.set({"distributed.scheduler.allowed-failures": 0}), joblib.parallel_config("dask"):
        dask_client.run_on_scheduler(_allow_no_failure)
        evaluate = through_joblib(die, directory=_open(tmp_path, few), retries=0)
        with pytest.raises(RuntimeError, match=r"Workers died 1 times with 2 units of the search left"):
            run_search("grid", few, CS, GAMMAS, evaluate)
    # Those that harm nobody were finished.
    assert len(list(tmp_path.glob("unit-0-*.json"))) == 2


def _allow_no_failure(dask_scheduler: Any = None) -> None:
    dask_scheduler.allowed_failures = 0


@pytest.fixture
def ray_cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setenv("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")  # read by the import: stay on loopback
    ray = pytest.importorskip("ray", reason="needs the extra 'ray': pip install 'multimargin[ray]'")
    joblib_of_ray = pytest.importorskip("ray.util.joblib")
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))  # workers import what stands beside this file
    ray.init(
        num_cpus=2,
        include_dashboard=False,
        _node_ip_address="127.0.0.1",
        log_to_driver=False,
        logging_level="ERROR",
        object_store_memory=80_000_000,
    )
    joblib_of_ray.register_ray()
    yield ray
    ray.shutdown()


@pytest.mark.filterwarnings("ignore")
def test_ray_gives_the_same_and_survives_a_kill(
    ray_cluster: Any, problem: Problem, expected: SearchTable, tmp_path: Path
) -> None:
    assert [node["NodeManagerAddress"] for node in ray_cluster.nodes()] == ["127.0.0.1"]
    with joblib.parallel_config("ray"):
        assert leaves_this_machine()
        evaluate = through_joblib(evaluate_unit, directory=_open(tmp_path / "plain", problem))
        _same(run_search("grid", problem, CS, GAMMAS, evaluate), expected)
        (tmp_path / "kill").mkdir()
        done = _survive_a_kill(problem, expected, tmp_path / "kill", None)
        assert sorted(done) == sorted({*done})
        assert len(done) == 6
        wrong = replace(problem, params={"tol": -1.0})
        with pytest.raises(ValueError, match=r"^tol=-1\.0 is not allowed"):
            run_search("grid", wrong, CS, GAMMAS, through_joblib(evaluate_unit))
        few = replace(problem, folds=problem.folds[:2])
        with pytest.raises(RuntimeError, match=r"Workers died 1 times with 2 units of the search left"):
            run_search("grid", few, CS, GAMMAS, through_joblib(die, retries=0))


def test_the_data_go_to_a_worker_once(dask_client: Any, problem: Problem) -> None:
    """Six units, two workers: the problem is unpickled at most twice."""
    counted = CountedProblem(**{each.name: getattr(problem, each.name) for each in fields(Problem)})
    before = sum(dask_client.run(_unpickled).values())
    with joblib.parallel_config("dask"):
        run_search("grid", counted, CS, GAMMAS, through_joblib(evaluate_unit))
    assert 1 <= sum(dask_client.run(_unpickled).values()) - before <= 2


class CountedProblem(Problem):
    """Counts how often a process gets it."""

    n_unpickled = 0

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        CountedProblem.n_unpickled += 1


def _unpickled() -> int:
    return CountedProblem.n_unpickled
