"""Rows that lie in another order than their data set: what goes in and comes out has an entry a row of the data set."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from beeline import ArrayDataset, from_arrays
from beeline.engines import Threads
from beeline.engines.verbs import columns
from beeline.losses import LOSSES
from beeline.objective import Objective
from beeline.regularizers import L1, L2
from beeline.solvers import SOLVERS
from beeline.solvers.base import Status

RANDOM = np.random.default_rng(5)
N = 120
X = RANDOM.normal(size=(N, 4))
ORDER = RANDOM.permutation(N)
COSTS = RANDOM.uniform(0.5, 2.0, N)
BINARY = np.where(X[:, 0] + 0.7 * RANDOM.normal(size=N) > 0, 1.0, -1.0)
CASES = {
    "newton": ("logistic", BINARY, 1),
    "smoothed_newton": ("hinge", BINARY, 1),
    "dual_cd": ("hinge", BINARY, 1),
    "class_dual_cd": ("crammer_singer", np.digitize(X[:, 0], [-0.5, 0.5]).astype(float), 3),
    "l1_cd": ("logistic", BINARY, 1),
    "interior_point": ("quantile", X[:, 1] + X[:, 2], 1),
    "relaxation": ("ramp", BINARY, 1),
    "lbfgs": ("logistic", BINARY, 1),
    "bundle": ("hinge", BINARY, 1),
    "block_cd": ("squared_hinge", BINARY, 1),
    "sgd": ("hinge", BINARY, 1),
}


class Ordered(ArrayDataset):
    ordered = True

    def order(self, start=0, stop=None):
        return ORDER[start:stop]


def objective(name, *, ordered, n_shards=None):
    loss, labels, outputs = CASES[name]
    data = from_arrays(X)
    if ordered:
        data = Ordered(data.block.gather(ORDER))
    omega = L1() if name == "l1_cd" else L2()
    engine = Threads(n_shards=n_shards)
    return Objective.of(data, labels, COSTS, LOSSES[loss](), omega, 1.0, "free", n_outputs=outputs, engine=engine)


def test_every_solver_is_here():
    """But for those that ask for an order themselves."""
    assert set(CASES) == {name for name, kind in SOLVERS.items() if kind.needs.rows != "index"}


@pytest.mark.parametrize("n_shards", [None, 3])
@pytest.mark.parametrize("name", CASES)
def test_the_order_of_rows_does_not_matter(name, n_shards):
    """And a state belongs to the data set: either takes what the other has left."""
    plain, ordered = objective(name, ordered=False), objective(name, ordered=True, n_shards=n_shards)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        one, other = (SOLVERS[name](tol=1e-5).run(o) for o in (plain, ordered))
        again = SOLVERS[name](tol=1e-5).run(ordered, one.state)
    near = 3e-5 if SOLVERS[name].certifies else 0.03
    assert other.objective == pytest.approx(one.objective, rel=near)
    assert again.objective == pytest.approx(one.objective, rel=near)
    for column in one.state.arrays:
        z = plain.rows.gather(plain.at(one.theta).z)
        ours, theirs = one.state.arrays[column], other.state.arrays[column]
        clear = np.abs(np.abs(z) - 1) > 1e-2  # whose dual variables the optimum says
        if column == "dual" and CASES[name][0] == "hinge":
            assert np.allclose(ours[clear], theirs[clear], atol=1e-2)
        assert again.passes <= one.passes + 3


def test_columns_go_there_and_back():
    rows = objective("newton", ordered=True, n_shards=3).rows
    column = np.arange(N, dtype=float)
    vector = rows.scatter(column)
    assert_array_equal(rows.gather(vector), column)
    assert_array_equal(rows.gather_local(vector), column[ORDER])
    assert_array_equal(rows.read(10, 20).values, X[ORDER[10:20]])
    assert_array_equal(rows.gather(rows.scatter_local(column[ORDER])), column)
    assert rows.sum(columns.total, vector).value[0] == column.sum()


def test_outliers_are_named_as_the_data_set_has_them():
    results = [SOLVERS["relaxation"]().run(objective("relaxation", ordered=ordered)) for ordered in (False, True)]
    assert all(result.status is Status.UNPROVEN for result in results)
    one, other = (result.state.arrays["outside"] for result in results)
    assert one.any()
    assert_array_equal(one, other)
