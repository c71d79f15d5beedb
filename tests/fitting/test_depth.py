"""How far a fit is from the core: Python's frames in between, and how often it calls the core."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sklearn.datasets import load_iris

from multimargin import SVC, LinearSVC, _core

X, Y = load_iris(return_X_y=True)
MOST_FRAMES = 5


def _frames_above(caller: str) -> list[str]:
    """Return the functions between the probe that asks and this caller."""
    frame, names = sys._getframe(2), []
    while frame.f_code.co_qualname != caller:
        names.append(frame.f_code.co_qualname)
        assert frame.f_back is not None
        frame = frame.f_back
    return names


@pytest.mark.parametrize(
    ("params", "function"),
    [({}, "solve_binary"), ({"multi_class": "ww"}, "solve"), ({"multi_class": "ova"}, "solve_binary")],
)
def test_few_frames_between_fit_and_the_core(
    params: dict[str, Any], function: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[list[str]] = []
    original = getattr(_core, function)

    def probe(*args: Any) -> Any:
        found.append(_frames_above("SVC.fit"))
        return original(*args)

    monkeypatch.setattr(_core, function, probe)
    SVC(**params).fit(X, Y)
    assert len(found) == 1
    assert len(found[0]) <= MOST_FRAMES, found[0]


@contextmanager
def _counted_calls() -> Iterator[Counter[str]]:
    """Count the calls of the core's functions and methods."""
    counts: Counter[str] = Counter()

    def counting(name: str, call: Any) -> Any:
        def counted(*args: Any, **options: Any) -> Any:
            counts[name] += 1
            return call(*args, **options)

        return counted

    with pytest.MonkeyPatch.context() as patch:
        for name, member in vars(_core).items():
            if isinstance(member, type):
                methods = [m for m in vars(member) if not m.startswith("_") and callable(getattr(member, m))]
                for method in methods:
                    patch.setattr(member, method, counting(f"{name}.{method}", getattr(member, method)))
            elif callable(member) and not name.startswith("_"):
                patch.setattr(_core, name, counting(name, member))
        yield counts


@pytest.mark.parametrize("estimator", [SVC(), SVC(multi_class="ww"), LinearSVC(), LinearSVC(multi_class="ww")])
def test_threads_are_asked_for_once(estimator: Any) -> None:
    with _counted_calls() as counts:
        estimator.fit(X, Y)
    assert counts["allowed_threads"] == 1
    assert sum(counts.values()) > 1
