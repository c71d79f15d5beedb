"""The kernels: one entry for each. Everything that depends on a kernel's name is read from here.

A kernel is k(x, z) = transform(scale form(x, z) + shift). The form sums over the features; the core has "dot",
"squared_difference" and "absolute_difference". Its transforms are the lines of cpp/core/simd/transforms.hpp.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from multimargin._typing import FloatArray


class Numbers(Protocol):
    """The parameters of a kernel, as KernelSpec holds them."""

    @property
    def gamma(self) -> float: ...
    @property
    def degree(self) -> int: ...
    @property
    def coef0(self) -> float: ...


class Operators(Protocol):
    """The part of an ONNX graph that entries use; methods return the name of their result."""

    def op(self, kind: str, *inputs: str, **attributes: Any) -> str: ...
    def constant(self, value: Any) -> str: ...


@dataclass(frozen=True, kw_only=True)
class KernelFunction:
    r"""One kernel: how its values are computed, and its properties.

    Parameters
    ----------
    formula : str
        k(x, z) in LaTeX, as docs/kernels.md shows it.
    form : {"dot", "squared_difference", "absolute_difference"}
        A kernel of differences is shift-invariant, and its transform largest at distance 0. One of products grows with
        the size of the product.
    transform : str
        Its name in the core.
    scale, shift : callable
        Of the parameters: the transform is taken at z = scale form(x, z) + shift.
    values : callable
        ``values(z, numbers, out)``: the transform in NumPy, into ``out`` if that is an array.
    onnx : callable
        ``onnx(graph, z, numbers)``: the transform in ONNX's operators.
    sizes : callable or None
        ``sizes(squares, numbers)``, of the squared lengths of rows: s with \|k(x, z)\| at most sqrt(s(x) s(z)), and its
        rounding error at most epsilon times that. None for kernels of differences with values up to 1: s = 1.
    parameters : tuple of str
        Those of "degree", "gamma" and "coef0" that it has, in this order.
    semidefinite : callable
        Whether the kernel is positive semi-definite for all data, with these parameters.
    libsvm : tuple of (int, str) or None
        LIBSVM's number and name of the kernel, which scikit-learn has then, too.
    """

    formula: str
    form: str
    transform: str
    scale: Callable[[Numbers], float]
    values: Callable[[FloatArray, Numbers, FloatArray | None], FloatArray]
    onnx: Callable[[Operators, str, Numbers], str]
    shift: Callable[[Numbers], float] = lambda numbers: 0.0
    sizes: Callable[[FloatArray, Numbers], FloatArray] | None = None
    parameters: tuple[str, ...] = ()
    semidefinite: Callable[[Numbers], bool] = lambda numbers: True
    libsvm: tuple[int, str] | None = None

    @property
    def shift_invariant(self) -> bool:
        """Whether k(x + s, z + s) = k(x, z)."""
        return self.form != "dot"

    @property
    def squares_with_gamma(self) -> bool:
        """Whether twice the gamma gives the squares of all values."""
        return self.transform == "exponential" and self.parameters == ("gamma",)

    def of_form(self, sums: FloatArray, numbers: Numbers, out: FloatArray | None = None) -> FloatArray:
        """Return kernel values of the form's values, into ``out`` if that is an array."""
        z = np.multiply(sums, self.scale(numbers), out=out)
        shift = self.shift(numbers)
        if shift:
            z += shift
        return self.values(z, numbers, z)


def _keep(z: FloatArray, numbers: Numbers, out: FloatArray | None) -> FloatArray:
    return z


KERNELS = {
    "linear": KernelFunction(
        formula=r"x'z",
        form="dot",
        transform="identity",
        scale=lambda numbers: 1.0,
        values=_keep,
        onnx=lambda graph, z, numbers: z,
        sizes=lambda squares, numbers: squares,
        libsvm=(0, "linear"),
    ),
    "rbf": KernelFunction(
        formula=r"\exp(-\gamma \lVert x - z \rVert_2^2)",
        form="squared_difference",
        transform="exponential",
        scale=lambda numbers: -numbers.gamma,
        values=lambda z, numbers, out: np.exp(z, out=out),
        onnx=lambda graph, z, numbers: graph.op("Exp", z),
        parameters=("gamma",),
        libsvm=(2, "rbf"),
    ),
    "poly": KernelFunction(
        formula=r"(\gamma\, x'z + \mathrm{coef0})^{\mathrm{degree}}",
        form="dot",
        transform="power",
        scale=lambda numbers: numbers.gamma,
        shift=lambda numbers: numbers.coef0,
        values=lambda z, numbers, out: np.power(z, numbers.degree, out=out),
        onnx=lambda graph, z, numbers: graph.op("Pow", z, graph.constant(np.array(float(numbers.degree)))),
        # A power multiplies the relative error of its base.
        sizes=lambda squares, numbers: (
            max(1, numbers.degree) * (numbers.gamma * squares + abs(numbers.coef0)) ** numbers.degree
        ),
        parameters=("degree", "gamma", "coef0"),
        semidefinite=lambda numbers: numbers.coef0 >= 0 and numbers.gamma >= 0,
        libsvm=(1, "polynomial"),
    ),
    "sigmoid": KernelFunction(
        formula=r"\tanh(\gamma\, x'z + \mathrm{coef0})",
        form="dot",
        transform="hyperbolic_tangent",
        scale=lambda numbers: numbers.gamma,
        shift=lambda numbers: numbers.coef0,
        values=lambda z, numbers, out: np.tanh(z, out=out),
        onnx=lambda graph, z, numbers: graph.op("Tanh", z),
        # |tanh u| is at most |u|, and is rounded as u is.
        sizes=lambda squares, numbers: numbers.gamma * squares + abs(numbers.coef0),
        parameters=("gamma", "coef0"),
        semidefinite=lambda numbers: False,
        libsvm=(3, "sigmoid"),
    ),
    "laplacian": KernelFunction(
        formula=r"\exp(-\gamma \lVert x - z \rVert_1)",
        form="absolute_difference",
        transform="exponential",
        scale=lambda numbers: -numbers.gamma,
        values=lambda z, numbers, out: np.exp(z, out=out),
        onnx=lambda graph, z, numbers: graph.op("Exp", z),
        parameters=("gamma",),
    ),
}

# Kernels whose values the caller computes.
GIVEN_KERNELS = ("precomputed", "callable")
PRECOMPUTED = "precomputed"

# LIBSVM's kernels by its numbers: our names, and its own in model files.
LIBSVM_NUMBERS = dict(sorted((entry.libsvm[0], name) for name, entry in KERNELS.items() if entry.libsvm is not None))
LIBSVM_NUMBERS |= {4: PRECOMPUTED}
LIBSVM_NAMES = {name: entry.libsvm[1] for name, entry in KERNELS.items() if entry.libsvm is not None}
LIBSVM_NAMES |= {PRECOMPUTED: PRECOMPUTED}


def choices(*others: str) -> str:
    """Return the names of all kernels, and others, as numpydoc lists choices."""
    return "{" + ", ".join(f'"{name}"' for name in (*KERNELS, *others)) + "}"


def parameters_of(kernel: Any) -> tuple[str, ...]:
    """Return which of degree, gamma and coef0 matter to what an estimator was given as its kernel."""
    return KERNELS[kernel].parameters if isinstance(kernel, str) and kernel in KERNELS else ()


def has_gamma(kernel: Any) -> bool:
    """Whether what an estimator was given as its kernel depends on gamma."""
    return "gamma" in parameters_of(kernel)
