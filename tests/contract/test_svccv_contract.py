"""scikit-learn's checks of SVCCV."""

from __future__ import annotations

from typing import Any

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from multimargin import SVCCV


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # some checks limit max_iter
@parametrize_with_checks(  # type: ignore[untyped-decorator]
    [
        SVCCV(Cs=[0.5, 2.0], gammas=[0.1, 1.0], cv=2),
        SVCCV(Cs=[0.5, 2.0], gammas=[0.1, 1.0], cv=2, multi_class="ova"),
        # Without a bias, kernels as narrow as 0.1 misclassify heavy classes (with SVC, too).
        SVCCV(Cs=[0.5, 2.0], gammas=[0.01, 0.02], cv=2, multi_class="ww"),
    ]
)
def test_scikit_learn_contract(estimator: Any, check: Any) -> None:
    check(estimator)
