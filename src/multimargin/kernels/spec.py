"""Kernels: their names and parameters, and a NumPy reference."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from multimargin import _core
from multimargin._typing import FloatArray

KERNELS = ("linear", "rbf", "poly", "sigmoid", "laplacian")
GIVEN_KERNELS = ("precomputed", "callable")


@dataclass(frozen=True)
class KernelSpec:
    r"""A kernel function with its numbers.

    linear :math:`x'z`; rbf :math:`\exp(-\gamma \|x-z\|_2^2)`; laplacian :math:`\exp(-\gamma \|x-z\|_1)`;
    poly :math:`(\gamma x'z + \mathrm{coef0})^{\mathrm{degree}}`; sigmoid :math:`\tanh(\gamma x'z + \mathrm{coef0})`.
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
    def positive_semidefinite(self) -> bool:
        """Whether the kernel is positive semi-definite for every data set, or passed the test on these data."""
        if self.given:
            return not self.indefinite
        if self.name == "sigmoid":
            return False
        return self.name != "poly" or (self.coef0 >= 0 and self.gamma >= 0)

    def with_offset(self, offset: float) -> KernelSpec:
        return replace(self, offset=offset)

    def gram(self, X: ArrayLike, Z: ArrayLike) -> FloatArray:
        """Return the kernel matrix (n_X, n_Z) in plain NumPy, float64: slow, obvious, the tests' oracle."""
        values: FloatArray
        if self.function is not None:
            values = np.asarray(self.function(X, Z), dtype=np.float64)
            return values + self.offset
        if self.given:
            raise ValueError("A precomputed kernel has no function of two sets of rows; take the matrix itself.")
        x, z = np.asarray(X, dtype=np.float64), np.asarray(Z, dtype=np.float64)
        if self.name in ("rbf", "laplacian"):
            difference = x[:, None, :] - z[None, :, :]
            distance = (difference**2).sum(axis=2) if self.name == "rbf" else np.abs(difference).sum(axis=2)
            values = np.exp(-self.gamma * distance)
        else:
            values = x @ z.T
            if self.name == "poly":
                values = (self.gamma * values + self.coef0) ** self.degree
            elif self.name == "sigmoid":
                values = np.tanh(self.gamma * values + self.coef0)
        return values + self.offset

    def to_core(self) -> _core.Kernel:
        kernel = _core.Kernel()
        kernel.kind = getattr(_core.KernelKind, self.name)
        kernel.gamma, kernel.degree = self.gamma, self.degree
        kernel.coef0, kernel.offset = self.coef0, self.offset
        return kernel
