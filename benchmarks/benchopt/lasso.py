"""beeline for benchopt's benchmark_lasso: ½‖y − z‖² + lmbd·‖w‖₁, with or without an intercept."""

import warnings
from typing import ClassVar

import numpy as np
from benchopt import BaseSolver

from beeline import Lasso
from beeline.exceptions import ConvergenceWarning, ModelWarning


class Solver(BaseSolver):
    """The lasso to a tolerance."""

    name = "beeline"
    sampling_strategy = "tolerance"
    requirements: ClassVar[list[str]] = ["pip::beeline"]

    def set_objective(self, X, y, lmbd, fit_intercept=False):
        """Take the problem: alpha stands beside the mean of the losses, lmbd beside their sum."""
        warnings.filterwarnings("ignore", category=ConvergenceWarning)  # of tolerances below rounding
        warnings.filterwarnings("ignore", category=ModelWarning)  # of a large lmbd, which is the benchmark's to choose
        self.X, self.y, self.fit_intercept = X, y, fit_intercept
        self.model = Lasso(alpha=lmbd / len(y), fit_intercept=bool(fit_intercept))

    def get_next(self, tol):
        """The next tolerance: a tenth, since smaller steps often end at the same point, which looks like the end."""
        return min(0.1, tol / 10)

    def run(self, tol):
        """Train; the first call, of any tolerance, asks for a point to begin with."""
        if tol >= 1:
            self.beta = np.zeros(self.X.shape[1] + bool(self.fit_intercept))
            return
        self.model.set_params(tol=tol).fit(self.X, self.y)
        intercept = self.model.intercept_ if self.fit_intercept else []
        self.beta = np.concatenate([np.ravel(self.model.coef_), np.ravel(intercept)])

    def get_result(self):
        """Weights, the intercept behind them."""
        return {"beta": self.beta}
