"""
Can the probabilities be trusted?
=================================

Of all predictions made with a probability near 80 %, about 80 % should be right. The curves show how often they were,
for the probabilities of ``calibration="sigmoid"`` and for scores put through a softmax, which promises nothing.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import softmax
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split

from multimargin import SVC

X, y = make_classification(
    2400, 8, n_informative=5, n_classes=3, n_clusters_per_class=1, flip_y=0.15, class_sep=0.7, random_state=1
)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.75, random_state=0)
plain = SVC(multi_class="ww", C=2, gamma=0.3).fit(X_train, y_train)
calibrated = SVC(multi_class="ww", C=2, gamma=0.3, calibration="sigmoid").fit(X_train, y_train)
tables = {
    'calibration="sigmoid"': calibrated.predict_proba(X_test),
    "softmax of the scores": softmax(plain.decision_function(X_test), axis=1),
}

figure, ax = plt.subplots(figsize=(6, 5), layout="constrained")
ax.plot([0.3, 1], [0.3, 1], color="0.6", linestyle=":", label="as promised")
off = {}
for name, table in tables.items():
    promised, right = table.max(axis=1), table.argmax(axis=1) == y_test
    groups = np.array_split(np.argsort(promised), 8)
    promises, hits = (np.array([values[rows].mean() for rows in groups]) for values in (promised, right))
    ax.plot(promises, hits, "o-", label=name)
    off[name] = np.abs(promises - hits).mean()
ax.set_xlabel("probability of the predicted class")
ax.set_ylabel("share of right predictions")
ax.legend()

print("Reading: " + ", ".join(f"{name} is off by {value:.1%}" for name, value in off.items()) + " on the average.")
