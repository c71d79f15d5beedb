"""
Can some confusions be penalised more than others?
==================================================

A machine is data: its target margins may come from a table of costs. Here taking a digit 8 for a 1 is to be avoided,
so that examples of class 8 have to keep three times the distance from class 1.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics import ConfusionMatrixDisplay, confusion_matrix

from multimargin import SVC, Bound, ComponentTable, Machine

X, y = load_digits(return_X_y=True)
kept = np.isin(y, (1, 8, 9))
X, y = X[kept] / 16, y[kept]
X = X + np.random.default_rng(0).normal(0, 0.5, X.shape)  # harder than it was
train = np.arange(len(y)) < 200

costs = np.array([[0.0, 1.0, 1.0], [3.0, 0.0, 1.0], [1.0, 1.0, 0.0]])  # rows: 1, 8, 9
machines: dict[str, str | Machine] = {
    "ww": "ww",
    "costs": Machine("costs", Bound.BOX, False, ComponentTable.relative(3, 2 * costs)),
}
figure, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
taken = {}
for ax, (name, machine) in zip(axes, machines.items(), strict=True):
    clf = SVC(multi_class=machine, C=1, gamma=0.01).fit(X[train], y[train])
    matrix = confusion_matrix(y[~train], clf.predict(X[~train]))
    ConfusionMatrixDisplay(matrix, display_labels=clf.classes_).plot(ax=ax, colorbar=False, cmap="Blues")
    ax.set_title(f"{name}: {np.trace(matrix) / matrix.sum():.1%} right")
    taken[name] = matrix[1, 0]

print(f"Reading: ww takes {taken['ww']} of the test's digits 8 for a 1, the machine with costs {taken['costs']}.")
