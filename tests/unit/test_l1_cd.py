"""L1 and elastic net by working sets: against references that share nothing with the solver."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from objectives import arrays_of, over

import beeline
from beeline.data.core.arrays import from_arrays
from beeline.exceptions import ConvergenceWarning, ParameterError
from beeline.losses import (
    Hinge,
    LeastSquares,
    Logistic,
    ScalarLoss,
    SmoothedHinge,
    SquaredEpsilonInsensitive,
    SquaredHinge,
)
from beeline.objective import Objective, tangent_bound
from beeline.regularizers import L1, L2, ElasticNet
from beeline.solvers.auto import choose_solver
from beeline.solvers.base import Status
from beeline.solvers.l1.l1_cd import L1CD, strength_max

LOSSES = [Logistic(), SquaredHinge(), LeastSquares(), SquaredEpsilonInsensitive(0.2), SmoothedHinge(0.5)]
INTERCEPTS = ["free", "regularized", "none"]


class LogCosh(ScalarLoss):
    """A loss of one's own: no compiled form, no conjugate."""

    name = "log_cosh"
    labels = "real"

    def value_and_grad(self, z, y):
        r = z - y
        return np.logaddexp(r, -r) - np.log(2), np.tanh(r)

    def curvature(self, z, y):
        return 1 - np.tanh(z - y) ** 2


def problem(loss, regularizer=None, *, m=60, d=25, density=0.4, strength=1.0, intercept="free", seed=0, **settings):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, d)) * (rng.random((m, d)) < density)
    y = X[:, : min(d, 5)] @ rng.normal(size=min(d, 5)) + 0.5 + 0.5 * rng.normal(size=m)
    if loss.labels == "binary":
        y = np.where(y > 0, 1.0, -1.0)
    costs = rng.uniform(0.2, 2, m)
    return Objective.of(from_arrays(X), y, costs, loss, regularizer or L1(), strength, intercept, **settings)


def reference(objective):
    """An upper bound of min J within about 1e-10: w = p − n with p, n ≥ 0 makes J smooth; L-BFGS-B from SciPy."""
    o, n = objective, objective.n_regularized
    X, y, c = arrays_of(o)
    X = X.astype(np.float64)
    matrix = np.column_stack([X, np.ones(len(X))]) if o.has_intercept else X
    l1, l2 = o.strength * o.regularizer.l1, o.strength * o.regularizer.l2

    def value_and_gradient(v):
        p, q = v[:n], v[n : 2 * n]
        theta = np.concatenate([p - q, v[2 * n :]])
        values, slopes = o.loss.value_and_grad(matrix @ theta, y)
        gradient = matrix.T @ (c * slopes)
        smooth = gradient[:n] + l2 * (p - q)
        total = l1 * (p + q).sum() + 0.5 * l2 * ((p - q) ** 2).sum() + c @ values
        return total, np.concatenate([smooth + l1, l1 - smooth, gradient[n:]])

    bounds = [(0, None)] * (2 * n) + [(None, None)] * (matrix.shape[1] - n)
    best = scipy.optimize.minimize(
        value_and_gradient,
        np.zeros(len(bounds)),
        jac=True,
        method="L-BFGS-B",
        bounds=bounds,
        options={"maxiter": 20000, "maxfun": 100000, "ftol": 1e-16, "gtol": 1e-11, "maxcor": 50},
    )
    return float(best.fun)


def check(objective, tol=1e-9, **settings):
    """The solver's result, after holding it against the reference."""
    steps = []
    result = L1CD(tol=tol, **settings).solve(objective, callback=steps.append)
    optimum = reference(objective)
    scale = abs(optimum)
    assert result.status is Status.CONVERGED
    assert result.gap <= tol
    assert result.objective <= optimum + 1e-9 * scale
    assert all(step.bound <= optimum + 1e-12 * scale for step in steps)
    assert result.objective == pytest.approx(objective.at(result.theta).value, rel=1e-12)
    return result


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
@pytest.mark.parametrize("regularizer", [L1(), ElasticNet(0.6), ElasticNet(0.99)], ids=repr)
def test_reaches_the_reference(loss, regularizer, intercept):
    check(problem(loss, regularizer, intercept=intercept))


@pytest.mark.parametrize(("m", "d"), [(30, 80), (200, 8), (40, 40), (5, 1), (1, 5)])
@pytest.mark.parametrize("loss", [Logistic(), LeastSquares()], ids=lambda loss: loss.name)
def test_any_shape(loss, m, d):
    check(problem(loss, m=m, d=d, strength=0.5, seed=3), tol=1e-8)


@pytest.mark.parametrize("strength", [1e-2, 0.1, 10.0])
def test_any_strength(strength):
    check(problem(Logistic(), m=100, d=30, strength=strength, seed=5), tol=1e-8)


def test_a_loss_of_ones_own_without_a_conjugate():
    check(problem(LogCosh(), strength=2.0), tol=1e-7)


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_above_the_largest_strength_one_pass_finds_zero(loss, intercept):
    objective = problem(loss, ElasticNet(0.7), intercept=intercept)
    largest = strength_max(objective)
    above = L1CD(tol=1e-12).solve(replace(objective, strength=largest * (1 + 1e-9)))
    below = L1CD(tol=1e-9).solve(replace(objective, strength=largest * 0.98))
    n = objective.n_regularized
    assert not above.theta[:n].any()
    assert above.passes == 1
    assert below.theta[:n].any()


@pytest.mark.parametrize("alpha", [0.02, 0.3])
def test_lasso_and_elastic_net_agree_with_scikit_learn(alpha):
    from sklearn.linear_model import ElasticNet as TheirNet
    from sklearn.linear_model import Lasso

    objective = problem(LeastSquares(), L1(), m=80, d=30)
    objective = over(objective, costs=np.full(80, 1 / 80)).with_strength(alpha)
    X, y, _ = arrays_of(objective)
    for theirs, ours in ((Lasso, L1()), (TheirNet, ElasticNet(0.5))):
        model = theirs(alpha=alpha, tol=1e-12, max_iter=100000).fit(X, y)
        w, b = objective.split(L1CD(tol=1e-12).solve(replace(objective, regularizer=ours)).theta)
        np.testing.assert_allclose(w, model.coef_, atol=1e-6)
        assert b == pytest.approx(model.intercept_, abs=1e-6)


@pytest.mark.parametrize("penalty", ["l1", "elasticnet"])
def test_logistic_regression_agrees_with_scikit_learn(penalty):
    from sklearn.linear_model import LogisticRegression

    ratio = 1.0 if penalty == "l1" else 0.5
    objective = problem(Logistic(), ElasticNet(ratio), m=80, d=20)
    objective = over(objective, costs=np.full(80, 2.0))
    model = LogisticRegression(C=2.0, l1_ratio=ratio, solver="saga", tol=1e-10, max_iter=100000)
    X, y, _ = arrays_of(objective)
    model.fit(X, y)
    w, b = objective.split(L1CD(tol=1e-11).solve(objective).theta)
    np.testing.assert_allclose(w, model.coef_[0], atol=1e-4)
    assert b == pytest.approx(model.intercept_[0], abs=1e-4)


@pytest.mark.parametrize("loss", [Logistic(), SquaredHinge(), LeastSquares()], ids=lambda loss: loss.name)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_sparse_is_dense(loss, dtype, index):
    objective = problem(loss, m=200, d=60, density=0.2)
    X = arrays_of(objective)[0].astype(dtype)
    csr = scipy.sparse.csr_array(X)
    csr = scipy.sparse.csr_array((csr.data, csr.indices.astype(index), csr.indptr.astype(index)), shape=csr.shape)
    results = [L1CD(tol=1e-10).solve(over(objective, from_arrays(x))) for x in (X, csr, X.astype(np.float64))]
    for result in results[1:]:
        np.testing.assert_allclose(result.theta, results[0].theta, atol=1e-6)
        assert result.objective == pytest.approx(results[0].objective, rel=1e-9)


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
@pytest.mark.parametrize("layout", [np.asarray, scipy.sparse.csr_array])
def test_columns_and_gram_matrix_agree(loss, layout, monkeypatch):
    objective = problem(loss, ElasticNet(0.9), m=120, d=40)
    objective = over(objective, from_arrays(layout(arrays_of(objective)[0])))
    results = []
    for cost in (0.0, np.inf):
        monkeypatch.setattr("beeline.solvers.l1.l1_cd._gram_cost", lambda block, answer=cost: answer)
        results.append(L1CD(tol=1e-10).solve(objective))
    np.testing.assert_allclose(results[0].theta, results[1].theta, atol=1e-5)
    assert results[0].objective == pytest.approx(results[1].objective, rel=1e-9)


def test_weights_are_repetitions():
    objective = problem(Logistic(), m=50, d=15)
    counts = np.random.default_rng(1).integers(0, 4, 50)
    X, y, _ = arrays_of(objective)
    repeated = over(
        objective,
        from_arrays(np.repeat(X, counts, axis=0)),
        labels=np.repeat(y, counts),
        costs=np.ones(counts.sum()),
    )
    weighted = over(objective, costs=counts.astype(np.float64))
    a, b = (L1CD(tol=1e-11).solve(o) for o in (weighted, repeated))
    np.testing.assert_allclose(a.theta, b.theta, atol=1e-6)
    assert a.objective == pytest.approx(b.objective, rel=1e-10)


def test_zero_and_duplicate_columns():
    objective = problem(Logistic(), m=60, d=10)
    X = arrays_of(objective)[0]
    wide = np.column_stack([np.zeros(60), X, X[:, :3], np.zeros(60), X[:, 0], np.ones(60)])
    result = check(over(objective, from_arrays(wide)))
    assert result.theta[0] == result.theta[14] == 0
    assert result.objective == pytest.approx(L1CD(tol=1e-10).solve(objective).objective, rel=1e-8)


def test_one_class_only():
    objective = problem(Logistic(), m=30, d=5, intercept="none")
    result = L1CD(tol=1e-6).solve(over(objective, labels=np.ones(30)))
    assert result.status is Status.CONVERGED


def test_same_bits_for_any_number_of_threads(same_bits):
    rng = np.random.default_rng(0)
    X = scipy.sparse.random_array((20_000, 400), density=0.03, rng=rng, format="csr")
    y = np.where(X @ rng.normal(size=400) + 0.1 * rng.normal(size=20_000) > 0, 1.0, -1.0)
    objective = Objective.of(from_arrays(X), y, np.ones(20_000), Logistic(), L1(), 8.0)
    same_bits(lambda: L1CD(tol=1e-8).solve(objective).theta)


def test_solves_on_a_store(tmp_path):
    objective = problem(Logistic(), m=200, d=20)
    store = beeline.convert(arrays_of(objective)[0], tmp_path / "rows.store")
    result = L1CD(tol=1e-8).solve(over(objective, store))
    np.testing.assert_allclose(result.theta, L1CD(tol=1e-8).solve(objective).theta, atol=1e-6)


def test_a_warm_start_is_used():
    objective = problem(Logistic(), m=300, d=50, strength=2.0)
    cold = L1CD(tol=1e-8).solve(objective)
    same = L1CD(tol=1e-8).solve(objective, start=cold.theta)
    near = L1CD(tol=1e-8).solve(replace(objective, strength=1.9), start=cold.theta)
    assert same.passes == 2  # scores and gradient
    assert near.passes < L1CD(tol=1e-8).solve(replace(objective, strength=1.9)).passes


def test_the_bound_holds_anywhere():
    rng = np.random.default_rng(4)
    for loss in LOSSES:
        for regularizer in (L1(), ElasticNet(0.5)):
            objective = problem(loss, regularizer, m=40, d=10)
            optimum = reference(objective)
            for _ in range(20):
                point = objective.at(rng.normal(size=objective.size)).with_best_intercept()
                assert tangent_bound(point) <= optimum + 1e-12 * abs(optimum)


def test_the_pass_limit_warns_and_keeps_the_best():
    objective = problem(Logistic(), m=100, d=30, strength=0.01)
    with pytest.warns(ConvergenceWarning, match="l1_cd reached its pass limit"):
        result = L1CD(tol=1e-10, max_passes=3).solve(objective)
    assert result.objective < objective.at().value


def test_impossible_pairs_are_refused():
    for loss, regularizer, words in (
        (Hinge(), L1(), "needs a loss with a curvature"),
        (Logistic(), L2(), "needs L1, elastic net or weights that may not be negative"),
    ):
        with pytest.raises(ParameterError, match=words):
            L1CD().solve(problem(loss, regularizer))


def test_auto_takes_it():
    assert isinstance(choose_solver(problem(Logistic(), ElasticNet(0.5))), L1CD)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(2, 20),
    st.integers(1, 20),
    st.sampled_from(LOSSES),
    st.sampled_from([L1(), ElasticNet(0.3), ElasticNet(0.9)]),
    st.sampled_from(INTERCEPTS),
    st.floats(-2, 1.5),
    st.integers(0, 10**6),
)
def test_random_problems(m, d, loss, regularizer, intercept, exponent, seed):
    objective = problem(
        loss, regularizer, m=m, d=d, density=0.6, strength=10.0**exponent, intercept=intercept, seed=seed
    )
    with warnings.catch_warnings():
        # Two rows under a rounded hinge can leave the model without curvature: it may stop early, but says so.
        warnings.simplefilter("ignore", ConvergenceWarning)
        result = L1CD(tol=1e-6).solve(objective)
    optimum = reference(objective)
    if result.status is Status.CONVERGED or not isinstance(loss, SmoothedHinge):
        assert result.objective <= optimum + 2e-6 * abs(optimum) + 1e-12
    assert result.objective * (1 - result.gap) <= optimum + 1e-9 * abs(optimum) + 1e-12
