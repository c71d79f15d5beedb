"""Mutated model files: ours, LIBSVM's and LIBLINEAR's.

Our files are changed in two ways: their bytes, which the checksum must always detect, and their contents, with a valid
checksum, as an attacker would. A file that is then read must hold a model that predicts its own classes, and that is
the same after it is written and read once more.
"""

from __future__ import annotations

import copy
import faulthandler
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
import numpy as np
from scipy import sparse
from sklearn.datasets import load_iris

from benchmarks.fuzz_texts import agrees
from multimargin import SVC, LinearSVC, ModelFileError, dump_libsvm, load_libsvm, load_model, save_model
from multimargin.model_files.container import read_container, write_container
from multimargin.model_selection.pair_selection import PerPairSVC
from multimargin.problems.machines import Bound, ComponentTable, Machine

STDERR = 2
SECONDS = 20.0  # seconds for one file before it counts as a hang
STRANGE: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    1,
    2,
    2**31,
    2**63,
    10**400,
    1e308,
    -1e308,
    5e-324,
    "",
    "ww",
    "dag",
    "ovo",
    "precomputed",
    "model.n_iter",
    [],
    {},
    [[]],
    {"float": "nan"},
    {"float": "inf"},
    {"list": [1, "a"]},
    {"array": "model.n_iter"},
    {"machine": {"known": "cs"}},
)
STRANGE_BYTES = (b"-", b".", b" ", b"\n", b":", b"e", b"9", b"0", b"nan", b"inf", b"\x00", b"\xff", b"1e999")


@dataclass
class Tally:
    """Counts of the results."""

    outcomes: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    slowest: float = 0.0


def seeds(folder: Path) -> dict[str, list[Path]]:
    """Write small valid files of every kind."""
    X, y = load_iris(return_X_y=True)
    X, y = X[::6], y[::6]
    mine = Machine("mine", Bound.BOX, False, ComponentTable.relative(3, 3.0))
    ours = [
        SVC().fit(X, y),
        SVC(multi_class=mine, calibration="sigmoid").fit(X, np.array(["a", "b", "c"])[y]),
        SVC(calibration="isotonic", kernel="poly").fit(sparse.csr_array(X), y),
        SVC(kernel="precomputed", class_weight={0: 2.0, 1: 1, 2: 1}).fit(X @ X.T, y),
        LinearSVC(multi_class="dag").fit(X, y),
        PerPairSVC(C=[1.0, 2.0, 3.0]).fit(X, y),
    ]
    texts = [SVC(kernel=kernel).fit(X, y) for kernel in ("linear", "rbf", "poly", "sigmoid")]
    texts += [SVC(kernel="precomputed").fit(X @ X.T, y), SVC(calibration="coupling").fit(X, y)]
    linear = [LinearSVC().fit(X, y), LinearSVC(multi_class="cs", bias="none").fit(X, y)]
    linear.append(LinearSVC().fit(X[y > 0], y[y > 0]))
    paths: dict[str, list[Path]] = {"ours": [], "text": []}
    for number, clf in enumerate(ours):
        paths["ours"].append(folder / f"ours{number}")
        save_model(clf, paths["ours"][-1])
    for number, clf in enumerate([*texts, *linear]):
        paths["text"].append(folder / f"text{number}")
        dump_libsvm(clf, paths["text"][-1])
    return paths


def mutate_bytes(content: bytes, rng: np.random.Generator) -> bytes:
    """Change some bytes, delete or insert some, or truncate the file."""
    for _ in range(int(rng.integers(1, 4))):
        place, kind = int(rng.integers(0, max(1, len(content)))), int(rng.integers(0, 6))
        length = int(rng.integers(1, 40))
        if kind == 0:
            content = content[:place] + bytes([int(rng.integers(0, 256))]) + content[place + 1 :]
        elif kind == 1:
            content = content[:place] + content[place + length :]
        elif kind == 2:
            content = content[:place] + STRANGE_BYTES[int(rng.integers(0, len(STRANGE_BYTES)))] + content[place:]
        elif kind == 3:
            content = content[: place + length] + content[place:]
        elif kind == 4:
            content = content[:place]
        else:
            lines = content.split(b"\n")
            i, j = rng.integers(0, len(lines), 2)
            lines[i], lines[j] = lines[j], lines[i]
            content = b"\n".join(lines)
    return content


def _leaves(value: Any, way: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the ways to all values of a document."""
    found = [way] if way else []
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in pairs:
        found += _leaves(each, (*way, key))
    return found


def mutate_contents(document: Any, arrays: dict[str, np.ndarray], rng: np.random.Generator) -> None:
    """Change a value of the document or of an array, in place."""
    if rng.random() < 0.4:
        name = list(arrays)[int(rng.integers(0, len(arrays)))]
        arrays[name] = _strange_array(arrays[name], rng)
        return
    ways = _leaves(document)
    *way, last = ways[int(rng.integers(0, len(ways)))]
    parent = document
    for step in way:
        parent = parent[step]
    kind = int(rng.integers(0, 4))
    if kind == 0:
        del parent[last]
    elif kind == 1 and type(parent[last]) in (int, float):
        parent[last] = parent[last] + int(rng.integers(-2, 3))
    elif kind == 2:
        *other, end = ways[int(rng.integers(0, len(ways)))]
        source = document
        try:
            for step in other:
                source = source[step]
            parent[last] = copy.deepcopy(source[end])
        except (KeyError, IndexError, TypeError):
            return
    else:
        parent[last] = copy.deepcopy(STRANGE[int(rng.integers(0, len(STRANGE)))])


def _strange_array(array: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    kind = int(rng.integers(0, 6))
    changed = array.copy()
    if kind == 0:
        return changed.astype([np.float32, np.float64, np.int64, np.int8, np.bool_][int(rng.integers(0, 5))])
    if kind == 1:
        return changed[: int(rng.integers(0, len(changed) + 1))]
    if kind == 2:
        return np.concatenate([changed, changed])
    if kind == 3:
        return changed.reshape(-1) if rng.random() < 0.5 else changed.T.copy()
    if kind == 4 and changed.size:
        with np.errstate(all="ignore"):
            values = np.array([np.nan, np.inf, -1, 0, 1e9, 1e308, 7]).astype(changed.dtype)
        changed.reshape(-1)[int(rng.integers(0, changed.size))] = values[int(rng.integers(0, 7))]
        return changed
    return changed[::-1].copy()


def use(clf: Any) -> np.ndarray:
    """Predict some rows; every label must be one of the model's classes."""
    width = clf.n_features_in_
    rng = np.random.default_rng(0)
    points: Any = rng.normal(size=(3, width)) if width < 10_000 else sparse.csr_array((3, width))
    predicted = clf.predict(points)
    if not np.isin(predicted, clf.classes_).all():
        raise AssertionError("a label that is no class was predicted")
    return np.asarray(predicted)


def read_and_use(read: Callable[[Path], Any], write: Callable[[Any, Path], None], path: Path) -> str:
    """Return "refused" or "read"; raises all other errors."""
    try:
        clf = read(path)
    except ModelFileError:
        return "refused"
    predicted = use(clf)
    again = path.with_name("again")
    write(clf, again)
    if not np.array_equal(use(read(again)), predicted):
        raise AssertionError("a model that was read is another one after it was written")
    return "read"


def try_one(kind: str, paths: dict[str, list[Path]], rng: np.random.Generator, folder: Path) -> str:
    """Mutate one file and read it; return the result."""
    path = folder / "mutated"
    of_kind = paths["text" if kind == "text" else "ours"]
    source = of_kind[int(rng.integers(0, len(of_kind)))]
    if kind == "contents":
        document, arrays = read_container(source)
        for _ in range(int(rng.integers(1, 3))):
            mutate_contents(document, arrays, rng)
        try:
            write_container(path, document, arrays)
        except (ValueError, KeyError):  # NaN in the document, an array of another kind: no file
            return "not written"
        return read_and_use(load_model, save_model, path)
    content = source.read_bytes()
    mutated = mutate_bytes(content, rng)
    path.write_bytes(mutated)
    if kind == "text":
        outcome = read_and_use(_read_text, dump_libsvm, path)
        clf = _read_text(path) if outcome == "read" else None
        if clf is not None and clf.n_features_in_ < 10_000 and not agrees(clf, mutated):
            raise AssertionError("a file was read as something that it does not say")
        return outcome
    outcome = read_and_use(load_model, save_model, path)
    if outcome == "read" and mutated != content:
        raise AssertionError("a damaged file was read")
    return outcome


def _read_text(path: Path) -> Any:
    return load_libsvm(path)


def fuzz_models(count: int, seed: int) -> Tally:
    """Read so many mutated files; each follows from the seed and its number alone."""
    tally = Tally()
    with tempfile.TemporaryDirectory() as name, warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        folder = Path(name)
        paths = seeds(folder)
        for number in range(count):
            kind = ("bytes", "contents", "text")[number % 3]
            rng = np.random.default_rng([seed, number])
            began = time.perf_counter()
            faulthandler.dump_traceback_later(SECONDS * 10, exit=True, file=STDERR)
            try:
                tally.outcomes[f"{kind}: {try_one(kind, paths, rng, folder)}"] += 1
            except Exception as error:  # any other error is a failure
                tally.faults.append(f"{kind} {number} of seed {seed}: {type(error).__name__}: {error}")
            finally:
                faulthandler.cancel_dump_traceback_later()
            tally.slowest = max(tally.slowest, time.perf_counter() - began)
    return tally


@click.command()
@click.option("--count", default=100_000, show_default=True, help="How many files to read.")
@click.option("--seed", default=0, show_default=True)
def models(count: int, seed: int) -> None:
    """Model files: ours, LIBSVM's and LIBLINEAR's."""
    tally = fuzz_models(count, seed)
    for outcome, n in sorted(tally.outcomes.items()):
        click.echo(f"{outcome:<24} {n:>9,}")
    click.echo(f"{'slowest file':<24} {tally.slowest:>9.2f} s")
    for fault in tally.faults[:50]:
        click.echo(fault)
    click.echo(f"{len(tally.faults)} faults in {count:,} files")
    if tally.faults or tally.slowest > SECONDS:
        raise SystemExit(1)
