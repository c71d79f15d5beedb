"""OnlineSVC: scikit-learn's contract, the optimum after finalize, forgetting, budgets, new classes, pickling."""

from __future__ import annotations

import copy
import os
import pickle
import signal
import threading
import time
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from multimargin import MACHINES, SVC, Bound, ComponentTable, Machine, OnlineSVC, verify
from multimargin._typing import FloatArray, IntArray
from support.helpers import draw_data, duals

EVERY = ("ovo", "dag", *MACHINES)
SOME = ("ovo", "ova", "ww", "cs")


def biases_of(name: str) -> tuple[str, ...]:
    return ("exact", "none", "regularized") if name in ("ovo", "dag", "ova") else ("none", "regularized")


def learner_of(clf: OnlineSVC) -> Any:
    return clf._stream.learner


@pytest.fixture(scope="module")
def data() -> tuple[FloatArray, IntArray]:
    return draw_data(3, 240, 3)


@pytest.mark.parametrize(("name", "bias"), [(name, bias) for name in EVERY for bias in biases_of(name)])
def test_finalize_is_the_batch_optimum(data: tuple[FloatArray, IntArray], name: str, bias: str) -> None:
    X, y = data
    given: dict[str, Any] = {"C": 2.0, "gamma": 0.7, "tol": 1e-4, "multi_class": name, "bias": bias}
    batch = SVC(**given).fit(X, y)
    clf = OnlineSVC(**given).fit(X, y)
    before = learner_of(clf).core.dual()
    assert before <= sum(duals(batch)) * (1 + 1e-9)  # what is learnt is a feasible point
    assert clf.finalize(X, y) is clf
    assert clf.certificate_.optimal
    np.testing.assert_allclose(duals(clf), duals(batch), rtol=1e-5)
    assert verify(clf, X, y).optimal
    np.testing.assert_allclose(clf.decision_function(X), batch.decision_function(X), atol=20 * 1e-4)
    # The stream continues from the optimum: the core finds it within tol, too.
    core = learner_of(clf).core
    assert core.violation() <= 1e-4 * (1 + 1e-6)
    assert core.dual() == pytest.approx(sum(duals(batch)), rel=1e-5)
    clf.partial_fit(X[:5], y[:5])
    assert not hasattr(clf, "certificate_")


@pytest.mark.parametrize("name", SOME)
def test_finalize_of_what_is_kept(data: tuple[FloatArray, IntArray], name: str) -> None:
    X, y = data
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    clf = OnlineSVC(C=2.0, gamma=0.7, tol=1e-4, multi_class=name).partial_fit(X, y, sample_weight=weight)
    kept = learner_of(clf).kept().ids
    clf.finalize()
    batch = SVC(C=2.0, gamma=0.7, tol=1e-4, multi_class=name).fit(X[kept], y[kept], sample_weight=weight[kept])
    np.testing.assert_allclose(duals(clf), duals(batch), rtol=1e-5)
    assert np.array_equal(np.sort(clf.support_), np.sort(kept[batch.support_]))
    assert np.array_equal(clf.support_vectors_, X[clf.support_])


@pytest.mark.parametrize("name", SOME)
def test_attributes_make_the_scores(data: tuple[FloatArray, IntArray], name: str) -> None:
    X, y = data
    clf = OnlineSVC(C=2.0, kernel="linear", multi_class=name).partial_fit(X, y)
    assert np.array_equal(clf.support_vectors_, X[clf.support_])
    assert clf.n_support_.sum() == len(clf.support_)
    assert np.array_equal(y[clf.support_], np.repeat(clf.classes_, clf.n_support_))
    scores = X @ clf.coef_.T + clf.intercept_
    if name == "ovo":
        pairs = clone(clf).set_params(decision_function_shape="ovo").partial_fit(X, y)
        np.testing.assert_allclose(pairs.decision_function(X), scores, atol=1e-9)
    else:
        np.testing.assert_allclose(clf.decision_function(X), scores, atol=1e-9)
        assert np.array_equal(clf.predict(X), clf.classes_[scores.argmax(axis=1)])


@pytest.mark.parametrize("name", ["ovo", "dag", "ova", "ww", "cs"])
def test_history_is_tested_before_it_is_learnt(data: tuple[FloatArray, IntArray], name: str) -> None:
    X, y = data
    clf = OnlineSVC(gamma=0.7, multi_class=name)
    clf.partial_fit(X[:60], y[:60], classes=np.unique(y))
    right = clf.history_.n_correct
    for i in range(60, 100):
        right += int(clf.predict(X[i : i + 1])[0] == y[i])
        clf.partial_fit(X[i : i + 1], y[i : i + 1])
    assert clf.history_.n_correct == right
    assert clf.history_.examples[-1] == clf.n_seen_ == 100
    assert clf.history_.n_support[-1] == len(clf.support_)
    assert (np.diff(clf.history_.dual) >= -1e-9).all()


@pytest.mark.parametrize("name", EVERY)
def test_forget_is_exact(data: tuple[FloatArray, IntArray], name: str) -> None:
    X, y = data
    given: dict[str, Any] = {"C": 2.0, "gamma": 0.7, "tol": 1e-4, "multi_class": name}
    clf = OnlineSVC(**given).fit(X, y)
    gone = np.random.default_rng(1).uniform(size=len(y)) < 0.4
    clf.forget(gone)
    kept = learner_of(clf).kept()
    assert not np.isin(kept.ids, np.flatnonzero(gone)).any()
    if name in ("ovo", "dag"):  # still feasible: the sums of each pair are 0
        for i in range(3):
            for j in range(i + 1, 3):
                total = kept.duals[kept.codes == i, j].sum() + kept.duals[kept.codes == j, i].sum()
                assert abs(total) <= 1e-9
    clf.finalize(X[~gone], y[~gone])
    batch = SVC(**given).fit(X[~gone], y[~gone])
    np.testing.assert_allclose(duals(clf), duals(batch), rtol=1e-5)
    with pytest.raises(ValueError, match="names examples that were not seen"):
        clf.forget([10_000])
    with pytest.raises(ValueError, match="The mask has shape"):
        clf.forget(np.zeros(3, dtype=bool))


@pytest.mark.parametrize("selection", ["second-order", "first-order", "random"])
@pytest.mark.parametrize("name", ["ovo", "ova", "ww", "atm"])
def test_pickles_and_goes_on_bit_by_bit(data: tuple[FloatArray, IntArray], name: str, selection: str) -> None:
    X, y = data
    clf = OnlineSVC(C=5.0, gamma=2.0, multi_class=name, selection=selection, budget=90, random_state=3)
    clf.partial_fit(X[:120], y[:120])
    copies = [pickle.loads(pickle.dumps(clf)), copy.deepcopy(clf)]
    for each in (clf, *copies):
        each.partial_fit(X[120:], y[120:])
        assert each.n_seen_ == len(y)
    for each in copies:
        assert np.array_equal(each.decision_function(X), clf.decision_function(X))
        assert np.array_equal(each.history_.dual, clf.history_.dual)
        assert each.n_iter_ == clf.n_iter_


@pytest.mark.parametrize("name", ["ovo", "ova", "ww", "cs", "llw", "atm"])
def test_chunks_do_not_matter(data: tuple[FloatArray, IntArray], name: str) -> None:
    X, y = data
    whole = OnlineSVC(gamma=0.7, multi_class=name).partial_fit(X, y, classes=[0, 1, 2])
    parts = OnlineSVC(gamma=0.7, multi_class=name)
    for i in range(len(y)):
        parts.partial_fit(X[i : i + 1], y[i : i + 1], classes=[0, 1, 2])
    assert np.array_equal(whole.decision_function(X), parts.decision_function(X))
    assert whole.history_.n_correct == parts.history_.n_correct


@pytest.mark.parametrize("name", EVERY)
def test_new_classes(name: str) -> None:
    X, y = draw_data(5, 300, 4)
    labels = np.array(["c", "a", "d", "b"])[y]  # a new label may come before the known ones
    order = np.argsort(np.where(y < 2, 0, y), kind="stable")
    X, labels = X[order], labels[order]
    clf = OnlineSVC(C=2.0, gamma=0.7, tol=1e-4, multi_class=name)
    for i in range(0, 300, 10):
        known = set(labels[:i])
        clf.partial_fit(X[i : i + 10], labels[i : i + 10])
        assert list(clf.classes_) == sorted(known | set(labels[i : i + 10]))
        assert clf.predict(X[:3]).shape == (3,)
    core = learner_of(clf).core
    kept = learner_of(clf).kept()
    again = learner_of(clf).restarted(kept).core  # scores and errors recomputed from the dual variables
    assert again.dual() == pytest.approx(core.dual(), rel=1e-9)
    clf.finalize(X, labels)
    batch = SVC(C=2.0, gamma=0.7, tol=1e-4, multi_class=name).fit(X, labels)
    np.testing.assert_allclose(duals(clf), duals(batch), rtol=1e-5)


def test_classes_given_are_all() -> None:
    X, y = draw_data(0, 60, 3)
    clf = OnlineSVC(gamma=1.0).partial_fit(X[y < 2], y[y < 2], classes=[0, 1, 2])
    assert len(clf.classes_) == 3
    assert set(clf.predict(X)) <= {0, 1}  # a class never seen is never predicted
    with pytest.raises(ValueError, match=r"contains the label .*7.*, which is not among classes"):
        clf.partial_fit(X[:1], [7])
    with pytest.raises(ValueError, match="is not the list of the calls before"):
        clf.partial_fit(X[:1], y[:1], classes=[0, 1])


def test_one_class_so_far() -> None:
    X, y = draw_data(0, 60, 2)
    X = X + 5.0 * y[:, None]
    clf = OnlineSVC(gamma=1.0).partial_fit(X[y == 0], y[y == 0])
    assert set(clf.predict(X)) == {0}
    assert np.array_equal(clf.decision_function(X), np.zeros(60))
    with pytest.raises(ValueError, match="Only one class has been seen"):
        clf.finalize()
    clf.partial_fit(X[y == 1], y[y == 1])
    assert set(clf.predict(X)) == {0, 1}
    with pytest.raises(ValueError, match="y has one class only"):
        OnlineSVC().fit(X, np.zeros(60))


@pytest.mark.parametrize("name", SOME)
def test_budget_bounds_the_support_vectors(data: tuple[FloatArray, IntArray], name: str) -> None:
    X, y = data
    clf = OnlineSVC(C=2.0, gamma=0.7, multi_class=name, budget=30)
    for i in range(0, len(y), 20):
        clf.partial_fit(X[i : i + 20], y[i : i + 20])
        assert learner_of(clf).core.n_kept <= 30
    free = OnlineSVC(C=2.0, gamma=0.7, multi_class=name).partial_fit(X, y)
    assert learner_of(free).core.n_kept > 60
    again = learner_of(clf).restarted(learner_of(clf).kept()).core
    assert again.dual() == pytest.approx(learner_of(clf).core.dual(), rel=1e-9)
    if name == "ovo":
        kept = learner_of(clf).kept()
        assert abs(kept.duals[kept.codes == 0, 1].sum() + kept.duals[kept.codes == 1, 0].sum()) <= 1e-9


def test_memory_follows_the_support_vectors() -> None:
    rng = np.random.default_rng(0)
    clf = OnlineSVC(C=1.0, gamma=0.5, multi_class="ww")
    slots = []
    for _ in range(20):
        y = rng.integers(0, 3, 1_000)
        X = rng.normal(size=(1_000, 2)) * 0.4 + 3.0 * np.eye(3)[y][:, :2]
        clf.partial_fit(X, y)
        slots.append(learner_of(clf).core.n_slots)
    assert slots[-1] <= slots[4] + 64
    assert slots[-1] <= 64 * 6
    assert len(pickle.dumps(clf)) < 100_000


def test_weights_are_factors_on_the_cost(data: tuple[FloatArray, IntArray]) -> None:
    X, y = data
    one = OnlineSVC(C=3.0, gamma=0.7).partial_fit(X, y, sample_weight=np.full(len(y), 0.5))
    other = OnlineSVC(C=1.5, gamma=0.7).partial_fit(X, y)
    assert np.array_equal(one.decision_function(X), other.decision_function(X))
    weight = np.where(np.arange(len(y)) % 2 == 0, 1.0, 0.0)
    one = OnlineSVC(gamma=0.7).partial_fit(X, y, sample_weight=weight)
    other = OnlineSVC(gamma=0.7).partial_fit(X[::2], y[::2])
    assert np.array_equal(one.decision_function(X), other.decision_function(X))
    assert one.n_seen_ == len(y)
    one = OnlineSVC(gamma=0.7, class_weight={0: 4.0}).partial_fit(X, y)
    other = OnlineSVC(gamma=0.7).partial_fit(X, y, sample_weight=np.where(y == 0, 4.0, 1.0))
    assert np.array_equal(one.decision_function(X), other.decision_function(X))


def test_sparse_and_float32_rows(data: tuple[FloatArray, IntArray]) -> None:
    X, y = data
    X = np.round(X, 2).astype(np.float32)
    dense = OnlineSVC(gamma=0.7).fit(X.astype(np.float64), y)
    for rows in (X, sparse.csr_array(X)):
        clf = OnlineSVC(gamma=0.7).fit(rows, y)
        np.testing.assert_allclose(clf.decision_function(rows), dense.decision_function(X), atol=1e-6)
        assert clf.finalize(rows, y).certificate_.optimal


def test_more_passes_come_closer(data: tuple[FloatArray, IntArray]) -> None:
    X, y = data
    for name in SOME:
        best = sum(duals(SVC(C=2.0, gamma=0.7, multi_class=name).fit(X, y)))
        found = [OnlineSVC(C=2.0, gamma=0.7, multi_class=name, passes=n).fit(X, y) for n in (1, 5)]
        gaps = [best - learner_of(clf).core.dual() for clf in found]
        assert gaps[1] < gaps[0]
        assert found[1].n_seen_ == len(y)
        assert found[1].history_.n_tested == len(y)
        assert len(np.unique(found[1].support_)) == len(found[1].support_)


def test_own_machine_needs_its_classes() -> None:
    X, y = draw_data(0, 90, 3)
    cost = np.array([[0.0, 1.0, 3.0], [1.0, 0.0, 1.0], [3.0, 1.0, 0.0]])
    machine = Machine("costs", Bound.SIMPLEX, False, ComponentTable.relative(3, cost))
    clf = OnlineSVC(gamma=0.7, multi_class=machine, tol=1e-4).partial_fit(X, y, classes=[0, 1, 2])
    batch = SVC(gamma=0.7, multi_class=machine, tol=1e-4).fit(X, y)
    assert clf.finalize(X, y).certificate_.dual == pytest.approx(batch.certificate_.dual, rel=1e-5)
    with pytest.raises(ValueError, match="is defined for 3 classes"):
        OnlineSVC(multi_class=machine).partial_fit(X[y < 2], y[y < 2])


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"selection": "best"}, "selection='best' is not allowed; choose one of 'second-order'"),
        ({"reprocess": -1}, "reprocess=-1 is not allowed"),
        ({"budget": 1}, "budget=1 is not allowed; budget must be an integer >= 2"),
        ({"passes": 0}, "passes=0 is not allowed"),
        ({"kernel": "precomputed"}, "kernel='precomputed' is not allowed for online learning"),
        ({"multi_class": "ww", "bias": "exact"}, "bias='exact' with multi_class='ww' is not available"),
        ({"C": float("inf")}, "C=inf is not allowed"),
        ({"class_weight": "balanced"}, "class_weight='balanced' needs all labels at once"),
        ({"class_weight": {0: -1.0}}, "give every class a weight > 0"),
    ],
)
def test_bad_parameters(given: dict[str, Any], text: str) -> None:
    X, y = draw_data(0, 30, 2)
    with pytest.raises(ValueError, match=text):
        OnlineSVC(**given).partial_fit(X, y)


def test_a_failed_call_leaves_the_stream_as_it_was(data: tuple[FloatArray, IntArray]) -> None:
    X, y = data
    clf = OnlineSVC(gamma=0.7).partial_fit(X[:100], y[:100])
    before = clf.decision_function(X)
    with pytest.raises(ValueError, match="sample_weight contains a value"):
        clf.partial_fit(X, y, sample_weight=np.full(len(y), -1.0))
    with pytest.raises(ValueError, match="features"):
        clf.partial_fit(X[:, :1], y)
    clf.set_params(C=7.0)
    with pytest.raises(ValueError, match=r"C=7.0, but the first partial_fit had C=1.0"):
        clf.partial_fit(X, y)
    clf.set_params(C=1.0)
    with pytest.raises(ValueError, match="y has one class only"):
        clf.fit(X, np.zeros(len(y)))
    with pytest.raises(ValueError, match="one of X and y"):
        clf.finalize(X)
    with pytest.raises(ValueError, match="finalize has the classes"):
        clf.finalize(X[y < 2], y[y < 2])
    assert clf.n_seen_ == 100
    assert np.array_equal(clf.decision_function(X), before)


class InterruptedCore:
    """A core with Ctrl-C during one of its calls: the call finishes, then Python raises."""

    def __init__(self, core: Any, where: str) -> None:
        self._core, self._where = core, where

    def _ring(self, name: str) -> None:
        if name == self._where:
            self._where = ""
            raise KeyboardInterrupt

    def add(self, *parts: Any) -> Any:
        self._core.add(*parts)
        self._ring("add")

    def dual(self) -> float:
        dual = float(self._core.dual())
        self._ring("dual")
        return dual

    @property
    def n_support(self) -> int:
        self._ring("n_support")
        return int(self._core.n_support)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._core, name)


@pytest.mark.parametrize("where", ["add", "dual", "n_support"])
def test_ctrl_c_after_a_block_loses_nothing(data: tuple[FloatArray, IntArray], where: str) -> None:
    X, y = data
    whole = OnlineSVC(gamma=0.7).partial_fit(X[:50], y[:50]).partial_fit(X[50:90], y[50:90])
    clf = OnlineSVC(gamma=0.7).partial_fit(X[:50], y[:50])
    learner_of(clf).core = InterruptedCore(learner_of(clf).core, where)
    with pytest.raises(KeyboardInterrupt):
        clf.partial_fit(X[50:90], y[50:90])
    assert clf.n_seen_ == whole.n_seen_ == 90
    assert np.array_equal(clf.history_.examples, whole.history_.examples)
    assert clf.history_.n_correct == whole.history_.n_correct
    assert np.array_equal(clf.decision_function(X), whole.decision_function(X))


@pytest.mark.parametrize("name", ["ovo", "ww"])
def test_ctrl_c_ends_between_two_examples(name: str) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60_000, 20)), rng.integers(0, 3, 60_000)  # noise: everything is kept
    clf = OnlineSVC(gamma=1.0, multi_class=name, cache_size=10.0).partial_fit(X[:50], y[:50])
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    began = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        clf.partial_fit(X[50:], y[50:])
    assert time.perf_counter() - began < 60  # not the whole stream
    timer.join()
    assert 50 <= clf.n_seen_ < len(y)
    assert clf.history_.examples[-1] == clf.n_seen_
    core = learner_of(clf).core
    again = learner_of(clf).restarted(learner_of(clf).kept()).core
    assert again.dual() == pytest.approx(core.dual(), rel=1e-9)
    clf.partial_fit(X[:50], y[:50])
