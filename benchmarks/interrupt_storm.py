"""Ctrl-C at every moment of every public call: the object is usable afterwards, or unchanged.

    python -m benchmarks.interrupt_storm [--count 1000] [--seed 0] [--signal term]

Each call is interrupted at a moment that is counted in function calls from its start, so that runs are repeatable and
cover the moments between the solvers as well as those within them. After it the object must be as it was before, or
fitted with finite scores and a certificate that ``verify`` agrees with; with on_interrupt="keep" a fit must return.
Prints the broken calls and their number.
"""

from __future__ import annotations

import signal
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import click
import numpy as np
from sklearn.datasets import make_classification
from sklearn.exceptions import NotFittedError

from benchmarks.keeping import keep
from multimargin import (
    SVC,
    SVCCV,
    LinearSVC,
    LinearSVCCV,
    OnlineSVC,
    compare_machines,
    diagnose,
    dump_libsvm,
    load_libsvm,
    load_model,
    save_model,
    svm_path,
    verify,
)
from multimargin.base.interrupts import deferred
from multimargin.cli import main as command
from multimargin.model_selection.pair_selection import PerPairSVC

X, y = make_classification(90, 5, n_informative=4, n_redundant=0, n_classes=3, flip_y=0.1, random_state=0)
FAR = X + 100.0 * y[:, None]  # classes that a hard margin separates
TWO = y > 0


@dataclass
class Striker:
    """Sends SIGINT at the n-th call of a function (never: 0), and records where the call was then."""

    moment: int = 0
    n_calls: int = 0
    within: bool = False
    struck_within: bool = False

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        if event == "return" and frame.f_code is deferred.__enter__.__code__:
            self.within = True
        if event == "call" and frame.f_code is deferred.__exit__.__code__:
            self.within = False
        if event in ("call", "c_call"):
            self.n_calls += 1
            if self.n_calls == self.moment:
                self.struck_within = self.within
                signal.raise_signal(signal.SIGINT)


@contextmanager
def striking(striker: Striker) -> Iterator[Striker]:
    """Watch the calls of a block."""
    sys.setprofile(striker)
    try:
        yield striker
    finally:
        sys.setprofile(None)


@dataclass(frozen=True)
class Case:
    """A public call: the function that makes its object, the call, and the check afterwards ('' if nothing is
    wrong)."""

    name: str
    make: Callable[[], Any]
    call: Callable[[Any], Any]
    check: Callable[[Any], str]
    keeps: bool = False


def fit_case(name: str, make: Callable[[], Any], data: tuple[Any, Any] = (X, y)) -> Case:
    """The fit of an estimator that was not fitted before."""

    def check(model: Any) -> str:
        try:
            found = model.predict(data[0])
        except NotFittedError:
            return ""
        scores = model.decision_function(data[0]) if hasattr(model, "decision_function") else np.zeros(1)
        if found.shape != data[1].shape or not np.isfinite(scores).all():
            return "scores are not finite"
        certificate = getattr(model, "certificate_", None)
        if certificate is None or not isinstance(model, SVC | LinearSVC) or isinstance(model, LinearSVCCV):
            return ""
        honest = certificate.stop_reason != "converged" or verify(model, *data).optimal
        return "" if honest else "verify does not confirm the certificate"

    return Case(name, make, lambda model: model.fit(*data), check, getattr(make(), "on_interrupt", "") == "keep")


def dot(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    return np.asarray(A @ B.T)


KERNEL: dict[str, dict[str, Any]] = {
    "ovo": {},
    "ovo without bias": {"bias": "none"},
    "dag squared": {"multi_class": "dag", "loss": "squared_hinge"},
    "ww": {"multi_class": "ww"},
    "cs exact": {"multi_class": "cs", "bias": "exact"},
    "ova": {"multi_class": "ova"},
    "llw regularized": {"multi_class": "llw", "bias": "regularized", "solver": "s2do"},
    "frank-wolfe": {"multi_class": "ww", "bias": "exact", "solver": "frank-wolfe"},
    "callable": {"kernel": dot},
    "sigmoid curves": {"calibration": "sigmoid"},
    "coupling": {"calibration": "coupling"},
    "progress": {"multi_class": "atm", "on_progress": lambda progress: False, "trace": True},
}
LINEAR: dict[str, dict[str, Any]] = {
    "ova": {},
    "ova regularized": {"bias": "regularized"},
    "ovo squared": {"multi_class": "ovo", "loss": "squared_hinge"},
    "ovo": {"multi_class": "ovo"},
    "ww": {"multi_class": "ww"},
    "cs none": {"multi_class": "cs", "bias": "none"},
}
OF_TWO: dict[str, dict[str, Any]] = {
    "pairs": {"solver": "most-violating-pair"},
    "asvm": {"solver": "asvm", "loss": "squared_hinge", "bias": "regularized"},
    "lsvm": {"solver": "lsvm", "loss": "squared_hinge", "bias": "regularized"},
}


def fits() -> Iterator[Case]:
    for mode in ("raise", "keep"):
        own: dict[str, Any] = {"on_interrupt": mode}
        for name, params in KERNEL.items():
            yield fit_case(f"SVC {name} {mode}", partial(SVC, **params, **own))
        for name, params in LINEAR.items():
            yield fit_case(f"LinearSVC {name} {mode}", partial(LinearSVC, **params, **own))
        for name, params in OF_TWO.items():
            yield fit_case(f"LinearSVC {name} {mode}", partial(LinearSVC, **params, **own), (X, TWO))
        for name in ("ovo", "ww"):
            hard: dict[str, Any] = {"C": np.inf, "multi_class": name, **own}
            yield fit_case(f"SVC hard {name} {mode}", partial(SVC, **hard), (FAR, y))
            yield fit_case(f"LinearSVC hard {name} {mode}", partial(LinearSVC, **hard), (FAR, y))
        small: dict[str, Any] = {"Cs": [0.1, 1], "cv": 2, **own}
        yield fit_case(f"LinearSVCCV {mode}", partial(LinearSVCCV, **small))
        for name in ("ovo", "ww"):
            yield fit_case(f"SVCCV {name} {mode}", partial(SVCCV, multi_class=name, gammas=[0.1], **small))
        yield fit_case(f"PerPairSVC {mode}", partial(PerPairSVC, estimator=SVC(**own)))


def stream_case(name: str, call: Callable[[OnlineSVC], Any], machine: str) -> Case:
    def make() -> OnlineSVC:
        return OnlineSVC(multi_class=machine).partial_fit(X[:30], y[:30], classes=[0, 1, 2])

    def check(model: OnlineSVC) -> str:
        if not np.isfinite(model.decision_function(X)).all():
            return "scores are not finite"
        model.partial_fit(X[:5], y[:5])
        return "" if np.isfinite(model.decision_function(X)).all() else "the stream does not go on"

    return Case(f"OnlineSVC.{name} {machine}", make, call, check)


def streams() -> Iterator[Case]:
    for machine in ("ovo", "ww"):
        yield stream_case("fit", lambda model: model.fit(X, y), machine)
        yield stream_case("partial_fit", lambda model: model.partial_fit(X, y), machine)
        yield stream_case("forget", lambda model: model.forget([1, 2, 3]), machine)
        yield stream_case("finalize", lambda model: model.finalize(), machine)
        yield stream_case("query", lambda model: model.query(X, 3, "diverse"), machine)


def reads() -> Iterator[Case]:
    """Calls that change nothing: after them the model is the same."""
    model = SVC(calibration="sigmoid").fit(X, y)
    linear = LinearSVC(multi_class="ww").fit(X, y)
    before = model.predict_proba(X), linear.decision_function(X)

    def same(_: Any) -> str:
        now = model.predict_proba(X), linear.decision_function(X)
        return "" if all(np.array_equal(a, b) for a, b in zip(before, now, strict=True)) else "the model has changed"

    calls: dict[str, Callable[[Any], Any]] = {
        "predict": lambda _: model.predict(X),
        "LinearSVC.predict": lambda _: linear.predict(X),
        "verify": lambda _: verify(model, X, y),
        "verify linear": lambda _: verify(linear, X, y),
        "diagnose": lambda _: diagnose(X, y),
        "svm_path": lambda _: svm_path(X, y, Cs=[0.1, 1]),
        "svm_path SVC": lambda _: svm_path(X, y, Cs=[0.1, 1], estimator=SVC(multi_class="ww")),
        "compare_machines": lambda _: compare_machines(X, y, machines=["ovo", "ww"], Cs=[1], gammas=[0.1], cv=2),
    }
    for name, call in calls.items():
        yield Case(name, lambda: None, call, same)


def files(directory: Path) -> Iterator[Case]:
    """Calls that write: the file is the old one or the new one, and no other file is left."""
    model, other = SVC().fit(X, y), SVC(C=10).fit(X, y)
    rows = directory / "rows.svm"
    rows.write_text("".join(f"{c} 1:{a[0]} 2:{a[1]}\n" for a, c in zip(X.tolist(), y.tolist(), strict=True)))

    def whole(load: Callable[[Any], Any]) -> Callable[[Path], str]:
        def check(path: Path) -> str:
            load(path)
            extra = [each.name for each in directory.iterdir() if each not in (path, rows) and each.suffix != ".keep"]
            return f"{extra} is left" if extra else ""

        return check

    def make(save: Callable[[Any, Any], Any]) -> Callable[[], Path]:
        def made() -> Path:
            for each in directory.iterdir():
                if each != rows:
                    each.unlink()
            save(model, directory / "model")
            return directory / "model"

        return made

    def run(path: Path) -> None:
        try:
            command(["train", "-q", str(rows), str(path)], prog_name="multimargin")
        except SystemExit as end:
            if end.code == 130:
                raise KeyboardInterrupt from None
            if end.code not in (0, None):
                raise RuntimeError(f"the command ended with {end.code}") from None

    yield Case("save_model", make(save_model), lambda path: save_model(other, path), whole(load_model))
    yield Case("dump_libsvm", make(dump_libsvm), lambda path: dump_libsvm(other, path), whole(load_libsvm))
    yield Case("multimargin train", make(dump_libsvm), run, whole(load_libsvm))


def count_calls(case: Case) -> int:
    """Return how many moments a call has; imports and caches of a first call are not counted."""
    case.call(case.make())
    made = case.make()
    with striking(Striker()) as striker:
        case.call(made)
    return striker.n_calls


def strike(case: Case, moment: int) -> str:
    """Interrupt a call at a moment; return what is wrong after it."""
    made = case.make()
    striker, raised = Striker(moment), False
    try:
        with striking(striker):
            case.call(made)
    except KeyboardInterrupt:
        raised = True
    except Exception as error:
        return f"raised {type(error).__name__}: {error}"
    if case.keeps and raised and striker.struck_within:
        return "keep raised"
    try:
        return case.check(made)
    except Exception as error:
        return f"is broken: {type(error).__name__}: {error}"


def storm(count: int, seed: int = 0) -> tuple[int, list[str]]:
    """Return how many interrupts were sent and what broke; all calls take turns."""
    rng = np.random.default_rng(seed)
    broken: list[str] = []
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore Ctrl-C
    try:
        with warnings.catch_warnings(), tempfile.TemporaryDirectory() as directory:
            warnings.simplefilter("ignore")
            cases = [*fits(), *streams(), *reads(), *files(Path(directory))]
            each = -(-count // len(cases))
            for case in cases:
                # As many moments early and late as between: half of the draws are at the ends.
                n = count_calls(case)
                moments = np.where(rng.random(each) < 0.5, rng.integers(1, n + 1, each), rng.integers(1, 60, each))
                complaints = ((int(moment), strike(case, int(moment))) for moment in moments)
                broken += [f"{case.name} at call {at} of {n}: {what}" for at, what in complaints if what]
    finally:
        signal.signal(signal.SIGINT, before)
    return each * len(cases), broken


@click.command()
@click.option("--count", default=1000, help="Interrupts to send, rounded up to as many for each call.")
@click.option("--seed", default=0)
@click.option("--signal", "which", type=click.Choice(["int", "term"]), default="int", help="Ctrl-C, or SIGTERM.")
@click.option("--out", default=None, help="Directory that keeps the figures, docs/measured/promises for the page.")
def main(count: int, seed: int, which: str, out: str | None) -> None:
    """Interrupt every public call at random moments."""
    if which == "term":
        from benchmarks.term_storm import term_storm  # which takes its calls from here

        sent, broken = term_storm(count, seed)
    else:
        sent, broken = storm(count, seed)
    print("\n".join(broken))
    print(f"{sent} interrupts, {len(broken)} unusable")
    command = f"python -m benchmarks.interrupt_storm --count {count}"
    command += "" if which == "int" else " --signal term"
    keep(
        out, "interrupts" if which == "int" else "terminations", command, {"interrupts": sent, "unusable": len(broken)}
    )
    sys.exit(1 if broken else 0)


if __name__ == "__main__":
    main()
