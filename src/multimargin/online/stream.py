"""State of online learning: known classes, examples seen, and the learner once there are two classes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from multimargin._typing import DataMatrix, FloatArray, IntArray
from multimargin.base.resources import n_threads
from multimargin.fitting.parameters import check_seed
from multimargin.fitting.spec import FitSpec
from multimargin.models.pair_model import PairModel
from multimargin.online.learner import Learner, OnlineOptions
from multimargin.online.monitoring import StreamHistory
from multimargin.online.parameters import class_weights, make_options, make_spec
from multimargin.problems.machines import MACHINES

# Rows that are remembered while there is one class only.
WAITING = 5


@dataclass(frozen=True)
class _Block:
    """Rows being learned, and the class that the core predicts for each before learning it, -1 until then."""

    chosen: IntArray  # rows with a weight: those that the core gets
    codes: IntArray
    ids: IntArray
    known: bool
    predicted: IntArray

    def tested(self) -> tuple[int, int, np.ndarray | None]:
        """Return rows done, the largest number among them (-1: none) and which were predicted rightly."""
        done = self.chosen[: np.count_nonzero(self.predicted >= 0)]
        whole = len(done) == len(self.chosen)
        ids = self.ids if whole else self.ids[done]
        codes = self.codes if len(done) == len(self.codes) else self.codes[done]
        correct = None if self.known else np.asarray(self.predicted[: len(done)] == codes)
        return len(ids), int(ids.max(initial=-1)), correct

    def unfinished(self) -> int | None:
        """Return the position of the new row during which an error occurred."""
        n_done = np.count_nonzero(self.predicted >= 0)
        return None if self.known or n_done == len(self.chosen) else int(self.ids[self.chosen[n_done]])


@dataclass(eq=False)
class Stream:
    """Everything that an OnlineSVC has learned; a pickled copy continues with the same bits."""

    params: dict[str, Any]
    spec: FitSpec
    options: OnlineOptions
    n_features: int
    seed: int
    classes: np.ndarray = field(default_factory=lambda: np.zeros(0))
    fixed: bool = False  # whether the classes were given
    n_seen: int = 0
    history: StreamHistory = field(default_factory=StreamHistory)
    learner: Learner | None = None
    shown: dict[str, Any] | None = None  # attributes, until further examples are learned
    _waiting: list[tuple[FloatArray, float, int]] = field(default_factory=list)  # rows, C and numbers of one class
    _open: _Block | None = None  # learned, at least in part, and not counted yet

    @classmethod
    def begin(cls, params: dict[str, Any], rows: DataMatrix, weight: FloatArray) -> Stream:
        """Return an empty state for rows like these; checks the parameters."""
        spec = make_spec(params, rows, weight)
        state = params["random_state"]
        seed = int(check_seed("random_state", 0 if state is None else state).randint(2**31 - 1))
        return cls(dict(params), spec, make_options(params, spec), rows.shape[1], seed)

    def __getstate__(self) -> dict[str, Any]:
        self.settle()
        return self.__dict__ | {"shown": None}

    @property
    def n_steps(self) -> int:
        return 0 if self.learner is None else self.learner.n_steps

    def know(self, classes: np.ndarray) -> None:
        """Set the classes; they include all known ones."""
        before = self.classes
        if self.learner is None and len(classes) > 1:
            learner = Learner(self.spec, self.options, (self.n_features, len(classes)), seed=self.seed)
            code = int(np.searchsorted(classes, before[0])) if len(before) else 0
            for x, cap, number in self._waiting:
                learner.core.add(x[None, :], np.array([code]), np.array([cap]), np.array([number]), np.array([-1]))
            self.learner, self._waiting = learner, []
        elif self.learner is not None and len(classes) > len(before):
            if not any(self.spec.machine is machine for machine in MACHINES.values()) and not self.spec.scheme:
                raise ValueError(
                    f"The machine {self.spec.machine.name!r} is your own, and how it grows by a class is not known; "
                    "give all classes in the first call of partial_fit."
                )
            self.learner = self.learner.extended(np.searchsorted(classes, before), len(classes))
        self.classes = classes

    def learn(self, X: FloatArray, codes: IntArray, caps: FloatArray, ids: IntArray, *, known: bool) -> None:
        """Predict each row, then learn it; ``known`` means that they were seen before."""
        if not len(X):
            return
        weighted = caps > 0
        if self.learner is None:
            for row in np.flatnonzero(weighted)[: max(0, WAITING - len(self._waiting))]:
                self._waiting.append((X[row].copy(), float(caps[row]), int(ids[row])))
            self.n_seen = max(self.n_seen, int(ids.max()) + 1)
            self.history.add(np.ones(len(X), dtype=bool), len(X), 0.0, 0)
            return
        chosen = np.flatnonzero(weighted)
        block = _Block(chosen, codes, ids, known, np.full(len(chosen), -1, dtype=np.int64))
        given = (X, codes.astype(np.int64, copy=False), caps, ids.astype(np.int64, copy=False))
        parts = [np.ascontiguousarray(each if len(chosen) == len(X) else each[chosen]) for each in given]
        self._open = block
        try:
            error = self.learner.core.add(*parts, block.predicted, n_threads())
        finally:
            self.settle()
        if error is not None:
            raise error

    def _mend(self) -> None:
        """Restore the state from the dual variables if memory ran out during a step, as if its row had not arrived."""
        if self.learner is None or not self.learner.core.is_broken:
            return
        learner = self.learner.restarted(self.learner.kept())
        number = None if self._open is None else self._open.unfinished()
        if number is not None:
            learner.core.forget(number)
        self.learner = learner

    def settle(self) -> None:
        """Count what was learned, completely or not at all; after a Ctrl-C here the next call does it."""
        self._mend()
        block, learner = self._open, self.learner
        if block is None or learner is None:
            return
        n_rows, last, correct = block.tested()
        history = self.history.plus(correct, n_rows, learner.core.dual(), learner.core.n_support)
        self.__dict__.update(n_seen=max(self.n_seen, last + 1), history=history, _open=None)

    def attributes(self) -> dict[str, Any]:
        """Return the fitted attributes that follow from the model, in SVC's layout."""
        if self.shown is None:
            self.settle()
            self.shown = self._make_attributes()
        return self.shown

    def _make_attributes(self) -> dict[str, Any]:
        if self.learner is None:
            raise AttributeError("Only one class has been seen so far, so there are no support vectors yet.")
        model, classes = self.learner.model(), self.classes
        shared: dict[str, Any] = {
            "support_": model.support.astype(np.int32),
            "support_vectors_": model.support_vectors,
            "n_support_": model.n_support,
            "class_weight_": class_weights(_of_stream(self.params["class_weight"]), classes, None),
            "shape_fit_": (self.n_seen, self.n_features),
            "_model": model,
        }
        binary = len(classes) == 2
        if isinstance(model, PairModel):
            sign = -1.0 if binary else 1.0
            return shared | {"dual_coef_": sign * model.dual_coef, "intercept_": sign * model.intercept}
        beta, intercept = model.beta, model.intercept
        return (
            shared
            | {  # two classes: the one function (f_1 - f_0) / 2
                "dual_coef_": (beta[:, 1:] - beta[:, :1]).T / 2 if binary else beta.T.copy(),
                "intercept_": (intercept[1:] - intercept[:1]) / 2 if binary else intercept.copy(),
            }
        )

    def forget(self, number: int) -> None:
        """Remove one example."""
        self.settle()
        self._waiting = [each for each in self._waiting if each[2] != number]
        if self.learner is not None:
            self.learner.core.forget(number)


def _of_stream(class_weight: Any) -> Any:
    """Refuse balanced weights, which need the labels of a fit."""
    return None if isinstance(class_weight, str) else class_weight
