"""What a fit solves: the machine, kernel, loss and bias that the parameters of an estimator ask for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from multimargin.base.errors import InvalidParameterError
from multimargin.fitting import parameters as check
from multimargin.kernels.spec import KernelSpec
from multimargin.problems.given_kernels import settle
from multimargin.problems.machines import MACHINES, Machine
from multimargin.problems.problem import Bias, Loss
from multimargin.problems.schemes import find_scheme
from multimargin.problems.training_set import TrainingSet


@dataclass(frozen=True)
class FitSpec:
    """The checked parameters of a fit that its verification needs again."""

    machine: Machine
    kernel: KernelSpec
    loss: Loss
    bias: Bias
    C: float
    tol: float
    scheme: str = ""  # the name of a scheme over binary machines, or nothing for a machine that sees all classes

    @classmethod
    def from_params(cls, params: dict[str, Any], kernel: KernelSpec, bias: Bias | None = None) -> FitSpec:
        """Return what the parameters ask for, with this kernel.

        ``bias`` is the rule where the parameter's is not all that decides. A hinge loss needs no parameter.
        """
        choice = find_scheme(params["multi_class"])
        whole = isinstance(choice, Machine)
        return cls(
            machine=choice if isinstance(choice, Machine) else MACHINES["ww"],  # of two classes: the binary machine
            kernel=kernel,
            loss=check.resolve_loss(params.get("loss", Loss.HINGE.value), kernel),
            bias=check.resolve_bias(params["bias"], choice) if bias is None else bias,
            C=float(params["C"]),
            tol=float(params["tol"]),
            scheme="" if whole else str(choice),
        )

    @property
    def name(self) -> str:
        """Of the scheme, or of the machine."""
        return self.scheme or self.machine.name

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"loss": self.loss.value, "bias": self.bias.value}  # plain values, as a Machine's

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state | {"loss": Loss(state["loss"]), "bias": Bias(state["bias"])})


def kernel_spec(params: dict[str, Any], data: TrainingSet) -> FitSpec:
    """Return what the parameters of a kernel machine ask for."""
    spec = FitSpec.from_params(params, check.resolve_kernel(params, data))
    check.check_solver(params["solver"], spec.scheme or spec.machine, spec.bias)
    return spec


def prepare(params: dict[str, Any], data: TrainingSet) -> tuple[TrainingSet, FitSpec]:
    """Check the parameters, then make and check the kernel matrix where the caller computes it."""
    spec = kernel_spec(params, data)
    data, kernel = settle(data, spec.kernel, params["cache_size"])
    check.resolve_loss(params["loss"], kernel)  # a squared hinge needs what the matrix may not have
    return data, replace(spec, kernel=kernel)


def linear_spec(params: dict[str, Any]) -> FitSpec:
    """Return what the parameters of a linear machine ask for; a regularised bias is an offset of its kernel."""
    scaling = check.check_number("intercept_scaling", params["intercept_scaling"], low=0.0, strict=True)
    bias = linear_bias(params)
    offset = scaling**2 if bias is Bias.REGULARIZED else 0.0
    own = Bias.EXACT if bias is Bias.EXACT else Bias.NONE
    return FitSpec.from_params(params, KernelSpec("linear", offset=offset), own)


def linear_bias(params: dict[str, Any]) -> Bias:
    """Return the bias rule of ``bias`` and ``fit_intercept``."""
    rule = Bias(check.check_choice("bias", params["bias"], tuple(bias.value for bias in Bias)))
    if check.check_flag("fit_intercept", params["fit_intercept"]):
        return rule
    if rule is Bias.REGULARIZED:
        raise InvalidParameterError(
            "fit_intercept=False contradicts bias='regularized', which asks for an intercept; leave one of them out."
        )
    return Bias.NONE
