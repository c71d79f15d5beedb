"""The picture of average ranks, as the guide imports it."""

from multimargin.plotting.rank_display import RankDisplay

__all__ = ["RankDisplay"]
