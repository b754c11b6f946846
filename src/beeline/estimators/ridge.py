"""Ridge regression and classification, with alpha as scikit-learn's estimators of these names mean it."""

from __future__ import annotations

from os import PathLike
from typing import Any

from beeline.estimators.base import FitIntercept, LinearClassifier, LinearEstimator, LinearRegressor
from beeline.estimators.docs import documented
from beeline.fitting import Fitted
from beeline.fitting.settings import Auto, check_positive
from beeline.solvers.base import Callback
from beeline.solvers.registry import SolverLike
from beeline.training.labels import ClassWeight

__all__ = ["Ridge", "RidgeClassifier"]


class _OfSums(LinearEstimator):
    """Base of both: alpha multiplies ‖w‖² beside the sum of squares, so that C = 1/alpha whatever n is."""

    alpha: float | Auto

    def _strength(self) -> dict[str, Any]:
        searched = isinstance(self.alpha, str) and self.alpha == "auto"
        return {"C": "auto" if searched else 1 / check_positive("alpha", self.alpha), "regularizer": "l2"}

    def _remember(self, fitted: Fitted) -> None:
        super()._remember(fitted)
        self.alpha_ = 1 / float(fitted.model.settings["C"])


@documented
class Ridge(LinearRegressor, _OfSums):
    """Least squares with L2 regularization.

    Minimises Σ weight_i·(y_i − z_i)² + alpha·‖w‖², z = Xw + b, scikit-learn's form: of a sum, not of a mean. In the
    form with C the same model has C = 1/alpha. Several numbers a row: `MultiTaskRegressor`.

    <fit>

    Parameters
    ----------
    <alpha>
    <fit_intercept>
    <searching>
    <solving>

    Attributes
    ----------
    <attributes>

    Examples
    --------
    >>> from beeline import Ridge
    >>> ridge = Ridge(alpha=1.0).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0])
    >>> ridge.coef_.round(3).tolist()
    [0.667]
    """

    def __init__(  # noqa: PLR0913 — scikit-learn takes every parameter by its name
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
        return {"loss": "squared", **self._strength()}


@documented
class RidgeClassifier(LinearClassifier, _OfSums):
    """Least squares on classes with L2 regularization.

    Minimises Σ weight_i·(1 − y_i z_i)² + alpha·‖w‖², z = Xw + b with y = ±1, scikit-learn's form; for more than two
    classes, one such problem for each class against the rest. In the form with C the same model has C = 1/alpha.

    <fit>

    Parameters
    ----------
    <alpha>
    <fit_intercept>
    <class_weight>
    <searching>
    <solving>

    Attributes
    ----------
    classes_ : ndarray
        The classes.
    <attributes>

    Examples
    --------
    >>> from beeline import RidgeClassifier
    >>> ridge = RidgeClassifier().fit([[0.0], [1.0], [2.0], [3.0]], ["low", "low", "high", "high"])
    >>> ridge.predict([[0.5], [2.5]]).tolist()
    ['low', 'high']
    """

    def __init__(  # noqa: PLR0913
        self,
        alpha: float | Auto = 1.0,
        *,
        fit_intercept: FitIntercept = True,
        class_weight: ClassWeight = None,
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
        self.class_weight = class_weight
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
        return {"loss": "squared_margin", "class_weight": self.class_weight, **self._strength()}

    def _gives_probabilities(self) -> bool:
        return False
