"""Estimators that learn from rows as they come, and have a good model after a few passes."""

from __future__ import annotations

from os import PathLike
from typing import Any, Literal, Self

from beeline.estimators.base import FitIntercept, LinearClassifier, LinearRegressor
from beeline.estimators.docs import documented
from beeline.estimators.online import OnlineEstimator, Progress
from beeline.fitting.online import Online
from beeline.losses import Loss, get_loss
from beeline.solvers.registry import SolverLike
from beeline.training.labels import ClassWeight

__all__ = ["SGDClassifier", "SGDRegressor"]


@documented
class SGDClassifier(LinearClassifier, OnlineEstimator):
    """A linear classifier that learns from rows as they come.

    Minimises alpha·Ω(w) + the mean of weight_i·l(z_i, y_i), z = Xw + b, by stochastic steps on features that are scaled
    by themselves, with averaged weights: nothing has to be tuned. Nothing is certified either; `report_` tells how rows
    were predicted before they were learned from.

    Batches are learned from by `partial_fit`, or by `fit` with an iterator of them. Classes may appear in any of them,
    and sparse batches may have more features than those before.

    <fit>

    Parameters
    ----------
    loss : str or Loss, default="logistic"
        "logistic", "hinge", "squared_hinge", "modified_huber", "perceptron" and other losses of classes that have a
        compiled form; "softmax" and "crammer_singer" for all classes together.
    <alpha_sgd>
    <l1_ratio>
    <fit_intercept>
    multi_class : {"auto", "ovr", "softmax", "crammer_singer"}, default="auto"
        How more than two classes are told apart: each against the rest, or all together. "auto" is "softmax" for the
        logistic loss with L2, "ovr" otherwise.
    class_weight : dict or "balanced", default=None
        What multiplies the loss of each class's rows: {class: weight}, 1 where none is given. "balanced" gives every
        class the same total weight; of batches, by the rows so far, those of the batch included.
    <solving_sgd>

    Attributes
    ----------
    classes_ : ndarray
        The classes so far.
    coef_, intercept_ : ndarray
        The weights and intercepts, in scikit-learn's shapes.
    n_iter_ : int
        Passes over the data.
    report_ : Report
        How the training went; `report_.sentence` says it in words.
    model_ : Model
        The model, with `save`, `to_liblinear` and `to_onnx`; `from_model` goes on from it.
    n_features_in_, feature_names_in_ : int, ndarray
        The number of features; their names where the data had names.

    Examples
    --------
    >>> from beeline import SGDClassifier
    >>> online = SGDClassifier(loss="hinge")
    >>> for _ in range(20):
    ...     _ = online.partial_fit([[0.0], [3.0]], ["low", "high"])
    >>> online.predict([[0.5], [2.5]]).tolist()
    ['low', 'high']
    """

    def __init__(  # noqa: PLR0913 — scikit-learn takes every parameter by its name
        self,
        loss: str | Loss = "logistic",
        *,
        alpha: float | None = None,
        l1_ratio: float = 0.0,
        fit_intercept: FitIntercept = True,
        multi_class: Literal["auto", "ovr", "softmax", "crammer_singer"] = "auto",
        class_weight: ClassWeight = None,
        shuffle: bool = True,
        solver: SolverLike = "auto",
        tol: float = 1e-4,
        max_passes: float = 1000,
        time_limit: float | None = None,
        memory: str | int | None = None,
        checkpoint: str | PathLike[str] | None = None,
        warm_start: bool = False,
        random_state: Any = None,  # noqa: ANN401
        callback: Progress | None = None,
        verbose: bool = False,
    ) -> None:
        self.loss = loss
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept
        self.multi_class = multi_class
        self.class_weight = class_weight
        self.shuffle = shuffle
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
        return super()._settings() | {"multiclass": self.multi_class, "class_weight": self.class_weight}

    def _gives_probabilities(self) -> bool:
        return get_loss(self.loss).link != "none"

    @staticmethod
    def _said_of_classes(online: Online) -> dict[str, Any]:
        return {"multi_class": online.settings.multiclass, "class_weight": online.settings.class_weight}

    def partial_fit(
        self,
        X: Any,  # noqa: ANN401
        y: Any = None,  # noqa: ANN401
        classes: Any = None,  # noqa: ANN401
        sample_weight: Any = None,  # noqa: ANN401
    ) -> Self:
        """Learn from more rows, in one pass over them; go on from all calls before, or from `fit`.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame, Dataset, iterator of batches or DataIter
            The rows. Sparse rows may have more features than those before: these have had zero weights.
        y : array-like, default=None
            A label a row. May be left out for a data set that has its labels inside, and for batches.
        classes : array-like, default=None
            All classes that there will be. When it is given in the first call, other labels are an error; None: classes
            appear as they come.
        sample_weight : array-like or float, default=None
            A weight a row, or one for all.

        Returns
        -------
        self
        """
        return self._partial_fit(X, y, classes, sample_weight)


@documented
class SGDRegressor(LinearRegressor, OnlineEstimator):
    """A linear regression that learns from rows as they come.

    Minimises alpha·Ω(w) + the mean of weight_i·l(z_i, y_i), z = Xw + b, by stochastic steps on features that are scaled
    by themselves, with averaged weights: nothing has to be tuned, and nothing is certified.

    Batches are learned from by `partial_fit`, or by `fit` with an iterator of them.

    <fit>

    Parameters
    ----------
    loss : str or Loss, default="squared"
        "squared", "huber", "absolute", "epsilon_insensitive", "quantile" and other losses of numbers that have a
        compiled form.
    <alpha_sgd>
    <l1_ratio>
    <fit_intercept>
    <solving_sgd>

    Attributes
    ----------
    coef_, intercept_ : ndarray, float
        The weights and the intercept.
    n_iter_ : int
        Passes over the data.
    report_ : Report
        How the training went; `report_.sentence` says it in words.
    model_ : Model
        The model, with `save`, `to_liblinear` and `to_onnx`; `from_model` goes on from it.
    n_features_in_, feature_names_in_ : int, ndarray
        The number of features; their names where the data had names.

    Examples
    --------
    >>> from beeline import SGDRegressor
    >>> online = SGDRegressor()
    >>> for _ in range(500):
    ...     _ = online.partial_fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0])
    >>> round(float(online.predict([[3.0]])[0]), 1)
    7.0
    """

    def __init__(  # noqa: PLR0913
        self,
        loss: str | Loss = "squared",
        *,
        alpha: float | None = None,
        l1_ratio: float = 0.0,
        fit_intercept: FitIntercept = True,
        shuffle: bool = True,
        solver: SolverLike = "auto",
        tol: float = 1e-4,
        max_passes: float = 1000,
        time_limit: float | None = None,
        memory: str | int | None = None,
        checkpoint: str | PathLike[str] | None = None,
        warm_start: bool = False,
        random_state: Any = None,  # noqa: ANN401
        callback: Progress | None = None,
        verbose: bool = False,
    ) -> None:
        self.loss = loss
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept
        self.shuffle = shuffle
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

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:  # noqa: ANN401
        """Learn from more rows, in one pass over them; go on from all calls before, or from `fit`.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame, Dataset, iterator of batches or DataIter
            The rows. Sparse rows may have more features than those before: these have had zero weights.
        y : array-like, default=None
            A number a row. May be left out for a data set that has its labels inside, and for batches.
        sample_weight : array-like or float, default=None
            A weight a row, or one for all.

        Returns
        -------
        self
        """
        return self._partial_fit(X, y, None, sample_weight)
