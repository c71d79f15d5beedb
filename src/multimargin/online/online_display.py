"""Plots of online learning. matplotlib is imported when one is drawn (``pip install 'multimargin[plots]'``)."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from multimargin.online.monitoring import StreamHistory
from multimargin.plotting.axes import new_axes

CURVES = {
    "accuracy": "accuracy before learning",
    "dual": "dual objective",
    "n_support": "support vectors",
}


class OnlineDisplay:
    """Accuracy, dual objective and support vectors against the examples seen, one below the other.

    Draw it with ``from_estimator``; drawing again with ``ax=display.axes_`` adds curves.

    Parameters
    ----------
    history : StreamHistory
    name : str or None, default=None
        For the legend.

    Attributes
    ----------
    axes_ : list of three matplotlib Axes
    ax_ : the first of them
    figure_ : matplotlib Figure
    lines_ : list of matplotlib Line2D
    """

    def __init__(self, history: StreamHistory, *, name: str | None = None) -> None:
        self.history, self.name = history, name

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None, name: str | None = None, **kwargs: Any) -> Self:
        """Draw the ``history_`` of a fitted OnlineSVC.

        Parameters
        ----------
        estimator : OnlineSVC
        ax : three matplotlib Axes or one, default=None
            Where to draw; one is split into three; a new figure by default.
        name : str, default=None
            For the legend.
        **kwargs : dict
            For matplotlib's ``plot``.
        """
        if not hasattr(estimator, "history_"):
            raise ValueError(f"This {type(estimator).__name__} has no history_; give an OnlineSVC that has seen data.")
        return cls(estimator.history_, name=name).plot(ax, **kwargs)

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Draw the curves into three Axes, or one that is split into three, or a new figure."""
        ax = new_axes("OnlineDisplay") if ax is None else ax
        axes = list(ax) if np.iterable(ax) else _split(ax)
        if len(axes) != len(CURVES):
            raise ValueError(f"ax holds {len(axes)} Axes; OnlineDisplay draws {len(CURVES)} curves, so give three.")
        self.ax_ = axes[0]
        self.axes_, self.figure_, self.lines_ = axes, axes[0].figure, []
        for panel, (attribute, label) in zip(axes, CURVES.items(), strict=True):
            style = {"label": self.name, **kwargs}
            (line,) = panel.plot(self.history.examples, getattr(self.history, attribute), **style)
            self.lines_.append(line)
            if attribute == "accuracy":
                style = {**kwargs, "color": line.get_color(), "linestyle": ":", "label": "lately"}
                self.lines_.extend(panel.plot(self.history.examples, self.history.recent_accuracy, **style))
                panel.legend()
            panel.set_ylabel(label)
        axes[-1].set_xlabel("examples seen")
        return self


def _split(ax: Any) -> list[Any]:
    """Return as many Axes as there are curves, in place of one."""
    place = ax.get_subplotspec()
    if place is None:
        raise ValueError("ax is no part of a grid and cannot be split; give three Axes, or one made by plt.subplots().")
    ax.set_axis_off()
    grid = place.subgridspec(len(CURVES), 1)
    first = ax.figure.add_subplot(grid[0])
    return [first, *(ax.figure.add_subplot(grid[k], sharex=first) for k in range(1, len(CURVES)))]
