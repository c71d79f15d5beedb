"""What we decorate with and derive from in scikit-learn, with types: it has none, and a method would lose its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

Method = TypeVar("Method", bound=Callable[..., Any])

if TYPE_CHECKING:

    class CallbackSupportMixin:
        """scikit-learn's callbacks."""

    def available_if(check: Callable[[Any], bool]) -> Callable[[Method], Method]:
        """Return a decorator of a method that is there only if the check of its object says so."""

    def with_callbacks(method: Method) -> Method:
        """Return the method of a fit with what callbacks need around it."""

else:
    from sklearn.utils.metaestimators import available_if

    try:  # scikit-learn >= 1.9
        from sklearn.callback import CallbackSupportMixin, with_callbacks
    except ImportError:  # pragma: no cover - depends on the installed scikit-learn

        class CallbackSupportMixin:
            """Stands in where scikit-learn has no callbacks."""

        def with_callbacks(method):
            """Return the method unchanged."""
            return method


__all__ = ["CallbackSupportMixin", "available_if", "with_callbacks"]
