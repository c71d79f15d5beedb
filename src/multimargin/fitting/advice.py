"""What may be wrong with data and parameters, in words, and the line that helps: for warnings and for the doctor."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from multimargin._typing import DataMatrix
from multimargin.base.matrices import column_deviations

# A column that varies this many times as much as a typical one decides all distances; the others count for nothing.
WIDE = 100.0
LARGE_C = 1e3


@dataclass(frozen=True)
class Advice:
    """What is the matter, what to do about it in words, and as a line of code."""

    text: str
    remedy: str
    line: str

    @property
    def sentence(self) -> str:
        return f"{self.text}; {self.remedy}."


def typical_deviation(spread: np.ndarray) -> float:
    """Return the (lower) median of the deviations of the columns that vary; 0 where none does."""
    varying = np.sort(spread[spread > 0])
    return float(varying[(len(varying) - 1) // 2]) if len(varying) else 0.0


def wide_columns(X: DataMatrix) -> list[tuple[int, float]]:
    """Return the columns that vary far more than a typical one, the widest first, and how many times as much."""
    spread = column_deviations(X)
    typical = typical_deviation(spread)
    if not typical > 0:
        return []
    wide = np.flatnonzero(spread > WIDE * typical)
    return [(int(column), float(spread[column] / typical)) for column in wide[np.argsort(-spread[wide], kind="stable")]]


def unscaled_column(column: str, ratio: float) -> Advice:
    """Return what to say of a column that varies far more than a typical one."""
    return Advice(
        f"column {column} of X varies {ratio:.0f} times as much as a typical one",
        "scale X with sklearn.preprocessing.StandardScaler",
        "clf = make_pipeline(StandardScaler(), SVC())",
    )


def large_products(product: float, largest: float, gamma: float | None) -> Advice:
    """Return what to say of scores that are made of huge terms: of C k(x, x), the largest value of X, and gamma."""
    with_gamma = "" if gamma is None else f" and gamma={gamma:.2g}"
    return Advice(
        f"C k(x, x) reaches {product:.1e} with values of X up to {largest:.1e}{with_gamma}, more than float64 and tol "
        "tell apart",
        "scale X with sklearn.preprocessing.StandardScaler, or lower C",
        "clf = make_pipeline(StandardScaler(), SVC())",
    )


def large_cost(C: float) -> Advice:
    """Return what to say of a large C."""
    return Advice(
        f"C={C:g} is large",
        "try a smaller one, or choose it by cross-validation",
        "search = SVCCV().fit(X, y)",
    )
