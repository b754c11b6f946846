"""A classifier whose mistakes cost differently."""

from __future__ import annotations

from os import PathLike
from typing import Any, Literal

from beeline._numbers import as_choice
from beeline.estimators.base import FitIntercept, LinearClassifier, mixture
from beeline.estimators.docs import documented
from beeline.fitting.settings import Auto
from beeline.losses import CrammerSinger, Loss, MulticlassMargin, ScaledMulticlassMargin
from beeline.solvers.base import Callback
from beeline.solvers.registry import SolverLike
from beeline.training.labels import ClassWeight

__all__ = ["CostSensitiveClassifier"]


@documented
class CostSensitiveClassifier(LinearClassifier):
    """A multi-class support vector machine with a cost for every mistake.

    Minimises Ω(W) + C·Σ weight_i·max_k (z_ik − z_iy + Δ(y_i, k)), z = XW + b, or with the slack rescaled
    max_k Δ(y_i, k)·(z_ik − z_iy + 1), where Δ(y, k) is what it costs to take class y for class k.

    <fit>

    Parameters
    ----------
    cost_matrix : array-like, default=None
        Δ: a row for every class y and a column for every class k, in the order of the sorted classes; not negative,
        zeros on the diagonal. None: every mistake costs 1, as in Crammer and Singer's form.
    rescaling : {"margin", "slack"}, default="margin"
        "margin": a worse mistake needs a larger margin. "slack": it counts more.
    <C>
    <l1_ratio>
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
    >>> from beeline import CostSensitiveClassifier
    >>> rows, y = [[0.0], [1.0], [2.0], [3.0]], ["no", "yes", "no", "yes"]
    >>> careful = CostSensitiveClassifier([[0, 1], [9, 0]], C=10.0).fit(rows, y)
    >>> careful.predict([[1.0], [2.0]]).tolist()
    ['yes', 'yes']
    """

    def __init__(  # noqa: PLR0913 — scikit-learn takes every parameter by its name
        self,
        cost_matrix: Any = None,  # noqa: ANN401
        *,
        rescaling: Literal["margin", "slack"] = "margin",
        C: float | Auto = 1.0,
        l1_ratio: float = 0.0,
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
        self.cost_matrix = cost_matrix
        self.rescaling = rescaling
        self.C = C
        self.l1_ratio = l1_ratio
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

    def _gives_probabilities(self) -> bool:
        return False

    def _settings(self) -> dict[str, Any]:
        return {
            "loss": self._loss(),
            "C": self.C,
            "regularizer": mixture(self.l1_ratio),
            "class_weight": self.class_weight,
        }

    def _loss(self) -> Loss:
        as_choice("rescaling", self.rescaling, ("margin", "slack"))
        if self.cost_matrix is None:  # the two are the same then, and this one has the faster solver
            return CrammerSinger()
        return (MulticlassMargin if self.rescaling == "margin" else ScaledMulticlassMargin)(self.cost_matrix)
