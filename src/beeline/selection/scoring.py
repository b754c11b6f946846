"""How held-out rows are judged: beeline's own metrics, and any scorer of scikit-learn's kind."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from beeline import metrics
from beeline._types import AnyArray, Floats, Ints
from beeline.exceptions import ParameterError
from beeline.links import Link, class_numbers, probabilities

__all__ = ["METRICS", "HeldOut", "Metric", "get_metric"]


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Held-out rows and what a model says of them.

    Attributes
    ----------
    labels
        Class numbers, or real targets.
    z
        The scores, of shape (n_rows, n_outputs).
    weights
        A weight a row, or None.
    names
        The classes; None for a regression.
    link
        How scores become probabilities.
    """

    labels: AnyArray
    z: Floats
    weights: Floats | None
    names: AnyArray | None
    link: Link

    @property
    def predicted(self) -> AnyArray:
        """The predicted class numbers or values."""
        return self.z[:, 0] if self.names is None else class_numbers(self.z)

    @property
    def probabilities(self) -> Floats:
        """The probability of each class."""
        return probabilities(self.z, self.link)

    @property
    def numbers(self) -> Ints:
        """The class number of each row."""
        return np.asarray(self.labels).astype(np.int64)


@dataclass(frozen=True)
class Metric:
    """A measure of held-out rows.

    Attributes
    ----------
    name
        What it is called.
    greater_is_better
        Its direction.
    measure
        From held-out rows to a number.
    needs
        `classes`, `two classes`, `probabilities` or `values`: what the task must have.
    """

    name: str
    greater_is_better: bool
    measure: Callable[[HeldOut], float] = field(repr=False)
    needs: str = ""


def _f1(rows: HeldOut) -> float:
    assert rows.names is not None
    table = metrics.confusion(rows.numbers, rows.predicted, len(rows.names), rows.weights)
    return metrics.f1(table, "binary" if len(rows.names) == 2 else "macro")


METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric("accuracy", True, lambda r: metrics.accuracy(r.numbers, r.predicted, r.weights), "classes"),
        Metric("f1", True, _f1, "classes"),
        Metric("auc", True, lambda r: metrics.auc(r.numbers == 1, r.z[:, 0], r.weights), "two classes"),
        Metric("log_loss", False, lambda r: metrics.log_loss(r.numbers, r.probabilities, r.weights), "probabilities"),
        Metric("rmse", False, lambda r: metrics.rmse(r.labels, r.predicted, r.weights), "values"),
        Metric("mae", False, lambda r: metrics.mae(r.labels, r.predicted, r.weights), "values"),
        Metric("r2", True, lambda r: metrics.r2(r.labels, r.predicted, r.weights), "values"),
    )
}


def get_metric(metric: str | Callable[..., float] | None, n_classes: int | None, link: Link) -> Metric:
    """The metric of that name, a scorer of scikit-learn's, or for None the usual one.

    That is accuracy as in the paper, the log loss where scores become probabilities, and for a regression the root of
    the mean squared error.
    """
    if metric is None:
        usual = "rmse" if n_classes is None else "accuracy" if link == "none" else "log_loss"
        return METRICS[usual]
    if isinstance(metric, str) and metric in METRICS:
        found = METRICS[metric]
        _check_needs(found, n_classes, link)
        return found
    return _scorer(metric)


def _check_needs(metric: Metric, n_classes: int | None, link: Link) -> None:
    have = {"values"} if n_classes is None else {"classes"}
    have |= {"two classes"} if n_classes == 2 else set()
    have |= {"probabilities"} if link != "none" else set()
    if metric.needs not in have:
        usable = [m.name for m in METRICS.values() if m.needs in have]
        raise ParameterError(
            f"the metric {metric.name!r} needs {metric.needs}, which this task does not have; take {', '.join(usable)} "
            "or a scorer of scikit-learn"
        )


def _scorer(metric: str | Callable[..., float]) -> Metric:
    """A scorer of scikit-learn's kind: a name it knows, or a function of an estimator, rows and labels."""
    if isinstance(metric, str):
        from sklearn.metrics import get_scorer

        try:
            scorer, name = get_scorer(metric), metric
        except ValueError:
            raise ParameterError(
                f"there is no metric {metric!r}; there are {', '.join(METRICS)} and the scorers of scikit-learn"
            ) from None
        return Metric(name, True, lambda rows: _scored_by_name(name, scorer, rows))
    if not callable(metric):
        raise ParameterError(f"metric must be a name or a scorer, not {metric!r}")
    return Metric(getattr(metric, "__name__", None) or repr(metric), True, lambda rows: _scored(metric, rows))


def _scored_by_name(name: str, scorer: Callable[..., float], rows: HeldOut) -> float:
    """What a scorer of scikit-learn's own says; what it cannot judge is the wrong name for this task."""
    try:
        return _scored(scorer, rows)
    except (AttributeError, TypeError, ValueError) as error:
        reason = " ".join(str(error).split()).rstrip(".")
        raise ParameterError(f"the metric {name!r} does not fit this task: {reason}") from None


def _scored(scorer: Callable[..., float], rows: HeldOut) -> float:
    """What the scorer says; the rows it sees are numbers of held-out rows, which the estimator has answers for."""
    from sklearn.metrics import make_scorer

    from beeline.selection.answers import estimator_of

    labels = rows.labels if rows.names is None else rows.names[rows.numbers]
    places = np.arange(len(labels)).reshape(-1, 1)
    weights = {} if rows.weights is None else {"sample_weight": rows.weights}
    known = isinstance(scorer, type(make_scorer(max)).__mro__[1])
    score: Any = scorer(estimator_of(rows), places, labels, **(weights if known else {}))
    score = float(score)
    return score if math.isfinite(score) else math.nan
