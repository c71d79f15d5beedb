"""scikit-learn's checks of SVC with a trace."""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import check_estimator

from multimargin import SVC


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("multi_class", ["ww", "ovo"])
def test_scikit_learn_checks(multi_class: str) -> None:
    check_estimator(SVC(multi_class=multi_class, trace=True))
