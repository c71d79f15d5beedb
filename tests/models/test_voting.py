"""Votes, scikit-learn's scores from them, and the DAG, against definitions implemented pair by pair."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.utils.multiclass import _ovr_decision_function

from multimargin import SVC
from multimargin.kernels.spec import KernelSpec
from multimargin.models.pair_model import PairModel
from multimargin.models.voting import CHUNK, dag_path, dag_scores, ovr_scores, vote, votes
from support.helpers import noisy_classes

Scores = NDArray[np.float64]


@st.composite
def pair_scores(draw: st.DrawFn) -> tuple[Scores, int]:
    """Scores of up to seven classes; rounded ones bring ties and exact zeros."""
    n_classes = draw(st.integers(2, 7))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    D = rng.normal(size=(draw(st.integers(1, 30)), n_classes * (n_classes - 1) // 2)) * draw(st.sampled_from([1, 1e3]))
    return np.round(D) if draw(st.booleans()) else D, n_classes


def names_of_pairs(n_classes: int) -> dict[tuple[int, int], int]:
    return {pair: column for column, pair in enumerate(combinations(range(n_classes), 2))}


@given(case=pair_scores())
def test_votes_are_counted_as_in_libsvm(case: tuple[Scores, int]) -> None:
    D, n_classes = case
    expected = np.zeros((len(D), n_classes), dtype=np.int64)
    for row, scores in enumerate(D):
        for (i, j), column in names_of_pairs(n_classes).items():
            expected[row, i if scores[column] > 0 else j] += 1
    np.testing.assert_array_equal(votes(D, n_classes), expected)
    most = [min(c for c in range(n_classes) if counts[c] == counts.max()) for counts in expected]
    np.testing.assert_array_equal(vote(D, n_classes), most)


@pytest.mark.parametrize("scheme", ["ovo", "dag"])
@pytest.mark.parametrize("n_classes", [2, 3, 4, 7, 12])
def test_one_row_gets_the_class_of_all_its_votes(n_classes: int, scheme: str) -> None:
    """Pair scores at random: no class beats all others, ties abound, and some pairs are not evaluated."""
    rng = np.random.default_rng(n_classes)
    model = PairModel(
        support=np.arange(5 * n_classes),
        support_vectors=rng.normal(size=(5 * n_classes, 3)),
        n_support=np.full(n_classes, 5, dtype=np.int32),
        dual_coef=rng.normal(size=(n_classes - 1, 5 * n_classes)),
        intercept=rng.normal(size=n_classes * (n_classes - 1) // 2),
        kernel=KernelSpec("rbf", gamma=0.5),
        scheme=scheme,
    )
    X = rng.normal(size=(200, 3))
    expected = (vote if scheme == "ovo" else dag_path)(model.pair_scores(X), n_classes)
    assert n_classes < 4 or len(np.unique(votes(model.pair_scores(X), n_classes).max(axis=1))) > 1
    np.testing.assert_array_equal(model.codes(X), expected)
    np.testing.assert_array_equal(np.concatenate([model.codes(x[None]) for x in X]), expected)


def test_a_tie_goes_to_the_smaller_class_and_a_zero_to_the_second() -> None:
    cycle = np.array([[1.0, -1.0, 1.0]])  # 0 beats 1, 2 beats 0, 1 beats 2
    np.testing.assert_array_equal(votes(cycle, 3), [[1, 1, 1]])
    assert vote(cycle, 3) == 0
    np.testing.assert_array_equal(votes(np.array([[0.0]]), 2), [[0, 1]])


@given(case=pair_scores())
def test_ovr_scores_are_those_of_scikit_learn(case: tuple[Scores, int]) -> None:
    D, n_classes = case
    expected = _ovr_decision_function(D < 0, -D, n_classes)
    np.testing.assert_allclose(ovr_scores(D, n_classes), expected, rtol=0, atol=1e-12)


def follow_the_list(scores: Scores, n_classes: int) -> list[int]:
    """HL02's description, step by step; returns the classes in the order in which they leave the list."""
    column = names_of_pairs(n_classes)
    candidates, dropped = list(range(n_classes)), []
    while len(candidates) > 1:
        first_wins = scores[column[candidates[0], candidates[-1]]] > 0
        dropped.append(candidates.pop(-1 if first_wins else 0))
    return dropped + candidates


@given(case=pair_scores())
def test_dag_follows_the_list(case: tuple[Scores, int]) -> None:
    D, n_classes = case
    order = np.array([follow_the_list(scores, n_classes) for scores in D])
    found = dag_scores(D, n_classes)
    np.testing.assert_array_equal(dag_path(D, n_classes), order[:, -1])
    np.testing.assert_array_equal(found.argmax(axis=1), order[:, -1])
    np.testing.assert_array_equal(np.argsort(found, axis=1), order)
    confidence = found - np.argsort(order, axis=1)
    assert np.abs(confidence).max() < 1 / 3
    np.testing.assert_allclose(
        confidence, ovr_scores(D, n_classes) - np.round(ovr_scores(D, n_classes)), rtol=0, atol=1e-12
    )


@pytest.mark.parametrize("n_classes", [2, 5])
def test_nothing_to_decide(n_classes: int) -> None:
    D = np.empty((0, n_classes * (n_classes - 1) // 2))
    assert vote(D, n_classes).shape == dag_path(D, n_classes).shape == (0,)
    assert ovr_scores(D, n_classes).shape == dag_scores(D, n_classes).shape == (0, n_classes)


def test_a_row_does_not_depend_on_its_neighbours() -> None:
    D = np.random.default_rng(0).normal(size=(2 * CHUNK + 5, 10))
    for function in (votes, vote, ovr_scores, dag_path, dag_scores):
        whole = function(D, 5)
        for row in (0, CHUNK - 1, CHUNK, 2 * CHUNK + 4):
            np.testing.assert_array_equal(whole[row], function(D[row : row + 1], 5)[0])


@pytest.mark.parametrize("machine", ["ovo", "dag"])
def test_large_coefficients_vote_as_their_scores(machine: str) -> None:
    """Float32 kernel values near 1 err together, and a large C makes that a visible part of a score."""
    X, y = noisy_classes(600)
    clf = SVC(C=1e5, gamma=1e-3, multi_class=machine, decision_function_shape="ovo").fit(X, y)
    assert np.abs(clf.dual_coef_).sum() > 1e6
    decide = dag_path if machine == "dag" else vote
    points = X + 1e-2
    np.testing.assert_array_equal(clf.predict(points), decide(clf.decision_function(points), 3))
