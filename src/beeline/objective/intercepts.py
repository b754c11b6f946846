"""The best free intercepts for given weights, from scores alone: no pass over the data.

Nothing relies on what is found here being the best: a bound of min J measures what is missing (`certificates`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from beeline._types import Floats
from beeline.engines.verbs import values
from beeline.kernels import dot, solve_positive
from beeline.losses import VectorLoss

if TYPE_CHECKING:
    from beeline.objective.line import Line
    from beeline.objective.points import Point

__all__ = ["best_free", "best_free_by_turns", "best_intercept", "best_intercepts", "level_intercepts", "newton_shifted"]

_UNIT = float(np.finfo(np.float64).eps)
_NOTHING = 1e-15  # what rounding may do to J, relatively
_LEVEL = 1e-13  # a slope of J along the intercept, as a part of the sizes of all slopes, that is zero
# Of several intercepts less: that of a class without rows has all slopes of one sign, which nothing else can cancel.
_LEVEL_OF_SEVERAL = 1e-16
_GROWTH = 8.0  # of a step while the minimum has not been passed
_NEWTON_STEPS, _LITTLE = 6, 0.25  # of which each leaves this part of the slope
_MOST_STEPS = 100
_MOST_HALVINGS, _SUFFICIENT = 60, 1e-4
_MOST_TURNS, _FEW_FREE = 3, 32
_FARTHEST = 1e30  # widths, where no minimum is looked for any more


def best_intercept(point: Point, level: float = _LEVEL) -> Point:
    """The same weights with the best free intercept of a smooth loss of one score a row.

    Newton's method, as long as each step leaves little of the slope along the intercept; it ends where that is at most
    the `level` part of the sizes of all slopes. Elsewhere a search: the slope only rises, so that steps grow until it
    changes its sign, and then the bracket shrinks by the secant rule, or by half where that is slow. Where the slope
    never does, as with one class only, the search ends once J has nothing left to lose.
    """
    for _ in range(_NEWTON_STEPS if point.objective.has_curvature else 0):
        if abs(float(point.slope_total)) <= level * point.slope_size:
            return point
        if (moved := _newton_moved(point)) is None:
            break
        point = moved
    slope = float(point.slope_total)
    if abs(slope) <= level * point.slope_size:
        return point
    line = point.along_intercept()
    ends = _bracket(point, line, slope)
    if isinstance(ends, float):
        return point.shifted(ends)
    low, high = ends
    size = point.shifted(low[0] if -low[1] < high[1] else high[0]).slope_size
    return point.shifted(_root(line, low, high, _LEVEL * size, _UNIT * point.score_bound))


def level_intercepts(points: Sequence[Point], allowed: float) -> list[Point]:
    """As `Point.with_level_intercept` for each of some points of one score a row; they share trips to the rows."""
    found = list(points)
    for point in found:
        point.ask()
    levels = [max(_LEVEL, 0.5 * allowed / p.loss) if p.loss > 0 else _LEVEL for p in found]
    for _ in range(_NEWTON_STEPS):
        slanted = [k for k, p in enumerate(found) if abs(float(p.slope_total)) > levels[k] * p.slope_size]
        if not slanted:
            break
        moved = {k: newton_shifted(found[k]) for k in slanted}
        for there in moved.values():
            if there is not None:
                there.ask()
        for k, there in moved.items():
            if there is not None and abs(float(there.slope_total)) <= _LITTLE * abs(float(found[k].slope_total)):
                found[k] = there
            else:
                found[k], levels[k] = best_intercept(found[k], levels[k]), math.inf
    return found


def _newton_moved(point: Point) -> Point | None:
    """A Newton step along the intercept; None where it is far, or leaves much of the slope."""
    moved = newton_shifted(point)
    if moved is None or not abs(float(moved.slope_total)) <= _LITTLE * abs(float(point.slope_total)):
        return None
    return moved


def newton_shifted(point: Point, *, clipped: bool = False) -> Point | None:
    """A Newton step along the intercept of one score, wherever it leads.

    None where there is none, or where it is far: there it goes as far as allowed, if it may be `clipped`.
    """
    o = point.objective
    if o.n_outputs > 1 or o.intercept != "free" or not o.has_curvature:
        return None
    slope, curvature, farthest = float(point.slope_total), float(point.curvature_total), _GROWTH * o.natural_width
    if abs(slope) <= farthest * curvature and curvature > 0:
        return point.shifted(-slope / curvature)
    return point.shifted(-math.copysign(farthest, slope)) if clipped and math.isfinite(slope) else None


def _bracket(point: Point, line: Line, slope: float) -> float | tuple[tuple[float, float], tuple[float, float]]:
    """Two (t, slope) on both sides of the root; or a t that is as good as it gets."""
    o = point.objective
    width = o.natural_width
    curvature = float(point.curvature_total) if o.has_curvature else 0.0
    newton = abs(slope) / curvature if curvature > 0 else math.inf
    step = min(newton, _GROWTH * width)
    here, last = (0.0, slope), point.value
    while abs(here[0]) <= _FARTHEST * max(width, point.score_bound):
        t = here[0] - math.copysign(step, slope)
        value, there = line.at(t)
        if not (math.isfinite(value) and math.isfinite(there)):
            return here[0]
        if there == 0:
            return t
        if (there > 0) != (slope > 0):
            ends = here, (t, there)
            return (ends[0], ends[1]) if slope < 0 else (ends[1], ends[0])
        if abs(value - last) <= _NOTHING * abs(last) and abs(there) <= _LEVEL * abs(slope):
            return t
        here, last, step = (t, there), value, _GROWTH * step
    return here[0]


def _root(line: Line, low: tuple[float, float], high: tuple[float, float], enough: float, unit: float) -> float:
    """Where the slope changes its sign between low and high, each (t, slope)."""
    (a, fa), (b, fb) = low, high
    best = min(low, high, key=lambda end: abs(end[1]))
    slow = 0  # steps in a row that did not halve the bracket
    stays = 0  # which end stayed: −1 the high one, 1 the low one
    for _ in range(200):
        width = b - a
        if abs(best[1]) <= enough or width <= 2 * unit:
            break
        t = a - fa * width / (fb - fa) if slow < 3 else 0.5 * (a + b)
        t = min(max(t, a + 1e-3 * width), b - 1e-3 * width)
        slope = line.at(t)[1]
        best = min(best, (t, slope), key=lambda end: abs(end[1]))
        if slope == 0:
            break
        # An end that stays twice counts half (the rule of Illinois), so that the other one does not creep.
        if slope < 0:
            a, fa, fb, stays = t, slope, 0.5 * fb if stays < 0 else fb, -1
        else:
            b, fb, fa, stays = t, slope, 0.5 * fa if stays > 0 else fa, 1
        slow = slow + 1 if b - a > 0.5 * width else 0
    return best[0]


def best_intercepts(point: Point, part: float = 0.0) -> Point:
    """The same weights with the best free intercepts of a smooth loss of K scores; no pass over the data.

    Newton's method until the slopes along all intercepts are zero as far as double precision goes, or that part of what
    they were. A step is no longer than those that have lowered J before, four times over: where rows are far from their
    kinks there is next to no curvature, and it would lead anywhere. The Hessian costs n·K²/2 steps and changes little
    on the way: it is made anew only when its last step helped little. Where a shift of all intercepts at once changes
    no loss, of those that are best the sum of these is zero. Where scores of classes are sums, those that belong to one
    class alone lead anywhere, and only they move.
    """
    o = point.objective
    if isinstance(o.loss, VectorLoss) and o.loss.shift_invariant:
        point = point.shifted(-float(np.mean(point.theta[-o.n_outputs :])))
    reach = _GROWTH * o.natural_width
    hessian, before, enough = None, np.inf, None
    for _ in range(_MOST_STEPS):
        slope = np.asarray(point.slope_total)[: o.n_classes]
        size = float(np.abs(slope).max())
        enough = part * size if enough is None else enough
        if size <= max(enough, _LEVEL_OF_SEVERAL * point.slope_size):
            break
        if hessian is None or size > 0.1 * before:
            hessian = _intercept_hessian(point)
        step = _newton_step(hessian, slope, reach)
        moved = point.shifted(np.append(step, np.zeros(o.n_outputs - o.n_classes)))
        length = float(np.abs(step).max())
        lost_in_rounding = dot(-slope, step) <= _NOTHING * point.loss  # J shows no difference any more: slopes do
        if lost_in_rounding and float(np.abs(np.asarray(moved.slope_total)[: o.n_classes]).max()) >= 0.5 * size:
            break
        if not (moved.loss <= point.loss * (1 + _NOTHING)):
            if length <= _UNIT * max(1.0, point.score_bound):
                break
            reach, hessian = 0.25 * length, None
            continue
        reach = max(reach, 4 * length)
        point, before = moved, size
    return point


def best_free(point: Point) -> Point:
    """The same weights with the best values of all coordinates that do not count in Ω, for a smooth loss.

    The method of Broyden, Fletcher, Goldfarb and Shanno over those few coordinates, from scores alone, until the slopes
    along them are zero as far as double precision goes; Newton's where the loss knows its curvatures by them.
    """
    o = point.objective
    if o.n_free == o.parameters.n_extra and len(point.extra_derivatives[0]):
        return _best_own(point)
    free, inverse = point.theta[o.n_regularized :].copy(), None
    for _ in range(_MOST_STEPS):
        slope = point.free_slopes
        size = float(np.abs(slope).max())
        if size <= _LEVEL * point.slope_size or not math.isfinite(size):
            break
        step = -slope * (o.natural_width / size) if inverse is None else -inverse @ slope
        moved = _lower(point, free, free + step, slope)
        if moved is None:
            if inverse is None:
                break
            inverse = None
            continue
        change, slope_change = moved.theta[o.n_regularized :] - free, moved.free_slopes - slope
        inverse = _secant(inverse, change, slope_change)
        free, point = moved.theta[o.n_regularized :].copy(), moved
    return point


def _best_own(point: Point) -> Point:
    """The same weights with the best parameters of the loss's own, by Newton's method; the loss keeps them in order."""
    o = point.objective
    ordered = o.loss.in_order(point.theta[o.n_regularized :])
    if not np.array_equal(ordered, point.theta[o.n_regularized :]):
        point = point.with_free(ordered)
    for _ in range(_MOST_STEPS):
        size = float(np.abs(point.free_slopes).max())
        if size <= _LEVEL * point.slope_size or not math.isfinite(size):
            break
        slopes, curvatures = point.extra_derivatives
        best = o.loss_at(point.theta).best_extra(slopes, curvatures, _GROWTH * o.natural_width)
        moved = _lower(point, point.theta[o.n_regularized :], best, slopes)
        if moved is None:
            break
        point = moved
    return point


def best_free_by_turns(point: Point, accuracy: float) -> Point:
    """The same weights with better values of the coordinates that do not count in Ω, for a loss with kinks.

    One coordinate after the other, each by a line search over scores alone, while a turn lowers J. Where kinks meet
    that may end above the minimum: it is a point to go on from, and nothing is proven by it. A coordinate along which J
    has no slope but for rounding stays where it is.
    """
    o = point.objective
    for _ in range(_MOST_TURNS if o.n_free <= _FEW_FREE else 0):
        before = point.value
        for k in range(o.n_free):
            if abs(float(point.free_slopes[k])) <= _LEVEL * point.slope_size:
                continue
            direction = np.zeros(o.size)
            direction[o.n_regularized + k] = 1.0
            line = point.free_line(direction)
            moved = line.move(line.least(-math.inf, math.inf, 0.0, accuracy))
            point = moved if moved.value < point.value else point
        if not point.value < before * (1 - accuracy):
            break
    return point


def _lower(point: Point, free: Floats, target: Floats, slope: Floats) -> Point | None:
    """A point on the way to a target where J is lower, or its slopes where J shows no difference any more; or None."""
    step = target - free
    fall, size = dot(slope, step), float(np.abs(point.free_slopes).max())
    for _ in range(_MOST_HALVINGS):
        moved = point.with_free(target)
        if fall >= -_NOTHING * point.loss:
            return moved if float(np.abs(moved.free_slopes).max()) < size else None
        if moved.loss <= point.loss + _SUFFICIENT * fall:
            return moved
        step, fall = 0.5 * step, 0.5 * fall
        target = free + step
    return None


def _secant(inverse: Floats | None, change: Floats, slope_change: Floats) -> Floats | None:
    """The inverse Hessian that explains by how much the slopes have changed with the last step."""
    product = dot(change, slope_change)
    if not product > 0:
        return inverse
    if inverse is None:
        inverse = np.eye(len(change)) * (product / dot(slope_change, slope_change))
    left = np.eye(len(change)) - np.outer(change, slope_change) / product
    updated: Floats = left @ inverse @ left.T + np.outer(change, change) / product
    return updated


def _newton_step(hessian: Floats, slope: Floats, reach: float) -> Floats:
    """A Newton step, or one down the slope where there is no curvature; no longer than the reach."""
    step = -slope
    if not solve_positive(hessian.copy(), step) or not np.isfinite(step).all():
        step = -slope / float(np.abs(slope).max()) * reach  # in this order: a slope may be next to nothing
    length = float(np.abs(step).max())
    return step if length <= reach else step * (reach / length)


def _intercept_hessian(point: Point) -> Floats:
    """∂²J/∂b² of the classes, with a curvature along (1, …, 1) too, where it has none of its own."""
    o, k = point.objective, point.objective.n_classes
    assert isinstance(o.loss, VectorLoss)
    loss = o.loss.class_loss
    hessian: Floats = o.rows.sum(values.intercept_hessian, point.curvatures, loss=loss).value[0]
    mean = np.trace(hessian) / k
    hessian[np.diag_indices(k)] += 1e-14 * mean
    if loss.shift_invariant:
        hessian += mean / k
    return hessian
