"""The methods of an SVC that give probabilities: there when they are asked for."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import NotFittedError

from multimargin.base.typed import available_if
from multimargin.fitting.calibrated import probabilities
from multimargin.models.calibration import Calibrator


class Probabilities:
    """``predict_proba`` and ``predict_log_proba``."""

    probability: Any
    calibration: str | None
    _calibrator: Calibrator | None
    _model: Any

    def _points(self, X: ArrayLike) -> Any:
        raise NotImplementedError

    def _asks_for_probability(self) -> bool:
        return isinstance(self.probability, bool | np.bool_) and bool(self.probability)

    def _gives_probabilities(self) -> bool:
        """Whether predictions follow probabilities: they are asked for, and the fit made them."""
        asked = self.calibration is not None or self._asks_for_probability()
        return asked and "_model" in self.__dict__ and self._calibrator is not None

    def _has_probabilities(self) -> bool:
        """Whether they are asked for and, once fitted, there; else says why not."""
        name = type(self).__name__
        if self.calibration is None and not self._asks_for_probability():
            raise AttributeError(f"{name}(calibration=None) has no probabilities; fit it with calibration='sigmoid'.")
        if self.calibration is not None and hasattr(self, "_model") and self._calibrator is None:
            raise AttributeError(
                f"This {name} has no probabilities, because its fit had no calibration or was stopped before the end "
                "of it; fit again."
            )
        return True

    @available_if(_has_probabilities)
    def predict_proba(self, X: ArrayLike) -> np.ndarray:
        """Return the probability of each class, shape (n_samples, n_classes), columns in the order of ``classes_``.

        Exists when ``calibration`` is on.
        """
        points = self._points(X)
        if self._calibrator is None:
            raise NotFittedError(
                "predict_proba is not available when fitted with probability=False; set calibration and fit again."
            )
        return probabilities(self._calibrator, self._model, points)

    @available_if(_has_probabilities)
    def predict_log_proba(self, X: ArrayLike) -> np.ndarray:
        """Return the logarithms of ``predict_proba``, shape (n_samples, n_classes); -inf where that is 0."""
        with np.errstate(divide="ignore"):
            logarithms: np.ndarray = np.log(self.predict_proba(X))
        return logarithms
