"""
Can a fit be stopped and continued?
===================================

Parts of a fit, each limited to two hundredths of a second, continued with ``warm_start``. Every part leaves a model
that can predict; the last one is the optimum. Ctrl-C in a part keeps what it has.
"""

import warnings

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning

from multimargin import SVC, verify

X, y = load_digits(return_X_y=True)
X = X / 16
clf = SVC(C=10, gamma=0.1, multi_class="ww", solver="smo", max_time=0.02, warm_start=True, on_interrupt="keep")

violations: list[float] = []
accuracies: list[float] = []
with warnings.catch_warnings():
    warnings.simplefilter("ignore", ConvergenceWarning)  # each part but the last ends early, as asked
    while not violations or (clf.certificate_.stop_reason == "max_time" and len(violations) < 60):
        clf.fit(X[::3], y[::3])
        violations.append(verify(clf, X[::3], y[::3]).kkt_violation)
        accuracies.append(clf.score(X[1::3], y[1::3]))

figure, ax = plt.subplots(figsize=(7.5, 4.2), layout="constrained")
parts = range(1, len(violations) + 1)
ax.plot(parts, violations, "o-", label="KKT violation")
ax.axhline(clf.tol, color="0.6", linestyle=":", label="tol")
ax.set_yscale("log")
ax.set_xlabel("part")
ax.set_ylabel("KKT violation")
right = ax.twinx()
right.plot(parts, accuracies, "s-", color="tab:orange", label="accuracy on other digits")
right.set_ylim(0.9, 1.0)
right.set_ylabel("accuracy on other digits")
figure.legend(loc="outside upper center", ncols=3)

print(
    f"Reading: {len(violations)} parts of at most {clf.max_time} s end {clf.certificate_.stop_reason}; the first one "
    f"already predicts {accuracies[0]:.1%} right, the last {accuracies[-1]:.1%}."
)
