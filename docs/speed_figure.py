"""Draws the figure of README and of the landing page: fitting times compared with scikit-learn's.

    python docs/speed_figure.py

Reads ``docs/measured/ovo.json`` and ``docs/measured/selection.json``; writes ``docs/images/speed.svg``. Its text stays
text, so that a test can compare the numbers with the files.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import matplotlib as mpl

HERE = Path(__file__).resolve().parent
MEASURED, PICTURE = HERE / "measured", HERE / "images" / "speed.svg"
OURS, THEIRS = "#1f77b4", "#9aa0a6"

Bar = tuple[str, float, float]  # name, our seconds, scikit-learn's


def read(name: str) -> dict[str, Any]:
    report: dict[str, Any] = json.loads(
        (MEASURED / f"{name}.json").read_text(encoding="utf-8")
    )
    return report


def panels() -> dict[str, list[Bar]]:
    """Return what is drawn: a title, and the times of each data set in seconds."""
    fits = [
        (row["data"], row["seconds"]["multimargin"], row["seconds"]["scikit-learn"])
        for row in read("ovo")["rows"]
        if "scikit-learn" in row["seconds"]
    ]
    searches = [
        (
            f"{row['data']}, {row['cells']} cells",
            row["seconds"]["ours"],
            row["seconds"]["scikit-learn"],
        )
        for row in read("selection")["rows"]
    ]
    by_time = {"key": lambda bar: bar[2]}
    return {
        "One fit of SVC (one-vs-one)": sorted(fits, **by_time),
        "Search for C and gamma, 5 folds": sorted(searches, **by_time),
    }


def label(bar: Bar) -> str:
    """Return the text next to a line."""
    return f"{bar[2] / bar[1]:.1f}\N{MULTIPLICATION SIGN} faster"


def draw_panel(ax: Any, title: str, bars: list[Bar]) -> None:
    """Draw a point for each library and data set, and the ratio of their times."""
    for place, bar in enumerate(bars):
        _, ours, theirs = bar
        ax.plot([ours, theirs], [place, place], color="#d0d4d9", linewidth=3, zorder=1)
        ax.text(theirs * 1.25, place, label(bar), va="center", fontsize=9)
    places = range(len(bars))
    ax.scatter([ours for _, ours, _ in bars], places, s=60, color=OURS, zorder=2)
    ax.scatter([theirs for _, _, theirs in bars], places, s=60, color=THEIRS, zorder=2)
    ax.set_yticks(places, [name for name, _, _ in bars])
    ax.set_ylim(-0.6, len(bars) - 0.4)
    ax.set_xscale("log")
    ax.set_xticks([0.01, 0.1, 1, 10, 100], ["10 ms", "0.1 s", "1 s", "10 s", "100 s"])
    ax.set_xlim(2e-3, 300)
    ax.grid(axis="x", color="#eceff1")
    ax.set_axisbelow(True)
    ax.set_title(title, loc="left", fontsize=10)
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.tick_params(axis="y", length=0)


def draw() -> None:
    """Write the picture."""
    import matplotlib.pyplot as plt

    mpl.rcParams.update(
        {"svg.fonttype": "none", "svg.hashsalt": "multimargin", "font.size": 10}
    )
    shown = panels()
    figure, axes = plt.subplots(
        len(shown),
        1,
        figsize=(8, 4.8),
        height_ratios=[len(bars) for bars in shown.values()],
        sharex=True,
        layout="constrained",
    )
    for ax, (title, bars) in zip(axes, shown.items(), strict=True):
        draw_panel(ax, title, bars)
    versions = read("ovo")["surroundings"]
    libraries = (OURS, "multimargin"), (THEIRS, "scikit-learn")
    handles = [
        mpl.lines.Line2D([], [], color=color, ls="", marker="o", markersize=8)
        for color, _ in libraries
    ]
    names = [f"{name} {versions[name]}" for _, name in libraries]
    figure.legend(handles, names, loc="outside upper right", ncols=2, frameon=False)
    figure.savefig(PICTURE, metadata={"Date": None}, facecolor="white")
    plt.close(figure)


if __name__ == "__main__":
    mpl.use("Agg")
    draw()
