from numpy import float32, float64, int32, int64, uint8
from numpy.typing import NDArray

from beeline._types import AnyArray, Floats, Ints

def num_threads() -> int: ...
def set_num_threads(n: int) -> None: ...
def shared_jobs() -> int: ...
def keep_freed_memory(keep: bool) -> bool: ...
def blend(a: NDArray[float64], b: NDArray[float64], part: float) -> None: ...
def dot(a: NDArray[float64], b: NDArray[float64]) -> float: ...
def absolute_sum(a: NDArray[float64]) -> float: ...
def balance(a: NDArray[float64]) -> None: ...
def weighted_median(values: NDArray[float64], weights: NDArray[float64]) -> float: ...
def add_scaled(scale: float, a: NDArray[float64], out: NDArray[float64]) -> None: ...
def cg_step(
    alpha: float,
    p: NDArray[float64],
    q: NDArray[float64],
    inverse: NDArray[float64],
    s: NDArray[float64],
    r: NDArray[float64],
) -> float: ...
def combine_columns(a: NDArray[float64], x: NDArray[float64], b: NDArray[float64], y: NDArray[float64]) -> None: ...
def split_columns(x: NDArray[float64], out: NDArray[float64]) -> None: ...
def dot_columns(x: NDArray[float64], y: NDArray[float64], out: NDArray[float64]) -> None: ...
def cg_direction(beta: float, inverse: NDArray[float64], r: NDArray[float64], p: NDArray[float64]) -> None: ...
def apply_softmax_hessians(
    h: NDArray[float64], shift: NDArray[float64], u: NDArray[float64], threads: int = 0
) -> None: ...
def sum_paths(z: NDArray[float64], parents: NDArray[int64], out: NDArray[float64], threads: int = 0) -> None: ...
def sum_subtrees(
    a: NDArray[float64], parents: NDArray[int64], classes: int, out: NDArray[float64], threads: int = 0
) -> None: ...
def factor_positive(a: NDArray[float64]) -> bool: ...
def solve_factored(factors: NDArray[float64], b: NDArray[float64]) -> None: ...
def solve_positive(a: NDArray[float64], b: NDArray[float64]) -> bool: ...
def small_newton(
    rows: RowArrays,
    y: NDArray[float64],
    costs: NDArray[float64],
    loss: str,
    parameters: tuple[float, float],
    penalty: tuple[float, float, int],
    intercept: str,
    theta: NDArray[float64],
    tol: float,
    most: int,
) -> int: ...
def loss_sum(
    name: str,
    parameters: tuple[float, float],
    z: NDArray[float64],
    y: NDArray[float64],
    c: NDArray[float64],
    slopes: NDArray[float64] | None,
    curvatures: NDArray[float64] | None,
    threads: int = 0,
) -> float: ...
def query_losses(
    name: str,
    z: NDArray[float64],
    y: NDArray[float64],
    weights: NDArray[float64],
    starts: NDArray[int64],
    discounts: NDArray[float64],
    values: NDArray[float64],
    slopes: NDArray[float64],
    threads: int = 0,
) -> None: ...
def level_pairs(
    z: NDArray[float64],
    y: NDArray[float64],
    c: NDArray[float64],
    costs: NDArray[float64],
    slopes: NDArray[float64],
    threads: int = 0,
) -> tuple[float, float]: ...
def level_thresholds(
    z: NDArray[float64],
    y: NDArray[float64],
    c: NDArray[float64],
    thresholds: NDArray[float64],
    all: bool,
    logistic: bool,
    slopes: NDArray[float64] | None = None,
    by_threshold: NDArray[float64] | None = None,
    curvatures: NDArray[float64] | None = None,
    threads: int = 0,
) -> float: ...
def roc_area(
    z: NDArray[float64],
    y: NDArray[float64],
    c: NDArray[float64],
    max_fpr: float,
    slopes: NDArray[float64],
    threads: int = 0,
) -> tuple[float, float]: ...
def f_beta(
    z: NDArray[float64],
    y: NDArray[float64],
    c: NDArray[float64],
    beta: float,
    slopes: NDArray[float64],
    threads: int = 0,
) -> tuple[float, float]: ...
def common_unit(c: NDArray[float64]) -> float: ...
def kink_buckets(
    name: str,
    parameters: tuple[float, float],
    z: NDArray[float64],
    dz: NDArray[float64],
    y: NDArray[float64],
    c: NDArray[float64],
    kinks: NDArray[float64],
    between: tuple[float, float],
    sums: NDArray[float64],
    marks: NDArray[uint8],
) -> float: ...
def loss_interval_cut(
    name: str,
    parameters: tuple[float, float],
    z: NDArray[float64],
    dz: NDArray[float64],
    t: tuple[float, float, float],
    y: NDArray[float64],
    c: NDArray[float64],
    threads: int = 0,
) -> tuple[float, float, float, float]: ...
def loss_along(
    name: str,
    parameters: tuple[float, float],
    z: NDArray[float64],
    dz: NDArray[float64],
    t: float,
    y: NDArray[float64],
    c: NDArray[float64],
    threads: int = 0,
) -> tuple[float, float]: ...
def conjugate_sum(
    name: str,
    parameters: tuple[float, float],
    a: NDArray[float64],
    scale: float,
    y: NDArray[float64],
    c: NDArray[float64],
    threads: int = 0,
) -> float: ...

class RowArrays:
    def __init__(
        self, values: AnyArray, indptr: AnyArray | None, indices: AnyArray | None, n_features: int
    ) -> None: ...
    def scores(self, w: NDArray[float64], out: NDArray[float64], threads: int = 0) -> None: ...
    def transposed(self, u: NDArray[float64], out: NDArray[float64], threads: int = 0) -> None: ...
    def gram_matvec(
        self, h: NDArray[float64], v: NDArray[float64], shift: float, out: NDArray[float64], threads: int = 0
    ) -> float: ...
    def softmax_gram_matvec(
        self,
        h: NDArray[float64],
        v: NDArray[float64],
        shift: NDArray[float64],
        out: NDArray[float64],
        threads: int = 0,
    ) -> None: ...
    def batched_matvec(
        self, w: NDArray[float64], shift: NDArray[float64], out: NDArray[float64], threads: int = 0
    ) -> None: ...
    def batched_rmatvec(self, u: list[NDArray[float64]], out: NDArray[float64], threads: int = 0) -> None: ...
    def batched_gram_matvec(
        self,
        h: list[NDArray[float64]],
        v: NDArray[float64],
        shift: NDArray[float64],
        out: NDArray[float64],
        threads: int = 0,
    ) -> None: ...
    def gram_diagonal(self, h: NDArray[float64], out: NDArray[float64], threads: int = 0) -> None: ...
    def gram(self, h: NDArray[float64], out: NDArray[float64], threads: int = 0) -> None: ...
    def squared_norms(self, out: NDArray[float64], threads: int = 0) -> None: ...
    def longest_row(self, threads: int = 0) -> float: ...
    def centre(
        self, mean: NDArray[float64], norms: NDArray[float64], means: NDArray[float64], threads: int = 0
    ) -> float: ...
    def gather(
        self,
        picked: NDArray[int64],
        out_indptr: NDArray[int64] | None,
        out_indices: AnyArray | None,
        out_values: AnyArray,
        threads: int = 0,
    ) -> None: ...

def value_range(values: AnyArray, threads: int = 0) -> tuple[float, float]: ...
def first_flaw(rows: RowArrays, finite: bool, order: int, threads: int = 0) -> tuple[int, int]: ...
def add_statistics(
    rows: RowArrays,
    count: NDArray[int64],
    mean: NDArray[float64],
    spread: NDArray[float64],
    low: NDArray[float64],
    high: NDArray[float64],
    threads: int = 0,
) -> None: ...
def scale_features(
    rows: RowArrays,
    shift: NDArray[float64] | None,
    factor: NDArray[float64],
    out: AnyArray,
    threads: int = 0,
) -> None: ...
def scale_to_unit_norm(rows: RowArrays, out: AnyArray, threads: int = 0) -> None: ...
def pack_rows(
    rows: RowArrays,
    picked: NDArray[int64],
    out_indptr: NDArray[int64] | None,
    out_indices: AnyArray | None,
    out_values: AnyArray,
    threads: int = 0,
) -> tuple[bool, bool]: ...

class ClassSweeps:
    def __init__(
        self,
        rows: RowArrays,
        order: NDArray[int64],
        copied: bool,
        y: NDArray[int64],
        costs: NDArray[float64],
        n_classes: int,
        seed: int,
    ) -> None: ...
    def set_margins(self, margins: NDArray[float64]) -> None: ...
    def set_hinges(self, costs: NDArray[float64]) -> None: ...
    def measure(
        self, norms: NDArray[float64], means: NDArray[float64], inverse_strength: float, rho: float, mean_norm: float
    ) -> None: ...
    def sweep(self) -> tuple[float, float, float, float]: ...
    def recentre(self) -> None: ...
    def set_centre(self, b: NDArray[float64]) -> None: ...
    def update_active_set(self, z: NDArray[float64]) -> None: ...
    def start(self, z: NDArray[float64], width: float) -> None: ...
    def flows(self, out: NDArray[float64]) -> None: ...
    def reduce(self, factors: NDArray[float64]) -> None: ...
    def refresh(self) -> None: ...
    def product(
        self, rows: RowArrays, factors: NDArray[float64], out: NDArray[float64], totals: NDArray[float64]
    ) -> float: ...
    def lagrangian(self, z: NDArray[float64]) -> float: ...
    def average_weights(self, share: float, out: NDArray[float64]) -> None: ...
    def copy_intercepts(self, out: NDArray[float64]) -> None: ...
    def copy_totals(self, out: NDArray[float64]) -> None: ...
    def copy_means(self, out: NDArray[float64]) -> None: ...
    def copy_dual(self, out: NDArray[float64]) -> None: ...
    def copy_active(self, out: NDArray[uint8]) -> None: ...
    def take(
        self, a: NDArray[float64], weights: NDArray[float64], totals: NDArray[float64], means: NDArray[float64]
    ) -> None: ...
    @property
    def active(self) -> int: ...
    @property
    def size(self) -> int: ...

class RoughClassSweeps(ClassSweeps): ...

class PegasosSteps:
    def __init__(
        self,
        v: NDArray[float64],
        intercept: bool,
        loss: str,
        parameters: tuple[float, float],
        strength: float,
        batch: int,
        projects: bool,
        t: float,
    ) -> None: ...
    def learn(
        self, rows: RowArrays, order: NDArray[int64], y: NDArray[float64], costs: NDArray[float64]
    ) -> tuple[float, float, float]: ...
    def copy_weights(self, out: NDArray[float64]) -> None: ...
    def progress(self) -> tuple[float, float, float]: ...
    def resume(self, progress: tuple[float, float, float]) -> None: ...
    @property
    def steps(self) -> float: ...

class AveragedSteps:
    def __init__(
        self,
        w: NDArray[float64],
        f: NDArray[float64],
        last: NDArray[float64],
        sizes: NDArray[float64],
        means: NDArray[float64],
        intercept: str,
        loss: str,
        parameters: tuple[float, float],
        settings: tuple[float, float, float, float, float],
        skip: int,
    ) -> None: ...
    def learn(
        self, rows: RowArrays, order: NDArray[int64], y: NDArray[float64], costs: NDArray[float64]
    ) -> tuple[float, float, float]: ...
    def copy_weights(self, out: NDArray[float64]) -> None: ...
    def progress(self) -> tuple[float, ...]: ...
    def resume(self, progress: tuple[float, ...]) -> None: ...
    def begin_at(self, t: float) -> None: ...
    @property
    def steps(self) -> float: ...

class ClassSteps:
    def __init__(
        self,
        weights: NDArray[float32],
        columns: NDArray[float64],
        means: NDArray[float64],
        n_outputs: int,
        intercept: str,
        loss: str,
        parameters: tuple[float, float],
        settings: tuple[float, float, float, float, float],
        stride: int,
        skip: int,
    ) -> None: ...
    def learn(
        self, rows: RowArrays, order: NDArray[int64], y: NDArray[float64], costs: NDArray[float64]
    ) -> tuple[float, float, float]: ...
    def copy_weights(self, out: NDArray[float64]) -> None: ...
    def progress(self) -> tuple[float, ...]: ...
    def resume(self, progress: tuple[float, ...]) -> None: ...
    def begin_at(self, t: float) -> None: ...
    @property
    def steps(self) -> float: ...

class McidSteps:
    def __init__(
        self,
        v: NDArray[float64],
        balls: NDArray[float64],
        intercept: bool,
        loss: str,
        parameters: tuple[float, float],
        strength: float,
        batch: int,
        projects: bool,
        t: float,
    ) -> None: ...
    def learn(
        self, rows: RowArrays, order: NDArray[int64], y: NDArray[float64], costs: NDArray[float64]
    ) -> tuple[float, float, float]: ...
    def copy_weights(self, out: NDArray[float64]) -> None: ...
    @property
    def steps(self) -> float: ...

class DualSweeps:
    def __init__(
        self,
        rows: RowArrays,
        order: NDArray[int64],
        copied: bool,
        y: NDArray[float64],
        costs: NDArray[float64],
        start: NDArray[float64],
        w: NDArray[float64],
        loss: str,
        parameters: tuple[float, float],
        seed: int,
    ) -> None: ...
    def measure(
        self, norms: NDArray[float64], means: NDArray[float64], inverse_strength: float, rho: float, mean_norm: float
    ) -> None: ...
    def set_sums(self, total: float, means: float) -> None: ...
    def sweep(self) -> tuple[float, float, int]: ...
    def run(
        self, w: NDArray[float64], mean: NDArray[float64], free: bool, tol: float, most: int
    ) -> tuple[int, int, float]: ...
    def recentre(self) -> None: ...
    def update_active_set(self, z: NDArray[float64]) -> None: ...
    def conjugate(self) -> float: ...
    def weighted_norm(self) -> float: ...
    def copy_dual(self, out: NDArray[float64]) -> None: ...
    def copy_active(self, out: NDArray[uint8]) -> None: ...
    def copy_order(self, out: NDArray[int64]) -> None: ...
    def progress(self) -> tuple[int, int, float, float, float, float, float]: ...
    def resume(self, order: NDArray[int64], progress: tuple[int, int, float, float, float, float, float]) -> None: ...
    def set_centre(self, b: float) -> None: ...
    @property
    def intercept(self) -> float: ...
    @property
    def total(self) -> float: ...
    @property
    def means(self) -> float: ...
    @property
    def active(self) -> int: ...
    @property
    def size(self) -> int: ...

class ArrowBatch:
    """The columns of a record batch; takes over the capsules of its `__arrow_c_array__`."""

    def __init__(self, schema: object, array: object, lookups: list[NDArray[int32] | None]) -> None: ...
    @property
    def n_rows(self) -> int: ...

class AssemblyPlan:
    """(first feature, width, is categories, fill value) of each column."""

    def __init__(self, columns: list[tuple[int, int, bool, float | None]], n_features: int, finite: bool) -> None: ...

# (flaw, its row, its column, missing values per number, unknown categories per column)
_Findings = tuple[int, int, int, list[int], list[int]]

def assemble_dense(batches: list[ArrowBatch], plan: AssemblyPlan, out: AnyArray, threads: int = 0) -> _Findings: ...
def count_entries(
    batches: list[ArrowBatch], plan: AssemblyPlan, counts: NDArray[int64], single: bool, threads: int = 0
) -> _Findings: ...
def assemble_sparse(
    batches: list[ArrowBatch],
    plan: AssemblyPlan,
    indptr: NDArray[int64],
    indices: NDArray[int32],
    out: AnyArray,
    threads: int = 0,
) -> None: ...
def last_record_end(text: bytes, delimiter: str) -> tuple[int, bool, int]: ...
def record_starts(text: bytes, delimiter: str) -> tuple[list[int], list[int]]: ...

LIBSVM_MOST_INDEX: int

def limit_libsvm_instructions(most: int) -> None: ...

class LibsvmDialect:
    base: int
    base_guessed: bool
    sets: bool
    sets_guessed: bool
    last_index: int
    queries: int
    allow_nonfinite: bool
    skip_bad_lines: bool
    index_bits: int
    single_precision: bool
    faithful: bool

class LibsvmOutcome:
    @property
    def end(self) -> int: ...
    @property
    def full(self) -> bool: ...
    @property
    def wanted(self) -> tuple[int, int, int]: ...
    @property
    def n_skipped(self) -> int: ...
    @property
    def problem(self) -> tuple[int, int, int, bytes] | None: ...
    @property
    def skipped(self) -> list[tuple[int, int, int, bytes]]: ...

class LibsvmParser:
    line: int
    def __init__(self, dialect: LibsvmDialect, chunk_bytes: int) -> None: ...
    def reserve(self, rows: int, entries: int, labels: int, budget: int = 0) -> None: ...
    def parse_file(self, descriptor: int, begin: int, end: int, size: int, threads: int = 0) -> LibsvmOutcome: ...
    def parse_bytes(self, text: bytes, begin: int, end: int, threads: int = 0) -> LibsvmOutcome: ...
    def take(self) -> tuple[AnyArray, AnyArray, Ints, Floats, Ints | None, Ints | None]: ...
    def cost(self, rows: int, entries: int, labels: int) -> int: ...
    @property
    def used(self) -> tuple[int, int, int]: ...
    @property
    def last_index(self) -> int: ...
    @property
    def several(self) -> bool: ...

def count_kept(rows: RowArrays, place: NDArray[int32], out: NDArray[int64], threads: int = 0) -> None: ...
def keep_features(
    rows: RowArrays,
    place: NDArray[int32],
    kept: int,
    indptr: NDArray[int64] | None,
    indices: NDArray[int32] | None,
    values: AnyArray,
    threads: int = 0,
) -> None: ...

class Columns:
    def __init__(self, rows: RowArrays) -> None: ...
    def descend(
        self,
        slopes: NDArray[float64],
        curvatures: NDArray[float64],
        w: NDArray[float64],
        penalty: tuple[float, float, int],
        tol: float,
        accuracy: float,
        most: int,
        free_intercept: bool,
    ) -> tuple[float, float, float, float]: ...

def complete_gram(gram: NDArray[float64], edge: NDArray[float64] | None, corner: float) -> None: ...
def descend_gram(
    gram: NDArray[float64],
    slopes: NDArray[float64],
    w: NDArray[float64],
    penalty: tuple[float, float, int],
    tol: float,
    accuracy: float,
    most: int,
) -> tuple[float, float, float]: ...
def order_rows(
    rows: RowArrays, order: Ints, groups: list[int], leaf: int, seed: int, threads: int = 0
) -> list[int]: ...
def grow_pivot_trees(
    rows: RowArrays,
    order: Ints,
    ends: list[int],
    numbers: list[int],
    width: int,
    leaf: int,
    seed: int,
    threads: int = 0,
) -> dict[str, AnyArray]: ...
def count_box_features(rows: RowArrays, ends: Ints, out: Ints, threads: int = 0) -> None: ...
def make_boxes(
    rows: RowArrays,
    ends: Ints,
    indptr: Ints,
    indices: AnyArray,
    low: AnyArray,
    high: AnyArray,
    radii: AnyArray,
    threads: int = 0,
) -> None: ...
def box_bounds(
    indptr: Ints,
    indices: AnyArray,
    low: AnyArray,
    high: AnyArray,
    radii: AnyArray,
    leaves: Ints | None,
    w: Floats,
    out_low: Floats,
    out_high: Floats,
    threads: int = 0,
) -> None: ...
