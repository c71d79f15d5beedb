"""scikit-learn's checks of SVC, for every machine."""

from __future__ import annotations

from typing import Any

import pytest
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.utils.estimator_checks import parametrize_with_checks

from multimargin import MACHINES, SVC
from multimargin.problems.schemes import SCHEMES


class Gaussian:
    """A callable kernel whose name in the tests does not contain its address."""

    def __call__(self, A: Any, B: Any) -> Any:
        return rbf_kernel(A, B)

    def __repr__(self) -> str:
        return "Gaussian()"


KERNELS: list[Any] = ["linear", "rbf", "poly", "sigmoid", "laplacian", "precomputed", Gaussian()]
ESTIMATORS = [
    *(SVC(multi_class=name) for name in (*SCHEMES, *MACHINES)),
    *(SVC(kernel=kernel) for kernel in KERNELS if kernel != "rbf"),
    # a linear function without a bias cannot follow class weights; cubes of data around 100 take ww half a minute
    *(SVC(multi_class="ww", kernel=kernel, bias="regularized") for kernel in KERNELS if kernel != "poly"),
    SVC(multi_class="ww", kernel="poly", degree=2, coef0=1.0),
    *(SVC(multi_class=name, bias=bias) for name in ("ovo", "dag", "ww", "ova") for bias in ("none", "regularized")),
    *(SVC(multi_class=name, bias="exact") for name in ("ww", "cs")),
    *(SVC(multi_class=name, loss="squared_hinge") for name in ("ovo", "ova", "cs")),
    SVC(multi_class="ww", solver="two-level"),
    SVC(bias="regularized", solver="two-level"),
]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # some checks limit max_iter
@parametrize_with_checks(ESTIMATORS)  # type: ignore[untyped-decorator]
def test_scikit_learn_contract(estimator: Any, check: Any) -> None:
    """Weights are repetitions, to 1e-7."""
    check(estimator)
