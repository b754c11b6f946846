"""Regressions by other losses than squares: quantiles, robust ones, rates and amounts, and several targets at once."""

from __future__ import annotations

from typing import Any

from beeline.estimators.base import FitIntercept, LinearRegressor, mixture
from beeline.estimators.docs import documented
from beeline.exceptions import ParameterError
from beeline.fitting.settings import Auto
from beeline.losses import Huber, Loss, MultivariateSquared, Quantile, Tweedie, get_loss
from beeline.solvers.base import Callback

__all__ = [
    "GammaRegressor",
    "HuberRegressor",
    "MultiTaskRegressor",
    "PoissonRegressor",
    "QuantileRegressor",
    "TweedieRegressor",
]


class _MeanLoss(LinearRegressor):
    """Base of the regressions that minimise alpha·Ω(w) + the mean of a loss."""

    def __init__(  # noqa: PLR0913 — scikit-learn takes every parameter by its name
        self,
        *,
        alpha: float | Auto = 1.0,
        l1_ratio: float = 0.0,
        fit_intercept: FitIntercept = True,
        cv: Any = 5,  # noqa: ANN401
        scoring: Any = None,  # noqa: ANN401
        solver: str = "auto",
        tol: float = 1e-4,
        max_passes: float = 1000,
        warm_start: bool = False,
        random_state: Any = None,  # noqa: ANN401
        callback: Callback | None = None,
        verbose: bool = False,
    ) -> None:
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept
        self.cv = cv
        self.scoring = scoring
        self.solver = solver
        self.tol = tol
        self.max_passes = max_passes
        self.warm_start = warm_start
        self.random_state = random_state
        self.callback = callback
        self.verbose = verbose

    def _loss(self) -> Loss:
        """The loss, with its settings."""
        raise NotImplementedError

    def _settings(self) -> dict[str, Any]:
        return {"loss": self._loss(), "alpha": self.alpha, "regularizer": mixture(self.l1_ratio)}


class _Rates(_MeanLoss):
    """Base of the regressions under a logarithmic link, whose targets are not negative."""

    def __sklearn_tags__(self) -> Any:  # noqa: ANN401
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags


@documented
class PoissonRegressor(_Rates):
    """Poisson regression of counts and rates: predicts exp(Xw + b).

    Minimises alpha·Ω(w) + the mean of exp(z) − yz + y log y − y, half the Poisson deviance; scikit-learn's form. With
    weights, the weighted mean takes the place of the mean. Targets must not be negative.

    <fit>

    Parameters
    ----------
    <alpha>
    <l1_ratio>
    <fit_intercept>
    <searching>
    <solving>

    Attributes
    ----------
    <attributes>

    Examples
    --------
    >>> from beeline import PoissonRegressor
    >>> poisson = PoissonRegressor(alpha=1e-6).fit([[0.0], [1.0], [2.0]], [1.0, 2.0, 4.0])
    >>> round(float(poisson.predict([[3.0]])[0]), 2)
    8.0
    """

    def _loss(self) -> Loss:
        return get_loss("poisson")


@documented
class GammaRegressor(_Rates):
    """Gamma regression of positive amounts with a constant relative spread: predicts exp(Xw + b).

    Minimises alpha·Ω(w) + the mean of y·exp(−z) + z − log y − 1, half the gamma deviance; scikit-learn's form. With
    weights, the weighted mean takes the place of the mean. Targets must be positive.

    <fit>

    Parameters
    ----------
    <alpha>
    <l1_ratio>
    <fit_intercept>
    <searching>
    <solving>

    Attributes
    ----------
    <attributes>

    Examples
    --------
    >>> from beeline import GammaRegressor
    >>> gamma = GammaRegressor(alpha=1e-6).fit([[0.0], [1.0], [2.0]], [1.0, 2.0, 4.0])
    >>> round(float(gamma.predict([[3.0]])[0]), 2)
    8.0
    """

    def _loss(self) -> Loss:
        return get_loss("gamma")


@documented
class TweedieRegressor(_Rates):
    """Regression by a Tweedie distribution, such as amounts that are often zero: predicts exp(Xw + b).

    Minimises alpha·Ω(w) + the mean of half the deviance of that power; scikit-learn's form with its logarithmic link.
    With weights, the weighted mean takes the place of the mean. Targets must not be negative.

    <fit>

    Parameters
    ----------
    power : float, default=1.5
        From 1, the Poisson distribution, to 2, the gamma distribution. The variance grows with this power of the mean.
        Other powers would not be convex.
    <alpha>
    <l1_ratio>
    <fit_intercept>
    <searching>
    <solving>

    Attributes
    ----------
    <attributes>

    Examples
    --------
    >>> from beeline import TweedieRegressor
    >>> tweedie = TweedieRegressor(power=1.5, alpha=1e-6).fit([[0.0], [1.0], [2.0]], [1.0, 2.0, 4.0])
    >>> round(float(tweedie.predict([[3.0]])[0]), 2)
    8.0
    """

    def __init__(  # noqa: PLR0913
        self,
        *,
        power: float = 1.5,
        alpha: float | Auto = 1.0,
        l1_ratio: float = 0.0,
        fit_intercept: FitIntercept = True,
        cv: Any = 5,  # noqa: ANN401
        scoring: Any = None,  # noqa: ANN401
        solver: str = "auto",
        tol: float = 1e-4,
        max_passes: float = 1000,
        warm_start: bool = False,
        random_state: Any = None,  # noqa: ANN401
        callback: Callback | None = None,
        verbose: bool = False,
    ) -> None:
        super().__init__(
            alpha=alpha,
            l1_ratio=l1_ratio,
            fit_intercept=fit_intercept,
            cv=cv,
            scoring=scoring,
            solver=solver,
            tol=tol,
            max_passes=max_passes,
            warm_start=warm_start,
            random_state=random_state,
            callback=callback,
            verbose=verbose,
        )
        self.power = power

    def _loss(self) -> Loss:
        if self.power in (1, 2):
            return get_loss("poisson" if self.power == 1 else "gamma")
        if not 1 < self.power < 2:
            raise ParameterError(f"power must lie between 1 and 2, not {self.power}")
        return Tweedie(self.power)


@documented
class QuantileRegressor(_MeanLoss):
    """Quantile regression: so many of the targets lie below the prediction.

    Minimises alpha·Ω(w) + the mean of max(τ(y − z), (1 − τ)(z − y)), τ = quantile; with L1, as by default,
    scikit-learn's form. With weights, the weighted mean takes the place of the mean.

    <fit>

    Parameters
    ----------
    quantile : float, default=0.5
        τ, between 0 and 1; 0.5 is the median.
    <alpha>
    l1_ratio : float, default=1.0
        1: L1 regularization, ‖w‖₁. 0: L2, ½‖w‖², the faster one. Between: the elastic net.
    <fit_intercept>
    <searching>
    <solving>

    Attributes
    ----------
    <attributes>

    Examples
    --------
    >>> from beeline import QuantileRegressor
    >>> rows, y = [[0.0], [1.0], [2.0], [3.0]], [0.0, 1.0, 2.0, 30.0]
    >>> median = QuantileRegressor(alpha=1e-6, tol=1e-8).fit(rows, y)
    >>> round(float(median.predict([[4.0]])[0]), 2)
    4.0
    """

    def __init__(  # noqa: PLR0913
        self,
        *,
        quantile: float = 0.5,
        alpha: float | Auto = 1.0,
        l1_ratio: float = 1.0,
        fit_intercept: FitIntercept = True,
        cv: Any = 5,  # noqa: ANN401
        scoring: Any = None,  # noqa: ANN401
        solver: str = "auto",
        tol: float = 1e-4,
        max_passes: float = 1000,
        warm_start: bool = False,
        random_state: Any = None,  # noqa: ANN401
        callback: Callback | None = None,
        verbose: bool = False,
    ) -> None:
        super().__init__(
            alpha=alpha,
            l1_ratio=l1_ratio,
            fit_intercept=fit_intercept,
            cv=cv,
            scoring=scoring,
            solver=solver,
            tol=tol,
            max_passes=max_passes,
            warm_start=warm_start,
            random_state=random_state,
            callback=callback,
            verbose=verbose,
        )
        self.quantile = quantile

    def _loss(self) -> Loss:
        if not 0 < self.quantile < 1:
            raise ParameterError(f"quantile must lie between 0 and 1, not {self.quantile}")
        return Quantile(self.quantile)


@documented
class HuberRegressor(_MeanLoss):
    """Robust regression: squares of small residuals, and absolute values of large ones.

    Minimises alpha·Ω(w) + the mean of r²/2 for |r| ≤ delta, delta·|r| − delta²/2 beyond. With weights, the weighted
    mean takes the place of the mean. scikit-learn's estimator of this name looks for a scale σ of the residuals too; at
    that σ it is this one with delta = epsilon·σ and alpha = its alpha·σ/n.

    <fit>

    Parameters
    ----------
    delta : float, default=1.35
        Up to where residuals are squared, in units of the target.
    alpha : float or "auto", default=1e-4
        What multiplies the regularizer; larger means stronger regularization. "auto" searches for the best by
        cross-validation, and trains on all rows with it.
    <l1_ratio>
    <fit_intercept>
    <searching>
    <solving>

    Attributes
    ----------
    <attributes>

    Examples
    --------
    >>> from beeline import HuberRegressor
    >>> rows, y = [[0.0], [1.0], [2.0], [3.0], [4.0]], [0.0, 1.0, 2.0, 3.0, 90.0]
    >>> huber = HuberRegressor(delta=0.01, alpha=1e-6, tol=1e-8).fit(rows, y)
    >>> round(float(huber.predict([[5.0]])[0]), 1)
    5.0
    """

    def __init__(  # noqa: PLR0913
        self,
        *,
        delta: float = 1.35,
        alpha: float | Auto = 1e-4,
        l1_ratio: float = 0.0,
        fit_intercept: FitIntercept = True,
        cv: Any = 5,  # noqa: ANN401
        scoring: Any = None,  # noqa: ANN401
        solver: str = "auto",
        tol: float = 1e-4,
        max_passes: float = 1000,
        warm_start: bool = False,
        random_state: Any = None,  # noqa: ANN401
        callback: Callback | None = None,
        verbose: bool = False,
    ) -> None:
        super().__init__(
            alpha=alpha,
            l1_ratio=l1_ratio,
            fit_intercept=fit_intercept,
            cv=cv,
            scoring=scoring,
            solver=solver,
            tol=tol,
            max_passes=max_passes,
            warm_start=warm_start,
            random_state=random_state,
            callback=callback,
            verbose=verbose,
        )
        self.delta = delta

    def _loss(self) -> Loss:
        return Huber(self.delta)


@documented
class MultiTaskRegressor(_MeanLoss):
    """Least squares of several targets at once, whose errors a matrix weighs together.

    Minimises alpha·Ω(W) + the mean of ½(z − y)ᵀM(z − y), z = XW + b, for rows of targets y. With weights, the weighted
    mean takes the place of the mean.

    <fit>

    Parameters
    ----------
    M : array-like, default=None
        A symmetric matrix without negative eigenvalues, a row and a column for every target; such as the inverse of the
        covariance of the errors. None: the identity, with which targets have nothing to do with each other.
    <alpha>
    <l1_ratio>
    <fit_intercept>
    <searching>
    <solving>

    Attributes
    ----------
    <attributes>

    Examples
    --------
    >>> from beeline import MultiTaskRegressor
    >>> tasks = MultiTaskRegressor(alpha=1e-6).fit([[0.0], [1.0], [2.0]], [[0.0, 1.0], [1.0, 3.0], [2.0, 5.0]])
    >>> tasks.predict([[3.0]]).round(2).tolist()
    [[3.0, 7.0]]
    """

    def __init__(  # noqa: PLR0913
        self,
        *,
        M: Any = None,  # noqa: ANN401
        alpha: float | Auto = 1.0,
        l1_ratio: float = 0.0,
        fit_intercept: FitIntercept = True,
        cv: Any = 5,  # noqa: ANN401
        scoring: Any = None,  # noqa: ANN401
        solver: str = "auto",
        tol: float = 1e-4,
        max_passes: float = 1000,
        warm_start: bool = False,
        random_state: Any = None,  # noqa: ANN401
        callback: Callback | None = None,
        verbose: bool = False,
    ) -> None:
        super().__init__(
            alpha=alpha,
            l1_ratio=l1_ratio,
            fit_intercept=fit_intercept,
            cv=cv,
            scoring=scoring,
            solver=solver,
            tol=tol,
            max_passes=max_passes,
            warm_start=warm_start,
            random_state=random_state,
            callback=callback,
            verbose=verbose,
        )
        self.M = M

    def __sklearn_tags__(self) -> Any:  # noqa: ANN401
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output, tags.target_tags.single_output = True, False
        return tags

    @property
    def _several(self) -> bool:
        return True

    def _loss(self) -> Loss:
        return MultivariateSquared(self.M)
