"""scikit-learn's checks of LinearSVC."""

from __future__ import annotations

from typing import Any

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from multimargin import MACHINES, LinearSVC

ALL = (*MACHINES, "ovo", "dag")


ESTIMATORS = [
    *(LinearSVC(multi_class=name) for name in ALL),
    # a linear function without a bias cannot follow class weights
    LinearSVC(bias="regularized"),
    LinearSVC(multi_class="cs", loss="squared_hinge"),
]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # some checks limit max_iter
@parametrize_with_checks(ESTIMATORS)  # type: ignore[untyped-decorator]
def test_scikit_learn_contract(estimator: Any, check: Any) -> None:
    check(estimator)
