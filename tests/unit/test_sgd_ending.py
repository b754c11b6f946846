"""The end of stochastic steps: a sample tells the best multiple of the weights where it is like all rows."""

from __future__ import annotations

import numpy as np
import pytest

from beeline.data.core.arrays import from_arrays
from beeline.losses import CrammerSinger, Softmax
from beeline.objective import Objective
from beeline.regularizers import L2
from beeline.solvers.stochastic import ending

N, D, K = 20_000, 6, 3


def an_end(loss, multiple, large=1.0):
    """A point whose weights are a multiple of good ones; one of the wrong class may be large."""
    random = np.random.default_rng(0)
    X, W = random.standard_normal((N, D)), random.standard_normal((D, K))
    y = np.argmax(X @ W + 0.5 * random.standard_normal((N, K)), axis=1)
    X[8] *= -large  # which is not in the sample
    o = Objective.of(from_arrays(X), y.astype(float), np.ones(N), loss, L2(), 1e-2 * N, "free", n_outputs=K)
    theta = np.zeros(o.size)
    theta[: D * K] = multiple * W.ravel()
    return o.at(theta)


@pytest.mark.parametrize("loss", [Softmax(), CrammerSinger()])
@pytest.mark.parametrize("multiple", [0.9, 3.0])
def test_a_sample_finds_the_multiple(loss, multiple):
    point = an_end(loss, multiple)
    found = ending._by_sample(point)
    exact = point.objective.at_null().towards(ending._with_intercepts(point, 1e-6), 1e-6)
    assert found.value <= point.value
    assert found.value <= exact.value * 1.01
    again = point.objective.at(found.theta)
    np.testing.assert_allclose(again.value, found.value, rtol=1e-12)  # J is that of its weights


def test_a_sample_that_misses_large_rows_is_not_asked():
    point = an_end(Softmax(), 1.0, large=1e5)
    assert ending._by_sample(point) is None
    assert ending.best_multiple(point, 1e-6).value <= point.objective.at_null().value


def test_intercepts_of_rare_classes_stay():
    """By a sample that has none of their rows they would go far down."""
    o = an_end(Softmax(), 1.0).objective
    z, y, c = np.zeros((100, K)), np.repeat([0.0, 1.0], 50), np.ones(100)
    np.testing.assert_array_equal(ending._shift_of(o, z, y, c), np.zeros(K))
