"""Settings for all tests."""

import os
import signal
from collections.abc import Iterator

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
