"""The critical-difference diagram of DEM06: average ranks on a line, bars over those that do not differ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from multimargin.plotting.statistics import RankComparison, compare_ranks, critical_difference


class RankDisplay:
    """Average ranks on a line, the best at the right; bars join classifiers that do not differ significantly.

    Parameters
    ----------
    comparison : RankComparison
    alpha : float, default=0.05
    method : str, default="nemenyi"
        Whose p-values join classifiers: a key of ``comparison.pvalues``. Nemenyi's critical difference is drawn as a
        ruler if it is "nemenyi".

    Attributes
    ----------
    ax_, figure_
        The axes and figure of ``plot``.
    """

    def __init__(self, comparison: RankComparison, *, alpha: float = 0.05, method: str = "nemenyi") -> None:
        if method not in comparison.pvalues:
            raise ValueError(f"method={method!r} is not there; choose one of {', '.join(comparison.pvalues)}.")
        self.comparison, self.alpha, self.method = comparison, alpha, method

    @classmethod
    def from_scores(
        cls,
        scores: ArrayLike,
        names: Sequence[str] | None = None,
        *,
        higher_is_better: bool = True,
        alpha: float = 0.05,
        method: str = "nemenyi",
        ax: Any = None,
    ) -> RankDisplay:
        """Compare and draw; see ``compare_ranks``."""
        comparison = compare_ranks(scores, names, higher_is_better=higher_is_better)
        return cls(comparison, alpha=alpha, method=method).plot(ax)

    def groups(self) -> list[tuple[int, int]]:
        """Return the bars: from place to place in the order of ranks, the longest stretches that do not differ."""
        order = np.argsort(self.comparison.ranks, kind="stable").tolist()
        place = {classifier: at for at, classifier in enumerate(order)}
        k = len(order)
        differ = np.zeros((k, k), dtype=bool)
        for (i, j), p in zip(self.comparison.pairs, self.comparison.pvalues[self.method].tolist(), strict=True):
            differ[place[i], place[j]] = differ[place[j], place[i]] = p <= self.alpha
        found: list[tuple[int, int]] = []
        for first in range(k):
            last = first
            while last + 1 < k and not differ[first : last + 1, last + 1].any():
                last += 1
            if last > first and not (found and found[-1][1] >= last):
                found.append((first, last))
        return found

    def plot(self, ax: Any = None) -> RankDisplay:
        """Draw on ``ax``, or on a new figure."""
        if ax is None:
            from matplotlib.figure import Figure

            ax = Figure(figsize=(7.0, 1.2 + 0.22 * len(self.comparison.names)), layout="constrained").subplots()
        ranks = np.sort(self.comparison.ranks)
        names = [self.comparison.names[i] for i in np.argsort(self.comparison.ranks, kind="stable")]
        k, half = len(names), (len(names) + 1) // 2
        low, high = 1, k
        ax.plot([low, high], [0, 0], color="black", linewidth=1)
        for tick in range(low, high + 1):
            ax.plot([tick, tick], [0, 0.12], color="black", linewidth=1)
            ax.text(tick, 0.2, str(tick), ha="center", va="bottom", fontsize=8)
        groups = self.groups()
        for level, (first, last) in enumerate(groups):
            y = -0.22 - 0.16 * level
            ax.plot([ranks[first] - 0.04, ranks[last] + 0.04], [y, y], color="black", linewidth=3)
        below = -0.5 - 0.16 * len(groups)
        for at, (rank, name) in enumerate(zip(ranks, names, strict=True)):
            best_half = at < half
            depth = below - 0.3 * (at if best_half else k - 1 - at)
            edge = low - 0.1 if best_half else high + 0.1
            ax.plot([rank, rank, edge], [0, depth, depth], color="0.4", linewidth=0.8)
            text = f"{name} {rank:.2f}"
            ax.text(edge, depth, text, ha="right" if best_half else "left", va="bottom", fontsize=9)
        if self.method == "nemenyi":
            width = critical_difference(k, self.comparison.n_sets, self.alpha)
            ax.plot([low, low + width], [0.75, 0.75], color="black", linewidth=1.5)
            ax.text(low, 0.82, f"critical difference {width:.2f}", ha="right", va="bottom", fontsize=8)
        ax.set_xlim(high + 0.3, low - 0.3)  # the best at the right
        ax.set_ylim(below - 0.3 * half, 1.2)
        ax.axis("off")
        self.ax_, self.figure_ = ax, ax.figure
        return self
