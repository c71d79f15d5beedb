"""Ranks and tests of classifiers, as the guide imports them."""

from multimargin.plotting.statistics import (
    FriedmanTest,
    RankComparison,
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

__all__ = [
    "FriedmanTest",
    "RankComparison",
    "adjust",
    "average_ranks",
    "compare_ranks",
    "critical_difference",
    "friedman_test",
    "nemenyi_pvalues",
    "partitions",
    "possible_counts",
    "rank_pvalues",
    "wilcoxon_pvalues",
]
