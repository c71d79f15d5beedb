"""
How much does a warm start save?
================================

Along a path of C each machine starts from the last one, its variables times the ratio of the two C (alpha seeding,
KCSL04). Machines trained from zero need more steps for most of them.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

from multimargin import SVC, svm_path

X, y = load_breast_cancer(return_X_y=True)
X = StandardScaler().fit_transform(X)
Cs = 2.0 ** np.arange(-6, 9)
machine = SVC(kernel="linear", solver="maximum-gain")
seeded = np.array([int(np.sum(n)) for n in svm_path(X, y, Cs=Cs, estimator=machine).n_iter])
unseeded = np.array([int(SVC(kernel="linear", solver="maximum-gain", C=C).fit(X, y).n_iter_.sum()) for C in Cs])

figure, ax = plt.subplots(figsize=(7.5, 4.2), layout="constrained")
ax.plot(Cs, unseeded, "o-", label="from zero")
ax.plot(Cs, seeded, "o-", label="from the C before")
ax.set_xscale("log", base=2)
ax.set_yscale("log")
ax.set_xlabel("C")
ax.set_ylabel("steps")
ax.legend()

print(
    f"Reading: the whole path takes {seeded.sum():,} steps seeded and {unseeded.sum():,} from zero, "
    f"{unseeded.sum() / seeded.sum():.1f} times as many."
)
