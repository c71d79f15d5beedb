"""The monitor of a fit: states and progress of an inner solve, as the outer one shows them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from multimargin.solvers.monitor import FitMonitor
from multimargin.solvers.report import Progress

MOMENT = Progress(3, 0.5, 0.1, 1.0, 2.0, 10, 4, 7, 2)


def test_states_are_converted_only_when_asked_for() -> None:
    made: list[int] = []
    seen: list[tuple[int, str]] = []

    def text_of(number: int) -> str:
        made.append(number)
        return f"state {number}"

    outer: FitMonitor[str] = FitMonitor(lambda progress, state: progress.iteration > 4)
    inner: FitMonitor[int] = outer.map(text_of, lambda moment: replace(moment, iteration=moment.iteration + 1))
    assert not inner(MOMENT, lambda: 5)
    assert made == []

    def read(progress: Progress, state: Callable[[], str]) -> bool:
        seen.append((progress.iteration, state()))
        return False

    middle: FitMonitor[int] = FitMonitor(read).map(text_of, lambda moment: replace(moment, iteration=4))
    doubled: FitMonitor[int] = middle.map(lambda n: 2 * n)
    doubled(MOMENT, lambda: 5)
    assert (seen, made) == ([(4, "state 10")], [10])
    assert inner(replace(MOMENT, iteration=4), lambda: 5)


def test_nobody_watches() -> None:
    unwatched: FitMonitor[str] = FitMonitor()
    for monitor in (unwatched, unwatched.map(str), unwatched.when(lambda: True), FitMonitor(unwatched)):
        assert not monitor.active
        assert monitor.for_core() is None
        assert not monitor(MOMENT, lambda: 1 / 0)  # type: ignore[arg-type, return-value]


def test_a_moment_that_is_not_due_goes_on() -> None:
    due = [False, True]
    monitor: FitMonitor[int] = FitMonitor(lambda progress, state: True).when(lambda: due.pop(0))
    assert [monitor(MOMENT, lambda: 0), monitor(MOMENT, lambda: 0)] == [False, True]


def test_the_core_reports_field_by_field() -> None:
    seen: list[tuple[Progress, int]] = []

    def read(progress: Progress, state: Callable[[], int]) -> bool:
        seen.append((progress, state()))
        return True

    called = FitMonitor(read).for_core()
    assert called is not None
    assert called(MOMENT, lambda: 8)  # type: ignore[arg-type]
    assert seen == [(MOMENT, 8)]
