"""Machines that see all classes, and pairs without an exact bias, along C: one fold, each C from the one before."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from multimargin._typing import FloatArray
from multimargin.base.resources import n_threads
from multimargin.fitting.machine import KernelFit
from multimargin.fitting.pairs import ENDS, OneVsOneFit, PairState
from multimargin.fitting.warm_starts import scaled
from multimargin.model_selection.scoring import Decision, Point, Stop, decide_pairs, decide_scores
from multimargin.problems.coupling import coefficients
from multimargin.problems.problem import DualProblem
from multimargin.solvers.certificate import Certificate
from multimargin.solvers.certificate_table import stop_reasons
from multimargin.solvers.core import SolverState
from multimargin.solvers.monitor import FitMonitor
from multimargin.solvers.report import Progress


class _Path:
    """One fold at one gamma."""

    def __init__(self, work: Any, gamma: float, fold: int, stop: Stop | None) -> None:
        self.work, self.gamma, self.fold, self.stop = work, gamma, fold, stop
        self.spec, self.store = work.spec(gamma), work.store(gamma)
        self.data, self.test = work.data(fold), work.test_rows(fold)
        if work.kernels.whole:  # then the matrix takes the place of the data everywhere
            self.data = replace(self.data, gram=work.kernels.gram)
            self.spec = replace(self.spec, kernel=self.store.kernel.with_offset(0.0))
        self.share = (0.0, 1.0)  # of the work that is done, and of which each C is

    def along(self, Cs: FloatArray, place: tuple[int, int]) -> list[Point]:
        """Return the points, fewer than Cs if stopped; ``place`` is this fold's position and the number of folds."""
        points: list[Point] = []
        state = None
        for k, C in enumerate(Cs.tolist()):
            self.share = ((place[0] + k / len(Cs)) / place[1], 1.0 / (len(Cs) * place[1]))
            start = None if state is None else self.seed(state, float(C / Cs[k - 1]))
            began = time.perf_counter()
            state, certificate, error, decide = self.solve(C, start)
            solved = time.perf_counter()
            reasons = stop_reasons(certificate)
            if error is not None:
                raise error
            if reasons & {reason.value for reason in ENDS}:
                return points
            decision, n_support = decide()
            seconds = (solved - began, time.perf_counter() - solved)
            points.append(Point(decision, n_support, certificate.n_iter, *seconds, reasons == {"converged"}))
            if self._stopped_after(certificate, n_support):
                break
        return points

    def _stopped_after(self, certificate: Certificate, n_support: int) -> bool:
        """Check whether to stop, also after solves that were too short to check."""
        if self.stop is None:
            return False
        c, n = certificate, len(self.data.y)
        progress = Progress(c.n_iter, c.seconds, c.kkt_violation, c.dual, c.primal, n, n_support, 0, 0)
        return bool(self.stop(progress, sum(self.share)))

    def seed(self, state: Any, ratio: float) -> Any:
        """Return the start at the next C; overridden."""
        raise NotImplementedError

    def solve(
        self, C: float, start: Any
    ) -> tuple[Any, Certificate, BaseException | None, Callable[[], tuple[Decision, int]]]:
        """Return the state, its certificate, what ended it, and how it decides; overridden."""
        raise NotImplementedError

    def check(self, progress: Progress, _: Any) -> bool:
        """Check whether to stop; the progress within one C is unknown."""
        return self.stop is not None and bool(self.stop(progress, self.share[0]))

    def held_out(self, rows: Any, beta: FloatArray) -> FloatArray:
        """Return sum_s beta_sc k(x_rows[s], x_t) for the rows t held out, without the offset of a regularised bias."""
        found: FloatArray = self.store.scores_within(rows, beta.T, self.test, n_threads()).T
        return np.asarray(found - self.store.kernel.offset * beta.sum(axis=0))


class MachinePath(_Path):
    """An all-in-one machine."""

    def seed(self, state: SolverState, ratio: float) -> SolverState:
        """Return the variables times the factor between 1 and the ratio at which the dual is largest, where known."""
        if state.scores is None:
            return replace(state, scores=None)
        problem = self._problem(1.0)
        beta = coefficients(problem.machine, state.amounts, self.data.y, self.work.n_classes)
        linear = float((problem.targets * state.amounts).sum())
        quadratic = float((beta * state.scores).sum())
        seeded = scaled(state, float(np.clip(linear / quadratic, 1.0, ratio)) if quadratic > 0 else ratio)
        assert isinstance(seeded, SolverState)
        return seeded

    def _problem(self, C: float) -> DualProblem:
        r = self.spec
        return DualProblem(self.data.at(C), r.machine, r.kernel, r.loss, r.bias, given_store=self.store)

    def solve(
        self, C: float, start: SolverState | None
    ) -> tuple[SolverState, Certificate, BaseException | None, Callable[[], tuple[Decision, int]]]:
        """Train at one C."""
        fit = KernelFit(self.work.params, self.data.at(C), self.spec, self.store)
        certificate = fit.solve(start, FitMonitor(None if self.stop is None else self.check))

        def decide() -> tuple[Decision, int]:
            model = fit.model()
            return decide_scores(self.held_out(model.support, model.beta) + model.intercept), len(model.support)

        return fit.state(), certificate, fit.error, decide


class PairPath(_Path):
    """One-vs-one or the DAG without an exact bias, or with a solver chosen by name."""

    def seed(self, state: PairState, ratio: float) -> PairState:
        """Return the variables as they are."""
        return state

    def solve(
        self, C: float, start: PairState | None
    ) -> tuple[PairState, Certificate, BaseException | None, Callable[[], tuple[Decision, int]]]:
        """Train all pairs at one C."""
        fit = OneVsOneFit(self.work.params, self.data.at(C), self.spec, self.store)
        certificate = fit.solve(start, FitMonitor(None if self.stop is None else self.check))

        def decide() -> tuple[Decision, int]:
            model = fit.model()
            sums = [model.pair_beta(pair) for pair in range(len(fit.solutions))]
            D = np.column_stack([self.held_out(model.support[at], beta[:, None])[:, 0] for at, beta in sums])
            decision = decide_pairs(
                D + model.intercept, self.work.n_classes, self.work.params, self.spec.scheme, detail=True
            )
            return decision, len(model.support)

        return fit.state(), certificate, fit.error, decide
