"""The sweeps of the Crammer–Singer form against NumPy twins, and what its solver adds to them."""

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from objectives import arrays_of

from beeline.data.core.arrays import from_arrays
from beeline.exceptions import ParameterError
from beeline.kernels import ClassSweeps, RoughClassSweeps, RowArrays
from beeline.losses import CrammerSinger, Hinge, MulticlassMargin, ScaledMulticlassMargin, WestonWatkins
from beeline.objective import Objective
from beeline.regularizers import L2
from beeline.solvers.auto import choose_solver
from beeline.solvers.base import Status
from beeline.solvers.dual import class_dual_cd as crammer_singer
from beeline.solvers.dual.class_dual_cd import ClassDualCD, _Descent, balance_flows
from beeline.solvers.dual.dual_cd import DualCD

WIDTHS = (2, 3, 8, 9, 17, 31, 33, 70, 105)
every_width = pytest.mark.parametrize("k", WIDTHS)
NONE = np.zeros((0, 0))


def rows_of(X):
    if scipy.sparse.issparse(X):
        return RowArrays(X.data, X.indptr, X.indices, X.shape[1])
    return RowArrays(X, None, None, X.shape[1])


def some(n=30, d=12, k=5, seed=0, sparse=True):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, d)) * (random.random((n, d)) < 0.5)
    return (scipy.sparse.csr_array(X) if sparse else X), random.integers(0, k, size=n), random.uniform(0.2, 2, size=n)


def sweeps_of(X, y, c, k, strength=2.0, kind=ClassSweeps):
    sweeps = kind(rows_of(X), np.arange(len(y)), False, y, c, k, 0)
    sweeps.measure(np.asarray((X * X).sum(axis=1)).ravel(), np.zeros(0), 1 / strength, 0.0, 0.0)
    return sweeps


def product_of(sweeps, X, k):
    out, totals = np.empty((X.shape[1], k)), np.empty(k)
    return sweeps.product(rows_of(X), NONE, out, totals), out, totals


def nearest(v, total):
    """The nearest point of the simplex, by sorting."""
    down = np.sort(v)[::-1]
    tops = (np.cumsum(down) - total) / np.arange(1, len(v) + 1)
    return np.maximum(v - tops[np.flatnonzero(down > tops)[-1]], 0)


@every_width
def test_a_step_solves_the_row_exactly(k):
    X, y, c = some(n=1, k=k, seed=k, sparse=False)
    W0 = 0.3 * np.random.default_rng(1).normal(size=(X.shape[1], k))
    sweeps = sweeps_of(X, y, c, k)
    sweeps.start(X @ W0, 1.0)
    sweeps.refresh()
    g0 = X @ W0 + 1
    g0[0, y[0]] -= 1
    p = nearest(g0[0] * c[0], c[0])
    start = -p
    start[y[0]] += c[0]
    np.testing.assert_allclose(product_of(sweeps, X, k)[1], X.T @ start[None, :], atol=1e-12)
    g = (X @ X.T / 2.0)[0, 0] * start + 1
    g[y[0]] -= 1
    q = float(X[0] @ X[0]) / 2.0
    best = -nearest(p + g / q, c[0])
    best[y[0]] += c[0]
    sweeps.sweep()
    gain, product, totals = product_of(sweeps, X, k)
    np.testing.assert_allclose(product, X.T @ best[None, :], atol=1e-12)
    np.testing.assert_allclose(totals, best, atol=1e-12)
    assert gain == pytest.approx(best[y[0]], abs=1e-12)


def growth_of(beta, g, q):
    return beta @ g - q / 2 * (beta @ beta + beta.sum() ** 2)


@given(st.integers(2, 40), st.integers(0, 10_000), st.booleans())
def test_a_step_of_the_other_hinges_is_the_best_one(k, seed, scaled):
    """No step towards an end of the set of β, from what one sweep finds, makes the dual grow."""
    random = np.random.default_rng(seed)
    X, y, c = random.normal(size=(1, 3)), np.zeros(1, dtype=np.int64), 10 ** random.uniform(-3, 3, size=1)
    delta = np.append(0.0, random.integers(0, 4, size=k - 1) * 10 ** random.uniform(-1, 1, size=k - 1))
    sweeps = sweeps_of(X, y, c, k)
    sweeps.set_hinges(np.tile(delta, (k, 1)) if scaled else NONE)
    sweeps.sweep()
    beta, g, q = -product_of(sweeps, X, k)[2][1:], np.ones(k - 1), float(X[0] @ X[0]) / 2
    slopes = g - q * (beta + beta.sum())
    if scaled:
        used = np.divide(beta, delta[1:], out=np.zeros(k - 1), where=delta[1:] > 0)
        assert (beta >= 0).all()
        assert (beta[delta[1:] == 0] == 0).all()
        assert used.sum() <= c[0] * (1 + 1e-14)
        most = c[0] * max(0.0, (delta[1:] * slopes).max())
    else:
        assert ((beta >= 0) & (beta <= c[0])).all()
        most = c[0] * np.maximum(slopes, 0).sum()
    assert most - beta @ slopes <= 1e-10 * (growth_of(beta, g, q) + c[0])


@pytest.mark.parametrize("loss", [CrammerSinger(), MulticlassMargin(), ScaledMulticlassMargin(), WestonWatkins()])
@pytest.mark.parametrize("size", [0.0, 1e-320, 1e-170, 1e-9])
@pytest.mark.parametrize("tol", [1e-4, 1e-7])
def test_rows_that_weigh_nothing(loss, size, tol):
    random = np.random.default_rng(0)
    X = random.normal(size=(40, 5))
    X[::3] *= size
    y = random.integers(0, 3, size=40).astype(float)
    costs = 10 ** random.uniform(-3, 4, size=40)
    result = ClassDualCD(tol, 1e5).run(Objective.of(from_arrays(X), y, costs, loss, L2(), 1.0, "none", n_outputs=3))
    assert result.status is Status.CONVERGED


@every_width
@pytest.mark.parametrize("kind", [ClassSweeps, RoughClassSweeps])
@pytest.mark.parametrize("sparse", [True, False])
def test_weights_and_growth_are_those_of_the_dual(k, kind, sparse):
    X, y, c = some(n=40, d=23, k=k, sparse=sparse)
    sweeps, grown, close = sweeps_of(X, y, c, k, kind=kind), 0.0, 1e-12 if kind is ClassSweeps else 1e-5
    for _ in range(6):
        grown += sweeps.sweep()[0]
        gain, product, _ = product_of(sweeps, X, k)
        assert grown == pytest.approx(gain - np.sum(product**2) / 4, rel=close)
    weights = np.zeros_like(product)
    sweeps.average_weights(1.0, weights)
    np.testing.assert_allclose(weights, product / 2, atol=10 * close)
    z = X @ weights
    assert np.sum(weights**2) + sweeps.lagrangian(z) == pytest.approx(gain - np.sum(product**2) / 4, rel=close)


def test_both_types_of_weights_take_the_same_steps():
    X, y, c = some(n=50, d=20, k=6)
    fine, rough = sweeps_of(X, y, c, 6), sweeps_of(X, y, c, 6, kind=RoughClassSweeps)
    for _ in range(5):
        assert fine.sweep()[:2] == pytest.approx(rough.sweep()[:2], rel=1e-4)


@given(st.integers(2, 9), st.integers(0, 10_000), st.floats(0.1, 1.0))
def test_balance_takes_away_only_what_it_must(k, seed, density):
    random = np.random.default_rng(seed)
    flows = random.exponential(size=(k, k)) * (random.random((k, k)) < density)
    factors = balance_flows(flows)
    assert (factors >= 0).all()
    assert (factors <= 1).all()
    left = flows * factors
    np.fill_diagonal(left, 0)
    np.testing.assert_allclose(left.sum(axis=0), left.sum(axis=1), atol=1e-12 * (1 + flows.sum()))
    np.testing.assert_allclose((left * balance_flows(left)).sum(), left.sum(), atol=1e-12 * (1 + flows.sum()))


def objective(k, n=150, d=20, intercept="free", seed=0, cost=1.0, **settings):
    random = np.random.default_rng(seed)
    X = (random.normal(size=(n, d)) + 0.5) * (random.random((n, d)) < 0.4)
    y = (X @ random.normal(size=(d, k)) + random.gumbel(size=(n, k))).argmax(axis=1).astype(float)
    data = from_arrays(scipy.sparse.csr_array(X))
    costs = np.full(n, float(cost))
    return Objective.of(data, y, costs, CrammerSinger(), L2(), 1.0, intercept, n_outputs=k, **settings)


@pytest.mark.parametrize("k", [33, 50])
@pytest.mark.parametrize("intercept", ["free", "regularized", "none"])
@pytest.mark.parametrize("d", [20, 300])
def test_many_classes(k, intercept, d):
    """Two ways to the same optimum: classes that do not compete are left out, or all are scored in float64."""
    o = objective(k, d=d, intercept=intercept, cost=0.5)
    rough, fine = ClassDualCD(1e-5).solve(o), ClassDualCD(1e-9).solve(o)
    assert rough.status is Status.CONVERGED
    assert fine.status is Status.CONVERGED
    assert fine.objective <= rough.objective * (1 + 1e-9)
    assert rough.objective <= fine.objective * (1 + 1e-5)


@pytest.mark.parametrize("intercept", ["free", "none"])
def test_two_classes_are_the_hinge_of_their_difference(intercept):
    o = objective(2, intercept=intercept)
    result = ClassDualCD(1e-7, 1e5).solve(o)
    twin = replace_loss(o, Hinge(), np.where(arrays_of(o)[1] == 1, 1.0, -1.0), strength=0.5)
    assert result.objective == pytest.approx(DualCD(1e-7, 1e5).solve(twin).objective, rel=2e-7)
    w, _ = o.split(result.theta)
    np.testing.assert_allclose(w[:, 0], -w[:, 1], atol=1e-9)


def replace_loss(o, loss, labels, strength):
    return Objective(o.rows, o.rows.scatter(labels), o.costs, loss, o.regularizer, strength, o.intercept)


def test_free_intercepts_sum_to_zero():
    o = objective(6)
    _, b = o.split(ClassDualCD(1e-4).solve(o).theta)
    assert abs(b.sum()) <= 1e-9 * np.abs(b).max()
    assert np.abs(b).max() > 0.01


@pytest.mark.parametrize(("cost", "kinds"), [(1.0, [True]), (100.0, [True, False])])
def test_rounding_to_single_is_left_when_it_gets_no_further(cost, kinds, monkeypatch):
    seen = []

    class Noted(_Descent):
        def __init__(self, rows, objective, solver, rough):
            seen.append(rough)
            super().__init__(rows, objective, solver, rough)

    monkeypatch.setattr(crammer_singer, "_Descent", Noted)
    result = ClassDualCD(1e-5).solve(objective(5, d=300, intercept="none", cost=cost))
    assert seen == kinds
    assert result.status is Status.CONVERGED


def test_rows_that_can_hardly_be_told_apart_give_no_worse_than_nothing():
    random = np.random.default_rng(0)
    X = 1.0 + 1e-5 * random.normal(size=(200, 4))
    y = np.repeat(np.arange(4.0), 50)
    o = Objective.of(from_arrays(X), y, np.full(200, 1e4), CrammerSinger(), L2(), 1e-6, "free", n_outputs=4)
    result = ClassDualCD(1e-3, 300).run(o)
    assert result.status is Status.LIMIT
    assert result.objective <= o.at().value
    assert result.objective == pytest.approx(o.at(result.theta).value, rel=1e-12)


@pytest.mark.parametrize("intercept", ["none", "regularized"])
def test_an_estimate_of_the_bound_certifies_nothing(intercept, monkeypatch):
    o = objective(5, d=300, intercept=intercept)
    best, tol, bounds = ClassDualCD(1e-9).solve(o).objective, 1e-2, []
    honest = _Descent._lagrangian
    monkeypatch.setattr(_Descent, "_lagrangian", lambda self, point: honest(self, point) + 0.9 * tol * best)
    result = ClassDualCD(tol).solve(o, callback=lambda step: bounds.append(step.bound))
    assert result.gap <= tol
    assert result.objective <= best * (1 + tol)
    assert max(bounds) <= best * (1 + 1e-9)


def test_is_the_choice_for_its_loss_and_refuses_others():
    assert choose_solver(objective(4)).name == "class_dual_cd"
    scalar = replace_loss(objective(2), Hinge(), np.ones(150), 1.0)
    with pytest.raises(ParameterError, match=r"'class_dual_cd' is for multi-class hinges"):
        choose_solver(scalar, "class_dual_cd")
    with pytest.raises(ParameterError, match="seed must not be negative"):
        ClassDualCD(seed=-1)
