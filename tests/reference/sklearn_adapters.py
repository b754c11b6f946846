"""beeline's estimators under the names, parameters and attributes that scikit-learn's own tests use.

An adapter inherits from scikit-learn's estimator for its constructor, and thereby for `get_params`, `clone` and
`isinstance`. All that learns or answers is beeline's: `fit` makes the estimator that the parameters describe, and
trains it. What chooses C or alpha by cross-validation, and MultiTaskLasso with its norm of rows, stay scikit-learn's.
"""

import warnings
from contextlib import ExitStack, contextmanager
from unittest.mock import patch

import numpy as np
import scipy.sparse
import sklearn.linear_model
import sklearn.linear_model._glm
import sklearn.linear_model._huber
import sklearn.svm
from sklearn._loss import HalfBinomialLoss
from sklearn.exceptions import ConvergenceWarning

import beeline
from beeline.exceptions import ConvergenceWarning as OurConvergenceWarning
from beeline.exceptions import ModelWarning
from beeline.regularizers import ElasticNet as Mixture

# Their tests compare weights to many digits, so all are asked for that double precision has. Losses with kinks get a
# tolerance that can be reached: small data are then solved beyond it, by a solver that ends on the kinks.
_ALL_DIGITS, _MANY_DIGITS = 1e-18, 1e-10
_ENOUGH = 1e-4  # beeline's usual tolerance: who asked for more and got this need not be warned
# beeline always regularizes; where they do not, by less than their tests can see.
_NEXT_TO_NOTHING, _LARGEST_C = 1e-10, 1e8
# A smaller limit is about training that is cut short. Larger ones count something else for every solver.
_CUT_SHORT, _PASSES = 10, 1000

trainings = 0  # of beeline's estimators, so far


class NotConverged(ConvergenceWarning):
    """beeline's warning that training ended too early, as one of scikit-learn's."""


class Adapter:
    """What all adapters share."""

    tolerance = _ALL_DIGITS

    def translated(self, total=1.0, targets=1):
        """Beeline's estimator of these parameters, for rows of this total weight and so many targets."""
        raise NotImplementedError

    def solving(self):
        """What all of beeline's estimators can be told about training."""
        limit = getattr(self, "max_iter", _PASSES)
        return {
            "tol": self.tolerance,
            "max_passes": limit if limit < _CUT_SHORT else _PASSES,
            "warm_start": getattr(self, "warm_start", False),
            "random_state": getattr(self, "random_state", None),
            "verbose": bool(getattr(self, "verbose", False)),
        }

    def fit(self, X, y, sample_weight=None, check_input=True):
        global trainings  # noqa: PLW0603
        weights = np.ones(np.shape(y)[0]) if sample_weight is None else np.asarray(sample_weight)
        total = weights.sum() if weights.ndim else weights * np.shape(y)[0]
        new = self.translated(total, np.shape(y)[1] if np.ndim(y) == 2 else 1)
        if new.warm_start and type(vars(self).get("ours_")) is type(new):
            self.ours_.set_params(**new.get_params())
        else:
            self.ours_ = new
        trainings += 1
        with self.their_warnings():
            self.ours_.fit(X, y, sample_weight)
        return self

    @contextmanager
    def their_warnings(self):
        """beeline's warnings in scikit-learn's terms, which has none about a model that is worth nothing.

        Others than of training that ended early are errors here.
        """
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield
        for warning in caught:
            if warning.category is ModelWarning:
                continue
            if warning.category is not OurConvergenceWarning:
                raise warning.message
            if self.ours_.report_.gap is None or self.ours_.report_.gap > _ENOUGH:
                warnings.warn(NotConverged(*warning.message.args), stacklevel=4)

    @property
    def answering(self):
        return vars(self)["ours_"] if "ours_" in vars(self) else self.translated()

    def __sklearn_tags__(self):
        return self.translated().__sklearn_tags__()

    def predict(self, X):
        return self.answering.predict(X)

    def score(self, X, y, sample_weight=None):
        return self.answering.score(X, y, sample_weight)

    coef_ = property(lambda self: self.answering.coef_)
    intercept_ = property(lambda self: self.answering.intercept_)
    n_iter_ = property(lambda self: self.answering.n_iter_)
    n_features_in_ = property(lambda self: self.answering.n_features_in_)


class Classifier(Adapter):
    """What the adapters of classifiers share."""

    classes_ = property(lambda self: self.answering.classes_)

    def decision_function(self, X):
        return self.answering.decision_function(X)

    def liblinear_intercept(self):
        """LIBLINEAR's intercept is the weight of a feature of the value `intercept_scaling`: a large one is free."""
        return "regularized" if self.fit_intercept and self.intercept_scaling == 1 else bool(self.fit_intercept)


class LogisticRegression(Classifier, sklearn.linear_model.LogisticRegression):
    def translated(self, total=1.0, targets=1):
        return beeline.LogisticRegression(
            C=_LARGEST_C if self.penalty is None else min(self.C, _LARGEST_C),
            l1_ratio={"l1": 1.0, "l2": 0.0}.get(self.penalty, self.l1_ratio),
            fit_intercept=self.liblinear_intercept() if self.solver == "liblinear" else self.fit_intercept,
            class_weight=self.class_weight,
            **self.solving(),
        )

    def predict_proba(self, X):
        return self.answering.predict_proba(X)

    def predict_log_proba(self, X):
        return self.answering.predict_log_proba(X)

    n_iter_ = property(lambda self: np.array([self.answering.n_iter_]))


class LinearSVC(Classifier, sklearn.svm.LinearSVC):
    tolerance = property(lambda self: _ALL_DIGITS if self.loss == "squared_hinge" else _MANY_DIGITS)

    def translated(self, total=1.0, targets=1):
        return beeline.LinearSVC(
            C=self.C,
            loss=None if self.multi_class == "crammer_singer" else self.loss,
            l1_ratio={"l1": 1.0, "l2": 0.0}[self.penalty],
            fit_intercept=self.liblinear_intercept(),
            multi_class=self.multi_class,
            class_weight=self.class_weight,
            **self.solving(),
        )


class LinearSVR(Adapter, sklearn.svm.LinearSVR):
    tolerance = property(lambda self: _MANY_DIGITS if self.loss == "epsilon_insensitive" else _ALL_DIGITS)

    def translated(self, total=1.0, targets=1):
        return beeline.LinearSVR(
            C=self.C,
            epsilon=self.epsilon,
            loss=self.loss,
            fit_intercept="regularized" if self.fit_intercept else False,
            **self.solving(),
        )


class ElasticNet(Adapter, sklearn.linear_model.ElasticNet):
    def translated(self, total=1.0, targets=1):
        alpha = self.alpha or _NEXT_TO_NOTHING
        common = {"fit_intercept": self.fit_intercept} | self.solving()
        if self.positive:
            return beeline.LinearModel(
                "squared", Mixture(self.l1_ratio), nonnegative=True, C=1 / (alpha * total), **common
            )
        kind = beeline.ElasticNet if targets == 1 else beeline.MultiTaskRegressor
        return kind(alpha=alpha, l1_ratio=self.l1_ratio, **common)

    @property
    def dual_gap_(self):
        gaps = [result.gap * result.objective for result in self.ours_.results_]
        return gaps[0] if len(gaps) == 1 else np.array(gaps)

    @property
    def sparse_coef_(self):
        return scipy.sparse.csr_array(self.coef_)


class Lasso(ElasticNet, sklearn.linear_model.Lasso):
    pass


class QuantileRegressor(Adapter, sklearn.linear_model.QuantileRegressor):
    tolerance = _MANY_DIGITS

    def translated(self, total=1.0, targets=1):
        return beeline.QuantileRegressor(
            quantile=self.quantile,
            alpha=self.alpha or 1e-8,  # enough to choose among models that are as good as each other
            fit_intercept=self.fit_intercept,
            **self.solving(),
        )


class HuberRegressor(Adapter, sklearn.linear_model.HuberRegressor):
    """scikit-learn's finds a scale σ of the residuals too; so here it finds σ, and beeline the weights at that σ."""

    scale_ = 1.0

    def translated(self, total=1.0, targets=1):
        return beeline.HuberRegressor(
            delta=self.epsilon * self.scale_,
            alpha=self.alpha * self.scale_ / total or _NEXT_TO_NOTHING,
            fit_intercept=self.fit_intercept,
            **self.solving(),
        )

    def fit(self, X, y, sample_weight=None):
        peer = sklearn.linear_model._huber.HuberRegressor(**self.get_params())
        self.scale_ = peer.fit(X, y, sample_weight).scale_
        super().fit(X, y, sample_weight)
        self.outliers_ = np.abs(y - self.predict(X)) > self.scale_ * self.epsilon
        return self


class GeneralizedLinearRegressor(Adapter, sklearn.linear_model._glm._GeneralizedLinearRegressor):
    """The base of scikit-learn's, least squares; and what their tests derive from it, a regression of shares."""

    def shared(self):
        return {"alpha": self.alpha or _NEXT_TO_NOTHING, "fit_intercept": self.fit_intercept} | self.solving()

    def translated(self, total=1.0, targets=1):
        settings = self.shared()
        if not isinstance(self._get_loss(), HalfBinomialLoss):
            return beeline.ElasticNet(l1_ratio=0.0, **settings)
        return beeline.LinearModel("cross_entropy", C=1 / (settings.pop("alpha") * total), **settings)


class PoissonRegressor(GeneralizedLinearRegressor, sklearn.linear_model.PoissonRegressor):
    def translated(self, total=1.0, targets=1):
        return beeline.PoissonRegressor(**self.shared())


class GammaRegressor(GeneralizedLinearRegressor, sklearn.linear_model.GammaRegressor):
    def translated(self, total=1.0, targets=1):
        return beeline.GammaRegressor(**self.shared())


class TweedieRegressor(GeneralizedLinearRegressor, sklearn.linear_model.TweedieRegressor):
    def translated(self, total=1.0, targets=1):
        if self.power == 0 and self.link != "log":
            return beeline.ElasticNet(l1_ratio=0.0, **self.shared())
        if self.link == "identity":
            raise NotImplementedError("beeline's rates have a logarithmic link")
        return beeline.TweedieRegressor(power=self.power, **self.shared())


_OF_LINEAR_MODEL = (LogisticRegression, ElasticNet, Lasso, QuantileRegressor, HuberRegressor)
_OF_GLM = (PoissonRegressor, GammaRegressor, TweedieRegressor)


@contextmanager
def adapters_in_place():
    """scikit-learn's packages offer the adapters in place of its own estimators."""
    with ExitStack() as stack:
        for package, kinds in (
            (sklearn.linear_model, _OF_LINEAR_MODEL + _OF_GLM),
            (sklearn.svm, (LinearSVC, LinearSVR)),
        ):
            for kind in kinds:
                stack.enter_context(patch.object(package, kind.__name__, kind))
        base = "_GeneralizedLinearRegressor"
        stack.enter_context(patch.object(sklearn.linear_model._glm, base, GeneralizedLinearRegressor))
        yield
