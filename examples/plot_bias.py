"""
When does a bias matter?
========================

Without a bias a linear machine's boundary passes through the origin. On data that are not centred that is a
poor boundary; a free bias (``bias="exact"``) puts it where it belongs. The rbf kernel hardly needs one.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_blobs

from multimargin import SVC, DecisionDisplay

X, y = make_blobs(120, centers=[(2, 2), (4, 3), (3, 5)], cluster_std=0.6, random_state=0)

figure, axes = plt.subplots(2, 2, figsize=(9, 7), sharex=True, sharey=True, layout="constrained")
accuracy = {}
for row, kernel in zip(axes, ("linear", "rbf"), strict=True):
    for ax, bias in zip(row, ("none", "exact"), strict=True):
        clf = SVC(multi_class="ww", kernel=kernel, bias=bias).fit(X, y)
        accuracy[kernel, bias] = clf.score(X, y)
        DecisionDisplay.from_estimator(clf, X, y, grid_resolution=100, ax=ax, support=False)
        ax.get_legend().remove()
        ax.set_title(f'kernel="{kernel}", bias="{bias}": {np.mean(clf.predict(X) == y):.0%} right')

print(
    f"Reading: the linear machine gets {accuracy['linear', 'none']:.0%} right without a bias and "
    f"{accuracy['linear', 'exact']:.0%} with one, the rbf machine {accuracy['rbf', 'none']:.0%} and "
    f"{accuracy['rbf', 'exact']:.0%}."
)
