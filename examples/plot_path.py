"""
How does a linear machine change along C?
=========================================

``svm_path`` trains a machine for each C, each from the one before. The weights grow and then stay; from the dotted
line on they do not change any more.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import minmax_scale

from multimargin import LinearSVC, PathDisplay, svm_path

X, y = load_breast_cancer(return_X_y=True)
X = minmax_scale(X[:, :4], (-1, 1))
X_train, X_val, y_train, y_val = train_test_split(X, y, test_size=0.5, random_state=0)
path = svm_path(X_train, y_train, Cs=2.0 ** np.arange(-8, 15), estimator=LinearSVC())

figure, axes = plt.subplots(1, 2, figsize=(12, 4.2), layout="constrained")
PathDisplay.from_path(path, ax=axes[0])
errors = PathDisplay.from_path(path, X_train, y_train, X_val=X_val, y_val=y_val, ax=axes[1])

validation = errors.curves["validation"]
best = int(np.argmin(validation))
print(
    f"Reading: the validation error is lowest, {validation[best]:.1%}, at C={path.Cs[best]:g}; the weights stay from "
    f"C={path.saturation_C:g} on."
)
