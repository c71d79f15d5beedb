"""Machines side by side: test accuracy, training time, and the examples that are hardest.

It depends on the results alone, and uses no global state of matplotlib.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from numpy.typing import NDArray

FORMATS = ("png", "pdf", "svg")
OURS, PEER, WRONG = "#1f5a99", "#b45f06", "#b3261e"
GRID = {"color": "#dddddd", "linewidth": 0.8}


@dataclass(frozen=True)
class MachinePoint:
    """One row of the figure; ``peer`` marks a classifier of another library."""

    name: str
    accuracy: float
    standard_error: float
    seconds: float
    peer: bool = False


@dataclass(frozen=True, eq=False)
class ExamplePicture:
    """An example as an image (height, width) with values in [0, 1], its class and the predicted one."""

    image: NDArray[np.float64]
    truth: str
    predicted: str


def draw_machines(
    points: Sequence[MachinePoint], pictures: Sequence[ExamplePicture], *, title: str, shown: str
) -> Figure:
    """Return a figure: accuracy and seconds per machine, best on top, and the pictures of ``shown``."""
    figure = Figure(figsize=(12.0, 4.8), layout=ConstrainedLayoutEngine(w_pad=0.08, h_pad=0.08))
    figure.suptitle(title, fontsize=13, fontweight="bold")
    panels: Any = figure.subfigures(1, 2, width_ratios=(1.75, 1.0), wspace=0.04)
    left, right = panels
    accuracy, seconds = left.subplots(1, 2, sharey=True)
    ordered = sorted(points, key=lambda point: (point.accuracy, -point.seconds))
    _draw_accuracy(accuracy, ordered)
    _draw_seconds(seconds, ordered)
    _draw_pictures(right, pictures, shown)
    return figure


def _draw_accuracy(axes: Any, ordered: Sequence[MachinePoint]) -> None:
    for height, point in enumerate(ordered):
        axes.errorbar(
            100 * point.accuracy,
            height,
            xerr=100 * point.standard_error,
            fmt="D" if point.peer else "o",
            color=PEER if point.peer else OURS,
            markersize=7,
            elinewidth=1.5,
            capsize=3,
        )
    axes.set_yticks(range(len(ordered)), [point.name for point in ordered])
    axes.set_xlabel("test accuracy in % (bar: one standard error)")
    axes.set_title("Accuracy", fontsize=11)
    _tidy(axes)


def _draw_seconds(axes: Any, ordered: Sequence[MachinePoint]) -> None:
    for height, point in enumerate(ordered):
        axes.plot(
            point.seconds,
            height,
            "D" if point.peer else "o",
            color=PEER if point.peer else OURS,
            markersize=7,
        )
        axes.annotate(
            f"{point.seconds:.2f} s",
            (point.seconds, height),
            (8, 0),
            textcoords="offset points",
            va="center",
            fontsize=8,
        )
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_formatter("")
    axes.margins(x=0.24)
    axes.set_xlabel("training time in seconds (log scale)")
    axes.set_title("Time", fontsize=11)
    axes.tick_params(labelleft=False)
    _tidy(axes)


def _tidy(axes: Any) -> None:
    axes.grid(axis="both", **GRID)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def _draw_pictures(panel: Any, pictures: Sequence[ExamplePicture], shown: str) -> None:
    panel.suptitle(f"Hardest test digits for {shown} (smallest margin first)", fontsize=11)
    if not pictures:
        return
    columns = 4
    grid = panel.subplots(-(-len(pictures) // columns), columns, squeeze=False).ravel()
    for axes in grid:
        axes.set_axis_off()
    for axes, picture in zip(grid, pictures, strict=False):
        axes.imshow(picture.image, cmap="gray_r", vmin=0, vmax=1)
        right = picture.truth == picture.predicted
        text = f"{picture.truth}, right" if right else f"{picture.truth}, taken for {picture.predicted}"
        axes.set_title(text, fontsize=8, color="black" if right else WRONG)
