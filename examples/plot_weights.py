"""
What does the weight of an example do?
======================================

A weight multiplies the C of an example, exactly as if it occurred that often. Here five examples of one class are
made ten times as important, and the boundary moves away from them.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_blobs

from multimargin import SVC, DecisionDisplay

X, y = make_blobs(60, centers=[(0, 0), (2, 1)], cluster_std=1.3, random_state=7)
plain = SVC(C=1, gamma=0.1).fit(X, y)
hardest = np.flatnonzero(y == 1)[np.argsort(plain.decision_function(X[y == 1]))[:5]]
weight = np.ones(len(y))
weight[hardest] = 10.0

figure, axes = plt.subplots(1, 2, figsize=(10, 4.2), sharey=True, layout="constrained")
weighted = SVC(C=1, gamma=0.1).fit(X, y, sample_weight=weight)
for ax, clf, used in ((axes[0], plain, None), (axes[1], weighted, weight)):
    DecisionDisplay.from_estimator(clf, X, y, sample_weight=used, ax=ax)
    ax.scatter(*X[hardest].T, marker="*", s=90, color="gold", edgecolors="black", linewidths=0.6, zorder=4)
    ax.set_title("all weights 1" if used is None else "weight 10 for the stars")

right = [int((clf.predict(X[hardest]) == 1).sum()) for clf in (plain, weighted)]
print(
    f"Reading: of the five starred examples {right[0]} are on the right side with weight 1, {right[1]} with weight 10."
)
