"""save_model and load_model: a fitted estimator as one file; reading it never executes code."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from multimargin._core import __version__
from multimargin.base.files import check_path
from multimargin.model_files.container import read_container, write_container
from multimargin.model_files.errors import faults_of, require
from multimargin.model_files.nodes import pack_estimator, unpack_estimator
from multimargin.model_files.records import Record, Writer
from multimargin.model_files.saved_model import what_to_save


def save_model(estimator: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator to a file that ``load_model`` reads.

    Parameters
    ----------
    estimator : SVC, LinearSVC, PerPairSVC, OnlineSVC, SVCCV, LinearSVCCV, or a Pipeline of a scaler and one of these
        Fitted. Of a search the model that it has trained is saved; of an OnlineSVC the SVC that predicts as it does
        now. A callable kernel is refused; ``on_progress``, the trace and the state for warm starts are left out.
    path : path
        Written atomically; the same model gives the same bytes.
    """
    writer = Writer()
    checked = check_path(path)
    record = pack_estimator(what_to_save(estimator), "model", writer)
    document = {"written_by": f"multimargin {__version__}", "model": record}
    label = getattr(estimator, "_label_column", None)
    write_container(checked, document if label is None else document | {"label": str(label)}, writer.arrays)


def load_model(path: str | os.PathLike[str]) -> Any:
    """Read an estimator that ``save_model`` wrote.

    It predicts bit for bit as before, on the same kind of processor, and can be verified, cloned and fitted again.

    Parameters
    ----------
    path : path

    Returns
    -------
    estimator : SVC, LinearSVC or PerPairSVC, or a Pipeline of a scaler and one of these

    Raises
    ------
    ModelFileError
        A ValueError that names the file and what is wrong with it.
    """
    name = Path(path)
    with faults_of(name):
        document, arrays = read_container(name)
        record = Record(document, arrays, "document")
        record.text("written_by")
        require(set(record.fields) - {"label"} == {"written_by", "model"}, "it has records that are not known")
        model = unpack_estimator(record.child("model"))
        if "label" in record.fields:  # the name of its column in the data file, for the command line
            model._label_column = record.text("label")
        return model
