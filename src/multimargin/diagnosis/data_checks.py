"""Checks of the data alone: missing values, columns, repeated rows, classes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from multimargin._typing import DataMatrix, IntArray
from multimargin.base.matrices import column_deviations, is_sparse, tidy
from multimargin.diagnosis.findings import Finding, some_of
from multimargin.fitting.advice import unscaled_column, wide_columns

FEW_ROWS = 5  # of a class, fewer than the folds of a search and of a calibration
RARE = 0.02  # the smallest class beside the largest
MANY_REPEATED = 0.1


def missing_values(X: DataMatrix, names: list[str]) -> Iterator[Finding]:
    """Find values that are not finite."""
    values = X.data if is_sparse(X) else X
    bad = ~np.isfinite(values)
    if not bad.any():
        return
    places = np.unique(X.indices[bad]) if is_sparse(X) else np.flatnonzero(bad.any(axis=0))
    yield Finding(
        "error",
        "missing values",
        f"{int(bad.sum()):,} values of X are NaN or infinite, in {columns([names[c] for c in places])}",
        "clf = make_pipeline(SimpleImputer(), StandardScaler(), SVC())",
    )


def text_columns(X: Any) -> list[Finding]:
    """Find columns of a data frame that hold no numbers."""
    kinds = getattr(X, "dtypes", None)
    if not hasattr(X, "columns") or kinds is None:
        return []
    pairs = zip(X.columns, kinds, strict=True)
    texts = [repr(str(name)) for name, kind in pairs if getattr(kind, "kind", "O") not in "fiub"]
    if not texts:
        return []
    line = "X = pandas.get_dummies(X)"
    return [Finding("error", "text columns", f"X holds no numbers in {columns(texts)}", line)]


def column_findings(X: DataMatrix, names: list[str]) -> Iterator[Finding]:
    """Find columns that dominate all others, and constant ones."""
    wide = wide_columns(X)
    if wide:
        advice = unscaled_column(names[wide[0][0]], wide[0][1])
        others = f" (as do {some_of([names[column] for column, _ in wide[1:]])})" if len(wide) > 1 else ""
        line = advice.line.replace("StandardScaler", "MaxAbsScaler") if is_sparse(X) else advice.line
        yield Finding(
            "warning", "unscaled columns", f"{advice.text}{others} and drowns the others; {advice.remedy}", line
        )
    constant = np.flatnonzero(column_deviations(X) == 0)
    if len(constant):
        yield Finding(
            "note",
            "constant columns",
            f"X has one value only, which carries no information, in {columns([names[c] for c in constant])}",
            "X = VarianceThreshold().fit_transform(X)",
        )


def row_numbers(X: DataMatrix) -> IntArray:
    """Return a label for each row, the same for equal rows; only digests are kept in memory."""
    numbers: dict[bytes, int] = {}
    if is_sparse(X):
        rows = tidy(X).copy()
        rows.eliminate_zeros()
        bounds = zip(rows.indptr[:-1], rows.indptr[1:], strict=True)
        parts = (rows.indices[a:b].astype(np.int64).tobytes() + rows.data[a:b].tobytes() for a, b in bounds)
    else:
        parts = ((row + 0.0).tobytes() for row in X)  # 0.0 and -0.0 are equal
    digests = (hashlib.blake2b(part, digest_size=16).digest() for part in parts)
    return np.array([numbers.setdefault(digest, len(numbers)) for digest in digests], dtype=np.int64)


def row_findings(X: DataMatrix, codes: IntArray, *, frame: bool) -> Iterator[Finding]:
    """Find rows that occur with different labels, and many repeated rows."""
    number = row_numbers(X)
    n, n_distinct = len(number), int(number.max(initial=-1)) + 1
    if n_distinct == n:
        return
    pairs, counts = np.unique(np.stack([number, codes]), axis=1, return_counts=True)
    labels_of = np.bincount(pairs[0], minlength=n_distinct)
    torn = np.flatnonzero(labels_of > 1)
    if len(torn):
        largest = np.zeros(n_distinct, dtype=np.int64)
        np.maximum.at(largest, pairs[0], counts)
        first = np.flatnonzero(number == torn[0])
        other = first[codes[first] != codes[first[0]]][0]
        yield Finding(
            "warning",
            "conflicting labels",
            f"{int(np.isin(number, torn).sum()):,} rows occur with another label, too (such as rows {first[0]} and "
            f"{other}): no classifier can get more than {largest.sum() / n:.1%} of the rows right",
            f"print(X{'.iloc' if frame else ''}[[{first[0]}, {other}]])",
        )
    if n - n_distinct > MANY_REPEATED * n:
        yield Finding(
            "note",
            "repeated rows",
            f"{n - n_distinct:,} of {n:,} rows repeat others; X[kept] with sample_weight=counts is the same",
            "_, kept, counts = numpy.unique(numpy.c_[X, y], axis=0, return_index=True, return_counts=True)",
        )


def class_findings(labels: np.ndarray, counts: IntArray) -> Iterator[Finding]:
    """Find classes with few rows."""
    few = np.flatnonzero(counts < FEW_ROWS)
    if len(few):
        named = [f"{labels[c]!s} ({counts[c]})" for c in few]
        smallest = int(counts.min())
        if smallest < 2:
            line = f"kept = ~numpy.isin(y, {labels[counts < 2].tolist()[:5]})"
        else:
            line = f"search = SVCCV(cv={smallest})"
        yield Finding(
            "warning",
            "small classes",
            f"class {some_of(named)} has fewer than {FEW_ROWS} rows, too few for five folds and for a score to trust",
            line,
        )
    elif counts.min() < RARE * counts.max():
        rare = labels[int(np.argmin(counts))]
        yield Finding(
            "note",
            "rare classes",
            f"class {rare!s} has {int(counts.min()):,} rows, the largest {int(counts.max()):,}: a classifier may leave "
            "it out and still have a good accuracy",
            'clf = SVC(class_weight="balanced")  # and scoring="balanced_accuracy"',
        )


def columns(names: list[str]) -> str:
    """Return "column a" or "columns a, b"."""
    return f"column{'s' if len(names) > 1 else ''} {some_of(names)}"


def column_names(X: Any, n_features: int) -> list[str]:
    """Return the names of the columns of a data frame, else their numbers."""
    columns = getattr(X, "columns", None)
    return [str(c) for c in range(n_features)] if columns is None else [repr(str(c)) for c in columns]
