"""No certificate that is wrong: extreme data, against 80-bit arithmetic from published attributes."""

from __future__ import annotations

import contextlib
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning

from multimargin import SVC, Certificate, LinearSVC, _core, verify
from multimargin.kernels.rounding import fits_float32, kernel_sizes
from multimargin.kernels.spec import KernelSpec
from multimargin.problems.problem import Bias, Loss
from multimargin.problems.schemes import BinaryProblem
from multimargin.solvers.binary import evaluate_binary
from multimargin.solvers.certificate import LARGEST_RELATIVE_GAP
from multimargin.solvers.certificate_table import worst_of
from support.eighty_bits import Numbers, recompute

X, Y = load_iris(return_X_y=True)
CANCER = load_breast_cancer(return_X_y=True)
WINE = load_wine(return_X_y=True)
MACHINES = ("ovo", "ova", "ww", "cs", "llw", "rm", "ats", "atm", "dag")
pytestmark = pytest.mark.timeout(120)


def fitted(model: Any, data: Any, y: Any, weight: Any = None) -> Any:
    """Fit without a word: what is said is tested by itself."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(data, y, sample_weight=weight)


def verified(model: Any, data: Any, y: Any, weight: Any = None) -> Certificate:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return verify(model, data, y, sample_weight=weight)


def contradiction(certificate: Certificate, numbers: list[Numbers]) -> str:
    """What 80 bits say against a certificate that claims to be optimal, beyond the rounding of float64."""
    parts = certificate.parts or (certificate,)
    for part, own in zip(parts, numbers, strict=True):
        if not part.optimal:
            return "a part is not optimal"
        if not own.violation <= part.tol + 8 * own.noise:
            return f"violation {own.violation} where {part.kkt_violation} was found"
        if not np.isnan(part.primal):
            allowed = 1e-6 * max(abs(own.primal), abs(own.dual)) + 16 * own.objective_noise
            if not abs(part.dual - own.dual) <= allowed:
                return f"dual {own.dual} where {part.dual} was found"
            if not abs(part.primal - own.primal) <= allowed + 32 * own.primal_noise:
                return f"primal {own.primal} where {part.primal} was found"
            if not own.primal - own.dual <= 1.2 * LARGEST_RELATIVE_GAP * max(abs(own.primal), abs(own.dual)):
                return f"dual {own.dual} and primal {own.primal}"
    return ""


def assert_honest(model: Any, data: Any, y: Any, weight: Any = None) -> None:
    """A claim of optimality holds in 80 bits, for the fit and for verify, and converged means optimal."""
    certificate, again = model.certificate_, verified(model, data, y, weight)
    assert certificate.optimal or certificate.stop_reason != "converged"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        numbers = recompute(model, data, y, weight)
    if certificate.optimal:
        assert contradiction(certificate, numbers) == ""
    if again.optimal:
        assert contradiction(again, numbers) == ""


@pytest.mark.parametrize("scale", [1e-155, 1e-160, 1e-300, 1e155, 1e300])
@pytest.mark.parametrize("machine", ["ww", "ovo"])
def test_gamma_scale_is_refused_where_float64_has_no_variance(machine: str, scale: float) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        with pytest.raises(ValueError, match=r"gamma='scale' cannot be computed.*StandardScaler"):
            SVC(multi_class=machine).fit(X * scale, Y)


def test_gamma_scale_of_constant_data_stays() -> None:
    assert SVC(multi_class="ww").fit(np.ones((4, 2)), [0, 0, 1, 1]).certificate_.optimal


@pytest.mark.parametrize("machine", ["ova", "ww", "cs", "ovo"])
@pytest.mark.parametrize("scale", [1e155, 1e200])
def test_rows_whose_squares_overflow_are_refused(machine: str, scale: float) -> None:
    with pytest.raises(ValueError, match=r"X has rows too long .* scale the columns"):
        LinearSVC(multi_class=machine, max_time=5).fit(X * scale, Y)


@pytest.mark.parametrize("machine", ["ovo", "ww"])
@pytest.mark.parametrize("scale", [1e-25, 1e-20, 1e18, 1e19, 1e20, 1e30])
def test_float32_data_beyond_float32_squares(machine: str, scale: float) -> None:
    rows = (X * scale).astype("f4")
    model = SVC(multi_class=machine).fit(rows, Y)
    usual = SVC(multi_class=machine).fit(X.astype("f4"), Y)
    assert_honest(model, rows, Y)
    parts = [model.certificate_.parts or [model.certificate_], usual.certificate_.parts or [usual.certificate_]]
    for scaled, plain in zip(*parts, strict=True):
        assert scaled.optimal
        assert scaled.dual == pytest.approx(plain.dual, rel=1e-4)


@pytest.mark.parametrize("degree", [3, 4])
def test_a_wide_gap_is_no_convergence(degree: int) -> None:
    data, y = CANCER
    model = SVC(kernel="poly", gamma=1, coef0=1, degree=degree)
    with pytest.warns(ConvergenceWarning, match=r"C k\(x, x\) reaches .* values of X up to 4\.3e\+03.*StandardScaler"):
        model.fit(data, y)
    assert model.certificate_.stop_reason == "stalled"
    assert not model.certificate_.optimal
    assert not verified(model, data, y).optimal


@pytest.mark.parametrize("solver", ["s2do", "smo", "working-set", "whole-example", "semi-greedy", "two-level"])
@pytest.mark.parametrize("C", [1e2, 1e6, 1e10])
def test_solvers_of_the_literature_where_products_are_huge(solver: str, C: float) -> None:
    data, y = WINE[0][::3], WINE[1][::3]
    assert_honest(fitted(SVC(kernel="linear", multi_class="ww", solver=solver, C=C, max_time=1), data, y), data, y)


def _random_case(seed: int) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray | None]:
    random = np.random.default_rng(seed)
    data, y = ((X, Y), WINE, CANCER)[random.integers(3)]
    rows = random.permutation(len(y))[: random.integers(24, 50)]
    data, y = data[rows].copy(), y[rows]
    way = random.integers(5)
    if way == 0:
        data *= 10.0 ** random.integers(-300, 300)
    elif way == 1:
        data *= 10.0 ** random.uniform(-20, 20)
    elif way == 2:
        data[:, random.integers(data.shape[1])] *= 10.0 ** random.uniform(-20, 20)
    elif way == 3:
        data += 10.0 ** random.uniform(-2, 8)
    if random.random() < 0.25 and np.abs(data).max() < 1e37:
        data = data.astype(np.float32)
    weight = 10.0 ** random.uniform(-12, 12, len(y)) if random.random() < 0.2 else None
    params: dict[str, Any] = {
        "C": 10.0 ** random.uniform(-12, 12),
        "multi_class": str(random.choice(MACHINES)),
        "loss": str(random.choice(["hinge", "squared_hinge"])),
        "bias": str(random.choice(["none", "regularized", "exact"])),
        "max_time": 0.5,
    }
    if random.random() < 0.35:
        return LinearSVC(**params), data, y, weight
    kernel = str(random.choice(["rbf", "linear", "poly", "laplacian"]))
    gamma = "scale" if random.random() < 0.5 else float(10.0 ** random.uniform(-12, 12))
    return SVC(kernel=kernel, gamma=gamma, degree=int(random.integers(1, 6)), coef0=1.0, **params), data, y, weight


@pytest.mark.parametrize("seed", range(120))
def test_extreme_inputs_are_right_or_not_optimal(seed: int) -> None:
    model, data, y, weight = _random_case(seed)
    with contextlib.suppress(ValueError):  # refused in a sentence
        assert_honest(fitted(model, data, y, weight), data, y, weight)


def _certificate(**changed: Any) -> Certificate:
    certificate: Certificate = SVC(multi_class="ww").fit(X, Y).certificate_
    return replace(certificate, **changed)


@pytest.mark.parametrize(
    "changed",
    [
        {"dual": np.nan},
        {"kkt_violation": np.nan},
        {"kkt_violation": np.inf},
        {"dual": -np.inf},
        {"verified": False},
        {"relative_gap": 1.0},
    ],
)
def test_what_is_not_optimal(changed: dict[str, Any]) -> None:
    good = _certificate()
    assert good.optimal
    bad = replace(good, **changed)
    assert not bad.optimal
    assert not worst_of([good, bad, good]).optimal


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("bound", [_core.Bound.box, _core.Bound.simplex])
def test_what_is_not_finite_violates_infinitely(bound: Any, value: float) -> None:
    gradient, amounts = np.zeros((2, 3)), np.full((2, 3), 0.25)
    cap, count = np.ones(2), np.full(2, 3)
    assert _core.violations(bound, gradient, amounts, cap, count).tolist() == [0.0, 0.0]
    gradient[1, 1] = value
    assert _core.violations(bound, gradient, amounts, cap, count).tolist() == [0.0, np.inf]


@pytest.mark.parametrize("bias", [Bias.EXACT, Bias.NONE])
def test_pairs_with_scores_that_are_not_numbers_violate_infinitely(bias: Bias) -> None:
    first, second = np.arange(2), np.arange(2, 4)
    problem = BinaryProblem(first, second, np.arange(4), np.ones(4))
    numbers = evaluate_binary(problem, np.ones(4), np.array([0.0, np.nan, 0.0, 0.0]), 0.0, Loss.HINGE, bias)
    assert numbers.violation == np.inf


def test_rounding_that_swallows_tol_is_told() -> None:
    random = np.random.default_rng(0)
    data, y = random.normal(size=(40, 2)), random.integers(0, 2, 40)
    certificate = fitted(SVC(kernel="linear", C=1e15, max_time=5), data, y).certificate_
    assert not certificate.optimal
    assert "rounding" in certificate.remark
    assert certificate.kkt_violation > certificate.tol


def test_rounding_of_a_large_exact_bias_is_charged() -> None:
    # Scores are met exactly but for b, whose last digit alone costs more than the whole dual: nothing is proven.
    rows = np.array([[1e27, 9.0], [1.1e27, 9.0], [1.3e27, 9.0]])
    clf = SVC(kernel="linear", bias="exact", loss="squared_hinge", C=1e-4, tol=1e-3)
    with pytest.warns(ConvergenceWarning, match="stalled"):
        clf.fit(rows, [0, 0, 1])
    checked = verify(clf, rows, [0, 0, 1])
    assert (clf.certificate_.optimal, checked.optimal) == (False, False)
    assert "the primal by" in clf.certificate_.remark
    assert clf.certificate_.primal > 2 * clf.certificate_.dual


@pytest.mark.parametrize("name", ["linear", "poly", "rbf", "laplacian", "sigmoid"])
def test_kernel_sizes_bound_kernel_values(name: str) -> None:
    kernel = KernelSpec(name, gamma=0.3, coef0=0.5, degree=3, offset=1.0)
    sizes = kernel_sizes(kernel, X)
    assert (np.abs(kernel.gram(X, X)) <= np.outer(sizes, sizes) * (1 + 1e-12)).all()


def test_what_float32_holds() -> None:
    rbf = KernelSpec("rbf", gamma=0.3)
    assert fits_float32(rbf, X)
    assert not fits_float32(rbf, X * 1e19)
    assert not fits_float32(rbf, X * 1e-25)
    assert not fits_float32(replace(rbf, gamma=1e39), X)
    assert fits_float32(KernelSpec("linear"), X * 1e17)
    assert not fits_float32(KernelSpec("poly", degree=8, gamma=1.0), X * 1e3)
