"""The report: one file that loads nothing, escapes all names, and has the right numbers."""

from __future__ import annotations

import re
import sys
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import confusion_matrix
from sklearn.model_selection import GridSearchCV, GroupKFold, ShuffleSplit, StratifiedKFold, cross_val_predict
from sklearn.multiclass import OneVsOneClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC as PEER

from multimargin import SVC, SVCCV
from multimargin.model_selection.grid import read_grid
from multimargin.model_selection.html_report import in_words, write_report
from multimargin.verification.bounds import count_support, generalization_bound

CELLS = {"C": [0.25, 4.0], "gamma": [0.02, 0.5]}
NAMES = ["</td><script>alert('a')</script>", '$x_{$ & "q"', "\ud800\x00<img src=http://e.vil/x onerror=a()>"]
VOID = {"meta", "img", "br", "use", "path"}


def noisy_iris() -> tuple[Any, Any]:
    X, y = load_iris(return_X_y=True)
    return X + np.random.default_rng(0).normal(0.0, 0.5, X.shape), y


X, Y = noisy_iris()


class Page(HTMLParser):
    """Reads a page: its tags are closed in order; tables and code are kept as text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.tables: list[list[list[str]]] = []
        self.text = ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data
        if self.open and self.open[-1] in ("td", "th"):
            self.tables[-1][-1][-1] += data

    def confusions(self) -> np.ndarray:
        table = next(each for each in self.tables if each[0][0].startswith("true \\"))
        return np.array([[int(cell) for cell in line[1:]] for line in table[1:]])


def written(search: Any, path: Path, *args: Any, **kwargs: Any) -> Page:
    write_report(search, path, *args, **kwargs)
    return Page(path.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def search() -> GridSearchCV:
    return GridSearchCV(SVC(), CELLS, cv=StratifiedKFold(3)).fit(X, Y)


def test_theory_is_about_the_models_own_rows(search: GridSearchCV, tmp_path: Path) -> None:
    model = SVC(**search.best_params_).fit(X, Y)
    page = written(search, tmp_path / "report.html", X, Y)
    assert str(count_support(model)) in page.text
    assert str(generalization_bound(model, X, Y)) in page.text
    for rows, labels in ((X[::-1], Y[::-1]), (X[:100], Y[:100]), (None, None)):
        assert "No bound: it needs" in written(search, tmp_path / "other.html", rows, labels).text


def test_the_page_needs_nothing_else(search: GridSearchCV, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    page = written(search, path, X, Y)
    kinds = [tag for tag, _ in page.tags]
    assert kinds.count("svg") == 2
    assert not {"script", "link", "iframe", "img", "object"} & set(kinds)
    for _, attributes in page.tags:
        assert not [name for name in attributes if name.startswith("on")]
        for name in ("src", "href", "xlink:href"):
            assert (attributes.get(name) or "#").startswith(("#", "data:"))
    assert not re.search(r"url\((?!#)|@import", path.read_text())
    assert [file.name for file in tmp_path.iterdir()] == ["report.html"]
    ids = [attributes["id"] for tag, attributes in page.tags if tag == "clippath"]
    assert len(ids) == len(set(ids)) > 0  # clip paths of one figure do not affect another


def test_the_same_search_gives_the_same_page_in_any_style(search: GridSearchCV, tmp_path: Path) -> None:
    write_report(search, tmp_path / "a.html")
    with mpl.rc_context(
        {"figure.facecolor": "black", "svg.fonttype": "path", "axes.prop_cycle": "cycler('color', 'r')"}
    ):
        write_report(search, tmp_path / "b.html")
        assert mpl.rcParams["figure.facecolor"] == "black"
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()


def test_hostile_names_are_only_text(tmp_path: Path) -> None:
    labels = np.array(NAMES, dtype=object)[Y]
    model = SVC(class_weight={NAMES[0]: 2.0})
    page = written(GridSearchCV(model, CELLS, cv=2).fit(X, labels), tmp_path / "report.html", X, labels)
    assert not {"script", "img"} & {tag for tag, _ in page.tags}
    table = next(each for each in page.tables if each[0][0].startswith("true \\"))
    for name in NAMES[:2]:
        assert name in table[0]
        assert name in [line[0] for line in table]
    assert "<img src=http://e.vil/x onerror=a()>" in page.text
    without_data = written(GridSearchCV(model, CELLS, cv=2).fit(X, labels), tmp_path / "report.html")
    assert NAMES[0] in without_data.text


@pytest.mark.parametrize("weighted", [False, True])
def test_confusions_are_those_of_rows_left_out(search: GridSearchCV, tmp_path: Path, weighted: bool) -> None:
    weight = np.where(Y == 2, 5.0, 0.2) if weighted else None
    rows = sparse.csr_array(X)
    page = written(clone(search).fit(rows, Y), tmp_path / "report.html", rows, Y, sample_weight=weight)
    predicted = cross_val_predict(
        search.best_estimator_, X, Y, cv=StratifiedKFold(3), params={"sample_weight": weight} if weighted else None
    )
    np.testing.assert_array_equal(page.confusions(), confusion_matrix(Y, predicted))
    assert f"{100 * np.mean(predicted == Y):.2f} % of them right" in page.text
    assert "No model predicted a row that it was trained on" in page.text
    assert "150 x 4" in page.text


def test_confusions_by_other_folds(tmp_path: Path) -> None:
    splits = list(StratifiedKFold(3).split(X, Y))
    once = GridSearchCV(SVC(), CELLS, cv=iter(splits)).fit(X, Y)
    page = written(once, tmp_path / "a.html", X, Y)
    predicted = cross_val_predict(once.best_estimator_, X, Y, cv=5)
    np.testing.assert_array_equal(page.confusions(), confusion_matrix(Y, predicted))
    assert "five stratified folds (those of the search cannot be reproduced)" in page.text
    listed = GridSearchCV(SVC(), CELLS, cv=splits).fit(X, Y)
    page = written(listed, tmp_path / "b.html", X[::2], Y[::2])
    assert "five stratified folds" in page.text
    assert max(len(cell) for table in page.tables for line in table for cell in line) < 500  # cv as arrays is long
    half = GridSearchCV(SVC(), CELLS, cv=ShuffleSplit(2, test_size=0.3, random_state=0)).fit(X, Y)
    assert written(half, tmp_path / "c.html", X, Y).confusions().sum() == 2 * 45
    groups = np.arange(150) % 7
    grouped = GridSearchCV(SVC(), CELLS, cv=GroupKFold(3)).fit(X, Y, groups=groups)
    page = written(grouped, tmp_path / "d.html", X, Y, groups=groups)
    predicted = cross_val_predict(grouped.best_estimator_, X, Y, cv=GroupKFold(3), groups=groups)
    np.testing.assert_array_equal(page.confusions(), confusion_matrix(Y, predicted))


def test_a_given_kernel_is_split_on_both_sides(tmp_path: Path) -> None:
    search = GridSearchCV(SVC(kernel="precomputed"), {"C": [1.0, 4.0]}, cv=3).fit(X @ X.T, Y)
    page = written(search, tmp_path / "report.html", X @ X.T, Y)
    predicted = cross_val_predict(SVC(kernel="linear", C=search.best_params_["C"]), X, Y, cv=3)
    assert np.abs(page.confusions() - confusion_matrix(Y, predicted)).sum() <= 2  # rounding of the kernel's values


def test_many_classes_are_listed_by_confusions(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(31), 4)
    data = rng.normal(size=(len(y), 2)) + y[:, None]
    page = written(GridSearchCV(SVC(), CELLS, cv=2).fit(data, y), tmp_path / "report.html", data, y)
    assert "With 31 classes only the most frequent confusions are listed." in page.text
    table = next(each for each in page.tables if each[0] == ["true class", "taken for", "times"])
    counts = [int(line[2]) for line in table[1:]]
    assert counts == sorted(counts, reverse=True)
    assert len(counts) == 5


def test_the_choice_and_the_best_cells(search: GridSearchCV, tmp_path: Path) -> None:
    page = written(search, tmp_path / "report.html")
    best = search.best_params_
    std = search.cv_results_["std_test_score"][search.best_index_]
    assert (
        f"C={best['C']:g} and gamma={best['gamma']:g}: mean accuracy {search.best_score_:.4f} over 3 folds, standard "
        f"deviation {std:.4f}" in page.text
    )
    assert f"C={best['C']:g} is the {'largest' if best['C'] == 4 else 'smallest'} C tried: a wider grid" in page.text
    table = next(each for each in page.tables if each[0][0] == "C")
    means = [float(line[2]) for line in table[1:]]
    np.testing.assert_allclose(means, np.sort(search.cv_results_["mean_test_score"])[::-1], atol=5e-5)
    assert "Not counted: the report was written without data. Give it X and y." in page.text


def test_the_code_makes_the_same_model(search: GridSearchCV, tmp_path: Path) -> None:
    nested = {f"estimator__{name}": values for name, values in CELLS.items()}
    peer = GridSearchCV(PEER(class_weight="balanced"), CELLS, cv=2).fit(X, Y)
    pairs = GridSearchCV(OneVsOneClassifier(SVC(multi_class="ww")), nested, cv=2).fit(X, Y)
    piped = GridSearchCV(make_pipeline(StandardScaler(), SVC()), {"svc__C": [1.0, 2.0]}, cv=2).fit(X, Y)
    for own in (search, peer, pairs, piped):
        write_report(own, tmp_path / "report.html")
        code = unescape((tmp_path / "report.html").read_text().split("<code>")[1].split("</code>")[0])
        namespace: dict[str, Any] = {"search": own, "X": X, "y": Y, "X_new": X}
        exec(code, namespace)
        assert repr(namespace["model"].get_params()) == repr(own.best_estimator_.get_params())
        assert "._" not in code
        assert ("from multimargin import SVC\n" in code) == (own is not peer)


def test_certificates_in_words(search: GridSearchCV, tmp_path: Path) -> None:
    proof = search.best_estimator_.certificate_
    page = written(search, tmp_path / "report.html")
    for sentence in in_words(proof):
        assert sentence in page.text
    assert f"violated by at most {proof.kkt_violation:.2g}, within tol=0.001." in page.text
    assert "consists of 3 separate problems; these numbers are those of the worst" in page.text
    assert "All of this was recomputed in float64 after training." in page.text
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        stopped = SVC(multi_class="ww", max_iter=1, solver="smo", gamma=0.1).fit(X, Y)
    words = " ".join(in_words(stopped.certificate_))
    assert "The fit ended early (max_iter): the optimality conditions are violated by at most" in words
    assert "which is more than tol=0.001." in words
    page = written(GridSearchCV(PEER(), CELLS, cv=2).fit(X, Y), tmp_path / "report.html")
    assert "Not known: the model has no certificate." in page.text


def test_cells_that_were_stopped_are_counted(search: GridSearchCV, tmp_path: Path) -> None:
    stopped = np.zeros((2, 2), dtype=bool)
    stopped[0] = True
    known = {
        name: getattr(search, name) for name in ("best_estimator_", "best_params_", "get_params", "scoring", "refit")
    }
    given = {"Cs_": CELLS["C"], "gammas_": CELLS["gamma"], "scores_": {"score": read_grid(search).scores}}
    page = written(SimpleNamespace(**known, **given, stopped_=stopped), tmp_path / "report.html")
    assert "2 cells with a cross were stopped early" in page.text
    table = next(each for each in page.tables if each[0][0] == "C")
    assert len(table) == 1 + 2  # they are not among the best


def test_pairs_with_cells_of_their_own(search: GridSearchCV, tmp_path: Path) -> None:
    pair = {"first": "<a>", "second": "b", "C": 0.25, "gamma": 0.5, "score": 0.96875}
    known = {name: getattr(search, name) for name in ("cv_results_", "best_params_", "get_params", "scoring", "refit")}
    chosen = SimpleNamespace(rows=lambda: [pair])
    page = written(SimpleNamespace(**known, pair_selection_=chosen), tmp_path / "report.html")
    table = next(each for each in page.tables if each[0] == ["class", "against", "C", "gamma", "mean accuracy"])
    assert table[1:] == [["<a>", "b", "0.25", "0.5", "0.9688"]]


def test_the_report_of_svccv(tmp_path: Path) -> None:
    own = SVCCV(Cs=CELLS["C"], gammas=CELLS["gamma"], cv=3, multi_class="cs", tol=1e-4).fit(X, Y)
    page = written(own, tmp_path / "report.html", X, Y)
    predicted = cross_val_predict(own.best_estimator_, X, Y, cv=3)
    np.testing.assert_array_equal(page.confusions(), confusion_matrix(Y, predicted))
    for sentence in in_words(own.certificate_):
        assert sentence in page.text
    chosen = own.best_params_
    assert f"model = SVC(C={chosen['C']!r}, gamma={chosen['gamma']!r}, multi_class='cs', tol=0.0001)" in page.text
    assert ["multi_class", "'cs'"] in [line for table in page.tables for line in table]
    linear = SVCCV(Cs=CELLS["C"], cv=3, kernel="linear").fit(X, Y)
    text = written(linear, tmp_path / "report.html").text
    assert f"C={linear.best_params_['C']:g}: mean accuracy {linear.best_score_:.4f} over 3 folds" in text


def test_without_a_model(tmp_path: Path) -> None:
    page = written(GridSearchCV(SVC(), CELLS, cv=2, refit=False).fit(X, Y), tmp_path / "report.html", X, Y)
    assert page.text.count("search has no model of its own (refit=False)") == 2


def test_a_report_that_cannot_be_written_leaves_the_old_one(
    search: GridSearchCV, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "report.html"
    path.write_text("old")
    with pytest.raises(ValueError, match="y=None, but the other is given; give both X and y, or neither"):
        write_report(search, path, X)
    with pytest.raises(ValueError, match="has no scores to show"):
        write_report(SVC(), path)
    with pytest.raises(ValueError, match="is in a folder that does not exist"):
        write_report(search, tmp_path / "no" / "report.html")

    def fail(*_: object) -> None:
        raise OSError("full")

    with monkeypatch.context() as patched:
        patched.setattr("os.replace", fail)
        with pytest.raises(OSError, match="full"):
            write_report(search, path)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"write_report needs matplotlib.*multimargin\[plots\]"):
        write_report(search, path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
