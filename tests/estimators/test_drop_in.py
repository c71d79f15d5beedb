"""What scikit-learn's SVC and LinearSVC do, to the letter: names, kinds of arrays, sentences."""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import numpy as np
import pytest
import sklearn
from scipy import sparse
from sklearn import svm
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils._param_validation import InvalidParameterError

from multimargin import SVC, LinearSVC, load_model, save_model, verify

X, y = load_iris(return_X_y=True)
TWO = y < 2


@pytest.mark.parametrize("rows", [X, sparse.csr_array(X)], ids=["dense", "sparse"])
@pytest.mark.parametrize("part", [slice(None), TWO], ids=["three", "two"])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_names_of_a_fitted_model(rows: Any, part: Any, kernel: str) -> None:
    """Signs, kinds and shapes are theirs, the private names too, which exporters read."""
    ours = SVC(kernel=kernel, tol=1e-8).fit(rows[part], y[part])
    theirs = svm.SVC(kernel=kernel, tol=1e-8).fit(rows[part], y[part])
    assert ours._gamma == pytest.approx(theirs._gamma, rel=1e-12)
    assert (ours._sparse, ours._impl) == (theirs._sparse, theirs._impl)
    names = ["support_", "support_vectors_", "n_support_", "_n_support", "dual_coef_", "_dual_coef_", "intercept_"]
    names += ["_intercept_", "_probA", "_probB", "shape_fit_", *(["coef_"] if kernel == "linear" else [])]
    for name in names:
        own, other = getattr(ours, name), getattr(theirs, name)
        assert type(own) is type(other), name
        own, other = (np.asarray(each.toarray() if sparse.issparse(each) else each) for each in (own, other))
        np.testing.assert_allclose(own, other, atol=1e-3, err_msg=name)
    assert ours._num_iter.shape == theirs._num_iter.shape


def test_sparse_arrays_where_scikit_learn_is_set_so() -> None:
    if "sparse_interface" not in sklearn.get_config():
        pytest.skip("this scikit-learn has no such setting")
    with sklearn.config_context(sparse_interface="sparray"):
        clf = SVC(kernel="linear").fit(sparse.csr_matrix(X), y)
        assert {type(clf.dual_coef_), type(clf.support_vectors_), type(clf.coef_)} == {sparse.csr_array}


def test_names_before_a_fit() -> None:
    for name in ("_gamma", "_dual_coef_", "_probA", "probA_", "coef_", "_n_support"):
        assert not hasattr(SVC(), name)


def test_coef_is_read_only() -> None:
    for rows in (X, sparse.csr_array(X)):
        clf = SVC(kernel="linear").fit(rows, y)
        with pytest.raises(ValueError, match="read-only"):
            clf.coef_[0, 0] = 1.0
        with pytest.raises(AttributeError):
            clf.coef_ = np.zeros((3, 4))  # type: ignore[misc]


@pytest.mark.filterwarnings("ignore:probability:FutureWarning")
def test_coefficients_of_the_sigmoids() -> None:
    clf = SVC(probability=True).fit(X[TWO], y[TWO])
    first = 1 / (1 + np.exp(clf._probB[0] - clf._probA[0] * clf.decision_function(X[TWO])))
    np.testing.assert_allclose(first, clf.predict_proba(X[TWO])[:, 0], rtol=1e-6)
    assert SVC(probability=True).fit(X, y)._probA.shape == (3,)
    with pytest.warns(FutureWarning, match="Attribute `probA_` was deprecated"):
        np.testing.assert_array_equal(clf.probA_, clf._probA)


@pytest.mark.filterwarnings("ignore:probability:FutureWarning")
def test_probabilities_of_a_class_with_one_row() -> None:
    """scikit-learn takes it; the warning says what the probabilities are worth."""
    rows, labels = X[[0, 1, 2, 50, 100, 101]], [0, 0, 0, 1, 2, 2]
    with pytest.warns(UserWarning, match="Class 1 has one example of positive weight"):
        clf = SVC(probability=True).fit(rows, labels)
    np.testing.assert_allclose(clf.predict_proba(X).sum(axis=1), 1)
    with pytest.raises(ValueError, match="calibration needs at least 2 examples of every class"):
        SVC(calibration="sigmoid").fit(rows, labels)


def test_probabilities_asked_for_after_the_fit() -> None:
    clf = SVC().fit(X, y).set_params(probability=True)
    assert hasattr(clf, "predict_proba")
    with pytest.raises(NotFittedError, match="predict_proba is not available when fitted with probability=False"):
        clf.predict_proba(X)
    np.testing.assert_array_equal(clf.predict(X), SVC().fit(X, y).predict(X))


@pytest.mark.parametrize("machine", [SVC(kernel="linear"), LinearSVC()], ids=["SVC", "LinearSVC"])
def test_weights_that_are_not_positive_leave_a_row_out(machine: Any) -> None:
    weight = np.ones(150)
    weight[::7], weight[3::7] = 0.0, -2.0
    kept = weight > 0
    part = machine.fit(X[kept], y[kept]).coef_
    np.testing.assert_allclose(machine.fit(X, y, weight).coef_, part, atol=1e-6)
    assert verify(machine, X, y, sample_weight=weight).optimal
    with pytest.raises(ValueError, match="Invalid input - all samples have zero or negative weights"):
        machine.fit(X, y, -weight * kept)


def test_ties_of_pairs_are_refused_when_they_are_asked_for() -> None:
    clf = SVC(break_ties=True, decision_function_shape="ovo").fit(X, y)
    assert clf.decision_function(X).shape == (150, 3)
    with pytest.raises(ValueError, match="break_ties must be False when decision_function_shape is 'ovo'"):
        clf.predict(X)


def overlap(A: Any, B: Any) -> np.ndarray:
    return np.array([[float(len(set(a) & set(b))) for b in B] for a in A])


@pytest.mark.parametrize("multi_class", ["ovo", "ww"])
def test_a_kernel_of_strings(multi_class: str) -> None:
    words = ["svm", "kernel", "margin", "apple", "pear", "plum", "nut", "oak"]
    labels = np.array(["text", "text", "text", "fruit", "fruit", "fruit", "tree", "tree"])
    clf = SVC(kernel=overlap, multi_class=multi_class).fit(words, labels)
    same = SVC(kernel="precomputed", multi_class=multi_class).fit(overlap(words, words), labels)
    new = ["ovum", "leaf", "core"]
    np.testing.assert_allclose(clf.decision_function(new), same.decision_function(overlap(new, words)), atol=1e-10)
    np.testing.assert_array_equal(clf.predict(np.array(new)), same.predict(overlap(new, words)))
    assert clf.score(words, labels) == 1.0
    again = pickle.loads(pickle.dumps(clf))
    np.testing.assert_array_equal(again.predict(new), clf.predict(new))
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        clf.fit(words, labels[:3])


def test_a_kernel_of_arrays_of_several_lengths() -> None:
    rng = np.random.default_rng(0)
    series = [rng.normal(loc=label, size=rng.integers(3, 9)) for label in (0, 5) for _ in range(10)]
    labels = np.repeat([0, 1], 10)

    def means(A: Any, B: Any) -> np.ndarray:
        return np.outer([a.mean() for a in A], [b.mean() for b in B])

    assert SVC(kernel=means, calibration="sigmoid").fit(series, labels).score(series, labels) == 1.0


def test_a_kernel_that_returns_a_sparse_matrix() -> None:
    rows = sparse.csr_array(X)
    clf = SVC(kernel=lambda A, B: A @ B.T).fit(rows, y)
    np.testing.assert_array_equal(clf.predict(rows), SVC(kernel="linear").fit(rows, y).predict(rows))


def test_refusals_in_their_words() -> None:
    with pytest.raises(TypeError, match="Sparse precomputed kernels are not supported"):
        SVC(kernel="precomputed").fit(sparse.eye_array(3).tocsr(), [0, 1, 1])
    with pytest.raises(ValueError, match="cannot use sparse input in 'SVC' trained on dense data"):
        SVC().fit(X, y).predict(sparse.csr_array(X))
    with pytest.raises(ValueError, match="The dual coefficients or intercepts are not finite"):
        SVC().fit(X * 1e300, y)
    clf = SVC().fit(X, y)
    clf._n_support[0] += 1
    with pytest.raises(ValueError, match="The internal representation of SVC was altered"):
        clf.predict(X)


@pytest.mark.parametrize("machine", [SVC(), LinearSVC()], ids=["SVC", "LinearSVC"])
@pytest.mark.parametrize("wrong", [{"C": -1}, {"C": "large"}, {"tol": 0}, {"loss": "log"}, {"max_iter": 0.5}], ids=str)
def test_wrong_parameters_are_invalid_parameters(machine: Any, wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameterError):
        machine.__class__(**wrong).fit(X, y)


def test_coefficients_can_be_changed() -> None:
    clf = SVC(kernel="linear").fit(X[TWO], y[TWO])
    before = clf.decision_function(X) - clf.intercept_
    clf._dual_coef_ = -clf._dual_coef_
    np.testing.assert_allclose(clf.decision_function(X) - clf.intercept_, -before, atol=1e-12)
    np.testing.assert_allclose(clf.coef_ @ X.T, -before[None], atol=1e-6)
    with pytest.raises(AttributeError, match="an array of the shape that it has"):
        clf._dual_coef_ = np.zeros((7, 7))


def test_warnings_begin_with_their_words() -> None:
    words = r"^Solver terminated early \(max_iter=2\).  Consider pre-processing your data with .*The fit ended early"
    with pytest.warns(ConvergenceWarning, match=words):
        SVC(max_iter=2).fit(X, y)
    words = "^Liblinear failed to converge, increase the number of iterations. The fit ended early"
    with pytest.warns(ConvergenceWarning, match=words):
        limited = LinearSVC(max_iter=2).fit(X, y)
    assert type(limited.n_iter_) is int
    assert limited.n_iter_ == 2


def test_arguments_of_linear_svc() -> None:
    for dual in (True, False, "auto"):
        assert LinearSVC("l2", "squared_hinge", dual=dual).fit(X, y).loss == "squared_hinge"
    with pytest.raises(ValueError, match=r"Unsupported set of arguments.*penalty='l2', loss='hinge', dual=False"):
        LinearSVC(loss="hinge", dual=False).fit(X, y)
    with pytest.raises(ValueError, match=r"no l1 penalty here.*use penalty='l2', or the LinearSVC of scikit-learn"):
        LinearSVC(penalty="l1", dual=False).fit(X, y)
    with pytest.raises(ValueError, match="penalty='l3' is not allowed"):
        LinearSVC(penalty="l3").fit(X, y)
    with pytest.raises(TypeError, match="dual='yes' is not a bool"):
        LinearSVC(dual="yes").fit(X, y)


def test_sparse_weights_of_linear_svc(tmp_path: Any) -> None:
    clf = LinearSVC().fit(X, y)
    before, predicted = clf.coef_, clf.predict(X)
    assert sparse.issparse(clf.sparsify().coef_)
    np.testing.assert_array_equal(clf.predict(X), predicted)
    np.testing.assert_array_equal(clf.densify().coef_, before)
    save_model(clf, tmp_path / "model")
    again = load_model(tmp_path / "model")
    assert (again.n_iter_, type(again.n_iter_)) == (clf.n_iter_, int)


def test_the_shared_objectives_of_linear_svc() -> None:
    """The table in its docstring: with these parameters the solution is scikit-learn's."""
    for loss in ("hinge", "squared_hinge"):
        for multi_class in ("ovr", "crammer_singer") if loss == "hinge" else ("ovr",):
            params: dict[str, Any] = {"loss": loss, "multi_class": multi_class, "intercept_scaling": 2.0, "tol": 1e-9}
            ours = LinearSVC(bias="regularized", **params).fit(X, y)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                theirs = svm.LinearSVC(max_iter=200_000, random_state=0, **params).fit(X, y)
            atol = 1e-3 * float(np.abs(theirs.coef_).max())
            if multi_class == "ovr":
                np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=atol)
                np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=atol)
            else:
                assert np.mean(ours.predict(X) == theirs.predict(X)) >= 0.99


def test_the_html_of_a_fitted_machine_is_small() -> None:
    for clf in (SVC().fit(X, y), SVC(multi_class="ww", trace=True).fit(X, y), LinearSVC().fit(X, y)):
        assert len(clf._repr_html_()) < 100_000
