"""Newton's method preconditioned by the Hessian of all outputs together."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse
from objectives import over

from beeline import LinearModel, convert
from beeline.data.core.arrays import from_arrays
from beeline.losses import CrammerSinger, Logistic, Softmax, TreeLogistic
from beeline.regularizers import L2
from beeline.solvers.newton import preconditioning
from beeline.solvers.newton.newton import Newton
from beeline.solvers.newton.preconditioning import cost_of_whole, whole_of
from beeline.training.task import Task

RNG = np.random.default_rng(3)
X = (RNG.normal(size=(240, 5)) + 0.4) * (RNG.random((240, 5)) < 0.7)
Y = (X @ RNG.normal(size=(5, 4)) + RNG.gumbel(size=(240, 4))).argmax(axis=1)

TREE = TreeLogistic([("r", "a"), ("r", 1), ("a", 0), ("a", "b"), ("b", 2), ("b", 3)]).with_classes(range(4))
LOSSES = (Softmax(), TREE, CrammerSinger().smoothed(1.0))


def objective(loss, intercept="free"):
    o = Task(from_arrays(X), Y.astype(float), 4, Softmax(), L2(), C=30.0, intercept=intercept).objectives()[0]
    return replace(o, loss=loss, n_outputs=loss.n_scores(4))


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
@pytest.mark.parametrize("intercept", ["free", "regularized", "none"])
def test_it_is_the_hessian(loss, intercept):
    o = objective(loss, intercept)
    point = o.at(0.3 * np.random.default_rng(0).normal(size=o.size))
    hessian = np.array([point.hessian_product(row) for row in np.eye(o.size)])
    np.testing.assert_allclose(o.joint_hessian(point.curvatures), hessian, atol=1e-9)
    hessian[np.arange(o.n_regularized, o.size), np.arange(o.n_regularized, o.size)] += 1e-3
    r = hessian @ np.random.default_rng(1).normal(size=o.size)
    p, rho = whole_of(point).start(r)
    np.testing.assert_allclose(hessian @ p, r, atol=1e-6)
    assert rho == pytest.approx(float(r @ p))


@pytest.mark.parametrize("loss", LOSSES[:2], ids=lambda loss: loss.name)
def test_rows_on_disk_and_sparse_ones_have_the_same(loss, tmp_path):
    o = objective(loss)
    h = o.at(np.ones(o.size)).curvatures
    expected = o.joint_hessian(h)
    for data in (convert(X, tmp_path / "rows.store"), from_arrays(scipy.sparse.csr_array(X))):
        other = over(o, data)
        found = other.joint_hessian(other.at(np.ones(o.size)).curvatures)
        np.testing.assert_allclose(found, expected, atol=1e-9)


@pytest.mark.parametrize("loss", LOSSES[:2], ids=lambda loss: loss.name)
@pytest.mark.parametrize("intercept", ["free", "regularized", "none"])
def test_a_direction_takes_one_product(loss, intercept, monkeypatch):
    o = objective(loss, intercept)
    usual = Newton(tol=1e-10).solve(o)
    monkeypatch.setattr(preconditioning, "cost_of_whole", lambda objective: 0.0)
    steps = []
    result = Newton(tol=1e-10).solve(o, callback=steps.append)  # a kernel would take all steps at once
    assert result.gap <= 1e-10
    assert result.objective == pytest.approx(usual.objective, rel=1e-10)
    assert result.passes <= 6 * len(steps)


def test_it_is_for_few_weights_of_outputs_that_are_coupled():
    o = objective(Softmax())
    assert np.isfinite(cost_of_whole(o))
    assert cost_of_whole(over(o, from_arrays(scipy.sparse.csr_array((240, 600))))) == np.inf
    assert cost_of_whole(Task(from_arrays(X), (Y > 1).astype(float), 2, Logistic(), L2()).objectives()[0]) == np.inf


def test_features_that_go_together_take_no_more_than_it_costs():
    """Copies of a few features, of other scales: what one direction after the other needs products for."""
    random = np.random.default_rng(0)
    base = random.normal(size=(400, 4))
    rows = np.hstack([base, base @ random.normal(size=(4, 8)) + 0.01 * random.normal(size=(400, 8))])
    y = (base @ random.normal(size=(4, 4)) + random.gumbel(size=(400, 4))).argmax(axis=1)
    for loss in (Softmax(), TreeLogistic({"a": [0, 1], "b": [2, {"c": [3]}]})):
        report = LinearModel(loss, C=1e3, tol=1e-6, max_passes=400).fit(rows, y).report_
        assert report.status == "converged"
