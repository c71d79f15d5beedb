"""Decision regions, margins and support vectors in the plane. matplotlib is imported when a picture is drawn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_array, check_is_fitted

from multimargin._typing import FloatArray, IntArray
from multimargin.plotting.axes import new_axes
from multimargin.plotting.geometry import bounded_support, has_margins, margin_excess

FREE = {"marker": "o", "s": 70, "facecolors": "none", "edgecolors": "black", "linewidths": 1.2}
BOUNDED = {"marker": "s", "s": 60, "facecolors": "none", "edgecolors": "0.45", "linewidths": 0.8}


@dataclass(frozen=True, eq=False)
class DecisionMap:
    """Predictions of a classifier at the points of a grid.

    Parameters
    ----------
    xx0, xx1 : ndarray of shape (n_rows, n_columns)
        The grid, as ``np.meshgrid`` makes it.
    codes : ndarray of shape (n_rows, n_columns)
        Positions in ``classes`` of what is predicted.
    classes : ndarray of shape (n_classes,)
    excess : ndarray of shape (n_classes, n_rows, n_columns) or None
        By how much the worst margin of each class exceeds its target; None where a classifier has no margins.
    names : tuple of two str
        Of the features.
    """

    xx0: FloatArray
    xx1: FloatArray
    codes: IntArray
    classes: np.ndarray
    excess: FloatArray | None = None
    names: tuple[str, str] = ("", "")


@dataclass(frozen=True, eq=False)
class DrawnExamples:
    """The training data in a figure: points, their classes, and the kinds of support vectors.

    Parameters
    ----------
    points : ndarray of shape (n_samples, 2)
    codes : ndarray of shape (n_samples,)
        Positions in the map's ``classes``.
    free, bounded : ndarray of int
        Rows of the support vectors that have no dual variable at its bound, and of those that have.
    """

    points: FloatArray
    codes: IntArray
    free: IntArray
    bounded: IntArray


class DecisionDisplay:
    """Decision regions of a classifier of two features, with margins and support vectors.

    Draw it with ``from_estimator``; ``plot`` draws again, in another way or into other axes. The dashed line of a class
    is where its margins are met: beyond it an example of the class costs nothing. Free support vectors (rings) lie on
    that line to within ``tol``; bounded ones (squares) lie on it or are short of it.

    Parameters
    ----------
    decisions : DecisionMap
    examples : DrawnExamples or None, default=None

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    surface_ : matplotlib QuadMesh
        The regions.
    boundaries_ : list of matplotlib ContourSet
        One for each class that is predicted somewhere and not everywhere.
    margins_ : list of matplotlib ContourSet
        One for each class whose margins are met somewhere in the picture.
    points_ : dict of str to matplotlib PathCollection
        The examples by the names of the legend: the classes, "free support vectors", "bounded support vectors".

    See Also
    --------
    SelectionDisplay : Plots of a search over C and gamma.
    ConvergenceDisplay : Plots of the progress of fits.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from multimargin import SVC, DecisionDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = SVC(multi_class="ww").fit(X[:, 2:], y)
    >>> display = DecisionDisplay.from_estimator(clf, X[:, 2:], y)
    >>> len(display.margins_), len(display.examples.free) + len(display.examples.bounded) == len(clf.support_)
    (3, True)
    """

    def __init__(self, decisions: DecisionMap, examples: DrawnExamples | None = None) -> None:
        self.decisions, self.examples = decisions, examples

    @classmethod
    def from_estimator(  # noqa: PLR0913 - data, grid and axes, as scikit-learn's display takes them
        cls,
        estimator: Any,
        X: ArrayLike,
        y: ArrayLike | None = None,
        *,
        sample_weight: ArrayLike | None = None,
        grid_resolution: int = 200,
        eps: float = 0.5,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the regions of a fitted classifier and, with ``y``, the data that it was trained on.

        Parameters
        ----------
        estimator : SVC, LinearSVC, or another classifier of two features
            Also at the end of a pipeline, or chosen by a search. Classifiers of other libraries have regions only;
            ``from_sklearn`` makes an SVC of scikit-learn's.
        X : array-like of shape (n_samples, 2)
            Points that the figure must cover; with ``y`` the training data.
        y : array-like of shape (n_samples,), default=None
        sample_weight : array-like of shape (n_samples,), default=None
            The weights of the fit, which say what a support vector is bounded by.
        grid_resolution : int, default=200
            Points along each axis at which the classifier is asked.
        eps : float, default=0.5
            How far the picture goes beyond the data.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.
        **kwargs : dict
            See ``plot``.
        """
        estimator = _chosen(estimator)
        check_is_fitted(estimator)
        points = _two_columns(X)
        if grid_resolution < 2 or not eps >= 0:
            raise ValueError(
                f"grid_resolution={grid_resolution!r} and eps={eps!r} are not allowed together; "
                "grid_resolution must be at least 2 and eps at least 0."
            )
        decisions = _ask(estimator, X, points, grid_resolution, eps)
        examples = None if y is None else _examples(estimator, X, points, y, sample_weight)
        return cls(decisions, examples).plot(ax, **kwargs)

    def plot(self, ax: Any = None, *, margins: bool = True, support: bool = True, **kwargs: Any) -> Self:
        """Draw into ``ax``, or into a new figure.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
        margins, support : bool, default=True
            Whether to draw the lines of the margins, and to mark support vectors.
        **kwargs : dict
            For matplotlib's ``pcolormesh``.
        """
        ax = new_axes("DecisionDisplay") if ax is None else ax
        self.ax_, self.figure_ = ax, ax.figure
        self.boundaries_: list[Any] = []
        self.margins_: list[Any] = []
        self.points_: dict[str, Any] = {}
        colours = _colours(len(self.decisions.classes))
        self._draw_regions(ax, colours, kwargs)
        if margins and self.decisions.excess is not None:
            self._draw_margins(ax, colours)
        if self.examples is not None:
            self._draw_examples(ax, colours, support)
        ax.set_xlabel(self.decisions.names[0], parse_math=False)
        ax.set_ylabel(self.decisions.names[1], parse_math=False)
        return self

    def _draw_regions(self, ax: Any, colours: list[Any], kwargs: dict[str, Any]) -> None:
        from matplotlib.colors import ListedColormap

        shown = self.decisions
        style = {"cmap": ListedColormap(colours), "vmin": -0.5, "vmax": len(colours) - 0.5, "alpha": 0.25}
        style |= {"shading": "nearest", "rasterized": True} | kwargs
        self.surface_ = ax.pcolormesh(shown.xx0, shown.xx1, shown.codes, **style)
        for code in range(len(colours)):
            inside = (shown.codes == code).astype(float)
            if inside.any() and not inside.all():
                line = ax.contour(shown.xx0, shown.xx1, inside, levels=[0.5], colors="0.2", linewidths=1.0)
                self.boundaries_.append(line)

    def _draw_margins(self, ax: Any, colours: list[Any]) -> None:
        assert self.decisions.excess is not None
        for colour, excess in zip(colours, self.decisions.excess, strict=True):
            if excess.min() < 0 < excess.max():
                style = {"levels": [0.0], "colors": [colour], "linestyles": "dashed", "linewidths": 1.2}
                self.margins_.append(ax.contour(self.decisions.xx0, self.decisions.xx1, excess, **style))

    def _draw_examples(self, ax: Any, colours: list[Any], support: bool) -> None:
        assert self.examples is not None
        data = self.examples
        for code, label in enumerate(self.decisions.classes):
            at = data.points[data.codes == code]
            style = {"s": 16, "color": colours[code], "edgecolors": "white", "linewidths": 0.4, "label": str(label)}
            self.points_[str(label)] = ax.scatter(*at.T, **style)
        kinds = {"free support vectors": (data.free, FREE), "bounded support vectors": (data.bounded, BOUNDED)}
        for name, (rows, style) in kinds.items():
            if support and len(rows):
                self.points_[name] = ax.scatter(*data.points[rows].T, **style, label=name)
        ax.legend(loc=_emptiest_corner(data.points), fontsize="small", framealpha=0.8)


def _chosen(estimator: Any) -> Any:
    """Return the best estimator of a search, or the estimator itself."""
    while hasattr(estimator, "best_estimator_"):
        estimator = estimator.best_estimator_
    return estimator


def _last_step(estimator: Any) -> tuple[Any, Any]:
    """Return the classifier at the end of a pipeline, and what comes before it, or None."""
    steps = getattr(estimator, "steps", None)
    if steps is None:
        return estimator, None
    before = estimator[:-1]
    return _chosen(estimator[-1]), before if len(before.steps) else None


def _two_columns(X: ArrayLike) -> FloatArray:
    points = check_array(X, dtype=np.float64)
    if points.shape[1] != 2:
        raise ValueError(
            f"X has {points.shape[1]} columns, a picture of regions needs two; train a classifier on two of them, or "
            "on PCA(2).fit_transform(X)."
        )
    return np.asarray(points)


def _ask(estimator: Any, X: Any, points: FloatArray, resolution: int, eps: float) -> DecisionMap:
    low, high = points.min(axis=0) - eps, points.max(axis=0) + eps
    xx0, xx1 = np.meshgrid(*(np.linspace(a, b, resolution) for a, b in zip(low, high, strict=True)))
    grid: Any = np.column_stack([xx0.ravel(), xx1.ravel()])
    names = ("", "")
    if hasattr(X, "iloc"):  # a data frame: the classifier knows its columns by name
        names, grid = (str(X.columns[0]), str(X.columns[1])), type(X)(grid, columns=X.columns)
    model, before = _last_step(estimator)
    codes = np.searchsorted(estimator.classes_, estimator.predict(grid)).reshape(xx0.shape)
    excess = None
    if has_margins(model):
        inner = grid if before is None else before.transform(grid)
        excess = margin_excess(model, inner).T.reshape(-1, *xx0.shape)
    return DecisionMap(xx0, xx1, codes, estimator.classes_, excess, names)


def _examples(
    estimator: Any, X: Any, points: FloatArray, y: ArrayLike, sample_weight: ArrayLike | None
) -> DrawnExamples:
    labels = np.asarray(y)
    codes = np.searchsorted(estimator.classes_, labels)
    if len(labels) != len(points) or not np.isin(labels, estimator.classes_).all():
        raise ValueError(
            f"y has {len(labels)} labels {np.unique(labels).tolist()} for {len(points)} rows of X and the classes "
            f"{estimator.classes_.tolist()}; give the labels of the training data."
        )
    model, before = _last_step(estimator)
    if not has_margins(model):
        none = np.empty(0, dtype=np.int64)
        return DrawnExamples(points, codes, none, none)
    if model.shape_fit_[0] != len(points):
        raise ValueError(
            f"X has {len(points)} rows, the classifier was trained on {model.shape_fit_[0]}; give the training data, "
            "or leave y out to draw the regions alone."
        )
    inner = X if before is None else before.transform(X)
    bounded = bounded_support(model, inner, labels, sample_weight)
    return DrawnExamples(points, codes, np.asarray(model.support_)[~bounded], np.asarray(model.support_)[bounded])


def _emptiest_corner(points: FloatArray) -> str:
    """Return where a legend hides the fewest points; matplotlib's own search may take seconds, and warns then."""
    low, high = points.min(axis=0), points.max(axis=0)
    shares = (points - low) / np.where(high > low, high - low, 1.0)
    corners = {"upper right": (1, 1), "upper left": (0, 1), "lower right": (1, 0), "lower left": (0, 0)}
    hidden = {name: int((np.abs(shares - corner) < 0.4).all(axis=1).sum()) for name, corner in corners.items()}
    return min(hidden, key=lambda name: hidden[name])


def _colours(n_classes: int) -> list[Any]:
    """Return a colour for each class: ten that are easily distinguished, else a rainbow."""
    from matplotlib import colormaps

    if n_classes <= 10:
        return [colormaps["tab10"](code) for code in range(n_classes)]
    return [colormaps["turbo"](share) for share in np.linspace(0.03, 0.97, n_classes)]
