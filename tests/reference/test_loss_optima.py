"""Every loss of the registry against an independent solver: J is what the formula says, and its minimum is reached."""

from functools import cache

import numpy as np
import pytest
import scipy.sparse
from loss_optima import optimum
from sklearn.linear_model import GammaRegressor, PoissonRegressor, TweedieRegressor

from beeline import LinearModel
from beeline.data.core.arrays import from_arrays
from beeline.losses import LOSSES, Gamma, Poisson, Tweedie, VectorLoss
from beeline.objective import Objective
from beeline.regularizers import L1, L2, ElasticNet
from beeline.solvers.auto import SOLVERS
from beeline.solvers.base import Status

N, D, K = 40, 4, 3
COSTS = [[0, 1, 3], [1, 0, 0.5], [2, 1.5, 0]]
SETTINGS = {
    "quantile": {"tau": 0.3},
    "soft_quantile": {"tau": 0.3, "width": 0.2},
    "expectile": {"tau": 0.8},
    "huber": {"delta": 0.6},
    "pseudo_huber": {"delta": 0.6},
    "tweedie": {"power": 1.4},
    "novelty": {"rho": 1.5},
    "multiclass_margin": {"costs": COSTS},
    "scaled_multiclass_margin": {"costs": COSTS},
    "softmax_margin": {"costs": COSTS},
    "multivariate_squared": {"metric": [[2, 1, 0], [1, 3, 0.5], [0, 0.5, 1]]},
}
REGULARIZERS = (L2(), L1(), ElasticNet(0.4))
NONNEGATIVE = tuple(regularizer.without_negative_weights() for regularizer in REGULARIZERS)
# Zero weights satisfy a perceptron, and these rows ask novelty for positive ones by themselves.
NOT_RESTRICTED = ("perceptron", "squared_perceptron", "multiclass_perceptron", "novelty")
# Those of queries and of all rows are in test_query_optima.py and test_two_class_optima.py, those of levels, which own
# thresholds, in test_ordinal_losses.py.
EVERY = [
    kind(**SETTINGS.get(name, {}))
    for name, kind in LOSSES.items()
    if kind.convex and kind.scope == "row" and kind.labels != "levels"
]


def labels(loss, X, random):
    z = X @ random.normal(size=X.shape[1]) + 0.5 * random.normal(size=len(X)) - 0.3
    several = X @ random.normal(size=(X.shape[1], K)) + random.gumbel(size=(len(X), K))
    special = {
        "poisson": random.poisson(np.exp(0.5 * z)).astype(float),
        "gamma": np.exp(0.5 * z),
        "tweedie": np.exp(0.5 * z) * (random.random(len(X)) < 0.7),
        "cross_entropy": 1 / (1 + np.exp(-z)),
    }
    kinds = {
        "binary": np.where(z > 0, 1.0, -1.0),
        "classes": several.argmax(axis=1).astype(float),
        "sets": np.where(several > 0.5, 1.0, -1.0),
        "vectors": several,
    }
    return special.get(loss.name, kinds.get(loss.labels, z))


def problem(loss, regularizer):
    random = np.random.default_rng(2)
    X = (random.normal(size=(N, D)) + 0.5) * (random.random((N, D)) < 0.7)
    y, c = labels(loss, X, random), random.uniform(0.5, 1.5, size=N)
    c[3:5] = 0
    intercept = "regularized" if loss.labels == "none" else "free"
    outputs = K if isinstance(loss, VectorLoss) else 1
    return Objective.of(
        from_arrays(scipy.sparse.csr_array(X)), y, c, loss, regularizer, 1.0, intercept, n_outputs=outputs
    )


@cache
def solved(loss, regularizer):
    """(the problem, min J, where it is)."""
    o = problem(loss, regularizer)
    return o, *optimum(o)


@pytest.mark.parametrize("loss", EVERY, ids=lambda loss: loss.name)
def test_the_objective_has_its_minimum_where_the_formula_has_it(loss):
    o, best, theta = solved(loss, REGULARIZERS[0])
    assert o.at(theta).value == pytest.approx(best, rel=1e-7, abs=1e-7)
    random = np.random.default_rng(1)
    for size in (1e-3, 0.03, 1.0):
        for _ in range(5):
            assert o.at(theta + size * random.normal(size=o.size)).value >= best - 1e-7 * (1 + best)


def pairs():
    """Every solver with every loss and regularizer that it takes."""
    for loss in EVERY:
        for regularizer in REGULARIZERS:
            o = problem(loss, regularizer)
            for name, solver in SOLVERS.items():
                if solver.certifies and solver(1e-7, 1, 0).refusal(o) is None:
                    yield pytest.param(name, loss, regularizer, id=f"{loss.name}-{regularizer.name}-{name}")


@pytest.mark.parametrize(("solver", "loss", "regularizer"), list(pairs()))
def test_solvers_reach_the_minimum(solver, loss, regularizer):
    o, best, _ = solved(loss, regularizer)
    result = SOLVERS[solver](1e-7, 50_000, 0).solve(o)
    assert result.status is Status.CONVERGED
    assert result.objective == pytest.approx(best, rel=1e-6, abs=1e-6)
    assert result.objective * (1 - result.gap) <= best + 1e-7 * (1 + best)  # what is certified is true


@pytest.mark.parametrize("loss", EVERY, ids=lambda loss: loss.name)
@pytest.mark.parametrize(
    "regularizer",
    [NONNEGATIVE[0], *(pytest.param(omega, marks=pytest.mark.slow) for omega in NONNEGATIVE[1:])],
    ids=lambda regularizer: regularizer.name,
)
def test_nonnegative_weights_reach_the_minimum(loss, regularizer):
    o, best, _ = solved(loss, regularizer)
    takes = [name for name, solver in SOLVERS.items() if solver(1e-7, 1, 0).refusal(o) is None]
    assert takes[-1] == "bundle"
    for name in takes:
        result = SOLVERS[name](1e-7, 50_000, 0).solve(o)
        assert result.status is Status.CONVERGED
        assert result.theta[: D * o.n_outputs].min() >= 0
        assert result.objective == pytest.approx(best, rel=1e-6, abs=1e-6)
        assert result.bound <= best + 1e-7 * (1 + best)
    free = solved(loss, REGULARIZERS[NONNEGATIVE.index(regularizer)])[1]
    assert free < best * (1 - 1e-3) or loss.name in NOT_RESTRICTED


@pytest.mark.parametrize(
    ("loss", "peer"),
    [
        (Poisson(), PoissonRegressor(alpha=0.1, tol=1e-10, max_iter=10_000)),
        (Gamma(), GammaRegressor(alpha=0.1, tol=1e-10, max_iter=10_000)),
        (Tweedie(1.4), TweedieRegressor(power=1.4, link="log", alpha=0.1, tol=1e-10, max_iter=10_000)),
    ],
    ids=lambda x: getattr(x, "name", ""),
)
def test_rates_are_predicted_as_by_scikit_learn(loss, peer):
    random = np.random.default_rng(3)
    X = random.normal(size=(80, 4))
    y, weights = labels(loss, X, random), random.uniform(0.5, 2, size=80)
    peer.fit(X, y, weights)
    model = LinearModel(loss, C=1 / (0.1 * weights.sum()), tol=1e-10).fit(X, y, weights)
    np.testing.assert_allclose(model.predict(X), peer.predict(X), rtol=1e-5)
    assert (model.predict(X) > 0).all()
    np.testing.assert_allclose(model.model_.decision_function(X), np.log(model.predict(X)), rtol=1e-9)
