"""The dense kernels against NumPy, and copies of rows against the rows."""

import numpy as np
import pytest

from beeline.kernels import RowArrays, blend, pack_rows, solve_positive


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
