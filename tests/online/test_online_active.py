"""Active learning on streams, their history, and its figures."""

from __future__ import annotations

from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_digits

from multimargin import OnlineDisplay, OnlineSVC, StreamHistory, active_learning_loop
from multimargin.online.active import margins
from multimargin.online.monitoring import FADING, MOST_POINTS
from support.helpers import draw_data

mpl.use("Agg")


@pytest.mark.parametrize("name", ["ovo", "dag", "ww", "ova"])
def test_margin_asks_for_the_least_decided(name: str) -> None:
    X, y = draw_data(1, 200, 3)
    clf = OnlineSVC(gamma=0.7, multi_class=name).partial_fit(X[:100], y[:100])
    lead = margins(clf._model, X)
    chosen = clf.query(X, 7)
    assert np.array_equal(np.sort(lead[chosen]), np.sort(lead)[:7])
    if name in ("ww", "ova"):
        scores = np.sort(clf.decision_function(X), axis=1)
        np.testing.assert_allclose(lead, scores[:, -1] - scores[:, -2], atol=1e-12)
    else:
        clf.set_params(decision_function_shape="ovo")
        D, codes = clf.decision_function(X), np.searchsorted(clf.classes_, clf.predict(X))
        own = {0: [D[:, 0], D[:, 1]], 1: [-D[:, 0], D[:, 2]], 2: [-D[:, 1], -D[:, 2]]}
        expected = [min(part[i] for part in own[int(code)]) for i, code in enumerate(codes)]
        np.testing.assert_allclose(lead, expected, atol=1e-12)


def test_diverse_does_not_ask_twice_for_the_same() -> None:
    X, y = draw_data(1, 200, 2)
    clf = OnlineSVC(gamma=0.7).partial_fit(X, y)
    least = X[clf.query(X, 1)]
    pool = np.concatenate([np.repeat(least, 50, axis=0), X])  # fifty copies of the least decided one
    assert len(np.unique(pool[clf.query(pool, 5, "margin")], axis=0)) == 1
    assert len(np.unique(pool[clf.query(pool, 5, "diverse")], axis=0)) == 5


@pytest.mark.parametrize("strategy", ["margin", "diverse", "random"])
def test_query_before_anything_is_known(strategy: str) -> None:
    X, y = draw_data(1, 50, 2)
    clf = OnlineSVC(gamma=0.7)
    chosen = clf.query(X, 5, strategy)
    assert len(np.unique(chosen)) == 5
    assert not hasattr(clf, "n_features_in_")
    assert np.array_equal(chosen, clf.query(sparse.csr_array(X), 5, strategy))
    clf.partial_fit(X[:1], y[:1])
    assert len(np.unique(clf.query(X, 5, strategy))) == 5


def test_bad_questions() -> None:
    X, _ = draw_data(1, 50, 2)
    with pytest.raises(ValueError, match="strategy='best' is not allowed"):
        OnlineSVC().query(X, 1, "best")
    with pytest.raises(ValueError, match="n=51 rows were requested, X_pool has 50"):
        OnlineSVC().query(X, 51)
    with pytest.raises(ValueError, match="n_queries=60, X_pool has 50 rows"):
        active_learning_loop(OnlineSVC(), X, lambda rows: rows, n_queries=60)


def test_loop_finds_classes_and_asks_well(capsys: pytest.CaptureFixture[str]) -> None:
    X, y = load_digits(return_X_y=True)
    X = X / 16
    test = (X[1000:], y[1000:])
    scores: dict[str, float] = {}
    for strategy in ("margin", "random"):
        clf = OnlineSVC(C=4.0, gamma=0.1)
        asked: list[Any] = []

        def label(rows: Any, asked: list[Any] = asked) -> Any:
            asked.extend(rows)
            return y[rows]

        result = active_learning_loop(
            clf, X[:1000], label, n_queries=200, batch=20, strategy=strategy, test=test, verbose=strategy == "margin"
        )
        assert np.array_equal(result.queried, asked)
        assert len(np.unique(asked)) == 200
        assert list(result.n_labelled) == list(range(20, 201, 20))
        assert np.array_equal(clf.classes_, np.unique(y[asked]))
        scores[strategy] = result.scores[-1]
        assert result.scores[-1] == clf.score(*test)
    assert scores["margin"] > scores["random"]
    assert "200 of 200 labels  10 classes" in capsys.readouterr().err


def test_history_counts_and_fades() -> None:
    history = StreamHistory()
    right = np.random.default_rng(0).uniform(size=100) < 0.7
    for i in range(100):
        history.add(right[i : i + 1], 1, float(i), i)
    blocks = StreamHistory()
    blocks.add(right[:40], 40, 39.0, 39)
    blocks.add(right[40:], 60, 99.0, 99)
    weight = FADING ** np.arange(99, -1, -1)
    for each in (history, blocks):
        assert each.accuracy[-1] == right.mean()
        assert each.recent_accuracy[-1] == pytest.approx((weight * right).sum() / weight.sum(), rel=1e-12)
        assert (each.examples[-1], each.dual[-1], each.n_support[-1]) == (100, 99.0, 99)
    for _ in range(3 * MOST_POINTS):
        history.add(np.array([True]), 1, 0.0, 0)
    assert len(history) <= MOST_POINTS
    assert (np.diff(history.examples) > 0).all()


def test_display() -> None:
    X, y = draw_data(1, 600, 2)
    clf = OnlineSVC(gamma=0.7).partial_fit(X, y)
    display = OnlineDisplay.from_estimator(clf, name="one")
    assert [ax.get_ylabel() for ax in display.axes_] == [
        "accuracy before learning",
        "dual objective",
        "support vectors",
    ]
    assert np.array_equal(display.lines_[-1].get_ydata(), clf.history_.n_support)
    assert np.array_equal(display.lines_[0].get_xdata(), clf.history_.examples)
    again = OnlineDisplay.from_estimator(clf, ax=display.axes_)
    assert again.figure_ is display.figure_
    one = again.figure_.add_subplot(1, 2, 2)
    split = OnlineDisplay(clf.history_).plot(ax=one)
    assert split.figure_ is again.figure_
    assert len(split.axes_) == 3
    assert split.ax_ is split.axes_[0]
    with pytest.raises(ValueError, match="cannot be split"):
        OnlineDisplay(clf.history_).plot(ax=again.figure_.add_axes((0, 0, 1, 1)))
    with pytest.raises(ValueError, match="has no history_"):
        OnlineDisplay.from_estimator(OnlineSVC())
    with pytest.raises(ValueError, match="give three"):
        OnlineDisplay(clf.history_).plot(display.axes_[:1])
