"""A kernel with its parameters, and a NumPy reference."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from multimargin import _core
from multimargin._typing import FloatArray
from multimargin.kernels.table import GIVEN_KERNELS, KERNELS


@dataclass(frozen=True)
class KernelSpec:
    """A kernel function of the table with its parameters.

    ``offset`` is added to every value: 1 stands for the regularised bias (HL02 (10)).

    The kernels "precomputed" and "callable" are ``given``: their values come from the caller, by ``function`` in the
    second case. ``indefinite``, ``tested_rows`` and ``tested_all`` say what a test of their matrix found. The values of
    a matrix count as squared ``squarings`` times, which for exp(-gamma d) doubles gamma as often.
    """

    name: str = "rbf"
    gamma: float = 1.0
    degree: int = 3
    coef0: float = 0.0
    offset: float = 0.0
    function: Callable[[Any, Any], Any] | None = None
    indefinite: bool = False
    tested_rows: int = 0
    tested_all: bool = False
    squarings: int = 0

    @property
    def given(self) -> bool:
        """Whether the caller computes the kernel values."""
        return self.name in GIVEN_KERNELS

    @property
    def form(self) -> str:
        """What is summed over the features, "given" for kernels that are."""
        return "given" if self.given else KERNELS[self.name].form

    @property
    def shift_invariant(self) -> bool:
        """Whether k(x + s, z + s) = k(x, z) is known."""
        return not self.given and KERNELS[self.name].shift_invariant

    @property
    def has_gamma(self) -> bool:
        """Whether the values depend on gamma."""
        return not self.given and "gamma" in KERNELS[self.name].parameters

    @property
    def scale(self) -> float:
        """The factor on the form's values."""
        return KERNELS[self.name].scale(self)

    @property
    def positive_semidefinite(self) -> bool:
        """Whether the kernel is positive semi-definite for every data set, or passed the test on these data."""
        return not self.indefinite if self.given else KERNELS[self.name].semidefinite(self)

    def with_offset(self, offset: float) -> KernelSpec:
        return replace(self, offset=offset)

    def gram(self, X: ArrayLike, Z: ArrayLike) -> FloatArray:
        """Return the kernel matrix (n_X, n_Z) in plain NumPy, float64: slow and simple, the reference of the tests."""
        values: FloatArray
        if self.function is not None:
            values = np.asarray(self.function(X, Z), dtype=np.float64)
            return values + self.offset
        if self.given:
            raise ValueError("A precomputed kernel has no function of two sets of rows; take the matrix itself.")
        x, z = np.asarray(X, dtype=np.float64), np.asarray(Z, dtype=np.float64)
        if self.form == "dot":
            sums = x @ z.T
        else:
            difference = x[:, None, :] - z[None, :, :]
            squared = self.form == "squared_difference"
            sums = (difference**2 if squared else np.abs(difference)).sum(axis=2)
        return self.of_form(sums) + self.offset

    def of_form(self, sums: FloatArray, out: FloatArray | None = None) -> FloatArray:
        """Return kernel values, without the offset, of the form's values, into ``out`` if that is an array."""
        return KERNELS[self.name].of_form(sums, self, out)

    def largest_value(self, square: float) -> float:
        """Return a bound on all kernel values among rows whose squared lengths are at most ``square``."""
        if self.shift_invariant:
            return float(self.of_form(np.zeros(1))[0])
        entry = KERNELS[self.name]
        with np.errstate(over="ignore"):  # |x'z| is at most the largest |x|^2
            z = np.array([abs(entry.scale(self)) * square + abs(entry.shift(self))])
            return float(entry.values(z, self, None)[0])

    def to_core(self) -> _core.Kernel:
        entry = KERNELS[self.name]
        return _core.Kernel(
            entry.form,
            entry.transform,
            scale=entry.scale(self),
            shift=entry.shift(self),
            offset=self.offset,
            degree=self.degree,
        )
