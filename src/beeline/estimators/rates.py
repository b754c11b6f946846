"""Regressions of rates and amounts, under a logarithmic link."""

from __future__ import annotations

from os import PathLike
from typing import Any

import numpy as np

from beeline._numbers import as_number
from beeline._sentences import Argument
from beeline._types import Floats
from beeline.estimators.base import FitIntercept
from beeline.estimators.docs import documented
from beeline.estimators.mean_loss import MeanLossRegressor
from beeline.exceptions import ParameterError
from beeline.fitting.settings import Auto
from beeline.losses import Loss, ScalarLoss, Tweedie, get_loss
from beeline.solvers.base import Callback
from beeline.solvers.registry import SolverLike

__all__ = ["GammaRegressor", "PoissonRegressor", "TweedieRegressor"]

_LEAST = 1e-300  # in place of a mean of labels that are all zero


class _Rates(MeanLossRegressor):
    """Base of the regressions under a logarithmic link, whose targets are not negative."""

    def __sklearn_tags__(self) -> Any:  # noqa: ANN401
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags

    def _agreement(self, y: Floats, predicted: Floats, weights: Floats | None) -> float:
        """D², as in scikit-learn: 1 − deviance of the predictions/deviance of the mean label."""
        loss, mean = self._loss(), float(np.average(y, weights=weights))
        assert isinstance(loss, ScalarLoss)
        ours, without = (
            float(np.average(loss.value_and_grad(np.log(np.maximum(p, _LEAST)), y)[0], weights=weights))
            for p in (predicted, np.full(len(y), mean))
        )
        return 1 - ours / without if without > 0 else 0.0


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
        solver: SolverLike = "auto",
        tol: float = 1e-4,
        max_passes: float = 1000,
        time_limit: float | None = None,
        memory: str | int | None = None,
        checkpoint: str | PathLike[str] | None = None,
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
            time_limit=time_limit,
            memory=memory,
            checkpoint=checkpoint,
            warm_start=warm_start,
            random_state=random_state,
            callback=callback,
            verbose=verbose,
        )
        self.power = power

    def _loss(self) -> Loss:
        if self.power in (1, 2):
            return get_loss("poisson" if self.power == 1 else "gamma")
        if not 1 < as_number("power", self.power) < 2:
            raise ParameterError(
                Argument("power"),
                f" must lie between 1 and 2, where the loss is convex under a logarithm, not {self.power}",
            )
        return Tweedie(self.power)
