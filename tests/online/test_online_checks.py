"""The fast input check of streams accepts exactly what scikit-learn's checks accept."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from multimargin import OnlineSVC
from multimargin.online.parameters import check_rows, merge_classes, parameters_of
from support.helpers import draw_data


@pytest.fixture
def begun() -> OnlineSVC:
    X, y = draw_data(3, 60, 3)
    return OnlineSVC(gamma=1.0).partial_fit(X, y)


def test_plain_arrays_are_taken_as_they_are(begun: OnlineSVC) -> None:
    X, y = draw_data(3, 20, 3)
    rows, labels = check_rows(begun, X, y, reset=False)
    assert rows is X
    assert labels is y
    new = OnlineSVC()
    check_rows(new, X, y, reset=True)
    assert new.n_features_in_ == X.shape[1]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda X, y: (np.where(X[3, 0] == X, np.nan, X), y), "NaN"),
        (lambda X, y: (np.where(X[3, 0] == X, np.inf, X), y), "infinity"),
        (lambda X, y: (X[:, :1], y), "features"),
        (lambda X, y: (X[0], y[:1]), "2D"),
        (lambda X, y: (X[:0], y[:0]), "0 sample"),
        (lambda X, y: (X, y[1:]), "inconsistent numbers of samples"),
        (lambda X, y: (X, np.stack([y, y], axis=1)), "1d array"),
        (lambda X, y: (np.float64(3.0), y), "2D"),
    ],
)
def test_what_is_wrong_is_still_refused(begun: OnlineSVC, change: Any, words: str) -> None:
    X, y = change(*draw_data(3, 20, 3))
    with pytest.raises(ValueError, match=words):
        begun.partial_fit(X, y)
    if words != "features":  # any number of them will do for the first rows
        with pytest.raises(ValueError, match=words):
            OnlineSVC(gamma=1.0).partial_fit(X, y)


def test_names_of_columns_are_still_compared() -> None:
    X, y = draw_data(3, 60, 3)
    frame = pd.DataFrame(X, columns=[f"x{k}" for k in range(X.shape[1])])
    clf = OnlineSVC(gamma=1.0).partial_fit(frame, y)
    with pytest.warns(UserWarning, match="feature names"):
        clf.partial_fit(X, y)
    with pytest.raises(ValueError, match="feature names"):
        clf.partial_fit(frame.rename(columns={"x0": "z"}), y)


def test_parameters_are_those_that_get_params_names() -> None:
    class Renamed(OnlineSVC):
        def __init__(self, width: float = 2.0) -> None:
            super().__init__(gamma=width)
            self.width = width

    for clf in (OnlineSVC(C=3.0), Renamed(5.0)):
        assert parameters_of(clf) == clf.get_params(deep=False)


def test_classes_are_found_however_labels_are_written() -> None:
    known = np.array([1, 4, 9])
    assert merge_classes(known, np.array([9, 1, 1]), None, fixed=True) is known
    assert merge_classes(known, np.array([1, 4], dtype=np.int8), None, fixed=True) is known
    np.testing.assert_array_equal(merge_classes(known, np.array([9, 10]), None, fixed=False), [1, 4, 9, 10])
    for label in (0, 5, 10):
        with pytest.raises(ValueError, match=f"the label .*{label}"):
            merge_classes(known, np.array([1, label]), None, fixed=True)
    np.testing.assert_array_equal(
        merge_classes(np.array(["b", "d"]), np.array(["d", "longer"]), None, fixed=False), ["b", "d", "longer"]
    )
