"""LIBSVM's model files (svm_type c_svc). LIBSVM's rho is the negative of our intercept, A and B of its sigmoids are the
negatives of our slope and offset; its labels come in any order, ours are sorted."""

from __future__ import annotations

import itertools
import re
from typing import Any

import numpy as np
from scipy import sparse

from multimargin._typing import DataMatrix, FloatArray
from multimargin.base.matrices import is_sparse, tidy
from multimargin.estimators.svc import SVC
from multimargin.fitting.spec import FitSpec
from multimargin.kernels.spec import KernelSpec
from multimargin.kernels.table import LIBSVM_NAMES, parameters_of
from multimargin.model_files.errors import require
from multimargin.model_files.parts import MAX_DEGREE
from multimargin.model_files.text_lines import (
    LARGEST,
    NUMBER,
    Lines,
    distinct_labels,
    labels_to_write,
    unknown_certificate,
)
from multimargin.models.calibration import PairCalibrator, Sigmoid
from multimargin.models.pair_model import PairModel, pair_model_attributes
from multimargin.problems.schemes import DAG, ONE_VS_ONE, pair_list

HEAD = ("svm_type", "kernel_type", "degree", "gamma", "coef0")
KEYS = (*HEAD, "nr_class", "total_sv", "rho", "label", "probA", "probB", "nr_sv")
# From this share of nonzeros on the support vectors become dense.
DENSE_SHARE = 0.5


def read_svc(lines: Lines, n_features: int | None) -> SVC:
    """Return the SVC of a model file; ``n_features`` is the number of columns, by default the largest index."""
    lines.read_header(KEYS, "SV")
    lines.word("svm_type", ("c_svc",), "only models of c_svc are read")
    kernel = _read_kernel(lines)
    (d,) = lines.integers("nr_class", 1, 2)
    (total,) = lines.integers("total_sv", 1, 0)
    labels = distinct_labels(lines.integers("label", d, -LARGEST))
    counts = np.array(lines.integers("nr_sv", d, 0), dtype=np.int64)
    require(int(counts.sum()) == total, "its nr_sv do not sum to its total_sv")
    n_pairs = d * (d - 1) // 2
    rho = np.array(lines.reals("rho", n_pairs))
    curves = [lines.reals(key, n_pairs) for key in ("probA", "probB") if key in lines.header]
    require(len(curves) != 1, "it has only one of probA and probB")
    coef, rows = _read_vectors(lines, total, d - 1, n_features, precomputed=kernel.name == "precomputed")
    model = _sorted_model(labels, counts, (coef, rows), rho, kernel)
    calibrator = None
    if curves:
        calibrator = _sorted_curves(labels, np.array(curves))
    return _make_svc(model, np.sort(labels), rows.shape[1], calibrator)


def _read_kernel(lines: Lines) -> KernelSpec:
    theirs = {name: ours for ours, name in LIBSVM_NAMES.items()}
    name = theirs[lines.word("kernel_type", tuple(theirs), f"known are {', '.join(theirs)}")]
    needed = parameters_of(name)
    for key in ("degree", "gamma", "coef0"):
        require((key in lines.header) == (key in needed), f"a kernel {theirs_of(name)} with or without {key!r} is none")
    gamma = lines.reals("gamma", 1)[0] if "gamma" in needed else 1.0
    require(gamma >= 0, "its gamma is negative")
    degree = lines.integers("degree", 1, 0, MAX_DEGREE)[0] if "degree" in needed else 3
    return KernelSpec(name, gamma, degree, lines.reals("coef0", 1)[0] if "coef0" in needed else 0.0)


def theirs_of(name: str) -> str:
    """Return LIBSVM's name of a kernel."""
    return LIBSVM_NAMES[name]


def _read_vectors(
    lines: Lines, total: int, width: int, n_features: int | None, *, precomputed: bool
) -> tuple[FloatArray, DataMatrix]:
    """Return coefficients (n_SV, width) and support vectors, in the file's order."""
    entry = rb"[ \t]+0:\d{1,10}" if precomputed else rb"(?:[ \t]+\d{1,10}:" + NUMBER + rb")*"
    form = re.compile(rb"[ \t]*" + NUMBER + rb"(?:[ \t]+" + NUMBER + rb"){%d}" % (width - 1) + entry + rb"[ \t]*\r?")
    coef, values, indices, starts = [], [], [], [0]
    for number, line in lines.rows(total, form, "support vectors"):
        words = line.split()
        coef.append([float(word) for word in words[:width]])
        own = [-1, *(int(word.partition(b":")[0]) for word in words[width:])]
        ascending = all(before < after for before, after in itertools.pairwise(own))
        require(
            ascending and (precomputed or 0 not in own[1:2]), f"line {number} has indices that do not ascend from 1"
        )
        indices += own[1:]
        values += [float(word.partition(b":")[2]) for word in words[width:]]
        starts.append(len(indices))
    weights = np.array(coef, dtype=np.float64).reshape(total, width)
    entries, columns = np.array(values, dtype=np.float64), np.array(indices, dtype=np.int64)
    require(bool(np.isfinite(weights).all() and np.isfinite(entries).all()), "it has a number that is too large")
    largest = int((entries if precomputed else columns).max(initial=1))
    require(largest <= LARGEST, f"it has the index {largest}, which is too large")
    n_columns = largest if n_features is None else n_features
    if largest > n_columns:
        raise ValueError(f"n_features={n_features} is less than the index {largest} in the file; give at least that.")
    if precomputed:
        require(not total or entries.min() >= 1, "it has a serial number below 1")
        return weights, sparse.csr_array((entries, np.zeros(total, np.int64), np.arange(total + 1)), (total, n_columns))
    rows = sparse.csr_array((entries, columns - 1, np.array(starts)), shape=(total, n_columns))
    return weights, rows.toarray() if len(entries) >= DENSE_SHARE * total * n_columns else rows


def _sorted_model(
    labels: np.ndarray, counts: np.ndarray, vectors: tuple[FloatArray, DataMatrix], rho: FloatArray, kernel: KernelSpec
) -> PairModel:
    """Return the model with its classes in sorted order."""
    d = len(labels)
    order = np.argsort(labels)  # the position in the file of each class
    code = np.argsort(order)  # the code of each position
    starts = np.cumsum(counts) - counts
    by_code = np.concatenate([np.arange(starts[i], starts[i] + counts[i]) for i in order])
    coef = np.zeros((d - 1, len(by_code)))
    begin = 0
    for own, i in enumerate(order):
        others = np.delete(code, i)  # the other class of each column
        first_in_file = np.arange(d)[np.arange(d) != i] > i
        signs = np.where(first_in_file == (own < others), 1.0, -1.0)
        mine = vectors[0][starts[i] : starts[i] + counts[i]]
        coef[np.where(own < others, others - 1, others), begin : begin + counts[i]] = (mine * signs).T
        begin += counts[i]
    intercept = np.empty(len(rho))
    first, second = (code[places] for places in np.triu_indices(d, k=1))
    low, high = np.minimum(first, second), np.maximum(first, second)
    intercept[low * (2 * d - low - 1) // 2 + high - low - 1] = np.where(first < second, -rho, rho)
    rows, given = vectors[1], kernel.name == "precomputed"
    return PairModel(
        support=rows.data[by_code].astype(np.int64) - 1 if given else np.arange(len(by_code)),
        support_vectors=np.empty((0, 0)) if given else rows[by_code],
        n_support=counts[order].astype(np.int32),
        dual_coef=coef,
        intercept=intercept,
        kernel=kernel,
        scheme=ONE_VS_ONE,
        label_order=None if (code == np.arange(d)).all() else tuple(code.tolist()),
    )


def _sorted_curves(labels: np.ndarray, curves: FloatArray) -> PairCalibrator:
    """Return P(i | i or j) = 1 / (1 + exp(A f + B)) for the classes in sorted order."""
    code, d = np.argsort(np.argsort(labels)), len(labels)
    found: dict[tuple[int, int], Sigmoid] = {}
    for (i, j), A, B in zip(pair_list(d), *curves.tolist(), strict=True):
        first, second = sorted((int(code[i]), int(code[j])))
        # Of the other class it is 1 / (1 + exp(-(A f + B))), and its score is -f.
        found[first, second] = Sigmoid(-A, -B if code[i] < code[j] else B)
    return PairCalibrator(tuple(found[pair] for pair in pair_list(d)))


def _make_svc(model: PairModel, classes: np.ndarray, n_features: int, calibrator: PairCalibrator | None) -> SVC:
    kernel = model.kernel
    given = kernel.name == "precomputed"
    own = {name: getattr(kernel, name) for name in parameters_of(kernel.name)}
    clf = SVC(kernel=kernel.name, calibration=None if calibrator is None else "coupling", **own)
    spec = FitSpec.from_params(clf.get_params(deep=False), kernel)
    shape = (n_features if given else len(model.support), n_features)
    clf.__dict__.update(
        pair_model_attributes(model, classes, np.ones(len(classes)), shape)
        | {
            "n_features_in_": n_features,
            "certificate_": unknown_certificate("LIBSVM", clf.tol),
            "n_iter_": np.ones(len(model.intercept), dtype=np.int32),
            "fit_status_": 0,
            "_calibrator": calibrator,
            "_spec": spec,
            "_state": None,
        }
    )
    return clf


def svc_text(clf: SVC) -> str:
    """Return the model file of a fitted one-vs-one machine, or of any machine of two classes."""
    model = _as_pairs(clf)
    order = list(range(model.n_classes)) if model.label_order is None else list(model.label_order)
    labels = labels_to_write(clf.classes_)
    kernel = model.kernel
    head = ["svm_type c_svc", f"kernel_type {theirs_of(kernel.name)}"]
    head += [f"{name} {getattr(kernel, name)!r}" for name in parameters_of(kernel.name)]
    head += [f"nr_class {len(labels)}", f"total_sv {len(model.support)}"]
    coef, intercept, curves = _in_order(model, order, _curves_of(clf))
    head += ["rho" + _numbers(-intercept), "label" + "".join(f" {labels[code]}" for code in order)]
    if curves is not None:
        head += ["probA" + _numbers(curves[0]), "probB" + _numbers(curves[1])]
    head.append("nr_sv" + "".join(f" {n}" for n in model.n_support[order]))
    head.append("SV")
    rows = np.concatenate([np.arange(len(model.support))[model.blocks[code]] for code in order])
    vectors = _vector_texts(model, rows)
    weights = coef[:, rows].T.tolist()
    body = ["".join(f"{w!r} " for w in own) + text for own, text in zip(weights, vectors, strict=True)]
    return "\n".join([*head, *body]) + "\n"


def _as_pairs(clf: SVC) -> PairModel:
    model = clf._model
    n_classes = len(clf.classes_)
    name = model.scheme if isinstance(model, PairModel) else clf._spec.machine.name
    if n_classes > 2 and (not isinstance(model, PairModel) or model.scheme == DAG):
        raise ValueError(
            f"LIBSVM's files hold one-vs-one votes only, not multi_class={name!r} with {n_classes} classes; fit with "
            "multi_class='ovo', or use save_model."
        )
    if model.kernel.name not in LIBSVM_NAMES or model.kernel.offset:
        raise ValueError(
            f"LIBSVM's files do not hold kernel={model.kernel.name!r}, only {', '.join(LIBSVM_NAMES)}; fit with one of "
            "these, or use save_model."
        )
    if isinstance(model, PairModel):
        return model
    beta, intercept = model.beta, model.intercept  # two classes: one function, positive for the first
    half = (beta[:, 0] - beta[:, 1])[None, :] / 2
    bias = (intercept[:1] - intercept[1:]) / 2
    return PairModel(model.support, model.support_vectors, model.n_support, half, bias, model.kernel, ONE_VS_ONE)


def _curves_of(clf: SVC) -> list[Sigmoid] | None:
    if not clf._gives_probabilities():
        return None
    if not isinstance(clf._calibrator, PairCalibrator):
        raise ValueError(
            f"LIBSVM's files hold the probabilities of calibration='coupling' only, not {clf.calibration!r}, which "
            "predictions follow; fit with 'coupling', or set calibration=None to write the votes alone."
        )
    return list(clf._calibrator.curves)


def _in_order(
    model: PairModel, order: list[int], curves: list[Sigmoid] | None
) -> tuple[FloatArray, FloatArray, FloatArray | None]:
    """Return coefficients by support vector, intercepts, and A and B, for the classes in this order."""
    d = model.n_classes
    coef = np.zeros((d - 1, len(model.support)))
    where = {pair: number for number, pair in enumerate(pair_list(d))}
    intercept, sigmoids = [], []
    for i, j in pair_list(d):
        own, other = order[i], order[j]
        number, sign = where[min(own, other), max(own, other)], 1.0 if own < other else -1.0
        first, second = model.blocks[own], model.blocks[other]
        coef[j - 1, first] = sign * model.dual_coef[other - 1 if own < other else other, first]
        coef[i, second] = sign * model.dual_coef[own - 1 if other < own else own, second]
        intercept.append(sign * model.intercept[number])
        if curves is not None:
            sigmoids.append((-curves[number].slope, -sign * curves[number].offset))
    return coef, np.array(intercept), None if curves is None else np.array(sigmoids).T


def _numbers(values: Any) -> str:
    return "".join(f" {value!r}" for value in np.asarray(values, dtype=np.float64).tolist())


def _vector_texts(model: PairModel, rows: np.ndarray) -> list[str]:
    if model.kernel.name == "precomputed":
        return [f"0:{serial + 1} " for serial in model.support[rows].tolist()]
    vectors = tidy(model.support_vectors[rows])
    if not is_sparse(vectors):
        return [_entries(np.flatnonzero(row), row[np.flatnonzero(row)]) for row in vectors]
    bounds = zip(vectors.indptr[:-1], vectors.indptr[1:], strict=True)
    return [_entries(vectors.indices[begin:end], vectors.data[begin:end]) for begin, end in bounds]


def _entries(indices: np.ndarray, values: np.ndarray) -> str:
    pairs = zip(indices.tolist(), np.asarray(values, dtype=np.float64).tolist(), strict=True)
    return "".join(f"{index + 1}:{value!r} " for index, value in pairs if value)
