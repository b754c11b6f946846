"""Arrays in memory: what fits is used where it lies, what does not is converted, what cannot be used is named."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from row_orders import unsorted

import beeline
from beeline.data.core.arrays import from_arrays
from beeline.data.core.labels import LabelSets
from beeline.exceptions import DataError, LabelError


def address(array):
    return array.__array_interface__["data"][0]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_dense_array_is_not_copied(dtype):
    X = np.arange(12, dtype=dtype).reshape(4, 3)
    y, weights, queries = np.arange(4.0), np.ones(4), np.arange(4)
    block = from_arrays(X, y, weights=weights, queries=queries).block
    pairs = [(block.values, X), (block.labels, y), (block.weights, weights), (block.queries, queries)]
    assert all(address(ours) == address(theirs) for ours, theirs in pairs)
    assert address(beeline.read(X).block.values) == address(X)
    assert address(beeline.read(X).X) == address(X)


@pytest.mark.parametrize("make", [sp.csr_array, sp.csr_matrix])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_a_csr_matrix_is_not_copied(make, dtype, index):
    X = make(np.eye(5, dtype=dtype))
    X.indptr, X.indices = X.indptr.astype(index), X.indices.astype(index)
    block = from_arrays(X).block
    for ours, theirs in [(block.values, X.data), (block.indptr, X.indptr), (block.indices, X.indices)]:
        assert address(ours) == address(theirs)


@pytest.mark.parametrize("make", [sp.csr_array, sp.csr_matrix])
def test_unsorted_rows_are_used_where_they_lie(make):
    X = make(unsorted(sp.random_array((40, 30), density=0.3, format="csr", rng=np.random.default_rng(0))))
    before = X.data.copy(), X.indices.copy()
    for array in (X.data, X.indices, X.indptr):
        array.flags.writeable = False
    for data in (from_arrays(X), beeline.read(X)):
        for ours, theirs in [(data.block.values, X.data), (data.block.indices, X.indices)]:
            assert address(ours) == address(theirs)
    assert all(np.array_equal(a, b) for a, b in zip(before, (X.data, X.indices), strict=True))


@pytest.mark.parametrize("claimed", [True, False])
def test_what_scipy_claims_of_the_order_is_not_believed(claimed):
    """A matrix keeps what was once found out about its indices, also when others take their place."""
    X = sp.csr_matrix((np.array([1.0, 2.0, 4.0]), np.array([2, 0, 2]), np.array([0, 3])), shape=(1, 3))
    X.has_sorted_indices = X.has_canonical_format = claimed
    assert from_arrays(X).block.squared_norms().tolist() == [29]
    np.testing.assert_array_equal(from_arrays(X).block.to_dense(), [[2, 0, 5]])
    assert X.indices.tolist() == [2, 0, 2]


def test_repeated_entries_may_stay_for_scores():
    X = sp.csr_array((np.array([1.0, 2.0, 3.0]), np.array([2, 0, 2]), np.array([0, 3])), shape=(1, 3))
    block = from_arrays(X, allow_repeated=True).block
    assert address(block.values) == address(X.data)
    assert block.scores(np.array([1.0, 10.0, 100.0])).tolist() == [402]
    X.indices[0] = 3
    with pytest.raises(DataError, match="row 0 has a feature index below 0 or not below 3"):
        from_arrays(X, allow_repeated=True)


@pytest.mark.parametrize("form", ["csc", "coo", "bsr", "lil", "dok", "dia"])
@pytest.mark.parametrize("make", [sp.random_array, sp.random])
def test_other_sparse_formats_are_converted(form, make):
    shape = ((20, 7),) if make is sp.random_array else (20, 7)
    X = make(*shape, density=0.3, format="coo", rng=np.random.default_rng(0)).asformat(form)
    block = from_arrays(X).block
    np.testing.assert_array_equal(block.to_dense(), X.toarray())


def test_layouts_that_do_not_fit_are_converted_and_the_original_is_left_alone():
    F = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    np.testing.assert_array_equal(from_arrays(F).block.values, F)
    for dtype in (np.int8, np.uint64, bool, np.float16, ">f8", object):
        X = np.array([[1, 0], [0, 1]]).astype(dtype)
        np.testing.assert_array_equal(from_arrays(X).block.values, [[1, 0], [0, 1]])
    repeated = sp.csr_array((np.array([1.0, 2.0, 3.0]), np.array([2, 0, 0]), np.array([0, 3])), shape=(1, 3))
    block = from_arrays(repeated).block
    np.testing.assert_array_equal(block.to_dense(), [[5, 0, 1]])
    assert repeated.indices.tolist() == [2, 0, 0]
    assert block.squared_norms().tolist() == [26]


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.arange(3.0), r"shape \(3,\)"),
        (np.array([["a", "b"]]), "not numbers"),
        (np.array([["a", "b"]], dtype=object), "not a number"),
        (np.array([[1.0 + 2j]]), "not numbers"),
        (np.array([[1.0], [np.nan]]), "row 1 .* NaN"),
        (np.ma.masked_array([[1.0]], [[True]]), "masked"),
        (sp.coo_array(np.ones(3)), r"shape \(3,\)"),
    ],
)
def test_bad_arrays_are_named(X, message):
    with pytest.raises(DataError, match=message):
        from_arrays(X)


def test_nonfinite_values_pass_when_allowed():
    assert np.isnan(from_arrays(np.array([[np.nan]]), allow_nonfinite=True).block.values[0, 0])


def test_bad_companions_are_named():
    X = np.eye(3)
    with pytest.raises(LabelError, match="one number a row"):
        from_arrays(X, np.array(["a", "b", "c"]))
    with pytest.raises(LabelError, match="row 2 is not"):
        from_arrays(X, np.array([0, 1, np.nan]))
    with pytest.raises(DataError, match="2 labels do not match 3 rows"):
        from_arrays(X, np.ones(2))
    with pytest.raises(DataError, match="row 1 is -1"):
        from_arrays(X, weights=np.array([1, -1, 0]))
    with pytest.raises(DataError, match="whole number"):
        from_arrays(X, queries=np.array([1.0, 2, 3]))
    with pytest.raises(DataError, match="row 1 is 18446744073709551615"):
        from_arrays(X, queries=np.array([1, 2**64 - 1, 3], np.uint64))


def test_label_sets_pass_through():
    sets = LabelSets(np.array([0, 2, 2]), np.array([1.0, 3.0]))
    data = from_arrays(np.eye(2), sets)
    assert [labels.tolist() for labels in data.labels] == [[1, 3], []]
