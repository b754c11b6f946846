"""The best free intercepts of a loss of several scores, and what it costs a bound when they are not quite the best."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from beeline._types import Floats
from beeline.data.block import Block
from beeline.kernels import dot, solve_positive
from beeline.losses import VectorLoss

if TYPE_CHECKING:
    from beeline.objective.points import Point

__all__ = ["best_intercepts", "leak"]

_NOTHING = 1e-15  # what rounding may do to J, relatively


def best_intercepts(point: Point) -> Point:
    """The same weights with the best free intercepts of a smooth loss of K scores; no pass over the data.

    Newton's method until the next step would lower J by nothing that double precision can tell; steps are halved while
    they raise J. The Hessian costs n·K²/2 steps and changes little on the way: it is made anew only when its last step
    helped little. Where a shift of all intercepts at once changes no loss, of those that are best the sum of these is
    zero.
    """
    loss = point.objective.loss
    if isinstance(loss, VectorLoss) and loss.shift_free:
        point = point.shifted(-float(np.mean(point.theta[-point.objective.n_outputs :])))
    hessian, before = None, np.inf
    for _ in range(100):
        slope = np.sum([u.sum(axis=0) for u in point.slopes], axis=0)
        size = float(np.abs(slope).max())
        if hessian is None or size > 0.1 * before:
            hessian = _intercept_hessian(point)
        step = -slope
        if not solve_positive(hessian.copy(), step):  # no curvature at all: scores that are far apart
            step = -slope / (size or 1.0)
        if dot(-slope, step) <= _NOTHING * point.loss:
            break
        moved = point.shifted(step)
        while moved.loss > point.loss * (1 + _NOTHING) and np.abs(step).max() > _NOTHING:
            step *= 0.5
            moved = point.shifted(step)
        point, before = moved, size
    return point


def _intercept_hessian(point: Point) -> Floats:
    """∂²J/∂b², with a curvature along (1, …, 1) too, where it has none of its own."""
    loss, k = point.objective.loss, point.objective.n_outputs
    assert isinstance(loss, VectorLoss)
    hessian = np.zeros((k, k))
    for h in point.curvatures:
        hessian += _softmax_total(h) if loss.has_softmax_curvature else loss.curvature_total(h)
    mean = np.trace(hessian) / k
    hessian[np.diag_indices(k)] += 1e-14 * mean
    if loss.shift_free:
        hessian += mean / k
    return hessian


def _softmax_total(h: Floats) -> Floats:
    """`VectorLoss.curvature_total` of the softmax form, by a kernel."""
    k, totals = h.shape[1], h.sum(axis=1)
    inverse = np.divide(1.0, totals, out=np.zeros_like(totals), where=totals > 0)
    total: Floats = -Block(h, k).gram(inverse)
    total[np.diag_indices(k)] += h.sum(axis=0)
    return total


def leak(slope: Floats, intercepts: Floats) -> float:
    """What a slope along the intercepts that rounding has left may cost, for intercepts ten times as large as these."""
    return float(np.abs(slope).sum()) * 10 * max(1.0, float(np.abs(intercepts).max(initial=0.0)))
