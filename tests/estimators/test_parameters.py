"""Parameters that are declared once: signatures, docstrings, what scikit-learn and type checkers see."""

from __future__ import annotations

import inspect
import pickle
from typing import Any

import pytest
from sklearn.base import clone

from multimargin import SVC, SVCCV, LinearSVC, LinearSVCCV, OnlineSVC
from multimargin.estimators.declared import parameter

ESTIMATORS: list[Any] = [SVC, LinearSVC, LinearSVCCV, SVCCV, OnlineSVC]
# scikit-learn's SVC, in its order
THEIRS = [
    *("C", "kernel", "degree", "gamma", "coef0", "shrinking", "probability", "tol", "cache_size", "class_weight"),
    *("verbose", "max_iter", "decision_function_shape", "break_ties", "random_state"),
]


def _section(doc: str, name: str) -> str:
    """Return a section of a numpydoc docstring."""
    body = doc.split(f"\n{name}\n{'-' * len(name)}\n")[1]
    lines = body.splitlines()
    ends = [k for k in range(1, len(lines)) if lines[k] and not lines[k].strip("-")]
    return "\n".join(lines[: ends[0] - 1] if ends else lines)


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_docstring_and_signature_agree(kind: Any) -> None:
    parameters = inspect.signature(kind).parameters
    entries = [line for line in _section(inspect.getdoc(kind) or "", "Parameters").splitlines() if line[:1].strip()]
    documented = {}
    for line in entries:
        name, _, rest = line.partition(" : ")
        documented[name] = rest.rpartition("default=")[2]
    assert list(documented) == list(parameters)
    for name, default in documented.items():
        value = parameters[name].default
        assert default == (f'"{value}"' if isinstance(value, str) else repr(value)), name
    named = {name for name, each in parameters.items() if each.kind is inspect.Parameter.KEYWORD_ONLY}
    assert set(parameters) - named == ({"penalty", "loss"} if issubclass(kind, LinearSVC) else set())


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_sections_are_in_the_order_of_numpydoc(kind: Any) -> None:
    doc = inspect.getdoc(kind) or ""
    wanted = ["Parameters", "Attributes", "Notes", "Examples"]
    places = [doc.find(f"\n{name}\n{'-' * len(name)}\n") for name in wanted if f"\n{name}\n-" in doc]
    assert places == sorted(places)
    assert places[0] > 0
    assert len(doc.splitlines()[0]) > 20  # the summary comes first


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_fit_documents_its_parameters(kind: Any) -> None:
    doc = inspect.getdoc(kind.fit) or ""
    entries = [line for line in _section(doc, "Parameters").splitlines() if line[:1].strip()]
    assert [line.partition(" : ")[0] for line in entries] == list(inspect.signature(kind.fit).parameters)[1:]
    assert _section(doc, "Returns").strip() == f"self : {kind.__name__}"
    assert max(len(line) for line in doc.splitlines()) <= 120


def test_scikit_learn_order() -> None:
    assert list(inspect.signature(SVC).parameters)[: len(THEIRS)] == THEIRS


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_parameters_are_stored_cloned_and_pickled(kind: Any) -> None:
    estimator = kind(tol=0.5)
    assert vars(estimator) == estimator.get_params(deep=False)
    assert sorted(vars(estimator)) == sorted(inspect.signature(kind).parameters)
    for other in (clone(estimator), pickle.loads(pickle.dumps(estimator))):
        assert other.get_params(deep=False) == estimator.get_params(deep=False)
    assert repr(estimator) == f"{kind.__name__}(tol=0.5)"
    assert not hasattr(kind, "tol")


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_wrong_arguments_are_refused(kind: Any) -> None:
    with pytest.raises(TypeError, match=rf"{kind.__name__}.__init__\(\) got an unexpected keyword argument 'c'"):
        kind(c=1.0)
    with pytest.raises(TypeError, match="positional argument"):
        kind(1.0, 2.0, 3.0)


def test_arguments_by_place() -> None:
    """scikit-learn's LinearSVC takes two."""
    assert LinearSVC("l2", "squared_hinge").loss == "squared_hinge"
    assert LinearSVC("l2", loss="squared_hinge").loss == "squared_hinge"
    with pytest.raises(TypeError, match=r"LinearSVC.__init__\(\) got multiple values for argument 'penalty'"):
        LinearSVC("l2", penalty="l2")
    with pytest.raises(TypeError, match=r"takes 3 positional arguments but 4 were given; name the others"):
        LinearSVC("l2", "hinge", True)


def test_a_search_has_no_c_of_its_own() -> None:
    assert not {"C", "warm_start"} & set(LinearSVCCV().get_params())
    with pytest.raises(TypeError, match="unexpected keyword argument 'C'"):
        LinearSVCCV(C=1.0)


def test_type_checkers_see_the_parameters() -> None:
    """mypy reads these lines: an ignore that is not needed is an error there."""
    SVC(C="1")  # type: ignore[arg-type]
    LinearSVC(fit_intercept=None)  # type: ignore[arg-type]
    number: float = SVC(C=2.0).C
    assert number == 2.0


def test_subclasses_with_their_own_init() -> None:
    class Wider(SVC):
        """Another classifier."""

        def __init__(self, width: float = 1.0, C: float = 1.0) -> None:
            super().__init__(C=C, gamma=1.0 / width)
            self.width = width

    class Widest(Wider):
        extra: int = 3  # no parameter

    for kind in (Wider, Widest):
        assert sorted(inspect.signature(kind).parameters) == ["C", "width"]
        assert kind().get_params() == {"C": 1.0, "width": 1.0}
        assert clone(kind(width=4.0)).gamma == 0.25
        assert "Parameters" not in (kind.__doc__ or "")


def test_without_docstrings() -> None:
    """python -OO strips them; there is nothing to put together then."""

    class Bare(SVC):
        limit: int = parameter(default=3, kind="int")

    assert Bare.__doc__ is None
    assert (Bare().limit, Bare(limit=4, C=2.0).get_params()["limit"]) == (3, 4)
