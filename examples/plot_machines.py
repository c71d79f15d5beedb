"""
How do the decision regions of the machines differ?
===================================================

Every machine on three overlapping classes in the plane: regions, lines where margins are met, and support vectors
(rings: free, squares: at their bound). C, gamma and the data are the same in all panels.
"""

import matplotlib.pyplot as plt
import numpy as np

from multimargin import MACHINES, SVC, DecisionDisplay

rng = np.random.default_rng(4)
n = 40
left = rng.normal((-1.6, 0.3), (0.9, 0.7), (n, 2))
middle = rng.normal((0.0, 0.0), (0.35, 0.9), (n, 2))
right = rng.normal((1.5, -0.4), (0.7, 0.9), (n, 2))
X, y = np.concatenate([left, middle, right]), np.repeat(["left", "middle", "right"], n)

figure, axes = plt.subplots(2, 5, figsize=(15, 6), sharex=True, sharey=True, layout="constrained")
regions, predicted = {}, {}
for ax, name in zip(axes.flat, ("ovo", *MACHINES), strict=True):
    clf = SVC(multi_class=name, gamma=0.5).fit(X, y)
    display = DecisionDisplay.from_estimator(clf, X, y, grid_resolution=80, ax=ax)
    regions[name], predicted[name] = display.decisions.codes, clf.predict(X)
    ax.set_title(f"{name}: {len(clf.support_)} support vectors")
    ax.get_legend().remove()

share = {name: np.mean(codes != regions["ww"]) for name, codes in regions.items()}
most = max(share, key=lambda name: share[name])
print(
    f"Reading: {most} differs most from ww, on {share[most]:.0%} of the plane drawn, but on "
    f"{np.sum(predicted[most] != predicted['ww'])} of the {len(y)} examples only."
)
