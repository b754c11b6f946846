"""Where a run ends: averages at their best multiple, with the best free intercepts, and sparse where Ω asks for it."""

from __future__ import annotations

import numpy as np

from beeline._types import AnyArray, Floats
from beeline.engines.verbs import columns
from beeline.losses import VectorLoss
from beeline.objective import Objective, Point

__all__ = ["best_multiple"]

_SAMPLE = 8192  # rows by which several intercepts and, of many more rows, the multiple are found
_ALIKE = 2.0  # times the losses of all rows, that those of a sample may be, or a part of them
_LONGEST, _FINE = 1.5, 2e-3  # multiple, and how finely it is found by a sample
_FEW = 8  # rows of a class in the sample: fewer would take its intercept far down
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
    if (found := _by_sample(point)) is not None:
        return found
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
    moved = point.shifted(_shift_of(o, *_sample(point)))
    return moved if moved.value <= point.value else point


def _by_sample(point: Point) -> Point | None:
    """The same by a sample of many rows with several outputs, whose scores fill memory; None where it does not tell.

    It does where its losses are like those of all rows, which a few large ones upset, and J of all rows agrees.
    """
    o = point.objective
    if o.n_outputs == 1 or o.rows.n_rows < 2 * _SAMPLE or o.couples_rows or o.parameters.n_extra:
        return None
    z, y, c = _sample(point)
    c = c * (o.total_cost / max(float(c.sum()), 1e-300))
    if not point.loss / _ALIKE <= o.loss.sum(z, y, c) <= _ALIKE * point.loss:
        return None
    theta = point.theta.copy()
    if o.intercept == "free":
        theta[-o.n_outputs :] += _shift_of(o, z, y, c)
    direction, start = theta - o.null.theta, o.split(o.null.theta)[1]
    shift = o.split(theta)[1] - o.split(point.theta)[1]
    t = _best_length(o, direction, np.broadcast_to(start, z.shape).copy(), z + (shift - start), y, c)
    b = t * (shift - start) + start
    moved = point.moved_to(o.null.theta + t * direction, o.rows.map(columns.stretched, point.z, t=t, b=b))
    return moved if moved.value <= point.value else None


def _best_length(o: Objective, direction: Floats, z: Floats, dz: Floats, y: Floats, c: Floats) -> float:
    """How far to go from no weights, by halving: the slope of J, which is convex, tells the side."""
    low, high, n = 0.0, _LONGEST, o.n_regularized
    while high - low > _FINE:
        t = 0.5 * (low + high)
        _, slope = o.loss.along(z, dz, t, y, c)
        slope += o.strength * float(o.regularizer.gradient(t * direction[:n]) @ direction[:n])
        low, high = (t, high) if slope < 0 else (low, t)
    return 0.5 * (low + high)


def _sample(point: Point) -> tuple[Floats, Floats, Floats]:
    """Scores, labels and costs of rows in even steps."""
    o, n = point.objective, point.objective.rows.n_rows
    some = np.unique(np.linspace(0, n - 1, min(n, _SAMPLE)).astype(np.int64))
    z, y, c = (o.rows.pick(vector, some) for vector in (point.z, o.labels, o.costs))
    return np.ascontiguousarray(z), y, c


def _shift_of(o: Objective, z: Floats, y: Floats, c: Floats) -> Floats:
    """What to add to the intercepts by these rows; nothing where they cannot be had so."""
    curved = _curved(o)
    rare = o.loss.classifies and np.bincount(y.astype(np.int64), minlength=o.n_outputs).min() < _FEW
    if curved is None or rare or o.n_outputs > _MOST_OUTPUTS:
        return np.zeros(o.n_outputs)
    assert isinstance(curved.loss, VectorLoss)
    return _best_shift(curved.loss, z, y, c)


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
