"""Held-out rows in the clothes of a scikit-learn estimator, for scikit-learn's scorers.

The scores are known before the scorer asks. Its `X` is a column of row numbers, and the answers are looked up.
"""

from __future__ import annotations

from typing import Any

from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.metaestimators import available_if

from beeline._types import AnyArray, Floats
from beeline.selection.scoring import HeldOut

__all__ = ["estimator_of"]


def _has_probabilities(estimator: _Classifier) -> bool:
    return estimator.rows.link != "none"


class _Answers(BaseEstimator):  # type: ignore[misc]
    """Whose scores are known already."""

    def __init__(self, rows: HeldOut) -> None:
        self.rows = rows

    def fit(self, X: Any, y: Any = None) -> Any:  # noqa: ANN401
        """Nothing is left to learn."""
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True


class _Classifier(ClassifierMixin, _Answers):  # type: ignore[misc]
    @property
    def classes_(self) -> AnyArray:
        assert self.rows.names is not None
        return self.rows.names

    def predict(self, X: AnyArray) -> AnyArray:
        """The predicted classes."""
        return self.classes_[self.rows.predicted[X[:, 0]]]

    def decision_function(self, X: AnyArray) -> Floats:
        """The scores."""
        z = self.rows.z[X[:, 0]]
        return z[:, 0] if z.shape[1] == 1 else z

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: AnyArray) -> Floats:
        """The probability of each class."""
        return self.rows.probabilities[X[:, 0]]


class _Regressor(RegressorMixin, _Answers):  # type: ignore[misc]
    def predict(self, X: AnyArray) -> AnyArray:
        """The predicted values, or sets of labels."""
        return self.rows.predicted[X[:, 0]]


def estimator_of(rows: HeldOut) -> Any:  # noqa: ANN401
    """An estimator that answers for the rows."""
    return _Regressor(rows) if rows.names is None else _Classifier(rows)
