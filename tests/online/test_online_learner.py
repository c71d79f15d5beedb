"""The state of OnlineSVC: conversion to SVC's solvers and back, new classes, and its public model."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from multimargin import OnlineSVC
from multimargin.online import finalize
from multimargin.online.learner import Kept
from multimargin.problems.schemes import pair_list
from multimargin.problems.training_set import TrainingSet
from support.helpers import draw_data


def learner_of(clf: OnlineSVC) -> Any:
    return clf._stream.learner


@pytest.mark.parametrize("name", ["ovo", "ova", "ww", "atm"])
def test_start_of_the_solver_and_back(name: str) -> None:
    X, y = draw_data(3, 150, 3)
    learner = learner_of(OnlineSVC(C=2.0, gamma=0.7, multi_class=name).partial_fit(X, y))
    kept = learner.kept()
    data = TrainingSet.from_arrays(kept.X, kept.codes, C=2.0)
    start = finalize._start(learner, data, kept.duals)
    assert np.array_equal(finalize._duals_of(learner, data, start), kept.duals)
    amounts = start.amounts if isinstance(start.amounts, tuple) else (start.amounts,)
    assert all((part >= 0).all() and (part <= 2.0).all() for part in amounts)
    # The same point: a new learner made from it has the same dual, violation and schedule.
    again = learner.restarted(kept)
    assert again.core.dual() == pytest.approx(learner.core.dual(), rel=1e-9)
    if name in ("ww", "atm"):
        assert np.array_equal(again.core.state()["rates"], learner.core.state()["rates"])
    assert again.core.state()["random"] == learner.core.state()["random"]


def test_rows_are_found_by_features_and_class() -> None:
    rows = np.array([[0.0, 1.0], [2.0, 3.0], [0.0, 1.0], [0.0, 1.0]])
    codes = np.array([1, 0, 0, 1])
    seen = np.array([[-0.0, 1.0], [0.0, 1.0], [0.0, 1.0], [9.0, 9.0]])
    kept = Kept(seen, np.array([0, 1, 1, 0]), np.ones(4), np.arange(4), np.zeros((4, 1)))
    assert finalize.find_rows(kept, rows, codes).tolist() == [2, 0, 3, -1]


@pytest.mark.parametrize("name", ["ovo", "ova"])
def test_a_new_class_finds_the_others_waiting(name: str) -> None:
    X, y = draw_data(3, 150, 2)
    learner = learner_of(OnlineSVC(gamma=0.7, multi_class=name).partial_fit(X, y))
    state = learner.extended(np.array([0, 2]), 3).core.state()  # the new class comes between the two
    ends = np.cumsum(state["counts"])
    positives: list[Any] = list(pair_list(3)) if name == "ovo" else [(c, None) for c in range(3)]
    seen = 0
    for machine, (first, second) in enumerate(positives):
        part = slice(ends[machine] - state["counts"][machine], ends[machine])
        if 1 not in (first, second):
            continue
        labels = state["labels"][state["slots"][part]]
        seen += len(labels)
        assert len(labels) == (labels >= 0).sum() > 0
        assert (state["beta"][part] == 0).all()
        assert np.array_equal(state["errors"][part], np.where(labels == first, 1.0, -1.0))
    assert seen >= learner.core.n_kept


@pytest.mark.parametrize("bias", ["none", "regularized", "exact"])
@pytest.mark.parametrize("name", ["ovo", "ova", "ww"])
def test_the_model_has_the_scores_of_the_core(name: str, bias: str) -> None:
    if name == "ww" and bias == "exact":
        return
    X, y = draw_data(3, 200, 3)
    clf = OnlineSVC(gamma=0.7, multi_class=name, bias=bias).partial_fit(X, y)
    if name == "ovo":
        clf.set_params(decision_function_shape="ovo")
    core = learner_of(clf).core
    state = core.state()
    shown = clf.decision_function(state["X"])
    if name == "ww":
        used = state["labels"] >= 0
        np.testing.assert_allclose(shown[used], state["scores"][used], atol=1e-9)
        return
    ends = np.cumsum(state["counts"])
    for machine, (end, count) in enumerate(zip(ends, state["counts"], strict=True)):
        slots, errors = state["slots"][end - count : end], state["errors"][end - count : end]
        first = pair_list(3)[machine][0] if name == "ovo" else machine
        signs = np.where(state["labels"][slots] == first, 1.0, -1.0)
        np.testing.assert_allclose(shown[slots, machine], signs - errors + core.biases()[machine], atol=1e-9)
