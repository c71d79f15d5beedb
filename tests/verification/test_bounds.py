"""The generalisation bound of DGI11: its terms by their definitions, and the support vectors as HL02 counts them."""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics.pairwise import rbf_kernel

from multimargin import SVC, LinearSVC
from multimargin.kernels.spec import KernelSpec
from multimargin.verification.bounds import GeneralizationBound, PairTerm, count_support, generalization_bound
from support.helpers import noisy_classes

X, Y = noisy_classes(90)
KERNEL = KernelSpec("rbf", gamma=0.5)
each_machine = pytest.mark.parametrize("machine", ["ww", "cs", "llw", "ova", "ovo"])


def fitted(machine: str = "ww", **params: Any) -> SVC:
    clf = SVC(**{"multi_class": machine, "C": 2.0, "gamma": 0.5, **params})
    clf.fit(X, Y)
    return clf


def plain_risk(term: PairTerm, found: GeneralizationBound, d: int) -> float:
    """DGI11's bound for one pair with margin 1, typed from the paper; all pairs share delta/2."""
    n, z, width = term.n_rows, term.violations, found.output_range
    fat = (16 * term.weight) ** 2 * found.radius_squared
    D = 2 * (np.sqrt(z * width) + found.eta)
    first = (fat + 64 * D**2) * np.log2(65 * n * (1 + D) ** 3) * np.log2(9 * math.e * n * (1 + D))
    last = np.log2(128 * n**1.5 * width / (found.delta / (d * (d - 1) / 2) * found.eta))
    return float(2 / n * (first + last))


@pytest.mark.parametrize("radius_squared", [None, 4.0])
def test_bound_by_its_definition(radius_squared: float | None) -> None:
    clf = fitted("ww", bias="none")
    found = generalization_bound(clf, X, Y, delta=0.1, eta=0.2, radius_squared=radius_squared)
    K = KERNEL.gram(X[clf.support_], X[clf.support_])
    beta, scores = clf.dual_coef_, clf.decision_function(X)
    classes = clf.classes_.tolist()
    total, n = 0.0, len(Y)
    for (c, e), term in zip(combinations(range(3), 2), found.pairs, strict=True):
        rows = np.isin(Y, [classes[c], classes[e]])
        h = np.where(Y[rows] == classes[c], 1.0, -1.0) * (scores[rows, c] - scores[rows, e])
        assert term.n_rows == rows.sum()
        assert term.weight == pytest.approx(np.sqrt((beta[c] - beta[e]) @ K @ (beta[c] - beta[e])))
        assert term.violations == pytest.approx(np.maximum(0.0, 1 - h).sum())
        # Far closer than the last logarithm, which is small beside the rest.
        assert term.risk == pytest.approx(plain_risk(term, found, 3), rel=1e-12)
        share = term.n_rows / n + np.sqrt((np.log(6) - np.log(0.1)) / 2) / np.sqrt(n)
        assert term.share == pytest.approx(share)
        total += share * term.risk
    assert found.bound == pytest.approx(total)
    assert found.radius_squared == (radius_squared or 1.0)
    longest = max(term.weight for term in found.pairs)
    assert found.output_range == pytest.approx(2 * longest * np.sqrt(found.radius_squared))
    fat = max(term.fat for term in found.pairs)
    assert fat == pytest.approx((16 * longest) ** 2 * found.radius_squared)
    assert found.order == pytest.approx((6 * fat + found.violations) / n)
    assert found.training_error == pytest.approx(np.mean(clf.predict(X) != Y))


@each_machine
def test_scores_of_every_machine(machine: str) -> None:
    """z adds up to what the machine's own scores say, and lengths to the dual's quadratic term."""
    clf = fitted(machine)
    found = generalization_bound(clf, X, Y)
    codes = np.searchsorted(clf.classes_, Y)
    z = 0.0
    for at, (c, e) in enumerate(combinations(range(3), 2)):
        if machine == "ovo":
            h = clf.set_params(decision_function_shape="ovo").decision_function(X)[:, at]
        else:
            scores = clf.decision_function(X)
            h = scores[:, c] - scores[:, e]
        z += np.maximum(0.0, 1 - h[codes == c]).sum() + np.maximum(0.0, 1 + h[codes == e]).sum()
    assert found.violations == pytest.approx(z)
    assert found.radius_squared == 1.0 + (machine in ("ova", "ovo"))  # their bias counts as a weight


def test_lengths_of_pairs() -> None:
    clf = fitted("ovo")
    found = generalization_bound(clf, X, Y)
    for at, (c, e) in enumerate(combinations(range(3), 2)):
        rows = np.isin(Y, clf.classes_[[c, e]])
        alone = SVC(C=2.0, gamma=0.5).fit(X[rows], Y[rows])
        K = KERNEL.gram(alone.support_vectors_, alone.support_vectors_)
        squared = float(alone.dual_coef_[0] @ K @ alone.dual_coef_[0]) + float(alone.intercept_[0]) ** 2
        assert found.pairs[at].weight == pytest.approx(np.sqrt(squared), rel=1e-3)


@pytest.mark.parametrize("machine", ["ww", "ovo", "ova"])
@pytest.mark.parametrize("bias", ["none", "exact"])
def test_linear_machines_by_weights_and_by_kernel(machine: str, bias: str) -> None:
    tol = 1e-8
    ours = LinearSVC(multi_class=machine, C=0.5, bias=bias, tol=tol).fit(X, Y)
    same = SVC(multi_class=machine, C=0.5, bias=bias, tol=tol, kernel="linear").fit(X, Y)
    one, two = (generalization_bound(clf, X, Y) for clf in (ours, same))
    assert one.bound == pytest.approx(two.bound, rel=1e-4)
    assert one.radius_squared == pytest.approx(float((X**2).sum(axis=1).max()) + (bias == "exact"))


def test_given_and_sparse_kernels_agree() -> None:
    params: dict[str, Any] = {"multi_class": "ww", "C": 2.0}
    plain = generalization_bound(fitted(), X, Y)
    K = rbf_kernel(X, gamma=0.5)
    given = generalization_bound(SVC(kernel="precomputed", **params).fit(K, Y), K, Y)
    called = SVC(kernel=lambda A, B: rbf_kernel(A, B, gamma=0.5), **params).fit(X, Y)
    rows = sparse.csr_array(X)
    in_rows = generalization_bound(SVC(gamma=0.5, **params).fit(rows, Y), rows, Y)
    for other in (given, generalization_bound(called, X, Y), in_rows):
        assert other.bound == pytest.approx(plain.bound, rel=1e-3)


def test_arguments_move_the_bound() -> None:
    clf = fitted()
    base = generalization_bound(clf, X, Y)
    assert generalization_bound(clf, X, Y, delta=0.5).bound < base.bound
    assert generalization_bound(clf, X, Y, radius_squared=4.0).bound > base.bound
    assert generalization_bound(clf, X, Y, output_range=2 * base.output_range).bound > base.bound
    assert generalization_bound(clf, X, Y, margin=2.0).violations > base.violations


def test_ww_has_the_smallest_sum_of_violations() -> None:
    """DGI11 section 5: ww minimises it, cs only indirectly; here at the same C for the same margin."""
    ww, cs = fitted("ww", C=2.0), fitted("cs", C=2.0)
    assert generalization_bound(ww, X, Y, margin=2.0).violations < generalization_bound(cs, X, Y, margin=2.0).violations


def test_plain_sentences() -> None:
    found = generalization_bound(fitted(), X, Y)
    assert found.vacuous
    assert "which is vacuous, as no risk exceeds 1" in str(found)
    assert f"{100 * found.training_error:.3g} % of the training rows are wrong" in str(found)
    tight = GeneralizationBound(**{**vars(found), "bound": 0.3})
    assert not tight.vacuous
    assert "at most 0.3 (DGI11 (6)); " in str(tight)


@each_machine
def test_support_counts(machine: str) -> None:
    clf = fitted(machine)
    found = count_support(clf)
    assert found.unique == len(clf.support_)
    assert found.in_all_machines == np.count_nonzero(clf.dual_coef_)
    assert found.n_rows == len(Y)
    assert str(found).startswith(f"{found.unique} of {len(Y)} training rows are support vectors")


def test_refusals() -> None:
    clf = fitted()
    one = np.isin(Y, Y[:1])
    with pytest.raises(ValueError, match=r"delta=1.5 is not allowed; give a probability between 0 and 1"):
        generalization_bound(clf, X, Y, delta=1.5)
    with pytest.raises(ValueError, match=r"eta=0 is not allowed; give a finite number > 0"):
        generalization_bound(clf, X, Y, eta=0)
    with pytest.raises(
        ValueError, match=r"y has the classes \[.*\], the model was trained on .* needs the training data"
    ):
        generalization_bound(clf, X[one], Y[one])
    wild = SVC(kernel="sigmoid", multi_class="ww").fit(X, Y)
    with pytest.raises(ValueError, match=r"kernel='sigmoid' is not positive semi-definite"):
        generalization_bound(wild, X, Y)
    with pytest.raises(TypeError, match=r"LinearSVC has weights instead of support vectors"):
        count_support(LinearSVC().fit(X, Y))
