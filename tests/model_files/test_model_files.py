"""save_model and load_model: the same predictions bit for bit; a damaged or malicious file is refused."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline

from multimargin import SVC, LinearSVCCV, Machine, ModelFileError, OnlineSVC, load_model, save_model, verify
from multimargin.model_files.container import read_container, write_container
from multimargin.problems.machines import Bound, ComponentTable
from support.model_cases import CASES, TEXTS, X, Y, fitted, outputs

TINY = SVC(kernel="linear").fit([[0.0], [1.0], [3.0]], [0, 1, 1])


def saved(clf: Any, folder: Path) -> Path:
    path = folder / "model.mm"
    save_model(clf, path)
    return path


@pytest.mark.parametrize("name", CASES)
def test_round_trip(name: str, tmp_path: Path) -> None:
    clf = fitted(name)
    path = saved(clf, tmp_path)
    again = load_model(path)
    for method, values in outputs(clf, name).items():
        found = outputs(again, name)[method]
        assert found.dtype == values.dtype
        np.testing.assert_array_equal(found, values)
    np.testing.assert_array_equal(again.classes_, clf.classes_)
    assert again.classes_.dtype == clf.classes_.dtype
    assert str(again.certificate_) == str(clf.certificate_)
    assert len(again.certificate_.parts) == len(clf.certificate_.parts)
    save_model(again, tmp_path / "again.mm")
    assert (tmp_path / "again.mm").read_bytes() == path.read_bytes()


@pytest.mark.parametrize("name", ["machine ww", "kernel rbf", "linear cs", "linear ovo", "own cost", "hard margin"])
def test_loaded_models_are_verified_cloned_and_fitted_again(name: str, tmp_path: Path) -> None:
    clf, again = fitted(name), load_model(saved(fitted(name), tmp_path))
    labels = TEXTS if clf.classes_.dtype.kind == "U" else Y
    assert verify(again, X, labels).optimal
    for attribute in vars(clf):
        if attribute.endswith("_") and attribute != "certificate_" and not attribute.startswith("__"):
            np.testing.assert_array_equal(np.asarray(getattr(again, attribute)), np.asarray(getattr(clf, attribute)))
    refitted = clone(again).fit(X, labels)
    for method, values in outputs(clf, name).items():
        np.testing.assert_array_equal(outputs(refitted, name)[method], values)


def test_parameters_and_names_come_back(tmp_path: Path) -> None:
    frame = pd.DataFrame(X, columns=["a", "b", "ü", "d"])
    clf = SVC(
        C=2,
        class_weight={0: 2.0, 1: 1, 2: 0.5},
        gamma=float(np.float32(0.25)),
        max_iter=cast(int, np.int64(10**6)),
        on_progress=lambda _: None,
        random_state=np.random.RandomState(0),
        max_time=float("inf"),
    ).fit(frame, Y)
    again = load_model(saved(clf, tmp_path))
    given, found = clf.get_params(), again.get_params()
    assert {name: value for name, value in found.items() if given[name] != value} == {
        "on_progress": None,
        "random_state": None,
    }
    assert type(found["C"]) is int
    np.testing.assert_array_equal(again.feature_names_in_, clf.feature_names_in_)
    assert again.feature_names_in_.dtype == object
    np.testing.assert_array_equal(again.predict(frame), clf.predict(frame))
    with pytest.raises(ValueError, match="feature names"):
        again.predict(frame.rename(columns={"a": "z"}))


@pytest.mark.parametrize(
    "labels",
    [Y.astype(np.int8), Y.astype(np.uint16), Y * 1.0, TEXTS.astype("U30"), TEXTS.astype(object), Y.astype(np.float32)],
    ids=lambda labels: str(labels.dtype),
)
def test_labels_keep_their_type(labels: np.ndarray, tmp_path: Path) -> None:
    again = load_model(saved(SVC().fit(X, labels), tmp_path))
    assert again.classes_.dtype == np.unique(labels).dtype
    np.testing.assert_array_equal(again.classes_, np.unique(labels))


def test_a_machine_made_by_a_function_is_saved_as_its_table(tmp_path: Path) -> None:
    machine = Machine("mine", Bound.BOX, False, lambda d: ComponentTable.relative(d, 3.0))
    clf = SVC(multi_class=machine).fit(X, Y)
    again = load_model(saved(clf, tmp_path))
    assert isinstance(again.multi_class.components, ComponentTable)
    np.testing.assert_array_equal(clone(again).fit(X, Y).dual_coef_, clf.dual_coef_)


def test_other_readers_of_the_layout_find_the_arrays(tmp_path: Path) -> None:
    numpy_reader = pytest.importorskip("safetensors.numpy", reason="safetensors is not installed")
    arrays = numpy_reader.load_file(str(saved(fitted("machine ww"), tmp_path)))
    np.testing.assert_array_equal(arrays["model.model.beta"], fitted("machine ww")._model.beta)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: SVC(kernel=lambda a, b: a @ b.T).fit(X, Y), ValueError, "kernel is a function, which a model file"),
        (lambda: make_pipeline(PCA(2), SVC()).fit(X, Y), TypeError, "A Pipeline is not saved; give a fitted"),
        (lambda: LinearSVCCV(Cs=[1.0], cv=3, refit=False).fit(X, Y), ValueError, "refit=False, whose weights"),
        (
            lambda: SVC(class_weight={0: 1, 1: 1, 2: 1}).fit(X, Y).set_params(class_weight={0: {1}}),
            TypeError,
            "not data",
        ),
        (
            lambda: SVC(kernel="poly", degree=20_000, gamma=1e-6, coef0=1.0).fit(X / 9, Y),
            ValueError,
            "degree=20000 is not allowed",
        ),
        (lambda: SVC().fit(X, Y).set_params(C=-1), ValueError, "C=-1 is not allowed"),
        (SVC, ValueError, "not fitted"),
    ],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_what_is_no_data_is_refused(
    make: Callable[[], Any], error: type[Exception], message: str, tmp_path: Path
) -> None:
    with pytest.raises(error, match=message):
        save_model(make(), tmp_path / "model.mm")
    assert list(tmp_path.iterdir()) == []


def test_a_path_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="in a folder that does not exist"):
        save_model(TINY, tmp_path / "nowhere" / "model.mm")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda content: b"", "too short"),
        (lambda content: content[:7], "too short"),
        (lambda content: content[:40], "not a model file of multimargin"),
        (lambda content: b"PK\x03\x04" + content, "not a model file of multimargin"),
        (lambda content: content[:400], "breaks off within its header"),
        (lambda content: content[:-1], "checksum is wrong"),
        (lambda content: content + b"\0", "checksum is wrong"),
        (lambda content: content[:-9] + b"\1" + content[-8:], "checksum is wrong"),
        (
            lambda content: content.replace(b'"version":"1"', b'"version":"2"'),
            "version 2, this multimargin reads version 1",
        ),
        (lambda content: b"\xff" * 8 + content[8:], "breaks off within its header"),
    ],
)
def test_a_damaged_file_is_refused(change: Callable[[bytes], bytes], message: str, tmp_path: Path) -> None:
    path = saved(TINY, tmp_path)
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(ModelFileError, match=message) as caught:
        load_model(path)
    assert str(caught.value).startswith(f"{path}: ")


def edit(document: Any, where: str, value: Any) -> None:
    """Set the entry of a document at a path of names and numbers."""
    *steps, last = where.split("/")
    for step in steps:
        document = document[int(step) if step.isdigit() else step]
    document[int(last) if last.isdigit() else last] = value


HOSTILE = [
    ("model/type", "Pipeline", "has no 'estimator'"),
    ("model/type", "GridSearchCV", "'type' of its record"),
    ("model/params/C", -1.0, "one of its parameters is wrong: C=-1"),
    ("model/params/C", 10**400, "one of its parameters is wrong"),
    ("model/params/verbose", {"float": "inf"}, "one of its parameters is wrong"),
    ("model/params/kernel", {"machine": {"known": "ww"}}, "its kernel is no name"),
    ("model/params/os", "rm", "the parameter 'os', which SVC does not know"),
    ("model/params/estimator", {"estimator": {}}, "the parameter 'estimator'"),
    ("model/params/on_progress", "print", "'on_progress' is no integer"),
    ("model/params/class_weight", {"dict": [[{"list": []}, 1]]}, "a dict whose names cannot be such"),
    ("model/params/class_weight", {"set": [1]}, "a value of no known kind"),
    ("model/params/decision_function_shape", "ova", "decision_function_shape='ova' is not allowed"),
    ("model/classes", {"texts": ["b", "a"], "width": 1}, "classes are not in order"),
    ("model/classes", {"texts": ["a", "b"], "width": 10**9}, "'width' of its record"),
    ("model/classes", {"texts": ["a", 5], "width": 1}, "no list of texts"),
    ("model/classes", {"texts": ["a"], "width": 1}, "fewer than two classes"),
    ("model/n_features", 10**15, "its data had another shape"),
    ("model/n_features", 1.0, "'n_features' of its record"),
    ("model/shape_fit", [1, 1], "is not within"),
    ("model/fit_status", True, "'fit_status' of its record"),
    ("model/model/kernel/gamma", -1.0, "'gamma' of its record"),
    ("model/model/kernel/degree", 2**31, "'degree' of its record"),
    ("model/model/kernel/name", "callable", "'name' of its record"),
    ("model/model/kernel/name", "precomputed", "precomputed kernel was not square"),
    ("model/model/kind", "classes", "has no 'beta'"),
    ("model/model/scheme", "ova", "'scheme' of its record"),
    ("model/model/scheme", "dag", "its model is not that of its machine"),
    ("model/model/label_order", [0, 0], "no order of all classes"),
    ("model/model/support", "model.n_iter", "'support' of its record|another type"),
    ("model/model/dual_coef", "model.model.intercept", "an array of shape"),
    ("model/model/intercept", "nothing", "its array 'nothing' is missing"),
    ("model/model/support_vectors", {"indices": "x"}, "no 'n_columns'"),
    ("model/recipe/machine", {"known": "xx"}, "'known' of its record"),
    ("model/recipe/scheme", "", "its model is not that"),
    ("model/recipe/loss", 5, "'loss' of its record"),
    ("model/calibrator", {"kind": "pairs", "curves": [{"slope": 1.0, "offset": {"float": "nan"}}]}, "'offset'"),
    ("model/calibrator", {"kind": "binary", "curves": []}, "number of curves is wrong"),
    ("model/certificate/n_iter", 10**30, "'n_iter' of its record"),
    ("model/certificate/stop_reason", "magic", "'stop_reason' of its record"),
    ("model/certificate/parts", [3], "is missing"),
    ("extra", 1, "records that are not known"),
    ("model", None, "its record 'document.model' is missing"),
]


@pytest.mark.parametrize(("where", "value", "message"), HOSTILE, ids=lambda part: str(part)[:40])
def test_a_hostile_document_is_refused(where: str, value: Any, message: str, tmp_path: Path) -> None:
    path = saved(TINY, tmp_path)
    document, arrays = read_container(path)
    edit(document, where, value)
    write_container(path, document, arrays)
    with pytest.raises(ModelFileError, match=message):
        load_model(path)


@pytest.mark.parametrize(
    ("case", "name", "change", "message"),
    [
        ("kernel rbf", "support", lambda a: a + 1000, "is not within"),
        ("kernel rbf", "support", lambda a: a - 1000, "is not an array of numbers >= 0"),
        ("kernel rbf", "n_support", lambda a: a + 1, "do not sum to their number"),
        ("kernel rbf", "support_vectors", lambda a: a * np.nan, "finite"),
        ("kernel rbf", "support_vectors", lambda a: a[:, :2], "an array of shape"),
        ("kernel rbf", "support_vectors", lambda a: a.astype(np.int64), "of the right type"),
        ("kernel rbf", "dual_coef", lambda a: a.astype(np.float32), "float64"),
        ("sparse", "support_vectors.indices", lambda a: a + 1, "is not within"),
        ("sparse", "support_vectors.indices", lambda a: a[::-1].copy(), "not in order"),
        ("sparse", "support_vectors.indptr", lambda a: a[::-1].copy(), "do not fill|overlap"),
        ("sparse", "support_vectors.indptr", lambda a: a[:-1].copy(), "are not"),
        ("calibration isotonic", None, lambda a: a[::-1].copy(), "not in order"),
        ("own cost", "n_support", lambda a: a[:2], "an array of shape"),
        ("own uneven", None, lambda a: a + 5, "impossible|classes that do not exist"),
    ],
)
def test_hostile_arrays_are_refused(
    case: str, name: str | None, change: Callable[[np.ndarray], np.ndarray], message: str, tmp_path: Path
) -> None:
    path = saved(fitted(case), tmp_path)
    document, arrays = read_container(path)
    full = f"model.model.{name}" if name else next(key for key in arrays if key.endswith(("0.knots", "class1")))
    arrays[full] = change(arrays[full])
    write_container(path, document, arrays)
    with pytest.raises(ModelFileError, match=message):
        load_model(path)


def test_many_classes_take_no_more_memory_than_the_file(tmp_path: Path) -> None:
    path, d = saved(SVC(multi_class="ww", kernel="linear").fit([[0.0], [1.0]], [0, 1]), tmp_path), 200_000
    document, arrays = read_container(path)
    arrays["model.classes"] = np.arange(d)
    arrays["model.class_weight"] = np.ones(d)
    arrays["model.model.n_support"] = np.bincount([0, 1], minlength=d).astype(np.int32)
    arrays["model.model.intercept"] = np.arange(float(d))
    arrays["model.model.beta"] = np.zeros((2, d))
    write_container(path, document, arrays)
    np.testing.assert_array_equal(load_model(path).predict([[0.5]]), [d - 1])


def forge(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Change the header of a file as an attacker would, with a valid checksum."""
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    table = json.loads(content[8 : 8 + length])
    change(table)
    table["__metadata__"]["sha256"] = "0" * 64
    header = json.dumps(table, separators=(",", ":")).encode()
    whole = len(header).to_bytes(8, "little") + header + content[8 + length :]
    path.write_bytes(whole.replace(b"0" * 64, hashlib.sha256(whole).hexdigest().encode(), 1))


@pytest.mark.parametrize(
    ("entry", "value", "message"),
    [
        ("shape", [10**18], "does not lie where its shape says"),
        ("shape", [-1], "impossible shape"),
        ("shape", [1, 1, 1], "impossible shape"),
        ("shape", "x", "impossible shape"),
        ("dtype", "O", "unknown type"),
        ("data_offsets", [0, 10**18], "does not lie"),
        ("data_offsets", [0], "impossible place"),
    ],
)
def test_a_forged_table_is_refused(entry: str, value: Any, message: str, tmp_path: Path) -> None:
    path = saved(TINY, tmp_path)
    forge(path, lambda table: table["model.n_iter"].update({entry: value}))
    with pytest.raises(ModelFileError, match=message):
        load_model(path)


def put_document(document: str, table: dict[str, Any]) -> None:
    table["__metadata__"]["document"] = document


def test_forged_documents_are_refused(tmp_path: Path) -> None:
    path = saved(TINY, tmp_path)
    for document, message in (
        ("[" * 100_000, "nested too deeply"),
        ("{", "not JSON"),
        ('{"a": 1, "a": 2}', "a name twice"),
        ('{"a": NaN}', "the value NaN"),
        ("5", "is missing"),
        ("9" * 5000, "not JSON"),
    ):
        forge(path, partial(put_document, document))
        with pytest.raises(ModelFileError, match=message):
            load_model(path)


def test_a_missing_file_is_what_python_says(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        load_model(tmp_path / "none")


@pytest.mark.parametrize("multi_class", ["ovo", "ww"])
@pytest.mark.parametrize("finished", [False, True])
def test_a_stream_is_saved_as_what_it_has_learnt(multi_class: str, finished: bool, tmp_path: Path) -> None:
    clf = OnlineSVC(multi_class=multi_class).partial_fit(X, TEXTS)
    if finished:
        clf.finalize()
    again = load_model(saved(clf, tmp_path))
    assert type(again) is SVC
    assert again.certificate_.optimal == finished
    np.testing.assert_array_equal(again.predict(X), clf.predict(X))
    np.testing.assert_array_equal(again.decision_function(X), clf.decision_function(X))
