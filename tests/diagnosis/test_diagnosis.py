"""diagnose: finds planted problems by name, and nothing in sound data; its texts are those of the warnings."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn import svm
from sklearn.base import clone
from sklearn.datasets import load_iris, make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from multimargin import SVC, SVCCV, Diagnosis, LinearSVC, Machine, diagnose
from multimargin.diagnosis.data_checks import row_numbers
from multimargin.fitting.advice import large_cost, unscaled_column, wide_columns
from multimargin.problems.machines import Bound, ComponentTable

X, Y = load_iris(return_X_y=True)
X[101] += 0.01  # iris has one row twice
SERIOUS = ("error", "warning")


def serious(found: Diagnosis) -> list[str]:
    return [finding.topic for finding in found.findings if finding.severity in SERIOUS]


@pytest.mark.parametrize(
    "estimator",
    [
        None,
        SVC(multi_class="ww"),
        SVC(multi_class="cs", loss="squared_hinge"),
        SVC(kernel="linear"),
        SVC(kernel="laplacian"),
        LinearSVC(),
        LinearSVC(multi_class="ovo"),
        SVC(multi_class=Machine("own", Bound.BOX, False, ComponentTable.relative(3, 1.0))),
        SVC(calibration="sigmoid", verbose=1, trace=True, warm_start=True),
        SVCCV(Cs=[1.0, 10.0], gammas=[0.1], cv=3),
    ],
    ids=repr,
)
def test_sound_data_are_sound(estimator: Any, capsys: pytest.CaptureFixture[str]) -> None:
    before = None if estimator is None else repr(clone(estimator))
    found = diagnose(X, Y, estimator)
    assert serious(found) == []
    assert found.healthy
    (forecast,) = found.of("forecast")
    assert found.seconds > 0
    assert found.megabytes > 0
    assert "seconds" in forecast.text
    assert (found.n_samples, found.n_features, found.n_classes) == (150, 4, 3)
    if estimator is not None:
        assert repr(estimator) == before
        assert not hasattr(estimator, "classes_")
    assert capsys.readouterr() == ("", "")


def test_an_unscaled_column_is_named() -> None:
    frame = pd.DataFrame(X * [1.0, 1.0, 1000.0, 1.0], columns=["a", "b", "wide", "d"])
    (finding,) = diagnose(frame, Y).of("unscaled columns")
    assert finding.text.startswith("column 'wide' of X varies ")
    assert finding.line == "clf = make_pipeline(StandardScaler(), SVC())"
    assert diagnose(frame, Y, make_pipeline(StandardScaler(), SVC())).healthy
    (finding,) = diagnose(sparse.csr_array(X * [1.0, 1.0, 1.0, 1e4]), Y, LinearSVC()).of("unscaled columns")
    assert finding.text.startswith("column 3 of X")
    assert "MaxAbsScaler" in finding.line


def test_one_of_two_columns_may_be_the_wide_one() -> None:
    assert [column for column, _ in wide_columns(X[:, :2] * [1.0, 1e4])] == [1]
    assert wide_columns(np.ones((5, 3))) == []


def test_the_words_are_those_of_the_warning() -> None:
    X_wide = X * [1.0, 1.0, 1000.0, 1.0]
    (column, ratio), *_ = wide_columns(X_wide)
    with pytest.warns(ConvergenceWarning) as caught:
        SVC(max_iter=1).fit(X_wide, Y)
    advice = unscaled_column(str(column), ratio)
    assert advice.sentence in str(caught[0].message)
    assert advice.text in diagnose(X_wide, Y).of("unscaled columns")[0].text
    with pytest.warns(ConvergenceWarning) as caught:
        SVC(max_iter=1, C=1e6).fit(X, Y)
    assert large_cost(1e6).sentence in str(caught[0].message)
    assert any(large_cost(1e6).text in finding.text for finding in diagnose(X, Y, SVC(C=1e6)).of("C"))


def test_constant_columns_are_named() -> None:
    frame = pd.DataFrame(X, columns=list("abcd")).assign(flat=3.0, level=0.0)
    (finding,) = diagnose(frame, Y).of("constant columns")
    assert finding.text.endswith("in columns 'flat', 'level'")
    assert finding.severity == "note"


def test_conflicting_labels() -> None:
    rows, labels = np.vstack([X, X[:3], X[:3]]), np.concatenate([Y, [1, 2, 0], [1, 1, 0]])
    rows[-1, 0] = X[2, 0]
    (finding,) = diagnose(rows, labels).of("conflicting labels")
    # Of row 0 two of three labels agree, of row 1 none of three, of row 2 all three.
    assert finding.text.startswith("6 rows occur with another label, too (such as rows 0 and 150)")
    assert f"{(156 - 3) / 156:.1%}" in finding.text
    assert finding.line == "print(X[[0, 150]])"
    (of_sparse,) = diagnose(sparse.csr_array(rows), labels).of("conflicting labels")
    assert of_sparse.text == finding.text
    (of_frame,) = diagnose(pd.DataFrame(rows), labels).of("conflicting labels")
    assert of_frame.line == "print(X.iloc[[0, 150]])"


def test_rows_are_told_apart() -> None:
    rows = np.array([[0.0, 1.0], [-0.0, 1.0], [1.0, 0.0], [0.0, 1.0]])
    np.testing.assert_array_equal(row_numbers(rows), [0, 0, 1, 0])
    np.testing.assert_array_equal(row_numbers(sparse.csr_array(rows)), [0, 0, 1, 0])


def test_repeated_rows() -> None:
    found = diagnose(np.vstack([X, X]), np.tile(Y, 2))
    assert found.of("repeated rows")[0].text.startswith("150 of 300 rows repeat others")
    assert found.of("conflicting labels") == ()


def test_small_and_rare_classes() -> None:
    labels = np.array(["a", "b", "c"], dtype="U3")[Y]
    labels[:3] = "few"
    (finding,) = diagnose(X, labels).of("small classes")
    assert finding.text.startswith("class few (3) has fewer than 5 rows")
    assert finding.line == "search = SVCCV(cv=3)"
    labels[1:3] = "a"
    assert diagnose(X, labels).of("small classes")[0].line == "kept = ~numpy.isin(y, ['few'])"
    rows, many = make_classification(600, weights=[0.99], flip_y=0, random_state=0)
    (finding,) = diagnose(rows, many).of("rare classes")
    assert finding.text.startswith("class 1 has")
    assert "balanced" in finding.line


@pytest.mark.parametrize(
    ("estimator", "said"),
    [
        (SVC(gamma=1e-6, C=1e6), "nearly constant"),
        (SVC(gamma=1e5), "nearly the identity"),
        (SVC(kernel="laplacian", gamma=1e-6), "nearly constant"),
        (SVC(kernel="laplacian", gamma=1e4), "nearly the identity"),
    ],
)
def test_a_gamma_out_of_range(estimator: SVC, said: str) -> None:
    (finding,) = diagnose(X, Y, estimator).of("gamma")
    assert said in finding.text
    better = eval(finding.line.removeprefix("clf = "), {"SVC": SVC})
    assert diagnose(X, Y, better).of("gamma") == ()


@pytest.mark.parametrize(
    "estimator",
    [
        SVC(C=1e-7),
        SVC(C=1e-7, multi_class="ww"),
        SVC(C=1e-7, multi_class="cs", bias="regularized"),
        SVC(C=1e-7, kernel="linear", multi_class="llw"),
        LinearSVC(C=1e-7),
        LinearSVC(C=1e-8, multi_class="ovo", bias="none"),
    ],
    ids=repr,
)
def test_a_cost_that_is_too_small(estimator: Any) -> None:
    (finding,) = diagnose(X, Y, estimator).of("C")
    assert finding.severity == "warning"
    assert "is too small to tell rows apart" in finding.text
    better = clone(estimator).set_params(C=float(finding.line.split("C=")[1].rstrip(")")))
    assert diagnose(X, Y, better).of("C") == ()


def test_a_cost_at_the_end_of_its_range() -> None:
    (finding,) = diagnose(X, Y, SVC(C=900.0, gamma=10.0)).of("C")
    assert "no example is at its bound" in finding.text
    assert finding.severity == "note"
    assert diagnose(X, Y, SVC(C=float("inf"), gamma=10.0)).of("C") == ()


@pytest.mark.parametrize(
    ("rows", "labels", "topic", "said"),
    [
        (np.where(X > 7.5, np.nan, X), Y, "missing values", "6 values of X are NaN or infinite, in column 0"),
        (X, X[:, 0], "labels", "y is continuous"),
        (X, np.where(Y > 1, np.nan, Y), "labels", "50 labels are NaN"),
        (X, np.zeros(150), "labels", "y has one class only"),
        (pd.DataFrame({"a": X[:, 0], "b": ["x"] * 150}), Y, "text columns", "X holds no numbers in column 'b'"),
    ],
)
def test_what_no_fit_can_do_with(rows: Any, labels: np.ndarray, topic: str, said: str) -> None:
    found = diagnose(rows, labels)
    (finding,) = found.of(topic)
    assert finding.severity == "error"
    assert said in finding.text
    assert np.isnan(found.seconds)
    assert not found.healthy


def test_text_columns_that_a_pipeline_deals_with() -> None:
    frame = pd.DataFrame({"a": np.array(["x", "y", "z"])[Y], "b": np.array(["u", "v"])[np.arange(150) % 2]})
    found = diagnose(frame, Y, make_pipeline(OneHotEncoder(), SVC()))
    assert found.of("text columns") == ()
    assert found.n_features == 5


def test_a_precomputed_kernel() -> None:
    assert serious(diagnose(X @ X.T, Y, SVC(kernel="precomputed"))) == []


def test_shown_in_every_way() -> None:
    found = diagnose(X * [1, 1, 1000, 1], Y)
    text = str(found)
    assert text.startswith("150 rows, 4 columns, 3 classes: 1 to check\n  ! column 2 of X")
    assert "\n      clf = make_pipeline(StandardScaler(), SVC())\n" in text
    plain = json.loads(json.dumps(found.to_dict()))
    assert plain["findings"][0]["topic"] == "unscaled columns"
    assert plain["healthy"] is False
    html = found._repr_html_()
    assert html.count("<tr>") == len(found.findings)
    assert "&lt;" not in html


def test_other_estimators_are_refused() -> None:
    with pytest.raises(TypeError, match=r"estimator=SVC\(\) is not known to diagnose"):
        diagnose(X, Y, svm.SVC())
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        diagnose(X, Y[:-1])
