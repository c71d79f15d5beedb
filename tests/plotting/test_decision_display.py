"""Figures of regions: margins and kinds of support vectors agree with the optimum; all displays have one interface."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn import svm
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

import multimargin
from multimargin import (
    MACHINES,
    SVC,
    SVCCV,
    ConvergenceDisplay,
    DecisionDisplay,
    LinearSVC,
    LinearSVCCV,
    MachinesDisplay,
    PathDisplay,
    SelectionDisplay,
    compare_machines,
    from_sklearn,
)
from multimargin.plotting.decision_display import _emptiest_corner
from multimargin.plotting.geometry import bounded_support, margin_excess

X, Y = load_iris(return_X_y=True)
X = StandardScaler().fit_transform(X[:, 2:])
NAMES = [*MACHINES, "ovo", "dag"]


pytestmark = pytest.mark.usefixtures("figures_in_memory")


def kinds_keep_their_promise(clf: Any, weight: np.ndarray | None = None, y: np.ndarray = Y) -> tuple[int, int]:
    """Free support vectors are on their margin, bounded ones on it or short of it, all others at or beyond it."""
    bounded = bounded_support(clf, X, y, weight)
    codes = np.searchsorted(clf.classes_, y)
    own = margin_excess(clf, X)[np.arange(len(y)), codes]
    free = clf.support_[~bounded]
    assert np.abs(own[free]).max(initial=0.0) <= clf.tol
    assert own[clf.support_[bounded]].max(initial=-np.inf) <= clf.tol
    others = np.setdiff1d(np.arange(len(y)), clf.support_)
    others = others if weight is None else others[weight[others] > 0]
    assert own[others].min(initial=np.inf) >= -clf.tol
    return len(free), int(bounded.sum())


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("bias", ["none", "regularized", "exact"])
def test_kinds_of_support_vectors(name: str, bias: str) -> None:
    free, bounded = kinds_keep_their_promise(SVC(multi_class=name, bias=bias, gamma=0.5, tol=1e-6).fit(X, Y))
    assert bounded > 0
    assert free > 0 or name in ("adm", "atm", "mmr")


@pytest.mark.parametrize("name", ["ova", "ovo", "ww", "cs"])
def test_kinds_of_a_linear_machine(name: str) -> None:
    for bias in ("exact", "regularized"):
        free, bounded = kinds_keep_their_promise(LinearSVC(multi_class=name, bias=bias, tol=1e-6).fit(X, Y))
        assert free > 0
        assert bounded > 0


def test_weights_and_class_weights_are_part_of_the_bound() -> None:
    weight = np.random.default_rng(0).integers(0, 4, len(Y)).astype(float)
    clf = SVC(class_weight={0: 1.0, 1: 3.0, 2: 0.5}, gamma=0.5, tol=1e-6).fit(X, Y, sample_weight=weight)
    kinds_keep_their_promise(clf, weight)
    with pytest.raises(AssertionError):
        kinds_keep_their_promise(clf)  # other weights, other bounds


def test_squared_hinge_bounds_nothing() -> None:
    clf = SVC(multi_class="ww", loss="squared_hinge").fit(X, Y)
    assert not bounded_support(clf, X, Y).any()


@pytest.mark.parametrize("name", NAMES)
def test_two_classes_have_the_margins_of_the_binary_machine(name: str) -> None:
    labels = (Y == 2).astype(int)
    clf = SVC(multi_class=name, gamma=0.5).fit(X, labels)
    decision = clf.decision_function(X) * (2 if name == "cs" else 1)
    expected = np.column_stack([-decision - 1, decision - 1])
    expected *= 2 if name == "ww" else 1  # its target is 2
    np.testing.assert_allclose(margin_excess(clf, X), expected, atol=1e-12)


def test_picture_shows_what_the_classifier_says() -> None:
    clf = SVC(multi_class="ww", gamma=0.5).fit(X, Y)
    display = DecisionDisplay.from_estimator(clf, X, Y, grid_resolution=30, eps=1.0)
    shown = display.decisions
    grid = np.column_stack([shown.xx0.ravel(), shown.xx1.ravel()])
    np.testing.assert_array_equal(shown.classes[shown.codes.ravel()], clf.predict(grid))
    np.testing.assert_allclose((grid.min(axis=0), grid.max(axis=0)), (X.min(axis=0) - 1, X.max(axis=0) + 1))
    assert (len(display.boundaries_), len(display.margins_)) == (3, 3)
    marked = [display.points_[f"{kind} support vectors"] for kind in ("free", "bounded")]
    drawn = np.concatenate([points.get_offsets() for points in marked])
    np.testing.assert_array_equal(np.sort(drawn, axis=0), np.sort(X[clf.support_], axis=0))
    assert display.ax_.figure is display.figure_
    plain = display.plot(margins=False, support=False, alpha=0.5)
    assert plain.margins_ == []
    assert list(plain.points_) == ["0", "1", "2"]
    assert plain.surface_.get_alpha() == 0.5


def test_margin_lines_pass_through_free_support_vectors() -> None:
    labels = (Y == 2).astype(int)
    clf = SVC(C=0.5, gamma=0.3, tol=1e-8).fit(X, labels)
    display = DecisionDisplay.from_estimator(clf, X, labels, grid_resolution=300)
    assert display.examples is not None
    lines = np.concatenate([path.vertices for line in display.margins_ for path in line.get_paths()])
    for row in display.examples.free:
        assert np.linalg.norm(lines - X[row], axis=1).min() < 0.05


def test_a_pipeline_and_a_search_and_a_data_frame() -> None:
    frame = pd.DataFrame(load_iris().data[:, 2:], columns=["length $", "width"])
    pipeline = make_pipeline(PolynomialFeatures(2), StandardScaler(), SVC(multi_class="ww")).fit(frame, Y)
    display = DecisionDisplay.from_estimator(pipeline, frame, Y, grid_resolution=20)
    assert display.examples is not None
    bounded = bounded_support(pipeline[-1], pipeline[:-1].transform(frame), Y)
    np.testing.assert_array_equal(display.examples.bounded, pipeline[-1].support_[bounded])
    assert display.ax_.get_xlabel() == "length $"
    display.figure_.canvas.draw()  # a dollar sign starts no formula
    for search in (
        SVCCV(Cs=[1, 10], gammas=[0.5], cv=3).fit(X, Y),
        GridSearchCV(make_pipeline(StandardScaler(), SVC()), {"svc__C": [1, 10]}, cv=3).fit(X, Y),
    ):
        assert DecisionDisplay.from_estimator(search, X, Y, grid_resolution=20).margins_


def test_another_library_has_regions_and_a_bridge_its_margins() -> None:
    theirs = svm.SVC(gamma=0.5).fit(X, Y)
    display = DecisionDisplay.from_estimator(theirs, X, Y, grid_resolution=20)
    assert display.margins_ == []
    assert list(display.points_) == ["0", "1", "2"]
    assert len(DecisionDisplay.from_estimator(from_sklearn(theirs), X, grid_resolution=20).margins_) == 3


def test_what_cannot_be_drawn_is_refused() -> None:
    clf = SVC().fit(X, Y)
    with pytest.raises(ValueError, match="X has 4 columns, a picture of regions needs two"):
        DecisionDisplay.from_estimator(SVC().fit(load_iris().data, Y), load_iris().data)
    with pytest.raises(ValueError, match="X has 10 rows, the classifier was trained on 150"):
        DecisionDisplay.from_estimator(clf, X[:10], Y[:10])
    with pytest.raises(ValueError, match="give the labels of the training data"):
        DecisionDisplay.from_estimator(clf, X, Y + 1)
    with pytest.raises(ValueError, match="grid_resolution must be at least 2"):
        DecisionDisplay.from_estimator(clf, X, grid_resolution=1)


def test_many_classes_have_as_many_colours() -> None:
    rng = np.random.default_rng(0)
    points, labels = rng.normal(size=(60, 2)), np.arange(60) % 12
    display = DecisionDisplay.from_estimator(SVC().fit(points, labels), points, labels, grid_resolution=15)
    assert display.surface_.get_cmap().N == 12


@pytest.mark.parametrize("corner", [(1, 1), (0, 1), (1, 0), (0, 0)])
def test_legend_is_where_no_point_is(corner: tuple[int, int]) -> None:
    points = np.array([other for other in [(1, 1), (0, 1), (1, 0), (0, 0)] if other != corner], dtype=float)
    name = _emptiest_corner(np.concatenate([points * 5.0 + 2.0, [[4.5, 4.5]]]))
    assert name == f"{'upper' if corner[1] else 'lower'} {'right' if corner[0] else 'left'}"


def displays() -> dict[str, Any]:
    clf = SVC(multi_class="ww", trace=True).fit(X, Y)
    search = SVCCV(Cs=[1, 10], gammas=[0.1, 1], cv=3).fit(X, Y)
    linear = LinearSVCCV(Cs=[1, 10], cv=3).fit(X, Y)
    comparison = compare_machines(X, Y, machines=("ovo", "ww"), Cs=[1], gammas=[0.5], cv=3)
    return {
        "ConvergenceDisplay": ConvergenceDisplay.from_estimator(clf),
        "DecisionDisplay": DecisionDisplay.from_estimator(clf, X, grid_resolution=10),
        "MachinesDisplay": MachinesDisplay.from_estimator(comparison),
        "PathDisplay": PathDisplay.from_estimator(linear),
        "SelectionDisplay": SelectionDisplay.from_estimator(search),
    }


def test_all_displays_keep_one_contract() -> None:
    from matplotlib.figure import Figure

    for name in (name for name in multimargin.__all__ if name.endswith("Display")):
        assert list(inspect.signature(getattr(multimargin, name).plot).parameters)[:2] == ["self", "ax"]
    for name, display in displays().items():
        assert isinstance(display, getattr(multimargin, name))
        assert display.ax_.figure is display.figure_
        other = Figure().subplots()
        again = display.plot(ax=other)
        assert again is display
        assert (display.ax_, display.figure_) == (other, other.figure)
