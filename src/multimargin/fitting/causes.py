"""Why a fit may have ended early, in words: what a ConvergenceWarning says beside its numbers."""

from __future__ import annotations

import numpy as np

from multimargin._typing import DataMatrix
from multimargin.fitting.advice import LARGE_C, Advice, large_cost, large_products, unscaled_column, wide_columns
from multimargin.kernels.rounding import squared_lengths
from multimargin.kernels.spec import KernelSpec
from multimargin.solvers.certificate import Certificate
from multimargin.solvers.report import StopReason


def likely_cause(X: DataMatrix, kernel: KernelSpec, C: float, certificate: Certificate) -> str:
    """Return what data and parameters say about an early end, with the remedy; nothing where they say nothing."""
    table = kernel.name != "precomputed" and X.ndim == 2 and X.dtype.kind == "f"  # a callable takes other data, too
    wide = wide_columns(X) if table else []
    causes = [unscaled_column(str(column), ratio) for column, ratio in wide[:1]]
    if certificate.stop_reason == StopReason.STALLED.value and not kernel.given:
        causes += _large_products(X, kernel, C, certificate.tol)
    if not causes and C >= LARGE_C:
        causes = [large_cost(C)]
    return f" Likely cause: {' Beside that, '.join(each.sentence for each in causes)}" if causes else ""


def _large_products(X: DataMatrix, kernel: KernelSpec, C: float, tol: float) -> list[Advice]:
    """What to say where C k(x, x) times tol is above 1: then a violation of tol may cost more than the whole dual."""
    with np.errstate(over="ignore"):
        product = C * kernel.largest_value(float(squared_lengths(X).max(initial=0.0)))
    if not product * tol > 1.0:
        return []
    return [large_products(product, float(abs(X).max()), kernel.gamma if kernel.has_gamma else None)]
