"""How many numbers a row a training keeps, beside the data: with millions of rows they are as large as the data."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from beeline.data.core.arrays import from_arrays
from beeline.losses import LOSSES
from beeline.objective import Objective
from beeline.regularizers import L2
from beeline.solvers.auto import SOLVERS
from beeline.solvers.base import Status

N = 200_000


@pytest.mark.parametrize(
    ("solver", "loss", "most"),
    [
        ("newton", "squared_hinge", 3),
        ("newton", "logistic", 3),
        ("lbfgs", "logistic", 4),
        ("smoothed_newton", "hinge", 6),
    ],
)
def test_no_more_at_the_end_than_on_the_way(solver, loss, most):
    """Scores, slopes, curvatures: where J is evaluated anew at the end, those of the last point go first."""
    random = np.random.default_rng(0)
    X = random.normal(size=(N, 8))
    y = np.where(X[:, 0] + random.normal(size=N) > 0, 1.0, -1.0)
    o = Objective.of(from_arrays(X), y, np.ones(N), LOSSES[loss](), L2(), 1.0, "none")
    assert o.null.value > 0  # so that it is known
    tracemalloc.start()
    try:
        result = SOLVERS[solver](1e-4, 100, 0).run(o)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert result.status is Status.CONVERGED
    assert peak < (most + 0.5) * 8 * N
