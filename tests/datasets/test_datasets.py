"""Data sets by name, and the generated ones."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from multimargin import SVC, datasets
from multimargin.data_files import DataFileError, Table, write_data
from multimargin.datasets.named import checksum_of


@pytest.fixture
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No local data, and an empty cache."""
    monkeypatch.delenv("MULTIMARGIN_DATA", raising=False)
    monkeypatch.setenv("MULTIMARGIN_CACHE", str(tmp_path / "cache"))
    return tmp_path


class Fetcher:
    """OpenML without a network: counts how often it is asked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, data: Any, target: Any) -> None:
        self.asked: list[int] = []
        self.answer = SimpleNamespace(data=data, target=target)
        monkeypatch.setattr("multimargin.datasets.named.shipped.fetch_openml", self)

    def __call__(self, *, data_id: int, **options: Any) -> Any:
        self.asked.append(data_id)
        return self.answer


def test_a_local_copy_comes_first(nowhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MULTIMARGIN_DATA", str(nowhere))
    write_data(nowhere / "iris.csv", Table(np.eye(2), np.array(["a", "b"])))
    found = datasets.load("iris")
    assert found.X.shape == (2, 2)
    assert found.source.endswith("iris.csv")
    write_data(nowhere / "iris.train.svm.bz2", Table(np.array([[1.0, 2.0, 0.0]]), np.array([7])))
    (nowhere / "iris.test.svm").write_text("7 1:5\n")
    found = datasets.load("iris")
    assert found.X.shape == (1, 3)
    assert found.X_test is not None
    np.testing.assert_array_equal(found.X_test, [[5, 0, 0]])
    assert found.y_test is not None
    assert found.y_test.tolist() == [7]
    (nowhere / "iris.test.svm").write_text("7 9:5\n")
    with pytest.raises(DataFileError, match=r"iris\.test\.svm: has 9 columns, but the training part has 3"):
        datasets.load("iris")


@pytest.mark.usefixtures("nowhere")
@pytest.mark.parametrize(
    ("name", "shape"), [("iris", (150, 4)), ("wine", (178, 13)), ("digits", (1797, 64)), ("breast_cancer", (569, 30))]
)
def test_sets_that_scikit_learn_ships(name: str, shape: tuple[int, int]) -> None:
    found = datasets.load(name, download=False)
    assert found.X.shape == shape
    assert found.source == "scikit-learn"


def test_a_download_is_kept_and_checked(nowhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = np.arange(6.0).reshape(3, 2), np.array(["A", "B", "A"], dtype=object)
    fetcher = Fetcher(monkeypatch, X, y)
    with pytest.raises(
        FileNotFoundError, match="'letter' is not on this machine; set download=True, or MULTIMARGIN_DATA"
    ):
        datasets.load("letter", download=False)
    for _ in range(2):
        found = datasets.load("letter")
        np.testing.assert_array_equal(found.X, X)
        assert found.y.tolist() == ["A", "B", "A"]
        assert found.source == "OpenML 6"
    assert fetcher.asked == [6]
    assert datasets.load("letter", download=False, sha256=checksum_of(X, y.astype(str))).X.shape == (3, 2)
    with pytest.raises(DataFileError, match=r"openml-6\.npz: has the SHA-256 \w+ instead of 1234; delete it"):
        datasets.load("letter", sha256="1234")
    write_data(nowhere / "cache" / "openml-6.npz", Table(X + 1, y.astype(str)))
    with pytest.raises(DataFileError, match=r"has the SHA-256 .* delete it, and load again"):
        datasets.load("letter")
    (nowhere / "cache" / "openml-6.npz").write_bytes(b"damaged")
    with pytest.raises(DataFileError, match="is damaged or no npz file"):
        datasets.load("letter")


@pytest.mark.usefixtures("nowhere")
def test_numbers_of_openml_and_labels_that_are_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    fetcher = Fetcher(monkeypatch, np.eye(2), np.array(["10", "2"], dtype=object))
    found = datasets.load("openml:123")
    assert fetcher.asked == [123]
    assert found.y.tolist() == [10, 2]
    fetcher.answer.data = np.array([[np.nan, 1.0], [0.0, 1.0]])
    with pytest.raises(ValueError, match="'openml:124' of OpenML is no table of finite numbers"):
        datasets.load("openml:124")
    with pytest.raises(FileNotFoundError):
        datasets.load("openml:124", download=False)


@pytest.mark.usefixtures("nowhere")
def test_without_a_network_and_with_wrong_names(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(**options: Any) -> Any:
        raise OSError("no route")

    monkeypatch.setattr("multimargin.datasets.named.shipped.fetch_openml", fail)
    with pytest.raises(OSError, match=r"'letter' could not be downloaded from OpenML \(no route\); .*MULTIMARGIN_DATA"):
        datasets.load("letter")
    with pytest.raises(ValueError, match="name='leter' is not a known data set; did you mean 'letter'"):
        datasets.load("leter")
    with pytest.raises(ValueError, match="is not a known data set; choose one of"):
        datasets.load("../secret")


@pytest.mark.parametrize("draw", [datasets.chessboard, datasets.banana, datasets.rings])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_generated_sets_repeat_and_can_be_learnt(draw: Any, n_classes: int) -> None:
    X, y = draw(800, n_classes=n_classes, random_state=3)
    again, labels = draw(800, n_classes=n_classes, random_state=3)
    np.testing.assert_array_equal(X, again)
    np.testing.assert_array_equal(y, labels)
    assert X.shape == (800, 2)
    assert sorted(set(y.tolist())) == list(range(n_classes))
    assert SVC(C=100, gamma=4).fit(X, y).score(X, y) > 0.9
    for bad, what in ((1, "n_classes=1 is not allowed"), (900, "n_(samples|fields)=\\d+ is less than")):
        with pytest.raises(ValueError, match=what):
            draw(800, n_classes=bad)
    with pytest.raises(ValueError, match="noise=-1 is not allowed"):
        draw(noise=-1)


def test_shapes_of_the_generated_sets() -> None:
    X, y = datasets.rings(500, n_classes=5, noise=0.0, random_state=0)
    np.testing.assert_allclose(np.linalg.norm(X, axis=1), y + 1)
    X, y = datasets.chessboard(500, n_classes=3, n_fields=6, random_state=0)
    np.testing.assert_array_equal(np.floor(X).sum(axis=1) % 3, y)
    noisy = datasets.chessboard(5000, noise=0.5, random_state=0)
    assert 0.2 < (np.floor(noisy[0]).sum(axis=1) % 2 != noisy[1]).mean() < 0.3
    with pytest.raises(ValueError, match="noise=2 is not allowed; give a number >= 0 and <= 1"):
        datasets.chessboard(noise=2)


def test_overlapping_classes_repeat_and_mislabel_as_asked() -> None:
    X, y = datasets.overlapping(3000, n_classes=6, n_features=3, duplicates=0.5, random_state=0)
    assert X.shape == (3000, 3)
    assert np.bincount(y).tolist() == [500] * 6
    assert 0.3 < 1 - len(np.unique(X, axis=0)) / len(X) < 0.5
    again, labels = datasets.overlapping(3000, n_classes=6, n_features=3, duplicates=0.5, noise=0.3, random_state=0)
    np.testing.assert_array_equal(X, again)
    assert 0.2 < np.mean(labels != y) < 0.3
    wider, _ = datasets.overlapping(3000, n_classes=6, n_features=3, overlap=9.0, random_state=0)
    assert wider.std() > 3 * X.std()


@pytest.mark.parametrize(
    ("option", "value"), [("duplicates", 1.5), ("overlap", 0.0), ("n_features", 0), ("noise", -0.1)]
)
def test_what_overlapping_cannot_draw_is_refused(option: str, value: Any) -> None:
    with pytest.raises(ValueError, match=rf"{option}={value} is not allowed; give a number >"):
        datasets.overlapping(20, **{option: value})
