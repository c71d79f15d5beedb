"""Results do not depend on the number of threads, on other fits at the same time, or on a fork."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from joblib import Parallel, delayed, parallel_config
from sklearn.datasets import make_classification
from threadpoolctl import threadpool_limits

from multimargin import SVC, OnlineSVC
from multimargin.base.resources import available_bytes, cache_bytes, n_threads

TASKS = Path("/proc/self/task")  # the threads of this process, where the system shows them


@pytest.fixture(scope="module")
def data() -> tuple[np.ndarray, np.ndarray]:
    X, y = make_classification(2000, 10, n_informative=6, n_classes=4, random_state=0)
    return X, y


def dual_coef(X: np.ndarray, y: np.ndarray, machine: str = "ww") -> np.ndarray:
    coefficients: np.ndarray = SVC(multi_class=machine, C=2).fit(X, y).dual_coef_
    return coefficients


@pytest.mark.parametrize("machine", ["ovo", "dag", "ww", "cs", "ova"])
def test_bit_identical_for_any_number_of_threads(
    data: tuple[np.ndarray, np.ndarray], machine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = data
    results = []
    for threads in (1, 2, 3, 7):
        monkeypatch.setattr("multimargin.fitting.machine.n_threads", lambda n=threads: n)
        monkeypatch.setattr("multimargin.models.kernel_model.n_threads", lambda n=threads: n)
        monkeypatch.setattr("multimargin.models.pair_model.n_threads", lambda n=threads: n)
        clf = SVC(multi_class=machine, C=2).fit(X, y)
        results.append((clf.dual_coef_, clf.decision_function(X), clf.certificate_.dual))
    for other in results[1:]:
        np.testing.assert_array_equal(results[0][0], other[0])
        np.testing.assert_array_equal(results[0][1], other[1])
        assert results[0][2] == other[2]


def _learn_online(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    clf = OnlineSVC(C=2.0, gamma=0.01, multi_class="ww", cache_size=0.0)
    coefficients: np.ndarray = clf.partial_fit(X, y).dual_coef_
    return coefficients


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_stream_is_bit_identical_for_any_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = make_classification(1500, 40, n_informative=20, n_classes=4, random_state=0)
    results, alive = [], set()
    for threads in (1, 2, 5):
        monkeypatch.setattr("multimargin.online.stream.n_threads", lambda n=threads: n)
        results.append(_learn_online(X, y))
        alive.add(len(list(TASKS.iterdir())) if TASKS.exists() else 0)
    assert len(alive) == 1  # no thread is left over that a fork would lose
    for other in results[1:]:
        np.testing.assert_array_equal(results[0], other)
    if "fork" in multiprocessing.get_all_start_methods():
        with multiprocessing.get_context("fork").Pool(1) as pool:
            np.testing.assert_array_equal(pool.apply(_learn_online, (X, y)), results[0])


def test_repeated_fits_are_identical(data: tuple[np.ndarray, np.ndarray]) -> None:
    np.testing.assert_array_equal(dual_coef(*data), dual_coef(*data))


def test_threadpoolctl_is_obeyed() -> None:
    with threadpool_limits(1):
        assert n_threads() == 1


def test_joblib_is_obeyed(data: tuple[np.ndarray, np.ndarray]) -> None:
    with parallel_config("loky", inner_max_num_threads=1):
        counts = Parallel(n_jobs=2)(delayed(n_threads)() for _ in range(2))
    assert counts == [1, 1]
    fits = Parallel(n_jobs=2)(delayed(dual_coef)(*data) for _ in range(2))
    for result in fits:
        np.testing.assert_array_equal(result, dual_coef(*data))


def test_concurrent_fits(data: tuple[np.ndarray, np.ndarray]) -> None:
    expected = {name: dual_coef(*data, name) for name in ("ww", "cs", "ovo")}
    with ThreadPoolExecutor(4) as pool:
        names = ["ww", "cs", "ovo"] * 3
        for name, result in zip(names, pool.map(lambda n: dual_coef(*data, n), names), strict=True):
            np.testing.assert_array_equal(result, expected[name])


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="the system cannot fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_after_a_fork(data: tuple[np.ndarray, np.ndarray]) -> None:
    expected = dual_coef(*data)
    with multiprocessing.get_context("fork").Pool(1) as pool:
        np.testing.assert_array_equal(pool.apply(dual_coef, data), expected)


def test_cache_budget(data: tuple[np.ndarray, np.ndarray]) -> None:
    """A cache of two rows gives the same result as one of all rows, with more rows computed."""
    X, y = data
    assert cache_bytes("auto") <= max(64_000_000, available_bytes())
    assert cache_bytes(1.5) == 1_500_000
    small, large = (SVC(multi_class="ww", cache_size=size, solver="s2do").fit(X, y) for size in (0.01, 200))
    np.testing.assert_array_equal(small.dual_coef_, large.dual_coef_)
    assert small.certificate_.kernel_rows > large.certificate_.kernel_rows
    assert large.certificate_.cache_hits > small.certificate_.cache_hits
