"""The parameters that several estimators have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from multimargin.estimators.declared import DeclaredClassifier, parameter
from multimargin.kernels.table import PRECOMPUTED, choices
from multimargin.problems.machines import Machine
from multimargin.solvers.report import Progress


class MachineParameters(DeclaredClassifier):
    """What every estimator has."""

    tol: float = parameter(
        default=1e-3,
        kind="float",
        doc="The KKT violation to reach; confirmed in float64 before a fit counts as converged.",
    )
    class_weight: Any = parameter(default=None, kind='dict, "balanced" or None', doc="Factors on C by class.")
    random_state: Any = parameter(
        default=None, kind="object", doc="Accepted for compatibility; nothing in the training is random."
    )
    multi_class: str | Machine = parameter(
        default="ovo",
        kind="str or Machine",
        doc="""
        "ovo": a binary machine for each pair of classes, and votes. "dag": the same machines, asked one by one. Or a
        machine that sees all classes: "ww", "cs", "llw", "adm", "ats", "atm", "rm", "mmr", "ova" (also "ovr",
        "crammer_singer") or your own.
        """,
    )
    bias: str = parameter(
        default="auto",
        kind='{"auto", "none", "regularized", "exact"}',
        doc="""
        "exact" leaves b free, as LIBSVM does; "regularized" adds b^2/2 to the objective (the kernel k + 1). "auto" is
        "exact" for "ovo", "dag" and "ova" and "none" for the others, which need two to three times as long for "exact".
        """,
    )


class FitParameters(MachineParameters):
    """What all have that train on all rows at once."""

    verbose: bool | int = parameter(default=False, kind="bool or int", doc="Show a line of progress on stderr.")
    max_iter: int = parameter(
        default=-1,
        kind="int",
        doc="""
        Limit on steps, for "ovo" and "dag" on those of each pair, for "ova" with an exact bias of each class; -1 for
        none.
        """,
    )
    max_time: float | None = parameter(
        default=None, kind="float or None", doc="Seconds after which the fit ends with the model it has."
    )
    on_progress: Callable[[Progress], bool | None] | None = parameter(
        default=None,
        kind="callable or None",
        doc="Called at first and then about every 50 ms with a ``Progress``; returning True ends the fit.",
    )
    on_interrupt: str = parameter(
        default="raise",
        kind='{"raise", "keep"}',
        doc="""
        On Ctrl-C the fitted attributes are set from the last iterate; then KeyboardInterrupt goes on ("raise") or
        the model is returned with a warning ("keep").
        """,
    )


class LossParameter(MachineParameters):
    """The loss, where it is given by name; that of LinearSVC has a place."""

    loss: str = parameter(default="hinge", kind='{"hinge", "squared_hinge"}')


class SingleFitParameters(FitParameters):
    """What those have that train one machine at one C."""

    C: float = parameter(
        default=1.0,
        kind="float",
        doc='What a short margin costs; ``float("inf")`` asks for a hard margin.',
    )
    warm_start: bool = parameter(
        default=False, kind="bool", doc="Start from the solution of the last fit on the same rows."
    )


class KernelParameters(MachineParameters):
    """What all have that train with kernels."""

    kernel: str | Callable[[Any, Any], Any] = parameter(
        default="rbf",
        kind=f"{choices(PRECOMPUTED)} or callable",
        doc="""
        With "precomputed" X is the matrix of kernel values: (n_samples, n_samples) in ``fit``, (n_points, n_samples)
        later, of which only the columns of the support vectors are read (others may be NaN throughout). A callable is
        asked as k(A, B) for at most 512 rows A of X; its n_samples x n_samples values must fit ``cache_size``.
        """,
    )
    degree: int = parameter(default=3, kind="int", doc='Degree of "poly".')
    coef0: float = parameter(default=0.0, kind="float", doc='Constant in "poly" and "sigmoid".')
    cache_size: float | str = parameter(
        default="auto",
        kind='float or "auto"',
        doc="""
        Megabytes for kernel rows; "auto" takes a quarter of the available memory. With 0 a row lives for one step.
        """,
    )
    decision_function_shape: str = parameter(
        default="ovr",
        kind='{"ovr", "ovo"}',
        doc="""
        "ovo" makes ``decision_function`` return the scores of all pairs of classes; for "ovo" and "dag" only.
        """,
    )
    break_ties: bool = parameter(
        default=False,
        kind="bool",
        doc="""
        With "ovo" and three or more classes: whether ``predict`` takes the argmax of ``decision_function`` rather than
        the first of the classes with most votes. Without effect elsewhere, where the two are the same.
        """,
    )


class PrecomputedKernels:
    """The kind of input of estimators that may be given kernel values; before the base of scikit-learn's tags."""

    kernel: str | Callable[[Any, Any], Any]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.sparse, tags.input_tags.pairwise = not self._precomputed, self._precomputed
        return tags

    @property
    def _precomputed(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel == "precomputed"
