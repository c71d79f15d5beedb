"""``multimargin info``: the facts for a bug report; or the contents of a file, with a diagnosis."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import click
import numpy as np

from multimargin import __version__, _core, diagnose
from multimargin.base.matrices import is_sparse
from multimargin.base.resources import MEGABYTE, available_bytes, cache_bytes, n_threads
from multimargin.cli import models
from multimargin.cli.command import Command
from multimargin.cli.data import named, read_table
from multimargin.cli.options import DataPath, data_options
from multimargin.cli.scaled import parts_of
from multimargin.data_files import Table

PACKAGES = ("scikit-learn", "numpy", "scipy", "joblib", "matplotlib")
MOST_CLASSES = 30
# Not stored in the text files of LIBSVM and LIBLINEAR: models read from them have the defaults.
UNTOLD = ("C", "bias", "loss", "tol", "certificate")


def facts() -> dict[str, str]:
    """Return the facts about this installation, in the order of display."""
    targets = _core.simd_targets()
    found = {
        "multimargin": __version__,
        "instruction set": f"{targets[-1]} (of {', '.join(targets)})",
        "threads": str(n_threads()),
        "available memory": f"{available_bytes() // MEGABYTE:,} MB",
        "cache_size='auto'": f"{cache_bytes('auto') // MEGABYTE:,} MB",
        "Python": f"{platform.python_version()} ({platform.python_implementation()})",
        "platform": platform.platform(),
    }
    return found | {package: _version_of(package) for package in PACKAGES}


def _version_of(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


@click.command(cls=Command, context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("file", type=DataPath, required=False)
@data_options
def info(file: Path | None, **given: Any) -> None:
    """Show versions, instruction set, threads and memory for a bug report; or what is in FILE, data or a model."""
    if file is None:
        _show(facts())
    elif models.is_model(file):
        known = dict(_model_facts(models.load(file)))
        untold = UNTOLD if models.is_text_model(file) else ()
        _show({name: value for name, value in known.items() if name not in untold})
    else:
        table = read_table(file, given, label_needed=False)
        _show(dict(_data_facts(table)))
        if table.y is not None and len(np.unique(table.y)) > 1:
            click.echo("")
            click.echo(str(diagnose(named(table), table.y)))


def _show(known: dict[str, str]) -> None:
    width = max(map(len, known))
    for name, value in known.items():
        click.echo(f"{name:<{width}}  {value}")


def _data_facts(table: Table) -> Iterator[tuple[str, str]]:
    """The contents of a data file."""
    yield "rows", str(table.n_rows)
    yield "features", str(table.n_features)
    values = np.append(table.X.data, 0.0) if is_sparse(table.X) else table.X
    nonzero = np.count_nonzero(values)
    yield "nonzero values", f"{nonzero} ({100 * nonzero / max(1, table.n_rows * table.n_features):.3g} %)"
    yield "smallest and largest value", f"{values.min():g}, {values.max():g}"
    if table.y is None:
        yield "labels", "none"
        return
    classes, counts = np.unique(table.y, return_counts=True)
    listed = ", ".join(f"{label}: {count}" for label, count in zip(classes.tolist(), counts, strict=True))
    more = f"{len(classes)} classes, {counts.min()} to {counts.max()} rows each"
    yield "classes", listed if len(classes) <= MOST_CLASSES else more


def _model_facts(model: Any) -> Iterator[tuple[str, str]]:
    """The contents of a model file."""
    scaler, model = parts_of(model)
    if scaler is not None:
        yield "scaling", type(scaler).__name__
    yield "model", type(model).__name__
    for name in ("multi_class", "kernel", "C", "gamma", "degree", "coef0", "bias", "loss", "tol", "calibration"):
        if hasattr(model, name):
            yield name, str(getattr(model, name))
    yield "classes", ", ".join(map(str, model.classes_))
    yield "features", str(model.n_features_in_)
    if hasattr(model, "support_"):
        yield "support vectors", str(len(model.support_))
    if getattr(model, "certificate_", None) is not None:
        yield "certificate", str(model.certificate_)
