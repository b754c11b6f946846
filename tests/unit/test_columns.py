"""Features copied out of rows, and sweeps over their columns, against NumPy twins."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from beeline.data.core.arrays import from_arrays
from beeline.kernels import Columns, complete_gram, descend_gram


def random_rows(rng, m, d, sparse, dtype):
    X = (rng.normal(size=(m, d)) * (rng.random((m, d)) < 0.4)).astype(dtype)
    return X, from_arrays(scipy.sparse.csr_array(X) if sparse else X).block


shapes = st.tuples(st.integers(0, 30), st.integers(1, 12))
layouts = st.tuples(st.booleans(), st.sampled_from([np.float32, np.float64]))


@settings(max_examples=80, deadline=None)
@given(shapes, layouts, st.booleans(), st.integers(0, 1000), st.integers(1, 4))
def test_features_are_columns_of_the_matrix(shape, layout, constant, seed, threads):
    rng = np.random.default_rng(seed)
    X, block = random_rows(rng, *shape, *layout)
    picked = np.flatnonzero(rng.random(shape[1]) < 0.5)
    kept = block.features(picked, constant=constant, threads=threads).checked()
    expected = np.column_stack([X[:, picked], np.ones((shape[0], int(constant)), X.dtype)])
    np.testing.assert_array_equal(kept.to_dense(), expected)
    assert kept.is_sparse == layout[0]
    assert kept.values.dtype == layout[1]


def test_features_of_many_rows_on_threads():
    rng = np.random.default_rng(0)
    X = scipy.sparse.random_array((20000, 300), density=0.05, rng=rng, format="csr")
    X.data[X.indptr[9000] : X.indptr[12000]] = 0  # a run of rows that keep nothing
    X.eliminate_zeros()
    block, picked = from_arrays(X).block, np.arange(3, 300, 7)
    for threads in (1, 2, 4):
        kept = block.features(picked, threads=threads)
        assert (kept.to_scipy() != X[:, picked]).nnz == 0


def twin_sweep(X, u, h, w, l1, l2, free):
    """One sweep of exact coordinate steps over the model, the intercept moved to its best after each."""
    w, slopes, shift = w.copy(), u.copy(), 0.0
    for j in range(X.shape[1]):
        x = X[:, j] - (h @ X[:, j] / h.sum() if free else 0.0)
        g, q = X[:, j] @ slopes + l2 * w[j], (h * x) @ x + l2
        if q <= 0:
            continue
        best = w[j] - g / q
        best = np.sign(best) * max(abs(best) - l1 / q, 0)
        slopes += h * x * (best - w[j])
        shift -= (best - w[j]) * (h @ X[:, j]) / h.sum() if free else 0.0
        w[j] = best
    return w, shift


@settings(max_examples=60, deadline=None)
@given(layouts, st.booleans(), st.sampled_from([0.0, 0.3]), st.integers(0, 1000))
def test_a_sweep_over_columns_and_over_the_gram_matrix(layout, free, l2, seed):
    rng = np.random.default_rng(seed)
    X, block = random_rows(rng, 25, 8, *layout)
    X = X.astype(np.float64)
    u, h, w = rng.normal(size=25), rng.uniform(0.1, 1, 25), rng.normal(size=8) * (rng.random(8) < 0.5)
    u -= u.mean() if free else 0.0
    expected, shift = twin_sweep(X, u, h, w, 0.2, l2, free)

    by_columns = w.copy()
    _, _, sweeps, moved = block.columns().descend(u, h, by_columns, (0.2, l2, 0), 0.0, 0.0, 1, free)
    np.testing.assert_allclose(by_columns, expected, atol=1e-10)
    assert moved == pytest.approx(shift, abs=1e-10)
    assert sweeps == pytest.approx(1)

    gram, by_gram = block.gram(h), w.copy()
    complete_gram(gram, X.T @ h if free else None, float(h.sum()))
    np.testing.assert_allclose(gram, gram.T, atol=1e-12)
    descend_gram(gram, X.T @ u, by_gram, (0.2, l2, 0), 0.0, 0.0, 1)
    np.testing.assert_allclose(by_gram, expected, atol=1e-10)


def test_sweeps_end_at_the_minimum_of_a_singular_model():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(6, 40))
    X[:, 20:] = X[:, :20] * (1 + 1e-9)  # pairs of nearly equal features
    u, h, w = rng.normal(size=6), np.ones(6), np.zeros(40)
    columns = Columns(from_arrays(X).block.arrays)
    first, last, _, _ = columns.descend(u, h, w, (0.05, 0.0, 0), 1e-10, 0.0, 2000, False)
    gradient = X.T @ (u + X @ w)
    violation = np.where(w == 0, np.maximum(np.abs(gradient) - 0.05, 0), np.abs(gradient + 0.05 * np.sign(w)))
    assert violation.max() <= 1e-8
    assert last <= 1e-10 < first
