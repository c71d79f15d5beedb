"""How do the decision regions of the machines differ?

Trains every machine on three overlapping classes in the plane and draws regions, examples and support
vectors. Run it with ``python examples/plot_machines.py [picture.png]``; needs matplotlib.
"""

from __future__ import annotations

import sys

import numpy as np
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure

from multimargin import MACHINES, SVC

COLOURS = ("#1f5a99", "#b45f06", "#3f7d3a")
TITLES = {
    "ww": "Weston-Watkins",
    "cs": "Crammer-Singer",
    "llw": "Lee-Lin-Wahba",
    "adm": "absolute, maximum",
    "ats": "absolute, total sum",
    "atm": "absolute, total maximum",
    "rm": "reinforced",
    "mmr": "maximum margin regression",
    "ova": "one versus all",
}


def three_classes(n: int = 60) -> tuple[np.ndarray, np.ndarray]:
    """Return points (3 n, 2) of a narrow class between two wide ones, and their classes (3 n,)."""
    rng = np.random.default_rng(4)
    middle = rng.normal((0.0, 0.0), (0.35, 0.9), (n, 2))
    left = rng.normal((-1.6, 0.3), (0.9, 0.7), (n, 2))
    right = rng.normal((1.5, -0.4), (0.7, 0.9), (n, 2))
    return np.concatenate([left, middle, right]), np.repeat(np.arange(3), n)


def main() -> None:
    out = sys.argv[1] if len(sys.argv) > 1 else "machines.png"
    X, y = three_classes()
    grid_x, grid_y = np.meshgrid(np.linspace(-4.6, 4, 259), np.linspace(-3.2, 3.2, 193))
    grid = np.column_stack([grid_x.ravel(), grid_y.ravel()])
    figure = Figure(figsize=(11, 9), layout="constrained")
    figure.suptitle("Decision regions on the same data (rbf kernel, C=1, gamma=0.5); rings: support vectors")
    regions = {}
    for axes, name in zip(figure.subplots(3, 3, sharex=True, sharey=True).ravel(), MACHINES, strict=True):
        clf = SVC(multi_class=name, C=1.0, gamma=0.5).fit(X, y)
        regions[name] = clf.predict(grid)
        picture = regions[name].reshape(grid_x.shape)
        axes.pcolormesh(grid_x, grid_y, picture, cmap=ListedColormap(COLOURS), alpha=0.22, shading="nearest")
        axes.contour(grid_x, grid_y, picture, levels=[0.5, 1.5], colors="white", linewidths=1.5)
        axes.scatter(*X[clf.support_].T, s=42, facecolors="none", edgecolors="black", linewidths=0.5)
        axes.scatter(*X.T, s=12, c=[COLOURS[k] for k in y])
        axes.set_title(f"{name}: {TITLES[name]}\n{len(clf.support_)} support vectors, accuracy {clf.score(X, y):.2f}")
    figure.supxlabel("first feature")
    figure.supylabel("second feature")
    figure.savefig(out, dpi=150)
    share = {name: np.mean(regions[name] != regions["ww"]) for name in MACHINES if name != "ww"}
    most = max(share, key=lambda name: share[name])
    print(
        f"Reading: {out} shows that the machines agree where the data are; {most} differs most from ww, on "
        f"{100 * share[most]:.0f} % of the plane drawn."
    )


if __name__ == "__main__":
    main()
