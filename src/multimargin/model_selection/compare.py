"""compare_machines: select each machine's C and gamma on the same folds, and recommend one."""

from __future__ import annotations

import math
import sys
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from rich.console import Console
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import check_scoring
from sklearn.model_selection import StratifiedKFold, check_cv

from multimargin.base.interrupts import allowed, deferred, poll
from multimargin.fitting import parameters as check
from multimargin.model_selection.comparison import MachineComparison, MachineRow, recommend
from multimargin.model_selection.estimator import SVCCV
from multimargin.model_selection.grid import read_grid
from multimargin.problems.machines import Machine
from multimargin.problems.schemes import find_scheme

DEFAULT_MACHINES = ("ovo", "ova", "ww", "cs", "llw")


def compare_machines(  # noqa: PLR0913 - the arguments of a selection
    X: ArrayLike,
    y: ArrayLike,
    *,
    machines: Sequence[str | Machine] = DEFAULT_MACHINES,
    Cs: ArrayLike | None = None,
    gammas: ArrayLike | None = None,
    cv: Any = 5,
    scoring: Any = None,
    sample_weight: ArrayLike | None = None,
    n_jobs: int | None = None,
    max_time: float | None = None,
    verbose: int = 0,
    random_state: Any = None,
    X_test: ArrayLike | None = None,
    y_test: ArrayLike | None = None,
) -> MachineComparison:
    """Select C and gamma of each machine by cross-validation on the same folds, and compare the results.

    Parameters
    ----------
    X, y : array-like of shape (n_samples, n_features) and (n_samples,)
    machines : sequence of str or Machine, default=("ovo", "ova", "ww", "cs", "llw")
        As ``multi_class`` of SVC.
    Cs, gammas, cv, scoring, sample_weight, n_jobs, verbose
        As in SVCCV; one score only. ``cv`` is split once, for all machines.
    max_time : float or None, default=None
        Seconds for all together; each machine gets its share of what is left.
    random_state : int, RandomState or None, default=None
        If given, rows are shuffled before they are split into folds.
    X_test, y_test : array-like, default=None
        Rows that take no part in the choice. The score of a chosen cell is the best of many and somewhat too good;
        the test score is not.

    Returns
    -------
    comparison : MachineComparison
        On Ctrl-C KeyboardInterrupt is raised; its attribute ``comparison`` has the finished machines.
    """
    names = _check_machines(machines)
    _check_arguments(scoring, max_time, X_test, y_test)
    folds = _split(X, y, cv, random_state)
    settings = {"Cs": Cs, "gammas": gammas, "scoring": scoring, "n_jobs": n_jobs, "verbose": verbose}
    run = _Comparing(X, y, sample_weight, folds, settings, (X_test, y_test))
    return run.all(names, max_time)


def _check_machines(machines: Any) -> dict[str, str | Machine]:
    """Return the machines by their displayed names."""
    if isinstance(machines, str | Machine):
        raise TypeError(f"machines={machines!r} is one machine; give a list of them, such as ['ovo', 'ww'].")
    names: dict[str, str | Machine] = {}
    for each in machines:
        find_scheme(each)  # refuses what is none
        name = each.name if isinstance(each, Machine) else each
        if name in names:
            raise ValueError(f"machines={machines!r} has {name!r} twice; name each machine once.")
        names[name] = each
    if not names:
        raise ValueError(f"machines={machines!r} is empty; name at least one machine, such as 'ovo'.")
    return names


def _check_arguments(scoring: Any, max_time: Any, X_test: Any, y_test: Any) -> None:
    if scoring is not None and not isinstance(scoring, str) and not callable(scoring):
        raise ValueError(
            f"scoring={scoring!r} is not allowed; machines are compared by one score: give its name, a scorer or None."
        )
    if max_time is not None:
        check.check_number("max_time", max_time, low=0.0, strict=True)
    if (X_test is None) != (y_test is None):
        missing = "X_test" if X_test is None else "y_test"
        raise ValueError(f"{missing}=None, but the other is given; give both X_test and y_test, or neither.")


def _split(X: Any, y: Any, cv: Any, random_state: Any) -> list[tuple[Any, Any]]:
    """Return the folds as indices, so that every machine gets the same ones."""
    if random_state is not None and isinstance(cv, int | np.integer) and not isinstance(cv, bool):
        cv = StratifiedKFold(int(cv), shuffle=True, random_state=check.check_seed("random_state", random_state))
    folds = [(np.asarray(train), np.asarray(test)) for train, test in check_cv(cv, y, classifier=True).split(X, y)]
    if not folds:
        raise ValueError(f"cv={cv!r} has no folds; give a number, a splitter, or a list of (train, test) indices.")
    return folds


@dataclass(eq=False)
class _Comparing:
    """The selections of all machines."""

    X: Any
    y: Any
    sample_weight: Any
    folds: list[tuple[Any, Any]]
    settings: dict[str, Any]
    test: tuple[Any, Any]

    @deferred()
    def all(self, names: dict[str, str | Machine], max_time: float | None) -> MachineComparison:
        """Select for one machine after the other."""
        began = time.perf_counter()
        rows: list[MachineRow] = []
        searches: dict[str, Any] = {}
        try:
            for name, machine in names.items():
                left = None if max_time is None else max_time - (time.perf_counter() - began)
                share = None if left is None else max(left, 1e-3) / (len(names) - len(rows))
                row, searches[name] = self.one(name, machine, share)
                rows.append(row)
                self._tell(row)
            poll()
        except KeyboardInterrupt as interrupt:
            if rows:
                interrupt.comparison = self._table(rows, searches)  # type: ignore[attr-defined]
            raise
        return self._table(rows, searches)

    def one(self, name: str, machine: str | Machine, max_time: float | None) -> tuple[MachineRow, Any]:
        """Run the search and measure the chosen model."""
        start = time.perf_counter()
        search = self._select(machine, max_time)
        seconds = time.perf_counter() - start
        if not hasattr(search, "best_params_"):  # the time was over before any cell had all folds
            nothing = math.nan, math.nan, None, seconds, None, None, None, math.nan, math.nan, False
            return MachineRow(name, *nothing, (math.nan,) * len(self.folds), finished=False), search
        grid = read_grid(search)
        model = getattr(search, "best_estimator_", None)
        found: dict[str, Any] = {"fit_seconds": None, "predict_seconds": None, "n_support": None, "test_score": None}
        if model is not None:
            start = time.perf_counter()
            with allowed():
                model.predict(self.X)
            found["predict_seconds"] = time.perf_counter() - start
            found["fit_seconds"] = float(search.refit_time_)
            found["n_support"] = len(model.support_)
            if self.test[0] is not None:
                scorer = check_scoring(model, scoring=self.settings["scoring"])
                found["test_score"] = float(scorer(model, *self.test))
        row = MachineRow(
            machine=name,
            mean_score=float(grid.mean[grid.best]),
            std_score=float(grid.spread[grid.best]),
            seconds=seconds,
            C=grid.chosen_cost,
            gamma=grid.chosen_gamma,
            converged=model is not None and model.fit_status_ == 0,
            fold_scores=tuple(grid.scores[grid.best].tolist()),
            finished=not np.any(search.cv_results_["stopped"]),
            **found,
        )
        return row, search

    def _select(self, machine: str | Machine, max_time: float | None) -> SVCCV:
        search = SVCCV(multi_class=machine, cv=self.folds, max_time=max_time, **self.settings)
        with warnings.catch_warnings():  # the table marks a search that was cut
            warnings.filterwarnings("ignore", "The search ended early", ConvergenceWarning)
            return search.fit(self.X, self.y, sample_weight=self.sample_weight)

    def _table(self, rows: list[MachineRow], searches: dict[str, Any]) -> MachineComparison:
        scoring = self.settings["scoring"]
        metric = "accuracy" if scoring is None else scoring if isinstance(scoring, str) else "score"
        advice = recommend(rows, metric)
        kept = {row.machine: searches[row.machine] for row in rows}
        return MachineComparison(
            tuple(rows), metric, len(self.folds), advice.best, advice.machine, advice.text, searches=kept
        )

    def _tell(self, row: MachineRow) -> None:
        if self.settings["verbose"]:
            text = f"{row.machine}  {row.mean_score:.4f}  C={row.C:.6g}  gamma={row.gamma:.6g}  {row.seconds:.1f} s"
            Console(file=sys.stderr).print(text, highlight=False, markup=False, soft_wrap=True)
