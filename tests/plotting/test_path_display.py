"""Figures of paths: the curves show the values of paths and searches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_iris

from multimargin import SVC, LinearSVCCV, PathDisplay, svm_path

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

CS = [0.01, 0.1, 1.0, 10.0]


@pytest.fixture(scope="module")
def iris() -> tuple[Any, Any]:
    X, y = load_iris(return_X_y=True)
    return X, y


def test_errors(iris: Any) -> None:
    X, y = iris
    path = svm_path(X[::2], y[::2], Cs=CS, estimator=SVC())
    display = PathDisplay.from_path(path, X[::2], y[::2], X_val=X[1::2], y_val=y[1::2])
    for line, rows in zip(display.lines_, (slice(0, None, 2), slice(1, None, 2)), strict=True):
        expected = [np.mean(path.model(i).predict(X[rows]) != y[rows]) for i in range(len(CS))]
        np.testing.assert_allclose(line.get_ydata(), expected)
        np.testing.assert_array_equal(line.get_xdata(), CS)
    assert [text.get_text() for text in display.ax_.get_legend().get_texts()] == ["training", "validation"]
    assert display.ax_.get_xscale() == "log"
    with pytest.raises(ValueError, match="has no weights to draw; give X and y"):
        PathDisplay.from_path(path)
    with pytest.raises(ValueError, match="training error needs points and labels"):
        PathDisplay.from_path(path, X)
    matplotlib.pyplot.close("all")


def test_weights(iris: Any) -> None:
    path = svm_path(*iris, Cs=CS)
    display = PathDisplay.from_path(path, alpha=0.5)
    drawn = np.array([line.get_ydata() for line in display.lines_[:12]])
    assert path.coefs is not None
    np.testing.assert_array_equal(drawn, path.coefs.reshape(4, 12).T)
    again = PathDisplay.from_path(path, ax=display.ax_)
    assert again.figure_ is display.figure_
    matplotlib.pyplot.close("all")


def test_folds(iris: Any) -> None:
    search = LinearSVCCV(Cs=CS, cv=3).fit(*iris)
    display = PathDisplay.from_estimator(search)
    np.testing.assert_allclose(display.lines_[0].get_ydata(), 1 - search.scores_[0].mean(axis=0))
    assert len(display.lines_) == 1 + 3 + 1
    assert display.lines_[-1].get_xdata()[0] == search.C_[0]
    with pytest.raises(ValueError, match="give a fitted LinearSVCCV"):
        PathDisplay.from_estimator(SVC())
    matplotlib.pyplot.close("all")
