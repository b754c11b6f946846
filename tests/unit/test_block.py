"""Blocks against a NumPy twin."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from row_orders import unsorted

from beeline import Block
from beeline.data.core.block import concatenate, gather_from
from beeline.data.core.labels import LabelSets
from beeline.exceptions import DataError

LAYOUTS = [
    (layout, value, position, index)
    for layout in ("dense", "sparse", "unsorted")
    for value in (np.float32, np.float64)
    for position, index in ([(None, None)] if layout == "dense" else [(np.int32, np.int64), (np.int64, np.int32)])
]


def make_block(X, layout, value, position, index, **targets):
    if layout == "dense":
        return Block(np.ascontiguousarray(X, dtype=value), X.shape[1], **targets)
    csr = sp.csr_array(X.astype(value))
    if layout == "unsorted":
        csr = unsorted(csr)
    return Block(csr.data, X.shape[1], csr.indptr.astype(position), csr.indices.astype(index), **targets)


@st.composite
def matrices(draw):
    shape = draw(st.integers(0, 80)), draw(st.integers(1, 30))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    density = draw(st.sampled_from([0.0, 0.1, 0.5, 1.0]))
    return np.float32(rng.normal(size=shape) * (rng.random(shape) < density)).astype(float), rng


@pytest.mark.parametrize(("layout", "value", "position", "index"), LAYOUTS)
@given(matrices(), st.integers(1, 9) | st.sampled_from([15, 31, 48]))
def test_verbs_agree_with_numpy(layout, value, position, index, matrix, classes):
    X, rng = matrix
    block = make_block(X, layout, value, position, index)
    n, d = X.shape
    for columns in ((), (classes,)):
        w, u = rng.normal(size=(d, *columns)), rng.normal(size=(n, *columns))
        np.testing.assert_allclose(block.scores(w), X @ w, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(block.transposed(u), X.T @ u, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(block.gram_diagonal(u**2), (X**2).T @ u**2, rtol=1e-12, atol=1e-12)
    h = rng.random(n) * (rng.random(n) < 0.7)
    np.testing.assert_allclose(block.gram(h), np.tril(X.T * h @ X), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(block.squared_norms(), (X**2).sum(axis=1), rtol=1e-12)
    assert block.arrays.longest_row() == pytest.approx(np.sqrt((X**2).sum(axis=1).max(initial=0.0)))
    mean, norms, means, usual = block.centred()
    centre = X.sum(axis=0) / max(1, n)
    np.testing.assert_allclose(mean, centre, atol=1e-12)
    np.testing.assert_allclose(norms, ((X - centre) ** 2).sum(axis=1), atol=1e-10)
    np.testing.assert_allclose(means, X @ centre, atol=1e-12)
    assert usual == pytest.approx(norms.sum() / max(1, n))
    assert block.nnz == (n * d if layout == "dense" else np.count_nonzero(X))
    np.testing.assert_array_equal(block.to_dense(), X)
    np.testing.assert_array_equal(block.to_scipy().toarray(), X)


@pytest.mark.parametrize(("layout", "value", "position", "index"), LAYOUTS)
@given(matrices(), st.sampled_from([2, 5, 21]))
def test_curved_products_agree_with_numpy(layout, value, position, index, matrix, classes):
    X, rng = matrix
    block = make_block(X, layout, value, position, index)
    h, v, shift = rng.random((len(X), classes)), rng.normal(size=(X.shape[1], classes)), rng.normal(size=classes)
    h[rng.random(len(X)) < 0.2] = 0  # rows of no cost
    z = X @ v + shift
    share = h / np.maximum(h.sum(axis=1, keepdims=True), 1e-300)
    u = h * (z - (share * z).sum(axis=1, keepdims=True))
    expected = np.vstack([X.T @ u, u.sum(axis=0)])
    np.testing.assert_allclose(block.softmax_gram_matvec(h, v, shift), expected, rtol=1e-11, atol=1e-11)
    first = block.gram_matvec(h[:, 0], v[:, 0], shift[0])
    np.testing.assert_allclose(first[0], X.T @ (h[:, 0] * z[:, 0]), rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize(("layout", "value", "position", "index"), LAYOUTS)
@given(matrices(), st.data())
def test_row_ranges_and_gathered_rows(layout, value, position, index, matrix, data):
    X, rng = matrix
    n = len(X)
    sets = LabelSets(np.arange(n + 1) * 2, rng.normal(size=2 * n))
    targets = {"weights": rng.random(n), "queries": np.arange(n) // 3}
    block = make_block(X, layout, value, position, index, labels=sets, **targets)
    start = data.draw(st.integers(0, n))
    stop = data.draw(st.integers(0, n + 3))
    part = block.rows(start, stop)
    np.testing.assert_array_equal(part.to_dense(), X[start:stop])
    assert part.values.size == 0 or np.shares_memory(part.values, block.values)
    u = rng.normal(size=part.n_rows)
    np.testing.assert_allclose(part.transposed(u), X[start:stop].T @ u, rtol=1e-12, atol=1e-12)
    picked = rng.integers(0, max(part.n_rows, 1), size=7 if part.n_rows else 0)
    chosen = part.gather(picked)
    np.testing.assert_array_equal(chosen.to_dense(), X[start:stop][picked])
    np.testing.assert_array_equal(chosen.weights, targets["weights"][start:stop][picked])
    np.testing.assert_array_equal(chosen.queries, targets["queries"][start:stop][picked])
    expected = sets.values.reshape(-1, 2)[start:stop][picked]
    np.testing.assert_array_equal(np.array(list(chosen.labels)).reshape(-1, 2), expected)


@pytest.mark.parametrize(("layout", "value", "position", "index"), LAYOUTS)
@given(matrices(), st.lists(st.integers(0, 40), max_size=4))
def test_concatenation_restores_the_whole(layout, value, position, index, matrix, cuts):
    X, rng = matrix
    n = len(X)
    block = make_block(X, layout, value, position, index, labels=rng.normal(size=n), weights=rng.random(n))
    edges = [0, *sorted(min(cut, n) for cut in cuts), n]
    parts = [block.rows(a, b) for a, b in pairwise(edges)]
    whole = concatenate(parts)
    assert not parts
    np.testing.assert_array_equal(whole.to_dense(), X)
    np.testing.assert_array_equal(whole.labels, block.labels)
    np.testing.assert_array_equal(whole.weights, block.weights)
    whole.checked()


@pytest.mark.parametrize(("layout", "value", "position", "index"), LAYOUTS)
@given(matrices(), st.integers(0, 40))
def test_rows_of_several_blocks_are_gathered_at_once(layout, value, position, index, matrix, cut):
    X, rng = matrix
    block = make_block(X, layout, value, position, index, weights=rng.random(len(X)))
    cut = min(cut, len(X))
    parts = block.rows(0, cut), block.rows(cut, len(X))
    assert all(part.is_view == (0 < part.nnz < block.nnz) for part in parts if part.nnz)
    picks = [rng.integers(0, part.n_rows, size=5 if part.n_rows else 0) for part in parts]
    found = gather_from(list(zip(parts, picks, strict=True)))
    np.testing.assert_array_equal(found.to_dense(), np.vstack([X[:cut][picks[0]], X[cut:][picks[1]]]))
    assert found.weights is None
    found.checked()


def test_rows_of_blocks_with_different_types_are_gathered_too():
    narrow, wide = (make_block(np.eye(3), "sparse", np.float64, np.int64, index) for index in (np.int32, np.int64))
    found = gather_from([(narrow, np.array([2])), (wide, np.array([0, 1]))])
    np.testing.assert_array_equal(found.to_dense(), np.eye(3)[[2, 0, 1]])


def test_concatenation_refuses_a_mixture():
    dense, sparse = (make_block(np.eye(3), layout, np.float64, np.int64, np.int32) for layout in ("dense", "sparse"))
    with pytest.raises(DataError, match="sparse and some are dense"):
        concatenate([sparse, dense])
    labelled = make_block(np.eye(3), "dense", np.float64, None, None, labels=np.ones(3))
    with pytest.raises(DataError, match="some blocks have labels and some have none"):
        concatenate([labelled, dense])


def test_shapes_that_do_not_fit_are_named():
    block = make_block(np.eye(3), "dense", np.float64, None, None)
    with pytest.raises(DataError, match="w must have 3 rows"):
        block.scores(np.ones(4))
    with pytest.raises(DataError, match="u must have 3 rows"):
        block.transposed(np.ones((2, 2)))
    with pytest.raises(DataError, match="row numbers must lie between 0 and 2"):
        block.gather(np.array([3]))
    with pytest.raises(DataError, match="2 labels do not match 3 rows"):
        Block(np.eye(3), 3, labels=np.ones(2))
    with pytest.raises(DataError, match="one position more than rows"):
        Block(np.ones(2), 3, np.empty(0, np.int64), np.zeros(2, np.int32))
    with pytest.raises(DataError, match="values in one dimension"):
        Block(np.ones((2, 1)), 3, np.array([0, 2]), np.zeros(2, np.int32))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"indices": np.array([0, 5], np.int32)}, "row 1 has a feature index"),
        ({"indices": np.array([0, -1], np.int32)}, "row 1 has a feature index"),
        ({"indptr": np.array([0, 2, 1])}, "row positions"),
        ({"indptr": np.array([0, 1, 3])}, "row positions"),
        ({"indptr": np.array([0, 0, 2]), "indices": np.array([1, 1], np.int32)}, "row 1 has a feature index more than"),
        ({"values": np.array([1.0, np.nan])}, "row 1 has a value that is NaN"),
        ({"values": np.array([np.inf, 1.0], np.float32)}, "row 0 has a value that is NaN"),
    ],
)
def test_check_names_the_first_bad_row(change, message):
    good = {"values": np.ones(2), "indptr": np.array([0, 1, 2]), "indices": np.array([0, 1], np.int32)}
    Block(n_features=3, **good).checked()
    with pytest.raises(DataError, match=message):
        Block(n_features=3, **(good | change)).checked()


def one_row(indices, values=None, n_features=2**40):
    indices = np.array(indices, np.int64)
    values = np.arange(1.0, len(indices) + 1) if values is None else np.array(values)
    return Block(values, n_features, np.array([0, len(indices)]), indices)


@pytest.mark.parametrize("far", [1, 64, 2**22, 2**22 + 64, 2**31, 2**39])
def test_repeated_features_are_found_in_any_order(far):
    """However many features there are: those that share a bit while rows are looked at are not taken for each other."""
    distinct = [5 + far, 5, 6 + far, 4]
    assert one_row(distinct).checked().nnz == 4
    one_row([*distinct, 5], n_features=2**40).checked(order="any")
    for repeated in ([*distinct, 5], [5 + far, *distinct], [7, 7]):
        with pytest.raises(DataError, match="row 0 has a feature index more than once"):
            one_row(repeated).checked()


def test_rows_after_an_unsorted_one_are_looked_at_on_their_own():
    indices = np.array([3, 1, 3, 1, 2, 0, 1, 3], np.int32)
    block = Block(np.ones(8), 4, np.array([0, 2, 4, 6, 8]), indices)
    assert block.checked() is block
    with pytest.raises(DataError, match="row 0 has feature indices that are not strictly increasing"):
        block.checked(order="increasing")
    assert block.rows(3, 4).checked(order="increasing").nnz == 2


def test_summed_and_canonical_rows():
    repeated = one_row([4, 2, 4, 0], [1.0, 2.0, 3.0, 4.0], n_features=5)
    for block in (repeated.summed(), repeated.canonical()):
        assert (block.indices.tolist(), block.values.tolist()) == ([0, 2, 4], [4.0, 2.0, 4.0])
    assert repeated.indices.tolist() == [4, 2, 4, 0]
    mixed = one_row([4, 2, 0], [1.0, 2.0, 3.0], n_features=5)
    assert mixed.summed() is mixed
    assert mixed.canonical().indices.tolist() == [0, 2, 4]
    assert mixed.indices.tolist() == [4, 2, 0]
    sorted_rows = one_row([0, 2, 4], n_features=5)
    assert sorted_rows.canonical() is sorted_rows
    assert Block(np.eye(2), 2).canonical().values.tolist() == [[1, 0], [0, 1]]
    with pytest.raises(DataError, match="row 0 has a value that is NaN or infinite"):
        one_row([3, 1, 3], [1e308, 1.0, 1e308], n_features=5).summed()
    with pytest.raises(DataError, match="row 0 has a feature index below 0"):
        one_row([5, 1], n_features=5).canonical()


def test_more_than_two_to_the_31_entries():
    """Positions beyond int32: the arrays are zero pages that cost nothing until they are touched."""
    nnz = 2**31 + 10
    values, indices = np.zeros(nnz, np.float32), np.zeros(nnz, np.int32)
    values[-3:] = [1, 2, 3]
    indices[-3:] = [0, 4, 7]
    indptr = np.array([0, nnz - 3, nnz], np.int64)
    block = Block(values, 8, indptr, indices)
    assert block.nnz == nnz
    last = block.rows(1, 2)
    assert last.scores(np.arange(8.0)).tolist() == [2 * 4 + 3 * 7]
    assert last.transposed(np.array([2.0])).tolist() == [2, 0, 0, 0, 4, 0, 0, 6]
    assert last.squared_norms().tolist() == [14]
    assert last.gather(np.array([0, 0])).nnz == 6
