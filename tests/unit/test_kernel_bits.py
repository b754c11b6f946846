"""Every kernel that shares its work out to threads gives the same bits for any number of them.

Each has an entry here: a kernel without one fails the last test.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse

from beeline import Block
from beeline.data.recipe.scaling import Scaling, ScalingLearner
from beeline.data.tables.assembly import Column, RowAssembler, RowsBuilder
from beeline.data.tables.batches import Piece
from beeline.kernels import RowArrays, _kernels

N, D, K = 40_000, 24, 3
M = 6_000  # rows: for several parts each, but not for the 16 at which sums of features end, where no cut would show
RNG = np.random.default_rng(3)
# Of very different sizes: sums in another order then have other bits.
SCALES = 10.0 ** RNG.uniform(-6, 6, size=N)
X = RNG.normal(size=(M, D)) * SCALES[:M, None]
THIN = scipy.sparse.csr_array(X * (RNG.random((M, D)) < 0.6))
LAYOUTS = {"dense": Block(X, D), "sparse": Block(THIN.data, D, THIN.indptr, THIN.indices)}
LABELS = {1: np.where(RNG.random(N) < 0.5, 1.0, -1.0), K: RNG.integers(0, K, N).astype(float)}
PARENTS = np.array([4, 3, -1, -1, 3])  # of three classes and two nodes above them
LOSS = {1: "squared_hinge", K: "softmax"}
NONE = (0.0, 0.0)
TABLE = pa.record_batch(
    {"a": RNG.integers(0, 2, 30_000), "b": RNG.normal(size=30_000), "c": RNG.choice(["x", "y", "z"], 30_000)}
)


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(4).normal(size=shape)


def positive(*shape: int) -> np.ndarray:
    return np.random.default_rng(5).random(size=shape)


def positive_matrix(n: int) -> np.ndarray:
    a = numbers(n, n + 3)
    return a @ a.T + np.eye(n)


def written(call, *outputs):
    """What a kernel returns, and what it wrote to arrays of which it gets copies."""
    outputs = [np.array(output) for output in outputs]
    return [call(*outputs), *outputs]


def columns_of(count: int) -> list[np.ndarray]:
    return [numbers(M) * (k + 1) for k in range(count)]


def arrays_of(block: Block) -> RowArrays:
    return RowArrays(block.values, block.indptr, block.indices, block.n_features)


def flaw_of(block: Block) -> tuple[int, int]:
    """The first of many flaws, in different parts of the rows."""
    values = block.values.copy()
    values.reshape(-1)[len(values) // 3 :: 1001] = np.nan
    return _kernels.first_flaw(RowArrays(values, block.indptr, block.indices, block.n_features), True, 0)


def packed(block: Block) -> list:
    order = np.random.default_rng(7).permutation(M)
    if block.indptr is None:
        return written(lambda out: _kernels.pack_rows(arrays_of(block), order, None, None, out), np.empty((M, D)))
    indptr = np.append(0, np.cumsum(np.diff(block.indptr)[order]))
    return written(
        lambda indices, values: _kernels.pack_rows(arrays_of(block), order, indptr, indices, values),
        np.empty(block.nnz, np.uint16),
        np.empty(block.nnz, np.float32),
    )


def descended(block: Block) -> list:
    columns, weights = block.columns(), (positive(M) / SCALES[:M], positive(M) / SCALES[:M] ** 2)
    return written(lambda w: columns.descend(*weights, w, (0.1, 0.1, D // 2), 1e-6, 1e-6, 5, True), np.zeros(D))


def learned(block: Block) -> list:
    learner = ScalingLearner("standard")
    learner.add(block)
    scaling = learner.finish(D)
    return [scaling.shift, scaling.factor]


def dual(z: np.ndarray, y: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Feasible dual variables."""
    return c * y * np.abs(z) if z.ndim == 1 else 0.5 * c[:, None] * (np.eye(K)[y.astype(int)] - 1 / K)


def assembled(*, is_sparse: bool) -> np.ndarray:
    columns = [Column("a", "numeric", 0), Column("b", "numeric", 1), Column("c", "categories", 2, ("x", "y", "z"))]
    builder = RowsBuilder(RowAssembler(columns, "float64"), is_sparse=is_sparse)
    builder.add(Piece([TABLE, TABLE], "", 1))
    return builder.finish().to_dense()


# With the rows of each layout.
PRODUCTS = {
    "scores": lambda b: [b.scores(numbers(D)), b.scores(numbers(D, K))],
    "transposed": lambda b: [b.transposed(numbers(M)), b.transposed(numbers(M, K))],
    "gram_matvec": lambda b: b.gram_matvec(positive(M), numbers(D), 0.3),
    "softmax_gram_matvec": lambda b: b.softmax_gram_matvec(positive(M, K), numbers(D, K), numbers(K)),
    "batched_matvec": lambda b: b.batched_matvec(numbers(D, K), numbers(K)),
    "batched_rmatvec": lambda b: b.batched_rmatvec(columns_of(K)),
    "batched_gram_matvec": lambda b: b.batched_gram_matvec(
        [np.abs(c) for c in columns_of(K)], numbers(D, K), numbers(K)
    ),
    "gram_diagonal": lambda b: [b.gram_diagonal(positive(M)), b.gram_diagonal(positive(M, K))],
    "gram": lambda b: b.rows(0, M // 3).gram(positive(M // 3)),
    "squared_norms": lambda b: b.squared_norms(),
    "longest_row": lambda b: b.arrays.longest_row(),
    "centre": lambda b: b.centred(),
    "first_flaw": flaw_of,
    "gather": lambda b: b.gather(np.random.default_rng(6).permutation(M)).to_dense(),
    "keep_features": lambda b: b.features(np.arange(0, D, 2), constant=True).to_dense(),
    "pack_rows": packed,
    "Columns": descended,
    "add_statistics": learned,
    "scale_features": lambda b: Scaling("maxabs", None, positive(D) + 1).apply(b).values,
    "scale_to_unit_norm": lambda b: Scaling("unit-norm").apply(b).values,
}

# With vectors and matrices; `columns` is 1 or K.
LOSSES = {
    "loss_sum": lambda z, y, c, name: written(
        lambda *out: _kernels.loss_sum(name, NONE, z, y, c, *out), np.empty_like(z), np.empty_like(z)
    ),
    "loss_along": lambda z, y, c, name: _kernels.loss_along(name, NONE, z, numbers(*z.shape), 0.2, y, c),
    "conjugate_sum": lambda z, y, c, name: _kernels.conjugate_sum(name, NONE, dual(z, y, c), 1.0, y, c),
}
VECTORS = {
    "dot": lambda: _kernels.dot(SCALES, numbers(N)),
    "absolute_sum": lambda: _kernels.absolute_sum(numbers(N)),
    "balance": lambda: written(_kernels.balance, numbers(N) * SCALES),
    "value_range": lambda: _kernels.value_range(numbers(20 * N)),
    "add_scaled": lambda: written(lambda out: _kernels.add_scaled(0.3, SCALES, out), numbers(N)),
    "cg_step": lambda: written(
        lambda s, r: _kernels.cg_step(0.3, numbers(N), positive(N), SCALES, s, r), numbers(N), positive(N)
    ),
    "cg_direction": lambda: written(lambda p: _kernels.cg_direction(0.3, SCALES, numbers(N), p), positive(N)),
    "split_columns": lambda: written(lambda out: _kernels.split_columns(numbers(N, K), out), np.empty((K, N))),
    "combine_columns": lambda: written(
        lambda out: _kernels.combine_columns(numbers(K), numbers(N, K), positive(K), out), positive(N, K)
    ),
    "dot_columns": lambda: written(
        lambda out: _kernels.dot_columns(numbers(N, K) * SCALES[:, None], positive(N, K), out), np.empty(K)
    ),
    "sum_paths": lambda: written(lambda out: _kernels.sum_paths(numbers(N, 5), PARENTS, out), numbers(N, K)),
    "sum_subtrees": lambda: written(lambda out: _kernels.sum_subtrees(numbers(N, K), PARENTS, K, out), numbers(N, 5)),
    "apply_softmax_hessians": lambda: written(
        lambda u: _kernels.apply_softmax_hessians(positive(N, K), numbers(K), u), numbers(N, K)
    ),
    "solve_positive": lambda: written(_kernels.solve_positive, positive_matrix(700), numbers(700)),
    "factor_positive": lambda: written(_kernels.factor_positive, positive_matrix(700)),
    "solve_factored": lambda: written(
        lambda b: _kernels.solve_factored(np.stack([np.tril(positive_matrix(40))] * K), b), numbers(K, 40)
    ),
    "complete_gram": lambda: written(
        lambda gram: _kernels.complete_gram(gram, numbers(90), 2.0), np.tril(positive_matrix(90))
    ),
    "loss_interval_cut": lambda: written(
        lambda z, dz: _kernels.loss_interval_cut("hinge", NONE, z, dz, (0.1, 0.2, 0.4), LABELS[1], SCALES),
        numbers(N),
        positive(N),
    ),
    "kink_buckets": lambda: written(
        lambda sums, marks: _kernels.kink_buckets(
            "hinge", NONE, numbers(N), positive(N), LABELS[1], SCALES, LABELS[1], (-1.0, 1.0), sums, marks
        ),
        np.zeros(100),
        np.zeros(N, np.uint8),
    ),
}


def leaves_of(block: Block) -> tuple[Block, np.ndarray, list]:
    """Rows in the order of leaves, where these end, and what was found on the way."""
    order = np.arange(M)
    ends = np.array(_kernels.order_rows(arrays_of(block), order, [M // 3, M], 7, 5))
    return block.gather(order), ends, [order, ends]


def boxes_of(block: Block) -> list:
    rows, ends, _ = leaves_of(block)
    counts = np.empty(len(ends), np.int64)
    _kernels.count_box_features(arrays_of(rows), ends, counts)
    indptr = np.append(0, np.cumsum(counts))
    halves, radii = [np.empty(indptr[-1], np.uint16) for _ in range(3)], np.empty(len(ends), np.float32)
    _kernels.make_boxes(arrays_of(rows), ends, indptr, *halves, radii)
    return [counts, indptr, *halves, radii]


def bounds_of(block: Block) -> list:
    _, indptr, indices, low, high, radii = boxes_of(block)
    return written(
        lambda *out: _kernels.box_bounds(indptr, indices, low, high, radii, None, numbers(D), *out),
        *(np.empty(len(radii)) for _ in range(2)),
    )


def trees_of(block: Block) -> list:
    """A tree of several parts, and many small ones."""
    order, ends = np.arange(M), [M - 500, *range(M - 490, M + 1, 10)]
    found = _kernels.grow_pivot_trees(arrays_of(block), order, ends, list(range(len(ends))), 5, 7, 5)
    return [order, *found.values()]


LEAVES = {
    "order_rows": lambda block: leaves_of(block)[2],
    "make_boxes": boxes_of,
    "box_bounds": bounds_of,
    "grow_pivot_trees": trees_of,
}
TABLES = {
    "assemble_dense": lambda: assembled(is_sparse=False),
    "assemble_sparse": lambda: assembled(is_sparse=True),
}
# Covered by one of the above, tested with the reader of LIBSVM text, or on one thread.
ELSEWHERE = {"count_kept": "keep_features", "count_entries": "assemble_sparse", "count_box_features": "make_boxes"}
ELSEWHERE |= {"query_losses": "test_query_losses.py"}
ELSEWHERE |= {"roc_area": "test_two_class_losses.py", "f_beta": "test_two_class_losses.py"}
ELSEWHERE |= {"level_pairs": "test_ordinal_losses.py", "level_thresholds": "test_ordinal_losses.py"}
READS = {"LibsvmParser"}
SERIAL = {
    "blend",
    "common_unit",
    "descend_gram",
    "last_record_end",
    "record_starts",
    "small_newton",
    "weighted_median",
    "ClassSweeps",
    "RoughClassSweeps",
    "AveragedSteps",
    "ClassSteps",
    "McidSteps",
    "DualSweeps",
    "PegasosSteps",
}
HOLDS_DATA = {"ArrowBatch", "AssemblyPlan", "LibsvmDialect", "LibsvmOutcome", "RowArrays"}
SETS = {"keep_freed_memory", "num_threads", "set_num_threads", "shared_jobs", "limit_libsvm_instructions"}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", [*PRODUCTS, *LEAVES])
def test_products_and_leaves(same_bits, name, layout):
    same_bits(lambda: (PRODUCTS | LEAVES)[name](LAYOUTS[layout]))


@pytest.mark.parametrize("columns", [1, K])
@pytest.mark.parametrize("name", LOSSES)
def test_losses(same_bits, name, columns):
    z = numbers(N, columns) if columns > 1 else numbers(N)
    found = same_bits(lambda: LOSSES[name](z, LABELS[columns], SCALES, LOSS[columns]))
    assert np.isfinite(found[0] if isinstance(found, list) else found).all()


@pytest.mark.parametrize("name", [*VECTORS, *TABLES])
def test_vectors_matrices_and_tables(same_bits, name):
    same_bits((VECTORS | TABLES)[name])


def test_every_kernel_is_here():
    tested = {*PRODUCTS, *LOSSES, *VECTORS, *TABLES, *LEAVES, *ELSEWHERE}
    methods = {name for name in vars(_kernels.RowArrays) if not name.startswith("_")}
    known = tested | READS | SERIAL | HOLDS_DATA | SETS
    names = {name for name in vars(_kernels) if not name.startswith("_") and callable(getattr(_kernels, name))}
    assert methods <= tested
    assert names <= known
    assert known <= names | methods
