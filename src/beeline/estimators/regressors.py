"""Regressions: support vector regression, the lasso and the elastic net."""

from __future__ import annotations

from os import PathLike
from typing import Any, Literal

from beeline._numbers import as_choice
from beeline.estimators.base import FitIntercept, LinearRegressor, mixture
from beeline.estimators.docs import documented
from beeline.fitting.settings import Auto
from beeline.losses import get_loss
from beeline.solvers.base import Callback
from beeline.solvers.registry import SolverLike

__all__ = ["ElasticNet", "Lasso", "LinearSVR"]


@documented
class LinearSVR(LinearRegressor):
    """Linear support vector regression.

    Minimises Ω(w) + C·Σ weight_i·l(z_i − y_i), z = Xw + b, with max(0, |r| − epsilon) or its square as l.

    <fit>

    Parameters
    ----------
    <C>
    epsilon : float or "auto", default=0.0
        Residuals of at most this cost nothing. "auto" searches for the best one together with C, which must be "auto"
        too: 20 values from 0 up to the largest target.
    loss : {"epsilon_insensitive", "squared_epsilon_insensitive"}, default="epsilon_insensitive"
        max(0, |r| − epsilon) or its square.
    <l1_ratio>
    <fit_intercept>
    <searching>
    <solving>

    Attributes
    ----------
    <attributes>

    Examples
    --------
    >>> from beeline import LinearSVR
    >>> svr = LinearSVR(C=100.0, tol=1e-8).fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0])
    >>> round(float(svr.predict([[3.0]])[0]), 3)
    7.0
    """

    def __init__(  # noqa: PLR0913 — scikit-learn takes every parameter by its name
        self,
        *,
        C: float | Auto = 1.0,
        epsilon: float | Auto = 0.0,
        loss: Literal["epsilon_insensitive", "squared_epsilon_insensitive"] = "epsilon_insensitive",
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
        self.C = C
        self.epsilon = epsilon
        self.loss = loss
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept
        self.cv = cv
        self.scoring = scoring
        self.solver = solver
        self.tol = tol
        self.max_passes = max_passes
        self.time_limit = time_limit
        self.memory = memory
        self.checkpoint = checkpoint
        self.warm_start = warm_start
        self.random_state = random_state
        self.callback = callback
        self.verbose = verbose

    @property
    def _searches_epsilon(self) -> bool:
        return self.epsilon == "auto"

    def _settings(self) -> dict[str, Any]:
        as_choice("loss", self.loss, ("epsilon_insensitive", "squared_epsilon_insensitive"))
        loss = get_loss(self.loss, epsilon=0.0 if self.epsilon == "auto" else self.epsilon)
        return {"loss": loss, "C": self.C, "regularizer": mixture(self.l1_ratio)}


@documented
class ElasticNet(LinearRegressor):
    """Least squares with L1 and L2 regularization.

    Minimises ‖y − Xw − b‖²/(2n) + alpha·(l1_ratio·‖w‖₁ + (1 − l1_ratio)·½‖w‖²), scikit-learn's form; with weights,
    the weighted mean takes the place of the mean. In the form with C the same model has C = 1/(alpha·n).

    <fit>

    Parameters
    ----------
    alpha : float or "auto", default=1.0
        What multiplies the regularizer. "auto" searches for the best by cross-validation.
    l1_ratio : float, default=0.5
        The part of L1 in the regularizer: 0 is ridge regression, 1 the lasso.
    <fit_intercept>
    <searching>
    <solving>

    Attributes
    ----------
    <attributes>

    Examples
    --------
    >>> from beeline import ElasticNet
    >>> net = ElasticNet(alpha=0.1).fit([[0.0, 1.0], [1.0, 0.0], [2.0, 1.0]], [0.0, 1.0, 2.0])
    >>> (net.coef_ != 0).tolist()
    [True, False]
    """

    def __init__(  # noqa: PLR0913
        self,
        alpha: float | Auto = 1.0,
        *,
        l1_ratio: float = 0.5,
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
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept
        self.cv = cv
        self.scoring = scoring
        self.solver = solver
        self.tol = tol
        self.max_passes = max_passes
        self.time_limit = time_limit
        self.memory = memory
        self.checkpoint = checkpoint
        self.warm_start = warm_start
        self.random_state = random_state
        self.callback = callback
        self.verbose = verbose

    def _settings(self) -> dict[str, Any]:
        return {"loss": "squared", "alpha": self.alpha, "regularizer": mixture(self.l1_ratio)}


@documented
class Lasso(LinearRegressor):
    """Least squares with L1 regularization.

    Minimises ‖y − Xw − b‖²/(2n) + alpha·‖w‖₁, scikit-learn's form; with weights, the weighted mean takes the place of
    the mean. In the form with C the same model has C = 1/(alpha·n).

    <fit>

    Parameters
    ----------
    alpha : float, default=1.0
        What multiplies the regularizer; must be positive.
    <fit_intercept>
    <searching>
    <solving>

    Attributes
    ----------
    <attributes>

    Examples
    --------
    >>> from beeline import Lasso
    >>> lasso = Lasso(alpha=0.1).fit([[0.0, 1.0], [1.0, 0.0], [2.0, 1.0]], [0.0, 1.0, 2.0])
    >>> (lasso.coef_ != 0).tolist()
    [True, False]
    """

    def __init__(  # noqa: PLR0913
        self,
        alpha: float | Auto = 1.0,
        *,
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
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.cv = cv
        self.scoring = scoring
        self.solver = solver
        self.tol = tol
        self.max_passes = max_passes
        self.time_limit = time_limit
        self.memory = memory
        self.checkpoint = checkpoint
        self.warm_start = warm_start
        self.random_state = random_state
        self.callback = callback
        self.verbose = verbose

    def _settings(self) -> dict[str, Any]:
        return {"loss": "squared", "alpha": self.alpha, "regularizer": "l1"}
