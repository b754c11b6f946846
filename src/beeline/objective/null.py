"""The model without weights: the best intercepts alone, which every other model is measured against."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from beeline._types import Floats
from beeline.data.core.block import Block
from beeline.data.core.dataset import ArrayDataset
from beeline.engines import Threads

if TYPE_CHECKING:
    from beeline.objective.objective import Objective
    from beeline.objective.points import Point

__all__ = ["NullModel", "null_model"]

_ACCURACY = 1e-9  # relative, of J where the loss has kinks
_WIDTHS = 0.25 ** np.arange(13)  # over which kinks are rounded off
_SIGNS = np.array([-1.0, 1.0])
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
    if o.intercept == "free" and (found := _by_formula(o)) is not None:
        return found
    start = _by_label(o) if o.loss.classifies else o.at()
    point = _with_best_intercepts(start) if o.intercept == "free" else start
    theta = np.zeros(o.size)
    if o.has_intercept:
        theta[-o.n_outputs :] = point.theta[-o.n_outputs :]
    value = point.loss  # nothing else counts: a regularized intercept is zero
    if o.loss.classifies:
        return NullModel(theta, value, start.loss)
    least = _LEAST_RATE * o.total_cost if o.loss.link == "exp" else 0.0
    return NullModel(theta, value, max(value, least))


def _by_formula(o: Objective) -> NullModel | None:
    """The null model of a loss with a formula for it; None where there is none, as for a class without rows."""
    labels, costs = _totals(o) if o.loss.classifies else (o.labels, o.costs)
    best = o.loss.best_constant(labels, costs)
    shape = () if best is None or isinstance(best, float) else np.shape(best)
    if best is None or shape != ((o.n_outputs,) if o.n_outputs > 1 else ()):
        return None
    theta, z = np.zeros(o.size), np.empty((len(labels), *shape))
    theta[-o.n_outputs :] = z[:] = best
    value = o.loss.sum(z, labels, costs)
    if not o.loss.classifies:
        return NullModel(theta, value, value)
    z[:] = 0
    return NullModel(theta, value, o.loss.sum(z, labels, costs))


def _totals(o: Objective) -> tuple[Floats, Floats]:
    """Each label once, and what its rows cost together."""
    if o.n_outputs > 1:
        totals = np.bincount(o.labels.astype(np.int64), o.costs, o.n_outputs).astype(np.float64, copy=False)
        return np.arange(float(len(totals))), totals
    positive = o.labels > 0
    return _SIGNS, np.array([np.sum(o.costs, where=~positive), np.sum(o.costs, where=positive)])


def _by_label(o: Objective) -> Point:
    """Zero scores over one row for each label, with the costs of all of its rows: the same J for zero weights."""
    labels, costs = _totals(o)
    rows = ArrayDataset(Block(np.zeros((len(labels), 0)), 0))
    return replace(o, data=rows, labels=labels, costs=costs, engine=Threads()).at()


def _with_best_intercepts(point: Point) -> Point:
    """The best intercepts for zero weights, also where a loss of several scores has kinks: these are rounded off."""
    o = point.objective
    if o.n_outputs == 1 or o.loss.has_curvature:
        return point.with_best_intercept(_ACCURACY)
    if not o.loss.has_rounded:
        return point
    best = point
    for width in _WIDTHS * o.loss.natural_width(o.labels):
        rounded = replace(o, loss=o.loss.rounded(float(width)))
        point = point.under(rounded).with_best_intercept().under(o)
        best = min(best, point, key=lambda p: p.loss)
    return best
