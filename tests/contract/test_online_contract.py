"""scikit-learn's checks of OnlineSVC."""

from __future__ import annotations

from typing import Any

from sklearn.utils.estimator_checks import parametrize_with_checks

from multimargin import OnlineSVC


@parametrize_with_checks([OnlineSVC(), OnlineSVC(multi_class="ww"), OnlineSVC(multi_class="cs")])  # type: ignore[untyped-decorator]
def test_contract(estimator: Any, check: Any) -> None:
    check(estimator)
