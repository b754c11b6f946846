"""Every way to hold rows offers the same verbs with the same answers.

A new kind of data set is added by one line in `HOLDERS`: a name and a function that takes the rows as a block and a
folder for files, and gives the data set.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from row_orders import unsorted

from beeline import ArrayDataset, Block
from beeline.data.core.block import concatenate
from beeline.data.core.labels import LabelSets
from beeline.data.store import StoreWriter
from beeline.exceptions import DataError

N, D = 103, 17


def stored(block, folder, **settings):
    with StoreWriter(folder / "rows.store", **settings) as writer:
        for start in range(0, block.n_rows, 29):
            writer.write(block.rows(start, start + 29))
        return writer.finish()


HOLDERS = {
    "array": lambda block, folder: ArrayDataset(block),
    "store in one chunk": stored,
    "store in many chunks": lambda block, folder: stored(block, folder, chunk_bytes=700),
    "store in many parts": lambda block, folder: stored(block, folder, chunk_bytes=500, part_bytes=1500),
    "store of single rows": lambda block, folder: stored(block, folder, chunk_bytes=1),
}

FORMS = {
    f"{layout} {value} {index}".strip(): (layout, value, index)
    for layout, indices in (("dense", [""]), ("sparse", ["int32", "int64"]), ("unsorted", ["int32", "int64"]))
    for value in ("float32", "float64")
    for index in indices
}

TARGETS = {
    "nothing": [],
    "label sets": ["sets"],
    "labels, weights, queries": ["labels", "weights", "queries"],
}


def reference(targets):
    """The rows in full, uneven: some are empty and some are dense."""
    rng = np.random.default_rng(7)
    X = rng.integers(-8, 9, (N, D)) / 4 * (rng.random((N, D)) < rng.random((N, 1)))
    X[5] = 0
    counts = rng.integers(0, 4, N)
    columns = {
        "labels": rng.integers(-1, 3, N).astype(float),
        "sets": LabelSets(np.concatenate([[0], np.cumsum(counts)]), rng.integers(0, 9, counts.sum()).astype(float)),
        "weights": rng.random(N),
        "queries": np.sort(rng.integers(0, 12, N)),
    }
    return X, {"labels" if name == "sets" else name: columns[name] for name in targets}


def make_block(X, layout, value, index, targets):
    block = Block(np.ascontiguousarray(X, dtype=value), X.shape[1], **targets)
    if layout == "dense":
        return block
    csr = unsorted(block.to_scipy()) if layout == "unsorted" else block.to_scipy()
    return replace(block, values=csr.data, indptr=csr.indptr.astype("int64"), indices=csr.indices.astype(index))


@pytest.fixture(scope="module", params=TARGETS)
def targets(request):
    return TARGETS[request.param]


@pytest.fixture(scope="module", params=FORMS)
def form(request):
    return FORMS[request.param]


@pytest.fixture(scope="module", params=HOLDERS)
def held(request, form, targets, tmp_path_factory):
    X, columns = reference(targets)
    return HOLDERS[request.param](make_block(X, *form, columns), tmp_path_factory.mktemp("held")), X, columns, form


def assert_column(ours, expected, picked):
    if expected is None or ours is None:
        assert ours is None
        assert expected is None
    elif isinstance(expected, LabelSets):
        assert isinstance(ours, LabelSets)
        assert [list(row) for row in ours] == [list(row) for row in expected[np.arange(len(expected))[picked]]]
    else:
        np.testing.assert_array_equal(ours, expected[picked])
        assert ours.dtype == expected.dtype


def assert_rows(block, X, columns, picked, form):
    """The block holds exactly these rows of the reference, in the form they were given in."""
    layout, value, index = form
    X = X[picked]
    assert block.is_sparse == (layout != "dense")
    assert block.values.dtype == value
    assert block.indices is None or block.indices.dtype == index
    assert (block.n_rows, block.n_features) == X.shape
    np.testing.assert_array_equal(block.to_dense(), X)
    assert block.nnz == (X.size if layout == "dense" else np.count_nonzero(X))
    for name in ("labels", "weights", "queries"):
        assert_column(getattr(block, name), columns.get(name), picked)
    rng = np.random.default_rng(3)
    w, u = rng.normal(size=X.shape[1]), rng.normal(size=len(X))
    np.testing.assert_allclose(block.scores(w), X @ w, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(block.transposed(u), X.T @ u, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(block.squared_norms(), (X**2).sum(axis=1), rtol=1e-12)
    np.testing.assert_allclose(block.gram(u**2), np.tril(X.T * u**2 @ X), rtol=1e-12, atol=1e-12)


def test_size(held):
    data, X, _, form = held
    assert (data.n_rows, data.n_features) == data.shape == X.shape
    assert len(data) == len(X)
    assert data.nnz == (X.size if form[0] == "dense" else np.count_nonzero(X))


def test_blocks(held):
    data, X, columns, form = held
    for memory in (None, 1, 900, 5000, 10**9):
        blocks = list(data.blocks(memory))
        assert all(block.n_rows > 0 for block in blocks)
        assert memory is None or all(block.nbytes <= memory or block.n_rows == 1 for block in blocks)
        end = N - blocks[-1].n_rows
        assert_rows(blocks[0], X, columns, slice(0, blocks[0].n_rows), form)
        assert_rows(blocks[-1], X, columns, slice(end, N), form)
        assert_rows(concatenate(blocks), X, columns, slice(0, N), form)


def test_rows(held):
    data, X, columns, form = held
    for limits in [(0, N), (0, 1), (20, 21), (11, 78), (N - 1, N), (40, 40), (-5, N), (90, 500), (9, 4), (N, N)]:
        start, stop, _ = slice(*limits).indices(N)
        assert_rows(data.rows(*limits), X, columns, slice(start, max(start, stop)), form)


def test_features_are_distinct_and_increase_in_a_store(held):
    data, *_ = held
    for block in data.blocks():
        block.checked(order="distinct" if isinstance(data, ArrayDataset) else "increasing")


def test_cuts(held):
    data, *_ = held
    for memory in (1, 600, 1 << 30):
        cuts = data.cuts(memory)
        assert (cuts[0], cuts[-1]) == (0, data.n_rows)
        assert all(a < b for a, b in pairwise(cuts))


def test_gather(held):
    data, X, columns, form = held
    for picked in ([0], [N - 1, 0, 50, 50, 3], [], range(N)[::-1], range(4, 60, 7)):
        numbers = np.array(picked, np.int64)
        assert_rows(data.gather(numbers), X, columns, numbers, form)


@pytest.mark.parametrize("picked", [[-1], [N], [0, N + 5]])
def test_gather_names_the_limits(held, picked):
    with pytest.raises(DataError, match="between 0 and 102"):
        held[0].gather(np.array(picked))


@pytest.mark.parametrize("picked", [np.ones(N, bool), [0.5], 3, [[1, 2]]])
def test_gather_takes_whole_numbers_only(held, picked):
    with pytest.raises(DataError, match="rows are picked by a list of whole numbers"):
        held[0].gather(picked)


def test_columns(held):
    data, _, columns, _ = held
    for name in ("labels", "weights", "queries"):
        assert_column(getattr(data, name), columns.get(name), slice(None))
