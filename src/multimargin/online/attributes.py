"""The fitted attributes of OnlineSVC, in SVC's layout, computed on access."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from multimargin.base.matrices import dense
from multimargin.models.kernel_model import KernelModel
from multimargin.models.pair_model import PairModel
from multimargin.online.monitoring import StreamHistory
from multimargin.online.stream import Stream
from multimargin.online.turns import turn_of


class StreamAttributes:
    """Fitted attributes of OnlineSVC, computed on access so that learning a row does not pay for them."""

    kernel: str
    classes_: np.ndarray
    _stream: Stream

    @property
    def n_seen_(self) -> int:
        return self._settled().n_seen

    @property
    def history_(self) -> StreamHistory:
        return self._settled().history

    def _settled(self) -> Stream:
        """The state with everything learned counted, even if memory ran out before."""
        check_is_fitted(self)
        with turn_of(self):
            self._stream.settle()
            return self._stream

    @property
    def _model(self) -> KernelModel | PairModel:
        model: KernelModel | PairModel = self._attributes["_model"]
        return model

    @property
    def _attributes(self) -> dict[str, Any]:
        with turn_of(self):
            return self._shown()

    def _shown(self) -> dict[str, Any]:
        """The attributes; the caller holds the lock."""
        check_is_fitted(self)
        finished: dict[str, Any] | None = self.__dict__.get("_finished")
        return self._stream.attributes() if finished is None else finished

    def _predictor(self) -> tuple[np.ndarray, KernelModel | PairModel | None]:
        """Classes and the model that belongs to them; None while there is one class only."""
        check_is_fitted(self)
        with turn_of(self):
            alone = self._stream.learner is None
            return self.classes_, None if alone else self._shown()["_model"]

    @property
    def support_(self) -> np.ndarray:
        return np.asarray(self._attributes["support_"])

    @property
    def support_vectors_(self) -> Any:
        return self._attributes["support_vectors_"]

    @property
    def n_support_(self) -> np.ndarray:
        return np.asarray(self._attributes["n_support_"])

    @property
    def dual_coef_(self) -> np.ndarray:
        return dense(self._attributes["dual_coef_"])

    @property
    def intercept_(self) -> np.ndarray:
        return np.asarray(self._attributes["intercept_"])

    @property
    def class_weight_(self) -> np.ndarray:
        return np.asarray(self._attributes["class_weight_"])

    @property
    def shape_fit_(self) -> tuple[int, int]:
        rows, columns = self._attributes["shape_fit_"]
        return int(rows), int(columns)

    @property
    def coef_(self) -> np.ndarray:
        """Weight vectors of the linear kernel."""
        if self.kernel != "linear":
            raise AttributeError("coef_ is only available when using a linear kernel")
        model = self._model
        if not isinstance(model, PairModel):
            return np.asarray(self.dual_coef_ @ self.support_vectors_)
        weights = dense(model.weights())
        return -weights if len(self.classes_) == 2 else weights
