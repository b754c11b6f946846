"""Dual variables to begin from."""

from __future__ import annotations

import math
from typing import NamedTuple

from beeline._numbers import square
from beeline._types import Floats
from beeline.engines import Rows
from beeline.kernels import balance, dot
from beeline.losses import Loss
from beeline.objective import Objective, Point
from beeline.solvers.state import State

__all__ = ["WarmStart", "dual_of", "warm_start"]


class WarmStart(NamedTuple):
    """Where a dual solver begins.

    Attributes
    ----------
    point
        The point of the start, with the best intercept.
    variables
        a, one a row: feasible.
    passes
        What it took to find them.
    """

    point: Point
    variables: Floats
    passes: float

    @property
    def intercept(self) -> float:
        """b, where it is free."""
        return float(self.point.theta[-1]) if self.point.objective.intercept == "free" else 0.0


def dual_of(start: State, rows: Rows) -> Floats | None:
    """The dual variables of a start, in the rows' own order; None where it has none."""
    own = start.arrays.get("dual")
    return None if own is None else rows.in_own_order(own)


def warm_start(
    objective: Objective, labels: Floats, costs: Floats, start: State, tol: float, own: Floats | None
) -> WarmStart:
    """Dual variables for a start: its own, or minus the slopes of the loss, rounded as the dual likes best.

    Its own only where they are feasible: those of other costs or labels need not be, and what they would seem to prove
    could be false. They come in the order of the objective's rows, as `dual_of` has them.
    """
    o, point = objective, objective.at(start.theta).with_best_intercept(0.1 * tol)
    if own is not None and math.isfinite(o.loss.dual_cost(own, labels, costs)):
        return WarmStart(point, own.copy(), 1.0)
    losses = [o.loss]
    if o.loss.has_smoothed:
        losses = [o.loss.smoothed(part * o.natural_width) for part in (0.1, 0.01, 0.001)]
    _, a = max((_by_slopes(loss, point, labels, costs) for loss in losses), key=lambda pair: pair[0])
    return WarmStart(point, a, 1.0 + len(losses))


def _by_slopes(loss: Loss, point: Point, labels: Floats, costs: Floats) -> tuple[float, Floats]:
    """(the dual value, the variables) from the slopes of a loss at a point, scaled as the dual likes best."""
    o = point.objective
    a = -loss.slopes(o.rows.gather_local(point.z), labels, costs)
    if o.intercept == "free":
        balance(a)
    w, _ = o.split(o.weighted(o.rows.scatter_local(a)))
    total = float(a.sum()) if o.intercept == "regularized" else 0.0
    norm, modulus = dot(w, w) + square(total), o.strength * o.regularizer.l2

    def dual(t: float) -> float:
        return -square(t) * norm / (2 * modulus) - o.loss.dual_cost(a, labels, costs, t)

    scale = max((1.0, 0.7, 0.5, 0.25, 0.1, 0.01, 0.0), key=dual)
    return dual(scale), scale * a
