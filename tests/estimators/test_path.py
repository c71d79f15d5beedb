"""Paths along C: the same optima as separate fits, certified, with fewer steps; ends, saturation, errors."""

from __future__ import annotations

import itertools
import os
import pickle
import signal
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris, make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import minmax_scale

from multimargin import SVC, Certificate, LinearSVC, Progress, svm_path, verify
from multimargin.estimators.c_path import kinds_of
from multimargin.fitting.spec import FitSpec
from multimargin.fitting.warm_starts import scaled, transferred
from multimargin.problems.training_set import TrainingSet
from multimargin.solvers.core import SolverState

CS = 2.0 ** np.arange(-3, 6)


@pytest.fixture(scope="module")
def iris() -> tuple[Any, Any]:
    X, y = load_iris(return_X_y=True)
    return minmax_scale(X, (-1, 1)), y


@pytest.fixture(scope="module")
def cancer() -> tuple[Any, Any]:
    X, y = load_breast_cancer(return_X_y=True)
    return minmax_scale(X, (-1, 1))[:300, :12], y[:300]


def _dual(certificate: Certificate) -> float:
    return sum(part.dual for part in certificate.parts or (certificate,))


ESTIMATORS = [
    LinearSVC(),
    LinearSVC(multi_class="cs"),
    LinearSVC(multi_class="ovo", bias="regularized"),
    LinearSVC(multi_class="llw", loss="squared_hinge", class_weight="balanced"),
    SVC(gamma=0.5),
    SVC(gamma=0.5, multi_class="ova"),
    SVC(gamma=0.5, multi_class="cs"),
    SVC(kernel="linear", multi_class="ww", bias="exact"),
]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
def test_same_optima_as_separate_fits(estimator: Any, iris: Any) -> None:
    X, y = iris
    own = clone(estimator).set_params(tol=1e-6)
    path = svm_path(X, y, Cs=CS[::-1], estimator=own)
    assert path.stop_reason == "converged"
    np.testing.assert_array_equal(path.Cs, CS)
    for index, C in enumerate(CS):
        model = path.model(index)
        checked = verify(model, X, y)
        assert checked.optimal
        assert checked.kkt_violation <= 1.01e-6
        alone = clone(own).set_params(C=C).fit(X, y)
        assert _dual(path.certificates[index]) == pytest.approx(_dual(alone.certificate_), rel=1e-6)
        np.testing.assert_allclose(model.decision_function(X), alone.decision_function(X), atol=1e-3)
        assert set(vars(alone)) - {"_state"} == set(vars(model)) - {"_state"}
        if path.coefs is not None:
            np.testing.assert_array_equal(path.coefs[index], model.coef_)
            np.testing.assert_array_equal(path.intercepts[index], model.intercept_)
    assert (path.coefs is None) == (getattr(estimator, "kernel", "linear") != "linear")


@pytest.mark.parametrize("estimator", [LinearSVC(), SVC(kernel="linear"), SVC()], ids=str)
def test_seeds_save_steps(estimator: Any, cancer: Any) -> None:
    X, y = cancer
    if isinstance(estimator, LinearSVC):  # small problems are solved beyond tol, which takes steps of its own
        X, y = make_classification(4000, 20, flip_y=0.1, class_sep=0.7, random_state=0)
    Cs = 2.0 ** np.arange(-4, 9)
    path = svm_path(X, y, Cs=Cs, estimator=estimator)
    separate = sum(clone(estimator).set_params(C=C).fit(X, y).certificate_.n_iter for C in Cs)
    assert path.n_iter.sum() < separate


def test_scaled_start_keeps_its_face(iris: Any) -> None:
    X, y = iris
    own = SVC(kernel="linear", multi_class="ww", bias="none", warm_start=True, C=1.0).fit(X, y)
    state, _ = own._state
    spec: FitSpec = own._spec
    faces = [kinds_of(TrainingSet.from_arrays(X, y, C=C), spec, scaled(state, C)).tolist() for C in (1.0, 2.0, 64.0)]
    assert faces[0] == faces[1] == faces[2]
    assert set(faces[0]) == {0, 1, 2}


def test_face_changes_are_counted(iris: Any) -> None:
    """By hand: which variables of the models are at zero, between, or at C."""
    X, y = iris[0][50:], iris[1][50:]
    path = svm_path(X, y, Cs=CS, estimator=LinearSVC(tol=1e-8))
    kinds = []
    for index, C in enumerate(CS):
        model, amounts = path.model(index), np.zeros(len(y))
        amounts[model.support_] = np.abs(model._dual.beta[:, 1])
        kinds.append((amounts > 1e-12 * C).astype(int) + (amounts >= (1 - 1e-12) * C))
    # each example has two equal variables
    expected = [0, *(2 * int((a != b).sum()) for a, b in itertools.pairwise(kinds))]
    assert path.face_changes.tolist() == expected
    assert max(expected) > 0


def _noisy_line() -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(0)
    X = generator.normal(size=(60, 2))
    return X, (X[:, 0] + generator.normal(size=60) > 0).astype(int)


def test_weights_stay_beyond_saturation() -> None:
    """KCSL04 Theorem 3, on data that no line separates."""
    X, y = _noisy_line()
    path = svm_path(X, y, Cs=2.0 ** np.arange(-6, 14), estimator=LinearSVC(tol=1e-8))
    assert path.saturation_C is not None
    assert path.coefs is not None
    assert path.Cs[0] < path.saturation_C < path.Cs[-2]
    beyond = LinearSVC(C=10 * path.Cs[-1], tol=1e-8).fit(X, y).coef_
    same = np.abs(path.coefs - beyond).max(axis=(1, 2)) <= 1e-6 * np.abs(beyond).max()
    assert (same == (path.Cs >= path.saturation_C)).all()
    growing = svm_path(X, y, Cs=path.Cs[:3], estimator=LinearSVC(tol=1e-8))
    assert growing.saturation_C is None


@pytest.mark.parametrize("multi_class", ["ovo", "ww", "cs", "llw", "ats", "adm", "ova"])
@pytest.mark.parametrize("bias", ["exact", "regularized", "none"])
def test_saturation_of_every_machine(multi_class: str, bias: str) -> None:
    """At C* and beyond the weights are those of a separate fit at a much larger C; below it, they are not."""
    y = np.arange(45) % 3
    X = np.random.default_rng(1).normal(size=(45, 2)) + 1.5 * np.eye(3, 2)[y]
    Cs = 4.0 ** np.arange(-4, 7)
    path = svm_path(X, y, Cs=Cs, estimator=LinearSVC(multi_class=multi_class, bias=bias, tol=1e-6))
    assert path.saturation_C is not None
    assert path.coefs is not None
    beyond = LinearSVC(multi_class=multi_class, bias=bias, tol=1e-6, C=16 * Cs[-1]).fit(X, y).coef_
    same = np.abs(path.coefs - beyond).max(axis=(1, 2)) <= 1e-6 * np.abs(beyond).max()
    assert (same == (path.Cs >= path.saturation_C)).all()


def test_a_plateau_is_no_saturation() -> None:
    """w^2/2 + 2C (1 - w)+ + 2C (1 - w/2)+ is least at w = 1 for C in [1/3, 1], and at w = 2 from C = 2 on."""
    X, y = np.array([[-1.0], [1.0], [-0.5], [0.5]]), np.array([0, 1, 0, 1])
    estimator = LinearSVC(tol=1e-9, bias="none")
    plateau = svm_path(X, y, Cs=[0.4, 0.6, 0.8], estimator=estimator)
    assert plateau.coefs is not None
    np.testing.assert_allclose(plateau.coefs[1:].ravel(), 1.0, rtol=1e-9)
    assert plateau.saturation_C is None
    whole = svm_path(X, y, Cs=[0.6, 0.8, 4.0, 8.0], estimator=estimator)
    assert whole.coefs is not None
    np.testing.assert_allclose(whole.coefs[2:].ravel(), 2.0, rtol=1e-9)
    assert whole.saturation_C == 4.0
    assert svm_path(X, y, Cs=[0.6, 8.0], estimator=SVC(kernel="linear", tol=1e-9, bias="none")).saturation_C == 8.0
    squared = LinearSVC(tol=1e-9, bias="none", loss="squared_hinge")
    assert svm_path(X, y, Cs=[4.0, 8.0], estimator=squared).saturation_C is None


def test_callback_keeps_the_finished_points(cancer: Any) -> None:
    X, y = cancer
    whole = svm_path(X, y, Cs=CS, estimator=SVC(gamma=0.5))

    class Stop:
        moments = 0

        def __call__(self, progress: Progress) -> bool:
            self.moments += 1
            return True

    stop = Stop()
    slow = LinearSVC(on_progress=stop, tol=1e-12)
    with pytest.warns(ConvergenceWarning, match=r"points or some that did not reach tol \(callback\)"):
        path = svm_path(np.tile(X, (60, 1)), np.tile(y, 60), Cs=CS, estimator=slow)
    assert 1 <= stop.moments <= 2  # a point that finished at that moment counts, and the next one calls back
    assert path.stop_reason == "callback"
    assert len(path) < len(whole) == len(CS)


@pytest.mark.parametrize("what", ["raise", "keep"])
def test_ctrl_c_keeps_the_finished_points(what: str, iris: Any) -> None:
    X, y = iris

    def interrupt(_: Progress) -> None:
        os.kill(os.getpid(), signal.SIGINT)

    X, y = np.tile(X, (100, 1)), np.tile(y, 100)
    estimator = LinearSVC(on_progress=interrupt, on_interrupt=what, tol=1e-10)
    if what == "raise":
        with pytest.raises(KeyboardInterrupt) as caught:
            svm_path(X, y, Cs=CS, estimator=estimator)
        path = caught.value.path  # type: ignore[attr-defined]
    else:
        with pytest.warns(ConvergenceWarning, match="interrupted"):
            path = svm_path(X, y, Cs=CS, estimator=estimator)
    assert path.stop_reason == "interrupted"
    assert len(path) < len(CS)
    assert all(certificate.stop_reason == "converged" for certificate in path.certificates)


def test_max_time_is_for_the_whole_path(cancer: Any) -> None:
    X, y = np.tile(cancer[0], (40, 1)), np.tile(cancer[1], 40)
    with pytest.warns(ConvergenceWarning, match="max_time"):
        path = svm_path(X, y, Cs=2.0 ** np.arange(-8, 9, 0.01), estimator=LinearSVC(max_time=0.5))
    assert path.stop_reason == "max_time"
    assert len(path.certificates) == len(path) == len(path.seconds)
    assert len(path) < 1700
    if len(path):
        assert verify(path.model(-1), X, y).optimal


def test_limit_on_steps_goes_on_and_tells(cancer: Any) -> None:
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        path = svm_path(*cancer, Cs=CS, estimator=LinearSVC(max_iter=1))
    assert path.stop_reason == "max_iter"
    assert len(path) == len(CS)


def test_estimator_stays_as_it_is_and_a_path_pickles(iris: Any) -> None:
    X, y = iris
    weight = np.linspace(0, 2, len(y))
    estimator = SVC(gamma=0.3, C=7.0)
    path = svm_path(X, y, Cs=[1, 4], estimator=estimator, sample_weight=weight)
    assert "classes_" not in vars(estimator)
    assert estimator.C == 7.0
    alone = SVC(gamma=0.3, C=4.0).fit(X, y, weight)
    again = pickle.loads(pickle.dumps(path)).model(1)
    np.testing.assert_allclose(again.decision_function(X), alone.decision_function(X), atol=1e-2)
    light = svm_path(X, y, Cs=[1, 4], estimator=estimator, keep_models=False)
    with pytest.raises(ValueError, match="keep_models=True"):
        light.model(0)


def test_start_of_other_rows(iris: Any) -> None:
    X, y = iris
    numbers = np.arange(len(y))
    data = [(TrainingSet.from_arrays(X[rows], y[rows], C=1.0), rows) for rows in (numbers[:120], numbers[20:])]
    amounts = numbers[:120, None] + np.array([[0.1, 0.2]])
    moved = transferred(SolverState(amounts, None, 3), *data)
    assert isinstance(moved, SolverState)
    np.testing.assert_array_equal(moved.amounts[:100], amounts[20:])
    assert not moved.amounts[100:].any()


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"Cs": []}, ValueError, "Cs=.* is empty; Cs must be a list of finite numbers > 0"),
        ({"Cs": 1.0}, ValueError, "not one list"),
        ({"Cs": [1, 0]}, ValueError, "Cs contains 0"),
        ({"Cs": [1, np.inf]}, ValueError, "Cs contains inf"),
        ({"Cs": ["a"]}, TypeError, "are not numbers"),
        ({"Cs": [1], "estimator": "svc"}, TypeError, "give a multimargin.LinearSVC, a multimargin.SVC or None"),
        ({"Cs": [1], "estimator": SVC(calibration="sigmoid")}, ValueError, "a path trains no probabilities"),
        ({"Cs": [1], "estimator": LinearSVC(tol=-1)}, ValueError, "tol=-1"),
        ({"Cs": [1], "scale": 1}, TypeError, "scale=1 is not a bool"),
    ],
)
def test_errors(arguments: dict[str, Any], error: type[Exception], text: str, iris: Any) -> None:
    with pytest.raises(error, match=text):
        svm_path(*iris, **arguments)
