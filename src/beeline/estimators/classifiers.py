"""Classifiers: the linear support vector machine and logistic regression."""

from __future__ import annotations

from os import PathLike
from typing import Any, Literal

from beeline._numbers import as_choice
from beeline.estimators.base import FitIntercept, LinearClassifier, mixture
from beeline.estimators.docs import documented
from beeline.fitting.settings import Auto
from beeline.solvers.base import Callback
from beeline.solvers.registry import SolverLike
from beeline.training.labels import ClassWeight

__all__ = ["LinearSVC", "LogisticRegression"]

_SVC_LOSSES = ("squared_hinge", "hinge", "truncated_squared_hinge", "ramp")


@documented
class LinearSVC(LinearClassifier):
    """Linear support vector machine.

    Minimises Ω(w) + C·Σ weight_i·l(y_i z_i), z = Xw + b, with the hinge or its square as l; for more than two classes,
    one such problem a class, or Crammer and Singer's for all, Ω(W) + C·Σ weight_i·max_k (z_ik + [k ≠ y_i] − z_iy).

    <fit>

    Parameters
    ----------
    <C>
    loss : {"squared_hinge", "hinge", "truncated_squared_hinge", "ramp"} or None, default=None
        max(0, 1 − yz)² or max(0, 1 − yz); "truncated_squared_hinge" and "ramp" are these, cut off at 2, so that
        outliers do not pull (another cap: `LinearModel(loss=Ramp(s))`). None is "squared_hinge", or "hinge" for
        "crammer_singer", which has no other.
    <l1_ratio>
    <fit_intercept>
    multi_class : {"ovr", "crammer_singer"}, default="ovr"
        "ovr" has one problem for each class against the rest, "crammer_singer" one for all classes: the margin between
        the score of the right class and the best other one.
    <class_weight>
    probability : bool, default=False
        Offer `predict_proba`, calibrated by Platt's method on the scores of five-fold cross-validation: takes about
        five more trainings. More than two classes: each against the rest, normalised. `predict` goes by the scores, and
        may disagree with probabilities that are close to each other.
    <searching>
    <solving>

    Attributes
    ----------
    classes_ : ndarray
        The classes.
    outliers_ : ndarray
        With "ramp" and "truncated_squared_hinge", the numbers of the rows that are cut off, in any class's problem.
    <attributes>

    Examples
    --------
    >>> from beeline import LinearSVC
    >>> svm = LinearSVC(C=0.1).fit([[0.0], [1.0], [2.0], [3.0]], ["low", "low", "high", "high"])
    >>> svm.predict([[0.5], [2.5]]).tolist()
    ['low', 'high']
    """

    def __init__(  # noqa: PLR0913 — scikit-learn takes every parameter by its name
        self,
        *,
        C: float | Auto = 1.0,
        loss: Literal["squared_hinge", "hinge", "truncated_squared_hinge", "ramp"] | None = None,
        l1_ratio: float = 0.0,
        fit_intercept: FitIntercept = True,
        multi_class: Literal["ovr", "crammer_singer"] = "ovr",
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
        self.C = C
        self.loss = loss
        self.l1_ratio = l1_ratio
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

    def _settings(self) -> dict[str, Any]:
        as_choice("multi_class", self.multi_class, ("ovr", "crammer_singer"))
        usual = "hinge" if self.multi_class == "crammer_singer" else "squared_hinge"
        loss = usual if self.loss is None else self.loss
        as_choice("loss", loss, _SVC_LOSSES)
        return {
            "loss": loss,
            "C": self.C,
            "regularizer": mixture(self.l1_ratio),
            "multiclass": self.multi_class,
            "class_weight": self.class_weight,
            "probability": bool(self.probability),
        }

    def _gives_probabilities(self) -> bool:
        return bool(self.probability)


@documented
class LogisticRegression(LinearClassifier):
    """Logistic regression.

    Minimises Ω(w) + C·Σ weight_i·log(1 + exp(−y_i z_i)), z = Xw + b; for more than two classes, the cross-entropy of
    the softmax of the scores, Ω(W) + C·Σ weight_i·(log Σ_k exp(z_ik) − z_iy), or one such problem a class.

    <fit>

    Parameters
    ----------
    <C>
    <l1_ratio>
    <fit_intercept>
    multi_class : {"auto", "softmax", "ovr"}, default="auto"
        "softmax" has one problem for all classes, "ovr" one for each class against the rest. "auto" is "softmax" where
        there are more than two classes and L2 regularization, "ovr" otherwise. Asked for two classes, "softmax" gives
        each its weights: their difference is regularized half as much as by "auto".
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
    >>> from beeline import LogisticRegression
    >>> logistic = LogisticRegression().fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
    >>> logistic.predict_proba([[1.5]]).round(3).tolist()
    [[0.5, 0.5]]
    """

    def __init__(  # noqa: PLR0913
        self,
        *,
        C: float | Auto = 1.0,
        l1_ratio: float = 0.0,
        fit_intercept: FitIntercept = True,
        multi_class: Literal["auto", "softmax", "ovr"] = "auto",
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
        self.C = C
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept
        self.multi_class = multi_class
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
        as_choice("multi_class", self.multi_class, ("auto", "softmax", "ovr"))
        return {
            "loss": "logistic",
            "C": self.C,
            "regularizer": mixture(self.l1_ratio),
            "multiclass": self.multi_class,
            "class_weight": self.class_weight,
        }
