"""Searches that try fewer cells than the grid: nested grids, two lines, and cells that are abandoned early.

Every strategy requests units (gamma, fold, Cs) and receives their scores; it is independent of how they are trained.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.model_selection import StratifiedShuffleSplit

from multimargin._typing import FloatArray, IntArray
from multimargin.base.resources import cache_bytes
from multimargin.fitting import parameters as check
from multimargin.fitting.warm_starts import check_costs
from multimargin.model_selection.line_search import best_along, best_linear_C, best_of_all, folds_of, second_line
from multimargin.model_selection.search_table import Cell, Cells, Evaluate, SearchTable, share_of
from multimargin.problems.binary_parts import is_separable
from multimargin.problems.schemes import find_scheme

# Two lines: below this share of support vectors, and from so many rows on, a kernel matrix costs more than it saves.
FEW_SUPPORT = 0.2
MANY_ROWS = 4_000


@dataclass(frozen=True, eq=False)
class SearchOptions:
    """Options of a search strategy.

    Parameters
    ----------
    metric : str or None
        The score that decides; None for the first of the problem's.
    stages : int
        Nested grids: how many finer grids follow the first.
    factor : int
        Nested grids: by how much a step becomes smaller. Halving: one cell of ``factor`` remains.
    resource : {"folds", "rows"}
        Halving: what a cell gets more of; with a single fold it is always rows.
    first_share : float
        Halving by rows: the share of the training rows that all cells begin with.
    best_possible : float or None
        The largest score there can be, for the bound that abandons cells; None when there is none. 1 when the score is
        accuracy.
    linear_Cs : array-like or None
        Two lines: which C are tried for the linear machine, all of them; None for 2^-10, ..., 2^10 (KCSL04
        section 6).
    """

    metric: str | None = None
    stages: int = 2
    factor: int = 2
    resource: str = "folds"
    first_share: float = 0.125
    best_possible: float | None = None
    linear_Cs: Any = None  # noqa: N815 - Cs is the name that scikit-learn's users know


def hold_out(y: IntArray, share: float = 0.3, random_state: Any = 0) -> tuple[tuple[IntArray, IntArray], ...]:
    """Return one split by classes, 70 % to train and 30 % to validate (HL02 section V)."""
    splitter = StratifiedShuffleSplit(n_splits=1, test_size=share, random_state=random_state)
    return tuple((np.sort(train), np.sort(test)) for train, test in splitter.split(np.zeros((len(y), 1)), y))


def run_search(  # noqa: PLR0913 - what a search needs
    search: str,
    problem: Any,
    Cs: ArrayLike,
    gammas: ArrayLike,
    evaluate: Evaluate,
    options: SearchOptions | None = None,
    *,
    cells: Cells | None = None,
) -> SearchTable:
    """Search for the best (C, gamma).

    Parameters
    ----------
    search : {"grid", "nested", "two-line", "halving", "racing"}
        "grid": all cells. "nested": the grid as given, then finer ones around the best (DGI11 section 6.1).
        "two-line": the best linear C, then log sigma^2 = log C - log C~ (KCSL04 Algorithm 1). "halving": all cells on
        the first fold, the better half on the next, and so on. "racing": cells are abandoned only when they cannot beat
        the best any more, however well they do on the folds that are left; it finds the grid's best cell.
    problem : SelectionProblem
    Cs, gammas : array-like of float
    evaluate : callable
        ``evaluate(problem, units)`` returns the outcomes of units, in any order.
    options : SearchOptions, default=None
    cells : Cells, default=None
        Where to keep outcomes: after an interrupt it holds those that were finished.

    Returns
    -------
    table : SearchTable
    """
    check.check_choice("search", search, tuple(STRATEGIES))
    options = _checked(options or SearchOptions())
    costs, widths = check_costs(Cs), _checked_gammas(gammas)
    cells = Cells(len(problem.folds)) if cells is None else cells
    STRATEGIES[search](_Run(problem, evaluate, options, cells), costs, widths)
    return cells.table()


def _checked_gammas(gammas: ArrayLike) -> FloatArray:
    values = np.unique(np.asarray(gammas, dtype=np.float64))
    if not values.size or not (np.isfinite(values) & (values > 0)).all():
        raise ValueError(f"gammas={gammas!r} is not allowed; gammas must be a list of finite numbers > 0.")
    return values


def _checked(options: SearchOptions) -> SearchOptions:
    check.check_integer("stages", options.stages, low=0)
    check.check_integer("factor", options.factor, low=2)
    check.check_choice("resource", options.resource, ("folds", "rows"))
    check.check_number("first_share", options.first_share, low=0.0, strict=True)
    if options.best_possible is not None:
        check.check_number("best_possible", options.best_possible, low=-np.inf)
    return options


@dataclass(frozen=True, eq=False)
class _Run:
    """A search under way."""

    problem: Any
    evaluate: Evaluate
    options: SearchOptions
    cells: Cells

    @property
    def n_folds(self) -> int:
        return len(self.problem.folds)

    @property
    def metric(self) -> str:
        return self.options.metric or str(next(iter(self.problem.scorers)))

    @property
    def best_possible(self) -> float:
        """The bound for accuracy, or the one given by the caller."""
        if self.options.best_possible is not None:
            return float(self.options.best_possible)
        return 1.0 if self.problem.scorers[self.metric] is None else np.inf

    def fill(self, cells: Iterable[Cell], folds: Iterable[int]) -> None:
        """Train the missing units of these cells; if the search ends, incomplete cells are marked as stopped."""
        cells, folds = list(cells), list(folds)
        units = self.cells.missing(cells, folds)
        if not units:
            return
        try:
            for outcome in self.evaluate(self.problem, units):
                self.cells.add(outcome)
        except BaseException as end:
            for outcome in getattr(end, "units", ()):  # finished, but not reported before
                self.cells.add(outcome)
            left = self.cells.missing(cells, folds)
            self.cells.stopped |= {(C, unit.gamma) for unit in left for C in unit.Cs.tolist()}
            raise

    def fill_all(self, cells: Iterable[Cell]) -> None:
        self.fill(cells, range(self.n_folds))

    def means(self, cells: Sequence[Cell], n_folds: int) -> list[float]:
        """Return the mean scores over the first folds."""
        self.fill(cells, range(n_folds))
        scores = self.cells.by_fold(self.metric)
        return [float(scores[cell][:n_folds].mean()) for cell in cells]

    def best(self) -> Cell:
        return self.cells.table().best(self.metric)


def _grid(run: _Run, Cs: FloatArray, gammas: FloatArray) -> None:
    run.fill_all(_product(Cs, gammas))


def _product(Cs: FloatArray, gammas: FloatArray) -> list[Cell]:
    return [(C, gamma) for C in Cs.tolist() for gamma in gammas.tolist()]


def _nested(run: _Run, Cs: FloatArray, gammas: FloatArray) -> None:
    run.fill_all(_product(Cs, gammas))
    centres = []
    steps_C, steps_gamma = _Steps.of(Cs), _Steps.of(gammas)
    for stage in range(run.options.stages):
        C, gamma = run.best()
        centres.append((C, gamma))
        share = float(run.options.factor) ** -stage
        finer = [
            steps.around(value, share, run.options.factor) for steps, value in ((steps_C, C), (steps_gamma, gamma))
        ]
        run.fill_all(_product(*finer))
    run.cells.details["centres"] = centres


@dataclass(frozen=True, eq=False)
class _Steps:
    """The distances of a grid's neighbours on a logarithmic scale."""

    places: FloatArray

    @classmethod
    def of(cls, values: FloatArray) -> _Steps:
        return cls(np.log2(values))  # powers of two stay exact

    def around(self, value: float, share: float, factor: int) -> FloatArray:
        """Return the values within ``share`` of a step on either side, ``factor`` times as dense.

        Beyond an end of the grid the step is that of the nearest neighbours; a single value is not to be varied.
        """
        if len(self.places) == 1:
            return np.array([value])
        centre = np.log2(value)
        gaps = np.diff(self.places)
        below = gaps[np.clip(np.searchsorted(self.places, centre, side="left") - 1, 0, len(gaps) - 1)]
        above = gaps[np.clip(np.searchsorted(self.places, centre, side="right") - 1, 0, len(gaps) - 1)]
        parts = share * np.arange(1, factor) / factor
        return np.asarray(np.exp2(np.concatenate([centre - below * parts[::-1], [centre], centre + above * parts])))


def _two_line(run: _Run, Cs: FloatArray, gammas: FloatArray) -> None:
    kernel = run.problem.params.get("kernel", "rbf")
    if not isinstance(kernel, str) or kernel != "rbf":
        raise ValueError(
            f"search='two-line' with kernel={kernel!r} does not exist: the second line holds for the rbf kernel; use "
            "kernel='rbf' or search='grid'."
        )
    linear_C, support_share = _best_linear_C(run)
    run.cells.details["linear_C"] = linear_C
    if support_share < FEW_SUPPORT and len(run.problem.y) >= MANY_ROWS:
        run = replace(run, problem=without_matrix(run.problem))
    line = second_line(linear_C, Cs, gammas)
    if len(run.problem.classes) == 2:  # of single pairs most cells are nearly perfect: few folds do not separate them
        run.fill_all(line)
        return
    best_along(line, run.means, folds_of(run.problem))
    scores = run.cells.by_fold(run.metric)
    run.cells.stopped |= {cell for cell in line if cell not in scores or np.isnan(scores[cell]).any()}


def _best_linear_C(run: _Run) -> tuple[float, float]:  # noqa: N802 - C is the name of the papers
    """Step 1 of KCSL04 Algorithm 1; also the share of support vectors there, nan where that is not known.

    Binary machines whose kernel matrix fits the budget go along C as those with other kernels do, which is faster than
    by weights: they share the matrix, and free variables are few. For all others see ``best_linear_C``.
    """
    problem, Cs = run.problem, run.options.linear_Cs
    Cs = np.exp2(np.arange(-10.0, 11.0)) if Cs is None else check_costs(Cs)
    scheme = find_scheme(problem.params.get("multi_class", "ovo"))
    needed = 16.0 * len(problem.y) ** 2
    fits = needed <= cache_bytes(problem.params.get("cache_size", "auto"), needed)
    if not fits or not is_separable(scheme):
        return best_linear_C(problem, run.metric, Cs), np.nan
    linear = replace(problem, params=problem.params | {"kernel": "linear"})
    on_line = _Run(linear, run.evaluate, run.options, Cells(run.n_folds))
    line = [(C, 1.0) for C in Cs.tolist()]
    best, _ = best_of_all(line, on_line.means(line, run.n_folds))
    shares = [
        each.n_support[each.Cs == best] / len(problem.folds[each.fold][0])
        for each in on_line.cells.outcomes
        if best in each.Cs
    ]
    return float(best), float(np.concatenate(shares).mean())


def without_matrix(problem: Any) -> Any:
    """Return the problem with memory for half of a kernel matrix, so that rows are computed on demand.

    One cell for each gamma needs few of them where support vectors are few: on shuttle (8,000 rows) the matrices
    took four fifths of the second line.
    """
    own = problem.params.get("cache_size", "auto")
    half = 4e-6 * len(problem.y) ** 2
    return replace(problem, params=problem.params | {"cache_size": half if own == "auto" else min(half, own)})


def _halving(run: _Run, Cs: FloatArray, gammas: FloatArray) -> None:
    alive = _product(Cs, gammas)
    if run.n_folds == 1 or run.options.resource == "rows":
        _halve_by_rows(run, alive)
    else:
        _by_folds(run, alive, lambda scores: _better_part(scores, run.options.factor))


def _racing(run: _Run, Cs: FloatArray, gammas: FloatArray) -> None:
    _by_folds(run, _product(Cs, gammas), list)


def _by_folds(run: _Run, alive: list[Cell], keep: Callable[[dict[Cell, float]], list[Cell]]) -> None:
    """Evaluate the cells fold by fold; after each, keep those that ``keep`` chooses and that can still win."""
    for fold in range(run.n_folds):
        run.fill(alive, [fold])
        if fold == run.n_folds - 1:
            return
        scores = run.cells.by_fold(run.metric)
        so_far = {cell: float(scores[cell][: fold + 1].mean()) for cell in alive}
        # The best so far gets all its folds at once: a bound needs a mean that is known.
        run.fill_all([max(so_far, key=lambda cell: np.nan_to_num(so_far[cell], nan=-np.inf))])
        going_on = _not_beaten(keep(so_far), run.cells.by_fold(run.metric), run.best_possible)
        run.cells.stopped |= set(alive) - set(going_on)
        alive = going_on


def _not_beaten(cells: list[Cell], scores: dict[Cell, FloatArray], best_possible: float) -> list[Cell]:
    """Return the cells that reach the best known mean if every fold they lack is perfect."""
    best = max((float(row.mean()) for row in scores.values() if np.isfinite(row).all()), default=-np.inf)
    rounding = 1e-12 * max(1.0, abs(best)) if np.isfinite(best) else 0.0
    highest = {cell: float(np.where(np.isnan(scores[cell]), best_possible, scores[cell]).mean()) for cell in cells}
    return [cell for cell in cells if highest[cell] >= best - rounding]


def _better_part(scores: dict[Cell, float], factor: int) -> list[Cell]:
    """Return the best of every ``factor`` cells; equal ones are kept or dropped together."""
    ordered = sorted((score for score in scores.values() if np.isfinite(score)), reverse=True)
    if not ordered:
        return list(scores)
    least = ordered[-(-len(ordered) // factor) - 1]
    return [cell for cell, score in scores.items() if score >= least]


def _halve_by_rows(run: _Run, alive: list[Cell]) -> None:
    """Train the cells on more and more of the training rows; only the last round, on all of them, counts."""
    share = run.options.first_share
    while share < 1:
        folds = tuple((share_of(train, run.problem.y, share), test) for train, test in run.problem.folds)
        trial = Cells(run.n_folds)
        part = _Run(replace(run.problem, folds=folds), run.evaluate, run.options, trial)
        part.fill_all(alive)
        scores = {cell: float(row.mean()) for cell, row in trial.by_fold(run.metric).items()}
        going_on = _better_part(scores, run.options.factor)
        run.cells.stopped |= set(alive) - set(going_on)
        alive, share = going_on, share * run.options.factor
    run.fill_all(alive)


STRATEGIES: dict[str, Callable[[_Run, FloatArray, FloatArray], None]] = {
    "grid": _grid,
    "nested": _nested,
    "two-line": _two_line,
    "halving": _halving,
    "racing": _racing,
}
