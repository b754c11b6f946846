"""The estimators of single losses against scikit-learn's, and against SciPy where it has none."""

import numpy as np
import pytest
import scipy.optimize
from numpy.testing import assert_allclose
from sklearn import linear_model as peers

import beeline
from beeline import (
    CostSensitiveClassifier,
    GammaRegressor,
    HuberRegressor,
    LinearModel,
    LinearSVC,
    MultiTaskRegressor,
    NoveltyDetector,
    PoissonRegressor,
    QuantileRegressor,
    Ridge,
    RidgeClassifier,
    TweedieRegressor,
)
from beeline.exceptions import LabelError, ParameterError
from beeline.losses import MulticlassMargin, ScaledMulticlassMargin

RANDOM = np.random.default_rng(4)
X = RANDOM.normal(size=(120, 5))
Z = X @ RANDOM.normal(size=5) + 0.7 * RANDOM.normal(size=120) + 1.5
COUNTS = RANDOM.poisson(np.exp(0.4 * Z)).astype(float)
AMOUNTS = np.exp(0.4 * Z)
WEIGHTS = RANDOM.uniform(0.5, 2, size=120)
EXACT = {"tol": 1e-10, "max_iter": 20_000}


def objective(model, y, loss, l1, l2):
    """alpha·Ω + the weighted mean of the loss of scores."""
    z = X @ model.coef_ + model.intercept_
    return (
        np.average(loss(z, y), weights=WEIGHTS) + l1 * np.abs(model.coef_).sum() + 0.5 * l2 * model.coef_ @ model.coef_
    )


def pinball(tau):
    return lambda z, y: np.maximum(tau * (y - z), (1 - tau) * (z - y))


@pytest.mark.filterwarnings("ignore:the model is hardly better:beeline.exceptions.ModelWarning")  # as alpha asks
@pytest.mark.parametrize("tau", [0.1, 0.5, 0.8])
@pytest.mark.parametrize("alpha", [0.003, 0.1])
def test_quantiles(tau, alpha):
    ours = QuantileRegressor(quantile=tau, alpha=alpha, tol=1e-8).fit(X, Z, WEIGHTS)
    theirs = peers.QuantileRegressor(quantile=tau, alpha=alpha).fit(X, Z, WEIGHTS)
    mine, best = (objective(model, Z, pinball(tau), alpha, 0) for model in (ours, theirs))
    assert mine == pytest.approx(best, rel=1e-6)
    assert np.average(ours.predict(X) > Z - 1e-9, weights=WEIGHTS) == pytest.approx(tau, abs=0.1)


@pytest.mark.parametrize(
    ("ours", "theirs", "y"),
    [
        (PoissonRegressor(alpha=0.1, tol=1e-12), peers.PoissonRegressor(alpha=0.1, **EXACT), COUNTS),
        (GammaRegressor(alpha=0.1, tol=1e-12), peers.GammaRegressor(alpha=0.1, **EXACT), AMOUNTS),
        (TweedieRegressor(alpha=0.1, tol=1e-12), peers.TweedieRegressor(power=1.5, alpha=0.1, **EXACT), COUNTS),
        (TweedieRegressor(power=1, alpha=0.1, tol=1e-12), peers.PoissonRegressor(alpha=0.1, **EXACT), COUNTS),
        (TweedieRegressor(power=2, alpha=0.1, tol=1e-12), peers.GammaRegressor(alpha=0.1, **EXACT), AMOUNTS),
    ],
    ids=lambda x: type(x).__name__,
)
def test_rates(ours, theirs, y):
    ours.fit(X, y, WEIGHTS)
    theirs.fit(X, y, WEIGHTS)
    assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-5)
    assert ours.score(X, y, WEIGHTS) == pytest.approx(theirs.score(X, y, WEIGHTS), rel=1e-5)
    loss = ours._loss().value_and_grad
    mine, best = (objective(model, y, lambda z, y: loss(z, y)[0], 0, 0.1) for model in (ours, theirs))
    assert mine == pytest.approx(best, rel=1e-6)
    assert mine <= best * (1 + 1e-9)


def test_huber_at_the_scale_that_scikit_learn_finds():
    y = Z + np.where(np.arange(120) % 10 == 0, 8.0, 0.0)
    theirs = peers.HuberRegressor(epsilon=1.5, alpha=3.0, tol=1e-9, max_iter=10_000).fit(X, y, WEIGHTS)
    scale = theirs.scale_
    ours = HuberRegressor(delta=1.5 * scale, alpha=3.0 * scale / WEIGHTS.sum(), tol=1e-12).fit(X, y, WEIGHTS)
    assert_allclose(ours.coef_, theirs.coef_, rtol=1e-5, atol=1e-6)
    assert ours.intercept_ == pytest.approx(theirs.intercept_, rel=1e-5)


def test_several_targets():
    Y = X @ RANDOM.normal(size=(5, 3)) + RANDOM.normal(size=(120, 3)) + 1
    M = np.array([[2, 1, 0], [1, 3, 0.5], [0, 0.5, 1]])

    def whole(theta):
        W, b = theta[:15].reshape(5, 3), theta[15:]
        R = X @ W + b - Y
        return 0.5 * np.average(np.einsum("ij,jk,ik->i", R, M, R), weights=WEIGHTS) + 0.05 * np.sum(W**2)

    ours = MultiTaskRegressor(M=M, alpha=0.1, tol=1e-12).fit(X, Y, WEIGHTS)
    best = scipy.optimize.minimize(whole, np.zeros(18), method="BFGS", options={"gtol": 1e-9})
    mine = whole(np.append(ours.coef_.T.ravel(), ours.intercept_))
    assert mine == pytest.approx(best.fun, rel=1e-6)
    assert ours.coef_.shape == (3, 5)
    assert 0.5 < ours.score(X, Y) < 1
    each = MultiTaskRegressor(alpha=0.1, tol=1e-12).fit(X, Y, WEIGHTS)
    ridge = peers.Ridge(alpha=0.1 * WEIGHTS.sum()).fit(X, Y, WEIGHTS)
    assert_allclose(each.predict(X), ridge.predict(X), rtol=1e-6, atol=1e-8)
    with pytest.raises(ParameterError, match="the metric is a matrix of 3 × 3 numbers, but the labels have 2"):
        MultiTaskRegressor(M=M).fit(X, Y[:, :2])


def test_novelty():
    rows = np.abs(X) + 0.5
    ours = NoveltyDetector(C=0.01, tol=1e-10).fit(rows)

    def whole(parts):  # the hinge as a sum of slacks
        return 0.5 * parts[:5] @ parts[:5] + 0.01 * parts[5:].sum()

    slack = {"type": "ineq", "fun": lambda p: rows @ p[:5] + p[5:] - 1}
    bounds = [(None, None)] * 5 + [(0, None)] * 120
    begin = np.append(np.zeros(5), np.ones(120))
    best = scipy.optimize.minimize(whole, begin, method="SLSQP", bounds=bounds, constraints=slack, tol=1e-12)
    mine = 0.5 * ours.coef_ @ ours.coef_ + 0.01 * np.maximum(1 - rows @ ours.coef_, 0).sum()
    assert mine == pytest.approx(best.fun, rel=1e-6)
    assert set(ours.predict(rows)) == {-1, 1}
    assert_allclose(ours.score_samples(rows), rows @ ours.coef_, rtol=1e-12)
    assert (ours.predict(rows) == np.where(rows @ ours.coef_ >= ours.offset_, 1, -1)).all()
    assert (ours.fit_predict(rows, np.full(120, np.nan)) == ours.predict(rows)).all()  # labels are not looked at
    assert not hasattr(ours, "score")
    with pytest.raises(ParameterError, match="fit_intercept=True would satisfy every row"):
        NoveltyDetector(fit_intercept=True).fit(rows)


@pytest.mark.parametrize(("rescaling", "kind"), [("margin", MulticlassMargin), ("slack", ScaledMulticlassMargin)])
def test_costs_of_mistakes(rescaling, kind):
    y = np.digitize(Z, [0.5, 2.0])
    names = np.array(["a", "b", "c"])[y]
    costs = np.array([[0, 1, 1], [1, 0, 1], [20, 20, 0.0]])
    ours = CostSensitiveClassifier(costs, rescaling=rescaling, tol=1e-7, max_passes=5000).fit(X, names, WEIGHTS)
    same = LinearModel(kind(costs), tol=1e-7, max_passes=5000).fit(X, names, WEIGHTS)
    assert_allclose(ours.decision_function(X), same.decision_function(X), rtol=1e-4, atol=1e-4)
    plain = CostSensitiveClassifier(rescaling=rescaling, tol=1e-7, max_passes=5000).fit(X, names, WEIGHTS)
    svm = LinearSVC(loss="hinge", multi_class="crammer_singer", tol=1e-7, max_passes=5000).fit(X, names, WEIGHTS)
    assert_allclose(plain.decision_function(X), svm.decision_function(X), rtol=1e-4, atol=1e-4)

    def mean_cost(model):
        return costs[y, np.searchsorted(["a", "b", "c"], model.predict(X))].mean()

    assert mean_cost(ours) < mean_cost(plain)
    with pytest.raises(ParameterError, match="matrix of 2 × 2 numbers, but there are 3 classes"):
        CostSensitiveClassifier([[0, 1], [1, 0]]).fit(X, names)
    with pytest.raises(ParameterError, match="rescaling must be one of margin, slack"):
        CostSensitiveClassifier(rescaling="loss").fit(X, names)


@pytest.mark.parametrize(
    ("estimator", "y"),
    [
        (QuantileRegressor(quantile=0.3, alpha="auto", cv=3), Z),
        (HuberRegressor(alpha="auto", cv=3), Z),
        (PoissonRegressor(alpha="auto", cv=3), COUNTS),
        (GammaRegressor(alpha="auto", cv=3), AMOUNTS),
        (TweedieRegressor(alpha="auto", cv=3), COUNTS),
        (MultiTaskRegressor(alpha="auto", cv=3), np.column_stack([Z, Z**2])),
        (NoveltyDetector(C="auto", cv=3), None),
        (CostSensitiveClassifier([[0, 5], [1, 0]], C="auto", cv=3), Z > 1.5),
    ],
    ids=lambda x: type(x).__name__,
)
@pytest.mark.filterwarnings("ignore:at no C:beeline.exceptions.ModelWarning")  # where there is no novelty
def test_searches(estimator, y):
    estimator.fit(X, y)
    found = getattr(estimator, "alpha_", None) or estimator.C_
    assert 0 < found < np.inf
    assert estimator.selection_.metric == ("rmse" if isinstance(estimator, HuberRegressor) else "loss")


@pytest.mark.parametrize(
    ("estimator", "y", "words"),
    [
        (PoissonRegressor(), COUNTS - 1, "must be finite numbers that are not negative"),
        (GammaRegressor(), COUNTS, "must be positive and finite"),
        (PoissonRegressor(alpha=0), COUNTS, "take a small one such as 1e-8"),
        (QuantileRegressor(quantile=1.0), Z, "quantile must lie between 0 and 1, not 1.0"),
        (TweedieRegressor(power=3), COUNTS, "power must lie between 1 and 2, where"),
        (QuantileRegressor(quantile="0.5"), Z, "quantile must be a number, not '0.5'"),
        (HuberRegressor(delta=-1.0), Z, "delta"),
    ],
    ids=lambda x: type(x).__name__,
)
def test_what_cannot_be_is_refused(estimator, y, words):
    with pytest.raises((LabelError, ParameterError), match=words):
        estimator.fit(X, y)


def test_every_estimator_is_at_hand():
    for name in beeline.estimators.__all__:
        assert getattr(beeline, name) is getattr(beeline.estimators, name)


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weighted"])
@pytest.mark.parametrize("alpha", [0.01, 1.0, 300.0])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_ridge_regression(alpha, fit_intercept, weights):
    """alpha is beside a sum, as scikit-learn has it, whatever the number and the weights of rows are."""
    ours = Ridge(alpha, fit_intercept=fit_intercept, tol=1e-13).fit(X, Z, weights)
    theirs = peers.Ridge(alpha, fit_intercept=fit_intercept).fit(X, Z, weights)
    assert_allclose(ours.coef_, theirs.coef_, rtol=1e-8, atol=1e-10)
    assert_allclose(ours.intercept_, theirs.intercept_, rtol=1e-8, atol=1e-10)
    assert ours.alpha_ == pytest.approx(alpha)


@pytest.mark.parametrize(("class_weight", "weights"), [(None, WEIGHTS), ({0: 3.0}, WEIGHTS), ("balanced", None)])
@pytest.mark.parametrize("classes", [2, 3])
def test_ridge_classification(classes, class_weight, weights):
    y = np.digitize(Z, [1.5] if classes == 2 else [0.8, 2.0])
    ours = RidgeClassifier(2.0, class_weight=class_weight, tol=1e-13).fit(X, y, weights)
    theirs = peers.RidgeClassifier(2.0, class_weight=class_weight).fit(X, y, weights)
    assert_allclose(ours.coef_, np.atleast_2d(theirs.coef_), rtol=1e-7, atol=1e-10)
    assert_allclose(ours.decision_function(X), theirs.decision_function(X), rtol=1e-7, atol=1e-9)
    assert (ours.predict(X) == theirs.predict(X)).all()


def test_ridge_searches_for_alpha():
    found = RidgeClassifier("auto").fit(X, Z > 1.5)
    assert found.alpha_ == pytest.approx(1 / found.selection_.best_C)
    assert found.selection_.metric == "accuracy"
    with pytest.raises(ParameterError, match=r"alpha must be positive and finite, or 'auto', not 0; .* such as 1e-8"):
        Ridge(0).fit(X, Z)
