"""Two searches share results only if code, state, data, folds and versions are equal."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
import textwrap
import threading
import types
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_iris
from sklearn.metrics import fbeta_score, make_scorer
from sklearn.model_selection import GroupKFold, StratifiedKFold

from multimargin import SVCCV
from multimargin.model_selection import resume
from multimargin.model_selection.fingerprints import OpaqueError, digest_of
from multimargin.model_selection.resume import fingerprint
from support.separate_fits import Problem, make_problem

SCALE = 1.0


def scaled_kernel(X: Any, Z: Any, scale: Any = 1.0) -> Any:
    return scale * (X @ Z.T)


def global_kernel(X: Any, Z: Any) -> Any:
    return helped(SCALE * X, Z)


def helped(X: Any, Z: Any) -> Any:
    return X @ Z.T


def closure(scale: Any) -> Callable[[Any, Any], Any]:
    return lambda X, Z: np.multiply(scale, X @ Z.T)


def wrapped(scale: float) -> Callable[[Any, Any], Any]:
    """Claims to be from NumPy."""

    @functools.wraps(np.dot)
    def inner(X: Any, Z: Any) -> Any:
        return global_kernel(X, Z) * scale

    return inner


def with_attribute(scale: float) -> Callable[[Any, Any], Any]:
    def inner(X: Any, Z: Any) -> Any:
        return inner.scale * (X @ Z.T)  # type: ignore[attr-defined]

    inner.scale = scale  # type: ignore[attr-defined]
    return inner


class Kernel:
    def __init__(self, scale: Any) -> None:
        self.scale = scale

    def __call__(self, X: Any, Z: Any) -> Any:
        return self.scale * (X @ Z.T)

    def method(self, X: Any, Z: Any) -> Any:
        return self(X, Z)


class Slotted:
    __slots__ = ("scale",)

    def __init__(self, scale: float) -> None:
        self.scale = scale

    def __call__(self, X: Any, Z: Any) -> Any:
        return self.scale * (X @ Z.T)


@dataclass
class Fields:
    scale: float

    def __call__(self, X: Any, Z: Any) -> Any:
        return self.scale * (X @ Z.T)


def class_with(scale: float) -> Any:
    class Local:
        factor = scale

        def __call__(self, X: Any, Z: Any) -> Any:
            return self.factor * (X @ Z.T)

    return Local()


def from_text(text: str, **names: Any) -> Any:
    """Return the last function that the text defines."""
    space: dict[str, Any] = {"np": np, **names}
    exec(text, space)
    return [value for value in space.values() if isinstance(value, types.FunctionType)][-1]


def own_module(scale: float) -> types.ModuleType:
    module = types.ModuleType("own_kernels")
    module.scale = scale  # type: ignore[attr-defined]
    return module


def over_module(module: Any) -> Callable[[Any, Any], Any]:
    return lambda X, Z: module.scale * (X @ Z.T)


PAIRS: dict[str, Callable[[float], Any]] = {
    "partial": lambda scale: functools.partial(scaled_kernel, scale=scale),
    "partial with an array": lambda scale: functools.partial(scaled_kernel, scale=np.array([[scale]])),
    "closure": closure,
    "closure over an array": lambda scale: closure(np.array([[scale]])),
    "nested closure": lambda scale: closure(closure(scale)),
    "default": lambda scale: lambda X, Z, scale=scale: scale * (X @ Z.T),
    "keyword default": lambda scale: from_text(f"def f(X, Z, *, scale={scale}): return scale * (X @ Z.T)"),
    "constant": lambda scale: from_text(f"def f(X, Z): return {scale} * (X @ Z.T)"),
    "constant within": lambda scale: from_text(f"def f(X, Z): return (lambda: {scale})() * (X @ Z.T)"),
    "operation": lambda scale: from_text(f"def f(X, Z): return X @ Z.T {'+' if scale == 1 else '-'} 1"),
    "function": lambda scale: from_text(f"def f(X, Z): return np.{'tanh' if scale == 1 else 'sinh'}(X @ Z.T)"),
    "global": lambda scale: from_text("def f(X, Z): return SCALE * (X @ Z.T)", SCALE=scale),
    "global function": lambda scale: from_text("def f(X, Z): return g(X, Z)", g=closure(scale)),
    "own module": lambda scale: from_text("def f(X, Z): return m.scale * (X @ Z.T)", m=own_module(scale)),
    "closure over a module": lambda scale: over_module(own_module(scale)),
    "wrapped": wrapped,
    "attribute": with_attribute,
    "object": Kernel,
    "object with an array": lambda scale: Kernel(np.full((1, 1), scale)),
    "object with slots": Slotted,
    "dataclass": Fields,
    "state of the class": class_with,
    "bound method": lambda scale: Kernel(scale).method,
    "cache": lambda scale: functools.lru_cache(closure(scale)),
    "generator": lambda scale: Kernel(np.random.default_rng(int(scale))),
}


@pytest.mark.parametrize("name", PAIRS)
def test_functions_with_other_state_are_others(name: str) -> None:
    for where in ("kernel", "scorer"):
        problems = [
            make_problem(kernel=PAIRS[name](scale))
            if where == "kernel"
            else replace(make_problem(), scorers={"s": PAIRS[name](scale)})
            for scale in (1.0, 1.0, 2.0)
        ]
        first, same, other = map(fingerprint, problems)
        assert first == same
        assert first != other


def test_a_search_does_not_take_the_results_of_another(tmp_path: Path) -> None:
    X, y = load_iris(return_X_y=True)

    def search(power: int, where: Path | None) -> Any:
        def kernel(A: Any, B: Any) -> Any:
            return (A @ B.T / 50) ** power

        return SVCCV(Cs=[1.0], kernel=kernel, cv=3, resume=where)

    search(1, tmp_path).fit(X, y)
    with pytest.raises(ValueError, match=r"other data, folds or parameters.*functions with the same code and state"):
        search(7, tmp_path).fit(X, y)
    alone = search(1, None).fit(X, y)
    np.testing.assert_array_equal(search(1, tmp_path).fit(X, y).scores_["score"], alone.scores_["score"])


def test_scorers_with_other_arguments_are_others() -> None:
    def problem(beta: float) -> Problem:
        return replace(make_problem(), scorers={"f": make_scorer(fbeta_score, beta=beta, average="macro")})

    assert fingerprint(problem(1.0)) == fingerprint(problem(1.0)) != fingerprint(problem(2.0))


def _splits(problem: Problem, splitter: Any, groups: Any = None) -> Problem:
    return replace(problem, folds=tuple(splitter.split(problem.X, problem.y, groups)))


def test_everything_that_changes_scores_changes_the_fingerprint(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = make_problem()
    n = len(plain.y)
    X = plain.X.copy()
    X[0, 0] = np.nextafter(X[0, 0], 9.0)
    groups = np.arange(n) % 10
    kernel = replace(plain, params={"kernel": scaled_kernel})
    others = [
        plain,
        replace(plain, X=X),
        replace(plain, X=plain.X.astype(np.float32)),
        replace(plain, X=sparse.csr_array(plain.X)),
        replace(plain, y=np.roll(plain.y, 1)),
        replace(plain, classes=np.array(["a", "b", "d"])),
        replace(plain, classes=np.array(["a", "b", "c"], dtype=object)),
        replace(plain, sample_weight=np.ones(n)),
        replace(plain, sample_weight=np.r_[np.nextafter(1.0, 2), np.ones(n - 1)]),
        _splits(plain, StratifiedKFold(3, shuffle=True, random_state=1)),
        _splits(plain, StratifiedKFold(3, shuffle=True, random_state=np.random.RandomState(2))),
        _splits(plain, GroupKFold(3), groups),
        _splits(plain, GroupKFold(3), (groups + np.arange(n) // 60) % 10),
        replace(plain, params={"class_weight": "balanced"}),
        replace(plain, params={"class_weight": {"a": 1.0, "b": 2.0}}),
        replace(plain, params={"class_weight": {"a": 2.0, "b": 1.0}}),
        replace(plain, params={"tol": 1e-3}),
        replace(plain, params={"tol": np.nextafter(1e-3, 1)}),
        replace(plain, scorers={"score": None, "other": None}),
        kernel,
    ]
    found = [fingerprint(other) for other in others]
    assert len(set(found)) == len(others)
    wide = sparse.csr_array(plain.X)
    wide.indices = wide.indices.astype(np.int64)
    assert fingerprint(replace(plain, X=wide)) == found[3]
    monkeypatch.setattr(resume, "__version__", "99.0")
    assert fingerprint(plain) != found[0]


def test_what_is_in_a_circle_or_used_twice_ends() -> None:
    circle: list[Any] = [1.0]
    circle.append(circle)
    assert digest_of(circle) != digest_of([1.0, [1.0]])
    wide: Any = 1.0
    for _ in range(100):
        wide = [wide, wide]
    assert digest_of(wide) == digest_of(wide)


def deep() -> Any:
    value: Any = 1.0
    for _ in range(20_000):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("value", "what"),
    [
        (closure(threading.Lock()), "an object of type 'lock', whose state cannot be read"),
        (closure(each for each in [0]), "genexpr.*, whose state cannot be read"),
        (from_text("def f(X, Z): return eval('X @ Z.T')"), r"'f', which calls eval\(\)"),
        (from_text("def f(X, Z): return open('k').read()"), r"'f', which calls open\(\)"),
        (from_text("def f(X, Z):\n  import nowhere_at_all\n  return X @ Z.T"), "'f', which imports 'nowhere_at_all'"),
        (np.frompyfunc(max, 2, 1), "which no module has under its name"),
        (functools.partial(scaled_kernel, scale=own_module(1.0)), "the module 'own_kernels' as a value"),
        (deep(), "something that is nested too deeply"),
    ],
    ids=["lock", "generator", "eval", "open", "import", "ufunc", "module", "deep"],
)
def test_what_cannot_be_seen_is_refused(value: Any, what: str) -> None:
    with pytest.raises(OpaqueError, match=what):
        digest_of(value)
    with pytest.raises(ValueError, match=rf"resume= cannot tell.*kernel depends on .*{what}.*or leave resume out\.$"):
        fingerprint(make_problem(kernel=value))


def test_the_digest_is_the_same_in_every_process(tmp_path: Path) -> None:
    """For any hash seed, and any position of functions in the file."""
    text = """
    import functools, numpy as np
    from sklearn.metrics import make_scorer, fbeta_score
    from multimargin import MACHINES
    from multimargin.model_selection.fingerprints import digest_of
    NAMES = {"a", "b", "c", "d"}
    class Kernel:
        names = frozenset(NAMES)
        def __init__(self): self.rng = np.random.default_rng(0)
        def __call__(self, X, Z):
            from sklearn.metrics.pairwise import rbf_kernel
            return rbf_kernel(X, Z) * (len(self.names) if "a" in {"a", "b"} else np.exp(1)) + super().__sizeof__()
    print(digest_of([Kernel(), NAMES, lambda x: np.exp(x), make_scorer(fbeta_score, beta=2), MACHINES["ww"],
                     functools.partial(Kernel().__call__, 1), np.tanh, len, [].append, Kernel, np.array(["a", None])]))
    """
    digests = set()
    for seed in (0, 1, 2):
        file = tmp_path / f"kernel_{seed}.py"
        file.write_text("\n" * seed + textwrap.dedent(text))
        run = subprocess.run(
            [sys.executable, str(file)],
            env=os.environ | {"PYTHONHASHSEED": str(seed)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert run.returncode == 0, run.stderr
        digests.add(run.stdout)
    assert len(digests) == 1
