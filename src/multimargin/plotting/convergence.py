"""Figures of convergence. matplotlib is imported when one is drawn (``pip install 'multimargin[plots]'``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np

from multimargin._typing import FloatArray
from multimargin.plotting.axes import choice_of, new_axes
from multimargin.solvers.trace import Trace

X_AXES = {"seconds": "seconds", "iterations": "iterations", "kernel_rows": "kernel rows computed"}
Y_AXES = {
    "violation": "KKT violation",
    "suboptimality": "best dual shown - dual",
    "gap": "duality gap",
    "relative_gap": "relative duality gap",
    "dual": "dual objective",
    "primal": "primal objective",
    "n_active": "active examples",
    "n_variables": "active variables",
    "n_free": "free variables",
    "n_bounded": "variables at the upper bound",
}
LOGARITHMIC = ("violation", "suboptimality", "gap", "relative_gap")
NEED_PRIMAL = ("primal", "gap", "relative_gap")


class ConvergenceDisplay:
    """Curves of the traces of one or more fits.

    Draw it with ``from_estimator`` or ``from_estimators``; drawing again with the same ``ax`` adds curves.

    Parameters
    ----------
    traces : sequence of Trace or of lists of Trace
        One entry for each fit, as ``trace_`` has it; the problems of one fit share a colour.
    names : sequence of str, default=None
        One for each fit, for the legend.
    x : {"seconds", "iterations", "kernel_rows"}, default="seconds"
    y : str, default="violation"
        "violation", "dual", "primal", "gap", "relative_gap", "n_active", "n_variables", "n_free", "n_bounded", or
        "suboptimality": the best dual of the curves in the picture minus the dual. Violation, gaps and suboptimality
        are drawn on a logarithmic axis.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    lines_ : list of matplotlib Line2D
        Those that this display has drawn.
    """

    def __init__(
        self,
        traces: Sequence[Trace | Sequence[Trace]],
        names: Sequence[str | None] | None = None,
        *,
        x: str = "seconds",
        y: str = "violation",
    ) -> None:
        self.traces = [[each] if isinstance(each, Trace) else list(each) for each in traces]
        self.names = [None] * len(self.traces) if names is None else list(names)
        if len(self.names) != len(self.traces):
            raise ValueError(f"names has {len(self.names)} entries for {len(self.traces)} traces; give one for each.")
        self.x, self.y = choice_of("x", x, X_AXES), choice_of("y", y, Y_AXES)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        x: str = "seconds",
        y: str = "violation",
        ax: Any = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the trace of a fitted estimator; ``name`` is its solver unless given.

        Parameters
        ----------
        estimator : SVC
            Fitted with ``trace=True``, or with ``trace="primal"`` for y="gap", "relative_gap" and "primal".
        x, y : str
            See the class.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.
        name : str, default=None
        **kwargs : dict
            For matplotlib's ``plot``.
        """
        trace = _trace_of(estimator)
        shown = str(estimator.certificate_.solver) if name is None else name
        return cls([trace], [shown], x=x, y=y).plot(ax, **kwargs)

    @classmethod
    def from_estimators(
        cls, estimators: Mapping[str, Any], *, x: str = "seconds", y: str = "violation", ax: Any = None, **kwargs: Any
    ) -> Self:
        """Draw the traces of several fitted estimators, by name, in one picture."""
        return cls([_trace_of(each) for each in estimators.values()], list(estimators), x=x, y=y).plot(ax, **kwargs)

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Draw the curves into ``ax``, or into a new figure; keyword arguments are those of matplotlib's ``plot``."""
        curves = [[self._values(trace) for trace in group] for group in self.traces]  # raises before anything is drawn
        ax = new_axes("ConvergenceDisplay") if ax is None else ax
        self.ax_, self.figure_, self.lines_ = ax, ax.figure, []
        for group, name, values in zip(self.traces, self.names, curves, strict=True):
            style = dict(kwargs)
            for part, (trace, value) in enumerate(zip(group, values, strict=True)):
                (line,) = ax.plot(getattr(trace, self.x), value, **{"label": name if part == 0 else None, **style})
                style.setdefault("color", line.get_color())
                if self.y == "suboptimality":
                    line.multimargin_dual = (part, trace.dual)  # needed for the best dual when more curves are added
                self.lines_.append(line)
        if self.y == "suboptimality":
            _measure_from_the_best(ax)
        ax.set_xlabel(X_AXES[self.x])
        ax.set_ylabel(Y_AXES[self.y])
        if self.y in LOGARITHMIC:
            ax.set_yscale("log")
        if any(name is not None for name in self.names):
            ax.legend()
        return self

    def _values(self, trace: Trace) -> FloatArray:
        if self.y == "suboptimality":
            return trace.dual
        values: FloatArray = np.asarray(getattr(trace, self.y), dtype=np.float64)
        if self.y in NEED_PRIMAL and np.isnan(values).all():
            raise ValueError(
                f"y={self.y!r} needs the primal objective, which was not recorded; fit with trace='primal'."
            )
        return _positive(values) if self.y in LOGARITHMIC else values


def _trace_of(estimator: Any) -> Trace | list[Trace]:
    if not hasattr(estimator, "trace_"):
        raise ValueError(f"This {type(estimator).__name__} has no trace_; fit it with trace=True.")
    trace: Trace | list[Trace] = estimator.trace_
    return trace


def _positive(values: FloatArray) -> FloatArray:
    """Values that a logarithmic axis can show."""
    return np.where(np.isfinite(values) & (values > 0), values, np.nan)


def _measure_from_the_best(ax: Any) -> None:
    """Recompute all suboptimality curves of the figure: each problem against the best dual of any curve."""
    lines = [line for line in ax.get_lines() if hasattr(line, "multimargin_dual")]
    best: dict[int, float] = {}
    for line in lines:
        part, dual = line.multimargin_dual
        best[part] = max(best.get(part, -np.inf), float(np.max(dual)))
    for line in lines:
        part, dual = line.multimargin_dual
        line.set_ydata(_positive(best[part] - dual))
    ax.relim()
    ax.autoscale_view()
