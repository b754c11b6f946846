"""Where a run ends: averages at their best multiple, with the best free intercepts, and sparse where Ω asks for it."""

from __future__ import annotations

import numpy as np

from beeline._types import AnyArray
from beeline.objective import Objective, Point
from beeline.objective.intercepts import best_intercepts

__all__ = ["best_multiple"]

_MOST_WORK = 1 << 29  # n·K²: what a Hessian of the intercepts may take
_PART = 0.1  # of the slopes along several intercepts, that may be left


def best_multiple(point: Point, accuracy: float) -> Point:
    """The best point between no weights and a little beyond these, with the best free intercepts; no pass.

    With L1 weights become zero first, which takes three passes. A few rows far larger than all others may cost more
    than all of these: J then asks for smaller weights, with the same signs of nearly all scores.
    """
    o = point.objective
    if o.regularizer.l1:
        point = _without_idle(point)
    point = _with_intercepts(point, accuracy)
    point = o.at_null().towards(point, accuracy)
    return _with_intercepts(point, accuracy) if o.n_outputs == 1 else point


def _with_intercepts(point: Point, accuracy: float) -> Point:
    """The same weights with the best free intercepts; of several, where those can be had, nearly the best."""
    o = point.objective
    if o.intercept != "free":
        return point
    if o.n_outputs == 1:
        return point.with_best_intercept(accuracy)
    curved = _curved(o)
    if curved is None or o.rows.n_rows * o.n_outputs**2 > _MOST_WORK:
        return point
    found = best_intercepts(point.with_objective(curved), _PART)
    moved = point if found.theta is point.theta else point.moved_to(found.theta, found.z)
    return moved if moved.value <= point.value else point


def _without_idle(point: Point) -> Point:
    """The weights, but for those that are better zero: each by itself, the others as they are.

    Averages of weights that L1 takes to zero again and again are not zero. By the slope g of the losses and their
    curvature h along a weight w, zero is the best one where |g − h·w| ≤ λ₁.
    """
    o = point.objective
    if (curved := _curved(o)) is None:
        return point
    n = o.n_weights
    h = point.with_objective(curved).hessian_diagonal()[:n] - o.strength * o.regularizer.l2
    w, g = point.theta[:n], point.loss_gradient[:n]
    idle: AnyArray = (w != 0) & (np.abs(g - np.maximum(h, 0.0) * w) <= o.strength * o.regularizer.l1)
    if not idle.any():
        return point
    theta = point.theta.copy()
    theta[:n][idle] = 0.0
    return o.at(theta)


def _curved(o: Objective) -> Objective | None:
    """The objective, with kinks rounded off where the loss has any; None where neither has a curvature."""
    if o.has_curvature:
        return o
    if not o.loss.has_smoothed:
        return None
    smooth = o.with_loss(o.loss.smoothed(o.natural_width))
    return smooth if smooth.has_curvature else None
