"""Methods that an estimator has only where they mean something, and what to do where one does not."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from types import MethodType
from typing import Any

from beeline.losses import get_loss

__all__ = ["no_probabilities", "no_scores", "offered_unless"]


class offered_unless:  # noqa: N801 — it is used as a decorator
    """A method that is there unless a function of the estimator says why it is not.

    scikit-learn's own `available_if` says that there is no such attribute, and keeps the reason to itself.

    Parameters
    ----------
    refusal
        Gives the sentence that asking for the method raises as an `AttributeError`; None: the method is there.
    """

    fn: Callable[..., Any]

    def __init__(self, refusal: Callable[[Any], str | None]) -> None:
        self.refusal = refusal

    def __call__(self, fn: Callable[..., Any]) -> offered_unless:
        """Decorate the method."""
        self.fn = fn
        update_wrapper(self, fn)
        return self

    def __get__(self, instance: object, owner: type | None = None) -> Any:  # noqa: ANN401
        if instance is None:
            return self.fn
        if (why := self.refusal(instance)) is not None:
            raise AttributeError(f"this {type(instance).__name__} has no {self.fn.__name__}: {why}")
        return MethodType(self.fn, instance)


def no_scores(estimator: Any) -> str | None:  # noqa: ANN401
    """Why there are no scores of classes; None: there are."""
    return None if estimator._classifies else "a model of numbers has values only, by predict"


def no_probabilities(estimator: Any) -> str | None:  # noqa: ANN401
    """Why there are no probabilities, and how to have some; None: there are."""
    if estimator._gives_probabilities():
        return None
    if not estimator._classifies:
        return "only classes have probabilities, and this is a model of numbers"
    if hasattr(estimator, "probability"):
        return "give probability=True to have the scores calibrated, or take the logistic loss"
    if hasattr(estimator, "loss"):
        loss = get_loss(estimator.loss)
        other = "all_threshold" if loss.labels == "levels" else "logistic"
        return f"the loss {loss.name!r} gives scores only; take one with probabilities, such as {other!r}"
    return "its loss gives scores only; LogisticRegression has probabilities"
