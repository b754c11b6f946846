"""Cutting planes of the loss: where they come from and where they are kept.

The empirical risk R(θ) = Σ c_i l(z_i, y_i) is convex, so that it lies above its tangents, R(θ) ≥ ⟨a, θ⟩ + b (B2). A
free intercept costs nothing in Ω, and a plane that slopes along it says nothing about min J by itself. Where that can
be done, planes are therefore taken of min over b of R(w, b), a convex function of the weights alone: a plane with no
slope along the intercepts. At the best intercept of a smooth loss every tangent is one; of a loss of one score a row
with kinks, the right mean of the tangents on both sides of the best intercept is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from beeline._types import Floats, Ints
from beeline.data.core.block import Block
from beeline.engines.verbs import columns, values
from beeline.kernels import dot
from beeline.objective import Objective, Penalty, Point
from beeline.objective.certificates import Allowance, cancelling_parts, rounding_unit
from beeline.objective.intercepts import level_intercepts
from beeline.solvers.bundle.line_search import LineMinimum, is_piecewise_linear, line_minima, line_minimum

__all__ = ["Plane", "Planes", "balances", "tangent", "with_best_intercepts", "with_best_intercepts_and_tangent"]

_COLUMNS = ("_slopes", "_intercept_slopes", "_offsets", "_slope_errors", "_unused", "_numbers")
_UNIT = 32 * float(np.finfo(np.float64).eps)  # what a sum over planes may be off by
_NARROWEST = 14  # times that a width is divided by four
_FIRST = 1e-3  # shift of an intercept that is looked at
_FIRST_ROOM = 32  # planes; what is not used yet takes address space only


@dataclass(frozen=True)
class Plane:
    """R(θ) ≥ ⟨slope, θ⟩ + offset − slope_error·‖w‖ for all θ.

    What rounding may have done to a plane, and what it took to level it along an intercept, is in its offset and its
    slope error: so much its slope may be off.
    """

    slope: Floats
    offset: float
    slope_error: float = 0.0

    @classmethod
    def of(cls, point: Point, product: Floats, offset: float, allowance: Allowance) -> Plane:
        """The plane of tangents at a point, whose value at w = 0 is the offset."""
        o = point.objective
        slope, w = product.copy(), point.theta[: o.n_regularized]
        if o.n_free:
            slope[o.n_regularized :] = 0.0
        lost = allowance.given_up * point.loss + allowance.slope_error * math.sqrt(dot(w, w)) + allowance.rounding
        return cls(slope, offset - lost, allowance.slope_error).with_omega(point)

    def with_omega(self, point: Point) -> Plane:
        """With the tangent of what Ω holds beside its L2 part, where it is one's own: that is convex, as losses are."""
        if (own := point.omega_remainder) is None:
            return self
        value, gradient = own
        slope, n = self.slope.copy(), len(gradient)
        slope[:n] += gradient
        return Plane(slope, self.offset + value - dot(gradient, point.theta[:n]), self.slope_error)

    def at(self, theta: Floats) -> float:
        """Its value; θ may be without the intercepts that it has no slope along."""
        return self.offset + dot(self.slope[: len(theta)], theta)


def balances(objective: Objective) -> bool:
    """Whether planes have no slope along the free coordinates: these are eliminated, or there are none."""
    if not objective.n_free:
        return True
    if objective.couples_rows:
        return objective.loss.smooth
    if objective.intercept != "free" or objective.n_outputs == 1 or objective.has_curvature:
        return True
    return objective.loss.has_smoothed and objective.loss.has_conjugate


def with_best_intercepts(point: Point, accuracy: float) -> Point:
    """The same weights with the best free intercepts, where those follow from the scores; no pass over the data."""
    o = point.objective
    if not o.n_free:
        return point
    if not balances(o):
        return point.with_best_intercept(accuracy) if o.couples_rows else point
    if o.loss.smooth:
        return _level(point, accuracy)
    if o.n_outputs > 1:
        return _smoothed_at_best(point, accuracy)[0].with_objective(o)
    return point.shifted(_lowest(point).t) if is_piecewise_linear(o) else _intercept_sides(point, accuracy, None)[0]


def _level(point: Point, accuracy: float) -> Point:
    """The best free intercepts of a smooth loss; a single one need not be exact where that costs J next to nothing."""
    if (
        point.objective.n_outputs > 1 or point.objective.couples_rows
    ):  # a plane pays for whatever is left of their slopes
        return point.with_best_intercept()
    return point.with_level_intercept(accuracy * abs(point.value))


def tangent(point: Point, accuracy: float) -> tuple[Plane, Point]:
    """The plane that touches R at a point, and the point with its best intercept; one pass.

    `accuracy`: the plane may lie below R there by so much of J, where an intercept is searched for.
    """
    o = point.objective
    if o.n_free and not balances(o):
        return _tilted_tangent(point), point
    if o.intercept == "free" and o.n_outputs > 1 and not o.loss.smooth:
        return _smoothed_tangent(point, accuracy)
    if o.intercept == "free" and not o.loss.smooth:
        return _balanced_tangent(point, accuracy, _lowest(point) if is_piecewise_linear(o) else None)
    if o.n_free:
        point = _level(point, accuracy)
    return _tangent_at(point), point


def _tangent_at(point: Point) -> Plane:
    """The plane that touches R at a point whose free coordinates are the best."""
    n, product = point.objective.n_regularized, point.loss_gradient
    allowance = Allowance.of(point, point.slopes, product[n:])
    return Plane.of(point, product, point.loss - dot(product[:n], point.theta[:n]), allowance)


def _tilted_tangent(point: Point) -> Plane:
    """The plane that touches R at a point, with its slopes along free coordinates.

    Of a loss that only differences of scores matter to, all that is left along the intercept is rounding, which no mean
    of planes could cancel: it is taken off, and counts as `left_over` says.
    """
    o, n = point.objective, point.objective.n_regularized
    slope = point.loss_gradient.copy()
    noise = np.where(np.abs(slope[n:]) <= rounding_unit(o) * point.slope_size, slope[n:], 0.0)
    slope[n:] -= noise
    allowance = Allowance.of(point, point.slopes, noise)
    offset = point.loss - dot(slope, point.theta) - allowance.rounding
    return Plane(slope, offset, allowance.slope_error).with_omega(point)


def with_best_intercepts_and_tangent(best: Point, near: Point, accuracy: float) -> tuple[Point, Plane, Point]:
    """(the first point with its best intercept, the plane that touches R at the second, that with its best intercept).

    As `with_best_intercepts` and `tangent`; where losses have kinks, both intercepts are searched for in the same
    trips.
    """
    o = best.objective
    if o.intercept == "free" and o.n_outputs == 1 and o.has_curvature:
        best, near = level_intercepts((best, near), accuracy * abs(near.value))
        return best, _tangent_at(near), near
    if o.intercept != "free" or o.n_outputs > 1 or not is_piecewise_linear(o):
        best = with_best_intercepts(best, accuracy)
        best.ask_loss()
        return best, *tangent(near, accuracy)
    lines = [point.along_intercept() for point in (best, near)]
    low, under = line_minima(lines, -np.inf, np.inf, _FIRST)
    best = best.shifted(low.t)
    best.ask_loss()
    return best, *_balanced_tangent(near, accuracy, under)


def _smoothed_at_best(point: Point, accuracy: float) -> tuple[Point, float]:
    """(the point with the best intercepts of several scores whose kinks are rounded off, under that loss; Σ ψ(−u)).

    Each slope u of the smoothed loss belongs to a line that touches the loss itself, c·l(z) ≥ u·z − ψ(−u). Kinks are
    rounded off less and less, until all those lines together are as near to J as the accuracy says: few rows are near
    a kink, and what rounding could do to all of them is far more.
    """
    o = point.objective
    width = o.natural_width
    for _ in range(_NARROWEST):
        point = point.with_objective(o.with_loss(o.loss.smoothed(width))).with_best_intercept()
        conjugates = o.rows.sum(values.conjugate, point.slopes, o.labels, o.costs, loss=o.loss, scale=-1.0)
        met = o.rows.sum(columns.product, point.slopes, point.z)
        exact, (cost,), (touching,) = point.with_objective(o), conjugates.value, met.value
        if exact.loss + float(cost) - touching <= accuracy * exact.value:
            break
        width *= 0.25
    return point, float(cost)


def _smoothed_tangent(point: Point, accuracy: float) -> tuple[Plane, Point]:
    """A plane below R without a slope along several intercepts: slopes of the smoothed loss, where those have none."""
    smoothed, cost = _smoothed_at_best(point, accuracy)
    o = point.objective
    point, product = smoothed.with_objective(o), smoothed.loss_gradient
    allowance = Allowance.of(point, smoothed.slopes, product[o.n_regularized :])
    return Plane.of(point, product, -cost - allowance.given_up * allowance.turnover, allowance), point


def _balanced_tangent(point: Point, accuracy: float, found: LineMinimum | None) -> tuple[Plane, Point]:
    """A plane without a slope along the intercept of one score with kinks, and the point with the best intercept.

    The tangents on both sides of the minimum along the intercept are mixed so that their slopes along it cancel.
    `found`: the minimum, where it was searched for by kinks.
    """
    o = point.objective
    best, left, right, down, up = _intercept_sides(point, accuracy, found)
    # Flat on one side, or as flat as it gets: that side alone.
    part = up / (up - down) if down < 0 < up else float(abs(down) <= abs(up))
    slopes = o.rows.map(columns.mixed, left.slopes, right.slopes, part=part)
    for side in (best, left, right):
        side.ask_loss()
    totals = [o.rows.sum(columns.total, side.slopes) for side in (left, right)]
    sums, sizes = o.weighted_sums(slopes), o.rows.sum(columns.size, slopes)
    product = o.from_sums(sums)
    (down,), (up,) = (total.value for total in totals)
    width = float(right.theta[-1] - left.theta[-1])
    # Both tangents halfway between the two; their mean is nearly the same everywhere.
    value = part * (left.loss + down * 0.5 * width) + (1 - part) * (right.loss - up * 0.5 * width)
    value -= rounding_unit(o) * (part * (left.loss + abs(down * width)) + (1 - part) * (right.loss + abs(up * width)))
    n = o.n_regularized
    allowance = Allowance.of(best, slopes, product[n:], float(sizes.value[0]))
    # The plane's slope along the intercept, which is given up, counts from halfway to the best intercept.
    value -= abs(float(product[n])) * abs(0.5 * float(left.theta[-1] + right.theta[-1]) - float(best.theta[-1]))
    return Plane.of(best, product, value - dot(product[:n], best.theta[:n]), allowance), best


def _intercept_sides(
    point: Point, accuracy: float, found: LineMinimum | None
) -> tuple[Point, Point, Point, float, float]:
    """The best intercept for the weights, points on both sides of it, and the slopes of R along it there.

    These are so close that their tangents meet near J.
    """
    o = point.objective
    if found is not None:
        best, left, right = point.shifted(found.t), point.shifted(found.left), point.shifted(found.right)
        down, up = found.down, found.up
        if math.isnan(down) or math.isnan(up):
            down, up = _slope(left), _slope(right)
        rounding = 1e-14 * o.total_cost  # on a level piece the slope is nothing else
        if down <= rounding and up >= -rounding:
            return best, left, right, down, up
    t, low, high = point.along_intercept().bracket(-np.inf, np.inf, 0.0, accuracy)
    best, left, right = point.shifted(t), point.shifted(low), point.shifted(high)
    return best, left, right, _slope(left), _slope(right)


def _lowest(point: Point) -> LineMinimum:
    """Where along the intercept J is least."""
    return line_minimum(point.along_intercept(), -np.inf, np.inf, _FIRST)


def _slope(point: Point) -> float:
    """∂R along the intercept."""
    return float(point.slope_total)


class Planes:
    """The planes of a model, their inner products, and how long each has been of no use.

    Plane 0 is R ≥ 0, which every loss allows. Memory: 8 bytes for each plane and coordinate, and no more planes than
    the limit says. When it is reached, one plane takes the place of many: the mean that the last solution of the model
    took of all of them, so that the bound of the model does not fall.

    Parameters
    ----------
    n_weights, n_intercepts
        Coordinates of a plane that count in Ω, and those that do not and have not been eliminated.
    limit
        How many planes are kept.
    idle
        After so many steps without a part in the model's solution a plane is dropped.
    """

    def __init__(self, n_weights: int, n_intercepts: int, limit: int, idle: int) -> None:
        self.limit, self.idle, self.count = max(4, limit), idle, 1
        room = min(self.limit, _FIRST_ROOM)
        self._slopes, self._intercept_slopes = np.zeros((room, n_weights)), np.zeros((room, n_intercepts))
        self._offsets, self._slope_errors, self._gram = np.zeros(room), np.zeros(room), np.zeros((room, room))
        self._unused, self._numbers = np.zeros(room, dtype=np.int64), np.zeros(room, dtype=np.int64)
        self.alpha = np.ones(1)  # the last solution
        self.made = 0
        self.most = 1
        self.steepest = 0.0  # the largest ‖a‖² of any plane so far

    def snapshot(self) -> dict[str, Any]:
        """All planes, and the last solution."""
        columns = {name: getattr(self, name)[: self.count] for name in _COLUMNS}
        numbers = [len(self._slopes), self.count, self.made, self.most, self.steepest]
        return {"columns": columns, "gram": np.ascontiguousarray(self.gram), "alpha": self.alpha, "numbers": numbers}

    def restore(self, snapshot: Mapping[str, Any]) -> None:
        """Go on from a snapshot."""
        room, self.count, self.made, self.most, self.steepest = snapshot["numbers"]
        self._gram, self.alpha = np.zeros((room, room)), np.array(snapshot["alpha"])
        self._gram[: self.count, : self.count] = snapshot["gram"]
        for name, kept in snapshot["columns"].items():
            setattr(self, name, np.zeros((room, *kept.shape[1:]), kept.dtype))
            getattr(self, name)[: self.count] = kept

    @property
    def slopes(self) -> Block:
        """The slopes along the weights, a row each."""
        return Block(self._slopes[: self.count], self._slopes.shape[1])

    @property
    def intercept_slopes(self) -> Floats:
        """The slopes along the intercepts that are not eliminated, a row each."""
        return self._intercept_slopes[: self.count]

    @property
    def offsets(self) -> Floats:
        """The offsets."""
        return self._offsets[: self.count]

    @property
    def gram(self) -> Floats:
        """The inner products of the slopes."""
        return self._gram[: self.count, : self.count]

    @property
    def numbers(self) -> Ints:
        """Which planes these are, counted from the first that was made."""
        return self._numbers[: self.count]

    @property
    def nbytes(self) -> int:
        """What the planes and their products take."""
        return self._slopes.nbytes + self._intercept_slopes.nbytes + self._gram.nbytes

    def add(self, plane: Plane) -> None:
        """One more, which the last solution takes no part of."""
        if self.count == self.limit:
            self._aggregate()
        if self.count == len(self._slopes):
            self._grow(min(2 * self.count, self.limit))
        k, n = self.count, self._slopes.shape[1]
        self.made += 1
        m = self._intercept_slopes.shape[1]
        self._slopes[k], self._intercept_slopes[k] = plane.slope[:n], plane.slope[n : n + m]
        self._offsets[k], self._slope_errors[k] = plane.offset, plane.slope_error
        self._unused[k], self._numbers[k] = 0, self.made
        self.count += 1
        self._gram[k, : k + 1] = self.slopes.scores(self._slopes[k])
        self._gram[: k + 1, k] = self._gram[k, : k + 1]
        self.alpha = np.append(self.alpha, 0.0)
        self.most, self.steepest = max(self.most, self.count), max(self.steepest, float(self._gram[k, k]))

    def _grow(self, rows: int) -> None:
        k = self.count
        gram = np.zeros((rows, rows))
        gram[:k, :k] = self._gram[:k, :k]
        self._gram = gram
        for name in _COLUMNS:
            old = getattr(self, name)
            new = np.zeros((rows, *old.shape[1:]), dtype=old.dtype)
            new[:k] = old[:k]
            setattr(self, name, new)

    def use(self, alpha: Floats) -> None:
        """Take note of a solution of the model, and drop what has been of no use for long."""
        k = self.count
        self.alpha = alpha
        self._unused[:k] = np.where(alpha > 0, 0, self._unused[:k] + 1)
        keep = self._unused[:k] <= self.idle
        keep[0] = True
        if not keep.all():
            self._keep(np.nonzero(keep)[0])

    def _keep(self, kept: Ints) -> None:
        """Keep these planes, in increasing order; the last of them take the places of those that are dropped."""
        k = len(kept)
        stay, move = kept[kept < k], kept[kept >= k]
        order = np.arange(k)
        order[np.setdiff1d(order, stay, assume_unique=True)] = move
        (places,) = np.nonzero(order != np.arange(k))
        for name in _COLUMNS:
            values = getattr(self, name)
            values[places] = values[order[places]]
        self._gram[:k, :k] = self._gram[np.ix_(order, order)]
        self.alpha, self.count = self.alpha[order], k

    def mean(self, alpha: Floats) -> Plane:
        """The mean of all planes with these parts."""
        slope, tail = self.slopes.transposed(alpha), (alpha[:, None] * self.intercept_slopes).sum(axis=0)
        return Plane(np.append(slope, tail), dot(self.offsets, alpha), dot(self._slope_errors[: self.count], alpha))

    def bound(self, alpha: Floats, penalty: Penalty, reach: float = 0.0) -> float:
        """The lower bound of min h + R that multipliers prove, whoever found them.

        Multipliers that are not negative and sum to at most 1 make a mean of the planes, which lies below R. Scaled
        down it still does, as R ≥ 0. Where intercepts are not eliminated, it must not slope along them: multipliers are
        taken back until it does not, up to rounding, which counts for intercepts of that reach.
        """
        alpha = np.maximum(alpha, 0.0)
        alpha = alpha / max(1.0, float(alpha.sum()))
        rounding = 0.0
        if self.intercept_slopes.shape[1]:
            slopes = alpha[:, None] * self.intercept_slopes
            rounding = _UNIT * float(np.abs(slopes).sum())
            alpha = alpha * (1 - cancelling_parts(slopes, slopes.sum(axis=0), rounding))
        mean, n = self.mean(alpha), self._slopes.shape[1]
        steep = dot(np.sqrt(self._gram.diagonal()[: self.count]), alpha)
        v, slope_error = mean.slope[:n], mean.slope_error + _UNIT * steep
        s = penalty.feasible_scale(v, slope_error)
        lost = _UNIT * dot(np.abs(self.offsets), alpha) + 4 * rounding * reach
        floor = penalty.floor(s * v, s * slope_error)
        return s * (mean.offset - lost) + floor * (1 + _UNIT)

    def _aggregate(self) -> None:
        """Make room: the mean by the last solution takes the place of the half of the planes with the least parts."""
        mean = self.mean(self.alpha)
        order = np.argsort(-self.alpha[1:], kind="stable")[: self.limit // 2 - 1] + 1
        self._keep(np.sort(np.append(order, 0)))
        self.add(mean)
        self.alpha = np.zeros(self.count)
        self.alpha[-1] = 1.0
