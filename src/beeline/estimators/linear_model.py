"""The general estimator: any loss, any regularizer, any solver."""

from __future__ import annotations

from os import PathLike
from typing import Any, Literal

from sklearn.utils import ClassifierTags, RegressorTags

from beeline.estimators.base import FitIntercept, LinearEstimator
from beeline.estimators.docs import documented
from beeline.fitting.settings import Auto
from beeline.losses import Loss, TwoClassLoss, get_loss
from beeline.regularizers import Regularizer
from beeline.solvers.base import Callback
from beeline.solvers.registry import SolverLike
from beeline.training.labels import ClassWeight

__all__ = ["LinearModel"]


@documented
class LinearModel(LinearEstimator):
    """A linear model with any loss, regularizer and solver.

    Minimises Ω(w) + C·Σ weight_i·l(z_i, y_i), z = Xw + b. It is a classifier or a regression as its loss wants; losses
    of sets and vectors take a matrix y, of 0 and 1 or of numbers. A regression under a link predicts values, not
    scores: exp(z) for "poisson".

    <fit>

    Parameters
    ----------
    loss : str or Loss, default="logistic"
        A name among `beeline.losses.LOSSES`, or a loss with settings of its own, or one of yours.
    regularizer : str or Regularizer, default="l2"
        "l2", "l1", "elastic_net" or a regularizer with settings of its own.
    nonnegative : bool, default=False
        No weight may be negative (scikit-learn says `positive`); intercepts may.
    <C>
    <fit_intercept>
    multi_class : {"auto", "ovr", "softmax", "crammer_singer"}, default="auto"
        How classes are told apart: each against the rest, or all in one problem by the logistic loss ("softmax") or the
        hinge ("crammer_singer"). "auto" is "softmax" for the logistic loss with L2 and more than two classes, "ovr"
        otherwise and with `nonnegative`. The losses "softmax" and "crammer_singer" name the form themselves.
    <class_weight>
    probability : bool, default=False
        Offer `predict_proba` for losses that give scores only, calibrated by Platt's method.
    <searching>
    <solving>

    Attributes
    ----------
    classes_ : ndarray
        The classes, of a classifier.
    outliers_ : ndarray
        The numbers of the rows that are cut off, by a loss that cuts off ("ramp", "truncated_squared_hinge",
        `beeline.losses.Truncated`), in the problem of any class. Of rows that were read, where the report says that
        J is an estimate.
    <attributes>

    Examples
    --------
    >>> from beeline import LinearModel
    >>> model = LinearModel(loss="hinge", C=10.0).fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
    >>> model.predict([[0.5], [2.5]]).tolist()
    [0, 1]
    """

    def __init__(  # noqa: PLR0913 — scikit-learn takes every parameter by its name
        self,
        loss: str | Loss = "logistic",
        regularizer: str | Regularizer = "l2",
        *,
        nonnegative: bool = False,
        C: float | Auto = 1.0,
        fit_intercept: FitIntercept = True,
        multi_class: Literal["auto", "ovr", "softmax", "crammer_singer"] = "auto",
        class_weight: ClassWeight = None,
        probability: bool = False,
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
        self.regularizer = regularizer
        self.nonnegative = nonnegative
        self.C = C
        self.fit_intercept = fit_intercept
        self.multi_class = multi_class
        self.class_weight = class_weight
        self.probability = probability
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
        labels = get_loss(self.loss).labels
        # Where features speak against a class, weights that are not negative cannot say so; levels are in an order.
        poor = bool(self.nonnegative) or labels == "levels"
        tags.target_tags.required = self._needs_labels
        tags.target_tags.multi_output, tags.target_tags.single_output = self._several, not self._several
        if self._classifies or labels == "sets":
            several = self._classifies and not isinstance(get_loss(self.loss), TwoClassLoss)
            tags.estimator_type = "classifier"
            tags.classifier_tags = ClassifierTags(poor, multi_class=several, multi_label=labels == "sets")
        else:
            tags.estimator_type, tags.regressor_tags = "regressor", RegressorTags(poor)
        return tags

    @property
    def _classifies(self) -> bool:
        return get_loss(self.loss).classifies

    @property
    def _several(self) -> bool:
        return get_loss(self.loss).labels in ("sets", "vectors")

    @property
    def _needs_labels(self) -> bool:
        return get_loss(self.loss).labels != "none"

    def _gives_probabilities(self) -> bool:
        loss = get_loss(self.loss)
        if loss.labels == "sets":
            return loss.link != "none"
        return loss.classifies and (bool(self.probability) or loss.link != "none")

    def _settings(self) -> dict[str, Any]:
        return {
            "loss": self.loss,
            "regularizer": self.regularizer,
            "nonnegative": bool(self.nonnegative),
            "C": self.C,
            "multiclass": self.multi_class,
            "class_weight": self.class_weight,
            "probability": bool(self.probability),
        }
