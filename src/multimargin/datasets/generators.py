"""Random data sets in the plane that no linear machine separates, with any number of classes."""

from __future__ import annotations

from typing import Any

import numpy as np

from multimargin._typing import FloatArray, IntArray
from multimargin.fitting.parameters import check_seed


def chessboard(
    n_samples: int = 1000, *, n_classes: int = 2, n_fields: int = 4, noise: float = 0.0, random_state: Any = None
) -> tuple[FloatArray, IntArray]:
    """Draw points on a chessboard whose field in row i and column j has the class (i + j) mod ``n_classes``.

    Parameters
    ----------
    n_samples : int, default=1000
    n_classes : int, default=2
    n_fields : int, default=4
        Fields along each side; at least ``n_classes``.
    noise : float, default=0.0
        Share of the points that get the class of a field drawn at random.
    random_state : int, RandomState or None, default=None

    Returns
    -------
    X : ndarray of shape (n_samples, 2)
        Uniform in [0, n_fields]^2.
    y : ndarray of shape (n_samples,)
    """
    _check_counts(n_samples, n_classes)
    if n_fields < n_classes:
        raise ValueError(f"n_fields={n_fields} is less than n_classes={n_classes}; ask for as many fields at least.")
    _check_noise(noise, largest=1.0)
    rng = check_seed("random_state", random_state)
    X = rng.uniform(0.0, n_fields, (n_samples, 2))
    y = np.floor(X).astype(np.int64).sum(axis=1) % n_classes
    moved = rng.uniform(size=n_samples) < noise
    y[moved] = rng.randint(0, n_classes, moved.sum())
    return X, y


def banana(
    n_samples: int = 1000, *, n_classes: int = 2, noise: float = 0.2, random_state: Any = None
) -> tuple[FloatArray, IntArray]:
    """Draw points around arcs of a circle, one for each class, that interlock.

    Parameters
    ----------
    n_samples : int, default=1000
    n_classes : int, default=2
        Every second arc is open downwards, the others upwards.
    noise : float, default=0.2
        Standard deviation of the points around their arc, whose radius is 1.
    random_state : int, RandomState or None, default=None

    Returns
    -------
    X : ndarray of shape (n_samples, 2)
    y : ndarray of shape (n_samples,)
    """
    rng, y = _start(n_samples, n_classes, noise, random_state)
    angle = rng.uniform(0.0, np.pi, n_samples)
    side = np.where(y % 2 == 0, 1.0, -1.0)
    X = np.stack([y + np.cos(angle), side * (np.sin(angle) - 0.25)], axis=1)
    return X + rng.normal(0.0, noise, X.shape), y


def rings(
    n_samples: int = 1000, *, n_classes: int = 3, noise: float = 0.1, random_state: Any = None
) -> tuple[FloatArray, IntArray]:
    """Draw points around circles with a common centre, class c around that of radius c + 1.

    Parameters
    ----------
    n_samples : int, default=1000
    n_classes : int, default=3
    noise : float, default=0.1
        Standard deviation of the radius; from about 0.25 on the rings overlap.
    random_state : int, RandomState or None, default=None

    Returns
    -------
    X : ndarray of shape (n_samples, 2)
    y : ndarray of shape (n_samples,)
    """
    rng, y = _start(n_samples, n_classes, noise, random_state)
    angle = rng.uniform(0.0, 2 * np.pi, n_samples)
    radius = y + 1 + rng.normal(0.0, noise, n_samples)
    return radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1), y


def overlapping(  # noqa: PLR0913 - what a draw is made of, by keyword
    n_samples: int = 1000,
    *,
    n_classes: int = 5,
    n_features: int = 4,
    overlap: float = 1.0,
    noise: float = 0.0,
    duplicates: float = 0.0,
    random_state: Any = None,
) -> tuple[FloatArray, IntArray]:
    """Draw classes that reach into each other: two normal clouds for each, with labels that may be wrong.

    Parameters
    ----------
    n_samples : int, default=1000
    n_classes : int, default=5
    n_features : int, default=4
    overlap : float, default=1.0
        Standard deviation of a cloud; the centres are drawn from a normal distribution of standard deviation 1.
    noise : float, default=0.0
        Share of the points that get a class drawn at random.
    duplicates : float, default=0.0
        Share of the points that repeat the features of another point, with their own class.
    random_state : int, RandomState or None, default=None

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
    y : ndarray of shape (n_samples,)
    """
    _check_counts(n_samples, n_classes)
    _check_noise(noise, largest=1.0)
    _check_share("duplicates", duplicates)
    _check_positive("n_features", n_features)
    _check_positive("overlap", overlap)
    rng = check_seed("random_state", random_state)
    centres = rng.normal(size=(n_classes, 2, n_features))
    y = np.arange(n_samples, dtype=np.int64) % n_classes
    X = centres[y, rng.randint(0, 2, n_samples)] + rng.normal(0.0, overlap, (n_samples, n_features))
    repeated = rng.uniform(size=n_samples) < duplicates
    X[repeated] = X[rng.randint(0, n_samples, repeated.sum())]
    moved = rng.uniform(size=n_samples) < noise
    y[moved] = rng.randint(0, n_classes, moved.sum())
    return X, y


def _start(n_samples: int, n_classes: int, noise: float, random_state: Any) -> tuple[np.random.RandomState, IntArray]:
    """Check the parameters; return the generator, and labels of all classes in turn."""
    _check_counts(n_samples, n_classes)
    _check_noise(noise)
    return check_seed("random_state", random_state), np.arange(n_samples, dtype=np.int64) % n_classes


def _check_counts(n_samples: int, n_classes: int) -> None:
    if n_classes < 2:
        raise ValueError(f"n_classes={n_classes} is not allowed; ask for two classes or more.")
    if n_samples < n_classes:
        raise ValueError(f"n_samples={n_samples} is less than n_classes={n_classes}; ask for more samples.")


def _check_noise(noise: float, largest: float = np.inf) -> None:
    if not 0 <= noise <= largest:
        upper = f" and <= {largest:g}" if np.isfinite(largest) else ""
        raise ValueError(f"noise={noise} is not allowed; give a number >= 0{upper}.")


def _check_share(name: str, value: float) -> None:
    if not 0 <= value <= 1:
        raise ValueError(f"{name}={value} is not allowed; give a number >= 0 and <= 1.")


def _check_positive(name: str, value: float) -> None:
    if not 0 < value < np.inf:
        raise ValueError(f"{name}={value} is not allowed; give a number > 0.")
