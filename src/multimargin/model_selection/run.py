"""SVCCV's searches beyond the grid in one process: other strategies, other processes, results on disk, single pairs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import Any

from multimargin._typing import FloatArray
from multimargin.estimators.svc import SVC
from multimargin.model_selection import distribute
from multimargin.model_selection.evaluation import SelectionProblem, UnitResult, evaluate_gamma, evaluate_unit
from multimargin.model_selection.pair_selection import PairSelection, PerPairSVC, select_pairs
from multimargin.model_selection.progress import SearchMonitor, search_line
from multimargin.model_selection.results import SelectionResults
from multimargin.model_selection.resume import ResumeDirectory
from multimargin.model_selection.search_table import Cells, Evaluate, Unit, UnitScores
from multimargin.model_selection.strategies import SearchOptions, run_search

Found = tuple[SelectionResults, BaseException | None, str]


class _EndedError(Exception):
    """The time is over, or the callback requested a stop."""


@dataclass(frozen=True, eq=False)
class PairResults(SelectionResults):
    """The means over the pairs of classes, and the choice for each pair."""

    pairs: PairSelection

    def make_model(self, template: SVC) -> PerPairSVC:
        """Return the machine with each pair's own cell."""
        return self.pairs.estimator(template)

    def own_attributes(self) -> dict[str, Any]:
        """Return the choice for each pair."""
        return {"pair_selection_": self.pairs}


def run(search: Any, problem: SelectionProblem, Cs: FloatArray, gammas: FloatArray) -> Found:
    """Return the results of a search, the Ctrl-C that ended it, and why it did not go to its end, if it did not.

    With ``per_pair`` the results are ``PairResults``; a search that is ended has none for pairs.
    """
    problem.workplace.check_folds()  # before the long work
    directory = None if search.resume is None else ResumeDirectory.open(search.resume, problem, UnitResult)
    options = SearchOptions(metric=search.refit if isinstance(search.refit, str) else None)
    cells = Cells(len(problem.folds))
    with search_line(int(search.verbose), f"{search.multi_class} {search.search}") as show:
        monitor = SearchMonitor(1, search.max_time, search.on_progress, show)
        elsewhere = search.n_jobs is not None or distribute.leaves_this_machine()
        evaluate = _monitored(
            monitor, _evaluation(search, monitor, directory, elsewhere=elsewhere), elsewhere=elsewhere
        )
        error: BaseException | None = None
        try:
            if search.per_pair:
                pairs = select_pairs(search.search, problem, Cs, gammas, evaluate, options)
                table = pairs.mean_table(len(problem.folds))
                numbers = {entry.name: getattr(table, entry.name) for entry in fields(SelectionResults)}
                return PairResults(**numbers, pairs=pairs), None, ""
            run_search(search.search, problem, Cs, gammas, evaluate, options, cells=cells)
        except KeyboardInterrupt as interrupt:
            error, monitor.reason = interrupt, "interrupted"
        except _EndedError:
            pass
    if search.search == "grid" or not cells.outcomes:
        units: Any = cells.outcomes
        grid = SelectionResults.of_grid(Cs, gammas, len(problem.folds), problem.scorers, units)
        return grid, error, monitor.reason
    if monitor.reason:
        cells.give_up_incomplete()
    return SelectionResults.of_table(cells.table()), error, monitor.reason


def _evaluation(search: Any, monitor: SearchMonitor, directory: ResumeDirectory | None, *, elsewhere: bool) -> Evaluate:
    if elsewhere:
        return distribute.through_joblib(evaluate_unit, n_jobs=search.n_jobs, directory=directory)
    monitored = bool(search.verbose) or search.max_time is not None or search.on_progress is not None
    return distribute.local(partial(evaluate_gamma, stop=monitor.stop) if monitored else evaluate_gamma, directory)


def _monitored(monitor: SearchMonitor, evaluate: Evaluate, *, elsewhere: bool) -> Evaluate:
    """Count finished units, and stop on request; units in other processes report only when they finish."""

    def evaluate_and_count(problem: Any, units: Sequence[Unit]) -> Iterator[UnitScores]:
        monitor.n_parts = monitor.n_done + len(units) + 1  # another round may follow: the end is never certain
        for outcome in evaluate(problem, units):
            yield outcome
            if elsewhere:
                monitor.report(outcome)
            if not monitor.part_done():
                raise _EndedError

    return evaluate_and_count
