"""Regressions by other losses than squares, quantiles and robust ones, and of several targets at once."""

from __future__ import annotations

from os import PathLike
from typing import Any

from beeline._numbers import as_number
from beeline._sentences import Argument
from beeline.estimators.base import FitIntercept
from beeline.estimators.docs import documented
from beeline.estimators.mean_loss import MeanLossRegressor
from beeline.exceptions import ParameterError
from beeline.fitting.settings import Auto
from beeline.losses import Huber, Loss, MultivariateSquared, Quantile
from beeline.solvers.base import Callback
from beeline.solvers.registry import SolverLike

__all__ = ["HuberRegressor", "MultiTaskRegressor", "QuantileRegressor"]


@documented
class QuantileRegressor(MeanLossRegressor):
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
        self.quantile = quantile

    def _loss(self) -> Loss:
        if not 0 < as_number("quantile", self.quantile) < 1:
            raise ParameterError(Argument("quantile"), f" must lie between 0 and 1, not {self.quantile}")
        return Quantile(self.quantile)


@documented
class HuberRegressor(MeanLossRegressor):
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
        self.delta = delta

    def _loss(self) -> Loss:
        return Huber(self.delta)


@documented
class MultiTaskRegressor(MeanLossRegressor):
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
