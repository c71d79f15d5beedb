"""Settings for all tests."""

import os

from hypothesis import HealthCheck, settings

settings.register_profile(
    "multimargin",
    deadline=None,
    max_examples=20,
    derandomize=bool(os.environ.get("CI")),
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("multimargin")
