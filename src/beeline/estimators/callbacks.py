"""scikit-learn's callbacks beside beeline's own: a task for each `fit`, and one below it for each iteration."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

from beeline.model import Model

try:
    from sklearn.callback import CallbackSupportMixin
    from sklearn.callback import with_callbacks as with_teardown
except ImportError:  # scikit-learn before 1.9 has none

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Nothing: there are no callbacks to support."""

    with_teardown = None


__all__ = ["CallbackSupportMixin", "FitTask", "with_callbacks"]

Method = TypeVar("Method", bound=Callable[..., Any])


def with_callbacks(method: Method) -> Method:
    """The method, after which callbacks of scikit-learn's are ended, whatever it raised.

    Without any it is called as it is: a function of scikit-learn's in between would be where warnings point at.
    """

    @wraps(method)
    def managed(estimator: Any, *args: Any, **given: Any) -> Any:  # noqa: ANN401
        if not getattr(estimator, "_skl_callbacks", None):
            return method(estimator, *args, **given)
        return with_teardown(method)(estimator, *args, **given)

    return cast("Method", managed)


class FitTask:
    """One `fit` as scikit-learn's callbacks see it.

    Parameters
    ----------
    estimator
        Who is fitted.
    X, y, sample_weight
        What `fit` was given.
    """

    def __init__(self, estimator: Any, X: Any, y: Any, sample_weight: Any) -> None:  # noqa: ANN401
        self.estimator = estimator
        metadata = None if sample_weight is None else {"sample_weight": sample_weight}
        self.given = {"estimator": estimator, "X": X, "y": y, "metadata": metadata}
        self.context = estimator._init_callback_context(max_subtasks=None)  # nobody knows how many iterations
        self.context.call_on_fit_task_begin(**self.given)

    @classmethod
    def begun(cls, estimator: Any, X: Any, y: Any, sample_weight: Any) -> FitTask | None:  # noqa: ANN401
        """The task of an estimator that has callbacks of scikit-learn's; None where it has none."""
        return cls(estimator, X, y, sample_weight) if getattr(estimator, "_skl_callbacks", None) else None

    def end_of(self, name: str, model: Callable[[], Model] | None = None) -> bool:
        """A task below it, called so, has ended, with this model so far; whether a callback wants to stop."""
        context = self.context.subcontext(task_name=name)
        context.call_on_fit_task_begin(**self.given)
        fitted = None if model is None else lambda: _fitted_attributes(model())
        return bool(context.call_on_fit_task_end(**self.given, reconstruction_attributes=fitted))

    def end(self) -> None:
        """The model is there."""
        self.context.call_on_fit_task_end(
            **self.given, reconstruction_attributes=lambda: _fitted_attributes(self.estimator.model_)
        )


def _fitted_attributes(model: Model) -> dict[str, Any]:
    """What makes a copy of an estimator one that predicts by this model."""
    known: dict[str, Any] = {"model_": model, "n_features_in_": model.n_features}
    return known if model.classes is None else known | {"classes_": model.classes}
