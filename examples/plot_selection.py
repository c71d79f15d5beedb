"""
Which C and gamma?
==================

``SVCCV`` tries a grid by cross-validation; kernels and solutions are shared between its cells. A star marks the best
cell; the curves show how much the folds differ.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler

from multimargin import SVCCV, SelectionDisplay

X, y = load_wine(return_X_y=True)
X = StandardScaler().fit_transform(X)
search = SVCCV(Cs=2.0 ** np.arange(-4, 9), gammas=2.0 ** np.arange(-12, 1), cv=5).fit(X, y)

figure, axes = plt.subplots(1, 2, figsize=(12, 4.4), layout="constrained")
SelectionDisplay.from_estimator(search, ax=axes[0])
SelectionDisplay.from_estimator(search, kind="curves", ax=axes[1])

scores = search.scores_["score"].mean(axis=2)
close = np.mean(scores > search.best_score_ - 0.01)
print(
    "Reading: C={C:g} and gamma={gamma:g} reach ".format(**search.best_params_) + f"{search.best_score_:.1%}; "
    f"{close:.0%} of the {scores.size} cells come within one point of that."
)
