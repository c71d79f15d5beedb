"""Machines as data: which margins an example has, what they should be, and what bounds the dual variables.

Defines the published machines; users can define new ones. Independent of kernels, data and solvers.
The class coupling is derived from the margins (coupling.py), never written by hand.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from enum import Enum
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from multimargin._typing import FloatArray, IntArray


class Bound(Enum):
    """How the dual variables of one example are bounded above by its C."""

    BOX = "box"  # each one: a_ip <= C_i
    SIMPLEX = "simplex"  # their sum: sum_p a_ip <= C_i


@dataclass(frozen=True, eq=False)
class ComponentTable:
    r"""The margin components :math:`m_{yp}(f) = \sum_c \nu_{ypc} f_c \ge t_{yp} - \xi` of every class.

    A component mentions one class or two: entries are ``value1`` at ``class1`` and, where ``class2 >= 0``,
    ``value2`` at ``class2``. All arrays have shape (n_classes, n_components); rows with fewer components are
    padded, and ``n_components`` (n_classes,) is the number of components in use.
    """

    class1: IntArray
    value1: FloatArray
    class2: IntArray
    value2: FloatArray
    target: FloatArray
    n_components: IntArray

    def __post_init__(self) -> None:
        for entry in fields(self):  # tables are shared between fits
            getattr(self, entry.name).flags.writeable = False

    @property
    def n_classes(self) -> int:
        return len(self.n_components)

    def of_class(self, y: int) -> tuple[IntArray, FloatArray, IntArray, FloatArray]:
        """Return (class1, value1, class2, value2) of the components that class ``y`` really has."""
        n = int(self.n_components[y])
        return self.class1[y, :n], self.value1[y, :n], self.class2[y, :n], self.value2[y, :n]

    def margins(self, f: FloatArray) -> FloatArray:
        """Return m_yp(f) of one vector of scores, shape (n_classes, n_components)."""
        return self.value1 * f[self.class1] + self.value2 * f[np.maximum(self.class2, 0)]

    def dense(self) -> FloatArray:
        """Return nu as an array of shape (n_classes, n_components, n_classes): for small problems and tests."""
        n_classes, width = self.class1.shape
        nu = np.zeros((n_classes, width, n_classes))
        for y in range(n_classes):
            for p in range(self.n_components[y]):
                nu[y, p, self.class1[y, p]] = self.value1[y, p]
                if self.class2[y, p] >= 0:
                    nu[y, p, self.class2[y, p]] = self.value2[y, p]
        return nu

    @classmethod
    def relative(cls, n_classes: int, target: ArrayLike) -> ComponentTable:
        """Return components f_y - f_p for p != y; ``target`` a number or an array (n_classes, n_classes) [y, p]."""
        own, others = _own_and_others(n_classes)
        targets = np.broadcast_to(np.asarray(target, dtype=np.float64), (n_classes, n_classes))
        shape = others.shape
        return cls(
            class1=np.broadcast_to(own, shape).copy(),
            value1=np.ones(shape),
            class2=others,
            value2=-np.ones(shape),
            target=np.take_along_axis(targets, others, axis=1),
            n_components=np.full(n_classes, n_classes - 1, dtype=np.int64),
        )

    @classmethod
    def absolute(
        cls, n_classes: int, *, own: ArrayLike | None = None, others: ArrayLike | None = None
    ) -> ComponentTable:
        """Return components f_y (target ``own``) and -f_p for p != y (target ``others``); None leaves them out."""
        own_class, other_classes = _own_and_others(n_classes)
        classes: list[IntArray] = []
        values: list[FloatArray] = []
        targets: list[FloatArray] = []
        if own is not None:
            classes.append(own_class)
            values.append(np.ones((n_classes, 1)))
            targets.append(np.broadcast_to(np.asarray(own, dtype=np.float64), (n_classes,))[:, None])
        if others is not None:
            wanted = np.broadcast_to(np.asarray(others, dtype=np.float64), (n_classes, n_classes))
            classes.append(other_classes)
            values.append(-np.ones(other_classes.shape))
            targets.append(np.take_along_axis(wanted, other_classes, axis=1))
        if not classes:
            raise ValueError("own=None and others=None leave no component; give a target margin for one of them.")
        class1 = np.concatenate(classes, axis=1)
        return cls(
            class1=class1,
            value1=np.concatenate(values, axis=1),
            class2=np.full(class1.shape, -1, dtype=np.int64),
            value2=np.zeros(class1.shape),
            target=np.concatenate(targets, axis=1),
            n_components=np.full(n_classes, class1.shape[1], dtype=np.int64),
        )

    @classmethod
    def from_dense(cls, nu: ArrayLike, target: ArrayLike) -> ComponentTable:
        """Return the table of nu (n_classes, n_components, n_classes) and target (n_classes, n_components).

        Components whose row of nu is zero count as absent and must come last.
        """
        dense = np.asarray(nu, dtype=np.float64)
        wanted = np.asarray(target, dtype=np.float64)
        if dense.ndim != 3 or dense.shape[0] != dense.shape[2] or wanted.shape != dense.shape[:2]:
            raise ValueError(
                f"nu has shape {dense.shape} and target {wanted.shape}; nu must be (d, n_components, d) and "
                "target (d, n_components) for d classes."
            )
        if not (np.isfinite(dense).all() and np.isfinite(wanted).all()):
            raise ValueError("nu or target holds a value that is not finite; every entry must be a number.")
        entries = (dense != 0).sum(axis=2)
        if entries.max(initial=0) > 2:
            raise ValueError(
                f"A component of nu mentions {entries.max()} classes; one or two are allowed, so split it up."
            )
        counts = (entries > 0).sum(axis=1)
        present = np.arange(dense.shape[1]) < counts[:, None]
        if counts.min(initial=1) < 1 or not np.array_equal(entries > 0, present):
            raise ValueError("Every class needs a component with an entry in nu, and empty ones must come last.")
        width = int(counts.max())  # a column that no class uses is none
        dense, wanted, entries = dense[:, :width], wanted[:, :width], entries[:, :width]
        order = np.argsort(dense == 0, axis=2, kind="stable")  # classes with an entry first
        class1, class2 = order[:, :, 0], order[:, :, min(1, dense.shape[0] - 1)]
        value1 = np.take_along_axis(dense, class1[:, :, None], axis=2)[:, :, 0]
        value2 = np.take_along_axis(dense, class2[:, :, None], axis=2)[:, :, 0]
        two = entries == 2
        return cls(class1, value1, np.where(two, class2, -1), np.where(two, value2, 0.0), wanted, counts)


def _own_and_others(n_classes: int) -> tuple[IntArray, IntArray]:
    """Return each class as a column, and for each class the others in order (n_classes, n_classes - 1)."""
    own = np.arange(n_classes, dtype=np.int64)[:, None]
    others = np.arange(n_classes - 1, dtype=np.int64)[None, :]
    return own, others + (others >= own)


@dataclass(frozen=True, eq=False)
class Machine:
    """A multi-class support vector machine: margins, targets, bound, and whether scores sum to zero.

    Parameters
    ----------
    name : str
        How the machine is called in messages and certificates.
    bound : Bound
        ``Bound.BOX`` or ``Bound.SIMPLEX``.
    sum_to_zero : bool
        Whether the scores of all classes must sum to zero.
    components : ComponentTable or callable
        The margins, for a fixed number of classes or as a function of it (module-level, so that it pickles).
    binary_factor : float or None
        With two classes and the hinge the machine is the binary one with ``binary_factor * C``.
    source : str
        Where it is defined.
    """

    name: str
    bound: Bound
    sum_to_zero: bool
    components: ComponentTable | Callable[[int], ComponentTable] = field(repr=False)
    binary_factor: float | None = None
    source: str = ""

    def __getstate__(self) -> dict[str, Any]:
        """Choices are stored by name, so that any format for plain values can store a machine."""
        return self.__dict__ | {"bound": self.bound.value}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state | {"bound": Bound(state["bound"])})

    def table(self, n_classes: int) -> ComponentTable:
        """Return the components for ``n_classes`` classes."""
        given = self.components
        table = given if isinstance(given, ComponentTable) else _built_table(given, n_classes)
        if table.n_classes != n_classes:
            raise ValueError(
                f"The machine {self.name!r} is defined for {table.n_classes} classes, y has {n_classes}; "
                "build its ComponentTable for that number."
            )
        return table


@lru_cache(maxsize=64)
def _built_table(build: Callable[[int], ComponentTable], n_classes: int) -> ComponentTable:
    return build(n_classes)


def _ww(n_classes: int) -> ComponentTable:
    return ComponentTable.relative(n_classes, 2.0)


def _cs(n_classes: int) -> ComponentTable:
    return ComponentTable.relative(n_classes, 1.0)


def _llw(n_classes: int) -> ComponentTable:
    return ComponentTable.absolute(n_classes, others=1.0 / (n_classes - 1))


def _adm(n_classes: int) -> ComponentTable:
    return ComponentTable.absolute(n_classes, others=1.0)


def _both(n_classes: int) -> ComponentTable:
    return ComponentTable.absolute(n_classes, own=1.0, others=1.0)


def _rm(n_classes: int) -> ComponentTable:
    return ComponentTable.absolute(n_classes, own=n_classes - 1.0, others=1.0)


def _mmr(n_classes: int) -> ComponentTable:
    return ComponentTable.absolute(n_classes, own=1.0)


MACHINES: dict[str, Machine] = {
    machine.name: machine
    for machine in (
        Machine("ww", Bound.BOX, False, _ww, 1.0, "Weston and Watkins; DGI11, HL02 (4)"),
        Machine("cs", Bound.SIMPLEX, False, _cs, 2.0, "Crammer and Singer; DGI11, HL02 (16)"),
        Machine("llw", Bound.BOX, True, _llw, 0.5, "Lee, Lin and Wahba; DGI11 (2)"),
        Machine("adm", Bound.SIMPLEX, True, _adm, 0.5, "absolute margins, maximum; DGI16"),
        Machine("ats", Bound.BOX, True, _both, 1.0, "absolute margins, total sum; DGI16"),
        Machine("atm", Bound.SIMPLEX, True, _both, 0.5, "absolute margins, total maximum; DGI16"),
        Machine("rm", Bound.BOX, True, _rm, 1.0, "reinforced; Liu and Yuan 2011, DGI16"),
        Machine("mmr", Bound.BOX, True, _mmr, 0.5, "maximum margin regression; DGI16"),
        Machine("ova", Bound.BOX, False, _both, 1.0, "one versus all; DGI11, HL02 (1)"),
    )
}

# scikit-learn's names for the same machines
ALIASES = {"ovr": "ova", "crammer_singer": "cs"}


def find_machine(choice: str | Machine) -> Machine:
    """Return the machine of that name, or the machine itself."""
    if isinstance(choice, Machine):
        return choice
    name = ALIASES.get(choice, choice) if isinstance(choice, str) else choice
    if not isinstance(name, str) or name not in MACHINES:
        raise ValueError(
            f"multi_class={choice!r} is not a machine; choose 'ovo', 'dag', one of {sorted(MACHINES)} or "
            f"{sorted(ALIASES)}, or pass a multimargin.Machine."
        )
    return MACHINES[name]
