"""A fit with probabilities: models of folds, and a calibrator on the scores of the examples that they have not seen.

The fold models have the whole fit's spec: gamma as a number, C per example, class weights of all data. So the
calibrator is that of scikit-learn's ``CalibratedClassifierCV(ensemble=False)`` over the same folds.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from multimargin._typing import DataMatrix, FloatArray, IntArray
from multimargin.fitting.driver import Fit, Fitted, make_monitor, run_fit
from multimargin.fitting.machine import KernelFit
from multimargin.fitting.pairs import kernel_fit
from multimargin.fitting.parameters import resolve_calibration
from multimargin.fitting.progress import FitTask, progress_line
from multimargin.fitting.spec import FitSpec
from multimargin.models.calibration import COUPLING, Calibrator, PairCalibrator, fit_calibrator, folds_for_calibration
from multimargin.models.kernel_model import KernelModel
from multimargin.models.pair_model import PairModel
from multimargin.problems.training_set import TrainingSet
from multimargin.solvers.certificate import Certificate
from multimargin.solvers.certificate_table import stop_reasons, worst_of
from multimargin.solvers.core import SolverState
from multimargin.solvers.monitor import FitMonitor
from multimargin.solvers.report import Progress, StopReason
from multimargin.solvers.separable import is_one_vs_all

N_FOLDS = 5
# Rows that are scored to estimate how long all of them take; the estimate is kept back from max_time.
SAMPLE = 64
LARGEST_SHARE_KEPT_BACK = 0.25
# What ends everything: no fold begins after it.
ENDS = (StopReason.MAX_TIME.value, StopReason.INTERRUPTED.value, StopReason.CALLBACK.value)

Model = KernelModel | PairModel
Attributes = dict[str, Any]
Folds = list[tuple[IntArray, IntArray]]


def fit_and_calibrate(fit: Fit, params: dict[str, Any], start: Any, task: FitTask) -> Fitted:
    """Run the fit, then calibrate it as the parameters ask; ``max_time`` is for both together.

    A calibration that is stopped leaves the fit as it is, without a calibrator.
    """
    data, spec, kind = fit.data, fit.spec, resolve_calibration(params)
    assert kind is not None
    began = time.perf_counter()
    # Before the long work, as it refuses classes that are too small.
    rows = data.X[data.rows] if spec.kernel.name != "precomputed" and data.is_table else None
    as_theirs = params["calibration"] is None  # probability=True is scikit-learn's, which takes any class
    folds = folds_for_calibration(data.y, data.weight, N_FOLDS, X=rows, classes=data.classes, allow_single=as_theirs)
    whole = run_fit(fit, params, start, task)
    ended = _what_ended(whole.certificate)
    if ended:
        return replace(whole, missing=ended)
    calibration = _Calibration(params, data, spec, whole, began)
    try:
        with progress_line(int(params["verbose"]), f"{spec.name} calibration") as show:
            monitor = make_monitor(params, show, task)
            scores = calibration.held_out_scores(folds, monitor, of_pairs=kind == COUPLING)
        if scores is None:
            return replace(whole, missing=calibration.ended)
        # As class weights do in the machine, they make a class count for more here: predict heeds them, too.
        weight = data.weight * data.class_weight[data.y]
        calibrator = fit_calibrator(kind, scores, data.y, weight, data.n_classes)
    except KeyboardInterrupt as interrupt:
        return replace(whole, error=interrupt, missing=StopReason.INTERRUPTED.value)
    attributes = whole.attributes | {"_calibrator": calibrator}
    return replace(whole, attributes=attributes, folds=worst_of(calibration.certificates))


def probabilities(calibrator: Calibrator, model: Model, points: DataMatrix) -> FloatArray:
    """Return the probabilities of all classes, shape (n_points, n_classes)."""
    return calibrator.probabilities(_scores(model, points, of_pairs=isinstance(calibrator, PairCalibrator)))


def _scores(model: Model, points: DataMatrix, *, of_pairs: bool) -> FloatArray:
    """Return what a calibrator maps: the scores of all pairs, of all classes, or the one of the second of two."""
    if of_pairs and isinstance(model, PairModel):
        return model.pair_scores(points)
    return model.decision(points) if len(model.n_support) == 2 else model.scores(points)


def _what_ended(certificate: Certificate) -> str:
    """Return the reason for which nothing more is to be done, or nothing."""
    reasons = stop_reasons(certificate)
    return next((reason for reason in reversed(ENDS) if reason in reasons), "")


@dataclass(eq=False)
class _Calibration:
    """The folds of one fit, and the account of what they spent."""

    params: dict[str, Any]
    data: TrainingSet
    spec: FitSpec
    whole: Fitted
    began: float
    certificates: list[Certificate] = field(default_factory=list)
    ended: str = ""  # why not all folds were trained

    def __post_init__(self) -> None:
        if self.data.gram is not None:  # a function of the caller has been asked for all values already
            kernel = replace(self.spec.kernel, name="precomputed", function=None)
            self.spec = replace(self.spec, kernel=kernel)

    def held_out_scores(self, folds: Folds, monitor: FitMonitor[Attributes], *, of_pairs: bool) -> FloatArray | None:
        """Return the score of each example by the model that has not seen it, or None when that was stopped."""
        scores: FloatArray | None = None
        kept_back = self._seconds_to_score(of_pairs=of_pairs)
        for number, (train, test) in enumerate(folds):
            left = self._seconds_left() - kept_back
            if left <= 0 and number == 0:
                self.ended = StopReason.MAX_TIME.value
                return None
            share = self.params | {"max_time": max(1e-9, left / (len(folds) - number)), "trace": False}
            model = self._fit_fold(share, train, self._fold_monitor(monitor))
            if self.ended:
                return None
            part = _scores(model, self.data.kernel_data[self.data.rows[test]], of_pairs=of_pairs)
            if scores is None:
                scores = np.empty((len(self.data.y), *part.shape[1:]))
            scores[test] = part
        return scores

    def _fit_fold(self, params: dict[str, Any], train: IntArray, monitor: FitMonitor[Any]) -> Model:
        """Train on some of the examples, from the whole solution's dual variables of these where that pays.

        Measured as CPU time of a fit with calibration over one without, seeded / not: ww 3.0 / 4.4 (satimage, C=1000),
        4.0 / 4.8 (C=10), 4.5 / 5.0 (letter). For binary problems a seed saves one step in seven and costs a pass over
        the kernel: ovo 8.4 / 6.5 (satimage), 10.7 / 9.4 (letter), ova 15.8 / 9.6 (satimage, C=1000).
        """
        fit: Fit = kernel_fit(params, self.data.subset(train), self.spec, self.whole.store)
        seed = None
        if isinstance(fit, KernelFit) and not is_one_vs_all(fit.problem):
            whole: SolverState = self.whole.state
            seed = replace(whole, amounts=whole.amounts[train], scores=None)
        certificate = fit.solve(seed, monitor)
        if fit.error is not None:
            raise fit.error
        self.certificates.append(certificate)
        ended = _what_ended(certificate)
        self.ended = "" if ended == StopReason.MAX_TIME.value else ended  # a model that lacked time still scores
        model: Model = fit.model()
        return model

    def _seconds_left(self) -> float:
        limit = self.params["max_time"]
        return np.inf if limit is None else float(limit) - (time.perf_counter() - self.began)

    def _seconds_to_score(self, *, of_pairs: bool) -> float:
        """What the held-out scores will take, by the whole model's time for a few rows; 0 without a time limit."""
        if not np.isfinite(self._seconds_left()):
            return 0.0
        n = len(self.data.y)
        few = self.data.kernel_data[self.data.rows[:SAMPLE]]
        model = self.whole.attributes["_model"]
        if self.data.gram is not None:
            model = replace(model, kernel=self.spec.kernel)
        seconds = []
        for _ in range(2):  # the first prepares the model
            before = time.perf_counter()
            _scores(model, few, of_pairs=of_pairs)
            seconds.append(time.perf_counter() - before)
        return min(min(seconds) * n / min(n, SAMPLE), LARGEST_SHARE_KEPT_BACK * float(self.params["max_time"]))

    def _fold_monitor(self, monitor: FitMonitor[Attributes]) -> FitMonitor[Any]:
        """The caller's monitor, which sees the folds as one long solve; the model it sees is the whole one."""
        done = [self.whole.certificate, *self.certificates]
        steps, rows, hits = (sum(getattr(c, name) for c in done) for name in ("n_iter", "kernel_rows", "cache_hits"))

        def of_all(progress: Progress) -> Progress:
            return replace(
                progress,
                iteration=steps + progress.iteration,
                seconds=time.perf_counter() - self.began,
                kernel_rows=rows + progress.kernel_rows,
                cache_hits=hits + progress.cache_hits,
            )

        return monitor.map(lambda _: self.whole.attributes, of_all)
