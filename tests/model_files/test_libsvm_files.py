"""LIBSVM's and LIBLINEAR's model files: read and written exactly, the same predictions as their own programs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_digits
from threadpoolctl import threadpool_limits

from multimargin import SVC, LinearSVC, ModelFileError, dump_libsvm, load_libsvm, load_model, save_model
from multimargin.models.voting import vote, vote_in_order
from support.model_cases import POINTS, TEXTS, X, Y, fitted, kernel_values, outputs, points_for

SVM_CASES = [f"kernel {name}" for name in ("linear", "rbf", "poly", "sigmoid")]
SVM_CASES += [
    "two classes ovo",
    "two classes dag",
    "two classes ww",
    "two classes cs",
    "precomputed",
    "sparse",
    "float32",
]
SVM_CASES += ["regularised bias", "hard margin", "search", "from scikit-learn"]
LINEAR_CASES = ["linear ova", "linear ww", "linear cs", "linear squared", "linear without bias", "linear search"]
LINEAR_CASES += ["linear two", "linear two cs"]
DIGITS, DIGIT_LABELS = load_digits(return_X_y=True)
DIGITS = DIGITS[:300, 16:32] / 16


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """LIBSVM's threads wait by spinning, which takes long on a machine that does other things, too."""
    with threadpool_limits(1):
        yield


def dumped(clf: Any, folder: Path) -> Path:
    path = folder / "model"
    dump_libsvm(clf, path)
    return path


def libsvm() -> Any:
    return pytest.importorskip("libsvm.svmutil", reason="libsvm-official is not installed")


def liblinear() -> Any:
    return pytest.importorskip("liblinear.liblinearutil", reason="liblinear-official is not installed")


def their_rows(points: np.ndarray, first: int = 1) -> list[dict[int, float]]:
    return [{i + first: float(value) for i, value in enumerate(row)} for row in points]


@pytest.mark.parametrize("name", SVM_CASES + LINEAR_CASES)
def test_round_trip(name: str, tmp_path: Path) -> None:
    clf = fitted(name)
    path = dumped(clf, tmp_path)
    again = load_libsvm(path, n_features=points_for(name).shape[1])
    for method, values in outputs(clf, name).items():
        found = outputs(again, name)[method]
        if method == "predict":
            np.testing.assert_array_equal(found, values)
        else:  # of two classes one function is kept for two
            np.testing.assert_allclose(found, values, rtol=1e-12, atol=1e-12)
    dump_libsvm(again, tmp_path / "again")
    assert (tmp_path / "again").read_text() == path.read_text()


@pytest.mark.parametrize("name", SVM_CASES)
def test_libsvm_reads_what_we_write(name: str, tmp_path: Path) -> None:
    svmutil, clf = libsvm(), fitted(name)
    model = svmutil.svm_load_model(str(dumped(clf, tmp_path)))
    points = points_for(name)[:60]
    rows = their_rows(points)
    if name == "precomputed":
        rows = [{0: 1, **row} for row in rows]
    labels, _, values = svmutil.svm_predict([0] * len(rows), rows, model, "-q")
    np.testing.assert_array_equal(np.array(labels, dtype=np.int64), clf.predict(points).astype(np.int64))
    shaped = getattr(clf, "best_estimator_", clf)
    if len(clf.classes_) == 2:
        np.testing.assert_allclose(-np.array(values)[:, 0], clf.decision_function(points), rtol=1e-9, atol=1e-9)
    else:
        np.testing.assert_allclose(values, shaped._model.pair_scores(points), rtol=1e-9, atol=1e-9)


def test_libsvm_reads_our_probabilities(tmp_path: Path) -> None:
    svmutil, clf = libsvm(), SVC(calibration="coupling").fit(X, Y)
    path = dumped(clf, tmp_path)
    model = svmutil.svm_load_model(str(path))
    labels, _, values = svmutil.svm_predict([0] * len(POINTS), their_rows(POINTS), model, "-b 1 -q")
    # LIBSVM stops its iteration for the coupling at 0.005 / n_classes.
    np.testing.assert_allclose(values, clf.predict_proba(POINTS), atol=5e-3)
    sure = np.diff(np.sort(clf.predict_proba(POINTS), axis=1)[:, -2:], axis=1).ravel() > 1e-2
    np.testing.assert_array_equal(np.array(labels)[sure], clf.predict(POINTS)[sure])
    np.testing.assert_array_equal(load_libsvm(path).predict_proba(POINTS), clf.predict_proba(POINTS))


@pytest.mark.parametrize("options", ["-t 2 -c 0.01", "-t 1 -c 10 -b 1", "-t 0 -c 1", "-t 3 -c 1"])
def test_we_read_what_libsvm_writes(options: str, tmp_path: Path) -> None:
    svmutil = libsvm()
    shuffled = np.random.default_rng(0).permutation(150)
    rows, points = their_rows(DIGITS[shuffled]), DIGITS[150:]
    model = svmutil.svm_train(DIGIT_LABELS[shuffled].tolist(), rows, f"{options} -q")
    path = tmp_path / "theirs"
    svmutil.svm_save_model(str(path), model)
    clf: Any = load_libsvm(path, 16)
    again = svmutil.svm_load_model(str(path))  # the file rounds the support vectors
    np.testing.assert_array_equal(clf.classes_, np.arange(10))
    # At C=0.01 many votes are tied: they go by the order of the labels in the file.
    assert clf._model.label_order == tuple(again.get_labels())
    their_points = their_rows(points)
    if "-b 1" in options:
        labels, _, values = svmutil.svm_predict([0] * len(points), their_points, again, "-b 1 -q")
        np.testing.assert_allclose(clf.predict_proba(points)[:, again.get_labels()], values, atol=5e-3)
        assert np.mean(clf.predict(points) == labels) > 0.99
        clf.set_params(calibration=None)
    labels, _, _ = svmutil.svm_predict([0] * len(points), their_points, again, "-q")
    np.testing.assert_array_equal(clf.predict(points), labels)
    save_model(clf, tmp_path / "ours")
    np.testing.assert_array_equal(load_model(tmp_path / "ours").predict(points), labels)
    dump_libsvm(clf, tmp_path / "back")
    back = svmutil.svm_load_model(str(tmp_path / "back"))
    np.testing.assert_array_equal(svmutil.svm_predict([0] * len(points), their_points, back, "-q")[0], labels)


def test_precomputed_models_of_libsvm(tmp_path: Path) -> None:
    svmutil = libsvm()
    training = [{0: i + 1, **row} for i, row in enumerate(their_rows(kernel_values(X)))]
    model = svmutil.svm_train(Y.tolist(), training, "-t 4 -c 2 -q")
    svmutil.svm_save_model(str(tmp_path / "theirs"), model)
    points = [{0: 1, **row} for row in their_rows(kernel_values(POINTS))]
    labels, _, _ = svmutil.svm_predict([0] * len(points), points, model, "-q")
    clf = load_libsvm(tmp_path / "theirs", n_features=len(X))
    np.testing.assert_array_equal(clf.predict(kernel_values(POINTS)), labels)


@pytest.mark.parametrize("name", LINEAR_CASES)
def test_liblinear_reads_what_we_write(name: str, tmp_path: Path) -> None:
    util, clf = liblinear(), fitted(name)
    model = util.load_model(str(dumped(clf, tmp_path)))
    labels, _, values = util.predict([], their_rows(POINTS), model, "-q")
    np.testing.assert_array_equal(np.array(labels, dtype=np.int64), clf.predict(POINTS))
    theirs = np.array(values)[:, 0] if len(clf.classes_) == 2 else np.array(values)
    np.testing.assert_allclose(theirs, clf.decision_function(POINTS), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("options", ["-s 1 -B 1", "-s 2", "-s 3 -B 2", "-s 4"])
@pytest.mark.parametrize("two", [False, True])
def test_we_read_what_liblinear_writes(options: str, two: bool, tmp_path: Path) -> None:
    util = liblinear()
    shuffled = np.random.default_rng(0).permutation(150)
    kept = shuffled[DIGIT_LABELS[shuffled] < 2] if two else shuffled
    model = util.train(DIGIT_LABELS[kept].tolist(), their_rows(DIGITS[kept]), f"{options} -q")
    util.save_model(str(tmp_path / "theirs"), model)
    points = DIGITS[150:]
    labels, _, _ = util.predict([], their_rows(points), model, "-q")
    clf = load_libsvm(tmp_path / "theirs", n_features=16)
    assert isinstance(clf, LinearSVC)
    np.testing.assert_array_equal(clf.predict(points), labels)


def test_votes_in_another_order() -> None:
    D = np.random.default_rng(0).normal(size=(200, 6)).round(0)
    np.testing.assert_array_equal(vote_in_order(D, range(4)), vote(D, 4))
    turned = vote_in_order(D, (3, 2, 1, 0))
    np.testing.assert_array_equal(turned, 3 - vote(-D[:, [5, 4, 2, 3, 1, 0]], 4))
    assert (turned != vote(D, 4)).any()


def test_sparse_support_vectors_stay_sparse(tmp_path: Path) -> None:
    rows = sparse.random_array((40, 200), density=0.05, rng=np.random.default_rng(0), format="csr")
    labels = np.arange(40) % 3
    clf = SVC().fit(rows, labels)
    again = load_libsvm(dumped(clf, tmp_path), n_features=200)
    assert sparse.issparse(again.support_vectors_)
    np.testing.assert_array_equal(again.decision_function(rows), clf.decision_function(rows))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: fitted("machine ww"), "one-vs-one votes only, not multi_class='ww' with 3 classes"),
        (lambda: fitted("machine dag"), "not multi_class='dag'"),
        (lambda: fitted("kernel laplacian"), "do not hold kernel='laplacian'"),
        (lambda: SVC().fit(X, TEXTS), "are not integers of 32 bits"),
        (lambda: fitted("bools"), "are not integers of 32 bits"),
        (lambda: SVC(calibration="sigmoid").fit(X, Y), "calibration='coupling' only, not 'sigmoid'"),
        (lambda: fitted("pairs"), "one kernel for all pairs of classes"),
        (lambda: fitted("linear ovo"), "not the pairs of multi_class='ovo'"),
        (SVC, "not fitted"),
    ],
)
def test_what_the_files_cannot_hold_is_refused(make: Callable[[], Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=message):
        dump_libsvm(make(), tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def changed(pattern: str, replacement: str) -> Callable[[str], str]:
    return lambda text: re.sub(pattern, replacement, text, count=1, flags=re.MULTILINE)


@pytest.mark.parametrize(
    ("case", "change", "message"),
    [
        ("kernel rbf", lambda _: "", "neither a svm_type of LIBSVM nor"),
        ("kernel rbf", changed("c_svc", "nu_svc"), "line 1 has svm_type nu_svc; only models of c_svc"),
        ("kernel rbf", changed("kernel_type rbf", "kernel_type chi2"), "line 2 has kernel_type chi2; known are"),
        ("kernel rbf", changed("^gamma .*\n", ""), "a kernel rbf with or without 'gamma'"),
        ("kernel rbf", changed("^gamma .*", "gamma nan"), "line 3 has a gamma that is no number"),
        ("kernel rbf", changed("^gamma .*", "gamma -1"), "gamma is negative"),
        ("kernel rbf", changed("^gamma .*", "gamma 1e999"), "line 3 has a gamma that is too large"),
        ("kernel poly", changed("^degree .*", "degree 2000000000"), "degree below 0 or above 10000"),
        ("kernel rbf", changed("^nr_class 3", "nr_class 2000000000"), "values of label, 2000000000 are needed"),
        ("kernel rbf", changed("^nr_class 3", "nr_class 3_0"), "nr_class that is no integer"),
        ("kernel rbf", changed("^total_sv", "total_sv 5"), "2 values of total_sv, 1 are needed"),
        ("kernel rbf", changed("^label 0 1", "label 1 1"), "a label twice"),
        ("kernel rbf", changed("^nr_sv ", "nr_sv 1"), "do not sum to its total_sv"),
        ("kernel rbf", changed("^rho \\S+", "rho"), "2 values of rho, 3 are needed"),
        ("kernel rbf", changed("^SV", "probA 1 1 1\nSV"), "only one of probA and probB"),
        ("kernel rbf", changed("^SV", "label 1 2 3\nSV"), "'label' a second time"),
        ("kernel rbf", changed("^SV", "magic 3\nSV"), "the key 'magic', which is not known"),
        ("kernel rbf", changed("^SV$", "sv"), "the key 'sv'|breaks off"),
        ("kernel rbf", lambda text: text[: text.index("SV\n")], "breaks off before the line 'SV'"),
        ("kernel rbf", lambda text: text.rsplit("\n", 2)[0] + "\n", "lines of support vectors after its header"),
        ("kernel rbf", lambda text: text[:-9], "its last line has no end"),
        ("kernel rbf", lambda text: text + "\n", "lines of support vectors after its header"),
        ("kernel rbf", changed("1:(\\S+) 2:", "2:\\1 1:"), "indices that do not ascend from 1"),
        ("kernel rbf", changed("1:(\\S+) 2:", "0:\\1 2:"), "indices that do not ascend from 1"),
        ("kernel rbf", changed("1:(\\S+) 2:", "1:\\1 9999999999:"), "ascend|too large"),
        ("kernel rbf", changed(" 1:\\S+ 2:", " 1:inf 2:"), "no line of support vectors"),
        ("kernel rbf", changed(" 1:\\S+ 2:", " 1:1e999 2:"), "a number that is too large"),
        ("precomputed", changed(" 0:\\d+", " 0:0"), "a serial number below 1"),
        ("precomputed", changed(" 0:\\d+", " 0:1.5"), "no line of support vectors"),
        ("linear ova", changed("L2R_L1LOSS_SVC_DUAL", "L2R_LR"), "line 1 has solver_type L2R_LR; only models of"),
        ("linear ova", changed("^nr_feature .*", "nr_feature 2000000000"), "lines of weights after its header"),
        ("linear ova", changed("^bias .*", "bias -1"), "lines of weights after its header"),
        ("linear ova", changed("^bias .*", "bias 1e308"), "an intercept that is too large"),
        ("linear ova", changed("^w$", "w 5"), "the key 'w', which is not known"),
        ("linear ova", lambda text: text[:-4] + "e999 \n", "a weight that is too large|no line of weights"),
    ],
)
def test_a_damaged_file_is_refused(case: str, change: Callable[[str], str], message: str, tmp_path: Path) -> None:
    path = dumped(fitted(case), tmp_path)
    text = change(path.read_text())
    assert text != path.read_text()
    path.write_text(text)
    with pytest.raises(ModelFileError, match=message) as caught:
        load_libsvm(path)
    assert str(caught.value).startswith(f"{path}: ")


def test_too_few_features_are_refused(tmp_path: Path) -> None:
    path = dumped(fitted("kernel rbf"), tmp_path)
    with pytest.raises(ValueError, match="n_features=3 is less than the index 4"):
        load_libsvm(path, n_features=3)
    with pytest.raises(TypeError, match="n_features='4' is not an integer"):
        load_libsvm(path, n_features="4")  # type: ignore[arg-type]
    path = dumped(fitted("linear ova"), tmp_path)
    with pytest.raises(ValueError, match="n_features=3 is less than the 4 in the file"):
        load_libsvm(path, n_features=3)
    np.testing.assert_array_equal(load_libsvm(path, n_features=6).coef_[:, 4:], 0)
