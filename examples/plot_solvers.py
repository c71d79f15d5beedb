"""
Which solver is fastest?
========================

All solvers of a machine end at the same optimum. Here is how the KKT violation of four of them falls on the digits;
``solver="auto"`` takes "two-level".
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

from multimargin import SVC, ConvergenceDisplay

X, y = load_digits(return_X_y=True)
X, y = X[:600] / 16, y[:600]
fits = {
    solver: SVC(multi_class="ww", C=10, gamma=0.1, solver=solver, trace=True).fit(X, y)
    for solver in ("two-level", "semi-greedy", "s2do", "smo")
}

figure, axes = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
ConvergenceDisplay.from_estimators(fits, x="seconds", ax=axes[0])
ConvergenceDisplay.from_estimators(fits, x="iterations", y="suboptimality", ax=axes[1])
axes[1].set_xscale("log")

duals = [clf.certificate_.dual for clf in fits.values()]
steps = {solver: int(clf.n_iter_[0]) for solver, clf in fits.items()}
print(
    f"Reading: the duals agree to {(max(duals) - min(duals)) / max(duals):.0e} of their value; "
    + ", ".join(f"{solver} took {n:,} steps" for solver, n in steps.items())
    + "."
)
