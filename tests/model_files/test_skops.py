"""skops.io reads our estimators if it trusts the types that we list, and needs no others."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from multimargin import SVC
from multimargin.model_files import SKOPS_TYPES
from support.model_cases import CASES, X, Y, fitted, outputs

NAMES = [name for name in CASES if name not in ("search", "linear search")]


@pytest.mark.parametrize("name", NAMES)
def test_the_list_is_enough(name: str) -> None:
    skops_io = pytest.importorskip("skops.io", reason="skops is not installed")
    clf = fitted(name)
    content = skops_io.dumps(clf)
    assert set(skops_io.get_untrusted_types(data=content)) <= set(SKOPS_TYPES)
    again = skops_io.loads(content, trusted=list(SKOPS_TYPES))
    for method, values in outputs(clf, name).items():
        np.testing.assert_array_equal(outputs(again, name)[method], values)


def test_the_list_names_what_exists() -> None:
    for name in SKOPS_TYPES:
        module, _, what = name.rpartition(".")
        assert hasattr(__import__(module, fromlist=[what]), what)


@pytest.mark.parametrize("multi_class", ["ova", "ovo"])
def test_pickles_keep_their_choices(multi_class: str) -> None:
    clf = SVC(multi_class=multi_class).fit(X, Y)
    again = pickle.loads(pickle.dumps(clf))
    assert again._spec.loss is clf._spec.loss
    assert again._spec.bias is clf._spec.bias
    assert again._spec.machine.bound is clf._spec.machine.bound
