"""The fits of the demonstration: every machine and scikit-learn's SVC on the same digits."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import sklearn.svm
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split

from multimargin import MACHINES, SVC, Certificate

# On these digits every machine converges in seconds with them, and the best test errors are below 1 %.
C, GAMMA = 10.0, 0.1
TEST_SHARE = 0.3
QUICK_ROWS = 400
PIXEL_MAXIMUM = 16.0
PEER = "scikit-learn SVC"
RUNS = (PEER, *MACHINES)


@dataclass(frozen=True, eq=False)
class Digits:
    """Train and test digits, pixels in [0, 1]; X (n, 64), y (n,)."""

    X_train: NDArray[np.float64]
    X_test: NDArray[np.float64]
    y_train: NDArray[np.int64]
    y_test: NDArray[np.int64]


def load(quick: bool) -> Digits:
    """Return scikit-learn's digits in a fixed split; ``quick`` keeps fewer training rows."""
    X, y = load_digits(return_X_y=True)
    parts = train_test_split(X / PIXEL_MAXIMUM, y, test_size=TEST_SHARE, random_state=0, stratify=y)
    digits = Digits(*parts)
    if not quick:
        return digits
    return Digits(digits.X_train[:QUICK_ROWS], digits.X_test, digits.y_train[:QUICK_ROWS], digits.y_test)


@dataclass(frozen=True, eq=False)
class Run:
    """One trained classifier. ``certificate`` is None where the library gives none."""

    name: str
    n_test: int
    n_correct: int
    seconds: float
    n_support: int
    certificate: Certificate | None
    classifier: SVC | sklearn.svm.SVC

    @property
    def accuracy(self) -> float:
        """Share of the test digits that are classified correctly."""
        return self.n_correct / self.n_test

    @property
    def standard_error(self) -> float:
        """One standard error of ``accuracy``."""
        return math.sqrt(self.accuracy * (1 - self.accuracy) / self.n_test)

    @property
    def proved(self) -> bool:
        """Whether optimality was verified in float64."""
        return self.certificate is not None and self.certificate.optimal


def train(name: str, digits: Digits, time_limit: float) -> Run:
    """Train one entry of RUNS; a fit that ends by the time limit is marked in its certificate, without a warning."""
    peer = name == PEER
    classifier = (
        sklearn.svm.SVC(C=C, gamma=GAMMA) if peer else SVC(C=C, gamma=GAMMA, multi_class=name, max_time=time_limit)
    )
    begin = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        classifier.fit(digits.X_train, digits.y_train)
    seconds = time.perf_counter() - begin
    return Run(
        name=name,
        n_test=len(digits.y_test),
        n_correct=int((classifier.predict(digits.X_test) == digits.y_test).sum()),
        seconds=seconds,
        n_support=len(classifier.support_),
        certificate=None if peer else classifier.certificate_,
        classifier=classifier,
    )


@dataclass(frozen=True, eq=False)
class HardDigit:
    """A test digit with a small margin: image (8, 8), its class and the one predicted."""

    image: NDArray[np.float64]
    truth: int
    predicted: int


def hardest(run: Run, digits: Digits, count: int) -> Iterator[HardDigit]:
    """Yield the test digits whose true class leads the best other one by least (or trails it by most)."""
    scores = np.array(run.classifier.decision_function(digits.X_test))
    predicted = run.classifier.predict(digits.X_test)
    rows = np.arange(len(scores))
    own = scores[rows, digits.y_test]
    scores[rows, digits.y_test] = -np.inf
    for i in np.argsort(own - scores.max(axis=1), kind="stable")[:count]:
        yield HardDigit(digits.X_test[i].reshape(8, 8), int(digits.y_test[i]), int(predicted[i]))
