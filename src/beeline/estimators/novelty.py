"""Novelty detection: which rows are unlike those that were seen."""

from __future__ import annotations

from os import PathLike
from typing import Any

import numpy as np
from sklearn.base import OutlierMixin

from beeline._sentences import Argument
from beeline._types import Floats, Ints
from beeline.data.options import Extra
from beeline.estimators.base import FitIntercept, LinearEstimator, mixture
from beeline.estimators.docs import documented
from beeline.exceptions import ParameterError
from beeline.fitting.settings import Auto
from beeline.losses import Novelty
from beeline.solvers.base import Callback
from beeline.solvers.registry import SolverLike

__all__ = ["NoveltyDetector"]

_ROUNDING = 1e-6


@documented
class NoveltyDetector(OutlierMixin, LinearEstimator):  # type: ignore[misc]
    """A support vector machine of one class: tells rows that are unlike those it was trained on.

    Minimises Ω(w) + C·Σ weight_i·max(0, 1 − z_i), z = Xw: the half-space, as far from zero as can be, that the rows lie
    in. A row that scores below 1 is an outlier. Rows must lie on one side of zero for that to mean something, as counts
    and texts do; labels are not looked at.

    <fit>

    Parameters
    ----------
    <C>
    <l1_ratio>
    fit_intercept : False or "regularized", default=False
        "regularized": a constant feature beside the others, for rows on all sides of zero. True is refused: an
        intercept that costs nothing would satisfy every row by itself.
    cv : int, float, splitter or iterable, default=5
        For a search: so many folds; a part of the rows to hold out once, such as 0.2; a splitter of scikit-learn's; or
        pairs of train and test rows.
    scoring : str or callable, default=None
        For a search: what is best on held-out rows. None: the mean of the loss. It falls as long as a larger C takes in
        more rows; the smallest C that does as well as any other is taken.
    <solving>

    Attributes
    ----------
    offset_ : float
        1, less what rounding may take from rows on the margin: `decision_function` is `score_samples` without it.
    <attributes>

    Examples
    --------
    >>> from beeline import NoveltyDetector
    >>> detector = NoveltyDetector(C=10.0).fit([[3.0, 3.0], [3.0, 4.0], [4.0, 3.0]])
    >>> detector.predict([[4.0, 4.0], [0.0, 1.0]]).tolist()
    [1, -1]
    """

    def __init__(  # noqa: PLR0913 — scikit-learn takes every parameter by its name
        self,
        *,
        C: float | Auto = 1.0,
        l1_ratio: float = 0.0,
        fit_intercept: FitIntercept = False,
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
    def _classifies(self) -> bool:
        return False

    @property
    def _needs_labels(self) -> bool:
        return False

    @property
    def offset_(self) -> float:
        """What scores are held against."""
        self._learned()
        return 1.0 - _ROUNDING

    def score_samples(self, X: Any, *, extra: Extra = "error") -> Floats:  # noqa: ANN401
        """The scores: the smaller, the less like the rows seen.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame, Dataset or Store
            The rows.
        extra : {"error", "ignore"}
            What is done with columns of files and frames that the model does not know.
        """
        return self._answers("decision_function", X, extra)

    def decision_function(self, X: Any, *, extra: Extra = "error") -> Floats:  # noqa: ANN401
        """`score_samples` without `offset_`: negative for outliers.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame, Dataset or Store
            The rows.
        extra : {"error", "ignore"}
            What is done with columns of files and frames that the model does not know.
        """
        return self.score_samples(X, extra=extra) - self.offset_

    def predict(self, X: Any, *, extra: Extra = "error") -> Ints:  # noqa: ANN401
        """1 for rows like those seen, −1 for outliers.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame, Dataset or Store
            The rows.
        extra : {"error", "ignore"}
            What is done with columns of files and frames that the model does not know.
        """
        return np.where(self.decision_function(X, extra=extra) >= 0, 1, -1)

    @property
    def score(self) -> Any:  # noqa: ANN401
        """There is none: there are no labels to hold predictions against."""
        raise AttributeError("a novelty detector has no score, since there are no labels; see score_samples")

    def _settings(self) -> dict[str, Any]:
        if self.fit_intercept is True:
            raise ParameterError(
                Argument("fit_intercept", True), " would satisfy every row by itself; take False or 'regularized'"
            )
        return {"loss": Novelty(), "C": self.C, "regularizer": mixture(self.l1_ratio)}
