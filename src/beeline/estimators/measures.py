"""Classifiers of two classes by measures of all rows together: for classes of which one is rare."""

from __future__ import annotations

from abc import abstractmethod
from os import PathLike
from typing import Any, Literal

from beeline.estimators.base import FitIntercept, LinearClassifier, mixture
from beeline.estimators.docs import documented
from beeline.fitting.settings import Auto
from beeline.losses import FBeta, Loss, Precision, RocArea
from beeline.solvers.base import Callback
from beeline.solvers.registry import SolverLike

__all__ = ["FBetaClassifier", "PrecisionAtK", "ROCClassifier"]


class MeasureClassifier(LinearClassifier):
    """Base of the classifiers that minimise Ω(w) + C·l with a loss l of two classes over all rows."""

    def __init__(  # noqa: PLR0913 — scikit-learn takes every parameter by its name
        self,
        *,
        C: float | Auto = 100.0,
        l1_ratio: float = 0.0,
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

    def __sklearn_tags__(self) -> Any:  # noqa: ANN401
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def _gives_probabilities(self) -> bool:
        return False

    def _intercept(self) -> Literal["free", "regularized", "none"]:
        return super()._intercept() if hasattr(self, "fit_intercept") else "free"  # or what the loss has in its place

    def _settings(self) -> dict[str, Any]:
        return {"loss": self._loss(), "C": self.C, "regularizer": mixture(self.l1_ratio)}


@documented
class ROCClassifier(MeasureClassifier):
    """Two classes told apart by the area under the ROC curve, which cares for the order of scores alone.

    Minimises Ω(w) + C·mean of max(0, 1 − (z_i − z_j)) over all pairs of a positive row i and a negative row j, z = Xw,
    by one sort of the scores. How rare the positive rows are does not matter; a pair weighs weight_i·weight_j.

    No intercept changes the order. For `predict`, the threshold is chosen after training: where the training rows of
    both classes are told best, by the mean of the two parts that are right (Youden's index). It is in `intercept_`;
    `decision_function` is z less that threshold.

    <fit>

    Parameters
    ----------
    max_fpr : float, default=1.0
        Up to which false positive rate the area counts: below 1, only the negative rows with the highest scores do, of
        that part of the weight.
    C : float or "auto", default=100.0
        What multiplies the loss, which is one number for all rows and hardly grows with them; smaller means stronger
        regularization. "auto" searches for the best by cross-validation, and trains on all rows with it.
    <l1_ratio>
    cv : int, float, splitter or iterable, default=5
        As in `LinearSVC`.
    scoring : str or callable, default=None
        For a search: what is best on held-out rows. None: the area under the ROC curve, up to max_fpr.
    <solving>

    Attributes
    ----------
    classes_ : ndarray
        Both classes; the second one is the positive one.
    <attributes>

    Examples
    --------
    >>> from beeline import ROCClassifier
    >>> roc = ROCClassifier().fit([[0.0], [1.0], [2.0], [3.0], [4.0]], [0, 0, 0, 0, 1])
    >>> roc.predict([[1.0], [4.5]]).tolist()
    [0, 1]
    """

    def __init__(  # noqa: PLR0913
        self,
        *,
        max_fpr: float = 1.0,
        C: float | Auto = 100.0,
        l1_ratio: float = 0.0,
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
        super().__init__(
            C=C,
            l1_ratio=l1_ratio,
            cv=cv,
            scoring=scoring,
            solver=solver,
            tol=tol,
            max_passes=max_passes,
            time_limit=time_limit,
            memory=memory,
            checkpoint=checkpoint,
            warm_start=warm_start,
            random_state=random_state,
            callback=callback,
            verbose=verbose,
        )
        self.max_fpr = max_fpr

    def _loss(self) -> Loss:
        return RocArea(self.max_fpr)


@documented
class FBetaClassifier(MeasureClassifier):
    """Two classes told apart by F1, or another F_β: precision and recall of the positive class in one number.

    Minimises Ω(w) + C·max over labels y′ of 1 − F_β(y′, y) + the weighted mean of ½(y′_i − y_i)·z_i, z = Xw + b: at
    least what F_β lacks of 1 on the training rows, where rows with z > 0 are called positive.

    <fit>

    Parameters
    ----------
    beta : float, default=1.0
        β in F_β = (1 + β²)·TP/(β²·n₊ + TP + FP); above 1 recall matters more, below 1 precision.
    C : float or "auto", default=100.0
        What multiplies the loss, which is one number for all rows and hardly grows with them; smaller means stronger
        regularization. "auto" searches for the best by cross-validation, and trains on all rows with it.
    <l1_ratio>
    <fit_intercept>
    cv : int, float, splitter or iterable, default=5
        As in `LinearSVC`.
    scoring : str or callable, default=None
        For a search: what is best on held-out rows. None: F_β itself.
    <solving>

    Attributes
    ----------
    classes_ : ndarray
        Both classes; the second one is the positive one.
    <attributes>

    Examples
    --------
    >>> from beeline import FBetaClassifier
    >>> f1 = FBetaClassifier().fit([[0.0], [1.0], [2.0], [3.0], [4.0]], [0, 0, 0, 0, 1])
    >>> f1.predict([[1.0], [4.5]]).tolist()
    [0, 1]
    """

    def __init__(  # noqa: PLR0913
        self,
        *,
        beta: float = 1.0,
        C: float | Auto = 100.0,
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
        super().__init__(
            C=C,
            l1_ratio=l1_ratio,
            cv=cv,
            scoring=scoring,
            solver=solver,
            tol=tol,
            max_passes=max_passes,
            time_limit=time_limit,
            memory=memory,
            checkpoint=checkpoint,
            warm_start=warm_start,
            random_state=random_state,
            callback=callback,
            verbose=verbose,
        )
        self.beta = beta
        self.fit_intercept = fit_intercept

    def _loss(self) -> Loss:
        return FBeta(self.beta)


@documented
class PrecisionAtK(MeasureClassifier):
    """Two classes told apart by the k rows with the highest scores: how many of them are positive.

    Minimises Ω(w) + C·l with the loss "precision": at least what precision at k lacks of 1 on the training rows. For
    lists of which only the beginning is looked at. A k near the number of positive rows suits the bound best: of those
    that are not needed it knows only the mean. Where k is far below it, and `fit` warns that nothing was learned,
    `ROCClassifier` with a small `max_fpr` finds the beginning of the list.

    No intercept changes the order. For `predict`, the threshold is chosen after training: k of the training rows are
    called positive. It is in `intercept_`; `decision_function` is z = Xw less that threshold.

    <fit>

    Parameters
    ----------
    k : int, default=10
        How many rows; no more than there are positive ones. Weights have to be whole multiples of one weight, which
        counts as one row.
    C : float or "auto", default=100.0
        What multiplies the loss, which is one number for all rows and hardly grows with them; smaller means stronger
        regularization. "auto" searches for the best by cross-validation, and trains on all rows with it.
    <l1_ratio>
    cv : int, float, splitter or iterable, default=5
        As in `LinearSVC`.
    scoring : str or callable, default=None
        For a search: what is best on held-out rows. None: precision, at as large a part of k as rows are held out.
    <solving>

    Attributes
    ----------
    classes_ : ndarray
        Both classes; the second one is the positive one.
    <attributes>

    Examples
    --------
    >>> from beeline import PrecisionAtK
    >>> top = PrecisionAtK(k=2).fit([[0.0], [1.0], [2.0], [3.0], [4.0]], [0, 0, 0, 1, 1])
    >>> top.predict([[1.0], [4.5]]).tolist()
    [0, 1]
    """

    def __init__(  # noqa: PLR0913
        self,
        *,
        k: int = 10,
        C: float | Auto = 100.0,
        l1_ratio: float = 0.0,
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
        super().__init__(
            C=C,
            l1_ratio=l1_ratio,
            cv=cv,
            scoring=scoring,
            solver=solver,
            tol=tol,
            max_passes=max_passes,
            time_limit=time_limit,
            memory=memory,
            checkpoint=checkpoint,
            warm_start=warm_start,
            random_state=random_state,
            callback=callback,
            verbose=verbose,
        )
        self.k = k

    def _loss(self) -> Loss:
        return Precision(self.k)

    def __sklearn_tags__(self) -> Any:  # noqa: ANN401
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # `predict` calls k rows positive, however many are
        return tags
