"""The fitted attributes of a stream, laid out as SVC's and made when they are asked for."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from multimargin.model import KernelModel
from multimargin.online.monitoring import StreamHistory
from multimargin.online.stream import Stream
from multimargin.pair_model import PairModel


class StreamAttributes:
    """What OnlineSVC shows of its model: a stream need not pay for it after every row."""

    kernel: str
    classes_: np.ndarray
    _stream: Stream

    @property
    def n_seen_(self) -> int:
        check_is_fitted(self)
        return self._stream.n_seen

    @property
    def history_(self) -> StreamHistory:
        check_is_fitted(self)
        return self._stream.history

    @property
    def _model(self) -> KernelModel | PairModel:
        model: KernelModel | PairModel = self._attributes["_model"]
        return model

    @property
    def _attributes(self) -> dict[str, Any]:
        check_is_fitted(self)
        finished: dict[str, Any] | None = self.__dict__.get("_finished")
        return self._stream.attributes() if finished is None else finished

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
        return np.asarray(self._attributes["dual_coef_"])

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
        return -model.weights() if len(self.classes_) == 2 else model.weights()
