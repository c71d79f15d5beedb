"""The C++ core. Arrays are C-contiguous and never converted silently."""

from collections.abc import Callable
from enum import Enum
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

__version__: str

def simd_targets() -> list[str]: ...
def allowed_threads() -> int: ...

class KernelKind(Enum):
    linear = ...
    rbf = ...
    poly = ...
    sigmoid = ...
    laplacian = ...

class Kernel:
    kind: KernelKind
    gamma: float
    coef0: float
    degree: int
    offset: float
    def __init__(self) -> None: ...

class SparseData:
    def __init__(
        self,
        values: NDArray[np.float32] | NDArray[np.float64],
        indices: NDArray[np.int32] | NDArray[np.int64],
        starts: NDArray[np.int32] | NDArray[np.int64],
        width: int,
    ) -> None: ...

class Store:
    @overload
    def __init__(self, data: NDArray[np.float32] | NDArray[np.float64] | SparseData, kernel: Kernel) -> None: ...
    @overload
    def __init__(self, gram: NDArray[np.float32] | NDArray[np.float64], offset: float) -> None: ...
    def block_f32(self, rows: NDArray[np.int64], columns: NDArray[np.int64]) -> NDArray[np.float32]: ...
    def block_f64(self, rows: NDArray[np.int64], columns: NDArray[np.int64]) -> NDArray[np.float64]: ...
    def diagonal(self) -> NDArray[np.float64]: ...
    def scores(
        self,
        rows: NDArray[np.int64],
        beta: NDArray[np.float64],
        points: NDArray[np.float32] | NDArray[np.float64] | SparseData,
        n_threads: int,
    ) -> NDArray[np.float64]: ...
    def scores_within(
        self,
        rows: NDArray[np.int64],
        beta: NDArray[np.float64],
        columns: NDArray[np.int64],
        n_threads: int,
    ) -> NDArray[np.float64]: ...

class CachedRows:
    capacity: int
    rows_computed: int
    hits: int
    def __init__(self, store: Store, budget_bytes: int) -> None: ...
    def row(self, i: int) -> NDArray[np.float32]: ...

class Bound(Enum):
    box = ...
    simplex = ...

class Loss(Enum):
    hinge = ...
    squared_hinge = ...

class SolverKind(Enum):
    smo = ...
    s2do = ...
    whole_example = ...
    semi_greedy = ...
    two_level = ...
    working_set = ...
    most_violating_pair = ...
    maximum_gain = ...

class Precision(Enum):
    automatic = ...
    float32 = ...
    float64 = ...

class StopReason(Enum):
    converged = ...
    max_iter = ...
    max_time = ...
    stalled = ...
    interrupted = ...
    callback = ...
    unfinished = ...

class Machine: ...

def make_machine(
    bound: Bound,
    sum_to_zero: bool,
    structured: bool,
    table: NDArray[np.float64],
    n_components: NDArray[np.int64],
    sigma: NDArray[np.float64],
) -> Machine: ...

class Options:
    solver: SolverKind
    precision: Precision
    tol: float
    max_iter: int
    max_time: float
    shrink_variables: bool
    shrink_examples: bool
    cache_bytes: float
    n_threads: int
    extra_tol: float
    extra_steps: int
    trace: bool
    trace_primal: bool
    working_set_size: int
    def __init__(self) -> None: ...

class Progress:
    iteration: int
    seconds: float
    violation: float
    dual: float
    primal: float
    n_active: int
    n_support: int
    kernel_rows: int
    cache_hits: int

class Report:
    stop_reason: StopReason
    iterations: int
    seconds: float
    violation: float
    dual: float
    primal: float
    n_support: int
    kernel_rows: int
    cache_hits: int
    verified: bool
    float64_rows: bool
    phases: dict[str, float]
    trace: dict[str, NDArray[Any]]

class Result:
    amounts: NDArray[np.float64]
    scores: NDArray[np.float64]
    report: Report
    error: BaseException | None

def solve(
    store: Store,
    machine: Machine,
    loss: Loss,
    rows: NDArray[np.int64],
    y: NDArray[np.int64],
    C: NDArray[np.float64],
    options: Options,
    start: NDArray[np.float64] | None,
    start_scores: NDArray[np.float64] | None,
    watch: Callable[[Progress, Callable[[], NDArray[np.float64]]], bool] | None,
) -> Result: ...
def violations(
    bound: Bound,
    gradient: NDArray[np.float64],
    amounts: NDArray[np.float64],
    cap: NDArray[np.float64],
    n_components: NDArray[np.int64],
) -> NDArray[np.float64]: ...
def example_step(
    bound: Bound,
    gradient: list[float],
    a: list[float],
    private_square: list[float],
    weight: list[float],
    scalars: list[float],
) -> list[float]: ...
def pair_step(numbers: list[float]) -> list[float]: ...

class BinaryStatement:
    def __init__(
        self,
        rows: NDArray[np.int64],
        n_positive: int,
        C: NDArray[np.float64],
        start: NDArray[np.float64] | None,
    ) -> None: ...

class BinaryReport(Report):
    bias: float

class BinaryResult:
    amounts: NDArray[np.float64]
    report: BinaryReport

class PathResult:
    amounts: NDArray[np.float64]
    bias: NDArray[np.float64]
    iterations: NDArray[np.int64]
    seconds: NDArray[np.float64]
    violation: NDArray[np.float64]
    n_support: NDArray[np.int64]
    converged: NDArray[np.int64]

class BatchResult:
    results: list[Any]
    stop_reason: StopReason
    error: BaseException | None

def solve_binary(
    store: Store,
    statements: list[BinaryStatement],
    loss: Loss,
    options: Options,
    watch: Callable[[Progress, Callable[[], list[NDArray[np.float64] | None]]], bool] | None,
) -> BatchResult: ...
def solve_binary_paths(
    store: Store,
    statements: list[BinaryStatement],
    Cs: NDArray[np.float64],
    loss: Loss,
    options: Options,
    watch: Callable[[Progress, Callable[[], int]], bool] | None,
) -> BatchResult: ...

class PairPredictor:
    def __init__(
        self,
        store: Store,
        n_support: NDArray[np.int64],
        dual_coef: NDArray[np.float64],
        intercept: NDArray[np.float64],
    ) -> None: ...
    def scores(
        self, points: NDArray[np.float32] | NDArray[np.float64] | SparseData, n_threads: int
    ) -> NDArray[np.float64]: ...
    def classes(
        self, points: NDArray[np.float32] | NDArray[np.float64] | SparseData, dag: bool, n_threads: int
    ) -> NDArray[np.int64]: ...

class LinearData:
    def __init__(self, data: NDArray[np.float32] | NDArray[np.float64] | SparseData) -> None: ...

class LinearStatement:
    def __init__(
        self,
        machine: Machine,
        loss: Loss,
        rows: NDArray[np.int64],
        y: NDArray[np.int64],
        C: NDArray[np.float64],
        offset: float,
    ) -> None: ...

class LinearOptions:
    tol: float
    max_iter: int
    max_passes: int
    max_time: float
    max_cost: float
    shrinking: bool
    n_threads: int
    seed: int
    def __init__(self) -> None: ...

class LinearSetting:
    def __init__(self, loss: Loss, offset: float, exact_bias: bool) -> None: ...

class NewtonStart:
    def __init__(self, bias: float, weights: NDArray[np.float64] | None, width: float) -> None: ...

class LinearReport:
    stop_reason: StopReason
    iterations: int
    passes: int
    seconds: float
    violation: float
    dual: float
    cost: float
    width: float
    n_support: int
    verified: bool

class LinearResult:
    amounts: NDArray[np.float64]
    weights: NDArray[np.float64]
    report: LinearReport
    error: BaseException | None

class LinearBinaryResult:
    amounts: NDArray[np.float64]
    weights: NDArray[np.float64]
    report: LinearReport

class LinearBatchResult:
    results: list[LinearBinaryResult]
    stop_reason: StopReason
    error: BaseException | None

class ProximalPasses:
    def __init__(
        self,
        entries: NDArray[np.float64],
        counts: NDArray[np.int64],
        n_columns: int,
        kind: tuple[Bound, bool, Loss],
        y: NDArray[np.int64],
        C: NDArray[np.float64],
    ) -> None: ...
    def step(
        self, scores: NDArray[np.float64], start: NDArray[np.float64], sigma: float, n_threads: int
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], float]: ...
    def length(
        self,
        line: tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]],
        sigma: float,
        linear: float,
        square: float,
        n_threads: int,
    ) -> float: ...
    def matrix(
        self,
        data: LinearData,
        constant: float,
        point: NDArray[np.float64],
        sigma: float,
        out: NDArray[np.float64],
        n_threads: int,
    ) -> None: ...

def solve_linear(
    data: LinearData,
    statement: LinearStatement,
    options: LinearOptions,
    start: NDArray[np.float64] | None,
    watch: Callable[[Progress, Callable[[], NDArray[np.float64]]], bool] | None,
) -> LinearResult: ...
def solve_linear_binary(
    data: LinearData,
    statements: list[BinaryStatement],
    setting: LinearSetting,
    options: LinearOptions,
    watch: Callable[[Progress, Callable[[], list[NDArray[np.float64] | None]]], bool] | None,
) -> LinearBatchResult: ...
def solve_newton_binary(
    data: LinearData,
    statements: list[BinaryStatement],
    starts: list[NewtonStart],
    setting: LinearSetting,
    options: LinearOptions,
    watch: Callable[[Progress, Callable[[], list[NDArray[np.float64] | None]]], bool] | None,
) -> LinearBatchResult: ...
def weighted_gram(
    data: LinearData,
    rows: NDArray[np.int64],
    weights: NDArray[np.float64],
    out: NDArray[np.float64],
    n_threads: int,
) -> None: ...
