"""Draws the pictures of the machine cards: every machine on the same three classes in the plane.

    python docs/machine_pictures.py

Writes ``docs/images/machines/<name>.png``. The data are those of ``examples/plot_machines.py``.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np

from multimargin import MACHINES, SVC, DecisionDisplay

PICTURES = Path(__file__).resolve().parent / "images" / "machines"


def make_data() -> tuple[np.ndarray, np.ndarray]:
    """Return three overlapping classes of 40 points each."""
    rng = np.random.default_rng(4)
    n = 40
    left = rng.normal((-1.6, 0.3), (0.9, 0.7), (n, 2))
    middle = rng.normal((0.0, 0.0), (0.35, 0.9), (n, 2))
    right = rng.normal((1.5, -0.4), (0.7, 0.9), (n, 2))
    return np.concatenate([left, middle, right]), np.repeat(
        ["left", "middle", "right"], n
    )


def draw(name: str) -> None:
    """Write the picture of one machine."""
    import matplotlib.pyplot as plt

    X, y = make_data()
    clf = SVC(multi_class=name, gamma=0.5).fit(X, y)
    figure, ax = plt.subplots(figsize=(5.4, 3.4), layout="constrained")
    display = DecisionDisplay.from_estimator(clf, X, y, grid_resolution=160, ax=ax)
    display.ax_.get_legend().remove()
    ax.set_title(
        f'multi_class="{name}": {len(clf.support_)} support vectors', fontsize=10
    )
    figure.savefig(PICTURES / f"{name}.png", dpi=110, metadata={"Software": None})
    plt.close(figure)


if __name__ == "__main__":
    mpl.use("Agg")
    PICTURES.mkdir(parents=True, exist_ok=True)
    for name in ("ovo", *MACHINES):
        draw(name)
