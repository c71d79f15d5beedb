"""Fitted estimators of every kind that a model file holds, by name; each is made on first use."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from scipy import sparse
from sklearn import svm
from sklearn.datasets import load_iris

from multimargin import MACHINES, SVC, SVCCV, LinearSVC, LinearSVCCV, from_sklearn
from multimargin._typing import FloatArray
from multimargin.kernels.table import KERNELS
from multimargin.model_selection.pair_selection import PerPairSVC
from support.helpers import own_machines

X, Y = load_iris(return_X_y=True)
X, Y = X[::2], Y[::2]
POINTS: FloatArray = np.random.default_rng(0).uniform(X.min(axis=0) - 0.5, X.max(axis=0) + 0.5, (120, 4))
TEXTS = np.array(["lime", "elm", "oak"])[Y]
PAIR = Y > 0


def kernel_values(A: FloatArray) -> FloatArray:
    """Return the values of a linear kernel with the training rows."""
    return np.asarray(A @ X.T)


def of(clf: Any, labels: np.ndarray = Y, rows: Any = X) -> Callable[[], Any]:
    """Return a function that trains an estimator."""
    return lambda: clf.fit(rows, labels)


def two(clf: Any) -> Callable[[], Any]:
    """Return a function that trains an estimator on two classes."""
    return of(clf, Y[PAIR], X[PAIR])


CASES: dict[str, Callable[[], Any]] = {
    **{f"kernel {name}": of(SVC(kernel=name, gamma=0.1, coef0=0.5)) for name in KERNELS},
    **{f"machine {name}": of(SVC(multi_class=name), TEXTS) for name in (*MACHINES, "dag")},
    **{f"two classes {name}": two(SVC(multi_class=name)) for name in ("ovo", "dag", "ww", "cs")},
    **{f"calibration {kind}": of(SVC(calibration=kind), TEXTS) for kind in ("sigmoid", "isotonic", "coupling")},
    **{f"two calibrated {kind}": two(SVC(calibration=kind)) for kind in ("sigmoid", "coupling")},
    **{f"own {machine.name}": of(SVC(multi_class=machine)) for machine in own_machines()},
    **{f"linear {name}": of(LinearSVC(multi_class=name)) for name in ("ova", "ovo", "dag", "ww", "cs")},
    "linear squared": of(LinearSVC(loss="squared_hinge", bias="regularized", intercept_scaling=2.0)),
    "linear without bias": of(LinearSVC(bias="none")),
    "linear two": two(LinearSVC(multi_class="ww")),
    "linear two cs": two(LinearSVC(multi_class="cs")),
    "linear search": of(LinearSVCCV(Cs=[0.1, 1.0], cv=3)),
    "precomputed": of(SVC(kernel="precomputed"), Y, kernel_values(X)),
    "precomputed ww": of(SVC(kernel="precomputed", multi_class="ww"), Y, kernel_values(X)),
    "sparse": of(SVC(), Y, sparse.csr_array(X)),
    "sparse matrix, float32": of(SVC(multi_class="ww"), Y, sparse.csr_matrix(X.astype(np.float32))),
    "float32": of(SVC(), Y, X.astype(np.float32)),
    "bools": of(SVC(class_weight={True: 2.0}), Y > 0),
    "weights": of(SVC(class_weight="balanced", C=np.float64(3)), TEXTS),
    "break ties": of(SVC(break_ties=True)),
    "pairwise scores": of(SVC(decision_function_shape="ovo")),
    "regularised bias": of(SVC(bias="regularized", loss="squared_hinge")),
    "hard margin": of(SVC(C=float("inf"), gamma=5.0)),
    "search": of(SVCCV(Cs=[1.0, 10.0], gammas=[0.1], cv=3)),
    "pairs": of(PerPairSVC(C=[1.0, 2.0, 3.0], gamma=np.array([0.1, 0.2, 0.3])), TEXTS),
    "pairs dag": of(PerPairSVC(estimator=SVC(multi_class="dag", kernel="linear"))),
    "from scikit-learn": lambda: from_sklearn(svm.SVC().fit(X, Y)),
}


@cache
def fitted(name: str) -> Any:
    """Return the fitted estimator of a case, which tests must not change."""
    return CASES[name]()


def points_for(name: str) -> FloatArray:
    """Return rows to predict, of the kind that a case takes."""
    return kernel_values(POINTS) if name.startswith("precomputed") else POINTS


def outputs(clf: Any, name: str) -> dict[str, np.ndarray]:
    """Return everything that an estimator predicts."""
    points = points_for(name)
    methods = ("predict", "decision_function", "predict_proba")
    return {method: getattr(clf, method)(points) for method in methods if hasattr(clf, method)}
