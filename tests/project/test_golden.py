"""Golden hashes: models are the stored ones, bit by bit, for the scalar instruction set.

Where this fails and the change was meant to move bits, ``python -m benchmarks.golden --store`` rewrites them.
"""

from __future__ import annotations

import json

import pytest

from benchmarks.golden import stored
from benchmarks.golden.hashing import Case, hash_of
from multimargin import Certificate


@pytest.mark.skipif(not stored.applies(), reason="the stored hashes are those of x86-64 with libstdc++")
def test_no_bit_has_moved() -> None:
    expected = json.loads(stored.STORED.read_text())
    assert len(expected) > 400
    assert stored.differing(expected, stored.scalar_hashes({})) == []


def test_a_moved_bit_is_seen() -> None:
    values = [1.0, "ovo", {"b": [2, None]}]
    moved = [1.0 + 2.0**-52, "ovo", {"b": [2, None]}]
    assert hash_of(Case("a", lambda: values)) == hash_of(Case("b", lambda: list(values)))
    assert hash_of(Case("a", lambda: values)) != hash_of(Case("a", lambda: moved))


def test_a_refusal_is_a_result() -> None:
    def refuse() -> None:
        raise ValueError("no")

    assert hash_of(Case("a", refuse)) == "refused"


def test_values_of_an_unknown_kind_are_an_error() -> None:
    with pytest.raises(TypeError, match="set has no values"):
        hash_of(Case("a", lambda: {1, 2}))


def test_certificates_have_their_own_hash() -> None:
    numbers = {"primal": 2.0, "gap": 1.0, "relative_gap": 0.5, "kkt_violation": 0.1, "tol": 0.1, "verified": True}
    words = {"stop_reason": "converged", "n_iter": 3, "kernel_rows": 4, "cache_hits": 0, "solver_reason": "why"}

    def with_dual(dual: float, seconds: float) -> str:
        certificate = Certificate(dual=dual, seconds=seconds, solver="smo", **numbers, **words)  # type: ignore[arg-type]
        return hash_of(Case("a", lambda: [certificate, 7]))

    first, other = with_dual(1.0, 1.0), with_dual(1.5, 1.0)
    assert with_dual(1.0, 2.0) == first
    assert other != first
    assert other.split()[0] == first.split()[0]
    assert stored.differing({"a": first, "b": first}, {"a": other}) == ["b"]
