"""What the regressions by the mean of a loss share."""

from __future__ import annotations

from abc import abstractmethod
from os import PathLike
from typing import Any

from beeline.estimators.base import FitIntercept, LinearRegressor, mixture
from beeline.fitting.settings import Auto
from beeline.losses import Loss
from beeline.solvers.base import Callback
from beeline.solvers.registry import SolverLike

__all__ = ["MeanLossRegressor"]


class MeanLossRegressor(LinearRegressor):
    """Base of the regressions that minimise alpha·Ω(w) + the mean of a loss."""

    def __init__(  # noqa: PLR0913 — scikit-learn takes every parameter by its name
        self,
        *,
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

    @abstractmethod
    def _loss(self) -> Loss:
        """The loss, with its settings."""

    def _settings(self) -> dict[str, Any]:
        return {"loss": self._loss(), "alpha": self.alpha, "regularizer": mixture(self.l1_ratio)}
