"""Estimators with scikit-learn's interface: thin classes that make a task, train it and keep the model.

Conventions
-----------
- `C` multiplies the loss of every row, as in LIBLINEAR and scikit-learn: J = Ω(w) + C·Σ weight_i·l_i. `alpha`
  multiplies the regularizer instead: J = alpha·Ω(w) + the mean of the losses. The same model has C = 1/(alpha·n) for n
  rows; with weights, n is their sum.
- `tol` is the relative distance from the optimum, certified where there is a duality gap; `max_passes` counts passes
  over the data, whatever the solver. scikit-learn's `tol` and `max_iter` mean something else for every solver, so
  `max_iter` is not a name here.
- Rows are arrays, SciPy matrices, data frames, or a beeline `Dataset` or `Store` with its labels inside.
"""

from __future__ import annotations

from beeline.estimators.classifiers import LinearSVC, LogisticRegression
from beeline.estimators.costs import CostSensitiveClassifier
from beeline.estimators.families import HuberRegressor, MultiTaskRegressor, QuantileRegressor
from beeline.estimators.linear_model import LinearModel
from beeline.estimators.measures import FBetaClassifier, PrecisionAtK, ROCClassifier
from beeline.estimators.novelty import NoveltyDetector
from beeline.estimators.ordinal import OrdinalClassifier
from beeline.estimators.ranking import LinearRanker
from beeline.estimators.rates import GammaRegressor, PoissonRegressor, TweedieRegressor
from beeline.estimators.regressors import ElasticNet, Lasso, LinearSVR
from beeline.estimators.ridge import Ridge, RidgeClassifier
from beeline.estimators.stochastic import SGDClassifier, SGDRegressor
from beeline.estimators.trees import HierarchicalClassifier

__all__ = [
    "CostSensitiveClassifier",
    "ElasticNet",
    "FBetaClassifier",
    "GammaRegressor",
    "HierarchicalClassifier",
    "HuberRegressor",
    "Lasso",
    "LinearModel",
    "LinearRanker",
    "LinearSVC",
    "LinearSVR",
    "LogisticRegression",
    "MultiTaskRegressor",
    "NoveltyDetector",
    "OrdinalClassifier",
    "PoissonRegressor",
    "PrecisionAtK",
    "QuantileRegressor",
    "ROCClassifier",
    "Ridge",
    "RidgeClassifier",
    "SGDClassifier",
    "SGDRegressor",
    "TweedieRegressor",
]
