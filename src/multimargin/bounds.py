"""DGI11's generalisation bound, as the guide imports it."""

from multimargin.verification.bounds import (
    GeneralizationBound,
    PairTerm,
    SupportCounts,
    count_support,
    generalization_bound,
)

__all__ = ["GeneralizationBound", "PairTerm", "SupportCounts", "count_support", "generalization_bound"]
