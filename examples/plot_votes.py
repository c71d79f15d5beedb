"""
Where do one-vs-one, the DAG and Weston-Watkins disagree?
=========================================================

One-vs-one and the DAG train the same machine for each pair of classes. Where a class wins against all others, both say
so; where the pairs go round in a circle, votes tie and the DAG's answer depends on its order. The machine ww has one
score for each class and knows no ties.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_blobs

from multimargin import SVC, DecisionDisplay

X, y = make_blobs(150, centers=5, cluster_std=2.6, random_state=8)

figure, axes = plt.subplots(1, 3, figsize=(14, 4.2), sharex=True, sharey=True, layout="constrained")
regions, predicted = {}, {}
for ax, name in zip(axes, ("ovo", "dag", "ww"), strict=True):
    clf = SVC(multi_class=name, C=10, gamma=0.05).fit(X, y)
    display = DecisionDisplay.from_estimator(clf, X, y, grid_resolution=120, ax=ax, margins=False, support=False)
    regions[name], predicted[name] = display.decisions.codes, clf.predict(X)
    differ = np.ma.masked_equal(regions[name] != regions["ovo"], False)
    ax.pcolormesh(display.decisions.xx0, display.decisions.xx1, differ, cmap="gray", shading="nearest", rasterized=True)
    ax.get_legend().remove()
    ax.set_title(f"{name}; black: another class than ovo's")

share = {name: np.mean(codes != regions["ovo"]) for name, codes in regions.items()}
rows = {name: int(np.sum(codes != predicted["ovo"])) for name, codes in predicted.items()}
print(
    f"Reading: the DAG differs from one-vs-one on {share['dag']:.1%} of the plane drawn and {rows['dag']} examples, "
    f"ww on {share['ww']:.1%} and {rows['ww']} of {len(y)}."
)
