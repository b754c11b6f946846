"""Scaling: learned from blocks of any cut, applied, against NumPy twins."""

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from beeline.data.core.block import Block
from beeline.data.core.statistics import FeatureStatistics
from beeline.data.recipe import scaling as scaling_module
from beeline.data.recipe.scaling import Scaling, ScalingLearner, learned_scaling
from beeline.exceptions import DataError

KINDS = ["none", "minmax", "standard", "maxabs", "unit-norm"]


def dense(X, **targets):
    return Block(np.ascontiguousarray(X), X.shape[1], **targets)


def sparse(X):
    csr = scipy.sparse.csr_array(X)
    return Block(csr.data, X.shape[1], csr.indptr, csr.indices)


def learn(kind, blocks, n_features):
    learner = ScalingLearner(kind)
    for block in blocks:
        learner.add(block)
    return learner.finish(n_features)


def twin(kind, X):
    """What each kind means, in NumPy with extended precision."""
    X = X.astype(np.longdouble)
    if kind == "none":
        return X
    if kind == "unit-norm":
        norms = np.sqrt((X**2).sum(axis=1, keepdims=True))
        return X / np.where(norms == 0, 1, norms)
    if kind == "maxabs":
        largest = np.abs(X).max(axis=0)
        return X / np.where(largest == 0, 1, largest)
    constant = X.min(axis=0) == X.max(axis=0)
    if kind == "minmax":
        return (X - X.min(axis=0)) / np.where(constant, 1, np.ptp(X, axis=0))
    return (X - np.where(constant, X[0], X.mean(axis=0))) / np.where(constant, 1, X.std(axis=0))


matrices = hnp.arrays(
    np.float64,
    st.tuples(st.integers(1, 30), st.integers(1, 6)),
    elements=st.just(0.0) | st.integers(-9, 9) | st.floats(-1e6, 1e6).map(lambda x: round(x, 3)),
)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=60)
@given(X=matrices, cut=st.integers(0, 30), data=st.data())
def test_any_cut_and_layout_learns_what_the_twin_says(kind, X, cut, data):
    parts = [X[:cut], X[cut:]]
    blocks = [data.draw(st.sampled_from([dense, sparse]))(part) for part in parts if len(part)]
    scaling = learn(kind, blocks, X.shape[1])
    expected = twin(kind, X).astype(float)
    for block in (dense(X), sparse(X)):
        np.testing.assert_allclose(scaling.apply(block).to_dense(), expected, rtol=1e-9, atol=1e-9)


def test_variance_survives_a_huge_offset():
    X = 1e9 + np.random.default_rng(0).normal(size=(5000, 2))
    scaling = learn("standard", [dense(X[:100]), dense(X[100:])], 2)
    np.testing.assert_allclose(1 / scaling.factor, X.astype(np.longdouble).std(axis=0).astype(float), rtol=1e-7)
    stored = np.vstack([X, np.zeros((1, 2))])
    scaling = learn("standard", [sparse(stored)], 2)
    np.testing.assert_allclose(1 / scaling.factor, stored.astype(np.longdouble).std(axis=0).astype(float), rtol=1e-9)


@pytest.mark.parametrize("make", [dense, sparse])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_same_bits_for_any_number_of_threads(same_bits, make, dtype):
    rng = np.random.default_rng(1)
    X = (rng.normal(size=(30_000, 12)) * (rng.random((30_000, 12)) < 0.5)).astype(dtype)

    def scaled():
        learner = ScalingLearner("standard")
        learner.add(make(X))
        scaling = learner.finish(12)
        rows = scaling.apply(make(X))
        assert rows.values.dtype == dtype
        return scaling.shift, scaling.factor, rows.to_dense(), Scaling("unit-norm").apply(make(X)).to_dense()

    same_bits(scaled)


@pytest.mark.parametrize("kind", ["minmax", "standard", "maxabs"])
def test_constant_features_stay_finite(kind):
    X = np.column_stack([np.full(7, 0.1), np.zeros(7), np.arange(7.0)])
    scaling = learn(kind, [dense(X)], 3)
    scaled = scaling.apply(dense(X)).values
    expected = {"maxabs": 1.0}.get(kind, 0.0)
    assert (scaled[:, 0] == expected).all()
    assert (scaled[:, 1] == 0).all()


def test_indicator_features_are_left_alone():
    X = np.column_stack([np.arange(4.0), [0.0, 1, 1, 0]])
    statistics = FeatureStatistics()
    statistics.add(dense(X))
    scaling = learned_scaling("standard", statistics, np.array([False, True]))
    assert scaling.apply(dense(X)).values[:, 1].tolist() == [0, 1, 1, 0]


def test_features_that_appear_late_count_as_zeros_before():
    wide = np.array([[1.0, 2.0, 4.0], [0.0, 0.0, 3.0]])
    scaling = learn("minmax", [sparse(wide[:1, :2] * 0 + [[3.0, 1.0]]), sparse(wide)], 3)
    assert scaling.shift is not None or scaling.factor is not None
    np.testing.assert_allclose(1 / scaling.factor, [3.0, 2.0, 4.0])
    narrow = scaling.apply(sparse(np.array([[3.0, 1.0]])))
    assert narrow.n_features == 3


def test_sparse_rows_stay_sparse_when_zeros_stay_zeros():
    X = np.array([[0.0, 2.0], [3.0, 0.0]])
    assert learn("maxabs", [sparse(X)], 2).apply(sparse(X)).is_sparse
    assert learn("minmax", [sparse(X)], 2).apply(sparse(X)).is_sparse
    assert not learn("standard", [sparse(X)], 2).apply(sparse(X)).is_sparse


def test_making_sparse_rows_dense_has_a_limit(monkeypatch):
    X = scipy.sparse.random_array((200, 500), density=0.01, rng=np.random.default_rng(0), format="csr")
    block = Block(X.data, 500, X.indptr, X.indices)
    assert not learn("standard", [block], 500).apply(block).is_sparse
    scaling = learn("standard", [block], 500)
    monkeypatch.setattr(scaling_module, "DENSE_LIMIT", 1000)
    kept = learn("standard", [block], 500)
    np.testing.assert_array_equal(kept.left_to_intercept, scaling.shift)
    assert kept.apply(block).is_sparse
    np.testing.assert_array_equal(kept.apply(block).to_dense(), block.to_dense() * scaling.factor)
    with pytest.raises(DataError, match="with layout='sparse', or read with layout='dense'"):
        scaling.apply(block)


def test_pieces_are_the_whole_in_bounded_steps():
    X = np.random.default_rng(3).normal(size=(50, 4))
    X[X < 0.5] = 0
    scaling = learn("standard", [sparse(X)], 4)
    pieces = list(scaling.pieces(sparse(X), memory=4 * 8 * 7))
    assert max(piece.n_rows for piece in pieces) == 7
    np.testing.assert_array_equal(np.vstack([p.values for p in pieces]), scaling.apply(sparse(X)).values)


@pytest.mark.parametrize("kind", ["maxabs", "unit-norm", "standard"])
@pytest.mark.parametrize("make", [dense, sparse])
def test_a_range_of_rows_scales_like_the_whole_and_the_source_is_untouched(kind, make):
    X = np.random.default_rng(4).normal(size=(20, 3))
    X[X < 0] = 0
    block = make(X)
    before = block.values.copy()
    scaling = learn(kind, [block], 3)
    whole = scaling.apply(block).to_dense()
    np.testing.assert_array_equal(scaling.apply(block.rows(5, 11)).to_dense(), whole[5:11])
    np.testing.assert_array_equal(block.values, before)


def test_in_place_writes_into_the_block():
    block = dense(np.array([[3.0, 4.0]]), labels=np.array([1.0]))
    scaled = Scaling("unit-norm").apply(block, in_place=True)
    assert scaled.values is block.values
    np.testing.assert_allclose(block.values, [[0.6, 0.8]])
    assert scaled.labels is block.labels


def test_unit_norm_of_extreme_rows():
    X = np.array([[3e200, 4e200], [3e-200, 4e-200], [0.0, 0.0], [5e-324, 0.0]])
    scaled = Scaling("unit-norm").apply(dense(X)).values
    np.testing.assert_allclose(scaled, [[0.6, 0.8], [0.6, 0.8], [0, 0], [1, 0]])


def test_what_cannot_be_learned_is_said():
    with pytest.raises(DataError, match="from no rows"):
        ScalingLearner("standard").finish(3)
    with pytest.raises(DataError, match=r"feature 1 .*NaN"):
        learn("minmax", [dense(np.array([[1.0, np.nan], [2.0, 1.0]]))], 2)
    scaling = learn("maxabs", [dense(np.ones((2, 2)))], 2)
    with pytest.raises(DataError, match="3 features but the scaling was learned on 2"):
        scaling.apply(dense(np.ones((2, 3))))


@given(matrices, matrices, st.integers(0, 50), st.floats(-100, 100).map(lambda x: round(x, 2)))
def test_repeated_values_count_like_rows(X, Y, times, value):
    d = min(X.shape[1], Y.shape[1])
    rows = np.vstack([X[:, :d], np.full((times, d), value), Y[:, :d]])
    statistics = FeatureStatistics()
    statistics.add(dense(X[:, :d]))
    statistics.add_repeated(np.full(d, times), value)
    statistics.add(dense(Y[:, :d]))
    assert (statistics.count == len(rows)).all()
    np.testing.assert_allclose(statistics.mean, rows.mean(axis=0), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(statistics.spread, rows.var(axis=0) * len(rows), rtol=1e-7, atol=1e-7)
    np.testing.assert_array_equal(statistics.low, rows.min(axis=0))
    np.testing.assert_array_equal(statistics.high, rows.max(axis=0))
