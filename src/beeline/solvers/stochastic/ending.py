"""Where a run ends: averages at their best multiple, with the best free intercepts, and sparse where Ω asks for it."""

from __future__ import annotations

import numpy as np

from beeline._types import AnyArray, Floats, Ints
from beeline.engines.verbs import products
from beeline.kernels import absolute_sum, dot
from beeline.losses import VectorLoss
from beeline.objective import Objective, Point
from beeline.objective.points import centred

__all__ = ["best_multiple"]

_SAMPLE = 8192  # rows by which several intercepts and, of many more rows, the multiple are found
_ALIKE = 2.0  # times the losses of all rows, that those of a sample may be, or a part of them
_LONGEST, _FINE = 1.5, 2e-3  # multiple, and how finely it is found by a sample
_FEW = 8  # rows of a class in the sample: fewer would take its intercept far down
_MOST_OUTPUTS = 512  # whose intercepts are
_WORK = 1 << 25  # n·K², which a step for them costs: of more classes by fewer rows
_MOST_STEPS, _LITTLE = 10, 1e-6  # of Newton's method, and what a step has to gain
_RIDGE = 1e-6  # of the mean curvature: where rows are far from their kinks, there is none
_LEAST_LENGTH = 1e-3


def best_multiple(o: Objective, theta: Floats, accuracy: float) -> Point:
    """The best point between no weights and a little beyond these, with the best free intercepts; one pass.

    With L1 weights become zero first, which takes three passes. A few rows far larger than all others may cost more
    than all of these: J then asks for smaller weights, with the same signs of nearly all scores.
    """
    if o.regularizer.l1:
        theta = _without_idle(o.at(theta))
    if (found := _by_sample(o, theta)) is not None:
        return found
    point = _with_intercepts(o.at(theta), accuracy)
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


def _by_sample(o: Objective, theta: Floats) -> Point | None:
    """The same for several outputs, by a sample of the rows, or by all where they are few; None where it does not tell.

    It does where its losses are like those of all rows, which a few large ones upset, and J of all rows agrees. All
    rows are scored once, by the weights that are found: at those before, scores are the same but for the multiple.
    """
    if o.n_outputs == 1 or o.couples_rows or o.parameters.n_extra or not o.regularizer.separable:
        return None
    z, y, c = _sample_at(o, theta)
    c = c * (o.total_cost / max(float(c.sum()), 1e-300))
    sampled = o.loss.sum(z, y, c)
    shift = _shift_of(o, z, y, c) if o.intercept == "free" else np.zeros(o.n_outputs)
    before, start = o.split(theta)[1], o.split(o.null.theta)[1]
    t = _best_length(o, theta, np.broadcast_to(start, z.shape).copy(), z + (shift - start), y, c)
    if not t:
        return None
    best = t * theta
    if o.has_intercept:
        best[-o.n_outputs :] += t * (shift - start) + start
    best = centred(o, best)
    w, b = o.split(best)
    small = {"w": w, "b": b if o.has_intercept else None, "stretch": 1 / t, "shift": before, "loss": o.loss}
    loss, loss_before = o.rows.sum(products.losses_twice, o.labels, o.costs, **small).value
    if not loss_before / _ALIKE <= sampled <= _ALIKE * loss_before:
        return None
    point = Point(o, best, is_exact=True).with_loss(loss)
    value_before = o.strength * o.regularizer.value(theta[: o.n_regularized]) + loss_before
    return point if point.value <= value_before else None


def _best_length(o: Objective, theta: Floats, z: Floats, dz: Floats, y: Floats, c: Floats) -> float:
    """How far to go from no weights towards θ, by halving: the slope of J, which is convex, tells the side."""
    low, high, w = 0.0, _LONGEST, theta[: o.n_regularized]
    curvature, steady = o.strength * o.regularizer.l2 * dot(w, w), 0.0
    if o.regularizer.l1:
        steady = o.strength * o.regularizer.l1 * absolute_sum(w)
    while high - low > _FINE:
        t = 0.5 * (low + high)
        _, slope = o.loss.along(z, dz, t, y, c)
        low, high = (t, high) if slope + t * curvature + steady < 0 else (low, t)
    return 0.5 * (low + high)


def _sample_at(o: Objective, theta: Floats) -> tuple[Floats, Floats, Floats]:
    """The same, where the scores of the other rows are not known; rows on disk are all read for it."""
    if not o.rows.in_memory:
        return _sample(o.at(theta))
    some = _even_steps(o.rows.n_rows)
    w, b = o.split(theta)
    z = o.rows.local().gather(some).scores(w)
    z += b
    return z, o.rows.pick(o.labels, some), o.rows.pick(o.costs, some)


def _sample(point: Point) -> tuple[Floats, Floats, Floats]:
    """Scores, labels and costs of rows in even steps."""
    o = point.objective
    some = _even_steps(o.rows.n_rows)
    z, y, c = (o.rows.pick(vector, some) for vector in (point.z, o.labels, o.costs))
    return np.ascontiguousarray(z), y, c


def _even_steps(n: int) -> Ints:
    return np.unique(np.linspace(0, n - 1, min(n, _SAMPLE)).astype(np.int64))


def _shift_of(o: Objective, z: Floats, y: Floats, c: Floats) -> Floats:
    """What to add to the intercepts by these rows; nothing where they cannot be had so, or cost no less there."""
    nothing = np.zeros(o.n_outputs)
    curved, k = _curved(o), o.n_outputs
    every = max(1, -(-len(z) * k**2 // _WORK))
    some, labels, costs = (np.ascontiguousarray(of[::every]) for of in (z, y, c))
    rare = o.loss.classifies and np.bincount(labels.astype(np.int64), minlength=k).min() < _FEW
    if curved is None or rare or k > _MOST_OUTPUTS:
        return nothing
    assert isinstance(curved.loss, VectorLoss)
    shift = _best_shift(curved.loss, some, labels, costs)
    return shift if o.loss.sum(z + shift, y, c) <= o.loss.sum(z, y, c) else nothing


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


def _without_idle(point: Point) -> Floats:
    """The weights, but for those that are better zero: each by itself, the others as they are.

    Averages of weights that L1 takes to zero again and again are not zero. By the slope g of the losses and their
    curvature h along a weight w, zero is the best one where |g − h·w| ≤ λ₁.
    """
    o = point.objective
    if (curved := _curved(o)) is None:
        return point.theta
    n = o.n_weights
    h = point.with_objective(curved).hessian_diagonal()[:n] - o.strength * o.regularizer.l2
    w, g = point.theta[:n], point.loss_gradient[:n]
    idle: AnyArray = (w != 0) & (np.abs(g - np.maximum(h, 0.0) * w) <= o.strength * o.regularizer.l1)
    theta = point.theta.copy()
    theta[:n][idle] = 0.0
    return theta


def _curved(o: Objective) -> Objective | None:
    """The objective, with kinks rounded off where the loss has any; None where neither has a curvature."""
    if o.has_curvature:
        return o
    if not o.loss.has_smoothed:
        return None
    smooth = o.with_loss(o.loss.smoothed(o.natural_width))
    return smooth if smooth.has_curvature else None
