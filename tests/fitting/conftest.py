"""Data that the tests of stopping share."""

from __future__ import annotations

import numpy as np
import pytest

from support import control


@pytest.fixture(scope="module")
def slow_data() -> tuple[np.ndarray, np.ndarray]:
    """Noisy labels, for a huge C: millions of steps from the optimum."""
    return control.slow_data()
