"""load_libsvm and dump_libsvm: LIBSVM's and LIBLINEAR's model files, distinguished by their first line."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from sklearn.utils.validation import check_is_fitted

from multimargin.base.files import check_path, write_text
from multimargin.estimators.linear_svc import LinearSVC
from multimargin.estimators.svc import SVC
from multimargin.fitting.parameters import check_integer
from multimargin.model_files.errors import FaultError, faults_of
from multimargin.model_files.liblinear_text import linear_svc_text, read_linear_svc
from multimargin.model_files.libsvm_text import read_svc, svc_text
from multimargin.model_files.saved_model import what_to_save
from multimargin.model_files.text_lines import read_lines


def load_libsvm(path: str | os.PathLike[str], n_features: int | None = None) -> SVC | LinearSVC:
    """Read a model file of LIBSVM (c_svc) or LIBLINEAR (support vector machines with an l2 penalty).

    Parameters
    ----------
    path : path
    n_features : int, default=None
        The number of columns of the data, which the files do not contain where the last ones are zero; by default the
        largest index in the file.

    Returns
    -------
    model : SVC or LinearSVC
        ``classes_`` are sorted; votes are counted in the file's order, so that ties go
        to the class that LIBSVM would take. A file with probabilities gives ``calibration="coupling"``, whose
        predictions follow them as those of ``svm-predict -b 1`` do; ``set_params(calibration=None)`` follows the votes.
        What the file does not contain (C, the rows of the support vectors) has its default.

    Raises
    ------
    ModelFileError
        A ValueError that names the file, the line and what is wrong with it.
    """
    name = Path(path)
    if n_features is not None:
        n_features = check_integer("n_features", n_features, low=1)
    with faults_of(name):
        lines = read_lines(name)
        first = lines.lines[0].split()[:1] if lines.lines else []
        if first == [b"svm_type"]:
            return read_svc(lines, n_features)
        if first == [b"solver_type"]:
            return read_linear_svc(lines, n_features)
        raise FaultError("its first line is neither a svm_type of LIBSVM nor a solver_type of LIBLINEAR")


def dump_libsvm(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted model as a text file that LIBSVM (an SVC) or LIBLINEAR (a LinearSVC) reads.

    Parameters
    ----------
    model : SVC, LinearSVC, SVCCV or LinearSVCCV
        Fitted, with integers as labels. An SVC of one-vs-one votes, or of two classes; a LinearSVC of one function for
        each class, or of two classes. Other models raise ValueError.
    path : path
        Written atomically. Numbers are read back exactly.
    """
    checked, estimator = check_path(path), what_to_save(model)
    if not isinstance(estimator, SVC | LinearSVC):
        raise ValueError(
            f"LIBSVM's files have one kernel for all pairs of classes, a {type(estimator).__name__} has several; use "
            "save_model."
        )
    check_is_fitted(estimator)
    write_text(checked, linear_svc_text(estimator) if isinstance(estimator, LinearSVC) else svc_text(estimator))
