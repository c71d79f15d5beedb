"""The error of a wrong parameter: scikit-learn's own class, so that code that catches it catches ours."""

from __future__ import annotations

from typing import Any

import numpy as np

try:
    from sklearn.utils._param_validation import InvalidParameterError
except ImportError:  # pragma: no cover - depends on the installed scikit-learn

    class InvalidParameterError(ValueError, TypeError):  # type: ignore[no-redef]
        """Stands in where scikit-learn has moved its class."""


__all__ = ["InvalidParameterError", "shown_label"]


def shown_label(label: Any) -> str:
    """Return a label as the user wrote it: 1.0, not np.float64(1.0)."""
    return repr(label.item() if isinstance(label, np.generic) else label)
