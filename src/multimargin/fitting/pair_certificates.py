"""The certificates of all pairs of classes at once, as columns; pairs that need a closer look are named."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from multimargin._typing import FloatArray, IntArray
from multimargin.fitting.spec import FitSpec
from multimargin.kernels.rounding import EPSILON
from multimargin.problems.problem import Bias, Loss
from multimargin.problems.recovery import FEASIBILITY_TOLERANCE, SUMS_TOLERANCE
from multimargin.problems.schemes import BinaryProblems
from multimargin.solvers.binary import BinarySolutions
from multimargin.solvers.certificate import (
    INDEFINITE,
    LARGEST_RELATIVE_GAP,
    NOT_VERIFIED,
    ROOM_FOR_VERIFY,
    TESTED,
    WIDE_GAP,
)
from multimargin.solvers.certificate_table import CertificateTable
from multimargin.solvers.report import StopReason
from multimargin.solvers.report_table import REASONS

WIDE = 2  # place of the remark on a wide gap


def certify_together(
    problems: BinaryProblems,
    solutions: BinarySolutions,
    spec: FitSpec,
    sizes: FloatArray,
    solver: tuple[str, str],
) -> tuple[CertificateTable, IntArray]:
    """Return what ``certificate.assemble`` makes of every pair that nothing is said against, and which the others are.

    ``sizes`` is ``rounding.kernel_sizes`` of each example of each problem.
    """
    reports, convex = solutions.reports, spec.kernel.positive_semidefinite
    found, n = reports.columns, len(solutions)
    primal = np.where(np.isfinite(found["primal"]) & convex, found["primal"], np.nan)
    gap = primal - found["dual"]
    with np.errstate(invalid="ignore"):
        relative_gap = gap / np.fmax(np.fmax(np.abs(primal), np.abs(found["dual"])), 1e-300)
    verified = found["verified"]
    columns = {
        "primal": primal,
        "dual": found["dual"],
        "gap": gap,
        "relative_gap": relative_gap,
        "kkt_violation": found["violation"],
        "tol": np.full(n, spec.tol),
        "stop_reason": reports.reasons.copy(),
        "remark": (~verified).astype(np.int8),
        "solver": np.zeros(n, dtype=np.int8),
        "solver_reason": np.zeros(n, dtype=np.int8),
    }
    columns |= {name: found[name] for name in ("seconds", "n_iter", "kernel_rows", "cache_hits", "float64_rows")}
    none = np.zeros(n)
    for name in ("blocks", "exact_blocks", "feature_sweeps"):
        columns[name] = reports.phases.get(name, none).astype(np.int64)
    columns["verified"] = verified
    texts = {"stop_reason": tuple(reason.value for reason in REASONS), "remark": _remarks(spec)}
    table = CertificateTable(
        {name: column.copy() for name, column in columns.items()},
        texts | {"solver": (solver[0],), "solver_reason": (solver[1],)},
    )
    stalled = verified & ~table.optimal & table.are(StopReason.CONVERGED.value)  # never called convergence
    table.columns["stop_reason"][stalled] = REASONS.index(StopReason.STALLED)
    most = LARGEST_RELATIVE_GAP * np.fmax(np.abs(primal), np.abs(found["dual"]))
    table.columns["remark"][verified & (gap > most)] = WIDE
    return table, np.flatnonzero(verified & ~_beyond_doubt(problems, solutions, spec, sizes, most - gap))


def _remarks(spec: FitSpec) -> tuple[str, str, str]:
    """What is said of pairs that are verified, of those that are not, and of those whose gap is wide."""
    kernel, convex = spec.kernel, spec.kernel.positive_semidefinite
    tested = TESTED.format("all rows" if kernel.tested_all else f"a sample of {kernel.tested_rows} rows")
    notes = [text for text, holds in ((INDEFINITE, not convex), (tested, convex and kernel.tested_rows > 0)) if holds]
    return "; ".join(notes), "; ".join([*notes, NOT_VERIFIED]), "; ".join([*notes, WIDE_GAP])


def _beyond_doubt(
    problems: BinaryProblems, solutions: BinarySolutions, spec: FitSpec, sizes: FloatArray, room: FloatArray
) -> NDArray[np.bool_]:
    """Return of which pairs the point is within its bounds, and rounding changes nothing that matters.

    ``room`` is how much wider a gap could be without being called wide; negative for one that is.
    """
    found, convex = solutions.reports.columns, spec.kernel.positive_semidefinite
    first, amounts, C = problems.starts[:-1], solutions.amounts.flat, problems.C
    finite = np.where(np.isfinite(C), C, 0.0)
    cap = C if spec.loss is Loss.HINGE else np.full(len(C), np.inf)
    with np.errstate(over="ignore", invalid="ignore"):
        allowed = FEASIBILITY_TOLERANCE * (finite + np.abs(amounts))
        good = np.logical_and.reduceat((amounts >= -allowed) & (amounts <= cap + allowed), first)
        if spec.bias is Bias.EXACT:
            total = np.add.reduceat(problems.signs * amounts, first)
            good &= np.abs(total) <= SUMS_TOLERANCE * np.add.reduceat(np.abs(amounts), first)
        mass = np.add.reduceat(np.abs(amounts) * sizes, first)
        level = 1.0 + (np.abs(solutions.biases) if spec.bias is Bias.EXACT else np.zeros(len(solutions)))
        each = EPSILON * (sizes * np.repeat(mass, problems.sizes) + np.repeat(level, problems.sizes))
        charge = np.maximum(finite - amounts, 0.0) if spec.loss is Loss.HINGE else finite * each
        charged = np.add.reduceat(np.where(amounts > 0, charge, 0.0) * each, first)
        score, violation = 2.0 * ROOM_FOR_VERIFY * np.maximum.reduceat(each, first), found["violation"]
        good &= (score <= spec.tol) & ~((violation <= spec.tol) & (violation + score > spec.tol))
        good &= np.isfinite(found["dual"]) & ~np.isnan(found["violation"])
        if convex:
            good &= np.isfinite(found["primal"]) & (
                (room < 0.0) | (ROOM_FOR_VERIFY * (EPSILON * mass**2 + charged) <= room)
            )
        return np.asarray(good & ~np.isinf(np.maximum.reduceat(C, first)))
