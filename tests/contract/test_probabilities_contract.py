"""scikit-learn's checks of SVC with calibration."""

from __future__ import annotations

from typing import Any

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from multimargin import SVC
from multimargin.models.calibration import KINDS


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # some checks limit max_iter
@parametrize_with_checks(  # type: ignore[untyped-decorator]
    [SVC(calibration=kind) for kind in KINDS] + [SVC(calibration="sigmoid", multi_class="ww")]
)
def test_scikit_learn_contract(estimator: Any, check: Any) -> None:
    """Probabilities included; weights are repetitions."""
    check(estimator)
