"""What a trained estimator answers: predictions, scores and coefficients."""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from numbers import Real
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_array
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import check_is_fitted, validate_data

from beeline._sentences import Argument
from beeline._types import AnyArray, Floats
from beeline.data.core.arrays import from_arrays
from beeline.data.core.dataset import Dataset
from beeline.data.files.finding import names_files
from beeline.data.options import Extra
from beeline.data.tables.frames import is_frame
from beeline.engines import Resources
from beeline.estimators.given import extra_columns, own_labels, rows_errors, score_of_several
from beeline.estimators.offering import no_probabilities, no_scores, offered_unless
from beeline.exceptions import ParameterError
from beeline.metrics import accuracy, r2
from beeline.model import Model, Report

__all__ = ["FLOATS", "LinearPredictor"]

FLOATS = (np.float64, np.float32)
_OF_COLUMNS = {"extra": UNUSED}


class LinearPredictor(BaseEstimator, metaclass=ABCMeta):  # type: ignore[misc]
    """The half of an estimator that needs nothing but its model; how the model is trained is for `LinearEstimator`."""

    memory: str | int | None

    # Not metadata that a pipeline or a search would hand on: it is about columns, not about rows.
    __metadata_request__predict = _OF_COLUMNS
    __metadata_request__predict_proba = _OF_COLUMNS
    __metadata_request__predict_log_proba = _OF_COLUMNS
    __metadata_request__decision_function = _OF_COLUMNS
    __metadata_request__score = _OF_COLUMNS

    model_: Model

    @property
    @abstractmethod
    def _classifies(self) -> bool:
        """Whether labels are classes."""

    @property
    def _several(self) -> bool:
        """Whether a row has several labels: y is a matrix."""
        return False

    def predict(self, X: Any, *, extra: Extra = "error") -> AnyArray:  # noqa: ANN401
        """The class or the value of each row.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame, Dataset, Store or path
            The rows. Files, and frames where the model has a recipe, are read by the recipe.
        extra : {"error", "ignore"}
            What is done with columns of files and frames that the model does not know.
        """
        predicted = self._answers("predict", X, extra)
        return predicted.reshape(len(predicted), -1) if self._several else predicted

    @offered_unless(no_scores)
    def decision_function(self, X: Any, *, extra: Extra = "error") -> Floats:  # noqa: ANN401
        """The scores: one a row for two classes, otherwise one a row and class.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame, Dataset, Store or path
            The rows. Files, and frames where the model has a recipe, are read by the recipe.
        extra : {"error", "ignore"}
            What is done with columns of files and frames that the model does not know.
        """
        return self._answers("decision_function", X, extra)

    @offered_unless(no_probabilities)
    def predict_proba(self, X: Any, *, extra: Extra = "error") -> Floats:  # noqa: ANN401
        """The probability of each class, of shape (n_rows, classes).

        Parameters
        ----------
        X : array-like, sparse matrix, data frame, Dataset, Store or path
            The rows. Files, and frames where the model has a recipe, are read by the recipe.
        extra : {"error", "ignore"}
            What is done with columns of files and frames that the model does not know.
        """
        return self._answers("predict_proba", X, extra)

    @offered_unless(no_probabilities)
    def predict_log_proba(self, X: Any, *, extra: Extra = "error") -> Floats:  # noqa: ANN401
        """The logarithms of `predict_proba`."""
        return np.log(self.predict_proba(X, extra=extra))  # type: ignore[no-any-return]

    def score(self, X: Any, y: Any = None, sample_weight: Any = None, *, extra: Extra = "error") -> float:  # noqa: ANN401
        """The accuracy of a classifier, or R² of a regression; D² of one of rates, the part of the deviance explained.

        For several numbers a row, the mean of their R²; for sets of labels, the part of the rows whose whole set is
        predicted.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`.
        extra : {"error", "ignore"}
            As for `predict`.
        """
        model, rows = self._fitted_model(), self._rows(X, targets=y is None, extra=extra)
        weights = self._weights(sample_weight, rows.n_rows)
        weights = rows.weights if weights is None else weights
        predicted = model.predict(rows)
        if self._several:
            return score_of_several(model, np.asarray(y), predicted.reshape(len(predicted), -1), weights)
        if model.classes is None:
            return self._agreement(np.asarray(own_labels(rows) if y is None else y, np.float64), predicted, weights)
        if y is None:
            recipe = rows.recipe
            return accuracy(model.label_numbers(own_labels(rows), recipe), model.label_numbers(predicted), weights)
        return accuracy(np.asarray(y), predicted, weights)

    def _agreement(self, y: Floats, predicted: Floats, weights: Floats | None) -> float:
        """How well predicted numbers agree with labels; 1 is best."""
        return r2(y, predicted, weights)

    @property
    def coef_(self) -> Floats:
        """The weights: (n_features,) for a regression of one number, otherwise (outputs, n_features)."""
        weights = self._learned().weights
        return weights.T if self._classifies or self._several else weights[:, 0]

    @property
    def intercept_(self) -> Floats | float:
        """The intercept of a regression, or a vector of them."""
        intercepts = self._learned().intercepts
        return intercepts if self._classifies or self._several else float(intercepts[0])

    @property
    def report_(self) -> Report:
        """How the training went."""
        report = self._learned().report
        assert report is not None
        return report

    def _learned(self) -> Model:
        if not self._is_trained():  # hasattr must say no before the first fit
            raise AttributeError(f"this {type(self).__name__} is not fitted yet; call fit first")
        return self.model_

    def _is_trained(self) -> bool:
        return "model_" in vars(self)

    def _fitted_model(self) -> Model:
        check_is_fitted(self)
        return self.model_

    def _answers(self, method: str, X: Any, extra: Extra) -> AnyArray:  # noqa: ANN401
        """What a method of the model says of the rows; files are read a block at a time."""
        ask = getattr(self._fitted_model(), method)
        said: AnyArray = ask(X, extra=extra) if names_files(X) else ask(self._rows(X, extra=extra))
        return said

    def _rows(self, X: Any, *, targets: bool = False, extra: Extra = "error") -> Dataset:  # noqa: ANN401
        """The rows; `targets`: with the labels and weights of files and frames that have them."""
        by_recipe = is_frame(X) and self.model_.recipe is not None
        if isinstance(X, Dataset) or names_files(X) or by_recipe or extra != "error":
            # Columns of a table become features as those of the training data did.
            return Resources(self.memory).holding(self.model_.dataset(X, targets=targets, extra=extra))
        with rows_errors(X), extra_columns(X, getattr(self, "feature_names_in_", None)):
            X = validate_data(self, X, accept_sparse="csr", dtype=FLOATS, reset=False)
        return from_arrays(X, allow_nonfinite=True, allow_repeated=True)  # all that becomes of them is scores

    @staticmethod
    def _weights(sample_weight: Any, n_rows: int) -> Floats | None:  # noqa: ANN401
        if sample_weight is None:
            return None
        if isinstance(sample_weight, Real):  # one weight for every row, as in scikit-learn
            sample_weight = np.full(n_rows, sample_weight)
        weights: Floats = check_array(
            sample_weight, ensure_2d=False, dtype=np.float64, input_name="sample_weight", ensure_non_negative=True
        )
        if weights.shape != (n_rows,):
            raise ParameterError(
                Argument("sample_weight"), f" must have one weight a row, {n_rows} in all, not shape {weights.shape}"
            )
        return weights
