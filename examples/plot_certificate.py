"""
How far from the optimum is a fit that is still running?
========================================================

The dual objective is a lower bound of the optimum and rises, the primal objective is an upper bound. Whatever stops a
fit, the optimum lies between the two: that is what a certificate states.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from multimargin import SVC

X, y = load_digits(return_X_y=True)
clf = SVC(multi_class="ww", C=10, gamma=0.1, solver="s2do", trace="primal").fit(X[:400] / 16, y[:400])
trace, certificate = clf.trace_, clf.certificate_

figure, ax = plt.subplots(figsize=(8, 4.5), layout="constrained")
lowest = np.minimum.accumulate(trace.primal)
ax.fill_between(trace.iterations, trace.dual, lowest, alpha=0.2, label="the optimum is in here")
ax.plot(trace.iterations, lowest, label="primal, the lowest so far")
ax.plot(trace.iterations, trace.dual, label="dual")
ax.set_xlabel("iterations")
ax.set_ylabel("objective")
ax.set_yscale("log")
ax.legend(loc="upper right")

half = len(trace) // 2
print(
    f"Reading: half way the optimum was known to {(lowest[half] - trace.dual[half]) / lowest[half]:.0%}, at the end to "
    f"{certificate.relative_gap:.2%} of its value, with a KKT violation of {certificate.kkt_violation:.1e}."
)
