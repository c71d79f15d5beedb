"""The core's online machines behind one interface: LASVM for each pair or class, LaRank for the others.

A learner takes in coded examples and hands out models. It pickles with all that its future depends on, so that a copy
continues with the same bits as the original.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from multimargin import _core
from multimargin._typing import FloatArray, IntArray
from multimargin.base.resources import n_threads
from multimargin.fitting.spec import FitSpec
from multimargin.kernels.spec import KernelSpec
from multimargin.kernels.store import KernelStore
from multimargin.models.kernel_model import KernelModel
from multimargin.models.pair_model import PairModel
from multimargin.problems.coupling import coefficients
from multimargin.problems.machines import Machine
from multimargin.problems.problem import Bias, DualProblem
from multimargin.problems.schemes import DAG, ONE_VS_ONE, pair_list
from multimargin.problems.training_set import TrainingSet

ONE_VS_ALL = "ova"
PANEL = 64  # slots of one class that are stored together in the core

State = dict[str, Any]


@dataclass(frozen=True)
class OnlineOptions:
    """Options of a learner; the same fields as the C++ struct ``OnlineOptions``."""

    selection: str = "second-order"
    reprocess: int = 1
    budget: int = -1
    exact_bias: bool = True
    tol: float = 1e-3
    cache_bytes: float = 2e8

    def to_core(self) -> _core.OnlineOptions:
        return _core.OnlineOptions(**asdict(self))


@dataclass(frozen=True)
class Kept:
    """The kept examples, in order of arrival.

    Parameters
    ----------
    X : ndarray of shape (n_kept, n_features)
    codes : ndarray of shape (n_kept,)
    caps : ndarray of shape (n_kept,)
        Their C.
    ids : ndarray of shape (n_kept,)
        Their positions in order of arrival.
    duals : ndarray of shape (n_kept, width)
        One-vs-one: the coefficient in the pair with each class; one-vs-all: in the machine of each class; else the
        dual variables of the components.
    """

    X: FloatArray
    codes: IntArray
    caps: FloatArray
    ids: IntArray
    duals: FloatArray


class Learner:
    """One online machine.

    Parameters
    ----------
    spec : FitSpec
        Machine or scheme, kernel and bias; ``scheme`` is also set for one-vs-all.
    options : OnlineOptions
    n_features, n_classes, seed : int
    state : dict or None
        What another learner of the same spec left.
    """

    def __init__(
        self,
        spec: FitSpec,
        options: OnlineOptions,
        shape: tuple[int, int],
        *,
        seed: int = 0,
        state: State | None = None,
    ) -> None:
        self.spec, self.options, self.seed = spec, options, seed
        self.n_features, self.n_classes = shape
        self.steps_before = 0
        self.core = self._make_core(state)

    @property
    def binary(self) -> bool:
        """Whether it consists of binary machines."""
        return bool(self.spec.scheme)

    @property
    def n_steps(self) -> int:
        return int(self.steps_before + self.core.n_steps)

    @property
    def _trained_kernel(self) -> KernelSpec:
        kernel = self.spec.kernel
        return kernel.with_offset(1.0) if self.spec.bias is Bias.REGULARIZED else kernel

    def _make_core(self, state: State | None) -> Any:
        kernel, options = self._trained_kernel.to_core(), self.options.to_core()
        if self.binary:
            scheme = self.spec.scheme
            if state is None:
                return _core.OnlineBinaries(kernel, self.n_features, scheme, self.n_classes, options, self.seed)
            return _core.OnlineBinaries(kernel, state, scheme, self.n_classes, options)
        machine = _core_machine(self.spec.machine, self.n_classes)
        if state is None:
            return _core.OnlineMachine(kernel, self.n_features, machine, options, self.seed)
        return _core.OnlineMachine(kernel, state, machine, options)

    def __getstate__(self) -> dict[str, Any]:
        kept = {name: value for name, value in self.__dict__.items() if name != "core"}
        return kept | {"steps_before": self.n_steps, "core_state": self.core.state()}

    def __setstate__(self, kept: dict[str, Any]) -> None:
        state = kept.pop("core_state")
        self.__dict__.update(kept)
        self.core = self._make_core(state)

    def _replaced(self, n_classes: int, state: State) -> Learner:
        other = Learner(self.spec, self.options, (self.n_features, n_classes), state=state)
        other.steps_before = self.n_steps
        return other

    def extended(self, places: IntArray, n_classes: int) -> Learner:
        """Return a learner of more classes in which class c has become ``places[c]``; places ascend."""
        state = dict(self.core.state())
        labels = state["labels"]
        state["labels"] = np.where(labels >= 0, places[np.maximum(labels, 0)], -1 - places[np.maximum(-1 - labels, 0)])
        if self.binary:
            _extend_members(state, self, places, n_classes)
        else:
            _extend_variables(state, self, places, n_classes)
        return self._replaced(n_classes, state)

    def kept(self) -> Kept:
        """Return the kept examples and their dual variables."""
        state = self.core.state()
        used = np.flatnonzero(state["labels"] >= 0)
        used = used[np.argsort(state["ids"][used])]
        duals = self._table(state) if self.binary else state["amounts"]
        return Kept(state["X"][used], state["labels"][used], state["caps"][used], state["ids"][used], duals[used])

    def _table(self, state: State) -> FloatArray:
        """Coefficients by slot and class: those in the pair with the class, or in the class's own machine."""
        table = np.zeros((len(state["labels"]), self.n_classes))
        ends = np.cumsum(state["counts"])
        for machine, (count, end) in enumerate(zip(state["counts"], ends, strict=True)):
            slots, beta = state["slots"][end - count : end], state["beta"][end - count : end]
            if self.spec.scheme == ONE_VS_ALL:
                table[slots, machine] = beta
            else:
                i, j = pair_list(self.n_classes)[machine]
                table[slots, np.where(state["labels"][slots] == i, j, i)] = beta
        return table

    def model(self) -> KernelModel | PairModel:
        """Return the current model; support vectors are identified by their positions in order of arrival."""
        kept = self.kept()
        used = np.flatnonzero((kept.duals != 0).any(axis=1))
        used = used[np.argsort(kept.codes[used], kind="stable")]
        codes, duals = kept.codes[used], kept.duals[used]
        n_support = np.bincount(codes, minlength=self.n_classes).astype(np.int32)
        shared = (kept.ids[used], kept.X[used], n_support)
        if self.spec.scheme in (ONE_VS_ONE, DAG):
            others = np.arange(self.n_classes) != codes[:, None]
            coef = duals[others].reshape(len(used), self.n_classes - 1)
            intercept = self._pair_intercept(codes, duals)
            return PairModel(*shared, np.ascontiguousarray(coef.T), intercept, self.spec.kernel, self.spec.scheme)
        beta = duals if self.binary else coefficients(self.spec.machine, duals, codes, self.n_classes)
        intercept = np.zeros(self.n_classes)
        if self.spec.bias is Bias.REGULARIZED:  # the weight of the constant feature: HL02 (10)
            intercept = beta.sum(axis=0)
        elif self.spec.bias is Bias.EXACT:
            intercept = self.core.biases()
        return KernelModel(*shared, np.ascontiguousarray(beta), intercept, self.spec.kernel)

    def _pair_intercept(self, codes: IntArray, duals: FloatArray) -> FloatArray:
        if self.spec.bias is Bias.EXACT:
            return np.asarray(self.core.biases())
        if self.spec.bias is Bias.NONE:
            return np.zeros(len(pair_list(self.n_classes)))
        sums = np.array([duals[codes == c].sum(axis=0) for c in range(self.n_classes)])
        return np.array([sums[i, j] + sums[j, i] for i, j in pair_list(self.n_classes)])

    def restarted(self, kept: Kept) -> Learner:
        """Return a learner that continues from these examples and dual variables."""
        kept = _without_idle(kept)
        state, slots = _slots_by_class(kept, self.n_classes)
        state["random"] = int(self.core.state()["random"])
        store = KernelStore(kept.X, self._trained_kernel)
        if self.binary:
            _fill_members(state, self, kept, slots, store)
        else:
            _fill_variables(state, self, kept, slots, store)
        return self._replaced(self.n_classes, state)


def _core_machine(machine: Machine, n_classes: int) -> _core.Machine:
    none, nothing = np.zeros(0, dtype=np.int64), np.zeros(0)
    data = TrainingSet(np.zeros((0, 1)), np.arange(n_classes), none, none, nothing, np.ones(n_classes), nothing)
    return DualProblem(data, machine, KernelSpec()).to_core()


def _extend_members(state: State, learner: Learner, places: IntArray, n_classes: int) -> None:
    """The machines of the known classes, and new ones in which the kept examples have dual variables 0."""
    ends = np.cumsum(state["counts"])
    parts = {}
    names = ("slots", "beta", "errors")
    if learner.spec.scheme == ONE_VS_ALL:
        old: list[Any] = [int(places[c]) for c in range(learner.n_classes)]
        new: list[Any] = list(range(n_classes))
    else:
        old = [(int(places[i]), int(places[j])) for i, j in pair_list(learner.n_classes)]
        new = list(pair_list(n_classes))
    for key, count, end in zip(old, state["counts"], ends, strict=True):
        parts[key] = [state[name][end - count : end] for name in names]
    labels = state["labels"]
    for key in new:
        if key in parts:
            continue
        if learner.spec.scheme == ONE_VS_ALL:
            slots = np.flatnonzero(labels >= 0)
            y = np.where(labels[slots] == key, 1.0, -1.0)
        else:
            slots = np.flatnonzero((labels == key[0]) | (labels == key[1]))
            y = np.where(labels[slots] == key[0], 1.0, -1.0)
        parts[key] = [slots, np.zeros(len(slots)), y]
    _join_members(state, [parts[key] for key in new])


def _join_members(state: State, parts: list[list[np.ndarray]]) -> None:
    state["counts"] = np.array([len(part[0]) for part in parts], dtype=np.int64)
    for position, (name, kind) in enumerate((("slots", np.int64), ("beta", np.float64), ("errors", np.float64))):
        state[name] = np.concatenate([part[position] for part in parts]).astype(kind)


def _extend_variables(state: State, learner: Learner, places: IntArray, n_classes: int) -> None:
    """Variables of the new components are 0, and so are the columns of the new classes."""
    machine, before = learner.spec.machine, learner.n_classes
    old, new = machine.table(before), machine.table(n_classes)
    n_slots, labels = len(state["labels"]), state["labels"]
    amounts = np.zeros((n_slots, new.class1.shape[1]))
    for c in range(before):
        names = _component_names(new, int(places[c]))
        own = np.flatnonzero(labels == places[c])
        for component, p in _component_names(old, c).items():
            amounts[own, names[_mapped(component, places)]] = state["amounts"][own, p]
    state["amounts"] = amounts
    for name in ("coefficients", "scores"):
        wider = np.zeros((n_slots, n_classes + machine.sum_to_zero))
        wider[:, places] = state[name][:, :before]
        if machine.sum_to_zero:  # the mean of the columns is that of more of them
            wider[:, n_classes] = state[name][:, before] * before / n_classes
        state[name] = wider


def _component_names(table: Any, c: int) -> dict[tuple[int, int], int]:
    class1, _, class2, _ = table.of_class(c)
    return {(int(a), int(b)): p for p, (a, b) in enumerate(zip(class1, class2, strict=True))}


def _mapped(name: tuple[int, int], places: IntArray) -> tuple[int, int]:
    return int(places[name[0]]), int(places[name[1]]) if name[1] >= 0 else -1


def _without_idle(kept: Kept) -> Kept:
    used = (kept.duals != 0).any(axis=1)
    return Kept(kept.X[used], kept.codes[used], kept.caps[used], kept.ids[used], kept.duals[used])


def _slots_by_class(kept: Kept, n_classes: int) -> tuple[State, IntArray]:
    """Return the examples in the core's panels, and the slot of each."""
    labels: list[IntArray] = []
    slots = np.zeros(len(kept.codes), dtype=np.int64)
    first = 0
    for c in range(n_classes):
        members = np.flatnonzero(kept.codes == c)
        size = -(-len(members) // PANEL) * PANEL
        slots[members] = first + np.arange(len(members))
        labels.append(np.where(np.arange(size) < len(members), c, -1 - c))
        first += size
    state: State = {
        "X": np.zeros((first, kept.X.shape[1])),
        "labels": np.concatenate(labels).astype(np.int64),
        "ids": np.full(first, -1, dtype=np.int64),
        "caps": np.zeros(first),
    }
    for name, values in (("X", kept.X), ("ids", kept.ids), ("caps", kept.caps)):
        state[name][slots] = values
    return state, slots


def _fill_members(state: State, learner: Learner, kept: Kept, slots: IntArray, store: KernelStore) -> None:
    d, rows = learner.n_classes, np.arange(len(kept.codes))
    parts: list[list[np.ndarray]] = []
    if learner.spec.scheme == ONE_VS_ALL:
        machines = [(rows, kept.duals[:, c], np.where(kept.codes == c, 1.0, -1.0)) for c in range(d)]
    else:
        machines = []
        for i, j in pair_list(d):
            own = np.flatnonzero((kept.codes == i) | (kept.codes == j))
            first = kept.codes[own] == i
            machines.append((own, kept.duals[own, np.where(first, j, i)], np.where(first, 1.0, -1.0)))
    for examples, coefs, y in machines:
        used = np.flatnonzero(coefs)
        own, beta = examples[used], coefs[used]
        scores = store.scores_within(own, beta[None, :], own, n_threads())[0] if len(own) else np.zeros(0)
        parts.append([slots[own], beta, y[used] - scores])
    _join_members(state, parts)


def _fill_variables(state: State, learner: Learner, kept: Kept, slots: IntArray, store: KernelStore) -> None:
    machine, d = learner.spec.machine, learner.n_classes
    plain = Machine(machine.name, machine.bound, False, machine.components)
    raw = coefficients(plain, kept.duals, kept.codes, d)
    if machine.sum_to_zero:
        raw = np.concatenate([raw, raw.mean(axis=1, keepdims=True)], axis=1)
    rows = np.arange(len(kept.codes))
    scores = store.scores_within(rows, np.ascontiguousarray(raw.T), rows, n_threads()).T
    n_slots = len(state["labels"])
    for name, values in (("amounts", kept.duals), ("coefficients", raw), ("scores", scores)):
        state[name] = np.zeros((n_slots, values.shape[1]))
        state[name][slots] = values
    state["rates"] = learner.core.state()["rates"]
