"""Many classes of few rows: pairs of classes are stored as rows of arrays, and limits hold."""

from __future__ import annotations

import gc
import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.exceptions import ConvergenceWarning

from multimargin import SVC, LinearSVC, verify
from multimargin.base import resources
from multimargin.fitting import linear_pair_settling
from multimargin.problems.schemes import pair_at, pair_list
from multimargin.solvers.linear.driver import settle_linear


def many(n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    X = np.random.default_rng(0).normal(size=(2 * n_classes, 5))
    return X, np.repeat(np.arange(n_classes), 2)


def n_objects() -> int:
    gc.collect()
    return len(gc.get_objects())


@pytest.mark.parametrize("params", [{}, {"bias": "none"}], ids=["exact", "no-bias"])
def test_a_stopped_fit_of_many_pairs_is_made_of_arrays(params: dict[str, Any]) -> None:
    X, y = many(300)
    clf, before = SVC(max_time=0.1, **params), n_objects()
    with pytest.warns(ConvergenceWarning, match="max_time"):
        clf.fit(X, y)
    assert n_objects() - before < 5_000  # there are 44,850 pairs
    certificate = clf.certificate_
    assert certificate.stop_reason == "max_time"
    assert len(certificate.parts) == len(clf.n_iter_) == len(clf.intercept_) == 44_850
    assert certificate.parts[0].stop_reason == "converged"
    last = certificate.parts[-1]
    assert (last.stop_reason, last.optimal, last.dual) == ("max_time", False, 0.0)
    again = pickle.loads(pickle.dumps(clf))
    assert again.certificate_.parts[:3] == certificate.parts[:3]
    assert np.array_equal(again.predict(X[:5]), clf.predict(X[:5]))
    assert np.isfinite(clf.decision_function(X[:5])).all()


@pytest.mark.parametrize("bias", ["none", "regularized"])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_pairs_that_were_not_begun_have_their_own_objectives(bias: str, loss: str) -> None:
    X, y = many(6)
    weight = np.random.default_rng(1).uniform(0.5, 2.0, len(y))
    with pytest.warns(ConvergenceWarning, match="max_time"):
        clf = SVC(max_time=1e-9, bias=bias, loss=loss).fit(X, y, weight)
    for own, true in zip(clf.certificate_.parts, verify(clf, X, y, weight).parts, strict=True):
        assert (own.dual, own.primal) == (true.dual, pytest.approx(true.primal))  # type: ignore[comparison-overlap]


def test_a_stopped_fit_goes_on_to_the_same_model() -> None:
    X, y = many(40)
    clf = SVC(max_iter=1, warm_start=True)
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        clf.fit(X, y)
    clf.set_params(max_iter=-1).fit(X, y)
    assert clf.certificate_.optimal
    found = verify(clf, X, y)
    assert found.optimal
    assert len(found.parts) == 780
    assert np.allclose(clf.dual_coef_, SVC().fit(X, y).dual_coef_, atol=1e-6)


LINEAR: list[dict[str, Any]] = [
    {"bias": bias, "loss": loss} for bias in ("exact", "regularized", "none") for loss in ("hinge", "squared_hinge")
]


@pytest.mark.parametrize("params", LINEAR, ids=lambda params: "-".join(params.values()))
@pytest.mark.parametrize("form", [np.asarray, csr_array])
def test_linear_pairs_are_settled_together(
    params: dict[str, Any], form: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = many(45)
    alone: list[int] = []

    def counted(*given: Any) -> Any:
        alone.append(1)
        return settle_linear(*given)

    monkeypatch.setattr(linear_pair_settling, "settle_linear", counted)
    clf = LinearSVC(multi_class="ovo", **params).fit(form(X), y)
    assert clf.certificate_.optimal
    assert len(alone) <= 10  # of 990
    found = verify(clf, form(X), y)
    assert found.optimal
    for own, true in zip(clf.certificate_.parts, found.parts, strict=True):
        assert own.stop_reason == true.stop_reason == "converged"
        assert own.dual == pytest.approx(true.dual, rel=1e-9, abs=1e-12)
        assert own.primal == pytest.approx(true.primal, rel=1e-9, abs=1e-12)
        assert own.kkt_violation == pytest.approx(true.kkt_violation, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("params", [{}, {"bias": "none"}, {"solver": "newton"}], ids=["exact", "no-bias", "newton"])
def test_a_stopped_linear_fit_of_many_pairs_is_made_of_arrays(params: dict[str, Any]) -> None:
    X, y = many(300)
    clf, before = LinearSVC(multi_class="ovo", max_time=0.3, **params), n_objects()
    with pytest.warns(ConvergenceWarning, match="max_time"):
        clf.fit(X, y)
    assert n_objects() - before < 5_000  # there are 44,850 pairs
    parts = clf.certificate_.parts
    assert clf.certificate_.stop_reason == "max_time"
    assert len(parts) == len(clf.intercept_) == 44_850
    last = parts[-1]
    assert (last.stop_reason, last.optimal, last.dual, last.primal) == ("max_time", False, 0.0, 4.0)
    again = pickle.loads(pickle.dumps(clf))
    assert again.certificate_.parts[:3] == parts[:3]
    assert np.array_equal(again.predict(X[:5]), clf.predict(X[:5]))
    before = n_objects()
    found = verify(clf, X, y)
    assert n_objects() - before < 5_000
    assert found.parts[-1].dual == 0.0


@pytest.mark.parametrize("params", LINEAR, ids=lambda params: "-".join(params.values()))
def test_linear_pairs_that_were_not_begun_have_their_own_objectives(
    params: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = many(6)
    weight = np.random.default_rng(1).uniform(0.5, 2.0, len(y))
    monkeypatch.setattr(linear_pair_settling, "settle_linear", None)  # no pair is continued
    with pytest.warns(ConvergenceWarning, match="max_time"):
        clf = LinearSVC(multi_class="ovo", max_time=1e-9, **params).fit(X, y, weight)
    for own, true in zip(clf.certificate_.parts, verify(clf, X, y, weight).parts, strict=True):
        assert (own.stop_reason, own.dual, own.primal) == ("max_time", true.dual, pytest.approx(true.primal))  # type: ignore[comparison-overlap]


@pytest.mark.parametrize("bias", ["exact", "regularized"])
def test_a_callback_ends_all_linear_pairs(bias: str, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = many(200)
    monkeypatch.setattr(linear_pair_settling, "settle_linear", None)
    clf = LinearSVC(multi_class="ovo", bias=bias, on_progress=lambda moment: moment.iteration > 3_000)
    with pytest.warns(ConvergenceWarning, match="callback"):
        clf.fit(X, y)
    assert {part.stop_reason for part in clf.certificate_.parts} == {"converged", "callback"}
    assert clf.certificate_.parts[-1].stop_reason == "callback"
    clf.set_params(on_progress=None, warm_start=True).fit(X, y)
    assert clf.certificate_.optimal


def test_linear_pairs_of_which_each_goes_on_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = many(12)
    together = LinearSVC(multi_class="ovo", tol=1e-6).fit(X, y)
    # As if the float64 check had rejected all of them: the certificates are those of the continued solves.
    monkeypatch.setattr(linear_pair_settling._Settlement, "_good", lambda self: np.zeros(len(self.reasons), dtype=bool))
    alone = LinearSVC(multi_class="ovo", tol=1e-6).fit(X, y)
    assert alone.certificate_.optimal
    assert np.allclose(alone.coef_, together.coef_, atol=1e-6)
    assert alone.certificate_.dual == pytest.approx(together.certificate_.dual)


def test_the_place_of_a_pair() -> None:
    assert [pair_at(index, 7) for index in range(21)] == pair_list(7)


@pytest.mark.parametrize("machine", ["ovo", "ova", "ww", "cs", "llw"])
def test_what_the_memory_does_not_hold_is_refused_before_it_is_tried(
    machine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = many(1000)
    monkeypatch.setattr(resources, "available_bytes", lambda: 100_000_000)
    with pytest.raises(MemoryError, match=r"1000 classes.* would take \d+ MB, and 100 MB are available; "):
        SVC(multi_class=machine).fit(X, y)


@pytest.mark.skipif(sys.platform != "linux", reason="limits of the address space")
def test_the_limit_of_the_address_space_is_what_is_available(monkeypatch: pytest.MonkeyPatch) -> None:
    resource = pytest.importorskip("resource")
    before = resources.available_bytes()
    used = int(Path("/proc/self/statm").read_text().split()[0]) * 4096
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (used + 10_000_000, used + 10_000_000))
    assert resources.available_bytes() <= 10_000_000 < before
