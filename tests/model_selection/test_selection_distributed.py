"""Units in other processes: the same results, even if workers die."""

from __future__ import annotations

import os
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
import pytest

from multimargin.model_selection import dask_units
from multimargin.model_selection.distribute import leaves_this_machine, local, through_joblib
from multimargin.model_selection.search_table import SearchTable, Unit, UnitScores
from multimargin.model_selection.strategies import run_search
from support.separate_fits import (
    CS,
    GAMMAS,
    Problem,
    assert_same,
    die,
    evaluate_gamma,
    evaluate_unit,
    open_directory,
    refuse,
    wait_to_be_killed,
)


@contextmanager
def _killer(directory: Path) -> Iterator[list[int]]:
    """Kill the process that announces itself, once."""
    killed: list[int] = []
    ended = threading.Event()

    def wait() -> None:
        while not ended.wait(0.02):
            pid_file = directory / "pid"
            if pid_file.exists() and pid_file.read_text().endswith("\n"):
                killed.append(int(pid_file.read_text().split()[0]))
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
        partial(wait_to_be_killed, str(notes)), n_jobs=n_jobs, directory=open_directory(tmp_path / "search", problem)
    )
    with _killer(notes) as killed:
        table = run_search("grid", problem, CS, GAMMAS, evaluate)
    assert len(killed) == 1
    assert_same(table, expected)
    assert_same(
        run_search("grid", problem, CS, GAMMAS, local(refuse, open_directory(tmp_path / "search", problem))), expected
    )
    return (notes / "done").read_text().splitlines()


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_processes_give_the_same(problem: Problem, expected: SearchTable, tmp_path: Path, n_jobs: int) -> None:
    evaluate = through_joblib(evaluate_unit, n_jobs=n_jobs, directory=open_directory(tmp_path, problem))
    assert_same(run_search("grid", problem, CS, GAMMAS, evaluate), expected)
    assert len(list(tmp_path.glob("unit-*.json"))) == 6
    assert not leaves_this_machine()


def test_what_a_lost_worker_had_written_is_not_done_again(
    problem: Problem, expected: SearchTable, tmp_path: Path
) -> None:
    directory = open_directory(tmp_path, problem)
    asked: list[tuple[float, int]] = []

    def lost_after_writing(part: Any, gamma: float, fold: int, Cs: Any) -> UnitScores:
        asked.append((gamma, fold))
        outcome = evaluate_unit(part, gamma, fold, Cs)
        if len(asked) == 3:
            directory.save(outcome)
            raise BrokenProcessPool
        return outcome

    evaluate = through_joblib(lost_after_writing, n_jobs=1, directory=directory)
    assert_same(run_search("grid", problem, CS, GAMMAS, evaluate), expected)
    assert len(asked) == len(set(asked)) == 6


def test_a_process_that_dies_costs_no_finished_unit(problem: Problem, expected: SearchTable, tmp_path: Path) -> None:
    done = _survive_a_kill(problem, expected, tmp_path, 2)
    assert len(set(done)) == 6


def test_a_unit_that_kills_every_process_ends_the_search(problem: Problem, tmp_path: Path) -> None:
    evaluate = through_joblib(die, n_jobs=2, directory=open_directory(tmp_path, problem), retries=1)
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
        evaluate = through_joblib(evaluate_unit, directory=open_directory(tmp_path, problem))
        assert_same(run_search("grid", problem, CS, GAMMAS, evaluate), expected)
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
        evaluate = through_joblib(die, directory=open_directory(tmp_path, few), retries=0)
        with pytest.raises(RuntimeError, match=r"Workers died 1 times with 2 units of the search left"):
            run_search("grid", few, CS, GAMMAS, evaluate)
    # The other units were finished.
    assert len(list(tmp_path.glob("unit-0-*.json"))) == 2


def _allow_no_failure(dask_scheduler: Any = None) -> None:
    dask_scheduler.allowed_failures = 0


@contextmanager
def _cluster_of_threads(n_workers: int = 1) -> Iterator[tuple[Any, Any]]:
    """A cluster of its own, within this process, for tests that break it; its memory is not monitored."""
    distributed = pytest.importorskip("distributed", reason="needs the extra 'dask': pip install 'multimargin[dask]'")
    with distributed.LocalCluster(
        n_workers=n_workers,
        threads_per_worker=1,
        processes=False,
        host="127.0.0.1",
        protocol="tcp",
        dashboard_address="127.0.0.1:0",
        silence_logs=50,
        memory_limit=0,
    ) as cluster:
        client = distributed.Client(cluster, set_as_default=False)
        try:
            with client.as_current():
                yield cluster, client
        finally:
            client.close(timeout=2)


def _pause(dask_worker: Any = None) -> None:
    from distributed.core import Status

    dask_worker.status = Status.paused


def test_paused_dask_workers_end_the_search_with_a_sentence(
    monkeypatch: pytest.MonkeyPatch, problem: Problem, tmp_path: Path
) -> None:
    monkeypatch.setattr(dask_units, "POLL", 0.05)
    monkeypatch.setattr(dask_units, "PATIENCE", 0.3)
    with _cluster_of_threads(2) as (_, client), joblib.parallel_config("dask"):
        directory = open_directory(tmp_path, problem)
        done: list[UnitScores] = []
        outcomes = iter(through_joblib(evaluate_unit, directory=directory)(problem, _units(problem)))
        done.append(next(outcomes))
        client.run(_pause)
        with pytest.raises(
            RuntimeError, match=r"^All 2 workers of the Dask cluster are paused at their memory limit.*cache_size"
        ):
            done.extend(outcomes)
    # What was finished before, or under way, is kept.
    assert 1 <= len(done) <= len(list(tmp_path.glob("unit-*.json")))


def test_workers_that_are_paused_before_the_data_come(problem: Problem) -> None:
    dask = pytest.importorskip("dask", reason="needs the extra 'dask': pip install 'multimargin[dask]'")
    quick = dask.config.set({"distributed.comm.timeouts.connect": "1s"})
    with quick, _cluster_of_threads() as (_, client), joblib.parallel_config("dask"):
        client.run(_pause)
        with pytest.raises(RuntimeError, match=r"^All 1 workers of the Dask cluster are paused"):
            run_search("grid", problem, CS, GAMMAS, through_joblib(evaluate_unit))


def test_a_dask_scheduler_that_ends_is_told_of(problem: Problem, expected: SearchTable, tmp_path: Path) -> None:
    dask = pytest.importorskip("dask", reason="needs the extra 'dask': pip install 'multimargin[dask]'")
    directory = open_directory(tmp_path, problem)
    done: list[UnitScores] = []
    quick = dask.config.set({"distributed.comm.timeouts.connect": "1s"})
    with quick, _cluster_of_threads() as (cluster, _), joblib.parallel_config("dask"):
        outcomes = iter(through_joblib(evaluate_unit, directory=directory)(problem, _units(problem)))
        done.append(next(outcomes))
        cluster.close()
        with pytest.raises(RuntimeError, match=r"^The Dask scheduler does not answer any more, with . units"):
            done.extend(outcomes)
        with pytest.raises(RuntimeError, match=r"^The Dask scheduler does not answer any more, with 6 units"):
            run_search("grid", problem, CS, GAMMAS, through_joblib(evaluate_unit))
    assert len(list(tmp_path.glob("unit-*.json"))) >= len(done) >= 1
    assert_same(run_search("grid", problem, CS, GAMMAS, local(evaluate_gamma, directory)), expected)


def _units(problem: Problem) -> list[Unit]:
    return [Unit(gamma, fold, CS) for gamma in GAMMAS.tolist() for fold in range(len(problem.folds))]


def test_a_connection_that_closes_while_data_are_sent_is_a_lost_worker(
    monkeypatch: pytest.MonkeyPatch, dask_client: Any, problem: Problem, expected: SearchTable
) -> None:
    from distributed.comm.core import CommClosedError

    scatter, n_calls = type(dask_client).scatter, 0

    def closes_once(*args: Any, **kwargs: Any) -> Any:
        nonlocal n_calls
        n_calls += 1
        if n_calls == 1:
            raise CommClosedError
        return scatter(*args, **kwargs)

    monkeypatch.setattr(type(dask_client), "scatter", closes_once)
    with joblib.parallel_config("dask"):
        assert_same(run_search("grid", problem, CS, GAMMAS, through_joblib(evaluate_unit)), expected)
    assert n_calls == 2


@pytest.fixture
def ray_cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setenv("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")  # read by the import: stay on loopback
    ray = pytest.importorskip("ray", reason="needs the extra 'ray': pip install 'multimargin[ray]'")
    joblib_of_ray = pytest.importorskip("ray.util.joblib")
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))  # workers import tests/support
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
        evaluate = through_joblib(evaluate_unit, directory=open_directory(tmp_path / "plain", problem))
        assert_same(run_search("grid", problem, CS, GAMMAS, evaluate), expected)
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
    """Counts how often a process unpickles it."""

    n_unpickled = 0

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        CountedProblem.n_unpickled += 1


def _unpickled() -> int:
    return CountedProblem.n_unpickled
