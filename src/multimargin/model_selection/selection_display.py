"""Plots of searches. matplotlib is imported when one is drawn (``pip install 'multimargin[plots]'``)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from multimargin._typing import FloatArray
from multimargin.model_selection.grid import SelectionGrid, read_grid
from multimargin.plotting.axes import choice_of, new_axes

if TYPE_CHECKING:
    from multimargin.model_selection.comparison import MachineComparison

KINDS = {"heatmap": "scores over C and gamma", "curves": "scores against C"}
MACHINE_KINDS = {"points": "a point for each machine", "bars": "a bar for each machine"}
SHOWN_GAMMAS = 5
MAX_TICKS = 10


class SelectionDisplay:
    """The scores of a search over C and gamma: a heat map, or validation curves.

    Draw it with ``from_estimator``; ``plot`` draws again, in another way or into other axes.

    Parameters
    ----------
    grid : SelectionGrid

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    mesh_ : matplotlib QuadMesh or None
        The heat map, with the means over the folds.
    lines_ : list of matplotlib Line2D
        Of a heat map the mark of the chosen cell and the crosses of those stopped early, if there are any; else the
        curves.
    """

    def __init__(self, grid: SelectionGrid) -> None:
        self.grid = grid

    @classmethod
    def from_estimator(
        cls, search: Any, metric: str | None = None, *, kind: str = "heatmap", ax: Any = None, **kwargs: Any
    ) -> Self:
        """Draw the scores of a fitted search.

        Parameters
        ----------
        search : SVCCV
            Fitted; scikit-learn's GridSearchCV over C and gamma will do.
        metric : str or None, default=None
            One of the search's scores; the one it chose by, if there are several.
        kind : {"heatmap", "curves"}, default="heatmap"
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.
        **kwargs : dict
            See ``plot``.
        """
        return cls(read_grid(search, metric)).plot(ax, kind=kind, **kwargs)

    def plot(
        self, ax: Any = None, *, kind: str = "heatmap", gammas: Sequence[float] | None = None, **kwargs: Any
    ) -> Self:
        """Draw into ``ax``, or into a new figure.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
        kind : {"heatmap", "curves"}, default="heatmap"
            "heatmap": the mean over the folds for each C and gamma, the chosen cell marked by a star, cells stopped
            early by crosses, cells without any score grey. Very low scores share the darkest colour, so that the
            good ones can be distinguished; ``vmin`` sets the limit. "curves": mean and standard deviation over the
            folds against C, a curve for each gamma.
        gammas : sequence of float, default=None
            Those to draw curves for, each the nearest one tried; by default the chosen one and two on either side.
        **kwargs : dict
            For matplotlib's ``pcolormesh`` ("heatmap") or ``plot`` ("curves").
        """
        choice_of("kind", kind, KINDS)
        rows = self._rows(gammas)
        ax = new_axes("SelectionDisplay") if ax is None else ax
        self.ax_, self.figure_ = ax, ax.figure
        self.mesh_: Any = None
        self.lines_: list[Any] = []
        if kind == "heatmap":
            self._draw_map(ax, kwargs)
        else:
            self._draw_curves(ax, rows, kwargs)
        _log_axis(ax, "x", self.grid.Cs)
        ax.set_xlabel("C")
        return self

    def _rows(self, gammas: Sequence[float] | None) -> list[int]:
        """Which gammas have a curve."""
        tried = self.grid.gammas
        if gammas is None:
            n_shown = min(SHOWN_GAMMAS, len(tried))
            first = min(max(0, self.grid.best[0] - SHOWN_GAMMAS // 2), len(tried) - n_shown)
            return list(range(first, first + n_shown))
        wanted = np.asarray(gammas, dtype=np.float64)
        if wanted.ndim != 1 or not len(wanted) or not (wanted > 0).all():
            raise ValueError(f"gammas={gammas!r} is not allowed; give a list of numbers > 0, or None.")
        nearest = np.abs(np.log(wanted)[:, None] - np.log(tried)[None, :]).argmin(axis=1)
        return sorted({int(row) for row in nearest})

    def _draw_map(self, ax: Any, kwargs: dict[str, Any]) -> None:
        grid, has_gamma = self.grid, bool(np.isfinite(self.grid.gammas).all())
        heights = grid.gammas if has_gamma else np.ones(1)
        ax.set_facecolor("0.9")  # cells without a score
        shown, style = np.ma.masked_invalid(grid.mean), {"vmin": _lowest_colour(grid.mean), **kwargs}
        self.mesh_ = ax.pcolormesh(_cell_edges(grid.Cs), _cell_edges(heights), shown, **style)
        cut = style["vmin"] is not None and bool((shown < style["vmin"]).any())
        bar = ax.figure.colorbar(self.mesh_, ax=ax, extend="min" if cut else "neither")
        bar.set_label(f"{grid.metric}, mean of the folds", parse_math=False)  # a scorer's name is its user's
        row, column = grid.best
        chosen = f"best: C={grid.chosen_cost:.4g}" + (f", gamma={grid.chosen_gamma:.4g}" if has_gamma else "")
        star = {"marker": "*", "markersize": 15, "color": "white", "markeredgecolor": "black", "linestyle": "none"}
        self.lines_ += ax.plot(grid.Cs[column], heights[row], **star, label=chosen)
        if grid.stopped.any():
            rows, columns = np.nonzero(grid.stopped)
            cross = {"marker": "x", "color": "0.5", "linestyle": "none", "label": "stopped early"}
            self.lines_ += ax.plot(grid.Cs[columns], heights[rows], **cross)
        _log_axis(ax, "y", heights)
        ax.set_ylabel("gamma" if has_gamma else "")
        if not has_gamma:
            ax.set_yticks([])
        ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, frameon=False)

    def _draw_curves(self, ax: Any, rows: Sequence[int], kwargs: dict[str, Any]) -> None:
        grid = self.grid
        mean, spread = grid.mean, grid.spread
        for row in rows:
            known = np.isfinite(mean[row])
            Cs, middle, width = grid.Cs[known], mean[row, known], spread[row, known]
            name = f"gamma={grid.gammas[row]:.4g}" if np.isfinite(grid.gammas[row]) else None
            (line,) = ax.plot(Cs, middle, **{"marker": ".", "label": name, **kwargs})
            ax.fill_between(Cs, middle - width, middle + width, color=line.get_color(), alpha=0.15, linewidth=0)
            self.lines_.append(line)
            given_up = grid.stopped[row, known]
            if given_up.any():
                ax.plot(Cs[given_up], middle[given_up], "x", color=line.get_color())
        ax.set_ylabel(f"{grid.metric} (band: standard deviation over the folds)", parse_math=False)
        if any(line.get_label() and not line.get_label().startswith("_") for line in self.lines_):
            ax.legend()


class MachinesDisplay:
    """Scores of machines, the best on top.

    Draw it with ``from_comparison``, or ``from_estimator``, which is the same by the name that all displays have.

    Parameters
    ----------
    comparison : MachineComparison

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    """

    def __init__(self, comparison: MachineComparison) -> None:
        self.comparison = comparison

    @classmethod
    def from_comparison(
        cls, comparison: MachineComparison, *, kind: str = "points", ax: Any = None, **kwargs: Any
    ) -> Self:
        """Draw the result of ``compare_machines``; see ``plot``."""
        return cls(comparison).plot(ax, kind=kind, **kwargs)

    @classmethod
    def from_estimator(
        cls, comparison: MachineComparison, *, kind: str = "points", ax: Any = None, **kwargs: Any
    ) -> Self:
        """Draw the result of ``compare_machines``, as ``from_comparison`` does."""
        return cls.from_comparison(comparison, kind=kind, ax=ax, **kwargs)

    def plot(self, ax: Any = None, *, kind: str = "points", **kwargs: Any) -> Self:
        """Draw means, standard deviations over the folds and, where there are any, test scores.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.
        kind : {"points", "bars"}, default="points"
            Points come with the scores of the folds as dots.
        **kwargs : dict
            For matplotlib's ``errorbar`` ("points") or ``barh`` ("bars").
        """
        choice_of("kind", kind, MACHINE_KINDS)
        ax = new_axes("MachinesDisplay") if ax is None else ax
        self.ax_, self.figure_ = ax, ax.figure
        rows = sorted(self.comparison.rows, key=lambda row: row.mean_score)
        heights = np.arange(len(rows))
        means, spreads = (np.array([getattr(row, name) for row in rows]) for name in ("mean_score", "std_score"))
        if kind == "bars":
            ax.barh(heights, means, **{"xerr": spreads, "capsize": 3, "label": "mean of the folds", **kwargs})
        else:
            for height, row in zip(heights, rows, strict=True):
                ax.plot(row.fold_scores, np.full(len(row.fold_scores), height), ".", color="0.7", zorder=1)
            style = {"xerr": spreads, "fmt": "o", "capsize": 3, "label": "mean of the folds", **kwargs}
            ax.errorbar(means, heights, **style)
        tested = [
            (row.test_score, height) for row, height in zip(rows, heights, strict=True) if row.test_score is not None
        ]
        if tested:
            ax.plot(*zip(*tested, strict=True), "D", color="#b45f06", markersize=5, zorder=3, label="test")
            ax.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=2, frameon=False)
        # A machine's name is its user's: a dollar sign in it starts no formula.
        ax.set_yticks(heights, [row.machine for row in rows], parse_math=False)
        ax.set_xlabel(f"{self.comparison.metric} (bar: standard deviation over the folds)", parse_math=False)
        ax.set_title(f"recommended: {self.comparison.recommended}", loc="left", fontsize="medium", parse_math=False)
        return self


def _cell_edges(values: FloatArray) -> FloatArray:
    """Return the edges of cells around ascending values, half way between them on a logarithmic scale."""
    logs = np.log2(values)
    if len(logs) == 1:
        return np.asarray(np.exp2(logs[0] + np.array([-0.5, 0.5])))
    middles = (logs[1:] + logs[:-1]) / 2
    ends = 2 * logs[0] - middles[0], 2 * logs[-1] - middles[-1]
    return np.asarray(np.exp2(np.concatenate([[ends[0]], middles, [ends[1]]])))


def _lowest_colour(mean: FloatArray) -> float | None:
    """Start of the colour scale: three times as far below the best as the median is, if any value is lower."""
    known = mean[np.isfinite(mean)]
    if not len(known):
        return None
    best, median = float(known.max()), float(np.median(known))
    low = best - 3 * (best - median)
    return low if known.min() < low < best else None


def _log_axis(ax: Any, which: str, values: FloatArray) -> None:
    """Make an axis logarithmic with ticks at values that are not too close, as powers of two where most are such."""
    powers = np.log2(values)
    whole = powers == np.round(powers)
    binary = 2 * int(whole.sum()) > len(values)
    ticks: list[float] = []
    for value in values[whole] if binary else values:
        if not ticks or MAX_TICKS * np.log2(value / ticks[-1]) >= powers[-1] - powers[0]:
            ticks.append(float(value))
    (ax.set_xscale if which == "x" else ax.set_yscale)("log")
    axis = ax.xaxis if which == "x" else ax.yaxis
    axis.set_ticks(ticks, [f"$2^{{{np.log2(tick):.0f}}}$" if binary else f"{tick:.4g}" for tick in ticks])
    axis.set_ticks([], minor=True)
