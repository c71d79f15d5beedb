"""Parameters of the estimators: each wrong one is refused in one sentence with name, value, choices and remedy."""

from __future__ import annotations

import math
from dataclasses import replace
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils import check_random_state, validation

from multimargin.base.errors import InvalidParameterError
from multimargin.base.matrices import check_indices
from multimargin.kernels.spec import KernelSpec
from multimargin.kernels.table import KERNELS, has_gamma
from multimargin.models.calibration import COUPLING, KINDS
from multimargin.problems.binary_parts import is_separable
from multimargin.problems.machines import Bound, Machine
from multimargin.problems.problem import Bias, Loss
from multimargin.problems.schemes import SCHEMES
from multimargin.problems.training_set import TrainingSet
from multimargin.solvers.frank_wolfe.driver import FRANK_WOLFE
from multimargin.solvers.options import PAIR_CHOICES, SolverChoice
from multimargin.solvers.splitting.driver import SPLITTING

BIASES = ("auto", *(bias.value for bias in Bias))
LOSSES = tuple(loss.value for loss in Loss)
SOLVERS = ("auto", *(choice.value for choice in SolverChoice), SPLITTING, FRANK_WOLFE)


# What is read as a 64-bit integer further on, and as an int.
LONG, INT = 2**63 - 1, 2**31 - 1


def validate_data(estimator: Any, X: Any, *others: Any, **options: Any) -> Any:
    """Return what scikit-learn's function of this name does; sparse matrices must fit together before it."""
    check_indices(X)
    found = validation.validate_data(estimator, X, *others, **options)
    return (_aligned(found[0]), *found[1:]) if isinstance(found, tuple) else _aligned(found)


def check_array(X: Any, **options: Any) -> Any:
    """Return what scikit-learn's function of this name does; sparse matrices must fit together before it."""
    check_indices(X)
    return _aligned(validation.check_array(X, **options))


def _aligned(X: Any) -> Any:
    """Return an array whose numbers the core may read, and NumPy adds up in the same order as those of any other."""
    return np.require(X, requirements="A") if isinstance(X, np.ndarray) else X


def _shown(value: Any) -> str:
    """Return a value as it is written; Python refuses to write integers of thousands of digits."""
    try:
        return repr(value)
    except ValueError:
        return f"(an integer of {value.bit_length()} bits)"


def check_number(name: str, value: Any, *, low: float, strict: bool = False, allow_inf: bool = False) -> float:
    """Return the value as a float that is at least (or above) ``low``."""
    sign = ">" if strict else ">="
    wanted = f"a number {sign} {low:g}" + (" (float('inf') is allowed)" if allow_inf else "")
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Real):
        raise InvalidParameterError(f"{name}={value!r} is not a number; {name} must be {wanted}.")
    try:
        number = float(value)
    except OverflowError:  # an integer or a fraction beyond all floats
        number = math.nan
    good = number > low if strict else number >= low
    if not good or math.isnan(number) or (math.isinf(number) and not allow_inf):
        raise InvalidParameterError(f"{name}={_shown(value)} is not allowed; {name} must be {wanted}.")
    return number


def check_integer(name: str, value: Any, *, low: int, high: int = LONG, meaning: str = "") -> int:
    """Return the value as an int of at least ``low`` and at most ``high``."""
    note = f" ({meaning})" if meaning else ""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Integral):
        raise InvalidParameterError(f"{name}={value!r} is not an integer; {name} must be an integer >= {low}{note}.")
    if value < low:
        raise InvalidParameterError(f"{name}={_shown(value)} is not allowed; {name} must be an integer >= {low}{note}.")
    if int(value) > high:
        raise InvalidParameterError(
            f"{name}={_shown(value)} is not allowed; {name} must be an integer from {low} to {high}{note}."
        )
    return int(value)


def check_seed(name: str, value: Any) -> np.random.RandomState:
    """Return the generator of a random_state, as scikit-learn reads it."""
    try:
        return check_random_state(value)  # type: ignore[no-any-return]
    except ValueError as error:
        raise InvalidParameterError(
            f"{name}={_shown(value)} is not allowed; {name} must be an integer from 0 to {2**32 - 1}, a RandomState or "
            "None."
        ) from error


def check_choice(name: str, value: Any, choices: tuple[str, ...], remedy: str = "") -> str:
    """Return the value if it is one of the choices."""
    if not isinstance(value, str) or value not in choices:
        listed = ", ".join(repr(choice) for choice in choices)
        raise InvalidParameterError(f"{name}={value!r} is not allowed; choose one of {listed}{remedy}.")
    return value


def check_flag(name: str, value: Any) -> bool:
    """Return the value if it is a bool."""
    if not isinstance(value, (bool, np.bool_)):
        raise InvalidParameterError(f"{name}={value!r} is not a bool; {name} must be True or False.")
    return bool(value)


def resolve_kernel(params: dict[str, Any], data: TrainingSet) -> KernelSpec:
    """Return the kernel of an estimator's parameters, with gamma as a number."""
    name = params["kernel"]
    degree = check_integer("degree", params["degree"], low=0, high=INT)
    coef0 = check_number("coef0", params["coef0"], low=-math.inf)
    if callable(name):
        return KernelSpec("callable", function=name)
    check_choice("kernel", name, (*KERNELS, "precomputed"), ", or give a function of two sets of rows")
    if name == "precomputed":
        return KernelSpec(name)
    gamma = _resolve_gamma(params["gamma"], data, used=has_gamma(name))
    return KernelSpec(name, gamma=gamma, degree=degree, coef0=coef0)


def _resolve_gamma(gamma: Any, data: TrainingSet, *, used: bool = True) -> float:
    if isinstance(gamma, str):
        check_choice("gamma", gamma, ("scale", "auto"), ", or give a number >= 0")
        if gamma == "auto":
            return 1.0 / float(data.X.shape[1])
        return _scaled_gamma(data, used=used)
    return check_number("gamma", gamma, low=0.0)


def _scaled_gamma(data: TrainingSet, *, used: bool) -> float:
    """Return 1 / (n_features * X.var()), 1 for constant data; refuse X whose variance float64 does not hold.

    Where the kernel does not use it, 1 instead of a refusal.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        variance = data.variance()
        single = np.finfo(np.float32)
        if data.X.dtype == np.float32 and not float(single.tiny) <= variance < np.inf:  # sums need a wider range
            variance = replace(data, X=data.X.astype(np.float64)).variance()
    if variance == 0:
        lowest, highest = data.X[data.rows].min(), data.X[data.rows].max()
        if lowest == highest:
            return 1.0
    # A variance below the smallest normal number has lost digits, and its inverse may be infinite.
    if not np.finfo(np.float64).tiny <= variance < np.inf:
        if not used:
            return 1.0
        largest = max(abs(float(data.X[data.rows].min())), abs(float(data.X[data.rows].max())))
        raise ValueError(
            "The dual coefficients or intercepts are not finite, as gamma='scale' cannot be computed: the variance of "
            f"X is {variance:.2g} in float64, because the largest value of X is {largest:.2g}; scale the columns of X "
            "(for example with StandardScaler)."
        )
    return 1.0 / (float(data.X.shape[1]) * variance)


def resolve_bias(choice: Any, scheme: str | Machine) -> Bias:
    """Return the bias rule; "auto" is exact for one-vs-one, the DAG and one-vs-all, none for the other machines."""
    check_choice("bias", choice, BIASES)
    if choice != "auto":
        return Bias(choice)
    return Bias.EXACT if is_separable(scheme) else Bias.NONE


def check_solver(choice: str, scheme: str | Machine, bias: Bias) -> None:
    """Refuse an algorithm that is not for this machine and bias, and name one that is."""
    if choice == FRANK_WOLFE:
        if isinstance(scheme, str):
            raise InvalidParameterError(
                f"solver={choice!r} does not apply to multi_class={scheme!r}, which trains binary machines; use "
                "solver='auto', or a machine that sees all classes, such as multi_class='ww'."
            )
        return
    name = scheme if isinstance(scheme, str) else scheme.name
    if choice == SPLITTING and (isinstance(scheme, str) or not scheme.sum_to_zero):
        raise InvalidParameterError(
            f"solver={choice!r} does not apply to multi_class={name!r}: it is for machines whose scores sum to zero "
            "('llw', 'adm', 'ats', 'atm', 'rm', 'mmr'); use solver='auto'."
        )
    separable = is_separable(scheme)
    pairs = [each.value for each in PAIR_CHOICES]
    if separable and bias is Bias.EXACT:
        if choice in ("auto", SolverChoice.SMO.value, *pairs):
            return
        raise InvalidParameterError(
            f"solver={choice!r} does not apply to multi_class={name!r} with an exact bias, which is solved by pairs of "
            "variables; use solver='auto', 'smo', 'maximum-gain' or 'most-violating-pair', or bias='none' or "
            "'regularized'."
        )
    if choice in pairs:
        remedy = "bias='exact', or solver='smo' or 's2do'" if separable else "solver='smo' or 's2do'"
        raise InvalidParameterError(
            f"solver={choice!r} is for binary problems with an exact bias (multi_class='ovo', 'dag' or 'ova'), not for "
            f"multi_class={name!r} with bias={bias.value!r}; use {remedy}."
        )
    simplex = isinstance(scheme, Machine) and scheme.bound is Bound.SIMPLEX
    if choice == SolverChoice.WORKING_SET.value and simplex:
        raise InvalidParameterError(
            f"solver={choice!r} does not apply to multi_class={name!r}, where the variables of an example share one "
            "bound; use solver='whole-example'."
        )


def resolve_loss(choice: Any, kernel: KernelSpec) -> Loss:
    """Return the loss; the squared hinge needs a kernel for which its dual is bounded."""
    check_choice("loss", choice, LOSSES)
    loss = Loss(choice)
    if loss is Loss.SQUARED_HINGE and not kernel.positive_semidefinite:
        raise InvalidParameterError(
            f"loss='squared_hinge' with kernel={kernel.name!r} may have no solution, because the kernel is not "
            "positive semi-definite; use loss='hinge' or another kernel."
        )
    return loss


def resolve_calibration(params: dict[str, Any]) -> str | None:
    """Return the kind of calibration; scikit-learn's ``probability=True`` asks for one, too."""
    kind, pairs = params["calibration"], params["multi_class"] in SCHEMES
    if not isinstance(params["probability"], str) or params["probability"] != "deprecated":
        wanted = check_flag("probability", params["probability"])
        if wanted and kind is None:
            return COUPLING if pairs else "sigmoid"
    if kind is None:
        return None
    check_choice("calibration", kind, KINDS, ", or None")
    if kind == COUPLING and not pairs:
        raise InvalidParameterError(
            f"calibration='coupling' with multi_class={params['multi_class']!r} does not exist: only multi_class='ovo' "
            "and 'dag' have pairwise scores; use calibration='sigmoid' or 'isotonic'."
        )
    return str(kind)


def check_cache_size(value: Any) -> float | str:
    """Return megabytes, or "auto"."""
    if isinstance(value, str):
        return check_choice("cache_size", value, ("auto",), ", or give a number of megabytes >= 0")
    return check_number("cache_size", value, low=0.0)


def check_shrinking(value: Any) -> tuple[bool, bool]:
    """Return whether variables and whether examples are left out (DGI11 6.1)."""
    levels = ("variables", "examples")
    if isinstance(value, str):
        check_choice("shrinking", value, levels, ", or give True or False")
        return value == levels[0], value == levels[1]
    if not isinstance(value, (bool, np.bool_)):
        raise InvalidParameterError(
            f"shrinking={value!r} is not a bool; shrinking must be True, False, 'variables' or 'examples'."
        )
    return bool(value), bool(value)


def check_trace(value: Any) -> None:
    """Refuse anything but a bool and "primal"."""
    if not isinstance(value, (bool, np.bool_)) and not (isinstance(value, str) and value == "primal"):
        raise InvalidParameterError(
            f"trace={value!r} is not allowed; use True to record the course of the fit, 'primal' to record the primal "
            "objective too, or False."
        )


def check_combinations(params: dict[str, Any]) -> None:
    """Refuse choices that do not go together."""
    resolve_calibration(params)
    check_flag("break_ties", params["break_ties"])
    check_choice("decision_function_shape", params["decision_function_shape"], ("ovr", "ovo"))
    if params["decision_function_shape"] == "ovo" and params["multi_class"] not in SCHEMES:
        raise InvalidParameterError(
            f"decision_function_shape='ovo' with multi_class={params['multi_class']!r} does not exist: only "
            "multi_class='ovo' and 'dag' have pairwise scores; use decision_function_shape='ovr'."
        )


def check_control(params: dict[str, Any]) -> None:
    """Check the parameters that need no data: solver, limits, output."""
    check_number("C", params["C"], low=0.0, strict=True, allow_inf=True)
    check_combinations(params)
    check_choice("solver", params["solver"], SOLVERS)
    check_shrinking(params["shrinking"])
    check_trace(params["trace"])
    check_cache_size(params["cache_size"])
    check_limits(params)


def check_limits(params: dict[str, Any]) -> None:
    """Check what every estimator has: where a fit starts, what ends it, what it tells."""
    check_flag("warm_start", params["warm_start"])
    check_number("tol", params["tol"], low=0.0, strict=True)
    check_integer("max_iter", params["max_iter"], low=-1, meaning="-1 for no limit")
    check_integer("verbose", int(params["verbose"]), low=0)
    check_choice("on_interrupt", params["on_interrupt"], ("raise", "keep"))
    if params["max_time"] is not None:
        check_number("max_time", params["max_time"], low=0.0, strict=True, allow_inf=True)
    if params["on_progress"] is not None and not callable(params["on_progress"]):
        raise InvalidParameterError(
            f"on_progress={params['on_progress']!r} is not callable; give a function of a Progress, or None."
        )
