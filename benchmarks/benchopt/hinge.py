"""beeline for benchopt's benchmark_linear_svm_binary_classif_no_intercept: ½‖w‖² + C·Σ max(0, 1 − yz)."""

import warnings
from typing import ClassVar

import numpy as np
from benchopt import BaseSolver

from beeline import LinearSVC
from beeline.exceptions import ConvergenceWarning


class Solver(BaseSolver):
    """The linear support vector machine to a tolerance."""

    name = "beeline"
    sampling_strategy = "tolerance"
    requirements: ClassVar[list[str]] = ["pip::beeline"]

    def set_objective(self, X, y, C):
        """Take the problem."""
        warnings.filterwarnings("ignore", category=ConvergenceWarning)  # of tolerances below rounding
        self.X, self.y = X, y
        self.model = LinearSVC(loss="hinge", C=C, fit_intercept=False)

    def get_next(self, tol):
        """The next tolerance: a tenth, since smaller steps often end at the same point, which looks like the end."""
        return min(0.1, tol / 10)

    def run(self, tol):
        """Train; the first call, of any tolerance, asks for a point to begin with."""
        if tol >= 1:
            self.beta = np.zeros(self.X.shape[1])
            return
        self.beta = np.ravel(self.model.set_params(tol=tol).fit(self.X, self.y).coef_)

    def get_result(self):
        """Weights."""
        return {"beta": self.beta}
