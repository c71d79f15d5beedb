"""Derived from a machine's margins: the coupling M = nu Pi nu', its structure, and a from beta.

Within one example M = diag(private_square) + sigma w w' for every published machine; the exact step on a whole
example and the recovery of the dual variables from the coefficients rest on that form.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from multimargin._typing import FloatArray, IntArray
from multimargin.problems.machines import ComponentTable, Machine

# With so many examples, and most variables not zero, a component at a time is faster than a list of all of them.
MANY_EXAMPLES = 500


@dataclass(frozen=True, eq=False)
class Structure:
    """The form of M within one example, per class; arrays (n_classes, n_components), sigma (n_classes,).

    ``private_class`` is the class that one component alone mentions. ``structured`` is False when a machine of
    a user's own does not have the form: then only solvers that need single couplings train it.
    """

    private_class: IntArray
    private_value: FloatArray
    weight: FloatArray
    sigma: FloatArray
    structured: bool


def coupling_matrix(machine: Machine, n_classes: int) -> FloatArray:
    """Return M[y, p, z, q] = nu_yp Pi nu_zq' as a dense array: for small numbers of classes, and for tests."""
    nu = machine.table(n_classes).dense()
    projected = nu - nu.mean(axis=2, keepdims=True) if machine.sum_to_zero else nu
    coupling: FloatArray = np.einsum("ypc,zqc->ypzq", projected, nu)
    return coupling


@lru_cache(maxsize=64)
def derive_structure(machine: Machine, n_classes: int) -> Structure:
    """Find the private class of every component and the one shared direction of every class."""
    table = machine.table(n_classes)
    shape = table.class1.shape
    private_class = np.zeros(shape, dtype=np.int64)
    private_value, weight = np.zeros(shape), np.zeros(shape)
    sigma = np.zeros(n_classes)
    structured = True
    for y in range(n_classes):
        n = int(table.n_components[y])
        found = _structure_of_class(table, machine.sum_to_zero, y)
        if found is None:
            structured = False
            continue
        private_class[y, :n], private_value[y, :n], weight[y, :n], sigma[y] = found
    return Structure(private_class, private_value, weight, sigma, structured)


def _structure_of_class(
    table: ComponentTable, sum_to_zero: bool, y: int
) -> tuple[IntArray, FloatArray, FloatArray, float] | None:
    n_classes = table.n_classes
    class1, value1, class2, value2 = table.of_class(y)
    two = class2 >= 0
    mentions = np.bincount(class1, minlength=n_classes) + np.bincount(class2[two], minlength=n_classes)
    alone1 = mentions[class1] == 1
    alone2 = two & (mentions[np.maximum(class2, 0)] == 1)
    if not (alone1 | alone2).all():
        return None
    # With two classes both entries may be private; the other class then plays the private part.
    second = alone2 & (~alone1 | (class1 == y))
    private_class = np.where(second, class2, class1)
    private_value = np.where(second, value2, value1)
    shared_class = np.where(second, class1, np.where(two, class2, -1))
    shared_value = np.where(second, value1, np.where(two, value2, 0.0))
    if len(np.unique(shared_class[shared_class >= 0])) > 1:
        return None
    row_sum = value1 + np.where(two, value2, 0.0)
    projects = sum_to_zero and bool(np.any(row_sum != 0))
    if projects and np.any(shared_value != 0):
        return None
    if projects:
        return private_class, private_value, row_sum, -1.0 / n_classes
    return private_class, private_value, shared_value, float(np.any(shared_value != 0))


def coefficients(machine: Machine, amounts: FloatArray, y: IntArray, n_classes: int) -> FloatArray:
    """Return beta = Pi nu' a, shape (n_samples, n_classes), of amounts (n_samples, n_components)."""
    table = machine.table(n_classes)
    if len(y) >= MANY_EXAMPLES and 2 * np.count_nonzero(amounts) > amounts.size:
        places = places_of_classes(machine, n_classes)
        if places is not None:
            beta = np.take_along_axis(table.value1[y] * amounts, places[y], axis=1)
        else:
            beta = _dense_coefficients(table, amounts, y)
        return beta - beta.mean(axis=1, keepdims=True) if machine.sum_to_zero else beta
    row, p = np.nonzero(amounts)
    label, used = y[row], amounts[row, p]
    where = row * n_classes + table.class1[label, p]
    size = len(y) * n_classes
    flat: FloatArray = np.bincount(where, weights=table.value1[label, p] * used, minlength=size).astype(np.float64)
    second = table.class2[label, p]
    two = second >= 0
    where = row[two] * n_classes + second[two]
    flat += np.bincount(where, weights=(table.value2[label, p] * used)[two], minlength=size)
    beta = flat.reshape(len(y), n_classes)
    return beta - beta.mean(axis=1, keepdims=True) if machine.sum_to_zero else beta


@lru_cache(maxsize=64)
def places_of_classes(machine: Machine, n_classes: int) -> IntArray | None:
    """Return which component of each label is about each class, where every one is about its own class alone."""
    table = machine.table(n_classes)
    each = np.arange(n_classes)
    if table.class1.shape[1] != n_classes or (table.class2 >= 0).any():
        return None
    if not (table.n_components == n_classes).all() or not (np.sort(table.class1, axis=1) == each).all():
        return None
    return np.argsort(table.class1, axis=1)


def _dense_coefficients(table: ComponentTable, amounts: FloatArray, y: IntArray) -> FloatArray:
    """nu' a, a component of all examples at a time, in the order of ``coefficients`` so that the bits are its."""
    rows = np.arange(len(y))
    first, second = (np.zeros((len(y), table.n_classes)) for _ in range(2))
    mentions_two = table.class2 >= 0
    for p in range(amounts.shape[1]):
        first[rows, table.class1[y, p]] += table.value1[y, p] * amounts[:, p]
        if mentions_two[:, p].any():
            two = mentions_two[y, p]
            own = y[two]
            second[rows[two], table.class2[own, p]] += table.value2[own, p] * amounts[two, p]
    first += second
    return first


def margins(machine: Machine, scores: FloatArray, y: IntArray) -> FloatArray:
    """Return m_yp(f) of every example, shape (n_samples, n_components); padded components are 0."""
    n_classes = scores.shape[1]
    table = machine.table(n_classes)
    rows = np.arange(len(y))[:, None]
    values = table.value1[y] * scores[rows, table.class1[y]]
    values = values + table.value2[y] * scores[rows, np.maximum(table.class2[y], 0)]
    return np.where(component_mask(machine, y, n_classes), values, 0.0)


def component_mask(machine: Machine, y: IntArray, n_classes: int) -> np.ndarray:
    """Return which entries of an (n_samples, n_components) array belong to a component of the example's class."""
    table = machine.table(n_classes)
    mask: np.ndarray = np.arange(table.class1.shape[1]) < table.n_components[y][:, None]
    return mask
