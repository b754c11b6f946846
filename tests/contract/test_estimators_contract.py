"""Every estimator passes scikit-learn's own checks, all of them."""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from beeline import (
    CostSensitiveClassifier,
    ElasticNet,
    FBetaClassifier,
    GammaRegressor,
    HierarchicalClassifier,
    HuberRegressor,
    Lasso,
    LinearModel,
    LinearRanker,
    LinearSVC,
    LinearSVR,
    LogisticRegression,
    MultiTaskRegressor,
    NoveltyDetector,
    OrdinalClassifier,
    PoissonRegressor,
    PrecisionAtK,
    QuantileRegressor,
    Ridge,
    RidgeClassifier,
    ROCClassifier,
    SGDClassifier,
    SGDRegressor,
    TweedieRegressor,
)
from beeline.exceptions import ConvergenceWarning, ModelWarning

ESTIMATORS = [
    LinearSVC(),
    LinearSVC(loss="hinge"),
    LogisticRegression(),
    LogisticRegression(multi_class="ovr"),
    LogisticRegression(l1_ratio=1.0, C=10.0),
    LinearSVR(),
    LinearSVR(loss="squared_epsilon_insensitive", epsilon=0.1),
    Lasso(alpha=0.1),
    ElasticNet(alpha=0.1),
    LinearModel(),
    LinearModel(loss="hinge"),
    LinearModel(loss="softmax"),
    LinearModel(loss="squared"),
    QuantileRegressor(quantile=0.8, alpha=0.1),
    HuberRegressor(),
    PoissonRegressor(),
    GammaRegressor(),
    TweedieRegressor(),
    MultiTaskRegressor(),
    NoveltyDetector(),
    NoveltyDetector(C=0.01, fit_intercept="regularized"),
    CostSensitiveClassifier(),
    HierarchicalClassifier(),
    OrdinalClassifier(),
    ROCClassifier(),
    FBetaClassifier(),
    PrecisionAtK(k=2),
    LinearRanker(),
    Ridge(),
    RidgeClassifier(),
    SGDClassifier(),
    SGDRegressor(),
]
VARIANTS = [
    SGDClassifier(loss="hinge"),
    QuantileRegressor(alpha=0.01, l1_ratio=0.0),
    CostSensitiveClassifier(rescaling="slack"),
    HierarchicalClassifier(loss="tree_margin"),
    OrdinalClassifier("immediate_threshold_hinge"),
    OrdinalClassifier("all_threshold_hinge"),
    OrdinalClassifier("level_pairs"),
    LinearModel(loss="all_threshold_hinge"),
    LinearModel(loss="hinge", nonnegative=True),
    LinearModel(loss="f_beta", C=100.0),
    ROCClassifier(max_fpr=0.5),
    FBetaClassifier(beta=2.0),
]


# Some checks compare two trainings digit by digit: a small tol brings them as near to each other. Others give targets
# without meaning, on which a pass limit is right to come first, and no model is the best one.
FLAT = (
    LogisticRegression,
    LinearModel,
    NoveltyDetector,
    SGDClassifier,
    HierarchicalClassifier,
)  # J says little about their last digits
for estimator in ESTIMATORS + VARIANTS:
    of_levels = isinstance(estimator, OrdinalClassifier) and "hinge" in str(estimator.loss)
    estimator.set_params(tol=1e-13 if isinstance(estimator, FLAT) or of_levels else 1e-9)
pytestmark = [
    *(pytest.mark.filterwarnings(f"ignore::{w.__module__}.{w.__name__}") for w in (ConvergenceWarning, ModelWarning)),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning"),
]


@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_s_checks(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(VARIANTS)
def test_scikit_learn_s_checks_of_variants(estimator, check):
    check(estimator)
