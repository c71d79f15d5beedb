"""Parameters of estimators, each declared once: type, default and documentation.

From the declarations of a class and of its bases come ``__init__`` with the signature that scikit-learn reads, and the
section "Parameters" of the docstring. Type checkers read them as the fields of a dataclass.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeVar, dataclass_transform

from sklearn.base import BaseEstimator, ClassifierMixin

# The order of signatures and docstrings: what a search tries, then scikit-learn's SVC; all others follow as declared.
FIRST = (
    *("Cs", "gammas", "cv", "search", "scoring", "refit"),
    *("C", "kernel", "degree", "gamma", "coef0", "shrinking", "probability", "tol", "cache_size", "class_weight"),
    *("verbose", "max_iter", "decision_function_shape", "break_ties", "random_state"),
)


@dataclass(frozen=True)
class Parameter:
    """A declared parameter; with ``init=False`` the class does not have this one of its bases."""

    default: Any
    kind: str
    doc: str
    init: bool
    kw_only: bool = True

    def paragraph(self, name: str) -> str:
        """Return its part of a numpydoc section."""
        default = f'"{self.default}"' if isinstance(self.default, str) else repr(self.default)
        text = inspect.cleandoc(self.doc)
        return f"{name} : {self.kind}, default={default}\n" + (textwrap.indent(text, "    ") + "\n" if text else "")


def parameter(*, default: Any = None, kind: str = "", doc: str = "", init: bool = True, kw_only: bool = True) -> Any:
    """Declare a parameter of an estimator: ``name: type = parameter(default=..., kind=..., doc=...)``.

    ``kind`` is its type in words, as numpydoc has it. Those with ``kw_only=False`` come first.
    """
    return Parameter(default, kind, doc, init, kw_only)


@dataclass_transform(eq_default=False, kw_only_default=True, field_specifiers=(parameter,))
class DeclaredClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Base of classifiers that declare their parameters.

    A subclass with an ``__init__`` of its own is read by scikit-learn as any other.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        own = {name: value for name, value in vars(cls).items() if isinstance(value, Parameter)}
        for name in own:
            delattr(cls, name)
        cls._own_parameters = own
        if own and "__init__" not in vars(cls):
            declared = _all_parameters(cls)
            cls.__init__ = _make_init(cls, declared)  # type: ignore[method-assign]
            cls.__doc__ = _with_parameters(cls.__doc__, declared)
        super().__init_subclass__(**options)

    @classmethod
    @lru_cache(maxsize=64)
    def _get_param_names(cls) -> list[str]:
        """The parameters' names, looked up once per class: reading a signature takes longer than a small fit."""
        names: list[str] = super()._get_param_names()
        return names


def _all_parameters(cls: type) -> dict[str, Parameter]:
    """Return the parameters of a class in their order; a declaration replaces those of the bases."""
    found: dict[str, Parameter] = {}
    for base in reversed(cls.__mro__):
        found |= vars(base).get("_own_parameters", {})
    ordered = [*(name for name in FIRST if name in found), *(name for name in found if name not in FIRST)]
    ordered.sort(key=lambda name: found[name].kw_only)
    return {name: found[name] for name in ordered if found[name].init}


def _make_init(cls: type, declared: dict[str, Parameter]) -> Callable[..., None]:
    defaults = {name: each.default for name, each in declared.items()}

    places = [name for name, each in declared.items() if not each.kw_only]

    def __init__(self: Any, *placed: Any, **given: Any) -> None:  # noqa: N807 - it becomes the class's
        if placed:
            given = _by_name(type(self).__name__, places, placed, given)
        for name in given:
            if name not in defaults:
                raise TypeError(f"{type(self).__name__}.__init__() got an unexpected keyword argument {name!r}")
        for name, default in defaults.items():
            setattr(self, name, given.get(name, default))

    hints = {name: hint for base in reversed(cls.__mro__) for name, hint in inspect.get_annotations(base).items()}
    named = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY if declared[name].kw_only else inspect.Parameter.POSITIONAL_OR_KEYWORD,
            default=default,
            annotation=hints[name],
        )
        for name, default in defaults.items()
    ]
    own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    __init__.__signature__ = inspect.Signature([own, *named], return_annotation=None)  # type: ignore[attr-defined]
    __init__.__qualname__, __init__.__module__ = f"{cls.__qualname__}.__init__", cls.__module__
    __init__.__doc__ = None
    return __init__


def _by_name(cls: str, places: list[str], placed: tuple[Any, ...], given: dict[str, Any]) -> dict[str, Any]:
    """Return all arguments by name, or refuse them as Python does."""
    if len(placed) > len(places):
        raise TypeError(
            f"{cls}.__init__() takes {1 + len(places)} positional arguments but {1 + len(placed)} were given; name the "
            "others."
        )
    twice = [name for name in places[: len(placed)] if name in given]
    if twice:
        raise TypeError(f"{cls}.__init__() got multiple values for argument {twice[0]!r}")
    return dict(zip(places, placed, strict=False)) | given


def _with_parameters(doc: str | None, declared: dict[str, Parameter]) -> str | None:
    """Return the docstring with the section of the parameters before that of the attributes."""
    if doc is None:  # python -OO
        return None
    text = inspect.cleandoc(doc)
    head, mark, rest = text.partition("\nAttributes\n----------\n")
    section = "Parameters\n----------\n" + "".join(each.paragraph(name) for name, each in declared.items())
    return f"{head.rstrip()}\n\n{section}{mark}{rest}" if mark else f"{text}\n\n{section.rstrip()}"


Method = TypeVar("Method", bound=Callable[..., Any])

_FIT_SECTIONS = """

Parameters
----------
X : array-like or sparse matrix of shape (n_samples, n_features)
    Sparse data are read as CSR and stay sparse; float32 stays float32; everything else becomes float64.
y : array-like of shape (n_samples,)
    Labels of any kind.
sample_weight : array-like of shape (n_samples,), default=None
    Factors on C; a weight of 2 is the same as a row that occurs twice, one <= 0 leaves a row out.{scores}
{groups}
Returns
-------
self : {name}
"""
_GROUPS = """groups : array-like of shape (n_samples,), default=None
    For the splitter.
"""


def document_fit(name: str, *, scores: str = "") -> Callable[[Method], Method]:
    """Return a decorator that appends what all methods ``fit`` document: their parameters, and that they return self.

    ``scores`` is the sentence of a search, which splits the rows, about weights and scores of the rows held out.
    """
    sections = _FIT_SECTIONS.format(
        name=name,
        groups=_GROUPS if scores else "",
        scores=f"\n    {scores}" if scores else "",
    )

    def documented(method: Method) -> Method:
        if method.__doc__ is not None:  # else python -OO
            method.__doc__ = inspect.cleandoc(method.__doc__) + sections
        return method

    return documented
