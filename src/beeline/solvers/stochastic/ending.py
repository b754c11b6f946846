"""Where a run ends: averages at their best multiple, with the best free intercepts, and sparse where Ω asks for it."""

from __future__ import annotations

import numpy as np

from beeline._types import AnyArray, Floats
from beeline.losses import VectorLoss
from beeline.objective import Objective, Point

__all__ = ["best_multiple"]

_SAMPLE = 8192  # rows by which several intercepts are found
_MOST_OUTPUTS = 512  # whose intercepts are: a step costs n·K²
_MOST_STEPS, _LITTLE = 10, 1e-6  # of Newton's method, and what a step has to gain
_RIDGE = 1e-6  # of the mean curvature: where rows are far from their kinks, there is none
_LEAST_LENGTH = 1e-3


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
    if curved is None or o.n_outputs > _MOST_OUTPUTS:
        return point
    n = o.rows.n_rows
    some = np.unique(np.linspace(0, n - 1, min(n, _SAMPLE)).astype(np.int64))
    z, y, c = (o.rows.pick(vector, some) for vector in (point.z, o.labels, o.costs))
    assert isinstance(curved.loss, VectorLoss)
    moved = point.shifted(_best_shift(curved.loss, np.ascontiguousarray(z), y, c))
    return moved if moved.value <= point.value else point


def _best_shift(loss: VectorLoss, z: Floats, y: Floats, c: Floats) -> Floats:
    """What to add to all scores so that Σ c l is least, by Newton's method, a little regularized."""
    shift = np.zeros(z.shape[1])
    value, slopes, h = loss.derivatives(z, y, c)
    for _ in range(_MOST_STEPS):
        slope, hessian = slopes.sum(axis=0), loss.curvature_total(h)
        ridge = _RIDGE * max(float(np.trace(hessian)), 1e-300) / len(shift)
        step = -np.linalg.solve(hessian + ridge * np.eye(len(shift)), slope)
        step -= step.mean() if loss.shift_invariant else 0.0
        length = 1.0
        while length > _LEAST_LENGTH:
            moved = loss.derivatives(z + (shift + length * step), y, c)
            if moved[0] <= value:
                break
            length *= 0.25
        else:
            break
        shift = shift + length * step
        gained, (value, slopes, h) = value - moved[0], moved
        if gained <= _LITTLE * value:
            break
    return shift


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
