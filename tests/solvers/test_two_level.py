"""The two-level solver on problems of several blocks and rounds."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import make_classification

from multimargin import MACHINES, SVC, verify
from multimargin.kernels.spec import KernelSpec
from multimargin.problems.problem import Bias, DualProblem, Loss
from multimargin.problems.training_set import TrainingSet
from multimargin.solvers.certificate import evaluate
from multimargin.solvers.core import solve
from multimargin.solvers.options import Precision, SolverChoice, SolverOptions
from multimargin.solvers.report import StopReason


@pytest.fixture(scope="module")
def data() -> tuple[np.ndarray, np.ndarray]:
    X, y = make_classification(1600, 8, n_informative=6, n_classes=4, class_sep=1.5, flip_y=0.05, random_state=3)
    return X, y


@pytest.mark.parametrize("name", MACHINES)
def test_same_optimum_as_one_level(name: str, data: tuple[np.ndarray, np.ndarray]) -> None:
    """1600 examples are several blocks, and more rounds than one; at tol=1e-5 the duals agree to 1e-6."""
    fits = {
        solver: SVC(multi_class=name, bias="none", C=1, gamma=0.2, tol=1e-5, solver=solver).fit(*data)
        for solver in ("two-level", "semi-greedy")
    }
    assert fits["two-level"].certificate_.stop_reason == "converged"
    assert verify(fits["two-level"], *data).optimal
    duals = [clf.certificate_.dual for clf in fits.values()]
    np.testing.assert_allclose(duals[0], duals[1], rtol=1e-6)


@pytest.mark.parametrize("name", ["ww", "cs", "llw", "rm"])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_ill_conditioned_problems_converge(name: str, loss: str, data: tuple[np.ndarray, np.ndarray]) -> None:
    """A large C and a smooth kernel: first-order steps need millions, the active set some thousand."""
    X, y = data[0][:600], data[1][:600]
    clf = SVC(multi_class=name, loss=loss, C=2.0**9, gamma=2.0**-4).fit(X, y)
    assert clf.certificate_.solver == "two-level"
    assert clf.certificate_.n_iter < 200_000
    assert verify(clf, X, y).optimal


@pytest.mark.parametrize("C", [1.0, 1e3])
def test_kept_rows_change_nothing(C: float) -> None:
    """A cache that holds the kernel matrix (6 MB), some rows, or none: the bits are the same, the rows computed not."""
    n_features = 80  # with few features nothing is kept
    X, y = make_classification(1200, n_features, n_informative=20, n_classes=4, flip_y=0.05, random_state=3)
    fits = [SVC(multi_class="ww", C=C, gamma=0.5 / n_features, cache_size=size).fit(X, y) for size in (100, 2, 1e-3)]
    for clf in fits[1:]:
        np.testing.assert_array_equal(fits[0].dual_coef_, clf.dual_coef_)
    rows = [clf.certificate_.kernel_rows for clf in fits]
    assert rows[0] < rows[1] < rows[2]


def test_class_order_does_not_make_one_class_blocks(data: tuple[np.ndarray, np.ndarray]) -> None:
    """At the start all examples violate alike; sorted labels must not make a first block of one class."""
    X, y = data
    order = np.argsort(y, kind="stable")
    shuffled = SVC(multi_class="ww", C=1, gamma=0.2, tol=1e-6).fit(X, y)
    ordered = SVC(multi_class="ww", C=1, gamma=0.2, tol=1e-6).fit(X[order], y[order])
    np.testing.assert_allclose(shuffled.certificate_.dual, ordered.certificate_.dual, rtol=1e-7)
    assert ordered.certificate_.n_iter < 3 * shuffled.certificate_.n_iter


@pytest.mark.timeout(60)
@pytest.mark.parametrize("precision", list(Precision))
@pytest.mark.parametrize("name", ["ww", "llw", "ats", "rm"])
def test_block_at_rest_above_its_target_ends(name: str, precision: Precision) -> None:
    """float32 scans see violations that float64 gradients do not confirm: no step, and once no end (rm, automatic)."""
    X, y = make_classification(90, 6, n_informative=4, n_classes=4, flip_y=0.2, n_clusters_per_class=1, random_state=0)
    zero = np.random.default_rng(0).uniform(size=X.shape) < 0.4
    X = (np.where(zero, 0, X) / 3).astype(np.float32).astype(float)
    X[3] = 0
    weight = np.random.default_rng(0).uniform(0.2, 2, 90)
    weight[5] = 0
    training_set = TrainingSet.from_arrays(X, y, C=0.3, sample_weight=weight)
    problem = DualProblem(training_set, MACHINES[name], KernelSpec("linear"), Loss.SQUARED_HINGE, Bias.REGULARIZED)
    solution = solve(problem, SolverOptions(SolverChoice.TWO_LEVEL, precision=precision, tol=1e-6))
    assert solution.report.stop_reason is StopReason.CONVERGED
    assert solution.state.scores is not None
    assert evaluate(problem, solution.state.amounts, solution.state.scores).violation <= 1e-6
