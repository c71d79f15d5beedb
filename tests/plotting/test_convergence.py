"""ConvergenceDisplay: draws the traces on the chosen axes, and raises errors for what it cannot draw."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_iris

from multimargin import SVC, ConvergenceDisplay
from multimargin.plotting.convergence import LOGARITHMIC, X_AXES, Y_AXES
from multimargin.solvers.trace import TraceBuilder

X, Y = load_iris(return_X_y=True)


pytestmark = pytest.mark.usefixtures("figures_in_memory")


@pytest.fixture(scope="module")
def fits() -> dict[str, SVC]:
    return {
        solver: SVC(multi_class="ww", solver=solver, trace="primal").fit(X, Y) for solver in ("smo", "s2do", "auto")
    }


def axes() -> Any:
    from matplotlib import pyplot

    return pyplot.subplots()[1]


@pytest.mark.parametrize("x", X_AXES)
@pytest.mark.parametrize("y", [name for name in Y_AXES if name != "suboptimality"])
def test_draws_the_trace(fits: dict[str, SVC], x: str, y: str) -> None:
    display = ConvergenceDisplay.from_estimator(fits["smo"], x=x, y=y)
    (line,) = display.lines_
    trace = fits["smo"].trace_
    np.testing.assert_array_equal(line.get_xdata(), getattr(trace, x))
    expected = np.array(getattr(trace, y), dtype=np.float64)
    if y in LOGARITHMIC:
        expected[~(expected > 0)] = np.nan
    np.testing.assert_array_equal(line.get_ydata(), expected)
    assert display.ax_.get_yscale() == ("log" if y in LOGARITHMIC else "linear")
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == (X_AXES[x], Y_AXES[y])
    assert [text.get_text() for text in display.ax_.get_legend().get_texts()] == ["smo"]
    display.figure_.canvas.draw()


def test_several_fits_in_one_picture(fits: dict[str, SVC]) -> None:
    display = ConvergenceDisplay.from_estimators(fits, x="iterations", linewidth=3)
    assert [line.get_label() for line in display.lines_] == list(fits)
    assert {line.get_linewidth() for line in display.lines_} == {3}
    assert len({line.get_color() for line in display.lines_}) == 3


def test_suboptimality_is_measured_from_the_best_of_the_picture(fits: dict[str, SVC]) -> None:
    best = max(float(clf.trace_.dual.max()) for clf in fits.values())
    together = ConvergenceDisplay.from_estimators(fits, y="suboptimality")
    ax = axes()
    for name, clf in fits.items():
        ConvergenceDisplay.from_estimator(clf, y="suboptimality", ax=ax, name=name)
    for line, one, clf in zip(ax.get_lines(), together.lines_, fits.values(), strict=True):
        expected = best - clf.trace_.dual
        expected[expected <= 0] = np.nan
        np.testing.assert_array_equal(line.get_ydata(), expected)
        np.testing.assert_array_equal(one.get_ydata(), expected)
    assert ax.get_yscale() == "log"
    assert len(ax.get_legend().get_texts()) == 3
    ax.figure.canvas.draw()


def test_problems_of_one_fit_share_a_colour_and_a_name() -> None:
    pairs = {"C=1": SVC(trace=True).fit(X, Y), "tol=1e-6": SVC(trace=True, tol=1e-6).fit(X, Y)}
    display = ConvergenceDisplay.from_estimators(pairs, y="suboptimality")
    assert len(display.lines_) == 6
    colours = [line.get_color() for line in display.lines_]
    assert len(set(colours[:3])) == len(set(colours[3:])) == 1
    assert colours[0] != colours[3]
    assert [text.get_text() for text in display.ax_.get_legend().get_texts()] == list(pairs)
    # the best of each pair, not of all pairs
    for part, line in enumerate(display.lines_[:3]):
        best = max(float(clf.trace_[part].dual.max()) for clf in pairs.values())
        expected = best - pairs["C=1"].trace_[part].dual
        np.testing.assert_array_equal(line.get_ydata(), np.where(expected > 0, expected, np.nan))


def test_from_traces_without_names() -> None:
    builder = TraceBuilder()
    builder.keep(seconds=0.0, violation=1.0)
    display = ConvergenceDisplay([builder.end(seconds=1.0, violation=0.0)]).plot()
    assert display.ax_.get_legend() is None
    np.testing.assert_array_equal(display.lines_[0].get_ydata(), [1.0, np.nan])
    ax = axes()
    assert display.plot(ax).ax_ is ax


def test_refuses_what_it_cannot_draw(fits: dict[str, SVC]) -> None:
    with pytest.raises(ValueError, match=r"This SVC has no trace_; fit it with trace=True"):
        ConvergenceDisplay.from_estimator(SVC().fit(X, Y))
    with pytest.raises(ValueError, match=r"This SVC has no trace_"):
        ConvergenceDisplay.from_estimators({"a": fits["smo"], "b": SVC()})
    with pytest.raises(ValueError, match=r"x='time' is not allowed; choose one of 'seconds', 'iterations', 'kernel_r"):
        ConvergenceDisplay.from_estimator(fits["smo"], x="time")
    with pytest.raises(ValueError, match=r"y='loss' is not allowed; choose one of 'violation', 'suboptimality'"):
        ConvergenceDisplay.from_estimator(fits["smo"], y="loss")
    with pytest.raises(ValueError, match=r"names has 2 entries for 1 traces; give one for each"):
        ConvergenceDisplay([fits["smo"].trace_], ["a", "b"])
    ax = axes()
    for y in ("gap", "relative_gap", "primal"):
        with pytest.raises(ValueError, match=rf"y='{y}' needs the primal objective.*fit with trace='primal'"):
            ConvergenceDisplay.from_estimator(SVC(trace=True).fit(X, Y), y=y, ax=ax)
    assert len(ax.get_lines()) == 0


def test_says_what_is_missing(fits: dict[str, SVC], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"needs matplotlib, which is not installed; run pip install 'multimargin"):
        ConvergenceDisplay.from_estimator(fits["smo"])
