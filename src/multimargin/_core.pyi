"""The C++ core. Arrays are C-contiguous and never converted silently."""

from collections.abc import Callable
from enum import Enum
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from multimargin._core_shards import (
    BinaryBlockSolver as BinaryBlockSolver,
)
from multimargin._core_shards import (
    BinaryShard as BinaryShard,
)
from multimargin._core_shards import (
    BlockResult as BlockResult,
)
from multimargin._core_shards import (
    BlockSolver as BlockSolver,
)
from multimargin._core_shards import (
    ScoreShard as ScoreShard,
)

_Floats = NDArray[np.float64]
_Ints = NDArray[np.int64]

__version__: str

def simd_targets() -> list[str]: ...
def allowed_threads() -> int: ...
def forms() -> list[str]: ...
def transforms() -> list[str]: ...

class Kernel:
    def __init__(
        self, form: str, transform: str, *, scale: float = 1.0, shift: float = 0.0, offset: float = 0.0, degree: int = 0
    ) -> None: ...

class SparseData:
    def __init__(
        self,
        values: NDArray[np.float32] | _Floats,
        indices: NDArray[np.int32] | _Ints,
        starts: NDArray[np.int32] | _Ints,
        width: int,
    ) -> None: ...

class Store:
    @overload
    def __init__(self, data: NDArray[np.float32] | _Floats | SparseData, kernel: Kernel) -> None: ...
    @overload
    def __init__(self, gram: NDArray[np.float32] | _Floats, offset: float, squarings: int = 0) -> None: ...
    def block_f32(self, rows: _Ints, columns: _Ints) -> NDArray[np.float32]: ...
    def block_f64(self, rows: _Ints, columns: _Ints) -> _Floats: ...
    def diagonal(self) -> _Floats: ...
    def scores(
        self, rows: _Ints, beta: _Floats, points: NDArray[np.float32] | _Floats | SparseData, n_threads: int
    ) -> _Floats: ...
    def fill_into(self, out: _Floats, n_threads: int) -> None: ...
    def scores_within(self, rows: _Ints, beta: _Floats, columns: _Ints, n_threads: int) -> _Floats: ...

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
    bound: Bound, sum_to_zero: bool, structured: bool, table: _Floats, n_components: _Ints, sigma: _Floats
) -> Machine: ...

class Options:
    solver: SolverKind
    precision: Precision
    tol: float
    max_iter: int
    max_time: float
    max_work: float
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
    amounts: _Floats
    scores: _Floats
    report: Report
    error: BaseException | None

def solve(
    store: Store,
    machine: Machine,
    loss: Loss,
    rows: _Ints,
    y: _Ints,
    C: _Floats,
    options: Options,
    start: _Floats | None,
    start_scores: _Floats | None,
    watch: Callable[[Progress, Callable[[], _Floats]], bool] | None,
) -> Result: ...
def violations(bound: Bound, gradient: _Floats, amounts: _Floats, cap: _Floats, n_components: _Ints) -> _Floats: ...
def example_step(
    bound: Bound,
    gradient: list[float],
    a: list[float],
    private_square: list[float],
    weight: list[float],
    scalars: list[float],
) -> list[float]: ...
def pair_step(numbers: list[float]) -> list[float]: ...

TWO_LEVEL_RULES: dict[str, float]
BINARY_BLOCK_RULES: dict[str, Any]

def random_permutation(n: int) -> _Ints: ...

class BinaryStatement:
    def __init__(self, rows: _Ints, n_positive: int, C: _Floats, start: _Floats | None) -> None: ...

class FlatResult:
    amounts: _Floats
    table: _Floats
    traces: list[dict[str, Any]]
    error: BaseException | None

def report_columns() -> list[str]: ...

class PathResult:
    amounts: _Floats
    bias: _Floats
    iterations: _Ints
    seconds: _Floats
    violation: _Floats
    n_support: _Ints
    converged: _Ints

class BatchResult:
    results: list[Any]
    stop_reason: StopReason
    error: BaseException | None

def solve_binary(
    store: Store,
    problems: tuple[_Ints, _Ints, _Ints, _Floats, _Floats | None],
    loss: Loss,
    options: Options,
    watch: Callable[[Progress, Callable[[], _Floats]], bool] | None,
) -> FlatResult: ...
def solve_binary_general(
    store: Store,
    problem: tuple[_Ints, int, _Floats, _Floats],
    total: float,
    options: Options,
    watch: Callable[[Progress, Callable[[], _Floats]], bool] | None,
) -> tuple[_Floats, Report, float, BaseException | None]: ...

class PathPool:
    def __init__(self) -> None: ...

def solve_binary_paths(
    store: Store,
    statements: list[BinaryStatement],
    Cs: _Floats,
    loss: Loss,
    options: Options,
    pool: PathPool,
    watch: Callable[[Progress, Callable[[], int]], bool] | None,
) -> BatchResult: ...
def sum_paths(
    store: Store, shares: list[tuple[_Ints, _Ints, list[tuple[_Floats, int, float]]]], n_threads: int
) -> list[tuple[_Floats, _Ints]]: ...
def vote_paths(sums: list[_Floats], biases: _Floats, n_threads: int) -> _Ints: ...

class PairPredictor:
    def __init__(self, store: Store, n_support: _Ints, dual_coef: _Floats, intercept: _Floats) -> None: ...
    def scores(self, points: NDArray[np.float32] | _Floats | SparseData, n_threads: int) -> _Floats: ...
    def classes(self, points: NDArray[np.float32] | _Floats | SparseData, dag: bool, n_threads: int) -> _Ints: ...

class LinearData:
    def __init__(self, data: NDArray[np.float32] | _Floats | SparseData) -> None: ...

class LinearStatement:
    def __init__(self, machine: Machine, loss: Loss, rows: _Ints, y: _Ints, C: _Floats, offset: float) -> None: ...

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
    def __init__(self, bias: float, weights: _Floats | None, width: float) -> None: ...

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
    amounts: _Floats
    weights: _Floats
    report: LinearReport
    error: BaseException | None

class LinearBinaryResult:
    amounts: _Floats
    weights: _Floats
    report: LinearReport

class LinearBatchResult:
    results: list[LinearBinaryResult]
    stop_reason: StopReason
    error: BaseException | None

class ProximalPasses:
    def __init__(
        self, entries: _Floats, counts: _Ints, n_columns: int, kind: tuple[Bound, bool, Loss], y: _Ints, C: _Floats
    ) -> None: ...
    def step(self, scores: _Floats, start: _Floats, sigma: float, n_threads: int) -> tuple[_Floats, _Floats, float]: ...
    def length(
        self, line: tuple[_Floats, _Floats, _Floats], sigma: float, linear: float, square: float, n_threads: int
    ) -> float: ...
    def matrix(
        self, data: LinearData, constant: float, point: _Floats, sigma: float, out: _Floats, n_threads: int
    ) -> None: ...

def solve_linear(
    data: LinearData,
    statement: LinearStatement,
    options: LinearOptions,
    start: _Floats | None,
    watch: Callable[[Progress, Callable[[], _Floats]], bool] | None,
) -> LinearResult: ...
def solve_linear_binary(
    data: LinearData,
    statements: list[BinaryStatement],
    setting: LinearSetting,
    options: LinearOptions,
    watch: Callable[[Progress, Callable[[], list[_Floats | None]]], bool] | None,
) -> LinearBatchResult: ...
def solve_newton_binary(
    data: LinearData,
    statements: list[BinaryStatement],
    starts: list[NewtonStart],
    setting: LinearSetting,
    options: LinearOptions,
    watch: Callable[[Progress, Callable[[], list[_Floats | None]]], bool] | None,
) -> LinearBatchResult: ...
def weighted_gram(data: LinearData, rows: _Ints, weights: _Floats, out: _Floats, n_threads: int) -> None: ...

class TextFault(Enum):
    none = ...
    label = ...
    pair = ...
    index = ...
    order = ...
    value = ...

def read_rows(text: bytes, first_index: int) -> tuple[_Floats, _Floats, _Ints, _Ints, TextFault, int, bytes]: ...

class OnlineOptions:
    def __init__(
        self,
        selection: str,
        reprocess: int,
        budget: int,
        exact_bias: bool,
        tol: float,
        cache_bytes: float,
    ) -> None: ...

class OnlineLearner:
    is_broken: bool
    n_kept: int
    n_slots: int
    n_steps: int
    n_support: int
    def add(
        self, X: _Floats, labels: _Ints, caps: _Floats, ids: _Ints, predicted: _Ints, n_threads: int = 1
    ) -> BaseException | None: ...
    def forget(self, number: int) -> bool: ...
    def improve(self, n_rounds: int, n_threads: int = 1) -> bool: ...
    def dual(self) -> float: ...
    def violation(self) -> float: ...

class OnlineBinaries(OnlineLearner):
    def __init__(self, kernel: Kernel, *given: Any, **named: Any) -> None: ...
    def state(self) -> dict[str, Any]: ...
    def biases(self) -> _Floats: ...

class OnlineMachine(OnlineLearner):
    def __init__(self, kernel: Kernel, *given: Any, **named: Any) -> None: ...
    def state(self) -> dict[str, Any]: ...
