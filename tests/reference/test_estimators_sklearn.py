"""Estimators against scikit-learn's, at the same optimum."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn.linear_model as theirs
from scipy.optimize import minimize
from sklearn import svm

from beeline import ElasticNet, Lasso, LinearSVC, LinearSVR, LogisticRegression
from beeline.selection.folds import stratified_folds
from beeline.training.calibration import fit_platt

RNG = np.random.default_rng(0)
X = RNG.standard_normal((200, 6)) + 0.3
W = RNG.standard_normal((6, 3))
TWO = (X @ W[:, 0] + RNG.standard_normal(200) > 0).astype(int)
THREE = (X @ W + RNG.standard_normal((200, 3))).argmax(1)
TARGET = X @ W[:, 0] + 2 + 0.3 * RNG.standard_normal(200)
WEIGHTS = RNG.random(200) * 3


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weighted"])
class TestSameOptimum:
    def test_logistic_regression(self, weights):
        ours = LogisticRegression(C=0.7, tol=1e-10).fit(X, TWO, weights)
        peer = theirs.LogisticRegression(C=0.7, tol=1e-10, max_iter=10_000).fit(X, TWO, weights)
        np.testing.assert_allclose(ours.coef_, peer.coef_, atol=2e-4)
        np.testing.assert_allclose(ours.predict_proba(X), peer.predict_proba(X), atol=2e-4)

    @pytest.mark.parametrize("intercept", [True, False])
    def test_softmax(self, intercept, weights):
        ours = LogisticRegression(C=0.7, fit_intercept=intercept, tol=1e-12).fit(X, THREE, weights)
        peer = theirs.LogisticRegression(C=0.7, fit_intercept=intercept, tol=1e-10, max_iter=10_000)
        peer.fit(X, THREE, weights)

        def objective(model):
            z = X @ model.coef_.T + model.intercept_
            losses = np.logaddexp.reduce(z, axis=1) - z[np.arange(len(X)), THREE]
            return 0.7 * losses @ (np.ones(len(X)) if weights is None else weights) + 0.5 * np.sum(model.coef_**2)

        assert ours.report_.objective == pytest.approx(objective(ours), rel=1e-12)
        assert objective(ours) <= objective(peer) * (1 + 1e-12)
        assert objective(ours) == pytest.approx(objective(peer), rel=1e-8)
        np.testing.assert_allclose(ours.coef_, peer.coef_, atol=2e-4)
        np.testing.assert_allclose(ours.predict_proba(X), peer.predict_proba(X), atol=2e-4)
        np.testing.assert_allclose(ours.coef_.sum(axis=0), 0, atol=1e-5)

    @pytest.mark.parametrize("l1_ratio", [0.4, 1.0])
    def test_sparse_logistic_regression(self, l1_ratio, weights):
        ours = LogisticRegression(C=0.1, l1_ratio=l1_ratio, tol=1e-10).fit(X, TWO, weights)
        peer = theirs.LogisticRegression(C=0.1, l1_ratio=l1_ratio, solver="saga", tol=1e-12, max_iter=100_000)
        np.testing.assert_allclose(ours.coef_, peer.fit(X, TWO, weights).coef_, atol=2e-4)

    @pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
    @pytest.mark.parametrize("y", [TWO, THREE], ids=["two", "three"])
    def test_svm(self, loss, y, weights):
        ours = LinearSVC(C=0.5, loss=loss, fit_intercept="regularized", tol=1e-10).fit(X, y, weights)
        peer = svm.LinearSVC(C=0.5, loss=loss, dual=True, tol=1e-10, max_iter=1_000_000, random_state=0)
        np.testing.assert_allclose(ours.coef_, peer.fit(X, y, weights).coef_, atol=2e-4)

    @pytest.mark.parametrize("intercept", [False, "regularized"])
    def test_crammer_singer(self, intercept, weights):
        ours = LinearSVC(C=0.5, multi_class="crammer_singer", fit_intercept=intercept, tol=1e-10)
        peer = svm.LinearSVC(C=0.5, multi_class="crammer_singer", tol=1e-8, max_iter=1_000_000, random_state=0)
        peer.set_params(fit_intercept=bool(intercept))
        ours.fit(X, THREE, weights)
        peer.fit(X, THREE, weights)
        np.testing.assert_allclose(ours.coef_, peer.coef_, atol=2e-4)
        np.testing.assert_allclose(ours.decision_function(X), peer.decision_function(X), atol=2e-3)

    @pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared_epsilon_insensitive"])
    def test_svr(self, loss, weights):
        ours = LinearSVR(C=0.5, epsilon=0.2, loss=loss, fit_intercept="regularized", tol=1e-10).fit(X, TARGET, weights)
        peer = svm.LinearSVR(C=0.5, epsilon=0.2, loss=loss, dual=True, tol=1e-10, max_iter=1_000_000, random_state=0)
        np.testing.assert_allclose(ours.coef_, peer.fit(X, TARGET, weights).coef_, atol=2e-4)

    @pytest.mark.parametrize("alpha", [0.01, 0.3])
    def test_lasso_and_elastic_net(self, alpha, weights):
        for ours, peer in (
            (Lasso(alpha, tol=1e-12), theirs.Lasso(alpha, tol=1e-12, max_iter=100_000)),
            (ElasticNet(alpha, l1_ratio=0.3, tol=1e-12), theirs.ElasticNet(alpha, l1_ratio=0.3, tol=1e-12)),
        ):
            ours.fit(X, TARGET, weights)
            peer.fit(X, TARGET, weights)
            np.testing.assert_allclose(ours.coef_, peer.coef_, atol=1e-5)
            assert ours.intercept_ == pytest.approx(peer.intercept_, abs=1e-5)

    def test_alpha_is_c(self, weights):
        total = 200 if weights is None else weights.sum()
        by_c = LogisticRegression(C=0.3, tol=1e-10).fit(X, TWO, weights)
        alpha = 1 / (0.3 * total)
        value = minimize(_mean_logistic, np.zeros(7), args=(alpha, weights), jac=False, tol=1e-12)
        np.testing.assert_allclose(np.append(by_c.coef_, by_c.intercept_), value.x, atol=1e-3)


def _mean_logistic(theta, alpha, weights):
    margin = np.where(TWO == 1, 1, -1) * (X @ theta[:6] + theta[6])
    return alpha * 0.5 * theta[:6] @ theta[:6] + np.average(np.logaddexp(0, -margin), weights=weights)


class TestPlatt:
    @pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
    @pytest.mark.parametrize("weighted", [False, True])
    def test_is_the_maximum_likelihood(self, scale, weighted):
        z, c = (X @ W[:, 0]) * scale, WEIGHTS if weighted else np.ones(200)
        positive = TWO == 1
        a, b = fit_platt(z, positive, c if weighted else None)
        up, down = c[positive].sum(), c[~positive].sum()
        t = np.where(positive, (up + 1) / (up + 2), 1 / (down + 2))

        def value(theta):
            s = theta[0] * z / scale + theta[1]
            return c @ (np.logaddexp(0, s) - (1 - t) * s)

        best = minimize(value, np.zeros(2), tol=1e-12)
        assert value([a * scale, b]) <= best.fun + 1e-8 * abs(best.fun)
        assert a < 0

    def test_separable_scores_stay_finite(self):
        z = np.array([-2.0, -1.0, 1.0, 2.0])
        a, b = fit_platt(z, z > 0)
        assert np.isfinite([a, b]).all()

    def test_scores_that_say_nothing(self):
        _, b = fit_platt(np.zeros(10), np.arange(10) < 3)
        assert 1 / (1 + np.exp(b)) == pytest.approx(0.3, abs=0.05)

    def test_folds_spread_every_class(self):
        folds = stratified_folds(THREE.astype(float), 5, seed=0)
        for k in range(3):
            counts = np.bincount(folds[k == THREE], minlength=5)
            assert counts.max() - counts.min() <= 1

    def test_the_only_row_of_a_class_is_in_no_fold(self):
        numbers = np.array([0.0] * 6 + [1.0])
        assert stratified_folds(numbers, 5, seed=0)[-1] == -1

    def test_svm_probabilities_are_calibrated(self):
        many = RNG.standard_normal((3000, 6))
        p = 1 / (1 + np.exp(-2 * many @ W[:, 0]))
        y = (RNG.random(3000) < p).astype(int)
        model = LinearSVC(probability=True).fit(many[:2000], y[:2000])
        assert np.abs(model.predict_proba(many[2000:])[:, 1] - p[2000:]).mean() < 0.05
