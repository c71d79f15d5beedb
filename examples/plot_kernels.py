"""
What does the kernel change?
============================

The same one-vs-one machine on classes that lie in rings: no line separates them, a polynomial of degree two and the
rbf kernel do. The last panel has a kernel of one's own, a function of two blocks of rows.
"""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np

from multimargin import SVC, DecisionDisplay

rng = np.random.default_rng(0)
radius = np.repeat([0.4, 1.2, 2.0], 50) + rng.normal(0, 0.15, 150)
angle = rng.uniform(0, 2 * np.pi, 150)
X, y = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)]), np.repeat(["inner", "middle", "outer"], 50)


def by_radius(A, B):
    """exp(-(|a| - |b|)^2): points at the same distance from the origin are alike."""
    return np.exp(-(np.subtract.outer(np.linalg.norm(A, axis=1), np.linalg.norm(B, axis=1)) ** 2))


kernels: dict[str, Any] = {"linear": "linear", "poly of degree 2": "poly", "rbf": "rbf", "of our own": by_radius}
figure, axes = plt.subplots(1, 4, figsize=(14, 3.8), sharex=True, sharey=True, layout="constrained")
accuracy, n_support = {}, {}
for ax, (name, kernel) in zip(axes, kernels.items(), strict=True):
    clf = SVC(kernel=kernel, degree=2, coef0=1.0, C=10).fit(X, y)
    accuracy[name], n_support[name] = clf.score(X, y), len(clf.support_)
    DecisionDisplay.from_estimator(clf, X, y, grid_resolution=70, ax=ax)
    ax.get_legend().remove()
    ax.set_title(f"{name}: {accuracy[name]:.0%} right")

print(
    f"Reading: the linear kernel gets {accuracy['linear']:.0%} right; rbf needs {n_support['rbf']} support vectors, "
    f"the kernel that knows about rings {n_support['of our own']}."
)
