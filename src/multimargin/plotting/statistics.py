"""Comparing classifiers over many data sets: ranks, Friedman's test, and tests of all pairs.

Everything begins with a table of scores, one row for each data set and one column for each classifier. Friedman's test
asks whether the ranks differ at all; Nemenyi's critical difference, and Holm's, Shaffer's and Bergmann and Hommel's
procedures say which pairs differ while the chance of one false statement stays below alpha. DEM06 recommends the
former, GH08 the latter: they use the logical relations between the hypotheses about pairs and find more differences.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from multimargin._typing import FloatArray

# Bergmann and Hommel's procedure goes through every partition of the classifiers: 678,570 of eleven, 4,213,597 of
# twelve.
MOST_FOR_BERGMANN_HOMMEL = 11
METHODS = ("bonferroni", "holm", "shaffer", "bergmann-hommel")


@dataclass(frozen=True)
class FriedmanTest:
    """Friedman's test of whether all classifiers are alike.

    Parameters
    ----------
    statistic, pvalue : float
        Friedman's chi-square with k - 1 degrees of freedom, corrected for ties, and its p-value.
    f_statistic, f_pvalue : float
        Iman and Davenport's less conservative F with k - 1 and (k - 1)(n - 1) degrees of freedom.
    """

    statistic: float
    pvalue: float
    f_statistic: float
    f_pvalue: float


@dataclass(frozen=True, eq=False)
class RankComparison:
    """Classifiers compared by their ranks over data sets; ``compare_ranks`` makes it.

    Parameters
    ----------
    names : tuple of str
    n_sets : int
    ranks : ndarray of shape (n_classifiers,)
        Average ranks, 1 is the best.
    friedman : FriedmanTest
    pairs : tuple of (int, int)
        In the order (0, 1), (0, 2), ..., (1, 2), ...
    pvalues : dict of str to ndarray of shape (n_pairs,)
        "unadjusted", "nemenyi", "holm", "shaffer" and, for up to eleven classifiers, "bergmann-hommel".
    """

    names: tuple[str, ...]
    n_sets: int
    ranks: FloatArray
    friedman: FriedmanTest
    pairs: tuple[tuple[int, int], ...]
    pvalues: dict[str, FloatArray]

    @property
    def strongest(self) -> str:
        """The most powerful procedure: Bergmann and Hommel's where available, else Shaffer's."""
        return "bergmann-hommel" if "bergmann-hommel" in self.pvalues else "shaffer"

    def differences(self, alpha: float = 0.05, method: str | None = None) -> list[tuple[str, str]]:
        """Return the pairs that differ at level alpha, the better one first."""
        adjusted = self.pvalues[method or self.strongest]
        found = [pair for pair, p in zip(self.pairs, adjusted.tolist(), strict=True) if p <= alpha]
        ordered = [(i, j) if self.ranks[i] <= self.ranks[j] else (j, i) for i, j in found]
        return [(self.names[better], self.names[worse]) for better, worse in ordered]

    def to_markdown(self) -> list[str]:
        """Return the ranks, the test and the p-values of all pairs, as lines of Markdown."""
        order = np.argsort(self.ranks, kind="stable").tolist()
        test, methods = self.friedman, list(self.pvalues)
        lines = [
            f"Average ranks over {self.n_sets} data sets (1 is the best): "
            + ", ".join(f"{self.names[i]} {self.ranks[i]:.2f}" for i in order)
            + ".",
            "",
            f"Friedman's chi-square {test.statistic:.3g}, p = {test.pvalue:.2g}; Iman and Davenport's F "
            f"{test.f_statistic:.3g}, p = {test.f_pvalue:.2g}.",
            "",
            "| pair | " + " | ".join(methods) + " |",
            "|---|" + "---|" * len(methods),
        ]
        by_strength = np.argsort(self.pvalues["unadjusted"], kind="stable").tolist()
        for at in by_strength:
            i, j = self.pairs[at]
            values = " | ".join(f"{self.pvalues[method][at]:.2g}" for method in methods)
            lines.append(f"| {self.names[i]} - {self.names[j]} | {values} |")
        return lines


def compare_ranks(
    scores: ArrayLike, names: Sequence[str] | None = None, *, higher_is_better: bool = True
) -> RankComparison:
    """Rank classifiers over data sets, and test all pairs.

    Parameters
    ----------
    scores : array-like of shape (n_sets, n_classifiers)
        At least three classifiers.
    names : sequence of str, default=None
        Of the classifiers; None for their numbers.
    higher_is_better : bool, default=True
        False for errors and times.

    Returns
    -------
    comparison : RankComparison
    """
    table = _checked(scores)
    n_sets, k = table.shape
    labels = tuple(map(str, range(k))) if names is None else tuple(map(str, names))
    if len(labels) != k:
        raise ValueError(f"names has {len(labels)} entries, but scores has {k} columns; give one name for each.")
    ranks = average_ranks(table, higher_is_better=higher_is_better)
    raw = rank_pvalues(ranks, n_sets)
    pvalues = {"unadjusted": raw, "nemenyi": nemenyi_pvalues(ranks, n_sets)}
    methods = ("holm", "shaffer", "bergmann-hommel")
    pvalues |= {name: adjust(raw, name) for name in methods if name in _methods_for(k)}
    return RankComparison(labels, n_sets, ranks, friedman_test(table), tuple(combinations(range(k), 2)), pvalues)


def average_ranks(scores: ArrayLike, *, higher_is_better: bool = True) -> FloatArray:
    """Return the mean rank of each column, 1 for the best; equal scores share the mean of their ranks."""
    table = np.asarray(scores, dtype=np.float64)
    return np.asarray(stats.rankdata(-table if higher_is_better else table, axis=1).mean(axis=0))


def friedman_test(scores: ArrayLike) -> FriedmanTest:
    """Test whether all columns of (n_sets, n_classifiers) have the same distribution of ranks.

    The chi-square is SciPy's; the F that it gives is DEM06's (Iman and Davenport).
    """
    table = _checked(scores)
    n, k = table.shape
    if (table == table[:, :1]).all():
        return FriedmanTest(0.0, 1.0, 0.0, 1.0)  # nothing to rank, which SciPy answers with nan
    statistic, pvalue = stats.friedmanchisquare(*table.T)
    left = n * (k - 1) - statistic
    # All data sets agree on one order: F is infinite.
    f = np.inf if left <= 0 else (n - 1) * statistic / left
    return FriedmanTest(float(statistic), float(pvalue), float(f), float(stats.f.sf(f, k - 1, (k - 1) * (n - 1))))


def rank_pvalues(ranks: ArrayLike, n_sets: int) -> FloatArray:
    """Return the two-sided p-value of each pair's difference of average ranks, without any adjustment: DEM06, GH08."""
    z = _differences(ranks) / np.sqrt(_variance(len(np.asarray(ranks)), n_sets))
    return np.asarray(2 * stats.norm.sf(z))


def nemenyi_pvalues(ranks: ArrayLike, n_sets: int) -> FloatArray:
    """Return Nemenyi's p-values, from the distribution of the largest difference of k ranks (studentized range)."""
    k = len(np.asarray(ranks))
    q = _differences(ranks) / np.sqrt(_variance(k, n_sets) / 2)
    return np.asarray(np.clip(stats.studentized_range.sf(q, k, np.inf), 0.0, 1.0))


def critical_difference(n_classifiers: int, n_sets: int, alpha: float = 0.05) -> float:
    """Return the difference of average ranks from which on two classifiers differ by Nemenyi's test: DEM06."""
    if not 0 < alpha < 1:
        raise ValueError(f"alpha={alpha} is not allowed; give a number between 0 and 1.")
    q = stats.studentized_range.ppf(1 - alpha, n_classifiers, np.inf) / np.sqrt(2)
    return float(q * np.sqrt(_variance(n_classifiers, n_sets)))


def wilcoxon_pvalues(scores: ArrayLike) -> FloatArray:
    """Return the p-values of Wilcoxon's signed-rank test of all pairs of columns; zeros are shared out: DEM06."""
    table = _checked(scores, least=2)
    pairs = combinations(range(table.shape[1]), 2)
    return np.array([_wilcoxon(table[:, i] - table[:, j]) for i, j in pairs])


def _wilcoxon(difference: FloatArray) -> float:
    if not difference.any():
        return 1.0
    return float(stats.wilcoxon(difference, zero_method="zsplit").pvalue)


def adjust(pvalues: ArrayLike, method: str) -> FloatArray:
    """Adjust the p-values of all pairs, so that each may be compared with alpha itself: GH08.

    Parameters
    ----------
    pvalues : array-like of shape (n_pairs,)
        In the order (0, 1), (0, 2), ..., (1, 2), ...
    method : {"bonferroni", "holm", "shaffer", "bergmann-hommel"}
        Each finds at least as much as the one before. "shaffer" (static) and "bergmann-hommel" use logical relations
        between pairs: if two of three classifiers are alike, and one of them is like the third, all are.

    Returns
    -------
    adjusted : ndarray of shape (n_pairs,)
    """
    raw = np.asarray(pvalues, dtype=np.float64)
    k = _n_classifiers(len(raw))
    if method not in METHODS:
        raise ValueError(f"method={method!r} is not known; choose one of {', '.join(METHODS)}.")
    if method not in _methods_for(k):
        raise ValueError(
            f"method='bergmann-hommel' with {k} classifiers would need every partition of them; it takes at most "
            f"{MOST_FOR_BERGMANN_HOMMEL}, so use 'shaffer'."
        )
    if method == "bergmann-hommel":
        return _bergmann_hommel(raw, k)
    m = len(raw)
    if method == "bonferroni":
        return np.minimum(m * raw, 1.0)
    left = np.arange(m, 0, -1) if method == "holm" else _most_true(k)
    order = np.argsort(raw, kind="stable")
    adjusted = np.empty(m)
    adjusted[order] = np.minimum(np.maximum.accumulate(left * raw[order]), 1.0)
    return adjusted


def _methods_for(k: int) -> tuple[str, ...]:
    return METHODS if k <= MOST_FOR_BERGMANN_HOMMEL else METHODS[:-1]


def possible_counts(k: int) -> frozenset[int]:
    """Return how many of the hypotheses "i and j are alike" among k classifiers can be true at once: GH08, S(k)."""
    if k < 2:
        return frozenset({0})
    return frozenset(j * (j - 1) // 2 + rest for j in range(1, k + 1) for rest in possible_counts(k - j))


def _most_true(k: int) -> np.ndarray:
    """Return Shaffer's t_j: how many hypotheses can be true if j - 1 of them are false."""
    m, counts = k * (k - 1) // 2, possible_counts(k)
    return np.array([max(count for count in counts if count <= m - j) for j in range(m)])


def partitions(k: int) -> np.ndarray:
    """Return all partitions of k classifiers, one in each row: entry i is the number of the part that i is in."""
    rows = np.zeros((1, 1), dtype=np.int8)
    for _ in range(1, k):
        n_choices = rows.max(axis=1) + 2  # a part that exists, or a new one
        grown = np.repeat(rows, n_choices, axis=0)
        ends = np.cumsum(n_choices)
        choice = np.arange(ends[-1]) - np.repeat(ends - n_choices, n_choices)
        rows = np.column_stack([grown, choice.astype(np.int8)])
    return rows


def _bergmann_hommel(raw: FloatArray, k: int) -> FloatArray:
    """Return for each pair the largest |I| min_I p over the exhaustive sets I that hold it: GH08.

    A set of hypotheses is exhaustive if all of them, and no others, can be true at once: the pairs within the parts of
    a partition.
    """
    parts = partitions(k)
    pairs = list(combinations(range(k), 2))
    size = np.zeros(len(parts))
    smallest = np.full(len(parts), np.inf)
    for (i, j), p in zip(pairs, raw.tolist(), strict=True):
        together = parts[:, i] == parts[:, j]
        size += together
        smallest[together] = np.minimum(smallest[together], p)
    value = np.where(size > 0, size * np.where(size > 0, smallest, 0.0), 0.0)
    return np.minimum([value[parts[:, i] == parts[:, j]].max() for i, j in pairs], 1.0)


def _differences(ranks: ArrayLike) -> FloatArray:
    values = np.asarray(ranks, dtype=np.float64)
    return np.array([abs(values[i] - values[j]) for i, j in combinations(range(len(values)), 2)])


def _variance(k: int, n: int) -> float:
    """Of a difference of two average ranks, if all classifiers are alike."""
    return k * (k + 1) / (6 * n)


def _n_classifiers(n_pairs: int) -> int:
    k = (1 + math.isqrt(1 + 8 * n_pairs)) // 2
    if n_pairs < 1 or k * (k - 1) // 2 != n_pairs:
        raise ValueError(f"pvalues has {n_pairs} entries, which is not the number of pairs of any classifiers.")
    return k


def _checked(scores: ArrayLike, least: int = 3) -> FloatArray:
    table = np.asarray(scores, dtype=np.float64)
    if table.ndim != 2 or table.shape[0] < 2 or table.shape[1] < least:
        raise ValueError(
            f"scores has shape {table.shape}; give a row for each of two or more data sets and a column for each of "
            f"{least} or more classifiers."
        )
    if not np.isfinite(table).all():
        raise ValueError("scores holds nan or infinity; leave out the data sets that not every classifier has.")
    return table
