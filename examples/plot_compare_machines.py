"""
Which machine for these data?
=============================

``compare_machines`` selects C and gamma for each machine on the same folds, because the same C means something else
in each, and recommends the cheapest of those that are as good as the best.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from multimargin import MachinesDisplay, compare_machines

X, y = load_wine(return_X_y=True)
X = StandardScaler().fit_transform(X[:, :4])  # four of thirteen: harder
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.4, stratify=y, random_state=0)
comparison = compare_machines(
    X_train,
    y_train,
    machines=("ovo", "ova", "ww", "cs", "llw"),
    Cs=2.0 ** np.arange(-2, 7, 2),
    gammas=2.0 ** np.arange(-9, -1, 2),
    X_test=X_test,
    y_test=y_test,
)

figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
MachinesDisplay.from_comparison(comparison, ax=ax)

best = max(row.mean_score for row in comparison.rows)
worst = min(row.mean_score for row in comparison.rows)
print(
    f"Reading: the best mean is {best:.1%}, the lowest {worst:.1%}; the cheapest one that is as good as the best "
    f"is {comparison.recommended}."
)
