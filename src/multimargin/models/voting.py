"""From the scores of pairs of classes to a class: votes, scikit-learn's tie-breaking scores, and the DAG.

All functions take ``D`` of shape (n, d (d - 1) / 2), one column for each pair of the d classes in the order
(0, 1), (0, 2), ..., (d - 2, d - 1), with LIBSVM's sign: a score > 0 of the pair (i, j), i < j, speaks for class i.
Knows nothing of machines, kernels or labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from multimargin._typing import FloatArray, IntArray

CHUNK = 1_024  # rows at a time


def votes(D: FloatArray, n_classes: int) -> IntArray:
    """Return how many pairs vote for each class, shape (n, d); a score of 0 votes for the second, as in LIBSVM."""
    return _count(D > 0, n_classes)


def vote(D: FloatArray, n_classes: int) -> IntArray:
    """Return the codes, shape (n,), of the classes with most votes; the smallest code wins a tie (HL02, LIBSVM)."""
    winners: IntArray = votes(D, n_classes).argmax(axis=1)
    return winners


def vote_in_order(D: FloatArray, order: Sequence[int]) -> IntArray:
    """Return the result of ``vote`` for this order of the classes, which decides ties and scores of 0."""
    n_classes = len(order)
    codes = np.asarray(order, dtype=np.int64)
    i, j = np.triu_indices(n_classes, k=1)
    first, second = codes[i], codes[j]
    low, high = np.minimum(first, second), np.maximum(first, second)
    columns = low * (2 * n_classes - low - 1) // 2 + high - low - 1
    winners: IntArray = codes[vote(np.where(first < second, D[:, columns], -D[:, columns]), n_classes)]
    return winners


def ovr_scores(D: FloatArray, n_classes: int) -> FloatArray:
    """Return votes plus a confidence inside (-1/3, 1/3), shape (n, d): the decision function of scikit-learn's SVC.

    Ties of votes are broken by the sums of scores, so that the argmax may differ from
    ``vote``. As in scikit-learn a score of exactly 0 counts for the first class here.
    """
    scores: FloatArray = _count(D >= 0, n_classes) + _bounded_confidence(D, n_classes)
    return scores


def dag_path(D: FloatArray, n_classes: int) -> IntArray:
    """Return the codes, shape (n,), at which the DAG ends (HL02).

    The list of candidates begins with all classes. In every round its first class meets its last, and the loser is
    dropped; a score > 0 keeps the first.
    """
    winner, _ = _walk(D, n_classes)
    return winner


def dag_scores(D: FloatArray, n_classes: int) -> FloatArray:
    """Return the round 0, ..., d - 2 that drops a class, d - 1 for the winner, plus ``ovr_scores``' confidence.

    The confidence stays inside (-1/3, 1/3), so that the argmax of the result, shape (n, d), is ``dag_path``.
    """
    _, rounds = _walk(D, n_classes)
    scores: FloatArray = rounds + _bounded_confidence(D, n_classes)
    return scores


def _count(for_first: NDArray[np.bool_], n_classes: int) -> IntArray:
    # Class c is the second of c pairs; the sum subtracts those that it loses.
    counts: IntArray = _sum_by_class(for_first, n_classes).astype(np.int64) + np.arange(n_classes)
    return counts


def _bounded_confidence(D: FloatArray, n_classes: int) -> FloatArray:
    """Squeeze the sum x of the scores for a class into (-1/3, 1/3): scikit-learn's x / (3 (|x| + 1))."""
    total = _sum_by_class(D, n_classes)
    confidence: FloatArray = total / (3 * (np.abs(total) + 1))
    return confidence


def _sum_by_class(D: NDArray[Any], n_classes: int) -> FloatArray:
    """Return for each class the sum of its pairs' scores, shape (n, d), with the sign turned where it is the second.

    Chunks of rows stay in the cache while the pairs pass by; turned on their side, each pair is one long vector.
    """
    total = np.empty((len(D), n_classes))
    for start in range(0, len(D), CHUNK):
        part = np.ascontiguousarray(D[start : start + CHUNK].T, dtype=np.float64)
        sums = np.zeros((n_classes, part.shape[1]))
        begin = 0
        for i in range(n_classes - 1):  # the pairs (i, i + 1), ..., (i, d - 1) lie side by side
            end = begin + n_classes - 1 - i
            sums[i] += part[begin:end].sum(axis=0)
            sums[i + 1 :] -= part[begin:end]
            begin = end
        total[start : start + CHUNK] = sums.T
    return total


def _walk(D: FloatArray, n_classes: int) -> tuple[IntArray, FloatArray]:
    """Return the winner of each row, shape (n,), and the round that drops each class, shape (n, d).

    The candidates are always a run of neighbouring codes, so that two numbers per row describe the list.
    """
    rows = np.arange(len(D))
    first = np.zeros(len(D), dtype=np.int64)
    last = np.full(len(D), n_classes - 1)
    rounds = np.full((len(D), n_classes), n_classes - 1.0)
    for number in range(n_classes - 1):
        column = first * (2 * n_classes - first - 1) // 2 + last - first - 1
        keeps_first = D[rows, column] > 0
        rounds[rows, np.where(keeps_first, last, first)] = number
        last -= keeps_first
        first += ~keeps_first
    return first, rounds
