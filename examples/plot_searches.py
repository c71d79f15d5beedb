"""
How much of a grid must a search try?
=====================================

A race abandons cells that cannot win any more, halving keeps the better half of them from fold to fold. Crosses mark
what was abandoned.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_iris

from multimargin import SVCCV, SelectionDisplay

X, y = load_iris(return_X_y=True)
figure, axes = plt.subplots(1, 3, figsize=(15, 4.4), layout="constrained")
lines = []
for ax, kind in zip(axes, ("grid", "racing", "halving"), strict=True):
    search = SVCCV(Cs=2.0 ** np.arange(-2, 9), gammas=2.0 ** np.arange(-8, 3), search=kind, cv=5).fit(X, y)
    SelectionDisplay.from_estimator(search, ax=ax)
    ax.set_xlabel(f'C (search="{kind}")')
    finished = search.stopped_.size - int(search.stopped_.sum())
    lines.append(f"{kind} finishes {finished} of {search.stopped_.size} cells and finds {search.best_score_:.1%}")

print(f"Reading: {'; '.join(lines)}.")
