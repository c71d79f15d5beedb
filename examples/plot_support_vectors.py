"""
Which examples determine the boundary?
======================================

With a small C many examples are allowed to be short of their margin: they are support vectors at their bound. With a
large C few are left, and most support vectors are free: they lie on the dashed lines, where margins are just met.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_iris

from multimargin import SVC, DecisionDisplay

data = load_iris()
X, y = data.data[50:, 2:], data.target_names[data.target[50:]]

figure, axes = plt.subplots(1, 2, figsize=(10, 4), sharey=True, layout="constrained")
counts = {}
for ax, C in zip(axes, (0.1, 1000.0), strict=True):
    clf = SVC(C=C, gamma=0.5).fit(X, y)
    display = DecisionDisplay.from_estimator(clf, X, y, ax=ax)
    assert display.examples is not None
    counts[C] = len(display.examples.free), len(display.examples.bounded)
    ax.set(title=f"C={C:g}", xlabel=data.feature_names[2], ylabel=data.feature_names[3])

print(
    "Reading: "
    + "; ".join(f"C={C:g} leaves {free} free and {bounded} bounded" for C, (free, bounded) in counts.items())
    + " support vectors."
)
