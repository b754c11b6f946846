"""Lower bounds of min J that hold: what they rest on is measured, and rounding is taken off.

All of them are made of tangents. Let u_i be slopes of the losses, c_i·l at scores z_i, and 0 ≤ t_i ≤ 1. No loss is
negative, so that for every score z

    c_i·l(z) ≥ t_i (c_i·l(z_i) + u_i (z − z_i)).

Summed over the rows, with v = Σ t_i u_i x_i and h = strength·Ω, that says for all (w, b)

    J(w, b) ≥ h(w) + ⟨v, w⟩ + b Σ t_i u_i + Σ t_i (c_i·l(z_i) − u_i z_i).

The right side has a minimum over w, `Penalty.floor`, and none over a free b unless Σ t_i u_i = 0. The best intercept
makes the sum of the slopes zero, but never quite, and a search for it may fail. So that is not assumed: what is left,
r = Σ u_i, is taken off the slopes of its own sign by t_i = 1 − |r|/Σ|u_i| there, and the bound pays for it. Nothing is
lost where the intercept is the best one, and nothing is false where it is not.

With conjugates ψ_i(a) = max over z of −az − c_i·l(z), D(a) = −Σ ψ_i(a_i) + min over w of h(w) − ⟨Xᵀa, w⟩ is the same
bound for any feasible a, not only for slopes at one point; ψ_i(0) ≤ 0 and convexity take the place of the tangents.

Rounding: a sum of n numbers in runs of a few thousand, several at a time, is off by some √n/10 units in the last place
of their sizes; more than twice that is allowed for. The sizes of what cancels in a score are bounded by ‖x_i‖‖w‖ + |b|,
and the error of a score costs its slope.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from beeline._numbers import square
from beeline._types import Floats
from beeline.engines import RowVector
from beeline.engines.verbs import columns, values
from beeline.kernels import dot

if TYPE_CHECKING:
    from beeline.objective.objective import Objective
    from beeline.objective.points import Point

__all__ = [
    "Allowance",
    "cancelling_parts",
    "conjugate_bound",
    "left_over",
    "rounding_of",
    "rounding_unit",
    "tangent_bound",
]

_UNIT = float(np.finfo(np.float64).eps)
_FEWEST = 4  # units in the last place that a short sum may be off by
_GROWTH = 0.25  # of that with √n
_FARTHER = 10.0  # times the reach of scores, that intercepts of an optimum may lie apart
_OWN_ROUNDING = 1e-12  # relative, that a regularizer of one's own may be off by
_LEVEL = 1e-12  # of the sizes of all slopes, that those along free coordinates may leave
_SINGULAR = 1e-10  # a part of the largest singular value, below which there is none


@dataclass(frozen=True)
class Allowance:
    """What a bound that is made of slopes must leave for the intercept and for rounding.

    Attributes
    ----------
    given_up
        The largest 1 − t_i: the part of a tangent that is given up so that slopes sum to zero.
    slope_error
        How far Σ t_i u_i x_i may be from the sum Σ u_i x_i as it was computed, in its norm.
    turnover
        Σ |u_i|·(the largest score) + Σ c_i·l(z_i), which conjugates and parts of scores add up to at most. For several
        intercepts more: what rounding leaves of sums of slopes along them is not cancelled, but counts for intercepts
        that are ten times as far apart.
    rounding
        How far a sum of losses, or of conjugates, may be off.
    """

    given_up: float
    slope_error: float
    turnover: float
    rounding: float

    @classmethod
    def of(cls, point: Point, slopes: RowVector, totals: Floats, size: float | None = None) -> Allowance:
        """For slopes with these sums along the intercepts; the point says how large scores and losses are.

        `size`: what slopes are made of, where that is more than Σ |u_i|.
        """
        o = point.objective
        unit = rounding_unit(o)
        if size is None:
            # The point's own slopes are not asked for where these are others: they may not have been computed.
            own = slopes is vars(point).get("slopes")
            size = point.slope_size if own else float(o.rows.sum(columns.size, slopes).value[0])
        given_up, mass = 0.0, 0.0
        if o.n_free:
            given_up, mass = _given_up(o, slopes, totals, size, unit)
        turnover = _turnover(point, size)
        slope_error, rounding = (unit * size + mass) * o.longest_row, unit * (turnover + 2 * point.value)
        if o.couples_rows:
            slope_error += unit * size + (unit + given_up) * float(np.abs(point.extra_slopes).sum())
            rounding += left_over(point, totals)
        if (remainder := point.omega_remainder) is not None:
            slope_error += _OWN_ROUNDING * math.sqrt(dot(remainder[1], remainder[1]))
            rounding += _OWN_ROUNDING * point.value
        return cls(given_up, slope_error, turnover, rounding)


def _turnover(point: Point, size: float) -> float:
    """As in `Allowance`, for slopes of which that is the size."""
    o, turnover = point.objective, size * point.score_bound + point.loss
    if o.intercept == "free" and o.n_outputs > 1:
        turnover += _FARTHER * size * max(1.0, point.score_bound)
    return turnover


def left_over(point: Point, totals: Floats) -> float:
    """What slopes along free coordinates that rounding leaves count for, at ten times their distance from zero."""
    o, reach = point.objective, max(1.0, point.score_bound)
    farthest = float(np.abs(o.parameters.extra(point.theta)).max(initial=reach))
    return _FARTHER * float(np.abs(totals).sum()) * farthest


def rounding_unit(objective: Objective) -> float:
    """What rounding may do to a sum over the rows, as a part of the sizes of its terms."""
    return _UNIT * (_FEWEST + _GROWTH * math.sqrt(objective.rows.n_rows))


def rounding_of(point: Point) -> float:
    """How far J at the point may be off by rounding.

    Rows at a kink have a slope of zero, and that of either side a rounding further on: there they count by their costs.
    At the bottom of a curve, where labels are met to the last digit, they count by their curvatures; and where a curve
    becomes flat, such as at the edge of a tube, by those of its other side, for which the costs stand.
    """
    if not math.isfinite(point.value):
        return math.inf
    o, unit = point.objective, rounding_unit(point.objective)
    slopes = point.slope_size + (0.0 if o.loss.smooth else o.total_cost)
    if o.has_curvature:
        curvatures = point.curvatures if o.n_outputs == 1 else point.diagonal_curvatures
        curved = float(o.rows.sum(columns.size, curvatures).value[0]) + 2 * o.total_cost
        further = 0.5 * unit * point.score_bound * curved
        slopes += further if math.isfinite(further) else 0.0
    return unit * (_turnover(point, slopes) + 2 * point.value)


def _given_up(o: Objective, slopes: RowVector, totals: Floats, size: float, unit: float) -> tuple[float, float]:
    """(the largest 1 − t_i, Σ (1 − t_i)|u_i|) for slopes that sum to zero along every free intercept."""
    if not size:
        return 0.0, 0.0
    if o.couples_rows:
        return _given_up_together(o, slopes, totals, size)
    if o.n_outputs == 1:
        missing = abs(float(totals[0])) + unit * size
        return min(1.0, missing / (0.5 * (size + abs(float(totals[0]))))), missing
    if dot(totals, totals) <= square(2 * unit * size):  # nothing but rounding
        return 0.0, 0.0
    given_up = float(cancelling_parts(_group_sums(o, slopes), totals[: o.n_classes], unit * size).max())
    return given_up, given_up * size


def _given_up_together(o: Objective, slopes: RowVector, totals: Floats, size: float) -> tuple[float, float]:
    """The same where only whole groups lie above their tangents: what is given up of one is so of all its rows.

    Slopes that are next to nothing are not cancelled, but counted as `left_over`.
    """
    if float(np.abs(totals).max(initial=0.0)) <= _LEVEL * size:
        return 0.0, 0.0
    if o.n_free > 1 or o.loss.scope != "group" or o.parameters.n_extra:
        return 1.0, size
    up, down = o.rows.sum(values.signed_group_sums, slopes).value
    given_up = min(1.0, abs(float(totals[0])) / max(up if totals[0] > 0 else -down, abs(float(totals[0]))))
    return given_up, given_up * size


def cancelling_parts(sums: Floats, totals: Floats, rounding: float) -> Floats:
    """Parts of groups that are to be given up so that what is left sums to zero, up to rounding.

    `sums` has a row for each group, and `totals` is their sum r. Any s with Σ s_g·(sum of g) = r will do, once no s_g
    is negative: adding the same number to all adds a multiple of r, and dividing by as much makes it r again. Of r only
    what exceeds rounding is to be cancelled: groups that hardly differ would have to give up much for the rest. All is
    given up where there is no such s.
    """
    if not np.isfinite(sums).all():
        return np.ones(len(sums))
    left, values, right = np.linalg.svd(sums.T, full_matrices=False)
    wanted = left.T @ totals
    # What the first k of them leave of r. By differences from ‖r‖² this would never fall below 10⁻⁸ of r.
    outside = totals - left @ wanted
    missed = np.sqrt(np.append(wanted**2, float(outside @ outside))[::-1].cumsum()[::-1])
    enough = np.flatnonzero(missed <= 2 * rounding)
    kept = int(enough[0]) if len(enough) else len(values)
    if (kept and values[kept - 1] <= _SINGULAR * values[0]) or not len(enough):
        return np.ones(len(sums))
    parts: Floats = right[:kept].T @ (wanted[:kept] / values[:kept])
    lift = max(0.0, -float(parts.min(initial=0.0)))
    parts = np.minimum((parts + lift) / (1 + lift), 1.0)
    # None can give up more than all of it. What that leaves, and what solving left, is looked at: groups that slope to
    # the same side cannot cancel, however near a solution seems.
    left_over = np.abs(((1 - parts)[:, None] * sums).sum(axis=0))
    return parts if float(left_over.max(initial=0.0)) <= 2 * rounding else np.ones(len(sums))


def _group_sums(o: Objective, slopes: RowVector) -> Floats:
    """Sums of the slopes of groups of rows, one row a group: classes, or rows whose largest slopes are alike.

    Where scores of classes are sums, of the slopes along the classes: the others are sums of these, and zero with them.
    """
    by_class = o.loss.labels == "classes"
    sums: Floats = o.rows.sum(values.slope_sums_of_alike, slopes, o.labels, k=o.n_classes, by_class=by_class).value[0]
    return sums


def tangent_bound(point: Point) -> float:
    """The bound by the point's own slopes; no pass once it has its gradient.

    For L2 it is J − ‖∂J‖²/(2λ), λ = strength·l2 (lemma 5 of the bundle paper), which holds for any Ω of that modulus.
    Where L1 or bounds keep weights from growing, slopes are first scaled down by s until no weight is pulled at by more
    than l1.
    """
    o, w = point.objective, point.theta[: point.objective.n_regularized]
    if not (o.loss.convex and math.isfinite(point.value)):
        return -math.inf
    product, totals, risk = point.loss_gradient[: len(w)], point.loss_gradient[len(w) :], point.loss
    allowance = Allowance.of(point, point.slopes, totals)
    if o.penalty.plain:
        fall = math.sqrt(dot(point.gradient[: len(w)], point.gradient[: len(w)])) + allowance.slope_error
        bound = point.value - square(fall) / (2 * o.penalty.l2) if o.penalty.l2 else -math.inf
        return _checked(bound - allowance.given_up * point.loss - allowance.rounding)
    if (own := point.omega_remainder) is not None:
        risk, product = risk + own[0], product + own[1]
    s = o.penalty.feasible_scale(product, allowance.slope_error)
    floor = o.penalty.floor(s * product, s * allowance.slope_error)
    lost = allowance.given_up * point.loss + allowance.slope_error * math.sqrt(dot(w, w))
    bound = s * (risk - dot(w, product) - lost) + floor - allowance.rounding
    if s < 1 and o.has_conjugate:
        bound = max(_checked(bound), _dual_value(point, point.slopes, product, allowance))
    return _checked(bound)


def conjugate_bound(point: Point, slopes: RowVector, product: Floats) -> float:
    """The dual value D(a) at a = −s · slopes, which need not be slopes of the loss at the point.

    `product` is Σ u_i x_i, and Σ u_i for intercepts below it. The point, of the objective that the bound is for, says
    how large scores and losses are. s is 1, or with L1 so much less that no weight is pulled at by more than l1.
    """
    o = point.objective
    assert o.regularizer.separable
    if not o.loss.convex:
        return -math.inf
    v, totals = product[: o.n_regularized], product[o.n_regularized :]
    return _dual_value(point, slopes, v, Allowance.of(point, slopes, totals))


def _dual_value(point: Point, slopes: RowVector, v: Floats, allowance: Allowance) -> float:
    """D(a), less what the allowance says."""
    o = point.objective
    scale = o.penalty.feasible_scale(v, allowance.slope_error)
    (cost,) = o.rows.sum(values.conjugate, slopes, o.labels, o.costs, loss=o.loss, scale=-scale).value
    floor = o.penalty.floor(scale * v, scale * allowance.slope_error)
    return _checked(floor - float(cost) - allowance.given_up * allowance.turnover - 2 * allowance.rounding)


def _checked(bound: float) -> float:
    """A number; what overflowed is no bound."""
    return bound if math.isfinite(bound) else -math.inf
