"""A classifier of levels in an order."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import Any, Literal, get_args

import numpy as np

from beeline._numbers import as_choice
from beeline._sentences import Argument
from beeline._types import Floats
from beeline.data.options import Extra
from beeline.estimators.base import LinearClassifier, mixture
from beeline.estimators.docs import documented
from beeline.exceptions import ParameterError
from beeline.fitting.settings import Auto
from beeline.losses import Loss, get_loss
from beeline.losses.ordinal import from_level_columns
from beeline.solvers.base import Callback
from beeline.solvers.registry import SolverLike
from beeline.training.labels import ClassWeight

__all__ = ["OrdinalClassifier"]

LevelLossName = Literal[
    "all_threshold", "all_threshold_hinge", "immediate_threshold", "immediate_threshold_hinge", "level_pairs"
]


@documented
class OrdinalClassifier(LinearClassifier):
    """Levels in an order, such as grades or stars: one score a row, and thresholds that cut the scores into levels.

    Minimises Ω(w) + C·Σ weight_i·l(wᵀx_i, y_i) over weights and thresholds θ_0 ≤ … ≤ θ_{K−2} of K levels. A row is
    predicted to be of the level whose number is that of the thresholds below wᵀx.

    <fit>

    Parameters
    ----------
    loss : str, default="immediate_threshold"
        What a row costs. "immediate_threshold": the two thresholds of the row's own level count, each a logistic
        regression between neighbours; it has probabilities, of which that of the predicted level is the largest.
        "all_threshold": all thresholds do, each a logistic regression of what lies above it; it has probabilities too,
        and predicts their median. "immediate_threshold_hinge" and "all_threshold_hinge": the same with the hinge.
        "level_pairs": the hinge of all pairs of rows of different levels, by `costs`; its thresholds are chosen after
        training, and its C multiplies a mean, so that it hardly depends on the number of rows.
    levels : list, default=None
        The levels from the lowest to the highest, by their names; each has to have rows. None: the order of a pandas
        category that has one; otherwise the labels as they are sorted, numbers by their size, and of texts that is
        warned of. It does not matter how far apart numbers are; those with decimals, such as half stars, are levels
        where they are named.
    costs : {"linear", "unit", "squared"} or matrix, default="linear"
        For "level_pairs": what a pair of levels k < l costs, l − k, 1, (l − k)², or the entry of a K × K matrix; its
        thresholds are those with the least total cost on the training rows, for which both triangles of the matrix
        count.
    <C>
    <l1_ratio>
    <class_weight>
    cv : int, float, splitter or iterable, default=5
        As in `LogisticRegression`.
    scoring : str or callable, default=None
        For a search: what is best on held-out rows. None: "level_mae", by how many levels predictions are wrong in the
        mean.
    <solving>

    Attributes
    ----------
    classes_ : ndarray
        The levels, the lowest first.
    thresholds_ : ndarray
        The thresholds, one between any two neighbours, in order.
    <attributes>

    Examples
    --------
    >>> from beeline import OrdinalClassifier
    >>> rows, y = [[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]], ["bad", "bad", "fair", "fair", "good", "good"]
    >>> stars = OrdinalClassifier(levels=["bad", "fair", "good"], C=10.0).fit(rows, y)
    >>> stars.predict([[0.3], [2.4], [6.0]]).tolist()
    ['bad', 'fair', 'good']
    """

    def __init__(  # noqa: PLR0913 — scikit-learn takes every parameter by its name
        self,
        loss: LevelLossName = "immediate_threshold",
        *,
        levels: Sequence[Any] | None = None,
        costs: Any = "linear",  # noqa: ANN401
        C: float | Auto = 1.0,
        l1_ratio: float = 0.0,
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
        self.loss = loss
        self.levels = levels
        self.costs = costs
        self.C = C
        self.l1_ratio = l1_ratio
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

    def __sklearn_tags__(self) -> Any:  # noqa: ANN401
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # where classes are in no order, as no line of scores can tell them
        return tags

    def _gives_probabilities(self) -> bool:
        return self.loss in ("all_threshold", "immediate_threshold")

    def _intercept(self) -> Any:  # noqa: ANN401
        return "free"  # or what the loss has in its place

    def _settings(self) -> dict[str, Any]:
        regularizer = mixture(self.l1_ratio)
        return {"loss": self._loss(), "C": self.C, "regularizer": regularizer, "class_weight": self.class_weight}

    def _loss(self) -> Loss:
        as_choice("loss", self.loss, get_args(LevelLossName))
        if self.loss == "level_pairs":
            return get_loss(self.loss, levels=self.levels, costs=self.costs)
        if not isinstance(self.costs, str) or self.costs != "linear":
            raise ParameterError(
                Argument("costs"), " has no meaning without ", Argument("loss", "level_pairs"), "; leave it out"
            )
        return get_loss(self.loss, levels=self.levels)

    @property
    def coef_(self) -> Floats:
        """The weights w, of shape (1, n_features)."""
        found: Floats = from_level_columns(self._learned().weights).T
        return found

    @property
    def thresholds_(self) -> Floats:
        """The thresholds between neighbouring levels, in order."""
        found = self._learned().extra
        assert found is not None
        return found

    @property
    def intercept_(self) -> Floats:
        """Zero: thresholds take the place of an intercept."""
        return np.zeros(1)

    def position(self, X: Any, *, extra: Extra = "error") -> Floats:  # noqa: ANN401
        """Where each row lies among the thresholds: z = wᵀx.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame, Dataset, Store or path
            The rows, as for `predict`.
        extra : {"error", "ignore"}
            As for `predict`.
        """
        scores: Floats = super().decision_function(X, extra=extra)
        apart = scores if scores.ndim == 1 else scores[:, 1] - scores[:, 0]
        found: Floats = apart + self.thresholds_[0]
        return found

    def decision_function(self, X: Any, *, extra: Extra = "error") -> Floats:  # noqa: ANN401
        """A score for each level, of shape (n_rows, K): the largest is that of the predicted one.

        Level k has k·z − Σ_{j<k} θ_j, so that neighbours differ by z − θ_k; of two levels the difference alone.
        `position` is z itself.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame, Dataset, Store or path
            The rows, as for `predict`.
        extra : {"error", "ignore"}
            As for `predict`.
        """
        scores: Floats = super().decision_function(X, extra=extra)
        return scores
