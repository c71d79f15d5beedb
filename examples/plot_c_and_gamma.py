"""
What do C and gamma do?
=======================

C says what a short margin costs, gamma how far an example's influence reaches. Small values of both make a machine
that follows the data too little, large values one that follows every single example. The numbers are the shares of new
points that are predicted right.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_moons

from multimargin import SVC, DecisionDisplay

X, y = make_moons(150, noise=0.3, random_state=0)
X_test, y_test = make_moons(2000, noise=0.3, random_state=1)

Cs, gammas = (0.1, 10.0, 1000.0), (0.1, 1.0, 30.0)
figure, axes = plt.subplots(3, 3, figsize=(11, 9), sharex=True, sharey=True, layout="constrained")
accuracy = {}
for row, gamma in zip(axes, gammas, strict=True):
    for ax, C in zip(row, Cs, strict=True):
        clf = SVC(C=C, gamma=gamma).fit(X, y)
        accuracy[C, gamma] = clf.score(X_test, y_test)
        DecisionDisplay.from_estimator(clf, X, y, grid_resolution=80, ax=ax, support=False)
        ax.get_legend().remove()
        ax.set_title(f"C={C:g}, gamma={gamma:g}: {accuracy[C, gamma]:.1%}")

best = max(accuracy, key=lambda cell: accuracy[cell])
print(
    f"Reading: of these nine C={best[0]:g} with gamma={best[1]:g} predicts new points best ({accuracy[best]:.1%}); "
    f"the worst has {min(accuracy.values()):.1%}."
)
