"""Ranks and tests of classifiers over data sets: published examples, other libraries, definitions by brute force."""

from __future__ import annotations

from itertools import chain, combinations, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some
from scipy import stats

from multimargin._typing import FloatArray
from multimargin.plotting.rank_display import RankDisplay
from multimargin.plotting.statistics import (
    METHODS,
    adjust,
    average_ranks,
    compare_ranks,
    critical_difference,
    friedman_test,
    nemenyi_pvalues,
    partitions,
    possible_counts,
    rank_pvalues,
    wilcoxon_pvalues,
)

# DEM06 Table 6: AUC of C4.5, C4.5+m, C4.5+cf and C4.5+m+cf on 14 data sets.
DEM06 = np.array(
    [
        [0.763, 0.768, 0.771, 0.798],
        [0.599, 0.591, 0.590, 0.569],
        [0.954, 0.971, 0.968, 0.967],
        [0.628, 0.661, 0.654, 0.657],
        [0.882, 0.888, 0.886, 0.898],
        [0.936, 0.931, 0.916, 0.931],
        [0.661, 0.668, 0.609, 0.685],
        [0.583, 0.583, 0.563, 0.625],
        [0.775, 0.838, 0.866, 0.875],
        [1.000, 1.000, 1.000, 1.000],
        [0.940, 0.962, 0.965, 0.962],
        [0.619, 0.666, 0.614, 0.669],
        [0.972, 0.981, 0.97501, 0.975],  # printed as 0.975 both, but with ranks 2 and 3
        [0.957, 0.978, 0.946, 0.970],
    ]
)
# GH08 section 4: average ranks of C4.5, 1-NN, naive Bayes, Kernel and CN2 over 30 data sets.
GH08_RANKS, GH08_SETS = np.array([2.1, 3.25, 2.2, 13 / 3, 3.1166667]), 30


def test_ranks_of_demsars_example() -> None:
    np.testing.assert_allclose(average_ranks(DEM06), [3.143, 2.000, 2.893, 1.964], atol=5e-4)
    np.testing.assert_allclose(average_ranks(-DEM06, higher_is_better=False), average_ranks(DEM06))


def test_friedman_of_demsars_example() -> None:
    """DEM06 prints 9.28 and F = 3.69 without the correction for ties, which SciPy makes."""
    ranks = average_ranks(DEM06)
    n, k = DEM06.shape
    plain = 12 * n / (k * (k + 1)) * (float((ranks**2).sum()) - k * (k + 1) ** 2 / 4)
    assert plain == pytest.approx(9.28, abs=5e-3)
    ties = sum(int((counts**3 - counts).sum()) for counts in (np.unique(r, return_counts=True)[1] for r in DEM06))
    found = friedman_test(DEM06)
    assert found.statistic == pytest.approx(plain / (1 - ties / (n * k * (k**2 - 1))))
    assert found.statistic == pytest.approx(stats.friedmanchisquare(*DEM06.T).statistic)
    assert (n - 1) * plain / (n * (k - 1) - plain) == pytest.approx(3.69, abs=5e-3)
    assert found.f_statistic == pytest.approx((n - 1) * found.statistic / (n * (k - 1) - found.statistic))
    assert found.f_pvalue == pytest.approx(stats.f.sf(found.f_statistic, 3, 39))
    assert found.f_pvalue < found.pvalue


def test_critical_differences_of_demsar() -> None:
    """DEM06: q = 2.569 and CD = 1.25 for four classifiers on 14 sets at 0.05; its Table 5(a) for others."""
    assert critical_difference(4, 14) == pytest.approx(1.25, abs=5e-3)
    assert critical_difference(4, 14, 0.1) == pytest.approx(1.12, abs=5e-3)
    printed = {2: 1.960, 3: 2.343, 4: 2.569, 5: 2.728, 6: 2.850, 7: 2.949, 8: 3.031, 9: 3.102, 10: 3.164}
    for k, q in printed.items():
        assert critical_difference(k, 6) / np.sqrt(k * (k + 1) / 36) == pytest.approx(q, abs=1e-3)


def test_nemenyi_agrees_with_its_critical_difference() -> None:
    width = critical_difference(5, 12, 0.05)
    ranks = np.array([3.0 - width / 2, 3.0 + width / 2, 3.0, 3.0, 3.0])
    assert nemenyi_pvalues(ranks, 12)[0] == pytest.approx(0.05, rel=1e-3)


def test_friedman_without_differences_and_without_exceptions() -> None:
    alike = friedman_test(np.ones((5, 3)))
    assert (alike.statistic, alike.pvalue, alike.f_pvalue) == (0.0, 1.0, 1.0)
    agreed = friedman_test(np.tile([3.0, 2.0, 1.0], (6, 1)))
    assert agreed.f_statistic == np.inf
    assert agreed.f_pvalue == 0.0


def test_pvalues_of_garcia_and_herreras_example() -> None:
    """GH08 section 4: z = 5.471 for C4.5 against Kernel, p = 4.487e-8; 10 times that for all procedures."""
    raw = rank_pvalues(GH08_RANKS, GH08_SETS)
    assert raw[2] == pytest.approx(4.487e-8, rel=1e-3)
    for method in METHODS:
        assert adjust(raw, method)[2] == pytest.approx(10 * raw[2])
    # Naive Bayes against Kernel comes next: Holm multiplies by 9, Shaffer and Bergmann and Hommel by 6.
    assert np.argsort(raw)[1] == 7
    factors = {method: adjust(raw, method)[7] / raw[7] for method in METHODS}
    assert factors == pytest.approx({"bonferroni": 10, "holm": 9, "shaffer": 6, "bergmann-hommel": 6})


def test_shaffers_counts() -> None:
    """GH08: S(k) for k = 2, ..., 5."""
    assert [sorted(possible_counts(k)) for k in (2, 3, 4, 5)] == [
        [0, 1],
        [0, 1, 3],
        [0, 1, 2, 3, 6],
        [0, 1, 2, 3, 4, 6, 10],
    ]


@pytest.mark.parametrize(("k", "n_sets"), [(4, 14), (5, 51), (6, 202), (7, 876), (8, 4_139), (9, 21_146)])
def test_exhaustive_sets(k: int, n_sets: int) -> None:
    """GH08 counts the exhaustive sets; the partition into single classifiers holds no hypothesis."""
    rows = partitions(k)
    assert len(rows) == n_sets + 1
    assert len(np.unique(rows, axis=0)) == len(rows)


def exhaustive_sets(k: int) -> list[frozenset[tuple[int, int]]]:
    """All sets of hypotheses that can be true without any other, by trying every subset."""
    pairs = list(combinations(range(k), 2))
    subsets = chain.from_iterable(combinations(pairs, size) for size in range(1, len(pairs) + 1))
    found = []
    for subset in map(frozenset, subsets):
        alike = np.eye(k, dtype=bool)
        for i, j in subset:
            alike[i, j] = alike[j, i] = True
        for _ in range(k):
            alike = alike | ((alike.astype(int) @ alike.astype(int)) > 0)
        if frozenset(pair for pair in pairs if alike[pair]) == subset:
            found.append(subset)
    return found


@pytest.mark.parametrize("k", [3, 4, 5])
def test_bergmann_hommel_by_its_definition(k: int) -> None:
    """A hypothesis falls at alpha if every exhaustive set that holds it has |I| min p <= alpha."""
    rng = np.random.default_rng(k)
    pairs = list(combinations(range(k), 2))
    sets = exhaustive_sets(k)
    assert len(sets) == len(partitions(k)) - 1
    for _ in range(5):
        raw = rng.uniform(size=len(pairs)) ** 3
        p = dict(zip(pairs, raw.tolist(), strict=True))
        expected = [max(len(held) * min(p[each] for each in held) for held in sets if pair in held) for pair in pairs]
        np.testing.assert_allclose(adjust(raw, "bergmann-hommel"), np.minimum(expected, 1.0))


@given(some.lists(some.floats(0, 1), min_size=6, max_size=6))
def test_each_procedure_finds_at_least_as_much_as_the_one_before(pvalues: list[float]) -> None:
    raw = np.array(pvalues)
    adjusted = [adjust(raw, method) for method in METHODS]
    for weaker, stronger in pairwise(adjusted):
        assert (stronger <= weaker + 1e-12).all()
    assert (adjusted[-1] >= raw - 1e-12).all()
    order = np.argsort(raw, kind="stable")
    for values in adjusted[:-1]:
        assert (np.diff(values[order]) >= -1e-12).all()


def test_holm_is_that_of_statsmodels() -> None:
    multitest = pytest.importorskip("statsmodels.stats.multitest", reason="statsmodels is not installed")
    raw = rank_pvalues(GH08_RANKS, GH08_SETS)
    np.testing.assert_allclose(adjust(raw, "holm"), multitest.multipletests(raw, method="holm")[1])
    np.testing.assert_allclose(adjust(raw, "bonferroni"), multitest.multipletests(raw, method="bonferroni")[1])


def test_nemenyi_is_that_of_scikit_posthocs() -> None:
    posthocs = pytest.importorskip("scikit_posthocs", reason="scikit-posthocs is not installed")
    matrix = np.asarray(posthocs.posthoc_nemenyi_friedman(DEM06))
    found = nemenyi_pvalues(average_ranks(DEM06), len(DEM06))
    np.testing.assert_allclose(found, matrix[np.triu_indices(4, 1)], atol=1e-6)


def test_wilcoxon_of_demsars_example() -> None:
    """DEM06: C4.5+m beats C4.5 with T = 12 of 14 sets, below 21, the critical value at 0.05."""
    pvalues = wilcoxon_pvalues(DEM06)
    assert pvalues.shape == (6,)
    assert pvalues[0] < 0.05
    zeros_shared = stats.wilcoxon(DEM06[:, 0], DEM06[:, 1], zero_method="zsplit")
    assert pvalues[0] == pytest.approx(zeros_shared.pvalue)
    assert wilcoxon_pvalues(np.ones((4, 2))).tolist() == [1.0]


def test_comparison_of_demsars_example() -> None:
    names = ["C4.5", "C4.5+m", "C4.5+cf", "C4.5+m+cf"]
    found = compare_ranks(DEM06, names)
    assert found.n_sets == 14
    assert set(found.pvalues) == {"unadjusted", "nemenyi", "holm", "shaffer", "bergmann-hommel"}
    # DEM06: at 0.05 the data do not suffice for Nemenyi's test, at 0.1 they do for C4.5 against the two best.
    assert found.differences(0.05, "nemenyi") == []
    assert found.differences(0.1, "nemenyi") == [("C4.5+m", "C4.5"), ("C4.5+m+cf", "C4.5")]
    text = "\n".join(found.to_markdown())
    assert "C4.5+m+cf 1.96, C4.5+m 2.00, C4.5+cf 2.89, C4.5 3.14." in text
    assert text.count("\n| C4.5") == 6


def test_many_classifiers_do_without_bergmann_hommel() -> None:
    found = compare_ranks(np.random.default_rng(0).uniform(size=(5, 12)))
    assert "bergmann-hommel" not in found.pvalues
    assert found.strongest == "shaffer"
    with pytest.raises(
        ValueError, match=r"with 12 classifiers would need every partition .* at most 11, so use 'shaff"
    ):
        adjust(np.full(66, 0.5), "bergmann-hommel")


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        (np.ones((1, 3)), r"scores has shape \(1, 3\); give a row for each of two or more data sets .* 3 or more"),
        (np.ones((4, 2)), r"scores has shape \(4, 2\)"),
        (np.array([[1.0, np.nan, 2.0]] * 3), r"scores holds nan or infinity; leave out the data sets"),
    ],
)
def test_bad_scores(scores: FloatArray, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        compare_ranks(scores)


def test_bad_arguments() -> None:
    with pytest.raises(ValueError, match=r"names has 1 entries, but scores has 4 columns"):
        compare_ranks(DEM06, ["a"])
    with pytest.raises(ValueError, match=r"method='tukey' is not known; choose one of bonferroni, holm"):
        adjust([0.1, 0.2, 0.3], "tukey")
    with pytest.raises(ValueError, match=r"pvalues has 4 entries, which is not the number of pairs"):
        adjust([0.1, 0.2, 0.3, 0.4], "holm")
    with pytest.raises(ValueError, match=r"alpha=2 is not allowed; give a number between 0 and 1"):
        critical_difference(4, 10, 2)
    with pytest.raises(ValueError, match=r"method='x' is not there; choose one of unadjusted, nemenyi"):
        RankDisplay(compare_ranks(DEM06), method="x")


def test_bars_join_what_does_not_differ() -> None:
    """Six clearly different classifiers in two groups of three: two bars, none across."""
    rng = np.random.default_rng(0)
    groups = np.array([0, 0, 0, 9, 9, 9]) + rng.uniform(size=(40, 6))
    display = RankDisplay.from_scores(groups, list("abcdef"))
    assert display.groups() == [(0, 2), (3, 5)]
    texts = {text.get_text().split()[0] for text in display.ax_.texts}
    assert set("abcdef") <= texts
    assert any("critical difference" in text.get_text() for text in display.ax_.texts)
    low, high = display.ax_.get_xlim()
    assert low > high  # the best stands at the right
    assert RankDisplay(compare_ranks(DEM06), alpha=0.05).groups() == [(0, 3)]
    assert RankDisplay(compare_ranks(DEM06), alpha=0.1).groups() == [(0, 2), (2, 3)]
