"""Figures of paths along C. matplotlib is imported when one is drawn (``pip install 'multimargin[plots]'``)."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.metrics import accuracy_score

from multimargin._typing import FloatArray
from multimargin.estimators.c_path import SVMPath
from multimargin.plotting.axes import choice_of, new_axes

KINDS = {"coefs": "weights", "errors": "share of wrong classes"}


class PathDisplay:
    """Curves against C: weights, or training and validation errors.

    Draw it with ``from_path`` or ``from_estimator``; drawing again with the same ``ax`` adds curves.

    Parameters
    ----------
    Cs : ndarray of shape (n_points,)
    curves : dict of str to ndarray of shape (n_points,) or (n_points, n_curves)
        What to draw, by the names of the legend.
    kind : {"coefs", "errors"}, default="errors"
    marked_C : float or None, default=None
        Where to draw a vertical line.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    lines_ : list of matplotlib Line2D
        Those that this display has drawn, the vertical one last.
    """

    def __init__(
        self, Cs: FloatArray, curves: dict[str, FloatArray], *, kind: str = "errors", marked_C: float | None = None
    ) -> None:
        self.Cs, self.curves, self.kind, self.marked_C = Cs, curves, choice_of("kind", kind, KINDS), marked_C

    @classmethod
    def from_path(
        cls,
        path: SVMPath,
        X: ArrayLike | None = None,
        y: ArrayLike | None = None,
        *,
        X_val: ArrayLike | None = None,
        y_val: ArrayLike | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the errors on the data that are given or, without data, the weights; the line is ``saturation_C``.

        Parameters
        ----------
        path : SVMPath
            With models, for errors.
        X, y : array-like, default=None
            The training data, for the training error.
        X_val, y_val : array-like, default=None
            Other data, for the validation error.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.
        **kwargs : dict
            For matplotlib's ``plot``.
        """
        errors: dict[str, FloatArray] = {}
        for name, points, labels in (("training", X, y), ("validation", X_val, y_val)):
            if (points is None) != (labels is None):
                raise ValueError(f"The {name} error needs points and labels, but one is None; give both or neither.")
            if points is not None and labels is not None:
                models = (path.model(index) for index in range(len(path)))
                errors[name] = np.array([1.0 - accuracy_score(labels, model.predict(points)) for model in models])
        if errors:
            return cls(path.Cs, errors, marked_C=path.saturation_C).plot(ax, **kwargs)
        if path.coefs is None:
            raise ValueError(
                "A path of a kernel machine has no weights to draw; give X and y, or X_val and y_val, for errors."
            )
        weights = path.coefs.transpose(0, 2, 1)
        curves = {f"row {row} of coef_": weights[:, :, row] for row in range(weights.shape[2])}
        return cls(path.Cs, curves, kind="coefs", marked_C=path.saturation_C).plot(ax, **kwargs)

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None, **kwargs: Any) -> Self:
        """Draw the validation errors of a fitted LinearSVCCV, their mean and those of the folds; the line is ``C_``.

        Parameters
        ----------
        estimator : LinearSVCCV
            With the default ``scoring`` or another accuracy: an error is 1 minus a score.
        ax : matplotlib Axes, default=None
        **kwargs : dict
            For matplotlib's ``plot``.
        """
        if not hasattr(estimator, "scores_"):
            raise ValueError(f"This {type(estimator).__name__} has no scores_; give a fitted LinearSVCCV.")
        errors = 1.0 - next(iter(estimator.scores_.values()))
        curves = {"mean of the folds": errors.mean(axis=0), "folds": errors.T}
        return cls(estimator.Cs_, curves, marked_C=float(estimator.C_[0])).plot(ax, **kwargs)

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Draw the curves into ``ax``, or into a new figure; keyword arguments are those of matplotlib's ``plot``."""
        ax = new_axes("PathDisplay") if ax is None else ax
        self.ax_, self.figure_, self.lines_ = ax, ax.figure, []
        for name, values in self.curves.items():
            style: dict[str, Any] = dict(kwargs)
            columns = values[:, None] if values.ndim == 1 else values
            if columns.shape[1] > 1:
                style.setdefault("linewidth", 0.8)
            for number, column in enumerate(columns.T):
                (line,) = ax.plot(self.Cs, column, **{"label": name if number == 0 else None, **style})
                if self.kind == "errors":
                    style.setdefault("color", line.get_color())
                self.lines_.append(line)
        if self.marked_C is not None:
            self.lines_.append(ax.axvline(self.marked_C, color="0.6", linestyle=":"))
        ax.set_xscale("log")
        ax.set_xlabel("C")
        ax.set_ylabel(KINDS[self.kind])
        if len(self.curves) > 1:
            ax.legend()
        return self
