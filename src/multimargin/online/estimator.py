"""OnlineSVC: scikit-learn's interface for online learning, no numerics."""

from __future__ import annotations

import threading
from copy import deepcopy
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from multimargin._typing import DataMatrix, FloatArray, IntArray
from multimargin.base.errors import shown_label
from multimargin.base.interrupts import deferred
from multimargin.base.matrices import dense
from multimargin.estimators.declared import parameter
from multimargin.estimators.shared import KernelParameters
from multimargin.estimators.svc import DATA, old_state_unless_done
from multimargin.fitting.parameters import check_array, check_seed, validate_data
from multimargin.kernels.store import check_range
from multimargin.kernels.table import choices
from multimargin.online.active import choose_rows
from multimargin.online.attributes import StreamAttributes
from multimargin.online.finalize import finish
from multimargin.online.parameters import (
    check_labels,
    check_parameters,
    check_rows,
    check_unchanged,
    check_weights,
    class_weights,
    make_spec,
    merge_classes,
    parameters_of,
)
from multimargin.online.stream import Stream
from multimargin.online.turns import in_turn, turn_of
from multimargin.problems.machines import Machine

# Rows learned between two points of the history.
BLOCK = 256


class OnlineSVC(StreamAttributes, KernelParameters):
    """Support vector classifier for online learning, one example at a time.

    LASVM for binary machines (each pair of classes, or each class against the rest), LaRank for machines that see all
    classes. Only the examples that are needed are kept, so memory grows with the support vectors, not with the examples
    seen. ``finalize`` continues to the certified optimum that ``SVC.fit`` finds. For data that fit in memory and do not
    change, ``SVC`` is the better choice.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels seen so far, or those given, sorted.
    n_seen_ : int
        Examples seen; the number of the next one.
    history_ : StreamHistory
        Accuracy (each example is predicted before it is learned), dual objective and number of support vectors.
    support_ : ndarray of shape (n_SV,)
        Positions of the support vectors in order of arrival, grouped by class; rows of X after ``fit`` and
        ``finalize(X, y)``.
    support_vectors_, n_support_, dual_coef_, intercept_, coef_ :
        As in ``SVC``; support vectors are dense.
    certificate_ : Certificate
        After ``finalize``, until further examples are learned.
    n_iter_ : ndarray of shape (1,)
        Steps made.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)

    See Also
    --------
    SVC : Batch training.
    active_learning_loop : Query labels, learn, repeat.
    OnlineDisplay : Plots of the history.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from multimargin import OnlineSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = OnlineSVC(C=2, gamma=0.1)
    >>> for first in range(0, 150, 50):
    ...     clf = clf.partial_fit(X[first : first + 50], y[first : first + 50])
    >>> clf.classes_
    array([0, 1, 2])
    >>> clf.finalize(X, y).certificate_.optimal
    True
    """

    C: float = parameter(default=1.0, kind="float", doc="What a short margin costs.")
    kernel: str = parameter(default="rbf", kind=choices())
    gamma: float | str = parameter(
        default="scale",
        kind='{"scale", "auto"} or float',
        doc='"scale" is computed from the first rows and then fixed: give a number if rows arrive one by one.',
    )
    tol: float = parameter(
        default=1e-3,
        kind="float",
        doc="Violations up to this size cause no step; also that of ``finalize``.",
    )
    cache_size: float = parameter(
        default=200.0,
        kind="float",
        doc="Megabytes for kernel rows of kept examples. LaRank keeps none once they do not all fit.",
    )
    class_weight: Any = parameter(
        default=None, kind='dict, "balanced" or None', doc='Factors on C by class; "balanced" for ``fit`` only.'
    )
    random_state: Any = parameter(
        default=None,
        kind="int, RandomState instance or None",
        doc="""
        The order of the rows in ``fit``, and what LaRank and selection="random" draw; None is the same as 0.
        """,
    )
    multi_class: str | Machine = parameter(
        default="ovo",
        kind="str or Machine",
        doc='As in ``SVC``: "ovo", "dag", "ova", "ww", "cs", "llw", "adm", "ats", "atm", "rm", "mmr".',
    )
    bias: str = parameter(
        default="auto",
        kind='{"auto", "none", "regularized", "exact"}',
        doc='As in ``SVC``; "exact" for "ovo", "dag" and "ova" only.',
    )
    selection: str = parameter(
        default="second-order",
        kind='{"second-order", "first-order", "random"}',
        doc="How the two variables of a step are chosen: by their gain in the dual, by the gradient, or by chance.",
    )
    reprocess: int = parameter(
        default=1,
        kind="int",
        doc="""
        Steps on kept examples for each new one, in each binary machine, and up to three more while it is far from its
        optimum; for LaRank a factor on their largest number, 10, below which recent gains decide.
        """,
    )
    budget: int | None = parameter(
        default=None,
        kind="int or None",
        doc="""
        The most examples to keep. Beyond it the one with the smallest ||beta||^2 k(x, x) is removed; with an exact
        bias its coefficient moves to the examples for which the dual decreases least.
        """,
    )
    passes: int = parameter(
        default=1,
        kind="int",
        doc="Number of passes of ``fit`` over the data, each in a new random order.",
    )

    @in_turn
    @deferred()
    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Start again, then learn the rows in random order, ``passes`` times.

        Weights of examples are only supported by ``partial_fit``. The next ``partial_fit`` continues from here.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)

        Returns
        -------
        self : OnlineSVC
        """
        with old_state_unless_done(self):
            params = self.get_params(deep=False)
            check_parameters(params)
            rows, labels = validate_data(self, X, y, **DATA)
            check_labels(labels)
            classes = np.unique(labels)
            if len(classes) < 2:
                raise ValueError(
                    f"y has one class only ({shown_label(classes[0])}); fit needs at least two classes, so check the "
                    "labels, or use partial_fit with classes."
                )
            stream = Stream.begin(params, rows, np.ones(len(labels)))
            weights = class_weights(self.class_weight, classes, labels)
            stream.know(classes)
        random = check_seed("random_state", 0 if self.random_state is None else self.random_state)
        caps = self.C * weights[np.searchsorted(classes, labels)]
        self._replace(stream)
        for turn in range(self.passes):
            self._learn(rows, labels, caps, np.asarray(random.permutation(len(labels))), known=turn > 0)
        return self

    @in_turn
    @deferred()
    def partial_fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Learn a batch of rows, in their order.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            New labels extend ``classes_``, unless ``classes`` was given.
        classes : array-like, default=None
            All labels that will ever come.
        sample_weight : array-like of shape (n_samples,), default=None
            Factors on C; 0 leaves a row out.

        Returns
        -------
        self : OnlineSVC
        """
        params = parameters_of(self)
        stream: Stream | None = self.__dict__.get("_stream")
        with old_state_unless_done(self):
            rows, labels = check_rows(self, X, y, reset=stream is None)
            weight = check_weights(sample_weight, len(labels))
            if stream is None:
                stream = Stream.begin(params, rows, weight)
            else:
                check_unchanged(params, stream.params)
                check_range(rows, stream.spec.kernel)
                stream.settle()
            known = stream.classes if len(stream.classes) else None
            fixed = stream.fixed or classes is not None
            merged = merge_classes(known, labels, classes, fixed=stream.fixed)
            by_class = class_weights(self.class_weight, merged, None)
            stream.know(merged)
            stream.fixed = fixed
        caps = self.C * by_class[np.searchsorted(merged, labels)] * weight
        self._replace(stream)
        self._learn(rows, labels, caps, np.arange(len(labels)))
        return self

    def _replace(self, stream: Stream) -> None:
        stream.settle()
        stream.shown = None
        self._stream = stream
        self.classes_ = stream.classes
        self.n_iter_ = np.array([stream.n_steps])
        for name in ("certificate_", "fit_status_", "_finished", "_spec"):
            self.__dict__.pop(name, None)

    def _learn(
        self, rows: DataMatrix, labels: np.ndarray, caps: FloatArray, order: np.ndarray, *, known: bool = False
    ) -> None:
        """Learn from the rows block by block, so that after an exception the state counts what was learned."""
        stream = self._stream
        first = 0 if known else stream.n_seen
        codes = np.searchsorted(stream.classes, labels)
        try:
            for begin in range(0, len(order), BLOCK):
                block = order[begin : begin + BLOCK]
                X = dense(rows[block])
                stream.learn(X, codes[block], caps[block], first + block, known=known)
        finally:
            self._replace(stream)

    @in_turn
    @deferred()
    def forget(self, which: ArrayLike) -> Self:
        """Remove examples, as if their dual variables had always been 0.

        What is left is a feasible point of the problem without them, and nothing of their data is kept; ``finalize``
        then gives the optimum of the rest. Examples that are not kept any more leave no trace anyway.

        Parameters
        ----------
        which : array-like of int, or of bool of shape (n_seen,)
            Positions of examples in order of arrival, or a mask over them.

        Returns
        -------
        self : OnlineSVC
        """
        check_is_fitted(self)
        chosen, n_seen = np.asarray(which), self._stream.n_seen
        if chosen.dtype == bool:
            if chosen.shape != (n_seen,):
                raise ValueError(
                    f"The mask has shape {chosen.shape}; it must have one entry per example seen, ({n_seen},)."
                )
            chosen = np.flatnonzero(chosen)
        if chosen.size and (chosen.dtype.kind not in "iu" or chosen.min() < 0 or chosen.max() >= n_seen):
            raise ValueError(
                f"which={chosen.tolist()[:3]}... names examples that were not seen; give whole numbers from 0 to "
                f"{n_seen - 1}, or a mask."
            )
        for number in np.unique(chosen):
            self._stream.forget(int(number))
        self._replace(self._stream)
        return self

    @in_turn
    @deferred()
    def finalize(
        self, X: ArrayLike | None = None, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Continue to the optimum: SVC's solver, started from the current state.

        The model and ``certificate_`` are then those of ``SVC.fit`` with the same parameters and the gamma of the
        stream. The next ``partial_fit`` continues from there.

        Parameters
        ----------
        X, y : array-like, default=None
            The data to be optimal for, for example all data seen; positions then refer to the rows of X. By
            default the examples that were kept.
        sample_weight : array-like of shape (n_samples,), default=None
            For X and y.

        Returns
        -------
        self : OnlineSVC
        """
        check_is_fitted(self)
        stream = self._stream
        stream.settle()
        if stream.learner is None:
            raise ValueError("Only one class has been seen so far; finalize needs two, so learn from more rows first.")
        if (X is None) != (y is None):
            raise ValueError("finalize got one of X and y; give both, or neither for the examples that were kept.")
        given = None
        if X is not None:
            rows, labels = validate_data(self, X, y, reset=False, **DATA)
            given = (rows, labels, check_weights(sample_weight, len(labels)))
        fitted, learner, ids = finish(self, stream, given)
        stream.learner = learner
        stream.n_seen = stream.n_seen if X is None else len(ids)
        self._replace(stream)
        attributes = fitted.attributes | {"support_": ids[fitted.attributes["support_"]].astype(np.int32)}
        self.__dict__.update({name: attributes[name] for name in ("certificate_", "fit_status_", "n_iter_", "_spec")})
        self._finished = attributes
        if fitted.error is not None:
            raise fitted.error
        return self

    def query(self, X_pool: ArrayLike, n: int = 1, strategy: str = "margin") -> IntArray:
        """Return the rows of a pool to label next, shape (n,).

        "margin": those that are decided by least; "diverse": such that are also unlike each other; "random". Before two
        classes are known "margin" is random and "diverse" uses similarity alone.

        Parameters
        ----------
        X_pool : array-like or sparse matrix of shape (n_pool, n_features)
        n : int, default=1
        strategy : {"margin", "diverse", "random"}, default="margin"
        """
        stream: Stream | None = self.__dict__.get("_stream")
        if stream is None:
            points = check_array(X_pool, **DATA)
            spec = make_spec(self.get_params(deep=False), points, np.ones(points.shape[0]))
            return choose_rows(None, points, (n, strategy), spec.kernel, self.random_state)
        points = validate_data(self, X_pool, reset=False, **DATA)
        return choose_rows(self._predictor()[1], points, (n, strategy), stream.spec.kernel, self.random_state)

    def decision_function(self, X: ArrayLike) -> np.ndarray:
        """Return the scores that decide, as SVC does; zeros while there is one class only."""
        check_is_fitted(self)
        points = validate_data(self, X, reset=False, **DATA)
        _, model = self._predictor()
        if model is None:
            return np.zeros(points.shape[0])
        return model.decision(points, pairwise=self.decision_function_shape == "ovo")

    def predict(self, X: ArrayLike) -> np.ndarray:
        """Return the class of each row of X, shape (n_samples,), as SVC does."""
        check_is_fitted(self)
        points = validate_data(self, X, reset=False, **DATA)
        classes, model = self._predictor()
        if model is None:
            return np.full(points.shape[0], classes[0])
        tied = self.break_ties and self.decision_function_shape == "ovr" and len(classes) > 2
        codes = np.argmax(model.scores(points), axis=1) if tied else model.codes(points)
        predicted: np.ndarray = classes[codes]
        return predicted

    def __getstate__(self) -> dict[str, Any]:
        with turn_of(self):
            state = dict(super().__getstate__())  # scikit-learn hands out the attributes themselves
            if "_stream" in state and threading.active_count() > 1:  # which might learn while it is being written
                state["_stream"] = deepcopy(state["_stream"])
        return state

    def __sklearn_is_fitted__(self) -> bool:
        return "_stream" in self.__dict__

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
