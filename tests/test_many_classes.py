"""Many classes of few rows: what is kept for each pair of classes is a row of arrays, and limits hold."""

from __future__ import annotations

import gc
import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from multimargin import SVC, resources, verify
from multimargin.schemes import pair_at, pair_list


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
        assert (own.dual, own.primal) == (true.dual, pytest.approx(true.primal))


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
