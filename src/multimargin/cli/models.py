"""Model files as the commands read and write them: LIBSVM's text where it can hold the whole model, else our own
format."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import numpy as np
from sklearn.pipeline import Pipeline

from multimargin import model_files
from multimargin.data_files.errors import fault
from multimargin.kernels.table import LIBSVM_NAMES

LIBSVM, OWN, ONNX = "libsvm", "multimargin", "onnx"
FORMATS = ("auto", LIBSVM, OWN)
# The first words of text files of LIBSVM and LIBLINEAR.
TEXT_HEADS = (b"svm_type", b"kernel_type", b"solver_type", b"nr_class")
# Our own files begin with a length in eight bytes and these bytes.
OWN_HEAD = b'{"__metadata__"'


def is_text_model(path: Path) -> bool:
    """Return whether a file is a model of LIBSVM or LIBLINEAR."""
    return _head(path).startswith(TEXT_HEADS)


def is_model(path: Path) -> bool:
    """Return whether a file is a model of any format that is known."""
    head = _head(path)
    return head.startswith(TEXT_HEADS) or OWN_HEAD in head


def _head(path: Path) -> bytes:
    try:
        with path.open("rb") as handle:
            return handle.read(32)
    except OSError as error:
        raise fault(path, f"cannot be read ({error.strerror}); give the name of a file that exists") from error


def load(path: Path) -> Any:
    """Return the estimator of a model file of either format."""
    return model_files.load_libsvm(path) if is_text_model(path) else model_files.load_model(path)


def choose_format(asked: str, params: dict[str, Any], y: np.ndarray, *, own: bool = False) -> str:
    """Return the format to write, before the long work: "auto" is LIBSVM's where it can express the machine.

    ``own``: there is something else that it does not hold.
    """
    if asked != "auto" or own:
        return asked if asked != "auto" else OWN
    expressible = (
        params["multi_class"] == "ovo"
        and params["bias"] in ("auto", "exact")
        and params["kernel"] in LIBSVM_NAMES
        and params["calibration"] in (None, "coupling")
        and y.dtype.kind in "iu"
    )
    return LIBSVM if expressible else OWN


def save(model: Any, path: Path, kind: str) -> None:
    """Write a fitted estimator atomically."""
    if isinstance(model, Pipeline) and kind != OWN:
        raise click.ClickException(
            f"the model scales its columns, which the format {kind} does not hold; scale the data first, and train "
            "without --scale."
        )
    writers = {LIBSVM: model_files.dump_libsvm, OWN: model_files.save_model, ONNX: model_files.export_onnx}
    try:
        writers[kind](model, path)
    except OSError as error:
        raise click.ClickException(
            f"the model {path} could not be written ({error.strerror}); free some space or choose another folder."
        ) from error
