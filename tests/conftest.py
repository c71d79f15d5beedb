"""Settings for all tests."""

import _thread
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "multimargin",
    deadline=None,
    max_examples=20,
    derandomize=bool(os.environ.get("CI")),
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("multimargin")


@pytest.fixture(autouse=True)
def ctrl_c_raises() -> Iterator[None]:
    """A shell that starts the tests in the background makes them ignore Ctrl-C; the tests about it need it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(autouse=True)
def kill_sends_ctrl_c(monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows ends a process that gets a signal by os.kill; there the tests' Ctrl-C is simulated instead."""
    if sys.platform == "win32":
        monkeypatch.setattr(os, "kill", lambda process, number: _thread.interrupt_main(number))


@pytest.fixture
def figures_in_memory() -> Iterator[None]:
    """Draw without a screen, and close all figures afterwards."""
    import matplotlib as mpl

    with mpl.rc_context():
        mpl.use("Agg")
        from matplotlib import pyplot

        yield
        pyplot.close("all")


HERE = Path(__file__).parent
FOLDERS_WITH_MARKS = ("contract", "research")
# Files of tests, and single tests, that take seconds.
SLOW = {line for line in (HERE / "slow.txt").read_text().splitlines() if line and not line.startswith("#")}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests by their folder, and the slow ones."""
    for item in items:
        if item.path.parent.name in FOLDERS_WITH_MARKS:
            item.add_marker(item.path.parent.name)
        if not SLOW.isdisjoint((item.path.stem, f"{item.path.stem}::{getattr(item, 'originalname', None)}")):
            item.add_marker("slow")
