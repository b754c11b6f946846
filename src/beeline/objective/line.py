"""J along a line from a point, which costs no pass over the data."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from beeline._lazy import cached_property
from beeline._types import Floats
from beeline.engines import Promise, RowVector
from beeline.engines.verbs import columns, values
from beeline.kernels import dot
from beeline.losses import ScalarLoss
from beeline.objective.certificates import rounding_unit

if TYPE_CHECKING:
    from beeline.objective.points import Point

__all__ = ["Line"]


def _lowest_of_cubic(left: tuple[float, float, float], right: tuple[float, float, float], meet: float) -> float:
    """How far behind the left end a cubic through both is least, by values and slopes; else where tangents meet."""
    width = right[0] - left[0]
    d = left[2] + right[2] - 3 * (right[1] - left[1]) / width
    root = d * d - left[2] * right[2]
    if not root >= 0:
        return meet
    r = math.sqrt(root)
    span = right[2] - left[2] + 2 * r
    return width * (1 - (right[2] + r - d) / span) if span > 0 else meet


class Line:
    """J along θ + t·direction, from scores alone."""

    def __init__(self, point: Point, direction: Floats, dz: RowVector) -> None:
        self.point, self.direction, self.dz = point, direction, dz
        self._asked: dict[float, Promise] = {}

    def at(self, t: float) -> tuple[float, float]:
        """J and its derivative by t; no pass over the data."""
        o = self.point.objective
        loss, slope = (self._asked.get(t) or self._sums(t)).value
        penalty, incline = self._penalty(t)
        return o.strength * penalty + float(loss), o.strength * incline + float(slope)

    def ask(self, *ts: float) -> None:
        """Ask for J at several t, where questions are queued: they come with one trip."""
        if not self.point.objective.rows.immediate:
            self._asked = {t: self._asked.get(t) or self._sums(t) for t in ts}

    def _sums(self, t: float) -> Promise:
        """The sum of the losses at t, and its derivative."""
        o, point = self.point.objective, self.point
        moving = o.loss_along(point.theta, self.direction)
        return o.rows.sum(values.along, point.z, self.dz, o.labels, o.costs, loss=moving, t=t)

    def _penalty(self, t: float) -> tuple[float, float]:
        """Ω and its derivative by t."""
        regularizer, n = self.point.objective.regularizer, self.point.objective.n_regularized
        if regularizer.separable and not regularizer.l1:
            constant, linear, square = self._products
            l2 = regularizer.l2
            return l2 * (0.5 * constant + t * (linear + 0.5 * t * square)), l2 * (linear + t * square)
        omega = self.point.objective.omega
        moved, direction = self.point.theta[:n] + t * self.direction[:n], self.direction[:n]
        return omega.value(moved), dot(omega.gradient(moved), direction)

    @property
    def parabola(self) -> tuple[float, float]:
        """The first derivative at t = 0 and the second one of the L2 part of strength·Ω, which is a parabola."""
        o = self.point.objective
        _, linear, square = self._products
        return o.strength * o.regularizer.l2 * linear, o.strength * o.regularizer.l2 * square

    @cached_property
    def _products(self) -> tuple[float, float, float]:
        """‖w‖², wᵀd and ‖d‖² of the regularized coordinates: Ω is a parabola along the line."""
        n = self.point.objective.n_regularized
        w, d = self.point.theta[:n], self.direction[:n]
        return dot(w, w), dot(w, d), dot(d, d)

    def least(self, low: float, high: float, first: float, accuracy: float) -> float:
        """Where J is least between low and high (either may be infinite), to a relative accuracy of J.

        `first` is the first t to look at, and the best one must beat t = 0.
        """
        return self.bracket(low, high, first, accuracy)[0]

    def bracket(self, low: float, high: float, first: float, accuracy: float) -> tuple[float, float, float]:
        """Where J is least, as in `least`, and a t on each side of it, whose tangents meet no farther below J.

        J lies above its tangents: where those of a bracket meet is the next t to look at, and how far J is above that
        bounds the error. Needs no smoothness. Where J has no slope, or at an end, both sides are one.
        """
        best, t = (self.point.value, 0.0), first
        left: tuple[float, float, float] | None = None  # t, J and its derivative, below the minimum
        right: tuple[float, float, float] | None = None
        for _ in range(200):
            span = 2 * abs(t - first) or 0.1 * max(1.0, abs(first))
            below, above = max(t - span, low), min(t + span, high)
            if left is None or right is None:
                self.ask(t, *(there for side, there in ((right, above), (left, below)) if side is None))
            value, slope = self.at(t)
            best = min(best, (value, t))
            if slope == 0:
                return best[1], t, t
            left, right = ((t, value, slope), right) if slope < 0 else (left, (t, value, slope))
            if (left is None and t <= low) or (right is None and t >= high):
                break
            if left is None or right is None:
                t = below if left is None else above
                continue
            width = right[0] - left[0]
            meet = (left[1] - right[1] + right[2] * width) / (right[2] - left[2])
            floor = left[1] + left[2] * meet
            if best[0] - floor <= accuracy * abs(best[0]) or width <= 1e-15 * max(abs(left[0]), abs(right[0])):
                break
            t = left[0] + min(max(_lowest_of_cubic(left, right, meet), 0.05 * width), 0.95 * width)
        ends = [side[0] for side in (left, right) if side is not None]
        return best[1], ends[0], ends[-1]

    def interval_cut(self, t: float, begin: float, end: float) -> tuple[Point, float, RowVector, float]:
        """The point at t, and a plane below the loss of one score a row that suits the line between begin and end.

        The plane is given by its value where all scores are zero, less what rounding may have done to it, and its slope
        along each of them; and the size of those slopes, of which their rounding is a part. No pass over the data. The
        line and the point that it begins at are given up: their memory holds the results.
        """
        o, point = self.point.objective, self.point
        assert isinstance(o.loss, ScalarLoss)
        row_vectors, small = (point.z, self.dz, o.labels, o.compact_costs), {"loss": o.loss, "times": (begin, t, end)}
        (z, slopes), sums = o.rows.call(values.interval_cut, row_vectors, small, 2, "sum", reuse=(point.z, self.dz))
        value, offset, terms, size = sums.value
        moved = point.moved_to(point.theta + t * self.direction, z)
        moved.__dict__["loss"] = float(value)
        return moved, float(offset) - rounding_unit(o) * float(terms), slopes, float(size)

    def move(self, t: float) -> Point:
        """The point at t; no pass over the data."""
        point = self.point
        z = point.objective.rows.map(columns.moved, point.z, self.dz, t=t)
        return point.moved_to(point.theta + t * self.direction, z)
