"""export_onnx: onnxruntime gives the same results, in double precision."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from multimargin import SVC, export_onnx
from multimargin.model_files import onnx_graph
from support.model_cases import CASES, X, Y, fitted, outputs, points_for

OUTPUTS = {"label": "predict", "decision": "decision_function", "probabilities": "predict_proba"}
WITHOUT = "onnx or onnxruntime is not installed"


def run(clf: Any, points: np.ndarray, folder: Path) -> dict[str, np.ndarray]:
    """Return the outputs of the exported graph by name."""
    pytest.importorskip("onnx", reason=WITHOUT)
    runtime = pytest.importorskip("onnxruntime", reason=WITHOUT)
    export_onnx(clf, folder / "model.onnx")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = 1
    session = runtime.InferenceSession(str(folder / "model.onnx"), options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, {"X": np.asarray(points, dtype=np.float64)}), strict=True))


@pytest.mark.parametrize("name", CASES)
def test_the_runtime_agrees(name: str, tmp_path: Path) -> None:
    clf = fitted(name)
    expected = outputs(clf, name)
    found = run(clf, points_for(name), tmp_path)
    assert {OUTPUTS[output] for output in found} == set(expected)
    for output, values in found.items():
        if output == "label":
            np.testing.assert_array_equal(values.astype(expected["predict"].dtype), expected["predict"])
        else:
            wanted = expected[OUTPUTS[output]]
            assert values.dtype == np.float64
            assert values.shape == wanted.shape
            # Sums of a hundred terms in another order; single precision would leave 1e-7.
            np.testing.assert_allclose(values, wanted, rtol=1e-11, atol=1e-11 * np.abs(wanted).max())


def test_a_model_without_support_vectors(tmp_path: Path) -> None:
    clf = SVC(multi_class="ww", C=1e-300).fit(X, Y)
    model = clf._model
    clf._model = type(model)(
        model.support[:0], model.support_vectors[:0], 0 * model.n_support, model.beta[:0], np.ones(3), model.kernel
    )
    np.testing.assert_array_equal(run(clf, X, tmp_path)["decision"], np.ones((len(X), 3)))


def test_columns_that_are_not_read_may_be_nan(tmp_path: Path) -> None:
    clf = fitted("precomputed")
    points = points_for("precomputed").copy()
    points[:, np.setdiff1d(np.arange(points.shape[1]), clf.support_)] = np.nan
    np.testing.assert_array_equal(run(clf, points, tmp_path)["label"], clf.predict(points))


def test_what_onnx_cannot_hold_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("onnx", reason=WITHOUT)
    with pytest.raises(ValueError, match="kernel is a function, which an ONNX graph cannot hold"):
        export_onnx(SVC(kernel=lambda a, b: a @ b.T).fit(X, Y), tmp_path / "model")
    with pytest.raises(ValueError, match="have no form in ONNX"):
        export_onnx(SVC().fit(X, Y * 1.0), tmp_path / "model")
    monkeypatch.setattr(onnx_graph, "LARGEST_FILE", 100)
    with pytest.raises(ValueError, match="more than 2 GB"):
        export_onnx(fitted("kernel rbf"), tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_without_onnx(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r"needs onnx, which is not installed; run pip install 'multimargin\[onnx\]'"):
        export_onnx(fitted("kernel rbf"), tmp_path / "model")
