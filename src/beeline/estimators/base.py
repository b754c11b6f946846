"""What all estimators share: from arrays or data sets to a trained model."""

from __future__ import annotations

import sys
from abc import abstractmethod
from dataclasses import replace
from functools import partial
from os import PathLike
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import validate_data

from beeline._numbers import as_function, as_number
from beeline._sentences import Argument
from beeline._types import AnyArray
from beeline.data.core.arrays import from_arrays
from beeline.data.core.dataset import Dataset
from beeline.data.tables.frames import is_frame, is_plain_numbers
from beeline.engines import Resources
from beeline.estimators.callbacks import CallbackSupportMixin, FitTask, with_callbacks
from beeline.estimators.display import certificate_html
from beeline.estimators.foreign import hint_at, with_hints
from beeline.estimators.given import (
    check_classes,
    check_given_labels,
    in_given_order,
    own_labels,
    plain_rows,
    read_frame,
    refuse_files,
    rows_errors,
)
from beeline.estimators.predictor import FLOATS, LinearPredictor
from beeline.estimators.saving import restored, saved
from beeline.exceptions import LabelError, ParameterError
from beeline.fitting import Fitted, Settings, fit
from beeline.losses import get_loss
from beeline.model import Model
from beeline.regularizers import L1, L2, ElasticNet, Regularizer
from beeline.selection import PathPoint, Selecting, Selection
from beeline.solvers.base import Callback, Step
from beeline.solvers.registry import SolverLike
from beeline.solvers.result import rows_outside

__all__ = ["FitIntercept", "LinearClassifier", "LinearEstimator", "LinearRegressor", "mixture"]

FitIntercept = bool | Literal["regularized"]

_NOTHING_SAID = Resources()
_SAVED = "_saved"  # among the attributes of a state, what was learned


class LinearEstimator(CallbackSupportMixin, LinearPredictor):  # type: ignore[misc]
    """Base of all estimators: a linear model with scikit-learn's interface."""

    fit_intercept: FitIntercept
    cv: Any
    scoring: Any
    solver: SolverLike
    tol: float
    max_passes: float
    time_limit: float | None
    checkpoint: str | PathLike[str] | None
    warm_start: bool
    random_state: Any
    callback: Callback | None
    verbose: bool

    selection_: Selection
    classes_: AnyArray
    n_features_in_: int
    feature_names_in_: AnyArray

    def __init_subclass__(cls, **kwargs: Any) -> None:  # noqa: ANN401
        super().__init_subclass__(**kwargs)
        if "__init__" in vars(cls):
            cls.__init__ = with_hints(cls.__init__)  # type: ignore[method-assign]

    def set_params(self, **params: Any) -> Self:  # noqa: ANN401
        """Set parameters, as in scikit-learn.

        Parameters
        ----------
        **params
            Parameters by their names.
        """
        known = self._get_param_names()
        for name in params:
            if name.partition("__")[0] not in known:
                raise ParameterError(
                    f"{type(self).__name__} has no parameter {name!r}; {hint_at(name, known)}", parameter=name
                )
        super().set_params(**params)
        return self

    def __getstate__(self) -> dict[str, Any]:
        """Parameters as they are, and what was learned without a class of its own, as `saving` tells."""
        state = dict(super().__getstate__())
        learned = {name: state.pop(name) for name in self._learned_names() if name in state}
        return state | {_SAVED: saved(learned)} if learned else state

    def __setstate__(self, state: dict[str, Any]) -> None:
        attributes = {name: value for name, value in state.items() if name != _SAVED}
        super().__setstate__(attributes | (restored(state[_SAVED]) if _SAVED in state else {}))

    def _learned_names(self) -> tuple[str, ...]:
        """The attributes that are saved without their classes."""
        return ("model_", "results_", "selection_")

    def _html_repr(self) -> str:
        """scikit-learn's diagram; of a fitted estimator with its certificate."""
        diagram: str = super()._html_repr()
        if not self._is_trained():
            return diagram
        return diagram + certificate_html(self.report_, getattr(self, "selection_", None))

    @abstractmethod
    def _settings(self) -> dict[str, Any]:
        """The estimator's own fields of `Settings`."""

    @property
    def _needs_labels(self) -> bool:
        """Whether there must be labels at all."""
        return True

    def _gives_probabilities(self) -> bool:
        """Whether scores become probabilities."""
        return False

    def __sklearn_tags__(self) -> Any:  # noqa: ANN401
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    @property
    def _searches_epsilon(self) -> bool:
        """Whether the loss's epsilon is to be searched for with C."""
        return False

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None) -> Self:  # noqa: ANN401
        """Train the model.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame, Dataset or Store
            The rows. Of a frame, text and categories become indicators as in `beeline.read`.
        y : array-like, default=None
            A label a row. May be left out for a data set that has its labels inside.
        sample_weight : array-like or float, default=None
            A weight a row, or one for all: a weight of 2 means the same as having the row twice. May be left out for a
            data set that has its weights inside.
        groups : array-like, default=None
            A group a row: a loss of groups sees its rows together, which must lie together, and in a search they stay
            in one fold. None: the queries of a data set.

        Returns
        -------
        self
        """
        as_function("callback", self.callback)
        self._refuse_levels()
        settings = Settings(
            intercept=None if (intercept := self._intercept()) == "free" else intercept,
            solver=self._solver_for(X),
            tol=self.tol,
            max_passes=self.max_passes,
            time_limit=self.time_limit,
            seed=self._seed(),
            checkpoint=self.checkpoint,
            resources=_NOTHING_SAID if self.memory is None else Resources(self.memory),
            **self._settings(),
        )
        settings = in_given_order(settings, y)
        grouped = settings.the_loss.scope == "group"
        task = FitTask.begun(self, X, y, sample_weight)
        if settings.searches:
            settings = replace(settings, selecting=self._selecting(groups, task))
        else:
            self._refuse_search_options(None if grouped else groups)
        data, labels = self._training_data(X, y)
        fitted = fit(
            data,
            settings,
            labels,
            sample_weight=self._weights(sample_weight, data.n_rows),
            groups=groups if grouped else None,
            callback=partial(self._on_step, task) if self.verbose or self.callback or task else None,
            start=self._start(data, labels),
            feature_names=list(self.feature_names_in_) if hasattr(self, "feature_names_in_") else None,
        )
        self.model_, self.results_ = fitted.model, fitted.results
        self._remember(fitted)
        if self.model_.classes is not None:
            self.classes_ = self.model_.classes
        self.n_iter_ = max(1, round(self.report_.passes))
        if task is not None:
            task.end()
        fitted.remove_checkpoint()
        return self

    def _solver_for(self, X: Any) -> SolverLike:  # noqa: ANN401
        """Who minimises, over these rows."""
        return self.solver

    def _refuse_levels(self) -> None:
        """`verbose` is no level: there is one kind of line."""
        if self.verbose not in (False, True):
            raise ParameterError(
                Argument("verbose"),
                f" must be True or False, a line after every iteration or none, not {self.verbose!r}",
            )

    def _refuse_search_options(self, groups: Any) -> None:  # noqa: ANN401
        if groups is not None:
            raise ParameterError(
                Argument("groups"),
                " have no meaning without a search or a loss of groups; give ",
                Argument("C", "auto"),
                ", or leave them out",
            )
        if self._searches_epsilon:
            raise ParameterError(
                Argument("epsilon", "auto"), " is searched for together with C; give ", Argument("C", "auto"), " too"
            )
        strength = "alpha" if hasattr(self, "alpha") else "C"
        # Pairs of rows pass: scikit-learn's checks set them in every estimator that has `cv`, also without a search.
        folds, scoring = getattr(self, "cv", None), getattr(self, "scoring", None)
        other_folds = not isinstance(folds, list) and folds is not None and not (isinstance(folds, int) and folds == 5)
        for name, given in (("cv", other_folds), ("scoring", scoring is not None)):
            if given:
                raise ParameterError(
                    Argument(name),
                    " has no meaning without a search; give ",
                    Argument(strength, "auto"),
                    ", or leave it out",
                )

    def _selecting(self, groups: Any, task: FitTask | None) -> Selecting:  # noqa: ANN401
        return Selecting(
            folds=5 if self.cv is None else self.cv,
            metric=self.scoring,
            groups=groups,
            search_epsilon=self._searches_epsilon,
            max_passes=self.max_passes,
            on_point=partial(self._on_point, task) if self.verbose or task is not None else None,
        )

    def _remember(self, fitted: Fitted) -> None:
        """What a search found, what the model was trained with, and the rows that its loss has cut off."""
        for name in ("selection_", "outliers_"):
            self.__dict__.pop(name, None)
        if (outside := rows_outside(fitted.results)) is not None:
            self.outliers_ = outside
        if fitted.selection is not None:
            self.selection_ = fitted.selection
        for name in ("C", "alpha"):
            if name in fitted.model.settings and hasattr(self, name):
                setattr(self, f"{name}_", fitted.model.settings[name])
        if hasattr(self, "epsilon"):
            self.epsilon_ = fitted.model.loss_settings["epsilon"]

    def _training_data(self, X: Any, y: Any) -> tuple[Dataset, AnyArray | None]:  # noqa: ANN401
        """(the rows, the labels; None: those inside the data set)."""
        refuse_files(X)
        if is_frame(X) and not is_plain_numbers(X):
            X = read_frame(X)
        if not isinstance(X, Dataset):
            return self._array_data(X, y)
        self.n_features_in_ = X.n_features
        if hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        if X.feature_names is not None:
            self.feature_names_in_ = np.array(X.feature_names, dtype=object)
        if not self._needs_labels:
            return X, None
        if y is not None:
            check_given_labels(y, self, several=self._several)
            y = check_array(y, ensure_2d=False, dtype=None, input_name="y")
            if y.ndim != 1 + self._several or len(y) != X.n_rows:
                what = "a row of labels" if self._several else "one label"
                raise LabelError(f"y must have {what} a row, {X.n_rows} in all, not shape {y.shape}")
            self._look_at_classes(y)
        return X, y

    def _array_data(self, X: Any, y: Any) -> tuple[Dataset, AnyArray | None]:  # noqa: ANN401
        options: dict[str, Any] = {"accept_sparse": "csr", "dtype": FLOATS}
        if self._needs_labels and not self._several and (data := plain_rows(X, y)) is not None:
            self.n_features_in_ = data.n_features
            self.__dict__.pop("feature_names_in_", None)
            self._look_at_classes(y)
            return data, y
        with rows_errors(X):
            if not self._needs_labels:
                return from_arrays(validate_data(self, X, **options), allow_nonfinite=True), None
            if y is not None:
                check_given_labels(y, self, several=self._several)
            options |= {"y_numeric": not self._classifies, "multi_output": self._several}
            X, y = validate_data(self, X, y, **options)
        self._look_at_classes(y)
        return from_arrays(X, allow_nonfinite=True), y

    def _look_at_classes(self, y: AnyArray) -> None:
        if self._classifies and y.dtype.kind not in "biu":  # whole numbers are classes without a look
            check_classes(y, get_loss(self._settings()["loss"]))

    def _intercept(self) -> Literal["free", "regularized", "none"]:
        if self.fit_intercept == "regularized":
            return "regularized"
        if not isinstance(self.fit_intercept, bool | np.bool_):
            raise ParameterError(
                Argument("fit_intercept"), f" must be True, False or 'regularized', not {self.fit_intercept!r}"
            )
        return "free" if self.fit_intercept else "none"

    def _seed(self) -> int:
        if self.random_state is None:
            return 0
        if isinstance(self.random_state, int | np.integer):
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(2**31))

    def _start(self, data: Dataset, labels: AnyArray | None) -> Model | None:
        """The last model, if it may serve as a start."""
        if not self.warm_start or not self._is_trained() or self.model_.n_features != data.n_features:
            return None
        if not self._classifies:
            outputs = 1 if not self._several else 0 if labels is None else labels.shape[1]
            fits = self.model_.kind in ("regression", "multilabel") and self.model_.n_outputs == outputs
            return self.model_ if fits else None
        y = own_labels(data) if labels is None else labels
        return self.model_ if np.array_equal(np.unique(y), np.sort(self.classes_)) else None

    def _on_step(self, task: FitTask | None, step: Step) -> bool:
        if self.verbose:
            sys.stdout.write(f"{step}\n")
        ended = self.callback is not None and bool(self.callback(step))
        return (task is not None and task.end_of("iteration", step.model)) or ended

    def _on_point(self, task: FitTask | None, point: PathPoint) -> bool:
        if self.verbose:
            sys.stdout.write(f"{point}\n")
        return task is not None and task.end_of("value of C")


class LinearClassifier(ClassifierMixin, LinearEstimator):  # type: ignore[misc]
    """Base of the classifiers."""

    score = LinearEstimator.score  # which takes data sets too

    @property
    def _classifies(self) -> bool:
        return True

    def _gives_probabilities(self) -> bool:
        return True


class LinearRegressor(RegressorMixin, LinearEstimator):  # type: ignore[misc]
    """Base of the regressions."""

    score = LinearEstimator.score

    @property
    def _classifies(self) -> bool:
        return False


def mixture(l1_ratio: float) -> Regularizer:
    """L2, L1 or the elastic net between them."""
    if as_number("l1_ratio", l1_ratio) in (0, 1):
        return L1() if l1_ratio else L2()
    return ElasticNet(l1_ratio)
