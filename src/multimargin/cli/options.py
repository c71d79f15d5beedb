"""The options that several commands share: LIBSVM's letters, and ours beside them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import numpy as np
from threadpoolctl import threadpool_limits

from multimargin import MACHINES
from multimargin.cli.command import Command, Function, option, tell
from multimargin.kernels.table import KERNELS, LIBSVM_NAMES, LIBSVM_NUMBERS

LIBSVM = "LIBSVM's options"
MACHINE = "Machine"
LIMITS = "Limits"
DATA = "Data files"
KERNEL_CHOICES = (*LIBSVM_NUMBERS.values(), *(name for name in KERNELS if name not in LIBSVM_NAMES))
MULTI_CLASS = ("ovo", "dag", *MACHINES)
SVM_TYPES = {1: "nu-SVC", 2: "one-class SVM", 3: "epsilon-SVR", 4: "nu-SVR"}
WEIGHT = re.compile(r"-w(?=[^-])(.*)|-w(-\d.*)")

MOST_EXPONENTS, LARGEST_EXPONENT = 1000, 300

DataPath = click.Path(path_type=Path)


def gamma_value(value: Any) -> float | str:
    """Read a positive number, or the name of a rule; 0 stands for 1 / (number of features), as in LIBSVM."""
    if value in ("auto", "scale"):
        return str(value)
    return number_from(value, "give a number >= 0, 'auto' or 'scale'") or "auto"


def megabytes(value: Any) -> float | str:
    """Read a number of megabytes, or "auto"."""
    return "auto" if value == "auto" else number_from(value, "give megabytes >= 0 or 'auto'")


def number_from(value: Any, remedy: str) -> float:
    """Read a number >= 0."""
    try:
        number = float(value)
    except ValueError:
        number = np.nan
    if not np.isfinite(number) or number < 0:
        raise click.BadParameter(f"{value!r} is not allowed; {remedy}.")
    return number


def exponents(value: Any) -> list[float]:
    """Read grid.py's begin,end,step of exponents of 2."""
    if isinstance(value, list):
        return value
    begin = step = 0.0
    try:
        begin, end, step = map(float, str(value).split(","))
        count = int(np.floor((end - begin) / step * (1 + 1e-12))) + 1
    except (ValueError, ZeroDivisionError, OverflowError):
        count = 0
    found = [begin + i * step for i in range(count)] if 1 <= count <= MOST_EXPONENTS else []
    if not found or max(map(abs, found)) > LARGEST_EXPONENT:
        raise click.BadParameter(
            f"{value!r} is not begin,end,step with at most {MOST_EXPONENTS} exponents from -{LARGEST_EXPONENT} to "
            f"{LARGEST_EXPONENT}, such as -5,15,2."
        )
    return found


class WeightedCommand(Command):
    """A command that accepts LIBSVM's -w1 2, -w-1 0.5, where the label is part of the option's name."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        rewritten: list[str] = []
        for position, arg in enumerate(args):
            if arg == "--":
                rewritten += args[position:]
                break
            found = WEIGHT.fullmatch(arg)
            rewritten += [arg] if found is None else ["--weight", found[1] or found[2]]
        return super().parse_args(ctx, rewritten)


def joined(*options: Callable[[Any], Any]) -> Callable[[Function], Function]:
    """Return one decorator for several options, shown in this order."""

    def decorate(function: Function) -> Function:
        for each in reversed(options):
            function = each(function)
        return function

    return decorate


def refuse_other_types(_: click.Context, __: click.Parameter, value: int) -> int:
    """Accept -s 0; for LIBSVM's other machines raise an error with their name."""
    if value != 0:
        known = SVM_TYPES.get(value, "unknown")
        raise click.ClickException(f"-s {value} ({known}) is not supported; use -s 0, the C-SVC for classification.")
    return value


POSITIVE = click.FloatRange(min=0, min_open=True)

gamma_option = option(
    "-g",
    "gamma",
    type=gamma_value,
    metavar="NUMBER",
    default="auto",
    show_default="1/number of features",
    panel=LIBSVM,
    help="Gamma of the kernel.",
)


def exponents_option(name: str, default: str, meaning: str, **attributes: Any) -> Callable[[Function], Function]:
    """Return grid.py's option for a range of exponents of 2."""
    return option(
        f"-{name}",
        f"--{name}",
        type=exponents,
        metavar="BEGIN,END,STEP",
        default=default,
        show_default=True,
        help=meaning,
        **attributes,
    )


def zero_or_one(letter: str, name: str, default: int, meaning: str) -> Callable[[Function], Function]:
    """Return one of LIBSVM's options that are 0 or 1."""
    return option(
        letter, name, type=click.IntRange(0, 1), default=default, show_default=True, panel=LIBSVM, help=meaning
    )


kernel_options = joined(
    option(
        "-t",
        "kernel_type",
        type=click.IntRange(0, max(LIBSVM_NUMBERS)),
        default=2,
        show_default=True,
        panel=LIBSVM,
        help=f"Kernel: {', '.join(f'{number} {LIBSVM_NAMES[name]}' for number, name in LIBSVM_NUMBERS.items())}.",
    ),
    option(
        "-d", "degree", type=click.IntRange(min=0), default=3, show_default=True, panel=LIBSVM, help="Degree of -t 1."
    ),
    option("-r", "coef0", type=float, default=0.0, show_default=True, panel=LIBSVM, help="Constant in -t 1 and -t 3."),
)

common_options = joined(
    option(
        "-s",
        "svm_type",
        type=int,
        default=0,
        callback=refuse_other_types,
        panel=LIBSVM,
        help="Type of machine: 0 (C-SVC) only.",
    ),
    option(
        "-m",
        "cache_size",
        type=megabytes,
        metavar="MB",
        default="auto",
        show_default=True,
        panel=LIBSVM,
        help="Memory for kernel rows.",
    ),
    option("-e", "tol", type=POSITIVE, default=1e-3, show_default=True, panel=LIBSVM, help="KKT violation to reach."),
    option(
        "--weight",
        "weights",
        nargs=2,
        multiple=True,
        metavar="LABEL FACTOR",
        panel=LIBSVM,
        help="Factor on C of a class; also written -wLABEL FACTOR, as in -w1 2.",
    ),
    option("-q", "quiet", is_flag=True, panel=LIBSVM, help="Print results only."),
    option("-n", type=float, hidden=True, expose_value=False),
    option("-p", type=float, hidden=True, expose_value=False),
)

machine_options = joined(
    option(
        "--kernel",
        type=click.Choice(KERNEL_CHOICES),
        metavar="NAME",
        panel=MACHINE,
        help=f"The kernel by its name, instead of -t: {', '.join(KERNEL_CHOICES)}.",
    ),
    option(
        "--multi-class",
        type=click.Choice([*MULTI_CLASS, "ovr", "crammer_singer"]),
        default="ovo",
        show_default=True,
        metavar="NAME",
        panel=MACHINE,
        help=f"Multi-class machine: {', '.join(MULTI_CLASS)}.",
    ),
    option(
        "--bias",
        type=click.Choice(["auto", "none", "regularized", "exact"]),
        default="auto",
        show_default=True,
        metavar="RULE",
        panel=MACHINE,
        help="The bias: none, regularized, exact, or auto, which is exact for ovo, dag and ova, and none for others.",
    ),
    option(
        "--loss",
        type=click.Choice(["hinge", "squared_hinge"]),
        default="hinge",
        show_default=True,
        metavar="NAME",
        panel=MACHINE,
        help="Loss of a margin violation: hinge or squared_hinge.",
    ),
    option("--balanced", is_flag=True, panel=MACHINE, help="Weight classes by the inverse of their sizes."),
)

limit_options = joined(
    option("--threads", type=click.IntRange(min=1), panel=LIMITS, help="Maximum number of threads; all by default."),
    option(
        "--max-time",
        type=POSITIVE,
        metavar="SECONDS",
        panel=LIMITS,
        help="Stop after so long, with the result at that time.",
    ),
)

data_options = joined(
    option("--label", panel=DATA, help="Label's column of CSV and Parquet: its name, or number from 1 (-1: the last)."),
    option("--zero-based", is_flag=True, panel=DATA, help="Indices of LIBSVM's text begin at 0."),
)


@contextmanager
def threads(count: int | None) -> Iterator[None]:
    """Use at most so many threads."""
    with threadpool_limits(limits=count):
        yield


def kernel_of(given: dict[str, Any]) -> str:
    """Return the kernel's name, of --kernel or of -t."""
    return str(given["kernel"] or LIBSVM_NUMBERS[given["kernel_type"]])


def class_weight_of(given: dict[str, Any], y: np.ndarray) -> dict[Any, float] | str | None:
    """Return the factors on C by class; a label that does not occur gets a warning and is left out, as in LIBSVM."""
    if given["balanced"] and given["weights"]:
        raise click.ClickException("--balanced and -w were both given; choose one of them.")
    if given["balanced"]:
        return "balanced"
    classes = {_key(label): label for label in np.unique(y)}
    weights: dict[Any, float] = {}
    for name, factor in given["weights"]:
        try:
            value = float(factor)
        except ValueError:
            value = np.nan
        if not np.isfinite(value) or value < 0:
            raise click.ClickException(f"-w{name} {factor} is not allowed; give a factor on C that is a number >= 0.")
        if _key(name) in classes:
            weights[classes[_key(name)]] = value
        else:
            tell(f"WARNING: class label {name} specified in weight is not found")
    return weights or None


def _key(label: Any) -> Any:
    try:
        return float(label)
    except ValueError:
        return str(label)


def svc_params(given: dict[str, Any], y: np.ndarray) -> dict[str, Any]:
    """Return the parameters that SVC, SVCCV and compare_machines share, from the options."""
    return {
        "kernel": kernel_of(given),
        "degree": given["degree"],
        "coef0": given["coef0"],
        "tol": given["tol"],
        "cache_size": given["cache_size"],
        "multi_class": given["multi_class"],
        "bias": given["bias"],
        "loss": given["loss"],
        "class_weight": class_weight_of(given, y),
        "max_time": given["max_time"],
    }
