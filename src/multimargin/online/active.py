"""Active learning: which examples of a pool to label next, and a loop that queries their labels."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from rich.console import Console
from rich.live import Live
from rich.text import Text

from multimargin._typing import DataMatrix, FloatArray, IntArray
from multimargin.fitting import parameters as check
from multimargin.kernels.spec import KernelSpec
from multimargin.kernels.store import KernelStore
from multimargin.models.kernel_model import KernelModel
from multimargin.models.pair_model import PairModel
from multimargin.problems.schemes import pair_list

STRATEGIES = ("margin", "diverse", "random")
# "diverse" chooses among at least this many times as many examples of small margin as it returns.
LOOKED_AT = 10
# Weight of the distance to the decision boundary relative to the similarity to other examples.
SHARE_OF_MARGIN = 0.5


def margins(model: KernelModel | PairModel, X: DataMatrix) -> FloatArray:
    """Return the margin of each prediction, shape (n,): the predicted class's lead over the next.

    One-vs-one: the smallest score with which the predicted class beats another; negative where it lost to one.
    """
    if isinstance(model, PairModel):
        D, winner = model.pair_scores(X), model.codes(X)
        lead = np.full(len(winner), np.inf)
        for column, (i, j) in enumerate(pair_list(model.n_classes)):
            lead = np.where(winner == i, np.minimum(lead, D[:, column]), lead)
            lead = np.where(winner == j, np.minimum(lead, -D[:, column]), lead)
        return lead
    top = np.sort(model.scores(X), axis=1)
    return np.asarray(top[:, -1] - top[:, -2])


def choose_rows(
    model: KernelModel | PairModel | None,
    X: DataMatrix,
    wanted: tuple[int, str],
    kernel: KernelSpec,
    random_state: Any,
) -> IntArray:
    """Return n rows of X to label next, ``wanted`` being (n, strategy); without a model random or the least similar."""
    strategy = check.check_choice("strategy", wanted[1], STRATEGIES)
    size = X.shape[0]
    n = check.check_integer("n", wanted[0], low=1)
    if n > size:
        raise ValueError(f"n={n} rows were requested, X_pool has {size}; request at most that many.")
    random = check.check_seed("random_state", 0 if random_state is None else random_state)
    order = np.asarray(random.permutation(size))  # also decides between equal margins
    if strategy == "random" or (model is None and strategy == "margin"):
        return order[:n].astype(np.int64)
    lead = np.zeros(size) if model is None else margins(model, X)
    order = order[np.argsort(lead[order], kind="stable")]
    if strategy == "margin":
        return order[:n].astype(np.int64)
    return _spread_out(X, order[: max(LOOKED_AT * n, 100)], lead, n, kernel)


def _spread_out(X: DataMatrix, candidates: IntArray, lead: FloatArray, n: int, kernel: KernelSpec) -> IntArray:
    """Choose candidates one by one, by small margin and small similarity (cosine in feature space) to those chosen."""
    store = KernelStore(X, kernel)
    K = store.block(candidates, candidates)
    size = np.sqrt(np.maximum(np.diag(K), 1e-300))
    likeness = np.abs(K / np.outer(size, size))
    rank = lead[candidates] - lead[candidates].min()
    rank = rank / max(float(rank.max()), 1e-300)
    chosen: list[int] = []
    nearest = np.zeros(len(candidates))
    for _ in range(n):
        price = SHARE_OF_MARGIN * rank + (1 - SHARE_OF_MARGIN) * nearest
        price[chosen] = np.inf
        best = int(np.argmin(price))
        chosen.append(best)
        nearest = np.maximum(nearest, likeness[best])
    return np.asarray(candidates[chosen], dtype=np.int64)


@dataclass(frozen=True, eq=False)
class ActiveLearning:
    """Result of an active learning loop.

    Parameters
    ----------
    queried : ndarray of shape (n_labelled,)
        Rows of the pool, in the order of the questions.
    n_labelled : ndarray of shape (n_rounds,)
    scores : ndarray of shape (n_rounds,)
        On the test data, NaN without any.
    """

    queried: IntArray
    n_labelled: IntArray
    scores: FloatArray


def active_learning_loop(  # noqa: PLR0913 - queries, strategy, evaluation
    estimator: Any,
    X_pool: ArrayLike,
    label: Callable[[IntArray], ArrayLike],
    *,
    n_queries: int,
    batch: int = 1,
    strategy: str = "margin",
    test: tuple[ArrayLike, ArrayLike] | None = None,
    verbose: bool = False,
) -> ActiveLearning:
    """Query the labels of the most useful rows, learn them, and repeat.

    Parameters
    ----------
    estimator : OnlineSVC
        Learns in place; it may have seen data before, and new labels are taken in.
    X_pool : array-like of shape (n_pool, n_features)
    label : callable
        Gets the numbers of some rows of the pool, returns their labels.
    n_queries, batch : int
        Number of labels in total, and per query.
    strategy : {"margin", "diverse", "random"}, default="margin"
    test : tuple (X, y), default=None
        Data for a score after each round.
    verbose : bool, default=False
        Whether to show a line of progress on stderr.

    Returns
    -------
    result : ActiveLearning
    """
    check.check_integer("n_queries", n_queries, low=1)
    check.check_integer("batch", batch, low=1)
    pool: Any = X_pool if hasattr(X_pool, "shape") else np.asarray(X_pool)
    if n_queries > pool.shape[0]:
        raise ValueError(f"n_queries={n_queries}, X_pool has {pool.shape[0]} rows; request at most that many.")
    left = np.arange(pool.shape[0])
    queried, counts, scores = np.zeros(0, dtype=np.int64), [], []
    with _line(verbose) as show:
        while len(queried) < n_queries:
            places = estimator.query(pool[left], min(batch, n_queries - len(queried)), strategy)
            rows = left[places]
            estimator.partial_fit(pool[rows], np.asarray(label(rows)))
            queried = np.append(queried, rows)
            left = np.delete(left, places)
            counts.append(len(queried))
            scores.append(np.nan if test is None else float(estimator.score(*test)))
            show(_describe(estimator, counts[-1], n_queries, scores[-1]))
    return ActiveLearning(queried, np.array(counts), np.array(scores))


def _describe(estimator: Any, n_labelled: int, n_queries: int, score: float) -> str:
    known = "" if np.isnan(score) else f"  score {score:.4f}"
    return f"{n_labelled:,} of {n_queries:,} labels  {len(estimator.classes_)} classes{known}"


@contextmanager
def _line(verbose: bool) -> Iterator[Callable[[str], None]]:
    """Yield a function that shows a line on stderr in place of the last one, or nothing."""
    if not verbose:
        yield lambda text: None
        return
    with Live(Text(""), console=Console(file=sys.stderr), auto_refresh=False) as live:
        yield lambda text: live.update(Text(text), refresh=True)
