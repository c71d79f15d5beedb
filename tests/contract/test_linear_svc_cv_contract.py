"""scikit-learn's checks of LinearSVCCV."""

from __future__ import annotations

from typing import Any

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from multimargin import LinearSVCCV


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # some checks limit max_iter
@parametrize_with_checks(  # type: ignore[untyped-decorator]
    [
        LinearSVCCV(Cs=[0.1, 1.0], cv=2),
        LinearSVCCV(Cs=2, cv=2, multi_class="ovo"),
        LinearSVCCV(Cs=[1], cv=2, refit=False),
    ]
)
def test_scikit_learn_contract(estimator: Any, check: Any) -> None:
    check(estimator)
