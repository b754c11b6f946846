"""beeline for benchopt's benchmark_logreg_l2: Σ log(1 + exp(−yz)) + lmbd·½‖w‖², with or without a free intercept."""

import warnings
from typing import ClassVar

import numpy as np
from benchopt import BaseSolver

from beeline import LogisticRegression
from beeline.exceptions import ConvergenceWarning


class Solver(BaseSolver):
    """Logistic regression to a tolerance."""

    name = "beeline"
    sampling_strategy = "tolerance"
    requirements: ClassVar[list[str]] = ["pip::beeline"]

    def set_objective(self, X, y, lmbd, fit_intercept=False):
        """Take the problem: C is what multiplies the losses where the regularizer has no factor."""
        warnings.filterwarnings("ignore", category=ConvergenceWarning)  # of tolerances below rounding
        self.X, self.y, self.fit_intercept = X, y, fit_intercept
        self.model = LogisticRegression(C=1 / lmbd, fit_intercept=bool(fit_intercept))

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
