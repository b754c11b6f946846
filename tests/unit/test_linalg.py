"""The dense kernels against NumPy, and copies of rows against the rows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from beeline.kernels import RowArrays, balance, blend, dot, pack_rows, solve_positive, value_range, weighted_median


def positive_matrix(n, rng):
    a = rng.normal(size=(n, n + 3))
    return a @ a.T + np.eye(n)


@pytest.mark.parametrize("n", [1, 3, 4, 5, 15, 16, 17, 33, 64, 123, 200])
def test_cholesky_solves(n):
    rng = np.random.default_rng(n)
    a, b = positive_matrix(n, rng), rng.normal(size=n)
    factor, x = np.tril(a), b.copy()  # the upper triangle is not looked at
    assert solve_positive(factor, x)
    np.testing.assert_allclose(a @ x, b, atol=1e-9)
    lower = np.tril(factor)
    np.testing.assert_allclose(lower @ lower.T, a, atol=1e-9 * np.abs(a).max())


@pytest.mark.parametrize("n", [2, 20])
def test_cholesky_refuses_what_is_not_positive(n):
    a = np.eye(n)
    a[-1, -1] = -1
    assert not solve_positive(a, np.ones(n))


@pytest.mark.parametrize("n", [0, 1, 3, 4, 7, 15, 16, 17, 40])
def test_dot_of_short_and_long_vectors(n):
    a, b = np.random.default_rng(n).normal(size=(2, n))
    assert dot(a, b) == pytest.approx(float(a @ b), abs=1e-13)


@given(st.lists(st.integers(-5, 5), max_size=30))
def test_balance_scales_the_heavier_side_down(numbers):
    before = np.array(numbers, float)
    a = before.copy()
    balance(a)
    assert abs(a.sum()) <= 1e-13 * np.abs(before).sum()
    heavier = np.sign(before.sum())
    np.testing.assert_array_equal(a[before * heavier <= 0], before[before * heavier <= 0])
    assert (np.abs(a) <= np.abs(before)).all()
    assert (a * before >= 0).all()


@given(st.lists(st.tuples(st.integers(-5, 5), st.integers(0, 3)), max_size=40))
def test_weighted_median(rows):
    values, weights = np.array(rows, float).reshape(-1, 2).T.copy()
    found = weighted_median(values, weights)
    if not weights.any():
        assert np.isnan(found)
        return
    repeated = np.sort(np.repeat(values, weights.astype(int)))
    assert found == repeated[(len(repeated) - 1) // 2]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 5, 1000, 300_000])
def test_value_range(n, dtype):
    values = np.random.default_rng(n).normal(size=n).astype(dtype)
    assert value_range(values) == (values.min(), values.max())
    values[n // 2] = np.inf
    assert value_range(values) == (values.min(), np.inf)
    values[-1] = np.nan
    assert np.isnan(value_range(values)).all()


def test_blend():
    a, b = np.array([1.0, 2.0]), np.array([3.0, -2.0])
    blend(a, b, 0.25)
    np.testing.assert_array_equal(a, [1.5, 1.0])


@pytest.mark.parametrize(
    ("value", "exact", "precise"), [(0.5, True, True), (0.1, False, True), (1e-40, False, False), (3e38, False, False)]
)
def test_packing_says_what_float32_lost(value, exact, precise):
    rows = RowArrays(np.array([1.0, value, 2.0]), np.array([0, 1, 3]), np.array([4, 0, 4], np.int32), 5)
    values, indices = np.empty(3, np.float32), np.empty(3, np.uint16)
    said = pack_rows(rows, np.array([1, 0]), np.array([0, 2, 3]), indices, values)
    assert said == (exact, precise)
    np.testing.assert_array_equal(indices, [0, 4, 4])
    np.testing.assert_array_equal(values, np.array([value, 2.0, 1.0]).astype(np.float32))


def test_packing_into_float64_loses_nothing():
    rows = RowArrays(np.array([[0.1, 0.2], [0.3, 1e300]]), None, None, 2)
    values = np.empty((2, 2))
    assert pack_rows(rows, np.array([1, 0]), None, None, values) == (True, True)
    np.testing.assert_array_equal(values, [[0.3, 1e300], [0.1, 0.2]])
