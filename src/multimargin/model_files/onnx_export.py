"""export_onnx: a fitted estimator as an ONNX graph in double precision."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from multimargin.base.files import check_path, whole_file
from multimargin.estimators.linear_svc import LinearSVC
from multimargin.estimators.svc import SVC
from multimargin.model_files.onnx_graph import Graph
from multimargin.model_files.onnx_parts import pair_codes, pair_decision, probabilities, raw_scores
from multimargin.model_files.saved_model import what_to_save
from multimargin.model_selection.pair_selection import PerPairSVC
from multimargin.models.calibration import PairCalibrator
from multimargin.models.linear_model import LinearModel
from multimargin.models.pair_model import PairModel


def export_onnx(estimator: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator as an ONNX file, all of it in double precision.

    Parameters
    ----------
    estimator : SVC, LinearSVC, PerPairSVC, OnlineSVC, SVCCV or LinearSVCCV
        Fitted, with any machine, scheme, calibration and kernel but a callable one.
    path : path
        The graph has the input ``X`` (rows, n_features), double, dense; for a precomputed kernel the kernel values. Its
        outputs are ``label``, ``decision`` as ``decision_function`` has it, and ``probabilities``, each where the
        estimator has it. They agree with ours up to the rounding of sums in another order.

    Notes
    -----
    Requires the package onnx (``pip install 'multimargin[onnx]'``).
    """
    checked, model = check_path(path), what_to_save(estimator)
    check_is_fitted(model)
    content = onnx_model(model).SerializeToString()
    with whole_file(checked) as handle:
        handle.write(content)


def onnx_model(model: Any) -> Any:
    """Return the ONNX model of a fitted SVC, LinearSVC or PerPairSVC."""
    kernel = getattr(getattr(model, "_model", None), "kernel", None)
    if kernel is not None and kernel.function is not None:
        raise ValueError(
            "kernel is a function, which an ONNX graph cannot hold; fit with a kernel by name, or with "
            "kernel='precomputed' on the values of your function."
        )
    graph = Graph()
    results = _Builder(graph, model).results()
    double, integer, text = (getattr(graph.onnx.TensorProto, name) for name in ("DOUBLE", "INT64", "STRING"))
    labels, kind = _label_constant(model.classes_, integer, text)
    codes = graph.op("Gather", graph.constant(labels), results.pop("codes"))
    n_classes = len(model.classes_)
    outputs: list[tuple[str, str, Any, list[Any]]] = [("label", codes, kind, [])]
    if "decision" in results:
        shape: list[Any] = [] if n_classes == 2 else ["scores"]
        outputs.append(("decision", results["decision"], double, shape))
    if "probabilities" in results:
        outputs.append(("probabilities", results["probabilities"], double, [n_classes]))
    return graph.model(int(model.n_features_in_), outputs)


def _label_constant(classes: np.ndarray, integer: Any, text: Any) -> tuple[np.ndarray, Any]:
    if classes.dtype.kind in "iub":
        return classes.astype(np.int64), integer
    if classes.dtype.kind in "UO" and all(isinstance(label, str) for label in classes.tolist()):
        return classes, text
    raise ValueError(
        f"The classes {classes[:3].tolist()} of dtype {classes.dtype} have no form in ONNX; fit with integers or texts."
    )


class _Builder:
    """The outputs of an estimator in a graph: codes, and decision and probabilities where it has them."""

    def __init__(self, graph: Graph, model: Any) -> None:
        self.graph, self.model, self.n_classes = graph, model, len(model.classes_)

    def results(self) -> dict[str, str]:
        if isinstance(self.model, PerPairSVC):
            return self._per_pair(self.model)
        if isinstance(self.model, LinearSVC):
            return self._linear(self.model._model)
        return self._expansion(self.model)

    def _per_pair(self, model: PerPairSVC) -> dict[str, str]:
        each = [raw_scores(self.graph, machine._model, "X") for machine in model.estimators_]
        D = self.graph.op("Concat", *each, axis=1)
        if model._break_ties and self.n_classes > 2:
            codes = self.graph.largest(pair_decision(self.graph, D, self.n_classes, model._scheme))
        else:
            codes = pair_codes(self.graph, D, self.n_classes, model._scheme)
        return {"codes": codes, "decision": self._decision(D, model._scheme)}

    def _linear(self, model: LinearModel) -> dict[str, str]:
        raw = raw_scores(self.graph, model, "X")
        graph, scheme = self.graph, model.scheme
        codes = pair_codes(graph, raw, self.n_classes, scheme) if scheme else graph.largest(raw)
        return {"codes": codes, "decision": self._decision(raw, model.scheme)}

    def _decision(self, raw: str, scheme: str) -> str:
        """Return one score per class, or one for two classes, from scores of pairs or of classes."""
        graph = self.graph
        if self.n_classes > 2:
            return pair_decision(graph, raw, self.n_classes, scheme) if scheme else raw
        if scheme:
            return graph.op("Neg", graph.column(raw, 0))
        return graph.multiply(graph.op("Sub", graph.column(raw, 1), graph.column(raw, 0)), 0.5)

    def _expansion(self, clf: SVC) -> dict[str, str]:
        graph, model = self.graph, clf._model
        scheme = model.scheme if isinstance(model, PairModel) else ""
        raw = raw_scores(graph, model, "X")
        decision = self._decision(raw, scheme)
        results = {}
        if hasattr(clf, "decision_function"):
            of_pairs = bool(scheme) and clf.decision_function_shape == "ovo" and self.n_classes > 2
            results["decision"] = raw if of_pairs else decision
        if clf._gives_probabilities():
            scores = raw if isinstance(clf._calibrator, PairCalibrator) else decision
            results["probabilities"] = probabilities(graph, clf._calibrator, scores)
            return results | {"codes": graph.largest(results["probabilities"])}
        tied = clf.break_ties and clf.decision_function_shape == "ovr" and self.n_classes > 2
        if tied or not scheme:
            return results | {"codes": graph.largest(raw if not scheme else decision)}
        order = model.label_order if isinstance(model, PairModel) else None
        return results | {"codes": pair_codes(graph, raw, self.n_classes, scheme, order)}
