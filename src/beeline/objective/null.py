"""The model without weights: the best intercepts alone, which every other model is measured against."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from beeline._types import Floats
from beeline.data.core.block import Block
from beeline.data.core.dataset import ArrayDataset
from beeline.engines import Threads
from beeline.engines.verbs import columns, truncation, values
from beeline.losses import Truncated
from beeline.regularizers import L2

if TYPE_CHECKING:
    from beeline.objective.objective import Objective
    from beeline.objective.points import Point

__all__ = ["NullModel", "null_model"]

_ACCURACY = 1e-9  # relative, of J where the loss has kinks
_WIDTHS = 0.25 ** np.arange(13)  # over which kinks are rounded off
_SIGNS = np.array([-1.0, 1.0])
# Quantiles of the labels, and from how many labels: where the intercept of a loss that is cut off may begin.
_QUANTILES, _SAMPLED = np.arange(0.5, 64) / 64, 4096
_MOST_STEPS = 50  # of such an intercept
_LEAST_RATE = 1e-6  # of a row's cost, that its loss is as large as: a rate of zero is predicted by −∞ alone


@dataclass(frozen=True, eq=False)
class NullModel:
    """J without a model.

    Attributes
    ----------
    theta, value
        Zero weights with the best free intercepts, and J there.
    size
        What a J is large or small against: `value`, but never nothing where an intercept at infinity is the best.
    """

    theta: Floats
    value: float
    size: float


def null_model(objective: Objective) -> NullModel:
    """The null model of an objective; a few looks at labels and costs, and none at the rows."""
    o = objective
    if o.intercept == "free" and not o.couples_rows and (found := _by_formula(o)) is not None:
        return found
    start = _by_label(o) if o.loss.classifies and not o.couples_rows else o.at()
    point = _with_best_intercepts(start) if o.n_free else start
    if not o.loss.convex:  # where a level intercept need not be the best
        point = min(start, point, key=lambda at: at.loss)
    theta = np.zeros(o.size)
    if o.n_free:
        theta[o.n_regularized :] = point.theta[len(point.theta) - o.n_free :]
    value = point.loss  # nothing else counts: a regularized intercept is zero
    if o.loss.classifies:
        return NullModel(theta, value, start.loss)
    least = _LEAST_RATE * o.total_cost if o.loss.link == "exp" else 0.0
    return NullModel(theta, value, max(value, least))


def _by_formula(o: Objective) -> NullModel | None:
    """The null model of a loss with a formula for it; None where there is none, as for a class without rows.

    A formula of the labels of all rows, such as a median, is for rows that lie together.
    """
    if o.loss.classifies:
        labels, costs = _labels(o), o.label_totals
        best = o.loss.best_constant(labels, costs)
        value = _at_constant(o, best, labels, costs) if best is not None and _fits(o, best) else 0.0
    elif o.rows.n_shards == 1:
        best, value = o.rows.sum(values.best_constant, o.labels, o.costs, loss=o.loss).value
    else:
        return None
    if best is None or not _fits(o, best):
        return None
    theta = np.zeros(o.size)
    theta[-o.n_outputs :] = best
    size = _at_constant(o, 0.0 * best, labels, costs) if o.loss.classifies else value
    return NullModel(theta, value, size)


def _fits(o: Objective, best: Floats | float | None) -> bool:
    """Whether it is a number for every output."""
    return best is not None and getattr(best, "shape", ()) == ((o.n_outputs,) if o.n_outputs > 1 else ())


def _at_constant(o: Objective, best: Floats | float, labels: Floats, costs: Floats) -> float:
    """The loss where all scores are the same."""
    z = np.empty((len(labels), *getattr(best, "shape", ())))
    z[:] = best
    return o.loss.sum(z, labels, costs)


def _labels(o: Objective) -> Floats:
    """Each label once, in the order of `label_totals`."""
    return np.arange(float(o.n_classes)) if o.n_outputs > 1 else _SIGNS


def _by_label(o: Objective) -> Point:
    """Zero scores over one row for each label, with the costs of all of its rows: the same J for zero weights."""
    labels, costs = _labels(o), o.label_totals
    rows = Threads().open(ArrayDataset(Block(np.zeros((len(labels), 0)), 0)))
    omega = o.regularizer if o.regularizer.separable else L2()  # of no weights
    return replace(o, rows=rows, labels=rows.scatter(labels), costs=rows.scatter(costs), regularizer=omega).at()


def _with_best_intercepts(point: Point) -> Point:
    """The best intercepts for zero weights, also where a loss of several scores has kinks: these are rounded off."""
    o = point.objective
    if isinstance(o.loss, Truncated) and not o.loss.classifies:
        return _best_of_local(point, o.loss)
    if o.n_outputs == 1 or o.has_curvature or o.couples_rows:
        return point.with_best_intercept(_ACCURACY)
    if not o.loss.has_smoothed:
        return point
    best = point
    for width in _WIDTHS * o.natural_width:
        smoothed = o.with_loss(o.loss.smoothed(float(width)))
        point = point.with_objective(smoothed).with_best_intercept().with_objective(o)
        best = min(best, point, key=lambda p: p.loss)
    return best


def _best_of_local(start: Point, loss: Truncated) -> Point:
    """The best intercept that is found for a regression's loss that is cut off.

    It is flat wherever no label is near, and has an optimum at each crowd of labels: one is looked for from the best of
    some quantiles of the labels, and one from the optimum of the convex loss.
    """
    o = start.objective
    begins = float(o.with_loss(loss.loss).null.theta[-1]), _best_quantile(o, loss)
    return min((_relaxed(start.shifted(b), loss) for b in begins if b is not None), key=lambda at: at.loss)


def _best_quantile(o: Objective, loss: Truncated) -> float | None:
    """The quantile of a sample of the labels that costs this sample least; None where no row counts."""
    most = -(-_SAMPLED // o.rows.n_shards)
    y, c = (o.rows.concat(columns.sample, of, most=most).value[0] for of in (o.labels, o.costs))
    y, c = y[c > 0], c[c > 0]
    scores = np.log(y[y > 0]) if loss.link == "exp" else y
    if not len(scores):
        return None
    starts = np.unique(np.quantile(scores, _QUANTILES, method="nearest"))
    return float(min(starts, key=lambda score: loss.sum(np.full(len(y), score), y, c)))


def _relaxed(point: Point, loss: Truncated) -> Point:
    """The best intercept for the rows that are IN, again and again: J never rises, as in the solver `relaxation`."""
    o = point.objective
    for _ in range(_MOST_STEPS):
        (inside,), _ = o.rows.call(
            truncation.costs_inside, (point.z, o.labels, o.costs), {"loss": loss}, outputs=1, reduce="sum"
        )
        convex = o.with_loss(loss.loss).with_costs(inside)
        moved = point.with_objective(convex).with_best_intercept(_ACCURACY).with_objective(o)
        if not moved.loss < point.loss * (1 - _ACCURACY):
            break
        point = moved
    return point
