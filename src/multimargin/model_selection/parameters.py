"""Parameters of a search: grids, metrics, and the choice of the best cell."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from sklearn.metrics import check_scoring, get_scorer

from multimargin._typing import FloatArray
from multimargin.estimators.svc import SVC
from multimargin.model_selection.scoring import Scorer


def read_gammas(gammas: Any, default: FloatArray, kernel: Any, *, with_gamma: bool) -> FloatArray:
    """Return the values in ascending order, each once; a kernel without gamma has one that does not matter."""
    wanted = "gammas must be a list of finite numbers > 0"
    if not with_gamma:
        if gammas is not None and np.size(gammas) > 1:
            raise ValueError(f"gammas={gammas!r} with kernel={kernel!r}, which has no gamma; leave gammas out.")
        return np.ones(1)
    try:
        values = np.asarray(default if gammas is None else gammas, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"gammas={gammas!r} are not numbers; {wanted}.") from error
    if values.ndim != 1 or not values.size:
        raise ValueError(f"gammas={gammas!r} is {'empty' if not values.size else 'not one list'}; {wanted}.")
    bad = values[~(np.isfinite(values) & (values > 0))]
    if len(bad):
        raise ValueError(f"gammas contains {bad[0]:g}; {wanted}, so leave it out.")
    return np.unique(values)


def read_scorers(scoring: Any, refit: Any) -> tuple[dict[str, Scorer], bool]:
    """Return a scorer for each metric, None for accuracy, and whether there are several metrics."""
    if scoring is None or isinstance(scoring, str) or callable(scoring):
        _check_refit(refit, ("score",), several=False)
        return {"score": _scorer(scoring)}, False
    if not isinstance(scoring, dict | list | tuple | set):
        raise TypeError(
            f"scoring={scoring!r} is not allowed; give the name of a metric, a function of (estimator, X, y), a list "
            "of names, a dict of name to either, or None for accuracy."
        )
    named = scoring.items() if isinstance(scoring, dict) else ((name, name) for name in scoring)
    scorers = {str(name): _scorer(each) for name, each in named}
    if not scorers:
        raise ValueError(f"scoring={scoring!r} is empty; name a metric, or leave it out for accuracy.")
    _check_refit(refit, tuple(scorers), several=True)
    return scorers, True


def _scorer(choice: Any) -> Scorer:
    if choice is None or (isinstance(choice, str) and choice == "accuracy"):
        return None
    return get_scorer(choice) if isinstance(choice, str) else check_scoring(SVC(), scoring=choice)


def _check_refit(refit: Any, metrics: tuple[str, ...], *, several: bool) -> None:
    if callable(refit):
        return
    if isinstance(refit, bool | np.bool_):
        if not (several and refit):
            return
        raise ValueError(
            f"refit={refit!r} with several metrics does not say which of them decides; name one of {metrics}, give a "
            "function of cv_results_, or set refit=False."
        )
    if not several or refit not in metrics:
        names = f" or one of {metrics}" if several else ""
        raise ValueError(f"refit={refit!r} is not allowed; it must be True, False, a function of cv_results_{names}.")


def best_cell(
    cv_results: dict[str, Any], refit: Any, scorers: dict[str, Scorer], *, multimetric: bool
) -> dict[str, Any]:
    """Return best_index_, best_params_ and best_score_ as GridSearchCV has them; nothing where none is known."""
    if callable(refit):
        index = refit(cv_results)
        if not isinstance(index, Integral):
            raise TypeError(
                f"refit returned {index!r}, which is not an integer; it must return an index of cv_results_."
            )
        if not 0 <= int(index) < len(cv_results["params"]):
            raise IndexError(f"refit returned {index!r}; there are {len(cv_results['params'])} cells.")
        found = {"best_index_": int(index), "best_params_": cv_results["params"][int(index)]}
        return found if multimetric else found | {"best_score_": float(cv_results["mean_test_score"][int(index)])}
    metric = "score" if not multimetric else refit if isinstance(refit, str) else ""
    if not metric or np.isnan(cv_results[f"mean_test_{metric}"]).all():
        return {}
    index = int(cv_results[f"rank_test_{metric}"].argmin())
    return {
        "best_index_": index,
        "best_params_": cv_results["params"][index],
        "best_score_": float(cv_results[f"mean_test_{metric}"][index]),
    }
